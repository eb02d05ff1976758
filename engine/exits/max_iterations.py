"""The exit condition `max_iterations`: a number of iterations has run; and the cap of every loop."""

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
    label="A number of iterations has run",
    help="Stops after a number of iterations. Use it together with other conditions that must all hold.",
    config=MaxIterationsConfig,
    make=stateless(MAX_ITERATIONS, lambda config, iteration: iteration.index + 1 >= config.count),
    explain=lambda config, evidence: f"iteration {evidence.last.index + 1} of {config.count}",
    exit_reason_label="max iterations reached",
    is_limit=True,
    is_shared_reason=True,
    to_python=lambda config, _writer: PythonTest(f"loop['index'] + 1 >= {config.count}"),
)

MAX_ITERATIONS_CAP: Final = 50
"""The maximum that a file can ask for. The user can raise it in the settings or on the command line."""

_shown_cap = MAX_ITERATIONS_CAP


def shown_cap() -> int:
    """The user's cap for texts about a document; runs and checks get it as an argument."""
    return _shown_cap


def set_shown_cap(cap: int) -> None:
    """Set the cap for texts about a document, from the user's settings."""
    global _shown_cap  # noqa: PLW0603 - the program has one user
    _shown_cap = cap


def clamped(max_iterations: int, cap: int) -> int:
    """Clamp a number of iterations to 1 … cap."""
    return min(max(max_iterations, 1), cap)
