"""Several exit conditions of one loop, the best iteration, and budgets and timeouts that return a result."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Workflow, validate
from engine.events import LoopIterationCompleted
from tests.engine.semantics.documents import around, formula, llm, rules
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import DOLLAR_A_TOKEN_OUT, TEN_OUT, Call, FunctionModel
from tests.engine.semantics.virtual_time import virtually


def counted(conditions: list[dict[str, Any]], results: str = "string(loop.iteration)", **config: Any) -> Workflow:
    """A loop whose result is an expression."""
    settings = {"max_iterations": 10, "stop_when": conditions, **config}
    return around(formula("number", results), edges="loop -> number -> exit", **settings)


async def stopped(conditions: list[dict[str, Any]], **config: Any) -> tuple[int, str]:
    played = await play(counted(conditions, **config))
    return played.loop.iterations_run, played.loop.exit_reason


def until(text: str) -> dict[str, Any]:
    return {"condition": "until", "expression": text}


@pytest.mark.parametrize(
    ("conditions", "config", "expected"),
    [
        ([{"condition": "max_iterations", "count": 4}], {}, (4, "max_iterations")),
        ([until("loop.iteration == 3")], {}, (3, "until")),
        ([until("loop.iteration == 3"), {"condition": "max_iterations", "count": 2}], {}, (2, "max_iterations")),
        (
            [until("loop.iteration >= 3"), {"condition": "max_iterations", "count": 5}],
            {"stop_mode": "all"},
            (5, "until+max_iterations"),
        ),
        ([until("loop.iteration == 3"), until("loop.iteration == 4")], {"stop_mode": "all"}, (10, "max_iterations")),
        ([{"condition": "stable_output", "threshold": 1.0}], {"results": "'same'"}, (2, "stable_output")),
        (
            [{"condition": "stable_output", "threshold": 1.0, "patience": 3}],
            {"results": "'same'"},
            (4, "stable_output"),
        ),
        (
            [{"condition": "oscillation", "threshold": 1.0}],
            {"results": "string(loop.index % 3)"},
            (4, "oscillation"),
        ),
        (
            [{"condition": "oscillation", "threshold": 1.0}],
            {"results": "'same'"},
            (3, "oscillation"),
        ),
        (
            [{"condition": "plateau", "patience": 2}],
            {"score": "loop.iteration < 4 ? loop.iteration : 3"},
            (5, "plateau"),
        ),
        (
            [{"condition": "plateau", "patience": 1, "epsilon": 1.0}],
            {"score": "loop.iteration"},
            (2, "plateau"),
        ),
        ([{"condition": "plateau", "patience": 3}], {"score": "10 - loop.iteration"}, (4, "plateau")),
        ([{"condition": "score", "minimum": 3.0}], {"score": "loop.iteration"}, (3, "score_reached")),
        ([{"condition": "score"}], {"score": "loop.iteration"}, (8, "score_reached")),
        ([{"condition": "score", "minimum": 0.5}], {"score": "-1.0"}, (10, "max_iterations")),
        ([until("loop.iteration == 5"), until("loop.iteration == 2")], {}, (2, "until")),
    ],
)
async def test_a_loop_stops_at_the_conditions_in_its_list(
    conditions: list[dict[str, Any]], config: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert await stopped(conditions, **config) == expected


async def test_the_checked_conditions_are_in_the_history() -> None:
    conditions = [
        {"condition": "plateau", "patience": 2},
        {"condition": "stable_output", "threshold": 1.0},
        {"condition": "oscillation", "threshold": 1.0},
    ]
    played = await play(counted(conditions, "string(loop.iteration)", score="loop.iteration", max_iterations=3))

    assert [event.tested for event in played.of(LoopIterationCompleted)] == [
        {"plateau": 1.0},
        {"plateau": 2.0, "stable_output": 0.0},
        {"plateau": 3.0, "stable_output": 0.0, "oscillation": 0.0},
    ]


async def test_a_loop_stops_at_its_budget_condition() -> None:
    model = FunctionModel("text", price=DOLLAR_A_TOKEN_OUT, usage=TEN_OUT)
    workflow = around(
        llm("draft"),
        edges="loop -> draft -> exit",
        max_iterations=10,
        stop_when=[{"condition": "budget", "budget_usd": 25.0}],
    )

    played = await play(workflow, model)

    assert (played.loop.iterations_run, played.loop.exit_reason, played.loop.converged) == (3, "budget", False)
    assert played.result.status == "completed"


def slow(call: Call) -> Any:
    async def answer() -> str:
        import asyncio

        await asyncio.sleep(4)
        return f"text {call.iteration}"

    return answer()


def test_a_loop_stops_at_its_time_limit_condition_after_a_whole_iteration() -> None:
    workflow = around(
        llm("draft"),
        edges="loop -> draft -> exit",
        max_iterations=10,
        stop_when=[{"condition": "time", "seconds": 10.0}],
    )

    played: Played = virtually(play(workflow, slow))

    assert (played.loop.iterations_run, played.loop.exit_reason, played.loop.converged) == (3, "timeout", False)


@pytest.mark.parametrize(
    ("on_timeout", "score", "out"), [("return_last", "", "text 1"), ("return_best", "-loop.index", "text 0")]
)
def test_on_timeout_can_return_a_result(on_timeout: str, score: str, out: str) -> None:
    workflow = around(
        llm("draft"),
        edges="loop -> draft -> exit",
        max_iterations=10,
        timeout_s=10.0,
        on_timeout=on_timeout,
        score=score,
    )

    played: Played = virtually(play(workflow, slow))

    assert played.out == out
    assert (played.loop.exit_reason, played.loop.converged) == ("timeout", False)


def test_a_timeout_before_a_whole_iteration_is_always_an_error() -> None:
    workflow = around(
        llm("draft"), edges="loop -> draft -> exit", timeout_s=2.0, on_timeout="return_last", max_iterations=3
    )

    played: Played = virtually(play(workflow, slow, ends="failed"))

    assert "timeout" in played.result.error


async def test_return_best_works_with_max_iterations_alone() -> None:
    workflow = counted([], "string(loop.iteration)", score="loop.iteration == 2 ? 9 : 1", max_iterations=4)
    best = counted(
        [],
        "string(loop.iteration)",
        score="loop.iteration == 2 ? 9 : 1",
        max_iterations=4,
        on_max_iterations="return_best",
    )

    assert (await play(workflow)).out == "4"
    assert (await play(best)).out == "2"
    assert validate(best) == []


@pytest.mark.parametrize(
    ("config", "field", "code", "severity"),
    [
        ({"stop_when": [{"condition": "plateau"}]}, "stop_when.0.condition", "no-score", "error"),
        ({"stop_when": [{"condition": "score"}]}, "stop_when.0.condition", "no-score", "error"),
        ({"stop_when": [until(" ")]}, "stop_when.0.expression", "no-expression", "error"),
        ({"stop_when": [until("nothing == 1")]}, "stop_when.0.expression", "unknown-name", "error"),
        ({"stop_when": [until("1 +")]}, "stop_when.0.expression", "bad-expression", "error"),
        ({"stop_when": [{"condition": "judge"}]}, "judge", "no-criteria", "error"),
        ({"stop_when": [{"condition": "evaluator"}]}, "stop_when.0.condition", "no-evaluator", "error"),
        ({"on_timeout": "return_best"}, "on_timeout", "no-score", "error"),
        ({"stop_when": [{"condition": "moon"}]}, "stop_when.0.condition", "unknown-condition", "error"),
        ({"stop_when": [{"expression": "true"}]}, "stop_when.0.condition", "unknown-condition", "error"),
        ({"stop_when": [{"condition": "plateau", "patience": 0}]}, "stop_when.0.patience", "bad-config", "error"),
        (
            {"stop_when": [{"condition": "all_of", "conditions": [until("1 +")]}]},
            "stop_when.0.conditions.0.expression",
            "bad-expression",
            "error",
        ),
        ({"stop_when": [{"condition": "all_of"}]}, "stop_when.0.conditions", "no-conditions", "error"),
        ({"stop_when": [{**until("true"), "color": 1}]}, "stop_when.0.color", "unknown-config-key", "warning"),
        ({"on_max_iterations": "fail"}, "on_max_iterations", "no-effect", "warning"),
    ],
)
def test_an_invalid_list_of_conditions_is_a_problem(
    config: dict[str, Any], field: str, code: str, severity: str
) -> None:
    workflow = around(formula("number", "1"), edges="loop -> number -> exit", **config)

    assert [(problem.code, problem.field, problem.severity) for problem in validate(workflow)] == [
        (code, field, severity)
    ]


async def test_an_evaluator_in_the_list_controls_the_loop() -> None:
    workflow = around(
        rules("check", {"done": "loop.iteration == 3", "continue": "else"}),
        edges="loop -> check\ncheck.done -> exit",
        max_iterations=10,
        stop_when=[{"condition": "evaluator"}, {"condition": "max_iterations", "count": 8}],
    )

    played = await play(workflow)

    assert (played.loop.iterations_run, played.loop.exit_reason) == (3, "evaluator_done")
