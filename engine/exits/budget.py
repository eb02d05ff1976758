"""The exit condition `budget`: the loop has spent an amount of money."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from engine.exits.condition import (
    ChartSeries,
    ConditionConfig,
    ConditionSpec,
    Evidence,
    Need,
    PythonTest,
    SeriesSource,
    compare,
    stateless,
)
from engine.formatting import format_money, format_spending

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


def _explain(config: BudgetConfig, evidence: Evidence) -> str:
    spent = evidence.number(BUDGET)
    return "spent $?" if spent is None else f"spent {compare(spent, config.budget_usd, format_money)}"


def _explain_stop(config: BudgetConfig, evidence: Evidence) -> str:
    return f"{format_spending(evidence.number(BUDGET) or 0.0, config.budget_usd, 'usd')} spent"


SPEC = ConditionSpec(
    name=BUDGET,
    label="After an amount of money is spent",
    card_label="spend limit",
    help="Stops after the iteration in which the loop has spent an amount.",
    config=BudgetConfig,
    make=stateless(
        BUDGET,
        lambda config, iteration: iteration.spent_usd >= config.budget_usd,
        lambda iteration: iteration.spent_usd,
    ),
    explain=_explain,
    explain_stop=_explain_stop,
    exit_reason_label="budget used up",
    is_limit=True,
    is_shared_reason=True,
    needs=frozenset({Need.COST}),
    series=ChartSeries(SeriesSource.COST),
    to_python=lambda config, _writer: PythonTest(f"spent_since(loop['spent']) >= {config.budget_usd!r}"),
)
