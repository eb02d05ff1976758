"""What the rows of a batch come to, one by one and together."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from engine.batch.rows import BatchRow
from engine.errors import EngineError
from engine.run_state.result import LoopResult, RunResult
from engine.values import Value

RowStatus = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class RowResult:
    """What a row came to.

    Attributes:
        row: Its place in the table, from 1.
        key: What finds it again.
        run_id: Its run; empty where none was begun.
        status: How it ended.
        inputs: What it was given.
        outputs: Named results.
        score: How good it is: of the loop that ended last, the score of the iteration that was returned; else a result
            that is called `score` and is a number; None without one.
        iterations: How many iterations its loops made, nested ones included.
        exit_reason: Why its outermost loop stopped, of several the one that ended last; empty without one.
        tokens: Tokens used.
        cost_usd: US dollars; None where a price is unknown.
        duration_s: Seconds at work.
        error: What failed, and what to do about it.
        warnings: The warnings of its run, each with its place.
        is_reused: Whether it was done before and not run again.
        extra: The cells of the table's columns that are no input's, by column.
    """

    row: int
    key: str
    run_id: str
    status: RowStatus
    inputs: dict[str, Value] = field(default_factory=dict[str, Value])
    outputs: dict[str, Value] = field(default_factory=dict[str, Value])
    score: float | None = None
    iterations: int = 0
    exit_reason: str = ""
    tokens: int = 0
    cost_usd: float | None = 0.0
    duration_s: float = 0.0
    error: str = ""
    warnings: tuple[str, ...] = ()
    is_reused: bool = False
    extra: dict[str, Value] = field(default_factory=dict[str, Value])

    @property
    def warning_count(self) -> int:
        """How many warnings its run has."""
        return len(self.warnings)

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return asdict(self)


def row_result(row: BatchRow, result: RunResult, *, is_reused: bool = False) -> RowResult:
    """What a row came to, by what its run came to."""
    last = _last_outermost(result)
    return RowResult(
        row=row.number,
        key=row.key,
        run_id=result.run_id,
        status="cancelled" if result.status == "running" else result.status,
        inputs=row.inputs,
        outputs=result.outputs,
        score=_score(result, last),
        iterations=sum(loop.iterations_run for loop in result.loops.values()),
        exit_reason=last.exit_reason if last is not None else "",
        tokens=result.usage.total_tokens,
        cost_usd=result.cost_usd,
        duration_s=result.duration_s,
        error=f"{result.error} {result.remedy}".strip(),
        warnings=result.warnings,
        is_reused=is_reused,
    )


def refused_row(row: BatchRow, error: EngineError | str) -> RowResult:
    """A row whose run could not be begun."""
    return RowResult(row.number, row.key, "", "failed", row.inputs, error=str(error))


def _last_outermost(result: RunResult) -> LoopResult | None:
    outermost = [loop for path, loop in result.loops.items() if "." not in path and loop.exit_reason]
    return outermost[-1] if outermost else None


def _score(result: RunResult, loop: LoopResult | None) -> float | None:
    if loop is not None and loop.iterations:
        returned = loop.iterations[-1 if loop.returned is None else loop.returned]
        if returned.score is not None:
            return returned.score
    stated = result.outputs.get("score")
    return float(stated) if isinstance(stated, (int, float)) and not isinstance(stated, bool) else None


@dataclass(frozen=True, slots=True)
class IterationsGroup:
    """The completed rows that took the same number of iterations: quality against iterations against cost.

    Attributes:
        iterations: How many.
        rows: How many rows took that many.
        mean_score: Of those that have a score; None where none has.
        mean_cost_usd: US dollars a row; None where a price is unknown.
        exit_reasons: Why their loops stopped, and how often.
    """

    iterations: int
    rows: int
    mean_score: float | None
    mean_cost_usd: float | None
    exit_reasons: dict[str, int]


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """What a batch came to.

    Attributes:
        rows: Rows of the table.
        completed: Those that came to their end, now or before.
        failed: Those that failed.
        not_run: Those that were stopped or not begun.
        reused: Those that were done before.
        tokens: Tokens of all rows.
        cost_usd: US dollars of all rows whose price is known.
        is_price_unknown: Whether the price of a row is not in it.
        duration_s: Seconds at work, all rows together.
        mean_score: Of the completed rows that have a score; None where none has.
        by_iterations: The completed rows by their number of iterations, the fewest first.
        is_budget_spent: Whether rows were not begun because the batch's budget was spent.
        rows_with_warnings: Rows whose runs have warnings.
        warnings: The warnings of all rows.
    """

    rows: int
    completed: int
    failed: int
    not_run: int
    reused: int
    tokens: int
    cost_usd: float
    is_price_unknown: bool
    duration_s: float
    mean_score: float | None
    by_iterations: tuple[IterationsGroup, ...]
    is_budget_spent: bool = False
    rows_with_warnings: int = 0
    warnings: int = 0

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {**asdict(self), "by_iterations": [asdict(group) for group in self.by_iterations]}


def summarize(results: Iterable[RowResult], rows: int, *, is_budget_spent: bool = False) -> BatchSummary:
    """What the rows that have ended come to.

    Args:
        results: What rows came to.
        rows: How many rows there are.
        is_budget_spent: Whether rows were not begun because the batch's budget was spent.
    """
    ended = list(results)
    completed = [result for result in ended if result.status == "completed"]
    failed = sum(result.status == "failed" for result in ended)
    costs = [result.cost_usd for result in ended]
    counts = sorted({result.iterations for result in completed})
    return BatchSummary(
        rows=rows,
        completed=len(completed),
        failed=failed,
        not_run=rows - len(completed) - failed,
        reused=sum(result.is_reused for result in ended),
        tokens=sum(result.tokens for result in ended),
        cost_usd=sum(cost for cost in costs if cost is not None),
        is_price_unknown=None in costs,
        duration_s=sum(result.duration_s for result in ended),
        mean_score=_mean([result.score for result in completed]),
        by_iterations=tuple(
            _group(count, [result for result in completed if result.iterations == count]) for count in counts
        ),
        is_budget_spent=is_budget_spent,
        rows_with_warnings=sum(bool(result.warnings) for result in ended),
        warnings=sum(len(result.warnings) for result in ended),
    )


def _group(iterations: int, rows: list[RowResult]) -> IterationsGroup:
    costs = [row.cost_usd for row in rows]
    reasons = Counter(row.exit_reason for row in rows if row.exit_reason)
    mean_cost = None if None in costs else _mean(costs)
    return IterationsGroup(iterations, len(rows), _mean([row.score for row in rows]), mean_cost, dict(reasons))


def _mean(numbers: list[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return statistics.fmean(known) if known else None
