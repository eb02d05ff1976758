"""The exit condition `max_iterations`: a number of iterations has run. Each loop has one that caps all others."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from engine.exits.condition import (
    ConditionConfig,
    ConditionSpec,
    EndedIteration,
    ExitCondition,
    PythonTest,
    PythonWriter,
)

MAX_ITERATIONS: Final = "max_iterations"


class MaxIterationsConfig(ConditionConfig):
    """Settings of the condition `max_iterations`."""

    count: int = Field(
        default=3, ge=1, le=1000, title="Iterations", description="How many iterations run before the loop stops."
    )


class MaxIterations(ExitCondition):
    """Stops after a number of iterations."""

    def __init__(self, count: int) -> None:
        self._count = count

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return `max_iterations` after the last iteration."""
        return MAX_ITERATIONS if iteration.index + 1 >= self._count else None


def _to_python(config: MaxIterationsConfig, _writer: PythonWriter) -> PythonTest:
    return PythonTest(f"loop['index'] + 1 >= {config.count}")


SPEC = ConditionSpec(
    name=MAX_ITERATIONS,
    label="A number of iterations has run",
    help="Stops after a number of iterations. Use it together with other conditions that must all hold.",
    config=MaxIterationsConfig,
    make=lambda config: MaxIterations(config.count),
    explain=lambda config, evidence: f"iteration {evidence.last.index + 1} of {config.count}",
    exit_reason_label="max iterations reached",
    is_limit=True,
    is_shared_reason=True,
    to_python=_to_python,
)
