"""The places for nodes at work: never more than there are, first come first served, none lost."""

from __future__ import annotations

import asyncio

from engine.runner.run_context import Slots


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_no_more_places_are_given_than_there_are() -> None:
    slots = Slots(2)

    assert [slots.take_now() for _ in range(3)] == [True, True, False]
    slots.give_back()
    assert slots.take_now()


async def test_who_waits_longest_comes_first() -> None:
    slots = Slots(1)
    slots.take_now()
    order: list[str] = []

    async def work(name: str) -> None:
        await slots.wait()
        order.append(name)
        slots.give_back()

    waiting = [asyncio.create_task(work(name)) for name in "abc"]
    await turn()
    slots.give_back()
    await asyncio.gather(*waiting)

    assert order == ["a", "b", "c"]
    assert slots.take_now()


async def test_who_was_stopped_while_waiting_is_passed_over() -> None:
    slots = Slots(1)
    slots.take_now()
    stopped, waiting = asyncio.create_task(slots.wait()), asyncio.create_task(slots.wait())
    await turn()
    stopped.cancel()
    await turn()

    slots.give_back()
    await waiting

    assert not slots.take_now()


async def test_a_place_given_to_one_who_is_stopped_at_that_moment_goes_to_the_next() -> None:
    slots = Slots(1)
    slots.take_now()
    stopped, waiting = asyncio.create_task(slots.wait()), asyncio.create_task(slots.wait())
    await turn()

    slots.give_back()
    stopped.cancel()
    await asyncio.wait([stopped, waiting])

    assert stopped.cancelled()
    assert waiting.exception() is None
    assert not slots.take_now()
    slots.give_back()
    assert slots.take_now()


async def test_a_place_that_was_taken_although_none_was_free_goes_to_nobody_when_it_is_given_back() -> None:
    slots = Slots(1)
    slots.take_now()
    waiting = asyncio.create_task(slots.wait())
    await turn()

    slots.take_anyway()
    slots.give_back()
    await turn()
    assert not waiting.done()

    slots.give_back()
    await waiting
    assert not slots.take_now()
