"""When a loop stops: each condition by itself, and the order in which they are asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.exits.base import EndedIteration, ExitCondition
from engine.exits.choose import exit_conditions
from engine.exits.evaluator import Evaluator
from engine.exits.max_iterations import MaxIterations
from engine.exits.stable_output import StableOutput
from engine.exits.until import Until
from engine.exits.verdict import score_of
from engine.expr import compile_expression
from engine.nodes.loop_config import LoopConfig
from engine.nodes.spec import NodeError


def ended(
    index: int = 0, *, branch: str | None = None, similarity: float | None = None, **scope: Any
) -> EndedIteration:
    return EndedIteration(index, "result", branch, similarity, scope)


def asked(condition: ExitCondition, iteration: EndedIteration) -> str | None:
    condition.observe(iteration)
    return condition.reason(iteration)


@pytest.mark.parametrize(("count", "stops_after"), [(1, 0), (2, 1), (50, 49)])
def test_the_count_stops_after_the_last_iteration_and_not_before(count: int, stops_after: int) -> None:
    condition = MaxIterations(count)

    assert [condition.reason(ended(index)) for index in range(stops_after)] == [None] * stops_after
    assert condition.reason(ended(stops_after)) == "max_iterations"


@pytest.mark.parametrize(
    ("branch", "reason"), [("done", "evaluator_done"), ("continue", None), ("Done", None), (None, None)]
)
def test_the_evaluator_stops_when_the_router_chose_done(branch: str | None, reason: str | None) -> None:
    assert Evaluator().reason(ended(branch=branch)) == reason


@pytest.mark.parametrize(
    ("threshold", "patience", "similarities", "stops_at"),
    [
        (0.9, 1, [None, 0.9], 1),
        (0.9, 1, [None, 0.89999], None),
        (1.0, 1, [None, 0.999999, 1.0], 2),
        (0.0, 1, [None, 0.0], 1),
        (0.9, 2, [None, 0.95, 0.95], 2),
        (0.9, 2, [None, 0.95, 0.1, 0.95, 0.95], 4),
        (0.9, 2, [None, 0.95, None, 0.95], None),
        (0.0, 1, [None, None], None),
    ],
)
def test_a_result_is_stable_when_it_was_alike_often_enough_in_a_row(
    threshold: float, patience: int, similarities: list[float | None], stops_at: int | None
) -> None:
    condition = StableOutput(threshold, patience)

    reasons = [asked(condition, ended(index, similarity=alike)) for index, alike in enumerate(similarities)]

    assert reasons.index("stable_output") == stops_at if stops_at is not None else set(reasons) == {None}


@given(st.lists(st.none() | st.floats(0, 1), max_size=12), st.floats(0, 1), st.integers(1, 4))
def test_stable_means_the_last_ones_were_all_at_least_that_similar(
    similarities: list[float | None], threshold: float, patience: int
) -> None:
    condition = StableOutput(threshold, patience)

    for index, alike in enumerate(similarities):
        last = similarities[: index + 1][-patience:]
        stable = len(last) == patience and all(one is not None and one >= threshold for one in last)
        assert asked(condition, ended(index, similarity=alike)) == ("stable_output" if stable else None)


@pytest.mark.parametrize(
    ("expression", "reason"), [("size(output) < 5", "until"), ("size(output) > 5", None), ("cost_usd < 1.0", "until")]
)
def test_until_stops_when_its_expression_is_true(expression: str, reason: str | None) -> None:
    assert Until(compile_expression(expression)).reason(ended(output="abc", cost_usd=0.5)) == reason


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("output", "neither true nor false"),
        ("size(output)", "neither true nor false"),
        ("nothing == 1", "cannot be worked out"),
        ("1 / 0 == 1", "cannot be worked out"),
        ("cost_usd < 1.0", "cannot be worked out"),
    ],
)
def test_until_that_is_no_condition_or_fails_is_an_error_and_never_false(expression: str, says: str) -> None:
    with pytest.raises(NodeError) as caught:
        Until(compile_expression(expression)).reason(ended(output="abc", cost_usd=None))

    assert caught.value.message.startswith(f'The expression in "until" ({expression}) ')
    assert says in caught.value.message


def test_what_an_expression_gave_instead_is_quoted_and_not_written_out() -> None:
    with pytest.raises(NodeError) as caught:
        Until(compile_expression("output")).reason(ended(output="x" * 1_000_000))
    assert len(caught.value.message) < 200

    with pytest.raises(NodeError, match=r'"score" \(output\) gave null, which is no number'):
        score_of(compile_expression("output"), {"output": None})


def test_a_score_that_is_too_large_to_compare_is_an_error() -> None:
    assert score_of(compile_expression("output"), {"output": 3}) == 3.0
    with pytest.raises(NodeError, match="too large"):
        score_of(compile_expression("output"), {"output": 10**400})


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        ({}, [MaxIterations]),
        ({"until": "true"}, [Until, MaxIterations]),
        ({"until": "  "}, [MaxIterations]),
        ({"exit_condition": "evaluator"}, [Evaluator, MaxIterations]),
        ({"exit_condition": "stable_output", "until": "true"}, [Until, StableOutput, MaxIterations]),
    ],
)
def test_until_is_asked_first_and_the_count_last(config: dict[str, Any], kinds: list[type]) -> None:
    conditions = exit_conditions(LoopConfig.model_validate(config), 3)

    assert [type(condition) for condition in conditions] == kinds
    assert conditions[-1].reason(ended(2)) == "max_iterations"
    assert conditions[-1].reason(ended(1)) is None


def test_each_run_of_a_loop_counts_anew() -> None:
    config = LoopConfig.model_validate({"exit_condition": "stable_output", "stability_patience": 2})
    first, second = exit_conditions(config, 9)[0], exit_conditions(config, 9)[0]
    asked(first, ended(1, similarity=1.0))

    assert asked(second, ended(1, similarity=1.0)) is None
    assert asked(first, ended(2, similarity=1.0)) == "stable_output"
