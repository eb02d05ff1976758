"""Pairs of loops and exits, named in the file or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Workflow, validate
from engine.plan.structure import analyse
from tests.engine.plan.documents import CLOSE, LOOPED, OPEN, STEP, document, looped, of_json
from tests.examples import examples

IN_A_ROW = (
    "text.value -> one.input",
    "one.body -> a.input",
    "a.output -> leave_one.input",
    "leave_one.output -> two.input",
    "two.body -> b.input",
    "b.output -> leave_two.input",
    "leave_two.output -> out.value",
)
NESTED = (
    "text.value -> one.input",
    "one.body -> a.input",
    "a.output -> two.input",
    "two.body -> b.input",
    "b.output -> leave_two.input",
    "leave_two.output -> leave_one.input",
    "leave_one.output -> out.value",
)


def two_loops(leave_one: str = "", leave_two: str = "", **more: Any) -> dict[str, Any]:
    return {
        "leave_one": ("exit", {"loop": leave_one}),
        "leave_two": ("exit", {"loop": leave_two}),
        "out": "output",
        "b": STEP,
        "a": STEP,
        "two": "loop",
        "one": "loop",
        "text": "input",
        **more,
    }


def pairs(workflow: Workflow) -> dict[str, str]:
    return {loop: body.exit for loop, body in analyse(workflow).bodies.items()}


def codes(workflow: Workflow) -> list[str]:
    return sorted(problem.code for problem in validate(workflow))


BOTH = {"one": "leave_one", "two": "leave_two"}


def test_one_loop_and_one_exit_belong_together() -> None:
    assert pairs(document(looped(), *LOOPED)) == {"loop": "exit"}


@pytest.mark.parametrize("edges", [IN_A_ROW, NESTED], ids=["in a row", "nested"])
@pytest.mark.parametrize("named", [("one", "two"), ("", ""), ("one", ""), ("", "two")])
def test_loops_and_exits_pair_like_brackets_whatever_the_file_names(
    edges: tuple[str, ...], named: tuple[str, str]
) -> None:
    workflow = document(two_loops(*named), *edges)

    assert pairs(workflow) == BOTH
    assert codes(workflow) == []


def test_a_constant_from_outside_an_inner_loop_does_not_change_whose_exit_it_is() -> None:
    nodes = two_loops(b=("transform", {"template": "{{input}}{{more}}"}))

    assert pairs(document(nodes, *NESTED, "text.value -> b.more")) == BOTH


@pytest.mark.parametrize("first", [True, False])
def test_an_exit_that_paths_of_different_depth_reach_ends_the_innermost_loop(first: bool) -> None:
    shorter = "a.output -> leave_two.feedback"

    edges = (shorter, *NESTED) if first else (*NESTED, shorter)

    assert pairs(document(two_loops(), *edges)) == BOTH


def test_a_loop_and_an_exit_that_are_left_over_are_a_pair() -> None:
    """What lies between them may not be connected yet."""
    workflow = document(looped(), *OPEN, *CLOSE)

    assert pairs(workflow) == {"loop": "exit"}
    assert "missing-exit" not in codes(workflow)
    assert "exit-without-loop" not in codes(workflow)


def test_several_unpaired_loops_and_exits_are_problems() -> None:
    workflow = document(two_loops(), "text.value -> one.input", "text.value -> two.input")

    assert pairs(workflow) == {}
    assert codes(workflow).count("missing-exit") == 2
    assert codes(workflow).count("exit-without-loop") == 2


def test_an_exit_that_names_its_loop_is_not_paired_otherwise() -> None:
    workflow = document(two_loops("two", "one"), *IN_A_ROW)

    assert pairs(workflow) == {"one": "leave_two", "two": "leave_one"} or "cycle" in codes(workflow)


def test_overlapping_loops_are_a_problem() -> None:
    crossing = (
        "text.value -> one.input",
        "one.body -> two.input",
        "two.body -> a.input",
        "a.output -> leave_one.input",
        "a.output -> b.input",
        "b.output -> leave_two.input",
        "leave_one.output -> out.value",
        "leave_two.output -> out.value",
    )

    assert "overlapping-loops" in codes(document(two_loops("one", "two"), *crossing))


def test_two_unnamed_exits_in_one_body_are_a_problem() -> None:
    nodes = looped(None, None, other="exit")
    workflow = document(nodes, *LOOPED, "a.output -> other.input", "other.output -> out.value")

    assert pairs(workflow) == {}
    assert "two-exits" in codes(workflow)


def test_a_loop_named_by_an_exit_with_invalid_settings_is_not_paired() -> None:
    nodes = looped(None, {"loop": 5})

    assert "bad-config" in codes(document(nodes, *LOOPED))


@dataclass
class Nest:
    """Loops in a row, each of which may hold loops itself."""

    inside: list[Nest] = field(default_factory=list)


nests = st.recursive(st.builds(Nest), lambda inner: st.builds(Nest, st.lists(inner, max_size=3)), max_leaves=7)


def _write(
    nest: Nest, start: str, nodes: list[dict[str, Any]], edges: list[dict[str, str]], pair: dict[str, str]
) -> str:
    """Write a nest behind the port `start`; give the port at which it ends."""
    number = len(pair)
    loop, exit_id = f"loop{number}", f"exit{number}"
    pair[loop] = exit_id
    nodes += [{"id": loop, "type": "loop"}, {"id": exit_id, "type": "exit"}, {"id": f"t{number}", "type": "transform"}]
    edges += [{"from": start, "to": f"{loop}.input"}, {"from": f"{loop}.body", "to": f"t{number}.input"}]
    inner = f"t{number}.output"
    for child in nest.inside:
        inner = _write(child, inner, nodes, edges, pair)
    edges.append({"from": inner, "to": f"{exit_id}.input"})
    return f"{exit_id}.output"


@examples(40)
@given(nests, st.randoms(use_true_random=False), st.floats(0, 1))
def test_any_nested_loops_are_paired(nest: Nest, random: Any, named: float) -> None:
    nodes: list[dict[str, Any]] = [{"id": "text", "type": "input"}, {"id": "out", "type": "output"}]
    edges: list[dict[str, str]] = []
    expected: dict[str, str] = {}
    end = _write(nest, "text.value", nodes, edges, expected)
    edges.append({"from": end, "to": "out.value"})
    loop_of = {exit_id: loop for loop, exit_id in expected.items()}
    for node in nodes:
        if node["type"] == "exit" and random.random() < named:
            node["config"] = {"loop": loop_of[node["id"]]}
    random.shuffle(nodes)
    random.shuffle(edges)

    workflow = of_json(nodes, edges)

    assert pairs(workflow) == expected
    assert codes(workflow) == []


@pytest.mark.parametrize("kind", ["loop", "exit"])
def test_a_second_node_with_the_id_of_another_is_no_end_of_a_loop(kind: str) -> None:
    ends = {"loop": ("text", "exit"), "exit": ("loop", "text")}[kind]
    nodes = [{"id": "text", "type": "input"}, {"id": "text", "type": kind}]
    nodes += [{"id": name, "type": name} for name in ends if name != "text"]
    workflow = of_json(nodes, [])

    assert pairs(workflow) == {}
    assert "duplicate-id" in codes(workflow)
