"""Logic without a scene: layout, connection rules, alignment, previews."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import node_layout
from app.canvas import connection_rules
from app.canvas.connection_rules import ConnectionRules
from app.canvas.node_card import PortViewModel
from app.canvas.run_view import preview
from app.node_layout import MARGINS, Box, Wire, align, auto_layout, distribute, layered_layout, stored_position
from engine.document.model import Workflow
from engine.nodes.spec import PortType
from engine.plan.graph_algorithms import reachable
from engine.plan.structure import analyse
from engine.values import Value
from tests.app.canvas.documents import nested, node, refine, workflow

TEXT = PortViewModel("output", PortType.TEXT)


def boxes(document: Workflow) -> dict[str, Box]:
    return {
        each.id: Box(160, 84, {"input": 66, "value": 66, "feedback": 86}, {"output": 66, "value": 66, "body": 66})
        for each in document.nodes
    }


def tidied(document: Workflow) -> dict[str, tuple[float, float]]:
    structure = analyse(document)
    return auto_layout(document, structure, boxes(document))


def overlapping(places: dict[str, tuple[float, float]]) -> list[tuple[str, str]]:
    nodes = list(places)
    return [
        (first, second)
        for index, first in enumerate(nodes)
        for second in nodes[index + 1 :]
        if abs(places[first][0] - places[second][0]) < 160 and abs(places[first][1] - places[second][1]) < 84
    ]


def test_chain_is_laid_out_on_a_line_from_left_to_right() -> None:
    places = tidied(refine())
    assert len({y for _, y in places.values()}) == 1
    assert [node for node, _ in sorted(places.items(), key=lambda item: item[1])] == [
        "task",
        "loop",
        "draft",
        "exit",
        "text",
    ]


def test_no_outside_node_is_in_the_columns_of_a_loop() -> None:
    document = nested()
    places = tidied(document)
    for loop, body in analyse(document).bodies.items():
        left, right = places[loop][0], places[body.exit][0]
        for other, (x, _) in places.items():
            inside = other in body.nodes or other in {loop, body.exit}
            assert inside == (left <= x <= right), (loop, other)
    assert overlapping(places) == []


def test_long_edge_avoids_the_cards_between() -> None:
    document = workflow(
        [node(key, "llm") for key in ("a", "b", "c", "d")],
        ["a.output -> b.input", "b.output -> c.input", "c.output -> d.input", "a.output -> d.input"],
    )
    places = tidied(document)
    start, end = places["a"][1] + 66, places["d"][1] + 66
    for between in ("b", "c"):
        top = places[between][1]
        assert max(start, end) < top or min(start, end) > top + 84, places


@pytest.mark.parametrize("seed", range(8))
def test_layout_of_any_graph_is_deterministic_and_without_overlaps(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"n{index}" for index in range(30)]
    pairs = {tuple(chance.sample(names, 2)) for _ in range(45)}
    wires = [Wire(source, "output", target, "input") for source, target in sorted(pairs)]
    cards = {name: Box(160, 84, {"input": 66}, {"output": 66}) for name in names}
    places = layered_layout(cards, wires, {}, {})
    assert set(places) == set(names)
    assert overlapping(places) == []
    assert min(x for x, _ in places.values()) == min(y for _, y in places.values()) == 0
    assert layered_layout(cards, wires, {}, {}) == places


def test_layout_ends_as_soon_as_no_card_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[object] = []
    place = node_layout._place_layer
    monkeypatch.setattr(node_layout, "_place_layer", lambda *given: placed.append(place(*given)))
    monkeypatch.setattr(node_layout, "SWEEPS", 100)
    cards = {name: Box(160, 84, {"input": 66}, {"output": 66}) for name in "abcde"}
    wires = [Wire(source, "output", target, "input") for source, target in pairwise("abcde")]
    layered_layout(cards, wires, {}, {})
    assert len(placed) == 5 + 2 * (5 + 5)  # once at the start, then a sweep that orders and one that does not


def test_layout_of_an_empty_graph_is_empty() -> None:
    assert layered_layout({}, [], {}, {}) == {}


def test_consecutive_loops_have_room_for_their_regions() -> None:
    nodes, edges, before = [], [], "task.value"
    for index in range(2):
        nodes += [node(f"l{index}", "loop"), node(f"s{index}", "llm"), node(f"e{index}", "exit", loop=f"l{index}")]
        edges += [
            f"{before} -> l{index}.input",
            f"l{index}.body -> s{index}.input",
            f"s{index}.output -> e{index}.input",
        ]
        before = f"e{index}.output"
    places = tidied(workflow([node("task", "input"), *nodes], edges))
    assert places["l1"][0] - (places["e0"][0] + 160) >= MARGINS[0] + MARGINS[2]


def rejection_reason(document: Workflow, source: str, target: str, port: PortViewModel = TEXT) -> str | None:
    node_id, _, name = source.partition(".")
    fits = ConnectionRules(document, analyse(document), node_id, PortViewModel(name, port.type), is_input=False)
    target_id, _, target_name = target.partition(".")
    return fits.rejection_reason(target_id, PortViewModel(target_name), is_input=True)


def test_rejected_connection_has_a_reason() -> None:
    document = refine()
    assert rejection_reason(document, "task.value", "draft.input") is None
    assert "itself" in str(rejection_reason(document, "draft.output", "draft.input"))
    assert rejection_reason(document, "draft.output", "exit.input") == "These ports are already connected."
    assert "cycle" in str(rejection_reason(document, "exit.output", "task.x"))
    assert "leave the loop “Refine”" in str(rejection_reason(document, "draft.output", "text.value"))
    assert "only after its last iteration" in str(rejection_reason(document, "loop.output", "draft.other"))
    assert rejection_reason(document, "loop.output", "text.value") is None
    assert "leave the loop" in str(rejection_reason(document, "loop.body", "text.value"))


def test_side_branch_of_a_body_is_allowed() -> None:
    document = refine()
    grown = document.model_copy(update={"nodes": (*document.nodes, workflow([node("side", "transform")], []).nodes[0])})
    assert rejection_reason(grown, "draft.output", "side.input") is None


@given(st.integers(0, 2**32 - 1))
def test_allowed_edge_causes_no_new_structure_problem(seed: int) -> None:
    """What is let through does not go round in a circle, whatever the document."""
    chance = random.Random(seed)
    names = [f"n{index}" for index in range(6)]
    edges: list[str] = []
    for _ in range(12):
        source, target = chance.sample(names, 2)
        document = workflow([node(name, "transform") for name in names], edges)
        if rejection_reason(document, f"{source}.output", f"{target}.input") is None:
            edges.append(f"{source}.output -> {target}.input")
    final = workflow([node(name, "transform") for name in names], edges)
    assert [problem.code for problem in analyse(final).problems if problem.code in {"cycle", "duplicate-edge"}] == []


def test_matching_ports_of_a_large_document_need_few_traversals(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, edges, before = [node("task", "input"), node("end", "output")], [], "task.value"
    for index in range(20):
        nodes += [node(f"l{index}", "loop"), node(f"s{index}", "llm"), node(f"e{index}", "exit", loop=f"l{index}")]
        edges += [
            f"{before} -> l{index}.input",
            f"l{index}.body -> s{index}.input",
            f"s{index}.output -> e{index}.input",
        ]
        before = f"e{index}.output"
    document = workflow(nodes, [*edges, f"{before} -> end.value"])
    walks = list[object]()
    monkeypatch.setattr(connection_rules, "reachable", lambda *given: walks.append(given) or reachable(*given))
    asked = ConnectionRules(document, analyse(document), "s3", TEXT, is_input=False)
    found = {node.id: asked.rejection_reason(node.id, TEXT, is_input=True) for node in document.nodes}
    assert "cycle" in str(found["l3"])
    assert "leave the loop" in str(found["s9"])
    assert found["e3"] is None
    assert len(walks) < 6


RECTS = {"a": (0.0, 0.0, 100.0, 40.0), "b": (300.0, 10.0, 60.0, 80.0), "c": (150.0, 100.0, 20.0, 20.0)}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("left", {"a": 0, "b": 0, "c": 0}),
        ("center", {"a": 130, "b": 150, "c": 170}),
        ("right", {"a": 260, "b": 300, "c": 340}),
    ],
)
def test_align_horizontally(where: str, expected: dict[str, float]) -> None:
    moved = align(RECTS, where)
    assert {key: x for key, (x, _) in moved.items()} == expected
    assert {key: y for key, (_, y) in moved.items()} == {"a": 0, "b": 10, "c": 100}


@pytest.mark.parametrize(
    ("where", "expected"),
    [("top", (0, 0, 0)), ("middle", (40, 20, 50)), ("bottom", (80, 40, 100))],
)
def test_align_vertically(where: str, expected: tuple[float, float, float]) -> None:
    assert tuple(align(RECTS, where)[key][1] for key in "abc") == expected


def test_distribute_equalizes_gaps_and_keeps_the_ends() -> None:
    moved = distribute(RECTS, across=True)
    assert moved["a"][0] == 0
    assert moved["b"][0] == 300
    assert moved["c"][0] == 190
    assert distribute(RECTS, across=False)["b"][1] == pytest.approx(30)


def test_too_few_cards_are_not_moved() -> None:
    assert align({"a": RECTS["a"]}, "left") == {}
    assert distribute({"a": RECTS["a"], "b": RECTS["b"]}, across=True) == {}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("one\n  two", "one two"),
        (None, ""),
        ([1], "1 entry"),
        ([1, 2], "2 entries"),
        ({"a": 1, "b": 2}, "{a, b}"),
        ({"selected_branch": "done", "value": 1}, "→ done"),
        (True, "true"),
        (2.5, "2.5"),
        (7, "7"),
    ],
)
def test_preview_of_values(value: Value, words: str) -> None:
    assert preview(value) == words


def test_preview_does_not_format_a_large_value() -> None:
    assert len(preview("x" * 10_000_000)) == 160


def test_invalid_positions_are_ignored() -> None:
    places = {"a": {"x": 1, "y": 2}, "b": {"x": "1", "y": 2}, "c": {"x": 1}, "d": 5}
    document = Workflow(layout={"nodes": places})
    assert [stored_position(document, key) for key in "abcd"] == [(1, 2), None, None, None]
