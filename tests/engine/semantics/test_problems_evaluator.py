"""Problems of loops: the controlling router, and settings."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Workflow
from tests.engine.semantics.documents import (
    Part,
    around,
    entry,
    flow,
    judge,
    leave,
    llm,
    loop,
    result,
    rules,
    transform,
)
from tests.engine.semantics.problem_checks import one_problem


def _evaluator(*body: Part, edges: str, **config: Any) -> Workflow:
    return around(*body, edges=edges, exit_condition="evaluator", **config)


def test_an_evaluator_loop_without_a_router() -> None:
    problem = one_problem(_evaluator(llm("draft"), edges="loop -> draft -> exit"))

    assert problem.node == "loop"
    assert "done" in str(problem)


def test_an_evaluator_loop_whose_router_does_not_lead_to_the_exit_by_done() -> None:
    problem = one_problem(
        _evaluator(
            rules("check", {"done": "true", "continue": "else"}),
            edges="loop -> check\ncheck.continue -> exit",
        )
    )

    assert problem.node == "loop"


_TWO = [rules(name, {"done": "true", "continue": "else"}) for name in ("one", "two")]


_TWO_EDGES = "loop -> one\none.done -> two\ntwo.done -> exit"


def test_an_evaluator_loop_with_several_routers_that_names_none() -> None:
    problem = one_problem(_evaluator(*_TWO, edges=_TWO_EDGES))

    assert (problem.node, problem.field) == ("loop", "evaluator")
    assert "one" in str(problem)
    assert "Router 2 (two)" in str(problem)


@pytest.mark.parametrize("named", ["nobody", "draft", "loop", "text"])
def test_an_evaluator_that_is_not_a_router_of_the_body(named: str) -> None:
    workflow = _evaluator(llm("draft"), judge(), edges="loop -> draft -> check\ncheck.done -> exit", evaluator=named)

    problem = one_problem(workflow)

    assert (problem.node, problem.field) == ("loop", "evaluator")
    assert named in problem.message


def test_a_router_of_a_nested_loop_does_not_control_the_outer_loop() -> None:
    workflow = flow(
        entry(),
        loop("outer", exit_condition="evaluator"),
        loop("inner", exit_condition="evaluator"),
        judge(),
        leave("inner_exit", "inner"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> check\ncheck.done -> inner_exit -> outer_exit -> out",
    )

    assert one_problem(workflow).node == "outer"


@pytest.mark.parametrize("field", ["on_max_iterations", "on_budget"])
def test_return_best_without_a_score(field: str) -> None:
    problem = one_problem(around(llm("draft"), edges="loop -> draft -> exit", **{field: "return_best"}))

    assert (problem.node, problem.field) == ("loop", field)


STABLE = {"condition": "stable_output"}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"stop_when": [{"condition": "sometimes"}]}, "stop_when.0.condition"),
        ({"feedback_mode": "shout"}, "feedback_mode"),
        ({"stop_when": [{**STABLE, "threshold": 1.5}]}, "stop_when.0.threshold"),
        ({"stop_when": [{**STABLE, "threshold": "high"}]}, "stop_when.0.threshold"),
        ({"stop_when": [{**STABLE, "patience": 0}]}, "stop_when.0.patience"),
        ({"append_window": 0}, "append_window"),
        ({"output_mode": "all"}, "output_mode"),
        ({"delay_s": -1}, "delay_s"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"budget_usd": -1}, "budget_usd"),
        ({"until": "output ==="}, "stop_when.0.expression"),
        ({"score": "("}, "score"),
        ({"condition": "input &&"}, "condition"),
        ({"until": 5}, "stop_when.0.expression"),
    ],
)
def test_an_invalid_loop_setting_is_named(config: dict[str, Any], field: str) -> None:
    problem = one_problem(around(llm("draft"), edges="loop -> draft -> exit", **config))

    assert (problem.node, problem.field) == ("loop", field)


def test_a_continue_branch_with_two_dangling_ends() -> None:
    workflow = _evaluator(
        judge(),
        transform("one"),
        transform("two"),
        edges="loop -> check\ncheck.done -> exit\ncheck.continue -> one\ncheck.continue -> two",
    )

    problem = one_problem(workflow)

    assert "one" in problem.message
    assert "Transform 2" in problem.message
