"""A run that waits for input: how the window shows it, and how it is answered and continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.engine_thread import EngineThread
from app.runs.run_view_model import RunViewModel
from app.session import Session
from app.timers import call_later
from app.window.bottom_panel import PANELS
from app.window.document_page import DocumentPage
from app.window.question_cards import QuestionCard
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.model import Workflow
from engine.events import AnyEvent, LoopIterationStarted, NodeFailed, NodeStarted, NodeWaiting
from engine.nodes.context import NodeContext
from engine.nodes.node_registry import Registry, builtin_registry
from engine.nodes.spec import Category, NodeConfig, NodeSpec, Outputs, Port, PortType
from engine.run_state.state import NodeState
from engine.runner.options import RunOptions
from tests.app.window.conftest import ended

LEFT = Qt.MouseButton.LeftButton
CHOICES = ("approve", "reject")


async def _ask(context: NodeContext[Any]) -> Outputs:
    answer = await context.ask("approval", "Shall it go out?", value=context.inputs["input"], choices=CHOICES)
    return {"output": f"{answer.choice}: {answer.value} ({answer.comment})"}


ASK = NodeSpec(
    type="ask",
    title="Ask",
    category=Category.LOGIC,
    help="Asks a person; there is none like it in the program.",
    icon="mdi6.account-question-outline",
    config=NodeConfig,
    inputs=lambda _config: (Port("input", PortType.ANY, "What is to be approved."),),
    outputs=lambda _config: (Port("output", PortType.TEXT, "What was answered."),),
    run=_ask,
)
REGISTRY: Registry = builtin_registry().with_types([ASK])


def one_question() -> Workflow:
    flow = Builder("Asking")
    text = flow.add("input", id="text", default="the note")
    ask = flow.add("ask", id="ask", title="Approve")
    out = flow.add("output", id="out")
    flow.connect(text["value"], ask["input"])
    flow.connect(ask["output"], out["value"])
    return flow.build()


def two_questions() -> Workflow:
    flow = Builder("Asking twice")
    for name in ("first", "second"):
        text = flow.add("input", id=f"{name}_text", name=name, default=f"the {name} note")
        ask = flow.add("ask", id=name)
        out = flow.add("output", id=f"{name}_out", name=name)
        flow.connect(text["value"], ask["input"])
        flow.connect(ask["output"], out["value"])
    return flow.build()


def in_a_loop() -> Workflow:
    flow = Builder("Asking again")
    text = flow.add("input", id="text", default="the note")
    loop = flow.add("loop", id="loop", config={"max_iterations": 2})
    ask = flow.add("ask", id="ask", title="Approve")
    end = flow.add("exit", id="exit", config={"loop": "loop"})
    out = flow.add("output", id="out")
    for start, finish in (
        (text["value"], loop["input"]),
        (loop["body"], ask["input"]),
        (ask["output"], end["input"]),
        (end["output"], out["value"]),
    ):
        flow.connect(start, finish)
    return flow.build()


Ask = Callable[[Workflow], DocumentPage]


@pytest.fixture
def asking(workbench: Workbench, engine_thread: EngineThread, qtbot: QtBot) -> Ask:
    """Opens a workflow and runs it until it waits for a person."""

    def run(workflow: Workflow) -> DocumentPage:
        document = workbench.documents.open_session(Session(engine_thread, workflow, registry=REGISTRY))
        session = document.session
        session.start_run({}, RunOptions(registry=REGISTRY))
        qtbot.waitUntil(lambda: session.shown.view_model is not None and bool(session.shown.view_model.questions))
        return document

    return run


def card(document: DocumentPage) -> QuestionCard:
    current = document.questions.current
    assert current is not None
    return current


def press(document: DocumentPage, title: str) -> None:
    (button,) = (button for button in card(document).buttons if button.text() == title)
    QTest.mouseClick(button, LEFT)


def go_there(workbench: Workbench) -> None:
    QTest.mouseClick(workbench.status_bar.question, LEFT)


def test_whole_window_shows_that_a_run_waits_until_answered(workbench: Workbench, asking: Ask, qtbot: QtBot) -> None:
    document = asking(one_question())
    session = document.session
    assert session.shown.view_model is not None
    assert session.shown.view_model.node("ask").state is NodeState.WAITING
    qtbot.waitUntil(lambda: document.canvas.view.nodes["ask"].status_item.status.state is NodeState.WAITING)
    assert document.canvas.view.nodes["ask"].status_item.status.line == "Shall it go out?"
    assert workbench.run_bar.waits.isVisible()
    assert workbench.status_bar.question.text() == "Waiting for you: Approve"
    assert card(document).isVisible()
    assert card(document).value.hasFocus()
    assert document.log.lines[-1].text == "Approve: waiting for you: Shall it go out?"

    go_there(workbench)
    press(document, "Approve")
    ended(document, qtbot)

    assert session.shown.view_model.outputs == {"out": "approve: the note ()"}
    assert session.shown.view_model.node("ask").state is NodeState.COMPLETED
    assert not workbench.run_bar.waits.isVisible()
    assert workbench.status_bar.question.isHidden()
    assert document.questions.isHidden()
    assert "Approve: answered: approve" in [line.text for line in document.log.lines]


@pytest.mark.parametrize("panel", PANELS)
def test_question_comes_above_the_canvas_with_the_keyboard_whatever_panel_is_open(
    workbench: Workbench, asking: Ask, panel: str
) -> None:
    workbench.bottom_panel.unfold(panel)
    document = asking(one_question())
    assert workbench.bottom_panel.open_panel == panel
    shown = card(document)
    assert shown.isVisible()
    assert shown.isAncestorOf(QApplication.focusWidget())
    assert shown.mapTo(document, shown.rect().bottomLeft()).y() < document.canvas.geometry().top()


def test_status_bar_leads_to_the_question_by_keyboard(workbench: Workbench, asking: Ask, qtbot: QtBot) -> None:
    document = asking(one_question())
    document.canvas.setFocus()

    workbench.status_bar.question.setFocus()
    QTest.keyClick(workbench.status_bar.question, Qt.Key.Key_Space)
    assert card(document).isVisible()
    assert card(document).value.hasFocus()

    card(document).value.selectAll()
    QTest.keyClicks(card(document).value, "a better note")
    QTest.keyClick(card(document).value, Qt.Key.Key_Tab)
    QTest.keyClicks(card(document).comment, "now it is fine")
    QTest.keyClick(card(document).comment, Qt.Key.Key_Tab)
    QTest.keyClick(card(document).buttons[1], Qt.Key.Key_Tab)
    QTest.keyClick(card(document).buttons[0], Qt.Key.Key_Space)
    ended(document, qtbot)

    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.outputs == {"out": "approve: a better note (now it is fine)"}


def test_several_questions_can_be_answered_in_any_order(workbench: Workbench, asking: Ask, qtbot: QtBot) -> None:
    document = asking(two_questions())
    questions = document.questions
    qtbot.waitUntil(lambda: questions.count == 2)
    assert workbench.status_bar.question.text() == "Waiting for you: ask and 1 more"
    assert questions.place.text() == "1 of 2"
    go_there(workbench)
    QTest.keyClicks(card(document).comment, "begun")

    QTest.mouseClick(questions.after, LEFT)
    assert card(document).asked.path == "second"
    press(document, "Reject")
    qtbot.waitUntil(lambda: questions.count == 1)

    assert card(document).asked.path == "first"
    assert card(document).comment.text() == "begun"
    press(document, "Approve")
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.outputs == {
        "first": "approve: the first note (begun)",
        "second": "reject: the second note ()",
    }


def test_each_iteration_asks_again(workbench: Workbench, asking: Ask, qtbot: QtBot) -> None:
    document = asking(in_a_loop())
    assert card(document).title.full_text == "Approve (iteration 1)"
    go_there(workbench)

    press(document, "Reject")
    qtbot.waitUntil(lambda: document.questions.count == 1 and card(document).asked.path == "loop[1].ask")
    assert card(document).title.full_text == "Approve (iteration 2)"
    assert card(document).isEnabled()
    assert card(document).value.toPlainText() == "reject: the note ()"

    press(document, "Approve")
    ended(document, qtbot)
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.outputs == {"out": "approve: reject: the note () ()"}


def test_stopped_run_drops_its_question(workbench: Workbench, asking: Ask, qtbot: QtBot) -> None:
    document = asking(one_question())
    go_there(workbench)

    QTest.mouseClick(workbench.run_bar.stop, LEFT)
    ended(document, qtbot)

    assert document.questions.count == 0
    assert document.questions.isHidden()
    assert workbench.status_bar.question.isHidden()
    assert document.session.shown.view_model is not None
    assert document.session.shown.view_model.node("ask").state is NodeState.CANCELLED


def test_question_of_a_background_document_is_shown_with_its_tab(
    workbench: Workbench, asking: Ask, qtbot: QtBot
) -> None:
    document = asking(one_question())
    workbench.documents.new()
    assert workbench.status_bar.question.isHidden()
    assert not document.questions.isVisible()

    workbench.tabs.show_document(document)

    assert workbench.status_bar.question.text() == "Waiting for you: Approve"
    assert card(document).isVisible()


def test_question_does_not_take_the_keyboard_from_someone_who_types(
    workbench: Workbench, asking: Ask, qtbot: QtBot
) -> None:
    workbench.tabs.current_changed.connect(
        lambda: call_later(workbench.window, workbench.palette_panel.filter.setFocus)
    )
    document = asking(one_question())
    assert card(document).isVisible()
    assert workbench.palette_panel.filter.hasFocus()


def test_question_notifies_while_another_window_is_active(
    workbench: Workbench, asking: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench.window, "isActiveWindow", lambda: False)

    asking(one_question())

    assert workbench.notifier.last_text == "“Asking” – Waiting for you: Approve."


def test_show_button_leads_to_the_node(workbench: Workbench, asking: Ask) -> None:
    document = asking(one_question())
    go_there(workbench)
    assert document.session.selection == ()

    (show,) = (button for button in card(document).findChildren(QPushButton) if button.text() == "Show")
    QTest.mouseClick(show, LEFT)

    assert document.session.selection == ("ask",)


def test_click_on_the_status_of_a_waiting_node_brings_its_question(
    workbench: Workbench, asking: Ask, qtbot: QtBot
) -> None:
    document = asking(two_questions())
    document.canvas.fit_to_view.fit_all()
    workbench.bottom_panel.setFocus()
    first, second = (card.asked.path for card in document.questions._cards.values())
    for path in (second, first, second):
        item = document.canvas.view.nodes[path]
        qtbot.waitUntil(lambda item=item: item.status_item is not None and not item.status_item.shape().isEmpty())
        at = document.canvas.viewer.mapFromScene(item.status_item.mapToScene(item.status_item._pill.center()))
        QTest.mouseClick(document.canvas.viewer.viewport(), LEFT, pos=at)
        assert card(document).asked.path == path
        assert card(document).isAncestorOf(QApplication.focusWidget())
    assert document.canvas.view.nodes["first_text"].status_item.shape().isEmpty()


def test_ended_or_retried_loop_drops_its_questions() -> None:
    def asked(event: type[AnyEvent], *values: Any) -> RunViewModel:
        view_model = RunViewModel({"ask": "loop"})
        view_model.apply(NodeStarted("run", 0, 0.0, "loop", "loop", {}))
        view_model.apply(LoopIterationStarted("run", 1, 0.0, "loop", 0, 3, ""))
        view_model.apply(NodeStarted("run", 2, 0.0, "loop[0].ask", "ask", {}))
        view_model.apply(NodeWaiting("run", 3, 0.0, "loop[0].ask", "ask", "approval", "Well?", None, CHOICES))
        assert list(view_model.questions) == ["loop[0].ask"]
        view_model.apply(event("run", 4, 0.0, "loop", *values))
        return view_model

    failed = asked(NodeFailed, "loop", "Another node failed.", "", 1.0)
    assert failed.questions == {}
    assert failed.nodes["loop[0].ask"].state is NodeState.CANCELLED
    restarted = asked(LoopIterationStarted, 0, 3, "")
    assert restarted.questions == {}
    assert "loop[0].ask" not in restarted.nodes
