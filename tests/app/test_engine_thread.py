from __future__ import annotations

import asyncio
import threading

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app import engine_thread
from app.engine_thread import EngineThread
from engine.errors import EngineError
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


def test_callback_never_runs_before_the_call_returns(engine_thread: EngineThread, qtbot: QtBot) -> None:
    owner = QObject()
    reported: list[object] = []

    async def answer() -> threading.Thread:
        return threading.current_thread()

    async def fail() -> None:
        raise EngineError("no")

    for _ in range(60):
        future = engine_thread.ask(owner, answer(), reported.append, reported.append)
        while not future.done():
            threading.Event().wait(0)
        assert reported == []
        qtbot.waitUntil(lambda: len(reported) == 1)
        assert reported.pop() is not threading.current_thread()
    engine_thread.ask(owner, fail(), reported.append, lambda error: reported.append(str(error)))
    qtbot.waitUntil(lambda: reported == ["no"])
    owner.deleteLater()


def test_callback_runs_in_the_window_thread(engine_thread: EngineThread, qtbot: QtBot) -> None:
    owner = QObject()
    where: list[threading.Thread] = []

    async def work() -> None:
        return None

    engine_thread.ask(owner, work(), lambda _: where.append(threading.current_thread()), where.append)
    qtbot.waitUntil(lambda: bool(where))
    assert where == [threading.current_thread()]
    owner.deleteLater()


def test_nothing_is_called_back_after_the_owner_was_deleted(engine_thread: EngineThread, qtbot: QtBot) -> None:
    owner, other = QObject(), QObject()
    reported: list[str] = []

    async def answer(text: str) -> str:
        return text

    with qtbot.waitSignal(owner.destroyed):
        owner.deleteLater()
    engine_thread.ask(owner, answer("lost"), reported.append, print)
    engine_thread.ask(other, answer("next"), reported.append, print)
    qtbot.waitUntil(lambda: bool(reported))
    assert reported == ["next"]
    other.deleteLater()
