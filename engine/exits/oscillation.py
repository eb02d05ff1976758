"""The exit condition `oscillation`: the result comes back to an earlier one, so that the loop goes round in circles."""

from __future__ import annotations

from typing import Final

from engine.exits.base import EndedIteration, ExitCondition
from engine.exits.similarity import as_text, similarity_from
from engine.values import Value, is_empty

OSCILLATION = "oscillation"
COMPARED_IN_FULL: Final = 8
"""With how many of the latest earlier results a result is compared in full, whatever the threshold.

With all others it is compared only as far as it takes to see whether the threshold is reached. A full comparison of
long texts takes milliseconds, and each iteration adds one.
"""
_LONG: Final = 10_000
"""Characters from which on a result is compared in full with fewer others: the work grows with their square."""


class Oscillation(ExitCondition):
    """Stops when a result is at least `threshold` similar to one from before the last."""

    name = OSCILLATION

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._earlier: list[str] = []
        self._last: list[str] = []
        self._closest: float | None = None

    def observe(self, iteration: EndedIteration) -> None:
        """Compare the result with all from before the last. An empty result, or none, comes back to nothing."""
        self._closest = None
        if not iteration.has_result:
            return
        result = None if is_empty(iteration.result) else as_text(iteration.result)
        if result is not None:
            self._closest = self._closest_to(result)
        self._earlier.extend(self._last)
        self._last = [] if result is None else [result]

    def _closest_to(self, result: str) -> float | None:
        if result in self._earlier:
            return 1.0
        closest: float | None = None
        in_full = max(COMPARED_IN_FULL * _LONG**2 // max(len(result), _LONG) ** 2, 1)
        for place, earlier in enumerate(reversed(self._earlier)):
            least = closest or 0.0
            if place >= in_full:
                least = max(least, self._threshold)
            alike = similarity_from(least, earlier, result)
            closest = closest if alike is None else alike
        return closest

    def reason(self, iteration: EndedIteration) -> str | None:
        """`oscillation` when it has come back."""
        return OSCILLATION if self._closest is not None and self._closest >= self._threshold else None

    def tested(self, iteration: EndedIteration) -> Value:
        """How similar it is to the most similar of the earlier ones.

        Where that is less than the threshold, it is the most similar of the latest few.
        """
        return self._closest
