from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, Qt
from pytestqt.qtbot import QtBot

from app.canvas.edge_item import EdgeFlow
from app.canvas.node_status_item import LoopProgress, NodeStatus
from app.canvas.run_view import RunDecorations
from app.runs.run_view_model import RunViewModel
from app.theme.tokens import DARK
from engine.document.model import Node, Workflow
from engine.document.operations import AddNodes, SetConfig
from engine.events import LoopIterationStarted, NodeAnswered, NodeStarted, NodeWaiting
from engine.plan.structure import analyse
from engine.run_state.state import NodeState
from engine.runner.options import RunOptions
from tests.app.canvas.conftest import Hand, MakeCanvas, settle
from tests.app.canvas.documents import node, workflow


def script(folder: Path, **more: object) -> RunOptions:
    file = folder / "script.json"
    price = {"input_usd_per_million_tokens": 100.0, "output_usd_per_million_tokens": 100.0}
    rules = [{"node": "draft", "iteration": index, "reply": f"Version {index + 1}"} for index in range(3)]
    file.write_text(json.dumps({"rules": rules, "default": "Done.", "price": price, **more}))
    return RunOptions(model=f"scripted:{file}")


def run(hand: Hand, qtbot: QtBot, options: RunOptions) -> None:
    with qtbot.waitSignal(hand.session.shown.ended):
        hand.session.start_run({"task": "A note"}, options)


def state(hand: Hand, node_id: str) -> NodeStatus:
    item = hand.item(node_id).status_item
    return item.status if item is not None else NodeStatus()


