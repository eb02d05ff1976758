"""Calls deferred to the event loop."""

from __future__ import annotations

import gc
import weakref

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer
from pytestqt.qtbot import QtBot

from app.timers import call_between_frames, call_later


def test_function_is_called_once_from_the_event_loop(qtbot: QtBot) -> None:
    owner, calls = QObject(), list[str]()
    call_later(owner, lambda: calls.append("second"), 1)
    call_later(owner, lambda: calls.append("first"))
    assert calls == []
    qtbot.waitUntil(lambda: owner.findChildren(QTimer) == [])
    assert calls == ["first", "second"]


def test_function_of_a_deleted_owner_is_freed_and_not_called(qtbot: QtBot) -> None:
    owner, calls = QObject(), list[object]()

    def schedule() -> weakref.ref[QObject]:
        wanted = QObject()
        call_later(owner, lambda: calls.append(wanted))
        return weakref.ref(wanted)

    freed = schedule()
    owner.deleteLater()
    QCoreApplication.sendPostedEvents(owner, QEvent.Type.DeferredDelete)
    gc.collect()
    assert freed() is None

    owner, later = QObject(), list[str]()
    call_later(owner, lambda: later.append("later"))
    qtbot.waitUntil(lambda: later == ["later"])
    assert calls == []


def test_function_that_fails_is_not_called_again(qtbot: QtBot) -> None:
    owner = QObject()

    def fail() -> None:
        raise ValueError("wrong")

    with qtbot.captureExceptions() as errors:
        call_later(owner, fail)
        qtbot.waitUntil(lambda: owner.findChildren(QTimer) == [])
    assert [kind for kind, _error, _where in errors] == [ValueError]


def test_functions_are_called_with_other_events_between_them(qtbot: QtBot) -> None:
    owner, calls = QObject(), list[str]()
    ticks = QTimer(owner, interval=0)
    ticks.timeout.connect(lambda: calls.append("event"))
    ticks.start()
    call_between_frames(owner, lambda: calls.append("first"), lambda: calls.append("second"))
    assert calls == []
    qtbot.waitUntil(lambda: "second" in calls)
    first, second = calls.index("first"), calls.index("second")
    assert "event" in calls[:first]
    assert "event" in calls[first:second]


def test_no_function_is_called_after_its_owner_is_deleted(qtbot: QtBot) -> None:
    owner, calls = QObject(), list[str]()
    call_between_frames(owner, lambda: calls.append("first"), owner.deleteLater, lambda: calls.append("third"))
    with qtbot.waitSignal(owner.destroyed):
        pass
    later = QObject()
    call_between_frames(later, lambda: calls.append("later"))
    qtbot.waitUntil(lambda: "later" in calls)
    assert calls == ["first", "later"]
