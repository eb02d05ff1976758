"""An unconnected branch in a loop gets a warning if an iteration that takes it has neither result nor feedback."""

from __future__ import annotations

from typing import Any

import pytest

from engine import validate
from tests.engine.plan.documents import CLOSE, OPEN, ROUTER, STEP, document, looped
from tests.wording import mentions

CHECKED = (*OPEN, "a.output -> check.input")
CHECK: dict[str, Any] = {"check": "approval"}
NESTED = {"inner": "loop", "b": STEP, "inner_exit": ("exit", {"loop": "inner"})}
THROUGH_NESTED = ("inner.body -> b.input", "b.output -> inner_exit.input", "inner_exit.output -> exit.input")


def warned(nodes: dict[str, Any], *edges: str, loop: dict[str, Any] | None = None) -> list[tuple[str | None, ...]]:
    problems = validate(document(looped(loop, {"loop": "loop"}, **nodes), *CHECKED, *edges, *CLOSE))
    assert {problem.code for problem in problems} <= {"unconnected-branch"}
    return [(problem.node, problem.port) for problem in problems]


@pytest.mark.parametrize(
    ("nodes", "edges", "port"),
    [
        (CHECK, ("check.approved -> exit.input",), "rejected"),
        (CHECK, ("check.rejected -> exit.feedback",), "approved"),
        ({**CHECK, "b": STEP}, ("check.approved -> b.input", "b.output -> exit.input"), "rejected"),
        ({**CHECK, **NESTED}, ("check.approved -> inner.input", *THROUGH_NESTED), "rejected"),
        (
            {**CHECK, "b": ("transform", {"template": "{{input}} {{task}}"})},
            ("check.approved -> b.input", "text.value -> b.task", "b.output -> exit.input"),
            "rejected",
        ),
        ({"check": ("validator", {})}, ("check.valid -> exit.input",), "invalid"),
        ({"check": ROUTER}, ("check.done -> exit.input",), "continue"),
        ({"check": ("transform", {"on_error": "branch"})}, ("check.output -> exit.input",), "error"),
        (
            {"check": ("approval", {"on_error": "branch"})},
            ("check.approved -> exit.input", "check.rejected -> exit.feedback", "check.comment -> exit.feedback"),
            "error",
        ),
    ],
)
def test_a_branch_that_ends_the_iteration_without_result(
    nodes: dict[str, Any], edges: tuple[str, ...], port: str
) -> None:
    assert warned(nodes, *edges) == [("check", port)]


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        (CHECK, ("check.approved -> exit.input", "check.rejected -> exit.feedback")),
        (CHECK, ("check.approved -> exit.input", "check.comment -> exit.feedback")),
        (CHECK, ("a.output -> exit.input", "check.approved -> exit.feedback")),
        ({**CHECK, "b": STEP}, ("check.approved -> exit.input", "check.rejected -> b.input")),
        (CHECK, ("a.output -> exit.input",)),
        (
            {**CHECK, **NESTED},
            ("a.output -> inner.input", *THROUGH_NESTED, "check.approved -> inner_exit.feedback"),
        ),
        (
            {"check": ("transform", {"on_error": "branch"})},
            ("check.output -> exit.input", "check.error -> exit.feedback"),
        ),
    ],
)
def test_other_branches_get_none(nodes: dict[str, Any], edges: tuple[str, ...]) -> None:
    assert warned(nodes, *edges) == []


def test_other_branches_of_a_router_before_it_are_not_taken() -> None:
    nodes = {"check": ROUTER, "approval": "approval", "fix": STEP}
    edges = ("check.done -> approval.input", "approval.approved -> exit.input", "check.continue -> fix.input")

    assert warned(nodes, *edges, "fix.output -> exit.feedback") == [("approval", "rejected")]


def test_disabled_nodes_that_pass_nothing_on() -> None:
    nodes = looped(None, None, **CHECK, both=("transform", {"template": "{{input}} {{task}}"}))
    approved = (*OPEN, "check.approved -> exit.input", *CLOSE)
    to_both = ("a.output -> both.input", "text.value -> both.task")
    before = (*approved, *to_both, "both.output -> check.input")
    beside = (*approved, *to_both, "a.output -> check.input", "both.output -> exit.feedback")

    def places(*edges: str, is_enabled: bool) -> list[tuple[str | None, ...]]:
        whole = document(nodes, *edges)
        changed = [node.model_copy(update={"enabled": is_enabled or node.id != "both"}) for node in whole.nodes]
        problems = validate(whole.model_copy(update={"nodes": tuple(changed)}))
        return [(problem.node, problem.port) for problem in problems if problem.code == "unconnected-branch"]

    assert places(*before, is_enabled=True) == [("check", "rejected")]
    assert places(*before, is_enabled=False) == []
    assert places(*beside, is_enabled=True) == []
    assert places(*beside, is_enabled=False) == [("check", "rejected")]


def test_the_value_of_a_controlling_router_is_the_feedback() -> None:
    assert warned({"check": ROUTER}, "check.done -> exit.input", loop={"exit_condition": "evaluator"}) == []


def test_outside_of_loops_a_branch_may_end() -> None:
    edges = ("text.value -> check.input", "check.approved -> out.value")

    assert validate(document({"text": "input", "check": "approval", "out": "output"}, *edges)) == []


def test_the_remedy_names_port_and_exit() -> None:
    nodes = looped(None, None, **CHECK)

    (problem,) = validate(document(nodes, *CHECKED, "check.approved -> exit.input", *CLOSE))

    assert mentions(problem.message, "rejected … Approval … no result")
    assert mentions(problem.remedy, "feedback … Exit")


@pytest.mark.parametrize("beside", ["no_such_type", ("llm", {"retries": "x"})])
def test_a_node_with_an_error_of_its_own_does_not_matter(beside: Any) -> None:
    nodes = looped(None, {"loop": "loop"}, **CHECK, b=beside)

    problems = validate(document(nodes, *CHECKED, "check.approved -> b.input", "b.output -> exit.input", *CLOSE))

    assert ("unconnected-branch", "check") in {(problem.code, problem.node) for problem in problems}


def test_a_loop_with_an_error_of_its_own_does_not_matter() -> None:
    nodes = looped({"max_iterations": "x"}, {"loop": "loop"}, **CHECK)

    problems = validate(document(nodes, *CHECKED, "check.approved -> exit.input", *CLOSE))

    assert {problem.code for problem in problems} == {"bad-config"}
