"""`until`: an expression that stops a loop, checked before everything else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.semantics.documents import (
    around,
    llm,
    rules,
    transform,
)
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import numbered


async def _until(expression: str, **more: Any) -> Any:
    workflow = around(
        llm("draft"),
        llm("critique"),
        edges="loop -> draft -> critique -> exit",
        max_iterations=5,
        until=expression,
        **more,
    )
    return await play(workflow, numbered)


@pytest.mark.parametrize(
    ("expression", "iterations"),
    [
        ("output == 'critique 1'", 2),
        ("nodes.draft == 'draft 2'", 3),
        ("loop.iteration == 2", 2),
        ("loop.index == 3", 4),
        ("loop.input == 'seed'", 1),
        ("loop.previous == 'critique 0'", 2),
        ("loop.last.draft == 'draft 1'", 3),
        ("cost_usd >= 0.0", 1),
        ("elapsed_s >= 0.0", 1),
        ("similarity != null && similarity > 0.5", 2),
        ("loop.iteration == loop.max_iterations - 1", 4),
    ],
)
async def test_until_stops_after_the_iteration_in_which_it_is_true(expression: str, iterations: int) -> None:
    played = await _until(expression)

    assert played.loop.iterations_run == iterations
    assert played.loop.exit_reason == "until"
    assert played.loop.converged is True
    assert played.loop.returned == iterations - 1


async def test_until_is_checked_before_everything_else() -> None:
    played = await _until("loop.iteration == 2", exit_condition="stable_output", stability_threshold=0.0)
    assert (played.loop.exit_reason, played.loop.iterations_run) == ("until", 2)

    played = await _until("loop.iteration == 5")
    assert (played.loop.exit_reason, played.loop.converged) == ("until", True)


async def test_until_precedes_a_router_that_is_done() -> None:
    workflow = around(
        rules("check", {"done": "true", "continue": "else"}),
        edges="loop -> check\ncheck.done -> exit",
        exit_condition="evaluator",
        until="true",
    )

    assert (await play(workflow)).loop.exit_reason == "until"


async def test_until_that_is_never_true_leaves_the_loop_to_its_other_conditions() -> None:
    played = await _until("false", exit_condition="stable_output", stability_threshold=0.5)

    assert played.loop.exit_reason == "stable_output"


@pytest.mark.parametrize("expression", ["output.nothing == 1", "1 / 0 == 1", "size(output)", "output"])
async def test_until_that_fails_or_is_not_boolean_fails_the_loop(expression: str) -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", until=expression)

    played = await play(workflow, numbered, ends="failed")

    assert played.loop.exit_reason == "error"
    assert len(played.model.calls) == 1
    assert played.result.node == "loop"
    assert expression in played.result.error or "until" in played.result.error.lower()


async def test_until_sees_nothing_of_a_skipped_node() -> None:
    workflow = around(
        rules("pick", {"first": "loop.index == 0", "second": "else"}),
        transform("a", "a"),
        transform("b", "b"),
        edges="loop -> pick\npick.first -> a -> exit\npick.second -> b -> exit",
        until="nodes.a == null",
        max_iterations=3,
    )

    assert (await play(workflow)).loop.iterations_run == 2
