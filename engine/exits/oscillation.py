"""The exit condition `oscillation`: the result comes back to an earlier one, so that the loop goes round in circles."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition
from engine.exits.similarity import similarity
from engine.values import Value

OSCILLATION = "oscillation"


class Oscillation(ExitCondition):
    """Stops when a result is at least `threshold` similar to one from before the last."""

    name = OSCILLATION

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._earlier: list[Value] = []
        self._last: list[Value] = []
        self._closest: float | None = None

    def observe(self, iteration: EndedIteration) -> None:
        """Compare the result with all from before the last. An iteration without a result comes back to nothing."""
        self._closest = None
        if not iteration.has_result:
            return
        if self._earlier:
            # With a threshold of 1 most comparisons end at the first look; the others are bounded.
            self._closest = max(similarity(earlier, iteration.result) for earlier in self._earlier)
        self._earlier.extend(self._last)
        self._last = [iteration.result]

    def reason(self, iteration: EndedIteration) -> str | None:
        """`oscillation` when it has come back."""
        return OSCILLATION if self._closest is not None and self._closest >= self._threshold else None

    def tested(self, iteration: EndedIteration) -> Value:
        """How similar it is to the most similar of the earlier ones."""
        return self._closest
