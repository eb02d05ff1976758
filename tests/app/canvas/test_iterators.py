"""Iterators on the canvas: adding them with their aggregator, their region, and their progress."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.canvas.edge_item import EdgeFlow
from app.canvas.node_status_item import LoopProgress
from app.canvas.operation_builders import add
from app.canvas.run_view import RunDecorations
from app.history.iteration_detail import LoopSelection
from app.inspector.template_variables import variables_at
from app.runs.run_view_model import RunViewModel
from app.window.problems_panel import quick_fixes
from engine.document.model import Workflow
from engine.events import LoopIterationCompleted, LoopIterationStarted, NodeStarted
from engine.models.protocol import Usage
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import NamedText, TextKind
from engine.plan.structure import analyse
from engine.plan.validation import validate_structure
from engine.run_state.state import NodeState
from engine.runner.options import RunOptions
from tests.app.canvas.conftest import Hand, MakeCanvas
from tests.app.canvas.documents import node, workflow


def items(**config: object) -> Workflow:
    return workflow(
        [
            node("each", "iterator", "Each", source="list", items=["x", "y", "z"], **config),
            node("mark", "transform", "Mark", template="{{item}}{{index}}{{input}}"),
            node("gather", "aggregator", "Gather", iterator="each"),
            node("all", "output", "All", name="all"),
        ],
        ["each.item -> mark.input", "mark.output -> gather.input", "gather.output -> all.value"],
        {"each": (0, 80), "mark": (280, 80), "gather": (560, 80), "all": (840, 80)},
    )


@pytest.fixture
def hand(make_canvas: MakeCanvas) -> Hand:
    return make_canvas(items(max_concurrency=3))


def test_adding_an_iterator_adds_its_aggregator() -> None:
    spec = builtin_registry().find("iterator")
    assert spec is not None
    step = add(Workflow(), spec, (0, 0)).with_operations()

    after, _ = step.apply(Workflow())

    assert step.title == "Add Iterator and Aggregator"
    assert {there.type: there.config for there in after.nodes} == {
        "iterator": {},
        "aggregator": {"iterator": "iterator"},
    }


def test_region_of_an_iterator_is_labeled_for_each_item(hand: Hand) -> None:
    region = hand.canvas.view.regions.items["each"]

    assert region.arrow_label == "for each item · 3 at a time"
    assert region.label.icon == "mdi6.format-list-numbered"


def test_run_shows_the_items_of_an_iterator(hand: Hand, qtbot: QtBot) -> None:
    with qtbot.waitSignal(hand.session.shown.ended):
        hand.session.start_run({}, RunOptions())

    label = hand.canvas.view.regions.items["each"].label.content
    assert (label.counter, label.total, label.done) == ("item 3 of 3", 3, 3)
    assert all(pipe.flow is EdgeFlow.CARRIED for pipe in hand.canvas.view.edge_items.values())
    state = hand.item("gather").status_item
    assert state is not None
    assert state.status.line == "3 entries"
    hand.session.shown.look_at("each", 0)
    mark = hand.item("mark").status_item
    assert mark is not None
    assert mark.status.line == "x0x"
    looked_at = LoopSelection(hand.session)
    assert (looked_at.loop_id, looked_at.place) == ("each", "each[0]")


def test_failed_items_are_counted_on_the_card_and_crossed_on_the_label(make_canvas: MakeCanvas, qtbot: QtBot) -> None:
    hand = make_canvas(
        workflow(
            [
                node("each", "iterator", "Each", source="list", items=[2, 0, 4], on_item_error="skip"),
                node("mark", "transform", "Mark", mode="expression", expression="8 / item"),
                node("gather", "aggregator", "Gather", iterator="each"),
                node("all", "output", "All", name="all"),
            ],
            ["each.item -> mark.input", "mark.output -> gather.input", "gather.output -> all.value"],
            {"each": (0, 80), "mark": (280, 80), "gather": (560, 80), "all": (840, 80)},
        )
    )
    with qtbot.waitSignal(hand.session.shown.ended):
        hand.session.start_run({}, RunOptions())

    state, content = hand.item("each").status_item, hand.canvas.view.regions.items["each"].label.content
    assert state is not None
    assert state.status.bar == LoopProgress(done=2, failed=1, total=3)
    assert state.status.note.endswith("1 failed")
    assert content.failed == {1}
    assert [content.dot_tooltip(index) for index in range(3)] == ["Item 1", "Item 2, failed", "Item 3"]
    hand.session.select(["mark"])
    hand.session.shown.look_at("each", 1)
    mark = hand.item("mark").status_item
    assert mark is not None
    assert mark.status.state is NodeState.FAILED


def test_progress_of_a_running_iterator_counts_items_in_any_order() -> None:
    structure = analyse(items())
    view_model = RunViewModel(structure.parent)
    view_model.apply(NodeStarted("run", 0, 0.0, "each", "iterator", {}))
    base = ("run", 0, 0.0, "each")
    for index in range(3):
        view_model.apply(LoopIterationStarted(*base, index, 3, ""))
    marks, each = RunDecorations(view_model, structure, {}), structure.workflow.node("each")
    for index, branch in ((2, None), (1, "failed")):
        figures = (branch, None, None, None, Usage(), 0.0, 0.0)
        view_model.apply(LoopIterationCompleted(*base, index, "in", "out", "out", *figures))

    assert marks.card(each, None).bar == LoopProgress(done=1, failed=1, total=3)
    assert marks.card(each, None).note == "2 / 3 · 1 failed"
    content = marks.loop("each", "Each")
    assert (content.done, content.ended_ahead, content.failed) == (0, {1, 2}, {1})


@pytest.mark.parametrize(("outer", "inner"), [("iterator", "loop"), ("loop", "iterator")])
def test_nested_loop_and_iterator_each_show_progress(
    make_canvas: MakeCanvas, qtbot: QtBot, outer: str, inner: str
) -> None:
    ends = {"iterator": ("aggregator", "item", "input", "output"), "loop": ("exit", "body", "input", "output")}
    config: dict[str, dict[str, object]] = {
        "iterator": {"source": "list", "items": ["x", "y"]},
        "loop": {"max_iterations": 2},
    }
    name = {"iterator": "iterator", "loop": "loop"}
    words = "{{index}}.{{loop.index}}"
    hand = make_canvas(
        workflow(
            [
                node("go", "input", "Go", default="go"),
                node("around", outer, "Around", **config[outer]),
                node("within", inner, "Within", **config[inner]),
                node("mark", "transform", "Mark", template=f"{words} {{{{input}}}}"),
                node("within_end", ends[inner][0], "End", **{name[inner]: "within"}),
                node("around_end", ends[outer][0], "End", **{name[outer]: "around"}),
                node("all", "output", "All", name="all"),
            ],
            [
                *(["go.value -> around.input"] if outer == "loop" else []),
                f"around.{ends[outer][1]} -> within.{'items' if inner == 'iterator' else 'input'}",
                f"within.{ends[inner][1]} -> mark.input",
                "mark.output -> within_end.input",
                "within_end.output -> around_end.input",
                "around_end.output -> all.value",
            ],
            {},
        )
    )
    with qtbot.waitSignal(hand.session.shown.ended):
        hand.session.start_run({}, RunOptions())

    def line() -> str:
        state = hand.item("mark").status_item
        assert state is not None
        return state.status.line

    for loop in ("around", "within"):
        state = hand.item(loop).status_item
        assert state is not None
        assert state.status.bar == LoopProgress(2, 0, 2)
    assert line().startswith("1.1 ")
    for loop, index in (("around", 0), ("within", 0)):
        label = hand.canvas.view.regions.items[loop].label
        hand.click(label.mapToScene(label.dot(index)))
    assert hand.session.shown.chosen == {"around": 0, "within": 0}
    assert line().startswith("0.0 ")
    hand.session.shown.look_at("within", 1)
    assert line().startswith("0.1 " if inner == "loop" else "1.0 ")


def test_items_that_end_out_of_order_are_shown_at_their_index() -> None:
    view_model = RunViewModel({"mark": "each"})
    base = ("run", 0, 0.0, "each")
    for index in range(3):
        view_model.apply(LoopIterationStarted(*base, index, 3, ""))
    ended = {}
    for index in (2, 0, 1):
        figures = (None, None, None, None, None, Usage(), 0.5, 0.0)
        view_model.apply(LoopIterationCompleted(*base, index, "in", f"out {index}", *figures))
        ended[index] = [iteration.index for iteration in view_model.loop("each").iterations]

    assert ended == {2: [], 0: [0], 1: [0, 1, 2]}
    assert view_model.loop("each").cost_usd == 1.5


def test_completion_in_an_iterator_offers_item_and_index() -> None:
    structure = analyse(items())

    offered = {name.text for name in variables_at(structure, structure.workflow.node("mark"), _text())}

    assert {"item", "index"} <= offered
    assert not {"item"} & {name.text for name in variables_at(structure, structure.workflow.node("all"), _text())}


def _text() -> NamedText:
    return NamedText("template", TextKind.TEMPLATE, "")


def test_missing_aggregator_can_be_added() -> None:
    whole = items()
    broken = whole.model_copy(update={"nodes": tuple(there for there in whole.nodes if there.id != "gather")})
    structure = analyse(broken)
    (problem,) = [problem for problem in validate_structure(structure) if problem.code == "missing-exit"]

    (fix,) = quick_fixes(problem, structure)

    after, _ = fix.operation.apply(broken)
    assert fix.title == "Add the missing aggregator"
    assert after.node("aggregator").config == {"iterator": "each"}
