from __future__ import annotations

import asyncio
import threading

import pytest

from app import engine_thread
from app.engine_thread import EngineThread
from engine.runner import event_loop


def test_stop_abandons_a_tool_that_does_not_react(qapp: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_thread, "ENDS_WITHIN_S", 0.1)
    monkeypatch.setattr(event_loop, "TOOL_GRACE_S", 0.1)
    before = set(threading.enumerate())
    has_begun, answers = threading.Event(), threading.Event()

    def wait_for_the_disk() -> None:
        has_begun.set()
        answers.wait(10)

    engine = EngineThread()
    asked = engine.submit(asyncio.to_thread(wait_for_the_disk))
    assert has_begun.wait(5)
    engine.stop()
    assert asked.cancelled()
    assert "loopwright engine" not in {thread.name for thread in threading.enumerate() if thread not in before}
    answers.set()


def test_stop_waits_for_tasks_that_end_soon(qapp: object) -> None:
    done: list[str] = []
    has_begun, may_end = threading.Event(), threading.Event()

    def write() -> None:
        has_begun.set()
        may_end.wait(5)
        done.append("written")

    engine = EngineThread()
    engine.submit(asyncio.to_thread(write))
    assert has_begun.wait(5)
    engine.call(may_end.set)
    engine.stop()
    engine.stop()
    assert done == ["written"]
