"""The exit conditions `budget` and `time`: so much is spent, or so much time has passed, after an iteration."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition
from engine.values import Value

BUDGET = "budget"
TIMEOUT = "timeout"


class SpentBudget(ExitCondition):
    """Stops after the iteration in which the loop has spent that many US dollars."""

    name = BUDGET

    def __init__(self, budget_usd: float) -> None:
        self._budget_usd = budget_usd

    def reason(self, iteration: EndedIteration) -> str | None:
        """`budget` once it has."""
        return BUDGET if iteration.spent_usd >= self._budget_usd else None

    def tested(self, iteration: EndedIteration) -> Value:
        """What it has spent."""
        return iteration.spent_usd


class SpentTime(ExitCondition):
    """Stops after the iteration in which that many seconds have passed since the loop began."""

    name = "time"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def reason(self, iteration: EndedIteration) -> str | None:
        """`timeout` once they have."""
        return TIMEOUT if iteration.elapsed_s >= self._seconds else None

    def tested(self, iteration: EndedIteration) -> Value:
        """How many have passed."""
        return iteration.elapsed_s
