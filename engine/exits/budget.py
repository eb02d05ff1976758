"""The exit condition `budget`: the loop has spent an amount of money."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from engine.exits.condition import (
    ChartSeries,
    ConditionConfig,
    ConditionSpec,
    EndedIteration,
    Evidence,
    ExitCondition,
    Need,
    PythonTest,
    PythonWriter,
    SeriesSource,
    compare,
)
from engine.formatting import format_money, format_spending
from engine.values import Value

BUDGET: Final = "budget"


class BudgetConfig(ConditionConfig):
    """Settings of the condition `budget`."""

    budget_usd: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        title="Budget (USD)",
        description="The loop stops after the iteration in which it has spent this much.",
    )


class SpentBudget(ExitCondition):
    """Stops after the iteration in which the loop has spent an amount of US dollars."""

    def __init__(self, budget_usd: float) -> None:
        self._budget_usd = budget_usd

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return `budget` once the amount is spent."""
        return BUDGET if iteration.spent_usd >= self._budget_usd else None

    def tested(self, iteration: EndedIteration) -> Value:
        """Record the amount spent."""
        return iteration.spent_usd


def _explain(config: BudgetConfig, evidence: Evidence) -> str:
    spent = evidence.number(BUDGET)
    return "spent $?" if spent is None else f"spent {compare(spent, config.budget_usd, format_money)}"


def _explain_stop(config: BudgetConfig, evidence: Evidence) -> str:
    return f"{format_spending(evidence.number(BUDGET) or 0.0, config.budget_usd, 'usd')} spent"


def _to_python(config: BudgetConfig, _writer: PythonWriter) -> PythonTest:
    return PythonTest(f"spent_since(loop['spent']) >= {config.budget_usd!r}")


SPEC = ConditionSpec(
    name=BUDGET,
    label="The loop has spent its budget",
    help="Stops after the iteration in which the loop has spent an amount.",
    config=BudgetConfig,
    make=lambda config: SpentBudget(config.budget_usd),
    explain=_explain,
    explain_stop=_explain_stop,
    exit_reason_label="budget used up",
    is_limit=True,
    is_shared_reason=True,
    needs=frozenset({Need.COST}),
    series=ChartSeries(SeriesSource.COST),
    to_python=_to_python,
)
