"""Runs that wait for a person: approvals and questions, answered by mouse, now or later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.window.document_page import DocumentPage
from app.window.question_cards import QuestionCard
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.run_state.state import NodeState
from engine.store import RunStatus, Store
from engine.values import Value
from tests.app.history.conftest import MakeWindow, close
from tests.app.history.stored_runs import run_and_store
from tests.app.window.conftest import Script, answer, drafted, ended, open_file, question, saved
from tests.app.window.conftest import press as press_in

LEFT = Qt.MouseButton.LeftButton


def approval() -> Workflow:
    flow = Builder("To approve")
    text = flow.add("input", id="text", default="A note.")
    ask = flow.add("approval", id="ask", title="Approve", config={"message": "Shall it go out?"})
    flow.connect(text["value"], ask["input"])
    for port in ("approved", "rejected", "comment"):
        out = flow.add("output", id=port)
        flow.connect(ask[port], out["value"])
    return flow.build()


def agent(**config: Value) -> Workflow:
    flow = Builder("Agent at work")
    text = flow.add("input", id="text", default="How far is it?")
    agent = flow.add("agent", id="agent", title="Agent", prompt="{{input}}", config=config)
    out = flow.add("output", id="out")
    flow.connect(text["value"], agent["input"])
    flow.connect(agent["output"], out["value"])
    return flow.build()


def waiting(workbench: Workbench, workflow: Workflow, qtbot: QtBot) -> DocumentPage:
    """A run that waits for a person, whose question is in view."""
    document = workbench.documents.open_copy(workflow)
    workbench.runs.run(document)
    asked(workbench, document, qtbot)
    return document


def asked(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> QuestionCard:
    qtbot.waitUntil(lambda: document.questions.count == 1)
    QTest.mouseClick(workbench.status_bar.question, LEFT)
    card = document.questions.current
    assert card is not None
    qtbot.waitUntil(card.isVisible)
    return card


def press(card: QuestionCard, title: str) -> None:
    (button,) = (button for button in card.buttons if button.text() == title)
    QTest.mouseClick(button, LEFT)


def outputs(document: DocumentPage, qtbot: QtBot) -> dict[str, Value]:
    ended(document, qtbot)
    view_model = document.session.shown.view_model
    assert view_model is not None
    assert view_model.status == "completed", view_model.error
    return dict(view_model.outputs)


@pytest.mark.parametrize(
    ("button", "edit", "comment", "given"),
    [
        ("Approve", "", "", {"approved": "A note.", "comment": ""}),
        ("Reject", "", "Shorter.", {"rejected": "A note.", "comment": "Shorter."}),
        ("Approve", "A better note.", "", {"approved": "A better note.", "comment": ""}),
    ],
    ids=["approve", "reject with a comment", "edit"],
)
def test_approval_has_three_answers(
    workbench: Workbench, qtbot: QtBot, button: str, edit: str, comment: str, given: dict[str, Value]
) -> None:
    document = waiting(workbench, approval(), qtbot)
    card = asked(workbench, document, qtbot)
    node = document.canvas.view.nodes["ask"].status_item
    qtbot.waitUntil(lambda: node.status.state is NodeState.WAITING)
    assert node.status.line == "Shall it go out?"
    if edit:
        QTest.mouseClick(card.value.viewport(), LEFT)
        card.value.selectAll()
        QTest.keyClicks(card.value, edit)
    if comment:
        QTest.mouseClick(card.comment, LEFT)
        QTest.keyClicks(card.comment, comment)
    press(card, button)
    assert outputs(document, qtbot) == given


def test_agent_asks_and_gets_its_answer(workbench: Workbench, script: Script, qtbot: QtBot) -> None:
    call = {"tool_calls": [{"name": "ask_person", "arguments": {"question": "In which unit?"}}]}
    script("So 3 miles.", {"node": "agent", "replies": [call]})
    document = waiting(workbench, agent(tools=["ask_person"]), qtbot)
    card = asked(workbench, document, qtbot)
    assert card.message.text() == "In which unit?"
    qtbot.waitUntil(lambda: document.canvas.view.nodes["agent"].status_item.status.line == "In which unit?")
    QTest.mouseClick(card.answer, LEFT)
    QTest.keyClicks(card.answer, "miles")
    press(card, "Send")
    assert outputs(document, qtbot) == {"out": "So 3 miles."}
    assert document.session.shown.view_model is not None
    (called,) = document.session.shown.view_model.node("agent").tool_calls
    assert (called.tool, called.result) == ("ask_person", "miles")


@pytest.mark.parametrize(("button", "made"), [("Approve", True), ("Reject", False)])
def test_tool_is_called_only_after_approval(
    workbench: Workbench, script: Script, tmp_path: Path, qtbot: QtBot, button: str, made: bool
) -> None:
    call = {"tool_calls": [{"name": "search_files", "arguments": {"query": "sea"}}]}
    script("Nothing found.", {"node": "agent", "replies": [call]})
    document = waiting(workbench, agent(tools=["search_files"], require_approval=["search_files"]), qtbot)
    card = asked(workbench, document, qtbot)
    assert card.message.text() == 'May the tool "search_files" be called with these arguments?'
    assert json.loads(card.value.toPlainText()) == {"query": "sea"}
    press(card, button)
    assert outputs(document, qtbot) == {"out": "Nothing found."}
    assert document.session.shown.view_model is not None
    (called,) = document.session.shown.view_model.node("agent").tool_calls
    assert called.error.startswith("A person refused this call.") is not made


def test_stored_run_shows_the_steps_of_its_agent(
    workbench: Workbench, store: Store, tmp_path: Path, qtbot: QtBot
) -> None:
    call = {"text": "I look.", "tool_calls": [{"name": "search_files", "arguments": {"query": "sea"}}]}
    script = tmp_path / "agent.json"
    script.write_text(json.dumps({"rules": [{"node": "agent", "replies": [call, "Nothing there."]}]}))
    run_id = run_and_store(store, agent(tools=["search_files"]), f"scripted:{script}")
    workbench.history.tabs.open_run(run_id)
    qtbot.waitUntil(lambda: workbench.current is not None and workbench.current.session.shown.run_id == run_id)
    document = workbench.current
    assert document is not None
    document.session.select(["agent"])
    document.inspector.show_result()
    qtbot.waitUntil(lambda: "steps" in document.inspector.result.sections)
    steps = document.inspector.result.sections["steps"].content.view.text()
    assert steps.startswith("Turn 1\nI look.\n→ search_files(query: sea)\n= ")
    node = document.canvas.view.nodes["agent"]
    qtbot.waitUntil(lambda: node.status_item is not None)
    assert node.status_item.status.line == "Nothing there."


def test_window_closes_while_a_run_waits_and_the_answer_comes_later(
    make_window: MakeWindow, store: Store, qtbot: QtBot
) -> None:
    workbench = make_window()
    document = waiting(workbench, approval(), qtbot)
    run_id = document.session.shown.run_id
    workbench.closing.close_document(document)
    assert question(workbench.window).text() == "“To approve” is waiting for your answer."
    answer(workbench.window, "Answer later")
    qtbot.waitUntil(lambda: workbench.closing.background == [])
    assert store.find(run_id).status is RunStatus.WAITING
    close(workbench, qtbot)

    later = make_window()
    later.bottom_panel.unfold("runs")
    qtbot.waitUntil(lambda: "waiting for your answer" in later.notices.text("unfinished"))
    press_in(later.notices, "Show run")
    qtbot.waitUntil(lambda: later.current is not None and later.current.session.shown.run_id == run_id)
    shown = later.current
    assert shown is not None
    press_in(later.history.tabs.pages[run_id].bar, "Resume")
    card = asked(later, shown, qtbot)
    assert card.message.text() == "Shall it go out?"
    press(card, "Approve")
    assert outputs(shown, qtbot) == {"approved": "A note.", "comment": ""}
    qtbot.waitUntil(lambda: store.find(run_id).status is RunStatus.COMPLETED)


@pytest.mark.parametrize("field", ["value", "comment", ""])
def test_closing_says_that_a_typed_answer_is_not_saved(workbench: Workbench, field: str, qtbot: QtBot) -> None:
    document = waiting(workbench, approval(), qtbot)
    card = asked(workbench, document, qtbot)
    if field:
        QTest.keyClicks(getattr(card, field), "x")
    workbench.closing.close_document(document)
    assert ("not saved" in question(workbench.window).informativeText()) is bool(field)
    answer(workbench.window, "Cancel")
    press(card, "Approve")
    outputs(document, qtbot)


def test_waiting_run_is_offered_once_where_its_document_is_in_front(
    make_window: MakeWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    file = saved(tmp_path, workflow=approval())
    workbench = make_window()
    document = open_file(workbench, file)
    workbench.runs.run(document)
    asked(workbench, document, qtbot)
    workbench.closing.close_document(document)
    answer(workbench.window, "Answer later")
    qtbot.waitUntil(lambda: workbench.closing.background == [])
    close(workbench, qtbot)

    later = make_window()
    again = open_file(later, file)
    qtbot.waitUntil(lambda: "waiting for your answer" in again.bars.text("run"))
    qtbot.waitUntil(lambda: later.notices.text("unfinished") == "")
    later.documents.open_copy(drafted())
    later.history.access.opened.emit()
    qtbot.waitUntil(lambda: later.notices.text("unfinished") != "")
    later.tabs.show_document(again)
    assert later.notices.text("unfinished") == ""
    again.resume_wanted.emit()
    card = asked(later, again, qtbot)

    assert later.notices.text("unfinished") == ""
    press(card, "Approve")
    outputs(again, qtbot)


def test_background_run_with_a_question_waits_in_the_history(
    make_window: MakeWindow, store: Store, qtbot: QtBot
) -> None:
    workbench = make_window()
    document = workbench.documents.open_copy(drafted())
    workbench.runs.step_node(document)
    qtbot.waitUntil(lambda: document.session.shown.view_model.node("text").state is NodeState.COMPLETED)
    run_id = document.session.shown.run_id
    workbench.closing.close_document(document)
    answer(workbench.window, "Run in background")

    qtbot.waitUntil(lambda: workbench.closing.background == [])
    assert store.find(run_id).status is RunStatus.WAITING


def test_window_closes_and_leaves_a_waiting_run(make_window: MakeWindow, store: Store, qtbot: QtBot) -> None:
    workbench = make_window()
    document = waiting(workbench, approval(), qtbot)
    document.session.mark_saved()
    run_id = document.session.shown.run_id
    workbench.window.close()
    answer(workbench.window, "Answer later")
    qtbot.waitUntil(lambda: workbench.closing.background == [])
    assert not workbench.window.isVisible()
    workbench.history.access.close()
    qtbot.waitUntil(lambda: not workbench.history.access.is_busy)
    assert store.find(run_id).status is RunStatus.WAITING
