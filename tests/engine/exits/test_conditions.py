"""When a loop stops: each condition alone, the order in which they are checked, and the labels of exit reasons."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.exits.condition import EndedIteration, ExitCondition, LoopExpressionError, score_of
from engine.exits.loop_conditions import (
    StopDecision,
    exit_reason_labels,
    format_exit_reason,
    has_converged,
    read_conditions,
)
from engine.expr import compile_expression


def ended(
    index: int = 0, *, branch: str | None = None, similarity: float | None = None, **scope: Any
) -> EndedIteration:
    return EndedIteration(index, "result", branch, similarity, scope)


def decision_of(name: str, **settings: Any) -> ExitCondition:
    (condition,) = read_conditions([{"condition": name, **settings}], "stop_when")
    return condition.make()


def asked(condition: ExitCondition, iteration: EndedIteration) -> str | None:
    condition.observe(iteration)
    return condition.reason(iteration)


@pytest.mark.parametrize(("count", "stops_after"), [(1, 0), (2, 1), (50, 49)])
def test_max_iterations_stops_after_the_last_iteration(count: int, stops_after: int) -> None:
    condition = decision_of("max_iterations", count=count)

    assert [condition.reason(ended(index)) for index in range(stops_after)] == [None] * stops_after
    assert condition.reason(ended(stops_after)) == "max_iterations"


@pytest.mark.parametrize(
    ("branch", "reason"), [("done", "evaluator_done"), ("continue", None), ("Done", None), (None, None)]
)
def test_the_evaluator_stops_when_the_router_chose_done(branch: str | None, reason: str | None) -> None:
    assert decision_of("evaluator").reason(ended(branch=branch)) == reason


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
def test_stable_output_stops_after_enough_similar_results_in_a_row(
    threshold: float, patience: int, similarities: list[float | None], stops_at: int | None
) -> None:
    condition = decision_of("stable_output", threshold=threshold, patience=patience)

    reasons = [asked(condition, ended(index, similarity=similar)) for index, similar in enumerate(similarities)]

    assert reasons.index("stable_output") == stops_at if stops_at is not None else set(reasons) == {None}


@given(st.lists(st.none() | st.floats(0, 1), max_size=12), st.floats(0, 1), st.integers(1, 4))
def test_stable_output_stops_if_the_last_results_were_all_similar_enough(
    similarities: list[float | None], threshold: float, patience: int
) -> None:
    condition = decision_of("stable_output", threshold=threshold, patience=patience)

    for index, similar in enumerate(similarities):
        last = similarities[: index + 1][-patience:]
        stable = len(last) == patience and all(one is not None and one >= threshold for one in last)
        assert asked(condition, ended(index, similarity=similar)) == ("stable_output" if stable else None)


@pytest.mark.parametrize(("score", "reason"), [(8.0, "score_reached"), (7.99, None), (None, None)])
def test_a_score_stops_once_it_reaches_the_minimum(score: float | None, reason: str | None) -> None:
    ended = EndedIteration(0, "result", None, None, {}, score=score)
    assert decision_of("score", minimum=8.0).reason(ended) == reason


@pytest.mark.parametrize(
    ("expression", "reason"), [("size(output) < 5", "until"), ("size(output) > 5", None), ("cost_usd < 1.0", "until")]
)
def test_until_stops_when_its_expression_is_true(expression: str, reason: str | None) -> None:
    assert decision_of("until", expression=expression).reason(ended(output="abc", cost_usd=0.5)) == reason


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("output", "not true or false"),
        ("size(output)", "not true or false"),
        ("nothing == 1", "failed"),
        ("1 / 0 == 1", "failed"),
        ("cost_usd < 1.0", "failed"),
    ],
)
def test_until_with_a_failing_or_non_boolean_expression_is_an_error(expression: str, says: str) -> None:
    with pytest.raises(LoopExpressionError) as caught:
        decision_of("until", expression=expression).reason(ended(output="abc", cost_usd=None))

    assert caught.value.message.startswith(f'The expression in "until" ({expression}) ')
    assert says in caught.value.message


def test_errors_quote_long_values_of_expressions_only_in_part() -> None:
    with pytest.raises(LoopExpressionError) as caught:
        decision_of("until", expression="output").reason(ended(output="x" * 1_000_000))
    assert len(caught.value.message) < 200

    with pytest.raises(LoopExpressionError, match=r'"score" \(output\) returned null, not a number'):
        score_of(compile_expression("output"), {"output": None})


def test_a_score_that_is_too_large_to_compare_is_an_error() -> None:
    assert score_of(compile_expression("output"), {"output": 3}) == 3.0
    with pytest.raises(LoopExpressionError, match="too large"):
        score_of(compile_expression("output"), {"output": 10**400})


def decision(*entries: dict[str, Any], mode: str = "any", most: int = 9) -> StopDecision:
    return StopDecision(read_conditions(entries, "stop_when"), mode, most)


def reason_of(made: StopDecision, iteration: EndedIteration) -> str | None:
    made.observe(iteration)
    return made.reason(iteration)


STABLE = {"condition": "stable_output", "threshold": 0.9}
EVALUATOR = {"condition": "evaluator"}
UNTIL = {"condition": "until", "expression": "size(output) < 5"}


def test_the_first_condition_that_holds_gives_the_exit_reason_and_the_cap_comes_last() -> None:
    made = decision(UNTIL, EVALUATOR, most=3)

    assert reason_of(made, ended(0, branch="continue", output="abcdefg")) is None
    assert reason_of(made, ended(1, branch="done", output="abcdefg")) == "evaluator_done"
    assert reason_of(made, ended(2, branch="done", output="abc")) == "until"
    assert reason_of(made, ended(2, branch="continue", output="abcdefg")) == "max_iterations"
    assert reason_of(decision(most=1), ended(0)) == "max_iterations"


def test_stop_mode_all_needs_all_conditions_after_the_same_iteration() -> None:
    made = decision(EVALUATOR, STABLE, mode="all")

    assert reason_of(made, ended(1, branch="done", similarity=0.5)) is None
    assert reason_of(made, ended(2, branch="continue", similarity=1.0)) is None
    assert reason_of(made, ended(3, branch="done", similarity=1.0)) == "evaluator_done+stable_output"


def test_all_of_stops_the_loop_when_all_its_conditions_hold() -> None:
    made = decision(UNTIL, {"condition": "all_of", "conditions": [EVALUATOR, STABLE]})
    long = {"output": "abcdefg"}

    assert reason_of(made, ended(1, branch="done", similarity=0.5, **long)) is None
    assert reason_of(made, ended(2, branch="done", similarity=1.0, **long)) == "evaluator_done+stable_output"
    assert reason_of(made, ended(3, output="abc")) == "until"
    assert made.tested(ended(3, branch="done", similarity=1.0)) == {"evaluator": "done", "stable_output": 1.0}


def test_only_leading_expressions_of_an_any_list_are_checked_before_the_judge() -> None:
    short, judge = ended(0, output="abc"), {"condition": "judge"}

    assert decision(UNTIL, judge).reason_before_judge(short) == "until"
    assert decision(judge, UNTIL).reason_before_judge(short) is None
    assert decision(UNTIL, judge, mode="all").reason_before_judge(short) is None


def test_each_run_of_a_loop_starts_counting_again() -> None:
    entry = {"condition": "stable_output", "patience": 2}
    first, second = decision(entry), decision(entry)
    reason_of(first, ended(1, similarity=1.0))

    assert reason_of(second, ended(1, similarity=1.0)) is None
    assert reason_of(first, ended(2, similarity=1.0)) == "stable_output"


@pytest.mark.parametrize(
    ("reason", "converged"),
    [("stable_output", True), ("max_iterations", False), ("budget+timeout", False), ("budget+until", True)],
)
def test_a_loop_ended_only_by_limits_has_not_converged(reason: str, converged: bool) -> None:
    assert has_converged(reason) is converged


@pytest.mark.parametrize("reason", exit_reason_labels())
def test_every_exit_reason_has_a_readable_label(reason: str) -> None:
    label = format_exit_reason(reason)
    assert "_" not in label
    assert not label.endswith(".")


def test_several_exit_reasons_are_joined_and_an_unknown_one_is_its_own_label() -> None:
    joined = f"{exit_reason_labels()['plateau']} and {exit_reason_labels()['budget']} and my_reason"
    assert format_exit_reason("plateau+budget+my_reason") == joined
    assert format_exit_reason("") == ""
