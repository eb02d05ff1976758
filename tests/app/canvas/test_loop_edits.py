"""Wrapping nodes in a loop, unwrapping it, and moving nodes in and out of a body."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from app.canvas.loop_edits import Document, insert_into_body, take_out_of_body, unwrap, wrap
from app.node_layout import Box, Position, auto_layout, stored_position
from engine import validate
from engine.document.model import Workflow
from engine.document.operations import Batch, OperationError
from engine.document.problems import has_errors
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import ITERATOR, LOOP
from engine.plan.structure import analyse
from tests.app.canvas.documents import nested, node, refine, workflow


def opened(document: Workflow, places: dict[str, Position] | None = None) -> Document:
    structure = analyse(document)
    boxes = {one.id: Box(160, 84) for one in document.nodes}
    computed = places or auto_layout(document, structure, boxes)
    return Document(document, structure, builtin_registry(), computed, boxes)


def edges(document: Workflow) -> set[str]:
    return {f"{edge.from_} -> {edge.to}" for edge in document.edges}


def applied(document: Workflow, batch: Batch) -> Workflow:
    return batch.apply(document)[0]


def chain(*names: str) -> Workflow:
    ends = ["text.value"]
    for name in names:
        ends += [f"{name}.input", f"{name}.output"]
    ends.append("out.value")
    return workflow(
        [
            node("text", "input"),
            *(node(name, "llm", prompt="{{input}}") for name in names),
            node("out", "output"),
        ],
        [f"{ends[place]} -> {ends[place + 1]}" for place in range(0, len(ends), 2)],
    )


def test_nodes_of_a_chain_are_wrapped():
    document = chain("draft", "review")
    batch = wrap(opened(document), ["draft", "review"], LOOP)
    wrapped = applied(document, batch)
    assert edges(wrapped) == {
        "text.value -> loop.input",
        "loop.body -> draft.input",
        "draft.output -> review.input",
        "review.output -> exit.input",
        "exit.output -> out.value",
    }
    assert batch.title == "Wrap 2 nodes in a loop"
    assert not has_errors(validate(wrapped))


def test_the_nodes_in_between_come_along():
    document = chain("one", "two", "three")
    wrapped = applied(document, wrap(opened(document), ["one", "three"], LOOP))
    assert analyse(wrapped).bodies["loop"].nodes == {"one", "two", "three"}


def test_the_ends_of_the_workflow_stay_outside():
    document = chain("draft")
    wrapped = applied(document, wrap(opened(document), ["text", "draft", "out"], LOOP))
    assert analyse(wrapped).bodies["loop"].nodes == {"draft"}


def test_unconnected_nodes_are_fed_and_connected_to_free_ends():
    document = workflow(
        [node("text", "input"), node("draft", "llm"), node("review", "llm"), node("out", "output")],
        ["draft.output -> review.input"],
    )
    wrapped = applied(document, wrap(opened(document), ["draft", "review"], LOOP))
    assert edges(wrapped) == {
        "text.value -> loop.input",
        "loop.body -> draft.input",
        "draft.output -> review.input",
        "review.output -> exit.input",
        "exit.output -> out.value",
    }


def test_a_second_source_stays_a_constant_of_the_body():
    document = workflow(
        [node("a", "input"), node("b", "input"), node("mix", "llm", prompt="{{input}} {{b}}"), node("out", "output")],
        ["a.value -> mix.input", "b.value -> mix.b", "mix.output -> out.value"],
    )
    wrapped = applied(document, wrap(opened(document), ["mix"], LOOP))
    assert edges(wrapped) >= {"a.value -> loop.input", "loop.body -> mix.input", "b.value -> mix.b"}
    assert not has_errors(validate(wrapped))


def test_a_part_with_two_results_is_refused():
    document = workflow(
        [node("a", "input"), node("x", "llm"), node("y", "llm"), node("o", "output"), node("p", "output")],
        ["a.value -> x.input", "x.output -> y.input", "x.output -> o.value", "y.output -> p.value"],
    )
    with pytest.raises(OperationError, match="one result"):
        wrap(opened(document), ["x", "y"], LOOP)


@pytest.mark.parametrize("selected", [[], ["text"], ["text", "out"]])
def test_nothing_to_wrap_is_refused(selected: list[str]):
    with pytest.raises(OperationError):
        wrap(opened(chain("draft")), selected, LOOP)


def test_nodes_of_two_levels_are_refused():
    document = refine()
    document = document.model_copy(update={"nodes": (*document.nodes, chain("other").node("other"))})
    with pytest.raises(OperationError, match="level"):
        wrap(opened(document), ["draft", "other"], LOOP)


def test_a_loop_and_the_node_before_it_are_wrapped_together():
    document = nested()
    wrapped = applied(document, wrap(opened(document), ["step_0", "step_1"], LOOP))
    assert analyse(wrapped).bodies["loop"].nodes >= {"step_0", "loop_1", "step_1", "exit_1"}
    assert not has_errors(validate(wrapped))


def test_nodes_without_a_connection_to_each_other_are_refused():
    document = workflow(
        [node("text", "input"), node("x", "llm"), node("y", "llm"), node("out", "output")],
        ["text.value -> x.input", "x.output -> out.value"],
    )
    with pytest.raises(OperationError, match=r"“LLM[ 0-9]*” is not connected"):
        wrap(opened(document), ["x", "y"], LOOP)


def test_a_whole_loop_is_wrapped_with_its_body():
    document = refine()
    wrapped = applied(document, wrap(opened(document), ["loop"], LOOP))
    structure = analyse(wrapped)
    assert structure.parent["loop"] == "loop_2"
    assert not has_errors(validate(wrapped))


def test_a_node_in_a_loop_is_wrapped_in_an_inner_loop():
    document = refine()
    wrapped = applied(document, wrap(opened(document), ["draft"], LOOP))
    assert analyse(wrapped).parent["loop_2"] == "loop"
    assert not has_errors(validate(wrapped))


def test_an_iterator_is_wrapped_in_the_same_way():
    document = chain("draft")
    wrapped = applied(document, wrap(opened(document), ["draft"], ITERATOR))
    assert analyse(wrapped).bodies["iterator"].nodes == {"draft"}


def test_the_new_cards_overlap_no_others():
    document = chain("one", "two", "three")
    before = opened(document)
    wrapped = applied(document, wrap(before, ["two"], LOOP))
    places = {one.id: stored_position(wrapped, one.id) or before.positions[one.id] for one in wrapped.nodes}
    columns = sorted(x for x, _ in places.values())
    assert all(after - left >= 160 for left, after in itertools.pairwise(columns))
    assert [one for one, _ in sorted(places.items(), key=lambda item: item[1])] == [
        "text", "one", "loop", "two", "exit", "three", "out",
    ]  # fmt: skip


def test_frames_and_notes_move_aside_with_the_cards():
    layout = {
        "frames": {
            "before": {"x": -20, "y": 0, "width": 200, "height": 200},
            "after": {"x": 900, "y": 0, "width": 200, "height": 200},
            "around": {"x": -40, "y": -40, "width": 2000, "height": 400},
        },
        "notes": {"far": {"x": 1000, "y": 400}},
    }
    document = chain("one", "two", "three").model_copy(update={"layout": layout})
    positions = {one: (240.0 * column, 0.0) for column, one in enumerate(("text", "one", "two", "three", "out"))}
    wrapped = applied(document, wrap(opened(document, positions), ["two"], LOOP)).layout
    assert wrapped["nodes"]["three"]["x"] - 720 == wrapped["frames"]["after"]["x"] - 900 > 0
    assert wrapped["notes"]["far"]["x"] - 1000 == wrapped["frames"]["after"]["x"] - 900
    assert wrapped["nodes"]["text"]["x"] == wrapped["frames"]["before"]["x"] + 20 < 0
    assert wrapped["frames"]["around"] == layout["frames"]["around"]


@st.composite
def selections(draw: st.DrawFn) -> tuple[Workflow, list[str]]:
    """A document of model nodes in layers, and some of them."""
    count = draw(st.integers(1, 7))
    names = [f"n{number}" for number in range(count)]
    nodes = [node("text", "input"), *(node(name, "llm", prompt="{{input}}") for name in names), node("out", "output")]
    wires = []
    for number, name in enumerate(names):
        source = draw(st.integers(-1, number - 1))
        wires.append(f"{'text.value' if source < 0 else f'n{source}.output'} -> {name}.input")
    wires.append(f"n{draw(st.integers(0, count - 1))}.output -> out.value")
    return workflow(nodes, wires), draw(st.lists(st.sampled_from(names), min_size=1, unique=True))


@given(selections())
def test_wrapping_gives_a_loop_that_runs_and_unwrapping_gives_the_document_back(case: tuple[Workflow, list[str]]):
    document, selected = case
    before = opened(document)
    try:
        wrapped = applied(document, wrap(before, selected, LOOP))
    except OperationError:
        reject()
    structure = analyse(wrapped)
    assert structure.bodies["loop"].nodes & set(selected)
    assert not has_errors(validate(wrapped))
    places = {one.id: (0.0, 0.0) for one in wrapped.nodes}
    assert edges(applied(wrapped, unwrap(opened(wrapped, places), "exit"))) >= edges(document)


def test_unwrapping_connects_the_body_to_what_stands_around_it():
    document = refine()
    assert edges(applied(document, unwrap(opened(document), "loop"))) == {
        "task.value -> draft.input",
        "draft.output -> text.value",
    }


def test_a_node_outside_of_loops_cannot_be_unwrapped():
    with pytest.raises(OperationError):
        unwrap(opened(refine()), "task")


@pytest.mark.parametrize(
    ("place", "before", "after"),
    [((420.0, 120.0), "loop.body", "draft.input"), ((700.0, 120.0), "draft.output", "exit.input")],
)
def test_a_node_dropped_into_a_region_goes_into_the_nearest_edge(place: Position, before: str, after: str):
    document = refine()
    with_new = document.model_copy(update={"nodes": (*document.nodes, chain("new").node("new"))})
    places = {one.id: stored_position(with_new, one.id) or place for one in with_new.nodes}
    operations = insert_into_body(opened(with_new, places), "loop", with_new.node("new"), with_new.node("new"), place)
    inserted = applied(with_new, Batch("Insert", operations))
    assert {f"{before} -> new.input", f"new.output -> {after}"} <= edges(inserted)
    assert f"{before} -> {after}" not in edges(inserted)
    assert not has_errors(validate(inserted))


def test_a_node_dropped_into_an_empty_body_is_connected_to_both_ends():
    document = workflow([node("loop", "loop"), node("exit", "exit", loop="loop"), node("new", "llm")], [])
    operations = insert_into_body(opened(document), "loop", document.node("new"), document.node("new"), (0.0, 0.0))
    assert edges(applied(document, Batch("Insert", operations))) == {
        "loop.body -> new.input",
        "new.output -> exit.input",
    }


def test_taking_a_node_out_heals_the_edges():
    document = chain("one", "two", "three")
    wrapped = applied(document, wrap(opened(document), ["one", "three"], LOOP))
    operations = take_out_of_body(opened(wrapped), ["two"])
    assert edges(applied(wrapped, Batch("Take out", operations))) == {
        "text.value -> loop.input",
        "loop.body -> one.input",
        "one.output -> three.input",
        "three.output -> exit.input",
        "exit.output -> out.value",
    }


def test_taking_a_node_out_keeps_an_edge_that_exists_beside_it():
    document = workflow(
        [node("text", "input"), node("x", "llm"), node("y", "llm")],
        ["text.value -> x.input", "x.output -> y.input", "text.value -> y.input"],
    )
    operations = take_out_of_body(opened(document), ["x"])
    assert edges(applied(document, Batch("Take out", operations))) == {"text.value -> y.input"}
