"""The exit condition `stable_output`: the result has stopped changing."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition
from engine.values import Value, is_empty

STABLE_OUTPUT = "stable_output"


class StableOutput(ExitCondition):
    """Stops when a result was at least `threshold` similar to the one before, `patience` times running."""

    name = STABLE_OUTPUT

    def __init__(self, threshold: float, patience: int) -> None:
        self._threshold = threshold
        self._patience = patience
        self._running = 0

    def observe(self, iteration: EndedIteration) -> None:
        """Count how often running the result was similar enough. An empty result is never stable."""
        alike = iteration.similarity is not None and iteration.similarity >= self._threshold
        self._running = self._running + 1 if alike and not is_empty(iteration.result) else 0

    def reason(self, iteration: EndedIteration) -> str | None:
        """`stable_output` when it was."""
        return STABLE_OUTPUT if self._running >= self._patience else None

    def tested(self, iteration: EndedIteration) -> Value:
        """How similar it was to the one before."""
        return iteration.similarity
