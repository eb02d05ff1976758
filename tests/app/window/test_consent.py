"""Consent before the first run of a workflow from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.batch.batch_window import BatchWindow
from app.history.stored_session import StoredSession
from app.window.document_page import DocumentPage
from app.window.question_cards import QuestionCard
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.files import save
from engine.document.model import Workflow
from engine.document.operations import SetConfig
from engine.plan.partial_run import Extent
from engine.store.consent import approve, is_approved, is_fully_trusted
from tests.app.window.conftest import answer, ended, open_file, press, question, saved
from tests.engine.importing.samples import DEV_CYCLE


@pytest.fixture(autouse=True)
def nothing_approved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPWRIGHT_APPROVED", str(tmp_path / "approved.json"))


def searching(query: str = "tides") -> Workflow:
    flow = Builder("Searching")
    find = flow.add("tool", id="find", config={"tool": "search_files", "arguments": {"query": query}})
    out = flow.add("output", id="out")
    flow.connect(find["output"], out["value"])
    return flow.build()


def opened(workbench: Workbench, folder: Path, workflow: Workflow | None = None) -> DocumentPage:
    return open_file(workbench, saved(folder, workflow=workflow or searching()))


def no_question(workbench: Workbench) -> bool:
    return not [box for box in workbench.window.findChildren(QMessageBox) if box.isVisible()]


def test_file_with_tools_runs_after_consent(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path)
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: not no_question(workbench))
    box = question(workbench.window)
    assert box.text() == "Do you trust “Searching”?"
    assert "Tool: search_files (" in box.informativeText()
    assert document.session.shown.live is None
    assert box.defaultButton().text() == "Cancel"
    answer(workbench.window, "Trust and run")
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.status == "completed"
    qtbot.waitUntil(lambda: is_approved(document.session.workflow))

    document.session.do(SetConfig(("arguments",), {"find": {"query": "moon"}}))
    workbench.runs.run(document)
    assert no_question(workbench)
    ended(document, qtbot)


def test_consent_is_for_the_workflow_that_was_shown(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path)
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: not no_question(workbench))
    first = question(workbench.window)
    document.session.do(SetConfig(("tool",), {"find": "read_file"}))  # as when a subflow is read
    press(first, "Trust and run")
    qtbot.waitUntil(lambda: not no_question(workbench))
    assert document.session.shown.live is None
    assert not document.session.is_trusted
    assert "Tool: read_file (" in question(workbench.window).informativeText()
    press(question(workbench.window), "Cancel")
    assert not is_approved(document.session.workflow)


@pytest.mark.parametrize("part", [None, Extent.ONLY])
def test_workflow_that_changes_while_the_history_opens_needs_consent(
    workbench: Workbench, tmp_path: Path, part: Extent | None, qtbot: QtBot
) -> None:
    document = opened(workbench, tmp_path)
    document.session.is_trusted = True
    document.session.select(["find"])
    workbench.history.access.open(after_ms=1)
    if part is None:
        workbench.runs.run(document)
    else:
        workbench.partial_runs.run(document, part)
    document.session.is_trusted = False  # as when a subflow is read
    qtbot.waitUntil(lambda: not no_question(workbench))
    answer(workbench.window, "Cancel")
    assert document.session.shown.view_model is None
    workbench.history.access.close()


def test_without_consent_nothing_runs(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = opened(workbench, tmp_path)
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: not no_question(workbench))
    answer(workbench.window, "Cancel")
    assert document.session.shown.live is None
    assert document.session.shown.view_model is None
    assert not is_approved(document.session.workflow)


def test_approved_workflow_runs_without_a_question(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    approve(searching())
    document = opened(workbench, tmp_path)
    with qtbot.waitSignal(document.session.shown.ended):
        workbench.runs.run(document)
    assert no_question(workbench)


def test_own_workflow_never_asks_and_is_approved_on_save(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = workbench.documents.open_copy(searching())
    document.session.path = None
    workbench.runs.run(document)
    assert no_question(workbench)
    ended(document, qtbot)
    document.session.do(SetConfig(("arguments",), {"find": {"query": "sun"}}))
    path = tmp_path / "mine.loop.json"
    document.session.save(path, lambda: workbench.documents.files.consent.remember(document.session.workflow))
    qtbot.waitUntil(lambda: is_approved(searching("sun")))


def test_workflow_edited_while_it_is_saved_is_approved_as_it_was_saved(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = workbench.documents.open_copy(searching())
    document.session.path = tmp_path / "mine.loop.json"
    workbench.documents.files.save(document)
    document.session.do(SetConfig(("arguments",), {"find": {"query": "sun"}}))
    qtbot.waitUntil(lambda: not document.session.is_saving and not workbench.documents.files.consent._worker.is_busy)
    assert is_approved(searching())
    assert not is_approved(searching("sun"))


def test_file_that_only_calls_models_runs_at_once(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = open_file(workbench, saved(tmp_path))
    workbench.runs.run(document)
    assert document.session.shown.live is not None
    ended(document, qtbot)


def test_resuming_a_stored_run_of_an_unapproved_workflow_asks(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    workbench.history.access.open()
    qtbot.waitUntil(lambda: workbench.history.access.store is not None)
    document = workbench.documents.open_copy(searching())
    workbench.runs.run(document)
    ended(document, qtbot)
    qtbot.waitUntil(lambda: is_approved(document.session.workflow))
    (tmp_path / "approved.json").unlink()
    store = workbench.history.access.store
    assert store is not None
    workbench.history.resume(store.find(document.session.shown.run_id))
    qtbot.waitUntil(lambda: not no_question(workbench))
    assert question(workbench.window).text() == "Do you trust “Searching”?"
    answer(workbench.window, "Cancel")
    assert document.session.shown.live is None
    workbench.history.access.close()


def asked_before_it_runs(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> bool:
    """Return whether the user is asked; the answer is Cancel."""
    begun: list[bool] = []
    workbench.documents.files.consent.before_run(document.session, lambda: begun.append(True))
    qtbot.waitUntil(lambda: bool(begun) or not no_question(workbench))
    if not begun:
        answer(workbench.window, "Cancel")
    return not begun


def test_recovered_copy_of_an_untrusted_file_is_untrusted(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    path = saved(tmp_path)
    save(searching(), tmp_path / ".one.loop.json.autosave")
    press(open_file(workbench, path).bars, "Open as copy")

    assert workbench.current is not None
    assert asked_before_it_runs(workbench, workbench.current, qtbot)


def test_imported_file_is_untrusted(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(DEV_CYCLE, encoding="utf-8")
    workbench.documents.open_file(file)
    qtbot.waitUntil(lambda: not no_question(workbench))
    answer(workbench.window, "Import")

    assert workbench.current is not None
    assert asked_before_it_runs(workbench, workbench.current, qtbot)


def test_copy_of_an_unapproved_run_is_untrusted(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    session = StoredSession(workbench.engine, workbench.history.access, searching(), "Searching")
    workbench.history.tabs.make_page(session).copy_wanted.emit()

    assert workbench.current is not None
    assert asked_before_it_runs(workbench, workbench.current, qtbot)


def test_table_dropped_on_a_stored_run_runs_nothing(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    table = tmp_path / "table.csv"
    table.write_text("query\nsun\n", encoding="utf-8")
    session = StoredSession(workbench.engine, workbench.history.access, searching(), "Searching")
    page = workbench.history.tabs.make_page(session).document
    assert workbench.current is page

    page.canvas.files_dropped.emit([table])

    assert "Open as new document" in workbench.status_bar.refusal.full_text
    assert not workbench.window.findChildren(BatchWindow)
    assert asked_before_it_runs(workbench, page, qtbot)
    assert not is_approved(session.workflow)


def test_subflow_copy_in_an_untrusted_document_is_untrusted(workbench: Workbench, qtbot: QtBot) -> None:
    flow = Builder("Around")
    flow.add("subflow", id="inner", config={"file": "inner.loop.json", "workflow": searching().to_json()})
    around = workbench.documents.open_copy(flow.build(), is_trusted=False)
    around.canvas.subflow_requested.emit("inner")

    assert workbench.current is not around
    assert workbench.current is not None
    assert asked_before_it_runs(workbench, workbench.current, qtbot)


def around_a_file(file: str) -> Workflow:
    flow = Builder("Around")
    flow.add("subflow", id="part", config={"file": file})
    return flow.build()


def query_in(document: DocumentPage) -> object:
    """The search query in the document's subflow."""
    copy = document.session.workflow.node("part").config.get("workflow")
    return copy["nodes"][0]["config"]["arguments"]["query"] if isinstance(copy, dict) else None


