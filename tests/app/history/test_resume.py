"""Resuming a run whose workflow has changed: with the original or the current one."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.history.resume_dialog import Budget, ResumeInfo, ask_before_resume
from app.session import Session
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.files import save
from engine.document.operations import SetConfig
from engine.events import RunResumed
from engine.models.protocol import EMBEDDED_MODEL
from engine.store import RunStatus, Store
from engine.store.resume import UnknownCall
from tests.app.history.stored_runs import refine, refine_script
from tests.app.window.conftest import answer, ended, open_file, press, question


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.loop.json"


@pytest.fixture
def failed(workbench: Workbench, file: Path, tmp_path: Path, qtbot: QtBot) -> str:
    """A run of a file, which failed in its second iteration and would not any more; nothing is open."""
    script = tmp_path / "s.json"
    workbench.preferences.set(default_model=refine_script(script))
    whole = script.read_text()
    script.write_text(whole.replace('"Say more, advice 2."', '{"error": {"kind": "authentication"}}'))
    save(refine(), file)
    document = open_file(workbench, file)
    workbench.runs.run(document)
    ended(document, qtbot)
    run_id = document.session.shown.run_id
    workbench.documents.drop(document)
    script.write_text(whole)
    return run_id


def ask_to_resume(workbench: Workbench, run_id: str, qtbot: QtBot) -> DocumentPage:
    """Open a run and press Resume."""
    document = past(workbench, run_id, qtbot)
    press(workbench.history.tabs.pages[run_id].bar, "Resume")
    return document


def past(workbench: Workbench, run_id: str, qtbot: QtBot) -> DocumentPage:
    """Open a run."""
    workbench.history.tabs.open_run(run_id)
    qtbot.waitUntil(lambda: run_id in workbench.history.tabs.pages)
    page = workbench.history.tabs.pages[run_id]
    qtbot.waitUntil(lambda: page.bar.isVisible() and page.session.shown.run_id == run_id)
    return page.document


def asked(workbench: Workbench, qtbot: QtBot) -> QMessageBox:
    qtbot.waitUntil(lambda: any(box.isVisible() for box in workbench.window.findChildren(QMessageBox)))
    return question(workbench.window)


def change(file: Path) -> None:
    """Another prompt for the draft, in the file."""
    changed, _ = SetConfig(("prompt",), {"draft": "Write well: {{input}}"}).apply(refine())
    save(changed, file)


def test_original_workflow_resumes_the_run_itself(
    workbench: Workbench, store: Store, failed: str, file: Path, qtbot: QtBot
) -> None:
    change(file)
    document = ask_to_resume(workbench, failed, qtbot)
    box = asked(workbench, qtbot)
    assert "workflow has changed" in box.text()
    assert "• “Prompt” of “Draft” was changed." in box.informativeText()
    answer(workbench.window, "Use the original workflow")
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.COMPLETED)
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    drafts = [document.session.shown.view_model.nodes[f"loop[{index}].draft"] for index in range(3)]
    assert all(draft.calls[0].request.messages[-1].text.startswith("Write: ") for draft in drafts)
    assert len(store.runs()) == 1


@pytest.mark.parametrize("is_open", [True, False])
def test_current_workflow_starts_a_new_run_that_reuses_completed_steps(
    is_open: bool, workbench: Workbench, store: Store, failed: str, file: Path, qtbot: QtBot
) -> None:
    if is_open:
        opened = open_file(workbench, file)
        opened.session.do(SetConfig(("prompt",), {"draft": "Write well: {{input}}"}))
    else:
        change(file)
    old = ask_to_resume(workbench, failed, qtbot)
    asked(workbench, qtbot)
    answer(workbench.window, "Use the current workflow")
    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current is not old)
    document = workbench.current
    assert document is not None
    qtbot.waitUntil(
        lambda: document.session.shown.view_model is not None and document.session.shown.view_model.is_over,
    )
    ended(document, qtbot)
    view_model = document.session.shown.view_model
    assert view_model is not None
    assert view_model.status == "completed"
    asked_for = [view_model.nodes[f"loop[{index}].draft"].calls[0].request.messages[-1].text for index in range(3)]
    assert asked_for == ["Write: the sea", "Write: Say more, advice 1.", "Write well: Say more, advice 2."]
    run = store.find(document.session.shown.run_id)
    assert (run.parent, run.forked_at, run.status) == (failed, "", RunStatus.COMPLETED)
    assert store.find(failed).status is RunStatus.FAILED
    bar = workbench.history.tabs.pages[run.run_id].bar
    qtbot.waitUntil(lambda: bar.origin == f"Fork of {failed[:6]}")


def test_invalid_document_is_refused_without_a_new_tab(
    workbench: Workbench, store: Store, failed: str, file: Path, qtbot: QtBot
) -> None:
    changed, _ = SetConfig(("prompt",), {"draft": "{{nobody.at.home}}"}).apply(refine())
    save(changed, file)
    old = ask_to_resume(workbench, failed, qtbot)
    asked(workbench, qtbot)
    answer(workbench.window, "Use the current workflow")
    qtbot.waitUntil(lambda: "nobody" in workbench.status_bar.refusal.full_text)
    assert workbench.tabs.documents == [old]
    assert len(store.runs()) == 1


def test_unchanged_workflow_asks_nothing(workbench: Workbench, store: Store, failed: str, qtbot: QtBot) -> None:
    document = ask_to_resume(workbench, failed, qtbot)
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.COMPLETED)
    ended(document, qtbot)
    assert not workbench.window.findChildren(QMessageBox)


def iterations(session: Session) -> list[str]:
    """The results of the loop of the run that is shown."""
    assert session.shown.view_model is not None
    return [str(iteration.result) for iteration in session.shown.view_model.loops["loop"].iterations]


@pytest.mark.parametrize(("model", "is_billed"), [(EMBEDDED_MODEL, False), ("openai/gpt-4o-mini", True)])
def test_call_of_a_local_model_is_not_called_billed(workbench: Workbench, model: str, *, is_billed: bool) -> None:
    info = ResumeInfo(refine(), Budget(), (UnknownCall("loop[1].draft", model),), None, [])
    ask_before_resume(workbench.window, info, lambda _document: None)
    assert ("billed" in question(workbench.window).informativeText()) is is_billed
    answer(workbench.window, "Cancel")


def test_run_resumed_by_another_program_stays_displayed_with_the_error(
    workbench: Workbench, store: Store, failed: str, qtbot: QtBot
) -> None:
    document = past(workbench, failed, qtbot)
    page = workbench.history.tabs.pages[failed]
    page.poller._timer.setInterval(20)
    journal = store.reopen(failed)
    journal.write(RunResumed(failed, max(event.seq for event in store.events(failed)) + 1, 1.0, ""))
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.RUNNING)
    press(page.bar, "Resume")
    refusal = workbench.status_bar.refusal
    qtbot.waitUntil(lambda: "running in another" in refusal.full_text)
    ended(document, qtbot)
    session = document.session
    assert iterations(session) == ["The sea is wide, draft 1."]
    assert (session.shown.run_id, session.shown.workflow) == (failed, refine())
    assert session.shown.read_results is not None
    session.shown.look_at("loop", 0)
    qtbot.waitUntil(lambda: session.shown.view_model.node("draft", session.shown.chosen).calls != ())

    qtbot.waitUntil(lambda: page.bar.text.endswith("Running"))
    assert not any(button.text() == "Resume" for button in page.bar.findChildren(QPushButton) if button.isVisible())

    journal.close()
    qtbot.waitUntil(lambda: page.bar.text.endswith("Interrupted"))
    press(page.bar, "Resume")
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.COMPLETED)
    ended(document, qtbot)
    assert len(iterations(session)) == 3


def test_second_click_on_resume_does_nothing(
    workbench: Workbench, store: Store, failed: str, file: Path, qtbot: QtBot
) -> None:
    change(file)
    document = ask_to_resume(workbench, failed, qtbot)
    press(workbench.history.tabs.pages[failed].bar, "Resume")
    asked(workbench, qtbot)
    qtbot.waitUntil(lambda: not workbench.history.access.is_busy)
    answer(workbench.window, "Use the original workflow")  # the only question that is open
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.COMPLETED)
    ended(document, qtbot)
    assert len(iterations(document.session)) == 3
    assert not any(box.isVisible() for box in workbench.window.findChildren(QMessageBox))
