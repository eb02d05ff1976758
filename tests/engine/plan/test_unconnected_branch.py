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
    ],
)
def test_other_branches_get_none(nodes: dict[str, Any], edges: tuple[str, ...]) -> None:
    assert warned(nodes, *edges) == []


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
