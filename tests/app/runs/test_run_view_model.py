"""The view model of a run: nodes that are cancelled while the run continues."""

from __future__ import annotations

from typing import Any

import pytest

from app.runs.loop_status import warning_label
from app.runs.run_status import state_line
from app.runs.run_view_model import RunViewModel
from engine.document.model import Node, Workflow
from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    NodeWaiting,
    RunCancelled,
    RunResumed,
    RunStarted,
)
from engine.models.protocol import Usage
from engine.run_state.state import NodeState

CHOICES = ("approve", "reject")


def view_model_of(*events: tuple[type[AnyEvent], Any]) -> RunViewModel:
    view_model = RunViewModel({})
    for number, (kind, *values) in enumerate(events):
        view_model.apply(kind("run", number, 0.0, *values))
    return view_model


def begun(path: str, node_type: str) -> tuple[Any, ...]:
    return (NodeStarted, path, node_type, {})


def asks(path: str) -> tuple[Any, ...]:
    return (NodeWaiting, path, "ask", "approval", "Well?", None, CHOICES)


AT_WORK_IN_A_SUBFLOW = (
    begun("part", "subflow"),
    begun("part.ask", "ask"),
    asks("part.ask"),
    begun("part.draft", "llm"),
)
AT_WORK_IN_ITEMS = (
    begun("each", "iterator"),
    *((LoopIterationStarted, "each", index, 2, "") for index in range(2)),
    *(begun(f"each[{index}].draft", "llm") for index in range(2)),
    begun("each[0].ask", "ask"),
    asks("each[0].ask"),
)


def test_the_time_of_a_resumed_run_leaves_out_the_time_without_a_process() -> None:
    view_model = RunViewModel({})
    view_model.apply(RunStarted("run", 0, 100.0, "", "Sample", {}, ()))
    view_model.apply(NodeStarted("run", 1, 103.0, "draft", "llm", {}))
    view_model.apply(RunResumed("run", 2, 5000.0, ""))

    assert state_line(view_model, Workflow(), 5004.0).endswith(" · 7.0 s")


def test_failed_subflow_drops_its_questions_and_running_nodes() -> None:
    view_model = view_model_of(*AT_WORK_IN_A_SUBFLOW, (NodeFailed, "part", "subflow", "Another node failed.", "", 1.0))
    assert view_model.questions == {}
    assert view_model.nodes["part.ask"].state is view_model.nodes["part.draft"].state is NodeState.CANCELLED
    assert view_model.nodes["part"].state is NodeState.FAILED


def test_failed_item_has_nothing_running_and_others_continue() -> None:
    figures = ("failed", "No.", None, None, Usage(), 0.0, 0.0)
    view_model = view_model_of(*AT_WORK_IN_ITEMS, (LoopIterationCompleted, "each", 0, "in", None, None, *figures))
    assert view_model.questions == {}
    assert view_model.nodes["each[0].ask"].state is view_model.nodes["each[0].draft"].state is NodeState.CANCELLED
    assert view_model.nodes["each[1].draft"].state is NodeState.RUNNING


def test_loop_that_ends_in_mid_iteration_has_nothing_running() -> None:
    """The loop timed out and returned its last result."""
    view_model = view_model_of(
        begun("loop", "loop"),
        (LoopIterationStarted, "loop", 0, 3, ""),
        begun("loop[0].draft", "llm"),
        begun("after", "llm"),
        (NodeCompleted, "loop", "loop", {"output": "last"}, Usage(), 0.0, 1.0),
    )
    assert view_model.nodes["loop[0].draft"].state is NodeState.CANCELLED
    assert view_model.nodes["loop"].state is NodeState.COMPLETED
    assert view_model.nodes["after"].state is NodeState.RUNNING


def test_stopped_run_has_nothing_running() -> None:
    view_model = view_model_of(*AT_WORK_IN_ITEMS, (RunCancelled, "", {}, Usage(), 0.0, 1.0))
    assert view_model.questions == {}
    assert {execution.state for execution in view_model.nodes.values()} == {NodeState.CANCELLED}


@pytest.mark.parametrize(
    ("warning", "label"),
    [
        ("loop[2].draft: Cut off: 9 tokens.", "Draft (iteration 3): Cut off: 9 tokens."),
        ("loop: 99 is too many.", "Refine: 99 is too many."),
        ("Most of the budget is used: $1.", "Most of the budget is used: $1."),
    ],
)
def test_warning_names_its_place_as_the_canvas_does(warning: str, label: str) -> None:
    nodes = (Node(id="loop", type="loop", title="Refine"), Node(id="draft", type="llm", title="Draft"))
    assert warning_label(warning, Workflow(nodes=nodes)) == label
