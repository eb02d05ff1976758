"""The concurrency limit: never exceeded, first come, first served, no slot lost."""

from __future__ import annotations

import asyncio

from engine.runner.run_scope import ConcurrencyLimiter


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_no_more_slots_are_acquired_than_the_limit() -> None:
    limiter = ConcurrencyLimiter(2)

    assert [limiter.try_acquire() for _ in range(3)] == [True, True, False]
    limiter.release()
    assert limiter.try_acquire()


async def test_slots_are_acquired_in_order_of_waiting() -> None:
    limiter = ConcurrencyLimiter(1)
    limiter.try_acquire()
    order: list[str] = []

    async def work(name: str) -> None:
        await limiter.acquire()
        order.append(name)
        limiter.release()

    waiting = [asyncio.create_task(work(name)) for name in "abc"]
    await turn()
    limiter.release()
    await asyncio.gather(*waiting)

    assert order == ["a", "b", "c"]
    assert limiter.try_acquire()


async def test_a_cancelled_waiter_is_passed_over() -> None:
    limiter = ConcurrencyLimiter(1)
    limiter.try_acquire()
    stopped, waiting = asyncio.create_task(limiter.acquire()), asyncio.create_task(limiter.acquire())
    await turn()
    stopped.cancel()
    await turn()

    limiter.release()
    await waiting

    assert not limiter.try_acquire()


async def test_a_slot_of_a_waiter_cancelled_at_that_moment_goes_to_the_next() -> None:
    limiter = ConcurrencyLimiter(1)
    limiter.try_acquire()
    stopped, waiting = asyncio.create_task(limiter.acquire()), asyncio.create_task(limiter.acquire())
    await turn()

    limiter.release()
    stopped.cancel()
    await asyncio.wait([stopped, waiting])

    assert stopped.cancelled()
    assert waiting.exception() is None
    assert not limiter.try_acquire()
    limiter.release()
    assert limiter.try_acquire()


async def test_a_slot_acquired_over_the_limit_goes_to_nobody_on_release() -> None:
    limiter = ConcurrencyLimiter(1)
    limiter.try_acquire()
    waiting = asyncio.create_task(limiter.acquire())
    await turn()

    limiter.force_acquire()
    limiter.release()
    await turn()
    assert not waiting.done()

    limiter.release()
    await waiting
    assert not limiter.try_acquire()
