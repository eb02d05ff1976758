"""Questions of runs in other processes, and runs here that are answered elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.controllers.history_controller import AnswerDialog
from app.controllers.history_pages import HistoryPage
from app.engine_thread import EngineThread
from app.session import Session
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.nodes.context import Answer
from engine.runner.options import RunOptions
from engine.store import RunStatus, Store
from engine.store.answers import find_question, give_answer
from tests.app.window.conftest import ended, press
from tests.wording import mentions


def asking() -> Workflow:
    flow = Builder("Asking")
    text = flow.add("input", id="text", default="the note")
    check = flow.add("approval", id="check", title="Check")
    out = flow.add("output", id="out")
    flow.connect(text["value"], check["input"])
    flow.connect(check["approved"], out["value"])
    return flow.build()


def test_card_closes_and_the_run_continues_with_the_answer(
    workbench: Workbench, store: Store, engine_thread: EngineThread, qtbot: QtBot
) -> None:
    document = workbench.documents.open_session(Session(engine_thread, asking()))
    session = document.session
    session.start_run({}, RunOptions(store=workbench.history.access.store))
    qtbot.waitUntil(lambda: document.questions.current is not None)

    (waiting,) = store.runs()
    taken = give_answer(store, find_question(store, waiting.run_id), Answer("approve", "their note", "From afar."))

    assert taken is True
    qtbot.waitUntil(lambda: session.shown.view_model is not None and session.shown.view_model.status == "completed")
    assert session.shown.view_model.outputs == {"out": "their note"}
    qtbot.waitUntil(lambda: document.questions.current is None)


@pytest.fixture
def begun_elsewhere(store: Store, engine_thread: EngineThread, qtbot: QtBot) -> Iterator[Session]:
    """A run that is paused in another program on the same history, and will wait for a person there."""
    session = Session(engine_thread, asking())
    session.start_run({}, RunOptions(store=store), paused=True)
    # It is written a moment later.
    qtbot.waitUntil(lambda: [run.status for run in store.runs()] == [RunStatus.PAUSED])
    qtbot.waitUntil(lambda: session.shown.run_id != "")
    yield session
    if session.shown.live is not None:
        session.shown.live.cancel()
        qtbot.waitUntil(lambda: session.shown.live is None)
    session.deleteLater()


@pytest.fixture
def elsewhere(begun_elsewhere: Session, store: Store, qtbot: QtBot) -> Session:
    """That run when it waits for the person."""
    go_on(begun_elsewhere, store, qtbot)
    return begun_elsewhere


def go_on(session: Session, store: Store, qtbot: QtBot) -> None:
    """Let the run in the other process reach its question."""
    assert session.shown.live is not None
    session.shown.live.resume()
    qtbot.waitUntil(lambda: session.shown.view_model is not None and bool(session.shown.view_model.questions))
    qtbot.waitUntil(lambda: store.find(session.shown.run_id).status is RunStatus.WAITING)


def opened(workbench: Workbench, run_id: str, qtbot: QtBot) -> HistoryPage:
    workbench.history.tabs.open_run(run_id)
    qtbot.waitUntil(lambda: run_id in workbench.history.tabs.pages)
    page = workbench.history.tabs.pages[run_id]
    # What the run did is put in a step later; only then does nothing on the page change by itself any more.
    qtbot.waitUntil(lambda: page.session.shown.view_model is not None and page.bar.isVisible())
    return page


def titles(page: HistoryPage) -> list[str]:
    """The actions of the run."""
    return [button.text() for button in page.bar.findChildren(QPushButton) if not button.isHidden()]


def dialog_of(workbench: Workbench, qtbot: QtBot) -> AnswerDialog:
    qtbot.waitUntil(lambda: len(workbench.window.findChildren(AnswerDialog)) == 1)
    return workbench.window.findChildren(AnswerDialog)[0]


def test_run_waiting_in_another_program_is_answered_here(
    workbench: Workbench, elsewhere: Session, qtbot: QtBot
) -> None:
    page = opened(workbench, elsewhere.shown.run_id, qtbot)
    assert mentions(page.bar.text, "Waiting for you … another")
    assert mentions(page.bar.origin, "here or there … continues there")
    assert page.session.shown.view_model is not None
    assert mentions(page.session.shown.view_model.error, "waiting for your answer … here or in the program")
    qtbot.waitUntil(lambda: workbench.status_bar.state.full_text == "Not finished")
    assert titles(page) == ["Answer…", "Open as new document"]

    press(page.bar, "Answer…")
    dialog = dialog_of(workbench, qtbot)
    assert dialog.card.title.full_text == "Check"
    QTest.keyClicks(dialog.card.comment, "From here.")
    press(dialog, "Approve")

    qtbot.waitUntil(
        lambda: elsewhere.shown.view_model is not None and elsewhere.shown.view_model.status == "completed",
    )
    assert elsewhere.shown.view_model.outputs == {"out": "the note"}
    qtbot.waitUntil(lambda: workbench.notices.text("answered").startswith("Your answer was sent."))


def test_run_continues_here_if_the_other_program_ends_before_the_answer(
    workbench: Workbench, store: Store, elsewhere: Session, qtbot: QtBot
) -> None:
    run_id = elsewhere.shown.run_id
    page = opened(workbench, run_id, qtbot)
    press(page.bar, "Answer…")
    dialog = dialog_of(workbench, qtbot)
    assert elsewhere.shown.live is not None
    elsewhere.shown.live.suspend()
    qtbot.waitUntil(lambda: elsewhere.shown.live is None and not store.is_owned(run_id))

    press(dialog, "Reject")

    qtbot.waitUntil(lambda: store.find(run_id).status is RunStatus.COMPLETED)
    ended(page.document, qtbot)
    assert page.session.shown.view_model is not None
    assert page.session.shown.view_model.node("check").outputs.keys() == {"rejected", "comment"}


def test_second_click_on_answer_does_nothing(workbench: Workbench, elsewhere: Session, qtbot: QtBot) -> None:
    page = opened(workbench, elsewhere.shown.run_id, qtbot)
    press(page.bar, "Answer…")
    press(page.bar, "Answer…")
    dialog = dialog_of(workbench, qtbot)
    qtbot.waitUntil(lambda: not workbench.history._answers._worker.is_busy)
    assert workbench.window.findChildren(AnswerDialog) == [dialog]
    press(dialog, "Cancel")


def test_page_follows_a_run_of_another_program(
    workbench: Workbench, store: Store, begun_elsewhere: Session, qtbot: QtBot
) -> None:
    there = begun_elsewhere
    page = opened(workbench, there.shown.run_id, qtbot)
    page.poller._timer.setInterval(20)
    shown = f"Run {there.shown.run_id[:6]}, as it ran · "
    assert page.bar.text == f"{shown}Paused"
    assert titles(page) == ["Open as new document"]

    go_on(there, store, qtbot)
    qtbot.waitUntil(lambda: mentions(page.bar.text, f"{shown}Waiting for you … another"))
    assert titles(page) == ["Answer…", "Open as new document"]
    assert page.session.shown.view_model is not None
    assert mentions(page.session.shown.view_model.error, "waiting for your answer … here or in the program")
    qtbot.waitUntil(lambda: bool(page.document.log.lines))

    assert there.shown.live is not None
    there.shown.live.answer("check", "approve", "the note", "")
    qtbot.waitUntil(lambda: page.bar.text == f"{shown}Done")
    assert titles(page) == ["Open as new document"]
    assert page.session.shown.view_model.outputs == {"out": "the note"}
    assert not page.poller._timer.isActive()
    qtbot.waitUntil(lambda: any(line.text.startswith("Done in ") for line in page.document.log.lines))
    written = [line.written for line in page.document.log.lines]
    assert len(written) == len(set(written)), "nothing is reported twice"


def test_run_whose_waiting_program_ended_is_resumed_instead_of_answered(
    workbench: Workbench, elsewhere: Session, qtbot: QtBot
) -> None:
    page = opened(workbench, elsewhere.shown.run_id, qtbot)
    page.poller._timer.setInterval(20)
    assert elsewhere.shown.live is not None
    elsewhere.shown.live.suspend()
    qtbot.waitUntil(lambda: titles(page) == ["Resume", "Open as new document"])
    assert page.bar.text.endswith("Waiting for you")
