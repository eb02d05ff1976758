"""The exit condition `max_iterations`: a number of iterations has run."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from engine.exits.condition import ConditionConfig, ConditionSpec, PythonTest, stateless

MAX_ITERATIONS: Final = "max_iterations"


class MaxIterationsConfig(ConditionConfig):
    """Settings of the condition `max_iterations`."""

    count: int = Field(
        default=3, ge=1, le=1000, title="Iterations", description="How many iterations run before the loop stops."
    )


SPEC = ConditionSpec(
    name=MAX_ITERATIONS,
    label="After a number of iterations",
    help="Stops after a number of iterations.",
    config=MaxIterationsConfig,
    make=stateless(MAX_ITERATIONS, lambda config, iteration: iteration.index + 1 >= config.count),
    explain=lambda config, evidence: f"iteration {evidence.last.index + 1} of {config.count}",
    exit_reason_label="max iterations reached",
    is_limit=True,
    is_shared_reason=True,
    to_python=lambda config, _writer: PythonTest(f"loop['index'] + 1 >= {config.count}"),
)
