from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.runs.picture import NodeState
from app.window.document import Document
from app.window.main_window import MainWindow
from engine.document.operations import SetDescription
from tests.app.window.conftest import Script, answer, question

CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def running(window: MainWindow, self_refine: Document, script: Script, qtbot: QtBot) -> Document:
    """A document whose run waits for its model."""
    script({"text": "words", "delay_s": 600})
    start(window, self_refine, qtbot)
    return self_refine


def start(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    QTest.keyClick(window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: document.session.picture.node("draft").state is NodeState.RUNNING)


def test_a_tab_with_a_run_asks_and_stays_on_cancel(window: MainWindow, running: Document) -> None:
    QTest.keyClick(window, Qt.Key.Key_W, CONTROL)
    assert question(window).text() == "“Self-Refine” is still running."
    answer(window, "Cancel")

    assert running in window.documents.all
    assert running.session.run is not None


def test_a_tab_with_a_run_stops_and_closes(window: MainWindow, running: Document, qtbot: QtBot) -> None:
    QTest.keyClick(window, Qt.Key.Key_W, CONTROL)
    answer(window, "Stop")

    assert window.documents.all == []
    qtbot.waitUntil(lambda: window.closing.background == [], timeout=2000)


def test_a_run_goes_on_in_the_background_and_its_end_is_told(
    window: MainWindow, self_refine: Document, script: Script, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "isActiveWindow", lambda: False)
    script({"text": "words", "delay_s": 0.2})
    start(window, self_refine, qtbot)

    QTest.keyClick(window, Qt.Key.Key_W, CONTROL)
    answer(window, "Let it finish")
    assert window.documents.all == []
    assert window.closing.background == [self_refine]

    qtbot.waitUntil(lambda: window.closing.background == [], timeout=5000)
    assert window.notifier.told.startswith("“Self-Refine” is done after")


def test_unsaved_work_of_a_tab_with_a_run_is_asked_about_too(
    window: MainWindow, running: Document, qtbot: QtBot
) -> None:
    running.session.do(SetDescription("new"))

    QTest.keyClick(window, Qt.Key.Key_W, CONTROL)
    answer(window, "Stop")
    answer(window, "Don't save")

    assert window.documents.all == []
    qtbot.waitUntil(lambda: window.closing.background == [], timeout=2000)


def test_the_window_with_a_run_asks_and_stays_on_cancel(window: MainWindow, running: Document) -> None:
    window.close()
    answer(window, "Cancel")

    assert window.isVisible()
    assert running.session.run is not None


def test_the_window_with_a_run_stops_it_and_ends(window: MainWindow, running: Document, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window.finished, timeout=2000):
        window.close()
        answer(window, "Stop")

    assert not window.isVisible()


def test_the_window_is_gone_while_a_run_goes_on_and_then_the_program_ends(
    window: MainWindow, self_refine: Document, script: Script, qtbot: QtBot
) -> None:
    script({"text": "words", "delay_s": 0.2})
    start(window, self_refine, qtbot)

    with qtbot.waitSignal(window.finished, timeout=5000):
        window.close()
        answer(window, "Let it finish")
        assert not window.isVisible()
        assert window.closing.background == [self_refine]

    assert window.notifier.told.startswith("“Self-Refine” is done")


def test_unsaved_work_and_a_run_are_two_questions_and_the_second_can_still_be_cancelled(
    window: MainWindow, running: Document
) -> None:
    running.session.do(SetDescription("new"))

    window.close()
    answer(window, "Don't save")
    answer(window, "Cancel")

    assert window.isVisible()
    assert running in window.documents.all
    window.close()
    assert question(window).text().startswith("Save the changes")
    answer(window, "Cancel")
