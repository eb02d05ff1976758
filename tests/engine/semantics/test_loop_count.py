"""`max_iterations` of a loop: its limits, and what happens when it is reached first."""

from __future__ import annotations

from typing import Any

import pytest

from engine import validate
from engine.document.problems import Severity
from engine.events import LoopCompleted, LoopIterationStarted
from engine.models.protocol import ModelError, ModelErrorKind
from tests.engine.semantics.documents import around, entry, flow, judge, leave, llm, loop, result, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import by_node, numbered, verdict


def _drafts(**config: Any) -> Any:
    return around(llm("draft"), edges="loop -> draft -> exit", **config)


def _judged(**config: Any) -> Any:
    return around(
        llm("draft"),
        judge(),
        edges="loop -> draft -> check\ncheck.done -> exit",
        exit_condition="evaluator",
        **config,
    )


async def test_a_loop_runs_max_iterations_times() -> None:
    played = await play(_drafts(max_iterations=3), numbered)

    assert played.model.paths == ["loop[0].draft", "loop[1].draft", "loop[2].draft"]
    assert played.out == "draft 2"
    assert played.results == ["draft 0", "draft 1", "draft 2"]
    assert played.iteration_inputs == ["seed", "draft 0", "draft 1"]
    assert played.loop.iterations_run == 3
    assert played.loop.exit_reason == "max_iterations"
    assert played.loop.converged is False
    assert played.loop.returned == 2


async def test_five_iterations_are_the_default() -> None:
    assert (await play(_drafts(), numbered)).loop.iterations_run == 5


async def test_a_cap_of_one_runs_once() -> None:
    played = await play(_drafts(max_iterations=1), numbered)

    assert (played.out, played.loop.iterations_run, played.loop.exit_reason) == ("draft 0", 1, "max_iterations")


@pytest.mark.parametrize(("asked", "runs"), [(0, 1), (-3, 1), (51, 50), (1000, 50), (50, 50)])
async def test_max_iterations_is_clamped_to_one_to_fifty(asked: int, runs: int) -> None:
    played = await play(_drafts(max_iterations=asked), "x")

    assert played.loop.iterations_run == runs
    assert {event.total for event in played.of(LoopIterationStarted)} == {runs}


@pytest.mark.parametrize("asked", [0, 51])
async def test_a_clamped_max_iterations_is_a_warning_and_noted_in_the_history(asked: int) -> None:
    (problem,) = validate(_drafts(max_iterations=asked))
    assert problem.severity is Severity.WARNING
    assert (problem.node, problem.field) == ("loop", "max_iterations")
    assert problem.remedy

    played = await play(_drafts(max_iterations=asked), "x")
    (event,) = played.of(LoopCompleted)
    assert any(str(asked) in warning for warning in event.warnings)
    assert played.loop.warnings == event.warnings


async def test_the_iteration_cap_is_a_run_setting_that_can_be_raised_or_lowered() -> None:
    assert (await play(_drafts(max_iterations=60), "x", max_iterations_cap=100)).loop.iterations_run == 60
    assert (await play(_drafts(max_iterations=60), "x", max_iterations_cap=55)).loop.iterations_run == 55
    assert (await play(_drafts(), "x", max_iterations_cap=2)).loop.iterations_run == 2
    assert validate(_drafts(max_iterations=60), max_iterations_cap=100) == []


@pytest.mark.parametrize("asked", ["3", 2.5, None, True, [3]])
def test_max_iterations_that_is_not_an_integer_is_an_error(asked: Any) -> None:
    problems = validate(_drafts(max_iterations=asked))

    assert [(problem.severity, problem.node, problem.field) for problem in problems] == [
        (Severity.ERROR, "loop", "max_iterations")
    ]


async def test_a_loop_that_is_never_done_ends_at_max_iterations_and_says_so() -> None:
    played = await play(_judged(max_iterations=4), by_node(draft=numbered, check=verdict("continue")))

    assert played.loop.iterations_run == 4
    assert played.loop.exit_reason == "max_iterations"
    assert played.loop.converged is False
    assert played.out == "draft 3"
    assert [record.branch for record in played.loop.iterations] == ["continue"] * 4


