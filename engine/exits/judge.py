"""The exit condition `judge`: a model that was asked about the result says that it is done."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition
from engine.values import Value

JUDGE_DONE = "judge_done"


class Judged(ExitCondition):
    """Stops when the judge says so."""

    name = "judge"

    def reason(self, iteration: EndedIteration) -> str | None:
        """`judge_done` when it does."""
        return JUDGE_DONE if iteration.is_judged_done else None

    def tested(self, iteration: EndedIteration) -> Value:
        """What it said."""
        return iteration.is_judged_done
