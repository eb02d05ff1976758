from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.window.autosave import (
    Autosave,
    AutosaveFile,
    RecoveredDocument,
    autosave_paths,
    find_recovered,
    find_unsaved,
    has_autosave,
)
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document import files
from engine.document.files import load, save
from engine.document.model import Node, Workflow
from engine.document.operations import SetConfig, SetText
from tests.app.conftest import MakeSession
from tests.app.window.conftest import MakeWindow, await_files, open_file, press, saved, small
from tests.closed_folder import close_folder
from tests.wording import mentions


def described(text: str) -> Workflow:
    return small().model_copy(update={"description": text})


def autosaved(autosave: Autosave, qtbot: QtBot, change: Callable[[], object]) -> Path:
    with qtbot.waitSignal(autosave.autosaved):
        change()
    assert autosave.file is not None
    return autosave.file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_changes_are_autosaved_beside_the_file_within_two_seconds(
    make_session: MakeSession, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    path = saved(tmp_path)
    session = make_session(load(path), path)
    autosave = Autosave(session, folder)

    with qtbot.waitSignal(autosave.autosaved):
        session.do(SetText("description", "new"))

    assert load(tmp_path / ".one.loop.json.autosave").description == "new"
    assert load(path).description == ""
    autosave.settle()


def test_autosave_contains_no_secret(make_session: MakeSession, folder: Path, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    session = make_session(load(path), path)
    autosave = Autosave(session, folder)
    first = session.workflow.nodes[0].id

    file = autosaved(autosave, qtbot, lambda: session.do(SetConfig(("api_key",), {first: "q7Zt4Lw9Xk2B"})))

    assert "q7Zt4Lw9Xk2B" not in file.read_text(encoding="utf-8")
    assert load(file).nodes_by_id[first].config["api_key"] == "(removed)"
    autosave.settle()


def test_autosave_of_a_large_document_keeps_the_window_responsive(
    make_session: MakeSession, folder: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, steps = threading.current_thread(), list[bool]()
    monkeypatch.setattr(
        "app.window.autosave.yield_to_other_threads", lambda: steps.append(threading.current_thread() is here)
    )
    session = make_session(Workflow(nodes=tuple(Node(id=f"n{number}", type="transform") for number in range(1000))))
    autosave = Autosave(session, folder)

    def change() -> None:
        session.do(SetText("description", "new"))
        autosave.keep_now()

    file = autosaved(autosave, qtbot, change)

    assert len(steps) > 25
    assert not any(steps)
    assert load(file) == session.workflow
    autosave.settle()


def test_continued_typing_does_not_postpone_the_autosave(
    make_session: MakeSession, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    path = saved(tmp_path)
    session = make_session(load(path), path)
    autosave = Autosave(session, folder)
    session.do(SetText("description", "0"))
    left = autosave._timer.remainingTime()

    for number in range(50):
        session.do(SetText("description", str(number)))

    assert autosave._timer.remainingTime() <= left
    qtbot.waitSignal(autosave.autosaved).wait()
    assert load(tmp_path / ".one.loop.json.autosave").description == "49"
    autosave.settle()


def test_saving_and_undoing_delete_the_autosave(
    make_session: MakeSession, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    path = saved(tmp_path)
    session = make_session(load(path), path)
    autosave = Autosave(session, folder)

    file = autosaved(autosave, qtbot, lambda: session.do(SetText("description", "new")))
    session.save()
    qtbot.waitUntil(lambda: not file.exists())

    file = autosaved(autosave, qtbot, lambda: session.do(SetText("description", "newer")))
    session.undo()
    qtbot.waitUntil(lambda: list(tmp_path.glob(".*")) == [])


def test_changes_during_save_as_are_autosaved_beside_the_new_file(
    make_session: MakeSession, folder: Path, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()

    def save_slowly(workflow: Workflow, path: Path, between: Callable[[], object]) -> None:
        assert may_go_on.wait(5)
        save(workflow, path, between)

    monkeypatch.setattr("app.document_file.save", save_slowly)
    session = make_session(small(), saved(tmp_path))
    autosave = Autosave(session, folder, session)

    def change(text: str) -> None:
        session.do(SetText("description", text))
        autosave.keep_now()

    autosaved(autosave, qtbot, lambda: change("first"))
    session.save(tmp_path / "two.loop.json")
    autosaved(autosave, qtbot, lambda: change("second"))
    may_go_on.set()

    beside = tmp_path / ".two.loop.json.autosave"
    qtbot.waitUntil(beside.exists)
    assert load(beside).description == "second"
    assert not (tmp_path / ".one.loop.json.autosave").exists()
    autosave.settle()


def test_document_without_a_file_is_autosaved_in_the_data_folder(
    make_session: MakeSession, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    session = make_session(small())
    autosave = Autosave(session, folder)

    file = autosaved(autosave, qtbot, lambda: session.do(SetText("description", "new")))
    assert file.parent == folder
    session.save(tmp_path / "saved.loop.json")

    qtbot.waitUntil(lambda: list(folder.iterdir()) == [])


def test_read_only_folder_falls_back_to_the_data_folder(
    make_session: MakeSession, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    path = tmp_path / "gone" / "one.loop.json"
    session = make_session(small(), path)
    autosave = Autosave(session, folder)

    file = autosaved(autosave, qtbot, lambda: session.do(SetText("description", "new")))

    assert file.parent == folder
    recovered = find_recovered(path, folder, small())
    assert recovered is None, "a living program has it"
    autosave._writer.file.release()
    recovered = find_recovered(path, folder, small())
    assert recovered is not None
    assert recovered.workflow.description == "new"
    autosave.settle()


def test_full_disk_is_reported_once_until_autosave_works_again(
    make_session: MakeSession, folder: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make_session(small())
    autosave = Autosave(session, folder)
    reported: list[str] = []
    autosave.failed.connect(reported.append)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    for text in ("a", "b"):
        session.do(SetText("description", text))
        autosave.keep_now()
        qtbot.waitUntil(lambda: not autosave._worker.is_busy)
    monkeypatch.undo()

    assert len(reported) == 1
    assert "no space left on device" in reported[0]
    autosave.settle()


def test_unwritable_folders_are_reported(make_session: MakeSession, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "file").write_text("")
    session = make_session(small())
    autosave = Autosave(session, tmp_path / "file" / "data")

    with qtbot.waitSignal(autosave.failed) as reported:
        session.do(SetText("description", "new"))

    assert mentions(reported.args[0], "No file … written in")


def test_slow_disk_does_not_block_and_the_latest_is_autosaved(
    make_session: MakeSession, folder: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    written: list[str] = []

    def slow(workflow: Workflow, path: Path, between: Callable[[], object]) -> None:
        may_go_on.wait()
        written.append(workflow.description)
        save(workflow, path, between)

    monkeypatch.setattr("app.window.autosave.save", slow)
    session = make_session(small())
    autosave = Autosave(session, folder)
    autosave._timer.setInterval(0)
    session.do(SetText("description", "first"))
    qtbot.waitUntil(lambda: autosave._worker.is_busy)
    session.do(SetText("description", "second"))
    qtbot.waitSignal(autosave._timer.timeout).wait()
    may_go_on.set()
    qtbot.waitUntil(lambda: written == ["first", "second"])
    assert autosave.file is not None

    session.do(SetText("description", "third"))
    may_go_on.clear()
    qtbot.waitUntil(lambda: autosave._worker.is_busy)
    session.mark_saved()
    may_go_on.set()

    qtbot.waitUntil(lambda: not autosave._worker.is_busy)
    assert autosave.file is None, "what was under way when it was saved is not kept after all"
    assert list(folder.iterdir()) == []


def test_autosave_of_a_running_window_is_not_recovered(tmp_path: Path, folder: Path) -> None:
    path = saved(tmp_path)
    place = AutosaveFile(autosave_paths(path, folder)[0])
    assert place.claim()
    save(described("other"), place.file)

    assert find_recovered(path, folder, small()) is None
    place.release()
    assert find_recovered(path, folder, small()) is not None


@pytest.mark.parametrize("share", [0, 0.5, 0.9])
def test_partial_lock_of_a_killed_program_is_stale(tmp_path: Path, folder: Path, share: float) -> None:
    path = saved(tmp_path)
    place = AutosaveFile(autosave_paths(path, folder)[0])
    lock = place.file.with_name(f"{place.file.name}.lock")
    assert place.claim()
    whole = lock.read_bytes()
    place.release()
    save(described("other"), place.file)
    lock.write_bytes(whole[: int(len(whole) * share)])

    recovered = find_recovered(path, folder, small())

    assert recovered is not None
    assert recovered.workflow.description == "other"
    assert place.claim(), "the next work is kept there"
    place.clear()
    assert list(tmp_path.iterdir()) == [path]


def test_partial_lock_of_a_running_program_is_respected(tmp_path: Path, folder: Path) -> None:
    path = saved(tmp_path)
    place = AutosaveFile(autosave_paths(path, folder)[0])
    assert place.claim()
    save(described("other"), place.file)
    place.file.with_name(f"{place.file.name}.lock").write_bytes(b"")

    assert find_recovered(path, folder, small()) is None
    assert not AutosaveFile(place.file).claim()
    place.clear()


def test_folder_that_may_not_be_entered_has_no_unsaved_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close_folder(tmp_path, monkeypatch)
    assert find_unsaved(tmp_path) == []
    assert not has_autosave(tmp_path / "a.loop.json", tmp_path)


def test_stale_locks_without_an_autosave_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "unsaved-0123456789ab.autosave.lock").write_bytes(b"")
    living = AutosaveFile(tmp_path / "unsaved-ba9876543210.autosave")
    assert living.claim()

    assert find_unsaved(tmp_path) == []

    assert [file.name for file in tmp_path.iterdir()] == ["unsaved-ba9876543210.autosave.lock"]
    living.clear()


def test_autosave_equal_to_the_file_is_not_recovered(tmp_path: Path, folder: Path) -> None:
    path = saved(tmp_path)
    save(small(), autosave_paths(path, folder)[0])

    assert find_recovered(path, folder, small()) is None


def test_unreadable_autosave_is_not_recovered(tmp_path: Path, folder: Path) -> None:
    path = saved(tmp_path)
    autosave_paths(path, folder)[0].write_text("{")

    assert find_recovered(path, folder, small()) is None


def test_recovery_time_of_another_day_has_its_date(tmp_path: Path) -> None:
    now = datetime(2024, 2, 3, 14, 2).astimezone()

    assert RecoveredDocument(tmp_path, Workflow(), now).clock == "03 February, 14:02"
    today = datetime.now().astimezone()
    assert RecoveredDocument(tmp_path, Workflow(), today).clock == f"{today:%H:%M}"
    assert today - now > timedelta(days=1)


@pytest.fixture
def crashed(workbench: Workbench, tmp_path: Path) -> DocumentPage:
    """A document with an autosave file left by a crash."""
    path = saved(tmp_path)
    save(described("lost"), tmp_path / ".one.loop.json.autosave")
    document = open_file(workbench, path)
    assert "Loopwright closed before changes from" in document.bars.text("recovery")
    return document


def test_recovered_changes_can_be_restored_and_undone(
    workbench: Workbench, crashed: DocumentPage, tmp_path: Path, qtbot: QtBot
) -> None:
    press(crashed.bars, "Restore")
    assert crashed.session.workflow.description == "lost"
    assert workbench.actions_by_name["undo"].text() == "Undo Restore unsaved changes"

    QTest.keyClick(workbench.window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert crashed.session.workflow.description == ""
    QTest.keyClick(workbench.window, Qt.Key.Key_Y, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(workbench.window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)

    qtbot.waitUntil(lambda: not crashed.session.is_saving and list(tmp_path.glob(".one*")) == [])
    assert load(tmp_path / "one.loop.json").description == "lost"


def test_recovered_changes_can_be_opened_as_a_copy(workbench: Workbench, crashed: DocumentPage) -> None:
    press(crashed.bars, "Open as copy")

    assert workbench.current is not None
    assert workbench.current.session.name == "Small (recovered)"
    assert workbench.current.session.workflow.description == "lost"
    assert crashed.session.workflow.description == ""
    assert crashed.bars.text("recovery")


def test_recovered_changes_can_be_discarded(crashed: DocumentPage, tmp_path: Path) -> None:
    press(crashed.bars, "Discard")

    assert list(tmp_path.glob(".one*")) == []
    assert crashed.bars.text("recovery") == ""


def test_undecided_recovered_changes_are_offered_again(
    workbench: Workbench, crashed: DocumentPage, tmp_path: Path
) -> None:
    workbench.closing.close_document(crashed)

    document = open_file(workbench, tmp_path / "one.loop.json")
    assert document.bars.text("recovery")


def test_editing_without_a_decision_preserves_recovered_changes(
    crashed: DocumentPage, tmp_path: Path, qtbot: QtBot
) -> None:
    lost = tmp_path / ".one.loop.json.autosave"

    file = autosaved(crashed.autosave, qtbot, lambda: crashed.session.do(SetText("description", "new")))
    assert file.parent == tmp_path / "data"
    crashed.session.save()

    qtbot.waitUntil(lambda: not file.exists())
    assert load(lost).description == "lost"
    assert crashed.bars.text("recovery")


def test_unsaved_documents_are_recovered_after_a_crash(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (place,) = autosave_paths(None, folder)
    save(described("lost"), place)

    workbench.documents.recover_unsaved()
    await_files(workbench)

    (document,) = workbench.documents.all
    file = autosaved(document.autosave, qtbot, lambda: press(document.bars, "Restore"))

    assert document.session.workflow.description == "lost"
    assert document.session.is_modified
    assert [there.name for there in folder.glob("*.autosave")] == [file.name]
    assert file != place


def test_changes_to_a_deleted_file_are_recovered(make_window: MakeWindow, tmp_path: Path, qtbot: QtBot) -> None:
    first = make_window()
    open_file(first, saved(tmp_path))
    first.window.close()
    (tmp_path / "one.loop.json").unlink()
    lost = tmp_path / ".one.loop.json.autosave"
    save(described("lost"), lost)

    second = make_window()
    second.reopen()
    await_files(second)

    (document,) = second.documents.all
    autosaved(document.autosave, qtbot, lambda: press(document.bars, "Restore"))
    assert (document.session.workflow.description, document.session.path) == ("lost", None)
    assert document.session.is_modified
    assert not lost.exists()


def test_autosave_failure_is_shown_over_the_document(workbench: Workbench, self_refine: DocumentPage) -> None:
    self_refine.autosave.failed.emit("It cannot be kept.")
    assert self_refine.bars.text("autosave") == "It cannot be kept."

    self_refine.autosave.autosaved.emit()
    assert self_refine.bars.text("autosave") == ""


def at_rest(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> DocumentPage:
    """A saved document whose view has settled; a moving view would end the inline editing."""
    document = open_file(workbench, saved(tmp_path))
    qtbot.waitUntil(lambda: not document._needs_fit)
    return document


@pytest.mark.parametrize("what", ["note", "title"])
def test_text_in_an_open_inline_editor_is_autosaved(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot, what: str
) -> None:
    document = at_rest(workbench, tmp_path, qtbot)
    canvas, autosave = document.canvas, document.autosave
    if what == "note":
        canvas.commands.add_annotation("notes", None)
        workbench.documents.files.save(document)
        qtbot.waitUntil(lambda: not document.session.is_saving)
        canvas.popups.edit(next(iter(canvas.view.annotations.items.values())))
    else:
        canvas.popups.rename(canvas.view.nodes["draft"])
    field = canvas.popups.text.area if what == "note" else canvas.popups.text.line

    file = autosaved(autosave, qtbot, lambda: QTest.keyClicks(field, "Half a sen"))
    assert "Half a sen" in file.read_text()
    assert canvas.popups.text.is_open
    assert not document.session.is_modified

    assert autosaved(autosave, qtbot, lambda: QTest.keyClicks(field, "tence")) == file
    assert "Half a sentence" in file.read_text()

    QTest.keyClick(field, Qt.Key.Key_Escape)
    if what == "note":  # Escape keeps its text
        assert document.session.workflow.layout["notes"]["note_1"]["text"] == "Half a sentence"
        assert document.session.is_modified
    else:
        qtbot.waitUntil(lambda: not file.exists())
        assert not document.session.is_modified


def test_text_of_a_closed_inline_editor_stays_autosaved(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = at_rest(workbench, tmp_path, qtbot)
    canvas, gone = document.canvas, []
    canvas.popups.rename(canvas.view.nodes["draft"])
    field = canvas.popups.text.line
    file = autosaved(document.autosave, qtbot, lambda: QTest.keyClicks(field, "Better"))
    document.autosave._worker.ask(lambda: gone.append(file.exists()))

    QTest.keyClick(field, Qt.Key.Key_Return)
    document.autosave._worker.ask(lambda: gone.append(file.exists()))
    qtbot.waitUntil(lambda: len(gone) == 2)

    assert gone == [True, True]
    assert document.session.workflow.node("draft").title == "Better"
    assert document.session.pending_edit.step is None