def test_finished_run_is_shown_on_cards_edges_and_loop(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    run(hand, qtbot, script(tmp_path))
    assert {node_id: state(hand, node_id).state for node_id in hand.canvas.view.nodes} == dict.fromkeys(
        ("task", "loop", "draft", "exit", "text"), NodeState.COMPLETED
    )
    assert state(hand, "draft").line == "Version 3"
    assert state(hand, "text").line == "Version 3"
    assert all(pipe.flow is EdgeFlow.CARRIED for pipe in hand.canvas.view.edge_items.values())
    label = hand.canvas.view.regions.items["loop"].label.content
    assert (label.counter, label.total, label.done, label.shown) == ("iteration 3 of 3", 3, 3, 2)
    assert label.cost.startswith("$")


def test_click_on_a_dot_shows_its_iteration(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    run(hand, qtbot, script(tmp_path))
    label = hand.canvas.view.regions.items["loop"].label
    hand.click(label.mapToScene(label.dot(0)))
    assert hand.session.shown.chosen == {"loop": 0}
    assert state(hand, "draft").line == "Version 1"
    assert state(hand, "exit").line == "Version 1"
    assert (label.content.counter, label.content.short_counter) == ("iteration 1 of 3", "1 / 3")
    hand.session.shown.look_at_latest()
    assert state(hand, "draft").line == "Version 3"


def test_running_node_shows_the_end_of_its_stream_and_animates(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    rules = [{"node": "draft", "reply": {"text": "word " * 40_000, "stream": 5, "chunk_delay_s": 0.01}}]
    hand.session.start_run({"task": "x"}, script(tmp_path, rules=rules))
    qtbot.waitUntil(lambda: state(hand, "draft").line.count("word") > 2)
    assert state(hand, "draft").state is NodeState.RUNNING
    assert state(hand, "loop").note == "1 / 3"
    assert state(hand, "text").state is NodeState.PENDING
    assert hand.canvas.run_view.is_moving
    assert hand.session.shown.live is not None
    hand.session.shown.live.cancel()
    qtbot.waitUntil(lambda: hand.session.shown.live is None)
    qtbot.waitUntil(lambda: not hand.canvas.run_view.is_moving)
    assert state(hand, "draft").state is NodeState.CANCELLED
    assert state(hand, "text").state is NodeState.CANCELLED


def test_dots_move_along_edges_that_carry_values(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    rules = [{"node": "draft", "reply": {"text": "Slow", "delay_s": 0.15}}]
    hand.session.start_run({"task": "x"}, script(tmp_path, rules=rules))
    qtbot.waitUntil(lambda: hand.canvas.run_view.edge_animation.is_moving)
    qtbot.waitUntil(lambda: hand.session.shown.live is None)
    qtbot.waitUntil(lambda: not hand.canvas.run_view.edge_animation.is_moving)
    qtbot.waitUntil(lambda: not hand.canvas.run_view.is_moving)


def branching() -> Workflow:
    return workflow(
        [
            node("task", "input", "Task", name="task"),
            node(
                "way",
                "router",
                "Way",
                mode="rules",
                branches=[{"name": "left", "when": "true"}, {"name": "right", "when": "else"}],
            ),
            node("left", "output", "Left", name="left"),
            node("right", "output", "Right", name="right"),
        ],
        ["task.value -> way.input", "way.left -> left.value", "way.right -> right.value"],
        {"task": (0, 80), "way": (240, 80), "left": (520, 0), "right": (520, 160)},
    )


def test_dead_branch_is_dimmed_and_dashed(make_canvas: MakeCanvas, qtbot: QtBot, tmp_path: Path) -> None:
    hand = make_canvas(branching())
    run(hand, qtbot, script(tmp_path))
    assert state(hand, "right").state is NodeState.SKIPPED
    assert hand.item("right").opacity() < 0.7
    dead = hand.canvas.view.edge_items["way.right", "right.value"]
    assert dead.flow is EdgeFlow.DEAD
    assert dead.pen().style() != Qt.PenStyle.SolidLine
    assert hand.canvas.view.edge_items["way.left", "left.value"].flow is EdgeFlow.CARRIED
    assert state(hand, "way").line == "→ left"


def test_failed_node_shows_its_error(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    rules = [{"node": "draft", "reply": {"error": {"kind": "bad_request", "message": "Too odd."}}}]
    run(hand, qtbot, script(tmp_path, rules=rules))
    assert state(hand, "draft").state is NodeState.FAILED
    assert "Too odd." in state(hand, "draft").line


def test_new_run_clears_the_status_of_the_last_one(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    run(hand, qtbot, script(tmp_path))
    rules = [{"node": "draft", "reply": {"text": "x", "delay_s": 5}}]
    hand.session.start_run({"task": "x"}, script(tmp_path, rules=rules))
    assert state(hand, "text").state is NodeState.PENDING
    assert state(hand, "text").line == ""
    assert hand.canvas.view.edge_items["exit.output", "text.value"].flow is EdgeFlow.NONE


def test_node_added_after_the_run_has_no_status(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    run(hand, qtbot, script(tmp_path))
    hand.session.do(AddNodes((Node(id="later", type="transform"),)))
    assert state(hand, "later").state is None
    assert state(hand, "draft").state is NodeState.COMPLETED


def test_problems_are_counted_on_the_card_and_listed_in_its_tooltip(hand: Hand, qtbot: QtBot) -> None:
    hand.session.do(SetConfig(("prompt",), {"draft": "{{input}} {{missing}}"}))
    settle(hand, qtbot)
    qtbot.waitUntil(lambda: state(hand, "draft").errors == 1)
    assert "missing" in hand.item("draft").toolTip()
    hand.session.undo()
    settle(hand, qtbot)
    qtbot.waitUntil(lambda: state(hand, "draft").errors == 0)
    assert "missing" not in hand.item("draft").toolTip()


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_status_can_be_painted(hand: Hand, qtbot: QtBot, tmp_path: Path, theme: str) -> None:
    from app.theme.style import style

    run(hand, qtbot, script(tmp_path))
    style().choose(theme)
    item = hand.item("draft").status_item
    assert item is not None
    pictures = set()
    for each in NodeState:
        item.set_status(NodeStatus(each, "", "words", errors=1))
        pictures.add(hand.canvas.grab().toImage().copy(500, 60, 300, 120).bits().tobytes())
    assert len(pictures) == len(NodeState)
    style().choose("dark")


def test_restored_region_shows_the_run_again(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    run(hand, qtbot, script(tmp_path))
    regions = hand.canvas.view.regions.items
    hand.session.do(SetConfig(("loop",), {"exit": "ghost"}))
    qtbot.waitUntil(lambda: regions == {})
    hand.session.undo()
    qtbot.waitUntil(lambda: "loop" in regions)
    assert regions["loop"].label.content.counter == "iteration 3 of 3"


def test_status_is_a_colored_stroke_when_zoomed_far_out(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    run(hand, qtbot, script(tmp_path))
    hand.canvas.viewer.zoom_to(0.15)
    hand.canvas.center_on("draft")
    card = hand.item("draft").card_rect
    at = hand.canvas.viewer.mapTo(hand.canvas, hand.at(card.topRight() - QPointF(40, 2)))
    assert hand.canvas.grab().toImage().pixelColor(at).name() == DARK.good


def test_running_subflow_shows_its_running_node_and_waits_for_input() -> None:
    structure = analyse(Workflow(nodes=(Node(id="part", type="subflow"),)))
    view_model, part = RunViewModel(structure.parent), structure.workflow.node("part")
    marks = RunDecorations(view_model, structure, {})
    view_model.apply(NodeStarted("run", 0, 0.0, "part", "subflow", {}))
    assert marks.card(part, None) == NodeStatus(NodeState.RUNNING)
    view_model.apply(NodeStarted("run", 0, 0.0, "part.loop", "loop", {}))
    view_model.apply(LoopIterationStarted("run", 0, 0.0, "part.loop", 0, 4, ""))
    view_model.apply(NodeStarted("run", 0, 0.0, "part.loop[0].draft", "approval", {}))
    assert marks.card(part, None).line == "draft · 1 of 4"
    view_model.apply(
        NodeWaiting("run", 0, 0.0, "part.loop[0].draft", "approval", "approval", "Fine?", "x", ("approve",))
    )
    assert marks.card(part, None) == NodeStatus(NodeState.WAITING, "", "Fine?")
    view_model.apply(NodeAnswered("run", 0, 0.0, "part.loop[0].draft", "approve", "x", ""))
    assert marks.card(part, None).state is NodeState.RUNNING


def test_card_of_a_collapsed_loop_shows_progress_and_result(hand: Hand, qtbot: QtBot, tmp_path: Path) -> None:
    hand.canvas.commands.set_collapsed("loop", collapsed=True)
    run(hand, qtbot, script(tmp_path))
    assert state(hand, "loop").state is NodeState.COMPLETED
    assert state(hand, "loop").bar == LoopProgress(3, 0, 3)
    assert state(hand, "loop").line == "Version 3"
    assert {edge.flow for edge in hand.canvas.view.edge_items.values()} == {EdgeFlow.CARRIED}
    hand.canvas.commands.set_collapsed("loop", collapsed=False)
    assert state(hand, "draft").line == "Version 3"
    assert state(hand, "loop").line == ""


def test_card_of_a_collapsed_loop_shows_what_its_body_waits_for(
    make_canvas: MakeCanvas, qtbot: QtBot, tmp_path: Path
) -> None:
    hand = make_canvas(
        workflow(
            [
                node("task", "input", name="task"),
                node("loop", "loop", max_iterations=2),
                node("check", "approval", message="Is this good?"),
                node("exit", "exit", loop="loop"),
            ],
            ["task.value -> loop.input", "loop.body -> check.input", "check.approved -> exit.input"],
        )
    )
    hand.canvas.commands.set_collapsed("loop", collapsed=True)
    hand.session.start_run({"task": "x"}, script(tmp_path))
    qtbot.waitUntil(lambda: state(hand, "loop").state is NodeState.WAITING)
    assert state(hand, "loop").line == "Is this good?"
