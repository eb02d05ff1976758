"""The run of a subflow in a tab: its nodes, the way back, and which run it follows."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.canvas.node_status_item import NodeStatus
from app.history.past_run_bar import SubflowBar
from app.history.stored_session import SUBFLOW_READ_ONLY
from app.window.document_page import DocumentPage
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.files import dumps
from engine.document.model import Workflow
from engine.document.operations import SetConfig
from engine.run_state.state import NodeState
from tests.app.window.conftest import Script, ended

LEFT = Qt.MouseButton.LeftButton


def inner() -> Workflow:
    """A loop of a draft, as the workflow in a subflow."""
    flow = Builder("Inner")
    text = flow.add("input", id="text", default="the sea")
    loop = flow.add("loop", id="loop", title="Refine", config={"max_iterations": 2, "inject_feedback": False})
    draft = flow.add("llm", id="draft", prompt="Write: {{input}}")
    end = flow.add("exit", id="exit", config={"loop": "loop"})
    out = flow.add("output", id="out")
    flow.connect(text["value"], loop["input"])
    flow.connect(loop["body"], draft["input"])
    flow.connect(draft["output"], end["input"])
    flow.connect(end["output"], out["value"])
    return flow.build()


def outer(workflow: Workflow | None = None) -> Workflow:
    """A loop of three iterations around that subflow."""
    copy = json.loads(dumps(workflow if workflow is not None else inner()))
    flow = Builder("Outer")
    text = flow.add("input", id="text", default="go")
    loop = flow.add("loop", id="again", title="Again", config={"max_iterations": 3})
    part = flow.add("subflow", id="part", title="Write it", config={"file": "inner.loop.json", "workflow": copy})
    end = flow.add("exit", id="end", config={"loop": "again"})
    out = flow.add("output", id="out")
    flow.connect(text["value"], loop["input"])
    flow.connect(loop["body"], part["text"])
    flow.connect(part["out"], end["input"])
    flow.connect(end["output"], out["value"])
    return flow.build()


@pytest.fixture(autouse=True)
def drafts(script: Script) -> None:
    """Each call of the draft gets another reply."""
    script("more", {"replies": [f"draft {number}" for number in range(1, 7)]})


def ran(workbench: Workbench, qtbot: QtBot) -> DocumentPage:
    document = workbench.documents.open_copy(outer())
    workbench.runs.run(document)
    ended(document, qtbot)
    return document


def double_click(document: DocumentPage, node_id: str, qtbot: QtBot) -> None:
    document.canvas.fit_to_view.fit_all()
    viewer, item = document.canvas.viewer, document.canvas.view.nodes[node_id]
    place = viewer.mapFromScene(item.mapToScene(QPointF(item.boundingRect().center())))
    qtbot.mouseDClick(viewer.viewport(), LEFT, pos=place)


def opened(workbench: Workbench, document: DocumentPage, qtbot: QtBot) -> DocumentPage:
    double_click(document, "part", qtbot)
    part = workbench.current
    assert part is not None
    assert part is not document
    return part


def bar_of(document: DocumentPage) -> SubflowBar:
    (bar,) = document.findChildren(SubflowBar)
    return bar


def output_of(document: DocumentPage, node_id: str) -> object:
    session = document.session
    assert session.shown.view_model is not None
    return session.shown.view_model.node(node_id, session.shown.chosen).outputs.get("output")


def card(document: DocumentPage, node_id: str) -> NodeStatus:
    return document.canvas.view.nodes[node_id].status_item.status


def test_double_click_opens_the_subflow_run_of_the_selected_iteration(workbench: Workbench, qtbot: QtBot) -> None:
    document = ran(workbench, qtbot)
    part = opened(workbench, document, qtbot)
    assert part.session.name == "Write it"
    assert bar_of(part).text == "Outer › Write it · Again › iteration 3"
    assert output_of(part, "draft") == "draft 6"
    qtbot.waitUntil(lambda: card(part, "draft").line == "draft 6")
    assert card(part, "draft").state is NodeState.COMPLETED
    assert part.canvas.view.regions.items["loop"].label.content.counter == "iteration 2 of 2"
    workbench.bottom_panel.unfold("iterations")
    assert part.iterations.model.rowCount() == 2

    document.session.shown.look_at("again", 0)
    assert bar_of(part).text == "Outer › Write it · Again › iteration 1"
    assert output_of(part, "draft") == "draft 2"
    part.session.shown.look_at("loop", 0)
    qtbot.waitUntil(lambda: card(part, "draft").line == "draft 1")


def test_subflow_run_is_shown_in_the_inspector(workbench: Workbench, qtbot: QtBot) -> None:
    part = opened(workbench, ran(workbench, qtbot), qtbot)
    assert part.session.shown.view_model is not None
    assert (part.session.shown.view_model.status, part.session.shown.view_model.outputs) == (
        "completed",
        {"out": "draft 6"},
    )
    part.session.select(["draft"])
    part.inspector.show_result()
    page = part.inspector.result
    qtbot.waitUntil(lambda: "call:1:reply" in page.sections)
    assert page.sections["call:1:reply"].content.view.toPlainText() == "draft 6"


def test_subflow_run_is_read_only_and_links_to_its_workflow(workbench: Workbench, qtbot: QtBot) -> None:
    document = ran(workbench, qtbot)
    part = opened(workbench, document, qtbot)
    refused: list[str] = []
    part.session.refused.connect(refused.append)
    assert not part.session.do(SetConfig(("prompt",), {"draft": "Other"}))
    assert refused == [SUBFLOW_READ_ONLY]
    workbench.refresh_actions()
    assert not workbench.actions_by_name["run"].isEnabled()
    qtbot.waitUntil(bar_of(part).open.isVisible)
    QTest.mouseClick(bar_of(part).open, LEFT)
    assert workbench.current not in {None, part, document}
    assert workbench.current.session.workflow == inner()
    assert not workbench.current.session.is_past


def test_breadcrumb_leads_back_and_a_subflow_run_opens_once(workbench: Workbench, qtbot: QtBot) -> None:
    document = ran(workbench, qtbot)
    part = opened(workbench, document, qtbot)
    QTest.mouseClick(bar_of(part).steps[0], LEFT)
    assert workbench.current is document
    assert document.session.selection == ("part",)
    assert opened(workbench, document, qtbot) is part
    assert len(workbench.documents.all) == 2

    workbench.closing.close_document(document)
    assert workbench.documents.all == []


def test_subflow_run_opens_by_keyboard_and_menu(workbench: Workbench, qtbot: QtBot) -> None:
    document = ran(workbench, qtbot)
    action = document.canvas.actions_by_name["open_subflow"]
    document.session.select(["text"])
    assert not action.isEnabled()
    document.session.select(["part"])
    document.canvas.setFocus()
    QTest.keyClick(document.canvas.viewer, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    assert workbench.current is not document
    assert workbench.current.session.name == "Write it"


def test_running_subflow_is_followed(workbench: Workbench, script: Script, qtbot: QtBot) -> None:
    script("more", {"reply": {"text": "word " * 40_000, "stream": 5, "chunk_delay_s": 0.01}})
    document = workbench.documents.open_copy(outer())
    workbench.runs.run(document)
    qtbot.waitUntil(
        lambda: document.session.shown.view_model is not None and bool(document.session.shown.view_model.loops)
    )
    part = opened(workbench, document, qtbot)
    qtbot.waitUntil(lambda: card(part, "draft").state is NodeState.RUNNING)
    qtbot.waitUntil(lambda: "word" in card(part, "draft").line)
    assert document.session.shown.live is not None
    document.session.shown.live.cancel()
    ended(document, qtbot)
    assert part.session.shown.view_model is not None
    assert part.session.shown.view_model.status == "cancelled"
    qtbot.waitUntil(lambda: card(part, "draft").state is NodeState.CANCELLED)


def test_next_run_is_followed_with_the_same_subflow(workbench: Workbench, script: Script, qtbot: QtBot) -> None:
    document = ran(workbench, qtbot)
    part = opened(workbench, document, qtbot)
    script("again")
    workbench.runs.run(document)
    ended(document, qtbot)
    assert output_of(part, "draft") == "again"

    other, _ = SetConfig(("prompt",), {"draft": "Other: {{input}}"}).apply(inner())
    document.session.do(SetConfig(("workflow",), {"part": json.loads(dumps(other))}))
    script("other")
    workbench.runs.run(document)
    ended(document, qtbot)
    assert output_of(part, "draft") == "again"
    assert bar_of(part).text.endswith("from an earlier run")
    assert opened(workbench, document, qtbot) is not part
    assert workbench.current is not None
    assert output_of(workbench.current, "draft") == "other"


def test_nested_subflow_run_can_be_opened(workbench: Workbench, qtbot: QtBot) -> None:
    document = workbench.documents.open_copy(outer(outer()))
    workbench.runs.run(document)
    ended(document, qtbot)
    part = opened(workbench, document, qtbot)
    deeper = opened(workbench, part, qtbot)
    assert bar_of(deeper).text == "Outer › Write it › Write it · Again › iteration 3"
    assert deeper.session.shown.view_model is not None
    assert deeper.session.shown.view_model.path_of("draft") == "again[2].part.again[2].part.loop[1].draft"
    assert output_of(deeper, "draft") == "more"
    QTest.mouseClick(bar_of(deeper).steps[0], LEFT)
    assert workbench.current is document
