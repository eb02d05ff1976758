"""Calls into the engine thread return to the window's thread, always asynchronously."""

from __future__ import annotations

import threading

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.settings.settings_widgets import run_in_engine
from engine.errors import EngineError


def test_callback_never_runs_before_the_call_returns(engine_thread: EngineThread, qtbot: QtBot) -> None:
    owner = QObject()
    reported: list[object] = []

    async def answer() -> threading.Thread:
        return threading.current_thread()

    async def fail() -> None:
        raise EngineError("no")

    for _ in range(60):
        future = run_in_engine(owner, engine_thread, answer(), reported.append, reported.append)
        while not future.done():
            threading.Event().wait(0)
        assert reported == []
        qtbot.waitUntil(lambda: len(reported) == 1)
        assert reported.pop() is not threading.current_thread()
    run_in_engine(owner, engine_thread, fail(), reported.append, lambda error: reported.append(str(error)))
    qtbot.waitUntil(lambda: reported == ["no"])
    owner.deleteLater()


def test_callback_runs_in_the_window_thread(engine_thread: EngineThread, qtbot: QtBot) -> None:
    owner = QObject()
    where: list[threading.Thread] = []

    async def work() -> None:
        return None

    run_in_engine(owner, engine_thread, work(), lambda _: where.append(threading.current_thread()), where.append)
    qtbot.waitUntil(lambda: bool(where))
    assert where == [threading.current_thread()]
    owner.deleteLater()
