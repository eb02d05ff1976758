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


MAX_ITERATIONS_CAP: Final = 50
"""The most iterations that a file can ask for. The app and the command line may raise it, a file may not."""

_shown_cap = MAX_ITERATIONS_CAP


def shown_cap() -> int:
    """The person's own cap, to which texts about a document clamp its counts; runs and checks are given theirs."""
    return _shown_cap


def set_shown_cap(cap: int) -> None:
    """Let texts about documents clamp counts to another cap: the window does so from the person's settings."""
    global _shown_cap  # noqa: PLW0603 - one person uses the program
    _shown_cap = cap


def clamped(max_iterations: int, cap: int) -> int:
    """The count that a run holds to."""
    return min(max(max_iterations, 1), cap)
