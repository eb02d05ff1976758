from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document import files
from engine.document.files import load
from engine.document.operations import SetText
from engine.run_state.state import NodeState
from tests.app.window.conftest import Answers, Script, answer, drafted, open_file, press, question, saved

CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def running(workbench: Workbench, self_refine: DocumentPage, script: Script, qtbot: QtBot) -> DocumentPage:
    """A document whose run waits for its model."""
    script({"text": "words", "delay_s": 600})
    start(workbench, self_refine, qtbot)
    return self_refine


def start(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: document.session.shown.view_model.node("draft").state is NodeState.RUNNING)


@contextmanager
def held(workbench: Workbench) -> Iterator[None]:
    """Runs make no progress meanwhile, however slow this computer is."""
    may_go_on = threading.Event()
    workbench.engine.call(lambda: may_go_on.wait(10))
    try:
        yield
    finally:
        may_go_on.set()


def test_closing_a_running_tab_asks_and_cancel_keeps_it(workbench: Workbench, running: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    assert question(workbench.window).text() == "“Self-Refine” is still running."
    answer(workbench.window, "Cancel")

    assert running in workbench.documents.all
    assert running.session.shown.live is not None


def test_closing_a_running_tab_can_stop_the_run(workbench: Workbench, running: DocumentPage, qtbot: QtBot) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    answer(workbench.window, "Stop")

    assert workbench.documents.all == []
    qtbot.waitUntil(lambda: workbench.closing.background == [])


def test_run_continues_in_the_background_and_notifies_of_its_end(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench.window, "isActiveWindow", lambda: False)

    with held(workbench):
        QTest.keyClick(workbench.window, Qt.Key.Key_F5)
        QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
        answer(workbench.window, "Run in background")
        assert workbench.documents.all == []
        assert workbench.closing.background == [self_refine]

    qtbot.waitUntil(lambda: workbench.closing.background == [])
    assert workbench.notifier.last_text.startswith("“Self-Refine” is done after")


def test_closing_a_running_tab_also_asks_about_unsaved_changes(
    workbench: Workbench, running: DocumentPage, qtbot: QtBot
) -> None:
    running.session.do(SetText("description", "new"))

    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    answer(workbench.window, "Stop")
    answer(workbench.window, "Don't save")

    assert workbench.documents.all == []
    qtbot.waitUntil(lambda: workbench.closing.background == [])


def test_closing_a_running_window_asks_and_cancel_keeps_it(workbench: Workbench, running: DocumentPage) -> None:
    workbench.window.close()
    answer(workbench.window, "Cancel")

    assert workbench.window.isVisible()
    assert running.session.shown.live is not None


def test_closing_a_running_window_can_stop_the_run(workbench: Workbench, running: DocumentPage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(workbench.finished):
        workbench.window.close()
        answer(workbench.window, "Stop")

    assert not workbench.window.isVisible()


def test_program_ends_after_the_last_background_run(
    workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(workbench.finished), held(workbench):
        QTest.keyClick(workbench.window, Qt.Key.Key_F5)
        workbench.window.close()
        answer(workbench.window, "Run in background")
        assert not workbench.window.isVisible()
        assert workbench.closing.background == [self_refine]

    assert workbench.notifier.last_text.startswith("“Self-Refine” is done")


def test_background_run_that_is_not_stored_is_cancelled_at_a_question(workbench: Workbench, qtbot: QtBot) -> None:
    document = workbench.documents.open_copy(drafted())
    workbench.runs.step_node(document)
    qtbot.waitUntil(lambda: document.session.shown.view_model.node("text").state is NodeState.COMPLETED)

    with qtbot.waitSignal(workbench.finished):
        workbench.window.close()
        answer(workbench.window, "Run in background")


def test_paused_run_continues_in_the_background(workbench: Workbench, self_refine: DocumentPage, qtbot: QtBot) -> None:
    workbench.runs.step_node(self_refine)
    qtbot.waitUntil(lambda: self_refine.session.shown.view_model.status == "paused")

    with qtbot.waitSignal(self_refine.session.shown.ended):
        workbench.closing.close_document(self_refine)
        answer(workbench.window, "Run in background")
    assert self_refine.session.shown.view_model.status == "completed"


def test_unsaved_changes_and_a_run_are_two_questions(workbench: Workbench, running: DocumentPage) -> None:
    running.session.do(SetText("description", "new"))

    workbench.window.close()
    answer(workbench.window, "Don't save")
    answer(workbench.window, "Cancel")

    assert workbench.window.isVisible()
    assert running in workbench.documents.all
    workbench.window.close()
    assert question(workbench.window).text().startswith("Save the changes")
    answer(workbench.window, "Cancel")


class Disk:
    """A disk that responds only when released, and may be full."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.is_full = False

    def fsync(self, _descriptor: int) -> None:
        assert self.may_go_on.wait(10)
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    slow = Disk()
    monkeypatch.setattr(files.os, "fsync", slow.fsync)
    yield slow
    slow.may_go_on.set()


@pytest.fixture
def changed(workbench: Workbench, tmp_path: Path, disk: Disk) -> DocumentPage:
    """A document with unsaved changes whose disk does not respond."""
    disk.may_go_on.set()
    document = open_file(workbench, saved(tmp_path))
    disk.may_go_on.clear()
    document.session.do(SetText("description", "first"))
    return document


@pytest.fixture
def being_saved(workbench: Workbench, changed: DocumentPage) -> DocumentPage:
    """A document that is being saved to a disk that does not respond."""
    QTest.keyClick(workbench.window, Qt.Key.Key_S, CONTROL)
    assert changed.session.is_saving
    return changed


def test_saving_is_shown_and_the_window_stays_responsive(
    workbench: Workbench, being_saved: DocumentPage, disk: Disk, qtbot: QtBot
) -> None:
    assert workbench.run_bar.saved.text() == "saving…"
    disk.may_go_on.set()

    qtbot.waitUntil(lambda: workbench.run_bar.saved.text() == "saved")
    qtbot.waitUntil(lambda: not being_saved.watch._worker.is_busy)
    assert being_saved.bars.text("disk") == "", "our own save is no change by another program"


def test_tab_that_is_being_saved_closes_afterwards(
    workbench: Workbench, being_saved: DocumentPage, disk: Disk, tmp_path: Path, qtbot: QtBot
) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    assert being_saved in workbench.documents.all
    disk.may_go_on.set()

    qtbot.waitUntil(lambda: workbench.documents.all == [])
    assert load(tmp_path / "one.loop.json").description == "first"


def test_tab_that_could_not_be_saved_stays_and_asks(
    workbench: Workbench, being_saved: DocumentPage, disk: Disk, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    disk.is_full = True
    disk.may_go_on.set()

    qtbot.waitUntil(lambda: not being_saved.session.is_saving)
    assert "no space left on device" in being_saved.bars.text("save")
    answer(workbench.window, "Cancel")
    disk.is_full = False
    answers.to_save = tmp_path / "elsewhere.loop.json"
    press(being_saved.bars, "Save as…")

    qtbot.waitUntil(lambda: being_saved.session.path == answers.to_save)
    assert being_saved.bars.text("save") == ""
    assert load(answers.to_save).description == "first"


def test_window_closes_after_a_save_in_progress(
    workbench: Workbench, being_saved: DocumentPage, disk: Disk, tmp_path: Path, qtbot: QtBot
) -> None:
    workbench.window.close()
    assert workbench.window.isVisible()

    with qtbot.waitSignal(workbench.finished):
        disk.may_go_on.set()
    assert not workbench.window.isVisible()
    assert load(tmp_path / "one.loop.json").description == "first"


def test_window_can_be_closed_while_the_disk_does_not_respond(
    workbench: Workbench, being_saved: DocumentPage, disk: Disk, qtbot: QtBot
) -> None:
    workbench.window.close()
    workbench.window.close()
    assert question(workbench.window).text() == "“Small” is still being saved."
    answer(workbench.window, "Wait")
    assert workbench.window.isVisible()
    workbench.window.close()
    answer(workbench.window, "Close anyway")

    assert not workbench.window.isVisible()


def test_window_kept_open_stays_after_saving(
    workbench: Workbench, being_saved: DocumentPage, disk: Disk, qtbot: QtBot
) -> None:
    workbench.window.close()
    workbench.window.close()
    answer(workbench.window, "Keep open")
    disk.may_go_on.set()

    qtbot.waitUntil(lambda: not being_saved.session.is_saving)
    assert workbench.window.isVisible()
    assert being_saved in workbench.documents.all


def test_question_closes_when_the_file_is_saved(
    workbench: Workbench, being_saved: DocumentPage, disk: Disk, qtbot: QtBot
) -> None:
    workbench.window.close()
    workbench.window.close()
    question(workbench.window)

    with qtbot.waitSignal(workbench.finished):
        disk.may_go_on.set()
    assert [box for box in workbench.window.findChildren(QMessageBox) if box.isVisible()] == []
    assert not workbench.window.isVisible()


def test_changes_while_a_closing_tab_is_saved_are_asked_about(
    workbench: Workbench, changed: DocumentPage, disk: Disk, tmp_path: Path, qtbot: QtBot
) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    answer(workbench.window, "Save")
    changed.session.do(SetText("description", "second"))
    disk.may_go_on.set()
    qtbot.waitUntil(lambda: not changed.session.is_saving)

    assert load(tmp_path / "one.loop.json").description == "first"
    assert question(workbench.window).text() == "Save the changes to “Small”?"
    answer(workbench.window, "Save")
    qtbot.waitUntil(lambda: workbench.documents.all == [])
    assert load(tmp_path / "one.loop.json").description == "second"


def test_changes_while_a_closing_window_saves_are_asked_about(
    workbench: Workbench, changed: DocumentPage, disk: Disk, tmp_path: Path, qtbot: QtBot
) -> None:
    workbench.window.close()
    answer(workbench.window, "Save")
    changed.session.do(SetText("description", "second"))
    disk.may_go_on.set()
    qtbot.waitUntil(lambda: not changed.session.is_saving)

    assert workbench.window.isVisible()
    with qtbot.waitSignal(workbench.finished):
        answer(workbench.window, "Save")
    assert load(tmp_path / "one.loop.json").description == "second"


def test_save_during_save_as_goes_to_the_new_file(
    workbench: Workbench, changed: DocumentPage, disk: Disk, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    answers.to_save = tmp_path / "other.loop.json"
    workbench.documents.files.save_as(changed)
    changed.session.do(SetText("description", "second"))
    QTest.keyClick(workbench.window, Qt.Key.Key_S, CONTROL)
    disk.may_go_on.set()
    qtbot.waitUntil(lambda: not changed.session.is_saving)

    assert changed.session.path == answers.to_save
    assert load(answers.to_save).description == "second"
    assert load(tmp_path / "one.loop.json").description == ""
