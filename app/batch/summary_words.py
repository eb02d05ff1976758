"""What the window says that a batch came to."""

from __future__ import annotations

from engine.batch.result import BatchSummary
from engine.models.base import Usage
from engine.runner.words import counted_warnings, money, tokens


def summary_words(summary: BatchSummary) -> str:
    """What a batch came to, in two lines: the counts, and quality against iterations against cost."""
    counts = [f"{summary.completed} of {counted(summary.rows)} completed"]
    counts += [f"{summary.reused} of them before"] if summary.reused else []
    counts += [f"{summary.failed} failed"] if summary.failed else []
    spent = " (budget spent)" if summary.is_budget_spent else ""
    counts += [f"{summary.not_run} not run{spent}"] if summary.not_run else []
    counts += [counted_warnings(summary.warnings)] if summary.warnings else []
    counts += [tokens(Usage(summary.tokens, 0)), money(None if summary.is_price_unknown else summary.cost_usd)]
    groups = [
        f"{group.iterations} iteration{'' if group.iterations == 1 else 's'}: {counted(group.rows)}"
        + ("" if group.mean_score is None else f", mean score {group.mean_score:.2f}")
        + f", {money(group.mean_cost_usd)} each"
        for group in summary.by_iterations
        if group.iterations
    ]
    return "\n".join((" · ".join(counts), *groups))


def counted(rows: int) -> str:
    """A number of rows."""
    return "1 row" if rows == 1 else f"{rows:,} rows"
