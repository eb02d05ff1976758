"""The exit condition `max_iterations`: the count is reached. It caps every other condition."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition

MAX_ITERATIONS = "max_iterations"


class MaxIterations(ExitCondition):
    """Stops after that many iterations."""

    name = MAX_ITERATIONS

    def __init__(self, count: int) -> None:
        self._count = count

    def reason(self, iteration: EndedIteration) -> str | None:
        """`max_iterations` once the count is reached."""
        return MAX_ITERATIONS if iteration.index + 1 >= self._count else None
