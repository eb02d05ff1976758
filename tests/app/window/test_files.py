from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app import document_file, session
from app.controllers import command_controller, document_controller
from app.document_file import FileFingerprint
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.window.main_window import open_files
from app.workbench import Workbench
from engine import export_langgraph, export_python
from engine.document import files
from engine.document.builder import Builder
from engine.document.files import load, save
from engine.document.model import Workflow
from engine.document.operations import RemoveNodes, SetText, SetTitle
from engine.nodes.node_registry import Registry
from engine.plan.structure import Structure, analyse
from tests.app.drag_and_drop import drag_and_drop
from tests.app.window.conftest import (
    SELF_REFINE,
    Answers,
    MakeWindow,
    answer,
    await_files,
    open_file,
    press,
    question,
    saved,
    small,
)
from tests.wording import mentions

CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


def change(document: DocumentPage, text: str = "Something else.") -> None:
    assert document.session.do(SetText("description", text))


def save_by_key(workbench: Workbench, qtbot: QtBot) -> None:
    """Press Ctrl+S and wait until the document is saved."""
    assert workbench.current is not None
    QTest.keyClick(workbench.window, Qt.Key.Key_S, CONTROL)
    over(workbench.current, qtbot)


def over(document: DocumentPage, qtbot: QtBot) -> None:
    """Wait until nothing is being saved."""
    qtbot.waitUntil(lambda: not document.session.is_saving)


def titles(workbench: Workbench) -> list[str]:
    return [workbench.tabs.tabText(place) for place in range(workbench.tabs.count())]


def test_start_page_is_shown_first(workbench: Workbench) -> None:
    assert titles(workbench) == ["Start"]
    assert workbench.current is None
    assert not workbench.run_bar.run.isEnabled()


def test_template_opens_as_a_copy_without_a_file(workbench: Workbench) -> None:
    before = SELF_REFINE.read_bytes()
    workbench.gallery.template_chosen.emit(SELF_REFINE)

    assert titles(workbench) == ["Self-Refine"]
    assert workbench.current is not None
    assert workbench.current.session.path is None
    change(workbench.current)
    assert titles(workbench) == ["Self-Refine •"]
    assert SELF_REFINE.read_bytes() == before


def test_saving_a_new_document_asks_where_and_adds_the_suffix(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_N, CONTROL)
    document = workbench.current
    assert document is not None
    change(document)
    answers.to_save = tmp_path / "mine"

    save_by_key(workbench, qtbot)

    assert answers.suggested == Path.home() / "untitled.loop.json"
    assert document.session.path == tmp_path / "mine.loop.json"
    assert load(tmp_path / "mine.loop.json").description == "Something else."
    assert not document.session.is_modified
    assert workbench.run_bar.saved.text() == "saved"


