"""The exit condition `plateau`: the best score has not risen for some iterations."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition
from engine.values import Value, is_empty

PLATEAU = "plateau"


class Plateau(ExitCondition):
    """Stops when the best score so far has risen by no more than `epsilon` in each of `patience` iterations running."""

    name = PLATEAU

    def __init__(self, epsilon: float, patience: int) -> None:
        self._epsilon = epsilon
        self._patience = patience
        self._best: float | None = None
        self._without_rise = 0

    def observe(self, iteration: EndedIteration) -> None:
        """Compare the score with the best so far. An iteration without a score has not raised it.

        One with an empty result is left out: a loop that produces nothing has not reached a plateau.
        """
        if iteration.has_result and is_empty(iteration.result):
            return
        score = iteration.score
        if self._best is None:
            self._best = score
            return
        if score is not None and score > self._best + self._epsilon:
            self._without_rise = 0
        else:
            self._without_rise += 1
        if score is not None:
            self._best = max(self._best, score)

    def reason(self, iteration: EndedIteration) -> str | None:
        """`plateau` when it has not risen for long enough."""
        return PLATEAU if self._without_rise >= self._patience else None

    def tested(self, iteration: EndedIteration) -> Value:
        """The best score so far."""
        return self._best
