"""The event log and its readers: nobody misses an event, and nobody blocks the run."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from engine.events import AnyEvent, NodeSkipped, RunPaused
from engine.runner.event_log import EventLog

PATIENCE_S = 20.0


def ignore(_event: AnyEvent) -> None:
    """Reduce nothing."""


def skip(event_log: EventLog, *paths: str) -> None:
    for path in paths:
        event_log.emit(NodeSkipped, path, "llm", "because")


async def paths_of(event_log: EventLog, most: int | None = None) -> list[str]:
    seen: list[str] = []
    async for event in event_log.read():
        seen.append(event.path)
        if len(seen) == most:
            break
    return seen


def test_events_have_the_run_and_numbers_without_gaps() -> None:
    event_log = EventLog("run1", ignore)

    skip(event_log, "a", "b")
    event_log.emit(RunPaused, "")

    assert [(event.seq, event.run_id, event.path, type(event)) for event in event_log.events] == [
        (0, "run1", "a", NodeSkipped),
        (1, "run1", "b", NodeSkipped),
        (2, "run1", "", RunPaused),
    ]
    assert event_log.events[0].time <= event_log.events[2].time


def test_the_reducer_sees_each_event_at_once() -> None:
    seen: list[AnyEvent] = []
    event_log = EventLog("run1", seen.append)

    event_log.emit(RunPaused, "")
    skip(event_log, "a")

    assert seen == event_log.events


async def test_a_reader_gets_earlier_and_later_events() -> None:
    event_log = EventLog("run1", ignore)
    skip(event_log, "a")
    reader = asyncio.create_task(paths_of(event_log))
    await asyncio.sleep(0)
    skip(event_log, "b", "c")
    await asyncio.sleep(0)
    skip(event_log, "d")
    event_log.close()

    assert await reader == ["a", "b", "c", "d"]
    assert await paths_of(event_log) == ["a", "b", "c", "d"]


async def test_readers_are_independent() -> None:
    event_log = EventLog("run1", ignore)
    readers = [asyncio.create_task(paths_of(event_log)) for _ in range(3)]
    early = asyncio.create_task(paths_of(event_log, most=1))
    stopped = asyncio.create_task(paths_of(event_log))
    await asyncio.sleep(0)
    stopped.cancel()

    skip(event_log, "a", "b")
    event_log.close()

    assert await asyncio.gather(*readers) == [["a", "b"]] * 3
    assert await early == ["a"]


async def test_a_reader_of_a_run_without_events_ends_with_it() -> None:
    event_log = EventLog("run1", ignore)
    reader = asyncio.create_task(paths_of(event_log))
    await asyncio.sleep(0)

    event_log.close()

    assert await reader == []


async def test_a_callback_gets_all_further_events_in_order_in_its_own_thread() -> None:
    event_log = EventLog("run1", ignore)
    seen: list[tuple[str, str]] = []
    skip(event_log, "before")
    event_log.add_callback(lambda event: seen.append((event.path, threading.current_thread().name)))

    skip(event_log, "a", "b", "c")
    event_log.close()
    await event_log.delivered(PATIENCE_S)

    assert [path for path, _ in seen] == ["a", "b", "c"]
    assert {thread for _, thread in seen} == {"loopwright events of run1"}


async def test_a_failing_callback_continues_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    event_log = EventLog("run1", ignore)
    seen: list[str] = []

    def careless(event: AnyEvent) -> None:
        seen.append(event.path)
        raise ZeroDivisionError(event.path)

    with caplog.at_level(logging.ERROR, "loopwright"):
        event_log.add_callback(careless)
        skip(event_log, "a", "b", "c")
        event_log.close()
        await event_log.delivered(PATIENCE_S)

    assert seen == ["a", "b", "c"]
    assert [record.name for record in caplog.records] == ["loopwright"]
    assert "The run continues" in caplog.records[0].message


async def test_a_hanging_callback_blocks_neither_the_run_nor_other_callbacks() -> None:
    event_log = EventLog("run1", ignore)
    go_on, stuck = threading.Event(), threading.Event()
    slow: list[str] = []
    quick: list[str] = []

    def hang(event: AnyEvent) -> None:
        stuck.set()
        go_on.wait(PATIENCE_S)
        slow.append(event.path)

    event_log.add_callback(hang)
    event_log.add_callback(lambda event: quick.append(event.path))
    skip(event_log, "a", "b")
    await asyncio.to_thread(stuck.wait, PATIENCE_S)
    event_log.close()
    await event_log.delivered(0.01)

    assert slow == []
    go_on.set()
    await event_log.delivered(PATIENCE_S)
    assert slow == quick == ["a", "b"]