async def test_a_cap_of_one_that_is_not_done_returns_the_routers_value() -> None:
    played = await play(_judged(max_iterations=1), by_node(draft=numbered, check=verdict("continue")))

    assert (played.out, played.loop.exit_reason, played.loop.converged) == ("draft 0", "max_iterations", False)


_NOT_DONE = [
    {"exit_condition": "stable_output", "stability_threshold": 1.0},
    {"until": "false"},
]


@pytest.mark.parametrize("condition", _NOT_DONE)
async def test_max_iterations_reached_can_fail_the_loop(condition: dict[str, Any]) -> None:
    played = await play(_drafts(max_iterations=3, on_max_iterations="fail", **condition), numbered, ends="failed")

    assert played.loop.iterations_run == 3
    assert played.loop.exit_reason == "max_iterations"
    assert played.result.node == "loop"
    assert "3" in played.result.error
    assert played.result.remedy
    assert "out" not in played.result.outputs


@pytest.mark.parametrize("choice", ["fail", "return_with_flag", "return_last"])
async def test_a_loop_with_max_iterations_alone_returns_the_last_iteration(choice: str) -> None:
    played = await play(_drafts(max_iterations=3, on_max_iterations=choice, score="0 - loop.index"), numbered)

    assert played.out == "draft 2"
    assert played.result.warnings == ()


@pytest.mark.parametrize("condition", _NOT_DONE)
async def test_max_iterations_reached_can_be_flagged(condition: dict[str, Any]) -> None:
    played = await play(_drafts(max_iterations=3, on_max_iterations="return_with_flag", **condition), numbered)

    assert played.out == "draft 2"
    assert played.loop.converged is False
    assert played.of(LoopCompleted)[0].warnings
    assert played.result.warnings


@pytest.mark.parametrize("condition", _NOT_DONE)
async def test_max_iterations_reached_returns_the_last_result_silently_by_default(condition: Any) -> None:
    played = await play(_drafts(max_iterations=3, **condition), numbered)

    assert (played.out, played.loop.returned, played.result.warnings) == ("draft 2", 2, ())


async def test_max_iterations_reached_can_return_the_best_iteration() -> None:
    workflow = _drafts(max_iterations=4, until="false", on_max_iterations="return_best", score="size(output)")

    played = await play(workflow, by_node(draft=["a", "aaa", "aa", "b"]))

    assert (played.out, played.loop.returned) == ("aaa", 1)
    assert [record.score for record in played.loop.iterations] == [1, 3, 2, 1]
    assert played.loop.exit_reason == "max_iterations"
    assert played.loop.converged is False


async def test_a_loop_that_was_done_in_time_returns_the_last_and_not_the_best() -> None:
    workflow = _drafts(max_iterations=4, until="output == 'aa'", on_max_iterations="return_best", score="size(output)")

    played = await play(workflow, by_node(draft=["a", "aaa", "aa"]))

    assert (played.out, played.loop.returned, played.loop.converged) == ("aa", 2, True)


async def test_a_score_that_is_not_a_number_fails_the_loop() -> None:
    workflow = _drafts(max_iterations=4, until="false", on_max_iterations="return_best", score="output")

    played = await play(workflow, numbered, ends="failed")

    assert played.loop.exit_reason == "error"
    assert played.result.node == "loop"


async def test_a_failed_body_fails_the_loop() -> None:
    broken = ModelError(ModelErrorKind.AUTHENTICATION, "The key is wrong.")

    played = await play(_drafts(), by_node(draft=["one", broken]), ends="failed")

    assert played.loop.exit_reason == "error"
    assert played.loop.converged is False
    assert played.results == ["one"]
    assert played.result.node == "loop[1].draft"


async def test_the_iterations_of_consecutive_loops_stay_separate() -> None:
    workflow = flow(
        entry(),
        loop("one", max_iterations=2),
        transform("a", "{{input}}a"),
        leave("one_exit", "one"),
        loop("two", max_iterations=3),
        transform("b", "{{input}}b"),
        leave("two_exit", "two"),
        result(),
        edges="text -> one -> a -> one_exit -> two -> b -> two_exit -> out",
    )

    played = await play(workflow)

    assert played.out == "seedaabbb"
    assert {path: loop_result.iterations_run for path, loop_result in played.result.loops.items()} == {
        "one": 2,
        "two": 3,
    }
