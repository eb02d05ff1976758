"""Loop bodies: the paths to the exit, and side branches."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from engine import Workflow, validate
from engine.plan.loop_bodies import Body
from engine.plan.structure import analyse
from tests.engine.plan.documents import CLOSE, LOOPED, OPEN, ROUTER, STEP, document, looped
from tests.engine.plan.test_loop_pairing import NESTED, two_loops

JOIN = ("transform", {"template": "{{input}} {{other}}"})
JUDGED = (*OPEN, "a.output -> check.input", "check.done -> exit.input", *CLOSE)


def body_of(workflow: Workflow, loop: str = "loop") -> Body:
    return analyse(workflow).bodies[loop]


def codes(workflow: Workflow) -> set[str]:
    return {problem.code for problem in validate(workflow)}


def test_everything_between_loop_and_exit_is_the_body() -> None:
    nodes = looped(None, None, b=STEP, c=JOIN)
    edges = ("a.output -> b.input", "a.output -> c.input", "b.output -> c.other", "c.output -> exit.input")

    body = body_of(document(nodes, *OPEN, *edges, *CLOSE))

    assert (body.nodes, body.side_branches) == ({"a", "b", "c"}, set())


@pytest.mark.parametrize(
    ("extra", "edges", "side"),
    [
        ({"x": STEP}, ["check.continue -> x.input"], {"x"}),
        ({"x": STEP, "y": STEP}, ["check.continue -> x.input", "x.output -> y.input"], {"x", "y"}),
        (
            {"w": ("tool", {"tool": "write_file", "arguments": {"path": "p"}})},
            ["a.output -> w.text"],
            {"w"},
        ),
        ({}, [], set()),
    ],
    ids=["one node", "a chain", "a tool", "nothing"],
)
def test_side_branches_that_lead_nowhere_belong_to_the_body(
    extra: dict[str, Any], edges: list[str], side: set[str]
) -> None:
    body = body_of(document(looped(None, None, check=ROUTER, **extra), *JUDGED, *edges))

    assert (body.nodes, body.side_branches) == ({"a", "check"} | side, side)


def test_a_node_that_leads_into_the_body_from_elsewhere_is_outside() -> None:
    nodes = {**looped(None, None, before=STEP), "a": JOIN}

    workflow = document(nodes, *LOOPED, "text.value -> before.input", "before.output -> a.other")

    assert body_of(workflow).nodes == {"a"}
    assert codes(workflow) == set()


def test_nodes_after_the_loop_are_outside() -> None:
    nodes = looped(None, None, after=STEP, aside=STEP)

    workflow = document(nodes, *LOOPED, "exit.output -> after.input", "loop.count -> aside.input")

    assert body_of(workflow).nodes == {"a"}


def test_nodes_that_depend_on_the_loops_results_are_outside() -> None:
    nodes = looped(None, None, aside=STEP, both=JOIN)
    edges = ("loop.count -> aside.input", "a.output -> both.input", "aside.output -> both.other")

    workflow = document(nodes, *LOOPED, *edges)

    assert body_of(workflow).nodes == {"a"}
    assert [str(problem.edge) for problem in validate(workflow) if problem.code == "edge-out-of-body"] == [
        "a.output -> both.input"
    ]


def test_a_loop_that_waits_for_itself_through_other_nodes_is_a_problem() -> None:
    nodes = {**looped(None, None, aside=STEP), "a": JOIN}

    workflow = document(nodes, *LOOPED, "loop.count -> aside.input", "aside.output -> a.other")

    assert [(problem.code, problem.node) for problem in validate(workflow)] == [("loop-waits-for-itself", "loop")]


def test_loops_that_wait_for_each_other_are_a_problem() -> None:
    second = {"two": "loop", "b": JOIN, "leave": ("exit", {"loop": "two"}), "more": "output"}
    nodes = {**looped(None, {"loop": "loop"}), "a": JOIN, **second}
    edges = (
        "text.value -> two.input",
        "two.body -> b.input",
        "b.output -> leave.input",
        "leave.output -> more.value",
        "loop.count -> b.other",
    )

    assert codes(document({**nodes, "a": STEP}, *LOOPED, *edges)) == set()
    assert codes(document(nodes, *LOOPED, *edges, "two.count -> a.other")) == {"loop-waits-for-itself"}


def test_a_branch_to_an_output_leaves_the_body() -> None:
    nodes = looped(None, None, check=ROUTER, x=STEP, other="output")

    workflow = document(nodes, *JUDGED, "check.continue -> x.input", "x.output -> other.value")

    assert body_of(workflow).nodes == {"a", "check"}
    assert [str(problem.edge) for problem in validate(workflow) if problem.code == "edge-out-of-body"] == [
        "check.continue -> x.input"
    ]


def test_a_nested_loop_is_completely_in_the_outer_body() -> None:
    structure = analyse(document(two_loops(), *NESTED))

    assert structure.bodies["one"].nodes == {"a", "two", "b", "leave_two"}
    assert structure.bodies["two"].nodes == {"b"}
    assert structure.parent == {"a": "one", "two": "one", "leave_two": "one", "b": "two"}
    assert structure.loop_of == {"leave_one": "one", "leave_two": "two"}


def test_a_loop_on_a_side_branch_belongs_to_the_body() -> None:
    nodes = {**two_loops("one", "two"), "b": STEP}
    edges = (
        "text.value -> one.input",
        "one.body -> a.input",
        "a.output -> leave_one.input",
        "a.output -> two.input",
        "two.body -> b.input",
        "b.output -> leave_two.input",
        "leave_one.output -> out.value",
    )

    workflow = document(nodes, *edges)

    assert body_of(workflow, "one").nodes == {"a", "two", "b", "leave_two"}
    assert "overlapping-loops" not in codes(workflow)


def test_the_exit_may_also_receive_the_loops_own_value() -> None:
    workflow = document(looped(), *LOOPED, "loop.body -> exit.feedback")

    assert body_of(workflow).nodes == {"a"}
    assert codes(workflow) == set()


def test_the_controlling_router_may_reach_the_exit_through_other_nodes_but_not_from_a_nested_body() -> None:
    through = document(
        looped({"exit_condition": "evaluator"}, None, check=ROUTER, x=STEP),
        *OPEN,
        "a.output -> check.input",
        "check.done -> x.input",
        "x.output -> exit.input",
        *CLOSE,
    )
    nested = document(
        {**two_loops(), "b": ROUTER, "one": ("loop", {"exit_condition": "evaluator"})},
        *[edge.replace("b.output", "b.done") for edge in NESTED],
    )

    assert analyse(through).evaluators == {"loop": "check"}
    assert codes(through) == set()
    assert analyse(nested).evaluators == {"two": "b"}
    assert "no-evaluator" in codes(nested)


def test_a_router_whose_done_leads_only_to_the_feedback_does_not_control() -> None:
    workflow = document(
        looped({"exit_condition": "evaluator"}, None, check=ROUTER),
        *OPEN,
        "a.output -> check.input",
        "a.output -> exit.input",
        "check.done -> exit.feedback",
        *CLOSE,
    )

    assert analyse(workflow).evaluators == {}
    assert "no-evaluator" in codes(workflow)


def test_the_named_one_of_several_routers_controls() -> None:
    nodes = looped({"exit_condition": "evaluator", "evaluator": "two"}, None, one=ROUTER, two=ROUTER)
    edges = ("a.output -> one.input", "a.output -> two.input", "one.done -> exit.input", "two.done -> exit.input")

    assert analyse(document(nodes, *OPEN, *edges, *CLOSE)).evaluators == {"loop": "two"}


def test_feedback_ends_are_branch_ends_in_document_order() -> None:
    nodes = looped(None, None, check=ROUTER, y=STEP, x=STEP, aside=STEP)

    structure = analyse(document(nodes, *JUDGED, "check.continue -> x.input", "a.output -> aside.input"))

    assert structure.feedback_ends == {"loop": ("x",)}


def test_two_feedback_ends_are_no_problem_if_the_feedback_port_is_connected() -> None:
    nodes = looped(None, None, check=ROUTER, x=STEP, y=STEP)
    both = ("check.continue -> x.input", "check.continue -> y.input")

    assert "two-feedback-ends" in codes(document(nodes, *JUDGED, *both))
    assert "two-feedback-ends" not in codes(document(nodes, *JUDGED, *both, "a.output -> exit.feedback"))


def test_two_feedback_ends_behind_another_router_are_no_problem() -> None:
    nodes = looped(None, None, check=ROUTER, again=ROUTER, x=STEP, y=STEP, z=STEP)
    edges = (*JUDGED, "check.continue -> again.input", "again.done -> x.input", "again.continue -> y.input")

    structure = analyse(document(nodes, *edges))

    assert [problem.code for problem in structure.problems if problem.node != "z"] == []
    assert structure.feedback_ends == {"loop": ("x", "y")}
    (problem,) = [
        problem
        for problem in validate(document(nodes, *edges, "again.continue -> z.input"))
        if problem.code == "two-feedback-ends" and problem.node == "again"
    ]
    assert "nowhere: Transform 3, Transform 4;" in problem.message


def loops_in_a_row(number: int) -> Workflow:
    """So many loops of a router each, one after the other."""
    nodes: dict[str, Any] = {"text": "input"}
    edges, last = list[str](), "text.value"
    for place in range(number):
        loop, check, leave = f"loop_{place}", f"check_{place}", f"leave_{place}"
        nodes |= {loop: "loop", check: ROUTER, leave: ("exit", {"loop": loop})}
        edges += [f"{last} -> {loop}.input", f"{loop}.body -> {check}.input", f"{check}.done -> {leave}.input"]
        last = f"{leave}.output"
    return document({**nodes, "out": "output"}, *edges, f"{last} -> out.value")


def steps_to_analyse(workflow: Workflow) -> int:
    """How many functions of Python are called, or generators gone on with."""
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event == "call"

    sys.setprofile(count)
    try:
        analyse(workflow)
    finally:
        sys.setprofile(None)
    return steps


def test_finding_a_body_visits_only_nodes_near_it() -> None:
    few, many = loops_in_a_row(20), loops_in_a_row(40)
    assert [len(body.nodes) for body in analyse(many).bodies.values()] == [1] * 40

    assert steps_to_analyse(many) < 2.2 * steps_to_analyse(few)


def test_each_level_has_its_own_nodes_in_their_order() -> None:
    structure = analyse(document(two_loops(), *NESTED))

    assert structure.members == {
        None: ["text", "one", "leave_one", "out"],
        "one": ["a", "two", "leave_two"],
        "two": ["b"],
    }