def test_document_is_saved_dropped_and_named_with_the_single_suffix(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    document = workbench.documents.new()
    change(document)
    answers.to_save = tmp_path / "v1.2.loopwright"
    workbench.documents.files.save_as(document)
    over(document, qtbot)
    assert document.session.path == tmp_path / "v1.2.loopwright"
    workbench.documents.close(document)

    workbench.open_dropped([tmp_path / "v1.2.loopwright"])
    await_files(workbench)

    (opened,) = workbench.documents.all
    assert opened.session.name == "v1.2"
    assert opened.session.workflow.description == "Something else."


def test_open_shortcut_opens_several_files(workbench: Workbench, answers: Answers, tmp_path: Path) -> None:
    answers.to_open = [saved(tmp_path, "one.loop.json"), saved(tmp_path, "two.loop.json")]

    QTest.keyClick(workbench.window, Qt.Key.Key_O, CONTROL)
    await_files(workbench)

    assert len(workbench.documents.all) == 2
    assert workbench.current is workbench.documents.all[1]


def test_open_file_is_shown_and_not_opened_twice(workbench: Workbench, tmp_path: Path) -> None:
    path = saved(tmp_path)
    first = open_file(workbench, path)
    workbench.documents.new()

    assert open_file(workbench, path) is first
    assert workbench.current is first
    assert len(workbench.documents.all) == 2


def test_recent_files_are_offered_and_forgotten_when_deleted(
    workbench: Workbench, preferences: Preferences, tmp_path: Path
) -> None:
    path = saved(tmp_path, "a & b.loop.json")
    workbench.closing.close_document(open_file(workbench, path))
    (action,) = workbench.menus.recent.actions()
    assert action.text() == "a && b.loop.json"
    action.trigger()
    await_files(workbench)
    assert workbench.current is not None
    workbench.closing.close_document(workbench.current)

    path.unlink()
    workbench.gallery.recent_chosen.emit(path)
    await_files(workbench)

    assert question(workbench.window).text() == "“a & b.loop.json” cannot be opened."
    assert "there is no such file" in question(workbench.window).informativeText()
    assert preferences.recent_files == ()
    assert not workbench.menus.recent.isEnabled()


def test_file_name_is_not_rendered_as_markup(workbench: Workbench, tmp_path: Path) -> None:
    open_file(workbench, saved(tmp_path, "<b>one<.loop.json"))

    for tip in (workbench.tabs.tabToolTip(0), workbench.menus.recent.actions()[0].toolTip()):
        assert "&lt;b&gt;one&lt;" in tip


class SlowDisk:
    """A disk that is read only when released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_go_on = threading.Event()

        def load_slowly(path: Path) -> Workflow:
            assert self.may_go_on.wait(5)
            return load(path)

        monkeypatch.setattr(document_controller, "load", load_slowly)


def test_slow_disk_does_not_block_opening(
    workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    path = saved(tmp_path)

    workbench.documents.open_files([path, path])
    QTest.keyClick(workbench.window, Qt.Key.Key_N, CONTROL)
    assert titles(workbench) == ["Untitled"]
    assert open_files(workbench.preferences, workbench.documents.data_folder) == [path], (
        "opened again after a crash too"
    )

    disk.may_go_on.set()
    await_files(workbench)
    assert titles(workbench) == ["Untitled", "Small"]
    assert open_files(workbench.preferences, workbench.documents.data_folder) == [path]


@pytest.fixture
def analysed_in(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which large documents were analyzed."""
    threads: list[threading.Thread] = []

    def analyse_and_note(workflow: Workflow, registry: Registry) -> Structure:
        if len(workflow.nodes) > session.MAX_NODES_AT_ONCE:
            threads.append(threading.current_thread())
        return analyse(workflow, registry)

    monkeypatch.setattr(session, "analyse", analyse_and_note)
    return threads


def many_inputs() -> Workflow:
    flow = Builder("Many")
    for _ in range(session.MAX_NODES_AT_ONCE + 1):
        flow.add("input", default="x")
    return flow.build()


def test_large_document_is_analyzed_in_a_thread(
    workbench: Workbench, tmp_path: Path, analysed_in: list[threading.Thread]
) -> None:
    document = open_file(workbench, saved(tmp_path, "many.loop.json", many_inputs()))

    assert document.session.workflow.layout == {}
    assert document.session.structure.workflow is document.session.workflow
    assert len(document.canvas.view.nodes) == session.MAX_NODES_AT_ONCE + 1
    assert len(analysed_in) == 1
    assert analysed_in[0] is not threading.main_thread()


def test_copy_of_a_large_document_is_analyzed_in_a_thread(
    workbench: Workbench, analysed_in: list[threading.Thread], qtbot: QtBot
) -> None:
    places = {node.id: {"x": 0, "y": 120 * row} for row, node in enumerate(many_inputs().nodes)}
    document = workbench.documents.open_copy(many_inputs().model_copy(update={"layout": {"nodes": places}}))
    qtbot.waitUntil(lambda: document.session.structure.workflow is document.session.workflow)
    assert len(analysed_in) == 1
    assert analysed_in[0] is not threading.main_thread()


def test_slow_disk_does_not_block_reverting(
    workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = open_file(workbench, saved(tmp_path))
    change(document)
    disk = SlowDisk(monkeypatch)

    workbench.documents.files.revert(document)
    assert document.session.workflow.description == "Something else."
    workbench.documents.drop(document)
    disk.may_go_on.set()
    await_files(workbench)

    assert titles(workbench) == ["Start"]


def test_files_that_cannot_be_read_are_reported_in_one_dialog(workbench: Workbench, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("broken.loop.json", "<b>gone.loop.json")]
    paths[0].write_text("{")

    drop(workbench, *paths, saved(tmp_path, "good.loop.json"))
    await_files(workbench)

    box = question(workbench.window)
    assert box.text() == "“broken.loop.json”, “<b>gone.loop.json” cannot be opened."
    assert box.textFormat() is Qt.TextFormat.PlainText
    assert [path.name in box.informativeText() for path in paths] == [True, True]
    assert titles(workbench) == ["Small"]
    answer(workbench.window, "Close")


def test_save_as_leaves_the_old_file_unchanged(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    path = saved(tmp_path)
    document = open_file(workbench, path)
    change(document)
    answers.to_save = tmp_path / "other.loop.json"

    QTest.keyClick(workbench.window, Qt.Key.Key_S, CONTROL | SHIFT)
    over(document, qtbot)

    assert load(path).description == ""
    assert load(answers.to_save).description == "Something else."
    assert document.session.path == answers.to_save


def test_save_as_refuses_a_file_open_in_another_tab(workbench: Workbench, answers: Answers, tmp_path: Path) -> None:
    first = open_file(workbench, saved(tmp_path, "one.loop.json"))
    second = open_file(workbench, saved(tmp_path, "two.loop.json"))
    answers.to_save = first.session.path

    workbench.documents.files.save_as(second)

    assert "open in another tab" in workbench.status_bar.refusal.full_text
    assert second.session.path == tmp_path / "two.loop.json"


def test_save_as_refuses_another_path_of_a_file_open_in_a_tab(
    workbench: Workbench, answers: Answers, tmp_path: Path
) -> None:
    first = open_file(workbench, saved(tmp_path, "one.loop.json"))
    second = open_file(workbench, saved(tmp_path, "two.loop.json"))
    assert first.session.path is not None
    answers.to_save = tmp_path / "link.loop.json"
    answers.to_save.symlink_to(first.session.path)

    workbench.documents.files.save_as(second)

    assert "open in another tab" in workbench.status_bar.refusal.full_text


@pytest.mark.parametrize(("title", "text"), [("Replace", "mine"), ("Cancel", "")])
def test_added_suffix_asks_before_replacing_a_file(
    workbench: Workbench, answers: Answers, tmp_path: Path, qtbot: QtBot, title: str, text: str
) -> None:
    there = saved(tmp_path, "mine.loop.json")
    document = workbench.documents.new()
    change(document, "mine")
    answers.to_save = tmp_path / "mine"

    workbench.documents.files.save_as(document)
    assert question(workbench.window).text() == "“mine.loop.json” already exists. Replace it?"
    assert question(workbench.window).defaultButton().text() == "Cancel"
    answer(workbench.window, title)
    over(document, qtbot)

    assert load(there).description == text


def test_added_image_suffix_asks_before_replacing_a_file(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path
) -> None:
    (tmp_path / "picture.png").write_text("another")
    answers.to_save = tmp_path / "picture"

    workbench.actions_by_name["export_png"].trigger()
    assert question(workbench.window).text() == "“picture.png” already exists. Replace it?"
    answer(workbench.window, "Cancel")

    assert (tmp_path / "picture.png").read_text() == "another"


def test_revert_can_be_undone(workbench: Workbench, tmp_path: Path) -> None:
    document = open_file(workbench, saved(tmp_path))
    change(document)

    workbench.actions_by_name["revert"].trigger()
    await_files(workbench)
    assert document.session.workflow.description == ""
    assert not document.session.is_modified
    assert workbench.actions_by_name["undo"].text() == "Undo Revert to saved"

    QTest.keyClick(workbench.window, Qt.Key.Key_Z, CONTROL)
    assert document.session.workflow.description == "Something else."
    assert document.session.is_modified


@pytest.mark.parametrize(
    ("title", "stays", "text"), [("Save", False, "new"), ("Don't save", False, ""), ("Cancel", True, "")]
)
def test_closing_an_unsaved_document_asks_once(
    workbench: Workbench, tmp_path: Path, title: str, stays: bool, text: str, qtbot: QtBot
) -> None:
    path = saved(tmp_path)
    document = open_file(workbench, path)
    change(document, "new")

    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    assert question(workbench.window).text() == "Save the changes to “Small”?"
    answer(workbench.window, title)
    over(document, qtbot)

    assert (document in workbench.documents.all) is stays
    assert load(path).description == text


def test_cancelled_file_dialog_keeps_the_document(workbench: Workbench, answers: Answers) -> None:
    document = workbench.documents.new()
    change(document)

    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    answer(workbench.window, "Save")

    assert answers.suggested is not None
    assert document in workbench.documents.all


def test_middle_click_closes_a_tab(workbench: Workbench, tmp_path: Path) -> None:
    open_file(workbench, saved(tmp_path))
    bar = workbench.tabs.tabBar()

    QTest.mouseClick(bar, Qt.MouseButton.MiddleButton, pos=bar.tabRect(0).center())

    assert titles(workbench) == ["Start"]


def test_tabs_change_by_keyboard_and_the_window_follows(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    first, second = open_file(workbench, saved(tmp_path, "one.loop.json")), workbench.documents.new()
    assert workbench.current is second

    QTest.keyClick(workbench.window, Qt.Key.Key_PageDown, CONTROL)

    assert workbench.current is first
    qtbot.waitUntil(lambda: workbench.inspectors.currentWidget() is first.inspector)
    assert workbench.run_bar.name.full_text == "Small"
    QTest.keyClick(workbench.window, Qt.Key.Key_PageUp, CONTROL)
    assert workbench.current is second


def test_start_page_can_be_shown_beside_documents_and_closed(workbench: Workbench, self_refine: DocumentPage) -> None:
    QTest.keyClick(workbench.window, Qt.Key.Key_N, CONTROL | SHIFT)
    assert titles(workbench) == ["Start", "Self-Refine"]
    assert workbench.current is None

    workbench.tabs.tabCloseRequested.emit(0)

    assert titles(workbench) == ["Self-Refine"]


@pytest.mark.parametrize(
    ("title", "closes", "expected"), [("Save", True, "new"), ("Don't save", True, ""), ("Cancel", False, "")]
)
def test_closing_the_window_asks_once_for_all_documents(
    workbench: Workbench, tmp_path: Path, title: str, closes: bool, expected: str, qtbot: QtBot
) -> None:
    paths = [saved(tmp_path, name) for name in ("one.loop.json", "two.loop.json")]
    for path in paths:
        change(open_file(workbench, path), "new")

    workbench.window.close()
    workbench.window.close()
    assert mentions(question(workbench.window).text(), "Save … “Small”, “Small”?")
    answer(workbench.window, title)

    qtbot.waitUntil(lambda: workbench.window.isVisible() is not closes)
    assert [load(path).description for path in paths] == [expected, expected]


def test_window_without_unsaved_changes_closes_at_once(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    open_file(workbench, saved(tmp_path))

    with qtbot.waitSignal(workbench.finished):
        workbench.window.close()

    assert not workbench.window.isVisible()


def test_next_start_reopens_documents_and_layout(make_window: MakeWindow, tmp_path: Path) -> None:
    first = make_window()
    paths = [saved(tmp_path, "one.loop.json"), saved(tmp_path, "two.loop.json")]
    for path in paths:
        open_file(first, path)
    QTest.keyClick(first.window, Qt.Key.Key_1, Qt.KeyboardModifier.AltModifier)
    assert not first.palette_panel.isVisible()
    first.bottom_panel.unfold("log")
    first.window.resize(700, 600)
    first.window.close()
    paths[0].rename(tmp_path / "moved")

    second = make_window()
    second.reopen()
    await_files(second)

    assert [document.session.path for document in second.documents.all] == [paths[1]]
    assert not second.palette_panel.isVisible()
    assert second.bottom_panel.open_panel == "log"
    assert (second.window.width(), second.window.height()) == (700, 600)


def test_invalid_window_state_is_ignored(make_window: MakeWindow, preferences: Preferences) -> None:
    state = {"drawer": ["log"], "open": {"a": 1}, "sides": 3, "drawer_heights": [], "iterations": {"columns": 3}}
    preferences.set(window_state=json.dumps(state))

    workbench = make_window()
    workbench.reopen()

    assert workbench.bottom_panel.open_panel == ""
    assert titles(workbench) == ["Start"]


def drop(workbench: Workbench, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    assert drag_and_drop(workbench.window, data, QPoint(10, 10))


def test_dropped_files_are_opened(workbench: Workbench, tmp_path: Path) -> None:
    drop(workbench, saved(tmp_path, "one.loop.json"), saved(tmp_path, "two.loop.json"))
    await_files(workbench)

    assert len(workbench.documents.all) == 2


def test_files_and_templates_dropped_on_the_canvas_are_opened(
    workbench: Workbench, self_refine: DocumentPage, tmp_path: Path
) -> None:
    self_refine.canvas.files_dropped.emit([saved(tmp_path)])
    await_files(workbench)
    self_refine.canvas.template_dropped.emit(str(SELF_REFINE))

    assert [document.session.name for document in workbench.documents.all] == ["Self-Refine", "Small", "Self-Refine"]


def test_file_changed_by_another_program_can_be_reloaded(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    document = open_file(workbench, path)

    save(small().model_copy(update={"description": "theirs"}), path)
    qtbot.waitUntil(lambda: "Another program" in document.bars.text("disk"))
    press(document.bars, "Reload")
    await_files(workbench)

    assert document.session.workflow.description == "theirs"
    assert document.session.fingerprint == FileFingerprint.of(path)
    assert not document.session.is_modified
    document.session.undo()
    assert document.session.workflow.description == ""


def test_keep_mine_overwrites_a_change_by_another_program(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    document = open_file(workbench, path)
    change(document, "mine")

    save(small().model_copy(update={"description": "theirs"}), path)
    qtbot.waitUntil(lambda: document.bars.text("disk") != "")
    press(document.bars, "Keep mine")
    save_by_key(workbench, qtbot)

    assert load(path).description == "mine"
    assert document.bars.text("disk") == ""


def test_change_by_another_program_while_a_file_is_opened_is_reported(
    workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    path = saved(tmp_path)

    def load_and_change(path: Path) -> Workflow:
        workflow = load(path)
        save(small().model_copy(update={"description": "theirs"}), path)
        return workflow

    monkeypatch.setattr(document_controller, "load", load_and_change)
    document = open_file(workbench, path)

    qtbot.waitUntil(lambda: "Another program" in document.bars.text("disk"))
    assert document.session.workflow.description == ""


@pytest.fixture
def silent(workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DocumentPage:
    """An open document whose disk does not report changes, such as a network share."""
    monkeypatch.setattr(document_file.FileWatcher, "_schedule_check", lambda _watch: None)
    return open_file(workbench, saved(tmp_path))


def theirs(document: DocumentPage) -> Path:
    """Another program writes the document's file."""
    path = document.session.path
    assert path is not None
    save(small().model_copy(update={"description": "theirs"}), path)
    return path


def test_unreported_change_by_another_program_is_not_overwritten(
    workbench: Workbench, silent: DocumentPage, qtbot: QtBot
) -> None:
    change(silent, "mine")
    path = theirs(silent)

    for _ in range(2):
        save_by_key(workbench, qtbot)
        assert load(path).description == "theirs"
        assert mentions(silent.bars.text("disk"), "Another program … changed … not saved")
        assert silent.session.is_modified

    press(silent.bars, "Keep mine")
    over(silent, qtbot)
    assert load(path).description == "mine"
    assert silent.bars.text("disk") == ""
    assert not silent.session.is_modified


def test_conflict_found_on_save_can_be_reloaded(workbench: Workbench, silent: DocumentPage, qtbot: QtBot) -> None:
    change(silent, "mine")
    path = theirs(silent)
    save_by_key(workbench, qtbot)

    press(silent.bars, "Reload")
    await_files(workbench)
    assert silent.session.workflow.description == "theirs"
    assert not silent.session.is_modified

    change(silent, "both")
    save_by_key(workbench, qtbot)
    assert load(path).description == "both"


def test_window_stays_open_on_a_file_conflict(workbench: Workbench, silent: DocumentPage, qtbot: QtBot) -> None:
    change(silent, "mine")
    path = theirs(silent)
    workbench.documents.new()

    workbench.window.close()
    answer(workbench.window, "Save")
    over(silent, qtbot)
    assert workbench.window.isVisible()
    assert workbench.current is silent
    assert load(path).description == "theirs"

    with qtbot.waitSignal(workbench.finished):
        press(silent.bars, "Keep mine")
    assert load(path).description == "mine"


def test_touched_file_with_the_same_content_is_overwritten(
    workbench: Workbench, silent: DocumentPage, qtbot: QtBot
) -> None:
    change(silent, "mine")
    path = silent.session.path
    assert path is not None
    save(small(), path)  # the same, in a new file

    save_by_key(workbench, qtbot)

    assert load(path).description == "mine"


def test_queued_save_is_not_a_file_conflict(workbench: Workbench, silent: DocumentPage, qtbot: QtBot) -> None:
    path = silent.session.path
    assert path is not None
    for text in ("one", "two", "three"):
        change(silent, text)
        workbench.documents.files.save(silent)
    over(silent, qtbot)

    assert load(path).description == "three"
    assert silent.bars.text("disk") == ""


def test_own_save_is_not_a_file_conflict(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_file(workbench, saved(tmp_path))
    change(document)
    save_by_key(workbench, qtbot)
    looked = document.watch._timer.timeout

    with qtbot.waitSignal(looked, timeout=5000, raising=False):
        (tmp_path / "other.txt").write_text("x")

    assert document.bars.text("disk") == ""


def test_deleted_file_is_reported_and_can_be_saved_again(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    document = open_file(workbench, path)

    path.unlink()
    qtbot.waitUntil(lambda: "moved or deleted" in document.bars.text("disk"))
    press(document.bars, "Save again")
    over(document, qtbot)

    assert load(path).name == "Small"
    assert document.bars.text("disk") == ""


def test_document_with_a_deleted_file_is_unsaved(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    document = open_file(workbench, path)
    path.unlink()
    qtbot.waitUntil(lambda: "moved or deleted" in document.bars.text("disk"))

    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    assert question(workbench.window).text() == "Save the changes to “Small”?"
    answer(workbench.window, "Save")
    qtbot.waitUntil(lambda: workbench.documents.all == [])
    assert load(path).name == "Small"


def test_keep_mine_marks_the_document_unsaved(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    document = open_file(workbench, path)
    save(small().model_copy(update={"description": "theirs"}), path)
    qtbot.waitUntil(lambda: document.bars.text("disk") != "")
    press(document.bars, "Keep mine")
    assert titles(workbench) == ["Small •"]

    QTest.keyClick(workbench.window, Qt.Key.Key_W, CONTROL)
    answer(workbench.window, "Save")
    qtbot.waitUntil(lambda: workbench.documents.all == [])
    assert load(path).description == ""


def test_failed_save_in_a_deleted_folder_keeps_the_document(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    document = open_file(workbench, saved(folder))
    change(document)
    (folder / "one.loop.json").unlink()
    folder.rename(tmp_path / "elsewhere")

    save_by_key(workbench, qtbot)

    assert mentions(document.bars.text("save"), "one.loop.json: … no such file")
    assert document.session.is_modified


def test_failed_save_on_a_full_disk_keeps_the_document(
    workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    document = open_file(workbench, saved(tmp_path))
    change(document)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    save_by_key(workbench, qtbot)

    assert "no space left on device" in document.bars.text("save")
    assert document.session.is_modified
    assert load(tmp_path / "one.loop.json").description == ""


def test_write_protected_file_is_not_replaced(
    workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    document = open_file(workbench, saved(tmp_path))
    change(document)
    # Root may write anything, so raise the error that other users would get.
    monkeypatch.setattr(files.os, "access", lambda *_: False)

    save_by_key(workbench, qtbot)

    assert "it is write-protected" in document.bars.text("save")
    assert document.session.is_modified


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_canvas_is_exported_as_an_image(
    workbench: Workbench,
    self_refine: DocumentPage,
    answers: Answers,
    tmp_path: Path,
    qtbot: QtBot,
    kind: str,
    start: bytes,
) -> None:
    answers.to_save = tmp_path / "picture"

    workbench.actions_by_name[f"export_{kind}"].trigger()

    file = tmp_path / f"picture.{kind}"
    qtbot.waitUntil(file.exists)  # it appears complete
    qtbot.waitUntil(lambda: str(file) in workbench.status_bar.refusal.full_text)
    content = file.read_bytes()
    assert content.startswith(start)
    assert answers.suggested is not None
    assert answers.suggested.name == f"Self-Refine.{kind}"


@pytest.mark.parametrize("kind", ["python", "langgraph"])
def test_workflow_is_exported_as_a_program_with_a_report(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, kind: str
) -> None:
    exported = (export_python if kind == "python" else export_langgraph)(self_refine.session.workflow)
    answers.to_save = tmp_path / "program v1.5"

    workbench.actions_by_name[f"export_{kind}"].trigger()

    assert (tmp_path / "program v1.5.py").read_text() == exported.text
    if exported.left_out:
        assert workbench.status_bar.refusal.full_text == ""
        report = question(workbench.window)
        assert all(sentence in report.informativeText() for sentence in exported.left_out)
        answer(workbench.window, "Close")
    assert str(tmp_path / "program v1.5.py") in workbench.status_bar.refusal.full_text


def test_workflow_with_errors_is_not_exported_as_a_program(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path
) -> None:
    self_refine.session.do(RemoveNodes(("exit",)))
    answers.to_save = tmp_path / "program.py"

    workbench.actions_by_name["export_python"].trigger()

    assert "3 problems" in workbench.status_bar.refusal.full_text
    assert not answers.to_save.exists()


def test_failed_image_export_is_reported(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    answers.to_save = tmp_path / "gone" / "picture.png"

    workbench.actions_by_name["export_png"].trigger()

    qtbot.waitUntil(lambda: "picture.png" in workbench.status_bar.refusal.full_text)


def test_failed_image_export_of_a_closed_document_is_reported(
    workbench: Workbench, self_refine: DocumentPage, answers: Answers, tmp_path: Path, qtbot: QtBot
) -> None:
    answers.to_save = tmp_path / "gone" / "picture.png"

    workbench.actions_by_name["export_png"].trigger()
    workbench.documents.drop(self_refine)

    qtbot.waitUntil(lambda: workbench.window.findChild(QMessageBox) is not None)
    assert "picture.png" in question(workbench.window).text()


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_image_is_written_beside_the_window_which_says_so(
    workbench: Workbench,
    self_refine: DocumentPage,
    answers: Answers,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setattr(command_controller, "_SAY_AFTER_MS", 0)
    answers.to_save = target = tmp_path / f"picture.{kind}"
    may_write = threading.Event()
    draw = self_refine.canvas.draw

    def slow(kind: str) -> Callable[[Path], None]:
        write = draw(kind)

        def write_later(path: Path) -> None:
            if threading.current_thread() is not threading.main_thread():
                may_write.wait(10)
            write(path)

        return write_later

    monkeypatch.setattr(self_refine.canvas, "draw", slow)
    workbench.actions_by_name[f"export_{kind}"].trigger()

    assert not target.exists()
    try:
        qtbot.waitUntil(lambda: target.name in self_refine.bars.text(f"export {target}"))
        assert not target.exists()
    finally:
        may_write.set()
    qtbot.waitUntil(lambda: not self_refine.bars.text(f"export {target}"))
    assert target.stat().st_size > 0


def test_tab_title_follows_the_workflow_name(workbench: Workbench, self_refine: DocumentPage) -> None:
    from engine.document.operations import SetText

    self_refine.session.do(SetText("name", "Better & better"))

    assert titles(workbench) == ["Better && better •"]
    assert workbench.window.windowTitle() == "Better & better[*]"
    assert workbench.window.isWindowModified()
    assert self_refine.session.do(SetTitle("draft", "D"))


def test_refusal_of_a_background_document_names_it(workbench: Workbench, tmp_path: Path) -> None:
    first = open_file(workbench, saved(tmp_path))
    workbench.documents.new()

    first.session.refused.emit("It cannot be.")

    assert workbench.status_bar.refusal.full_text == "“Small”: It cannot be."


def test_failed_save_of_a_background_document_is_reported(
    workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    document = open_file(workbench, saved(tmp_path))
    change(document)
    monkeypatch.setattr(files.os, "access", lambda *_: False)
    workbench.documents.files.save(document)
    workbench.documents.new()
    over(document, qtbot)

    assert workbench.status_bar.refusal.full_text.startswith("“Small”: ")
    assert "it is write-protected" in workbench.status_bar.refusal.full_text
    monkeypatch.undo()
    workbench.documents.shown.emit(document)
    press(document.bars, "Save again")
    over(document, qtbot)
    assert document.bars.text("save") == ""
    assert not document.session.is_modified


def test_unreadable_settings_are_reported(make_window: MakeWindow, preferences: Preferences) -> None:
    preferences.notice = "The settings are damaged."

    workbench = make_window()
    assert workbench.status_bar.refusal.full_text == "The settings are damaged."
    preferences.notice_changed.emit("They are damaged again.")
    preferences.notice_changed.emit("")
    assert workbench.status_bar.refusal.full_text == "They are damaged again."


def test_status_bar_message_disappears(workbench: Workbench, qtbot: QtBot) -> None:
    workbench.status_bar._shown.setInterval(0)
    workbench.status_bar._fading.setDuration(0)

    workbench.status_bar.refuse("It cannot be.")

    qtbot.waitUntil(lambda: workbench.status_bar.refusal.full_text == "")