@pytest.fixture
def trusted(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> DocumentPage:
    """A trusted document with `inner.loop.json` as its subflow."""
    inner = saved(tmp_path, "inner.loop.json", searching())
    document = open_file(workbench, saved(tmp_path, "around.loop.json", around_a_file(inner.name)))
    qtbot.waitUntil(lambda: query_in(document) == "tides")
    workbench.documents.files.consent.before_run(document.session, lambda: None)
    qtbot.waitUntil(lambda: not no_question(workbench))
    answer(workbench.window, "Trust and run")
    assert not asked_before_it_runs(workbench, document, qtbot)
    return document


def test_subflow_file_changed_by_another_program_asks(
    workbench: Workbench, trusted: DocumentPage, tmp_path: Path, qtbot: QtBot
) -> None:
    save(searching("secrets"), tmp_path / "inner.loop.json")
    workbench.documents.files.save(trusted)
    qtbot.waitUntil(lambda: query_in(trusted) == "secrets")

    assert asked_before_it_runs(workbench, trusted, qtbot)
    trusted.session.undo()
    assert not asked_before_it_runs(workbench, trusted, qtbot)


def test_own_change_of_a_subflow_does_not_ask(
    workbench: Workbench, trusted: DocumentPage, tmp_path: Path, qtbot: QtBot
) -> None:
    inner = open_file(workbench, tmp_path / "inner.loop.json")
    inner.session.is_trusted = True
    assert inner.session.do(SetConfig(("arguments",), {"find": {"query": "moon"}}))
    workbench.documents.files.save(inner)
    qtbot.waitUntil(lambda: query_in(trusted) == "moon")

    assert not asked_before_it_runs(workbench, trusted, qtbot)


def test_untrusted_file_chosen_as_a_subflow_asks(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    saved(tmp_path, "theirs.loop.json", searching())
    document = workbench.documents.open_copy(around_a_file(""))
    document.session.save(tmp_path / "mine.loop.json")
    qtbot.waitUntil(lambda: not document.session.is_saving)

    assert document.session.do(SetConfig(("file",), {"part": "theirs.loop.json"}))
    qtbot.waitUntil(lambda: query_in(document) == "tides")

    assert asked_before_it_runs(workbench, document, qtbot)


def running(command: str = "echo one\necho two") -> Workflow:
    """A shell node whose command comes from an edge, and one with a fixed command."""
    flow = Builder("Running")
    task = flow.add("input", id="task", config={"default": command})
    fed = flow.add("tool", id="fed", title="Feeder", config={"tool": "shell"})
    flow.add("agent", id="asker", title="Agent Smith", config={"tools": ["shell"]}, enabled=False)
    known = flow.add("tool", id="known", config={"tool": "shell", "arguments": {"command": "echo \u202eknown\nls"}})
    out, other = flow.add("output", id="out"), flow.add("output", id="other")
    flow.connect(task["value"], fed["command"])
    flow.connect(fed["output"], out["value"])
    flow.connect(known["output"], other["value"])
    return flow.build()


def test_commands_are_shown_completely_and_edge_values_are_asked_during_the_run(
    workbench: Workbench, tmp_path: Path, qtbot: QtBot
) -> None:
    document = opened(workbench, tmp_path, running())
    document.may_run_code = True
    workbench.runs.run(document)
    qtbot.waitUntil(lambda: not no_question(workbench))
    (field,) = question(workbench.window).findChildren(QPlainTextEdit)
    shown = field.toPlainText().split("\n")
    start = shown.index("Command: ")
    assert shown[start + 1 : start + 3] == ["    echo \\u202eknown", "    ls"]
    asked = [line.partition("asked for then: ")[2] for line in shown if "asked for then: " in line]
    assert asked == ["the command of “Feeder” (shell)", "the calls of shell that the model of “Agent Smith” makes"]

    answer(workbench.window, "Trust and run")

    qtbot.waitUntil(lambda: bool(document.questions.count))
    card = document.questions.current
    assert card is not None
    assert card.asked.value == {"command": "echo one\necho two"}
    assert card.reading.view.toPlainText() == "command:\n    echo one\n    echo two"
    press_choice(card, "Approve")
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.status == "completed"
    assert not is_fully_trusted(document.session.workflow)


def test_own_workflow_does_not_ask_during_its_run(workbench: Workbench, tmp_path: Path, qtbot: QtBot) -> None:
    document = workbench.documents.open_copy(running())
    document.may_run_code = True
    workbench.runs.run(document)
    assert no_question(workbench)
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.status == "completed"
    qtbot.waitUntil(lambda: is_fully_trusted(document.session.workflow))


def press_choice(card: QuestionCard, title: str) -> None:
    (button,) = (button for button in card.buttons if button.text() == title)
    button.click()
