"""Going on with a run whose workflow has changed since: as it ran, or as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.session import Session
from app.window.document_page import DocumentPage
from app.window.main_window import MainWindow
from engine.document.files import save
from engine.document.operations import SetConfig
from engine.events import RunResumed
from engine.store import RunStatus, Store
from tests.app.history.kept import refine, refine_script
from tests.app.window.conftest import answer, ended, open_file, press, question


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.loop.json"


@pytest.fixture
def failed(window: MainWindow, file: Path, tmp_path: Path, qtbot: QtBot) -> str:
    """A run of a file, which failed in its second iteration and would not any more; nothing is open."""
    script = tmp_path / "s.json"
    window.preferences.set(default_model=refine_script(script))
    whole = script.read_text()
    script.write_text(whole.replace('"Say more, advice 2."', '{"error": {"kind": "authentication"}}'))
    save(refine(), file)
    document = open_file(window, file)
    window.runs.run(document)
    ended(document, qtbot)
    run_id = document.session.shown.run_id
    window.documents.drop(document)
    script.write_text(whole)
    return run_id


def ask_to_resume(window: MainWindow, run_id: str, qtbot: QtBot) -> DocumentPage:
    """Open a run and press Resume."""
    document = past(window, run_id, qtbot)
    press(window.history.pages[run_id].bar, "Resume")
    return document


def past(window: MainWindow, run_id: str, qtbot: QtBot) -> DocumentPage:
    """Open a run."""
    window.history.open_run(run_id)
    qtbot.waitUntil(lambda: run_id in window.history.pages, timeout=10_000)
    page = window.history.pages[run_id]
    qtbot.waitUntil(lambda: page.bar.isVisible() and page.session.shown.run_id == run_id, timeout=10_000)
    return page.document


def asked(window: MainWindow, qtbot: QtBot) -> QMessageBox:
    qtbot.waitUntil(lambda: any(box.isVisible() for box in window.findChildren(QMessageBox)), timeout=10_000)
    return question(window)


def change(file: Path) -> None:
    """Another prompt for the draft, in the file."""
    changed, _ = SetConfig("draft", ("prompt",), "Write well: {{input}}").apply(refine())
    save(changed, file)


def test_as_it_ran_the_run_itself_goes_on(
    window: MainWindow, store: Store, failed: str, file: Path, qtbot: QtBot
) -> None:
    change(file)
    document = ask_to_resume(window, failed, qtbot)
    box = asked(window, qtbot)
    assert box.text() == "The workflow has changed since this run. Go on with which?"
    assert "• “Prompt” of “Draft” was changed." in box.informativeText()
    answer(window, "As it ran")
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.COMPLETED, timeout=10_000)
    ended(document, qtbot)
    assert document.session.shown.picture is not None
    drafts = [document.session.shown.picture.nodes[f"loop[{index}].draft"] for index in range(3)]
    assert all(draft.calls[0].request.messages[-1].text.startswith("Write: ") for draft in drafts)
    assert len(store.runs()) == 1


@pytest.mark.parametrize("is_open", [True, False])
def test_as_it_is_now_a_new_run_takes_over_what_had_come_to_its_end(
    is_open: bool, window: MainWindow, store: Store, failed: str, file: Path, qtbot: QtBot
) -> None:
    if is_open:
        opened = open_file(window, file)
        opened.session.do(SetConfig("draft", ("prompt",), "Write well: {{input}}"))
    else:
        change(file)
    old = ask_to_resume(window, failed, qtbot)
    asked(window, qtbot)
    answer(window, "As it is now")
    qtbot.waitUntil(lambda: window.current is not None and window.current is not old)
    document = window.current
    assert document is not None
    qtbot.waitUntil(
        lambda: document.session.shown.picture is not None and document.session.shown.picture.is_over, timeout=10_000
    )
    ended(document, qtbot)
    picture = document.session.shown.picture
    assert picture is not None
    assert picture.status == "completed"
    asked_for = [picture.nodes[f"loop[{index}].draft"].calls[0].request.messages[-1].text for index in range(3)]
    assert asked_for == ["Write: the sea", "Write: Say more, advice 1.", "Write well: Say more, advice 2."]
    run = store.find(document.session.shown.run_id)
    assert (run.parent, run.forked_at, run.status) == (failed, "", RunStatus.COMPLETED)
    assert store.find(failed).status is RunStatus.FAILED
    bar = window.history.pages[run.run_id].bar
    qtbot.waitUntil(lambda: bar.origin == f"Fork of {failed[:6]}", timeout=10_000)


def test_a_document_that_does_not_run_is_refused_and_no_tab_comes(
    window: MainWindow, store: Store, failed: str, file: Path, qtbot: QtBot
) -> None:
    changed, _ = SetConfig("draft", ("prompt",), "{{nobody.at.home}}").apply(refine())
    save(changed, file)
    old = ask_to_resume(window, failed, qtbot)
    asked(window, qtbot)
    answer(window, "As it is now")
    qtbot.waitUntil(lambda: "nobody" in window.status.refusal.full_text, timeout=10_000)
    assert window.tabs.documents == [old]
    assert len(store.runs()) == 1


def test_where_nothing_has_changed_nothing_is_asked(
    window: MainWindow, store: Store, failed: str, qtbot: QtBot
) -> None:
    document = ask_to_resume(window, failed, qtbot)
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.COMPLETED, timeout=10_000)
    ended(document, qtbot)
    assert not window.findChildren(QMessageBox)


def iterations(session: Session) -> list[str]:
    """The results of the loop of the run that is shown."""
    assert session.shown.picture is not None
    return [str(iteration.result) for iteration in session.shown.picture.loops["loop"].iterations]


def test_a_run_that_another_program_has_taken_over_stays_shown_and_the_refusal_is_said(
    window: MainWindow, store: Store, failed: str, qtbot: QtBot
) -> None:
    document = past(window, failed, qtbot)
    page = window.history.pages[failed]
    page.elsewhere._timer.setInterval(20)
    journal = store.reopen(failed)
    journal.write(RunResumed(failed, max(event.seq for event in store.events(failed)) + 1, 1.0, ""))
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.RUNNING)
    press(page.bar, "Resume")
    refusal = window.status.refusal
    qtbot.waitUntil(lambda: "under way in another window or program" in refusal.full_text, timeout=10_000)
    ended(document, qtbot)
    session = document.session
    assert iterations(session) == ["The sea is wide, draft 1."]
    assert (session.shown.run_id, session.shown.workflow) == (failed, refine())
    assert session.shown.read_results is not None
    session.shown.look_at("loop", 0)
    qtbot.waitUntil(lambda: session.shown.picture.node("draft", session.shown.chosen).calls != (), timeout=10_000)

    qtbot.waitUntil(lambda: page.bar.text.endswith("Running"))
    assert not any(button.text() == "Resume" for button in page.bar.findChildren(QPushButton) if button.isVisible())

    journal.close()
    qtbot.waitUntil(lambda: page.bar.text.endswith("Interrupted"))
    press(page.bar, "Resume")
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.COMPLETED, timeout=10_000)
    ended(document, qtbot)
    assert len(iterations(session)) == 3


def test_a_second_press_of_resume_asks_nothing_more(
    window: MainWindow, store: Store, failed: str, file: Path, qtbot: QtBot
) -> None:
    change(file)
    document = ask_to_resume(window, failed, qtbot)
    press(window.history.pages[failed].bar, "Resume")
    asked(window, qtbot)
    qtbot.waitUntil(lambda: not window.history.access.is_busy)
    answer(window, "As it ran")  # the only question that is open
    qtbot.waitUntil(lambda: store.find(failed).status is RunStatus.COMPLETED, timeout=10_000)
    ended(document, qtbot)
    assert len(iterations(document.session)) == 3
    assert not any(box.isVisible() for box in window.findChildren(QMessageBox))
