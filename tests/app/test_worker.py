from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.worker import Worker, wait_for_workers
from engine.errors import EngineError


@pytest.fixture
def owner(qapp: object) -> QObject:
    return QObject()


def test_tasks_run_in_order_in_another_thread_with_callbacks_in_this_one(owner: QObject, qtbot: QtBot) -> None:
    worker, here = Worker(owner), threading.current_thread()
    answers: list[tuple[int, bool, bool]] = []

    for number in range(20):
        worker.ask(
            lambda number=number: (number, threading.current_thread() is here),
            lambda found: answers.append((*found, threading.current_thread() is here)),
        )
    assert worker.is_busy
    assert answers == []

    qtbot.waitUntil(lambda: not worker.is_busy)
    assert answers == [(number, False, True) for number in range(20)]


def test_error_is_passed_to_the_callback(owner: QObject, qtbot: QtBot) -> None:
    worker = Worker(owner)
    reported: list[str] = []

    def fail() -> None:
        raise EngineError("No.", "Mend it.")

    worker.ask(fail, lambda _: reported.append("done"), lambda error: reported.append(str(error)))
    worker.ask(lambda: "next", reported.append)

    qtbot.waitUntil(lambda: not worker.is_busy)
    assert reported == ["No. Mend it.", "next"]


def test_bug_is_raised_in_the_windows_thread(owner: QObject, qtbot: QtBot) -> None:
    worker = Worker(owner)

    def fault() -> None:
        raise ZeroDivisionError

    with qtbot.captureExceptions() as caught:
        worker.ask(fault)
        qtbot.waitUntil(lambda: bool(caught))

    assert caught[0][0] is ZeroDivisionError
    assert not worker.is_busy


def test_answers_to_superseded_tasks_are_ignored(owner: QObject, qtbot: QtBot) -> None:
    worker, may_go_on = Worker(owner), threading.Event()
    answers: list[object] = []

    def fail() -> None:
        raise EngineError("No.")

    is_superseded = worker.supersede()
    worker.ask(may_go_on.wait, answers.append)
    worker.ask(fail, answers.append, answers.append)
    assert not is_superseded()
    worker.supersede()
    assert is_superseded()
    worker.ask(lambda: "latest", answers.append)
    may_go_on.set()

    qtbot.waitUntil(lambda: not worker.is_busy)
    assert answers == ["latest"]


def test_task_of_a_deleted_owner_is_done_without_a_callback(owner: QObject, qtbot: QtBot) -> None:
    worker, may_go_on = Worker(owner), threading.Event()
    done: list[str] = []
    worker.ask(may_go_on.wait)
    worker.ask(lambda: done.append("work"), lambda _: done.append("answer"))

    with qtbot.waitSignal(owner.destroyed):
        owner.deleteLater()
    may_go_on.set()
    wait_for_workers(5)

    assert done == ["work"]
