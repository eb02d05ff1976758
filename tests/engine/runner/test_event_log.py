"""The log of a run and its readers: nobody misses an event, and nobody holds the run up."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from engine.events import AnyEvent, NodeSkipped, RunPaused
from engine.runner.event_log import EventBus

PATIENCE_S = 20.0


def ignore(_event: AnyEvent) -> None:
    """Reduce nothing."""


def skip(bus: EventBus, *paths: str) -> None:
    for path in paths:
        bus.emit(NodeSkipped, path, "llm", "because")


async def paths_of(bus: EventBus, most: int | None = None) -> list[str]:
    seen: list[str] = []
    async for event in bus.read():
        seen.append(event.path)
        if len(seen) == most:
            break
    return seen


def test_events_are_numbered_without_a_gap_and_carry_the_run() -> None:
    bus = EventBus("run1", ignore)

    skip(bus, "a", "b")
    bus.emit(RunPaused, "")

    assert [(event.seq, event.run_id, event.path, type(event)) for event in bus.log] == [
        (0, "run1", "a", NodeSkipped),
        (1, "run1", "b", NodeSkipped),
        (2, "run1", "", RunPaused),
    ]
    assert bus.log[0].time <= bus.log[2].time


def test_the_reducer_sees_each_event_at_once() -> None:
    seen: list[AnyEvent] = []
    bus = EventBus("run1", seen.append)

    bus.emit(RunPaused, "")
    skip(bus, "a")

    assert seen == bus.log


async def test_a_reader_gets_what_was_before_it_and_what_comes_after() -> None:
    bus = EventBus("run1", ignore)
    skip(bus, "a")
    reader = asyncio.create_task(paths_of(bus))
    await asyncio.sleep(0)
    skip(bus, "b", "c")
    await asyncio.sleep(0)
    skip(bus, "d")
    bus.close()

    assert await reader == ["a", "b", "c", "d"]
    assert await paths_of(bus) == ["a", "b", "c", "d"]


async def test_readers_do_not_get_into_each_others_way() -> None:
    bus = EventBus("run1", ignore)
    readers = [asyncio.create_task(paths_of(bus)) for _ in range(3)]
    early = asyncio.create_task(paths_of(bus, most=1))
    stopped = asyncio.create_task(paths_of(bus))
    await asyncio.sleep(0)
    stopped.cancel()

    skip(bus, "a", "b")
    bus.close()

    assert await asyncio.gather(*readers) == [["a", "b"]] * 3
    assert await early == ["a"]


async def test_a_reader_of_a_run_that_told_nothing_ends_with_it() -> None:
    bus = EventBus("run1", ignore)
    reader = asyncio.create_task(paths_of(bus))
    await asyncio.sleep(0)

    bus.close()

    assert await reader == []


async def test_a_callback_gets_every_further_event_in_order_in_one_thread_of_its_own() -> None:
    bus = EventBus("run1", ignore)
    seen: list[tuple[str, str]] = []
    skip(bus, "before")
    bus.add_callback(lambda event: seen.append((event.path, threading.current_thread().name)))

    skip(bus, "a", "b", "c")
    bus.close()
    await bus.delivered(PATIENCE_S)

    assert [path for path, _ in seen] == ["a", "b", "c"]
    assert {thread for _, thread in seen} == {"loopwright events of run1"}


async def test_a_callback_that_raises_goes_on_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    bus = EventBus("run1", ignore)
    seen: list[str] = []

    def careless(event: AnyEvent) -> None:
        seen.append(event.path)
        raise ZeroDivisionError(event.path)

    with caplog.at_level(logging.ERROR, "loopwright"):
        bus.add_callback(careless)
        skip(bus, "a", "b", "c")
        bus.close()
        await bus.delivered(PATIENCE_S)

    assert seen == ["a", "b", "c"]
    assert [record.name for record in caplog.records] == ["loopwright"]
    assert "the run goes on" in caplog.records[0].message


async def test_a_callback_that_hangs_holds_up_neither_the_run_nor_another_callback() -> None:
    bus = EventBus("run1", ignore)
    go_on, stuck = threading.Event(), threading.Event()
    slow: list[str] = []
    quick: list[str] = []

    def hang(event: AnyEvent) -> None:
        stuck.set()
        go_on.wait(PATIENCE_S)
        slow.append(event.path)

    bus.add_callback(hang)
    bus.add_callback(lambda event: quick.append(event.path))
    skip(bus, "a", "b")
    await asyncio.to_thread(stuck.wait, PATIENCE_S)
    bus.close()
    await bus.delivered(0.01)

    assert slow == []
    go_on.set()
    await bus.delivered(PATIENCE_S)
    assert slow == quick == ["a", "b"]
