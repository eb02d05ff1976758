"""Progress and summary of a batch on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engine.batch.local_executor import RESUME_ROW
from engine.cli.exit_codes import ExitCode
from engine.cli.output import err, out, write_json
from engine.formatting import format_count, format_duration, format_money, format_score
from engine.text_sanitizing import harmless

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from engine.batch.batch import BatchResult
    from engine.batch.result import BatchSummary, RowResult
    from engine.batch.rows import BatchRow
    from engine.cli.output import Screen

_MOST_FAILURES = 10


class BatchView:
    """Writes progress to standard error: a progress bar on a terminal, elsewhere a line for each row.

    Args:
        rows: Number of rows.
        is_quiet: Whether to write no lines for rows.
    """

    def __init__(self, rows: int, *, is_quiet: bool) -> None:
        self._rows = rows
        self._is_quiet = is_quiet
        self._screen = err()
        self._ended = self._failed = self._running = 0
        self._cost: float | None = 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    async def __aenter__(self) -> Self:
        if self._screen.interactive:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("Rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(
                *columns, TextColumn("{task.fields[words]}"), console=self._screen.console, transient=True
            )
            self._task = self._bar.add_task("", total=self._rows, words="")
            self._bar.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def note(self, notes: Iterable[str]) -> None:
        """Write notes to standard error."""
        for note in notes:
            self._screen.line(note)

    def begin(self, _row: BatchRow) -> None:
        """A row has started."""
        self._running += 1
        self._draw()

    def take(self, result: RowResult) -> None:
        """A row has ended."""
        if not result.is_reused:
            self._running = max(self._running - 1, 0)
            self._cost = None if self._cost is None or result.cost_usd is None else self._cost + result.cost_usd
        self._ended += 1
        self._failed += result.status == "failed"
        if self._bar is not None:
            self._draw()
        elif not self._is_quiet and not result.is_reused:
            self._screen.line(_row_line(result))

    def finish(self, result: BatchResult, out_path: Path | None, *, as_json: bool, stopped_code: int | None) -> int:
        """Write the summary, and return the exit code."""
        if as_json:
            write_json({"batch": result.batch, "summary": result.summary.to_json()})
        else:
            write_summary(out(), result.summary)
            if out_path is not None:
                out().line(f"Results: {out_path}.")
        self.note(result.notes)
        failed = [row for row in result.rows if row.status == "failed"]
        for row in failed[:_MOST_FAILURES]:
            err().line(f"Row {row.row} failed: {row.error}", style="red")
        if len(failed) > _MOST_FAILURES:
            err().line(f"{len(failed) - _MOST_FAILURES} more rows failed.", style="red")
        if any(row.error.endswith(RESUME_ROW) for row in failed):
            err().line("To repeat such calls, run the same command with --retry-in-flight.")
        if stopped_code is not None:
            err().line("Stopped. To continue, run the same command again.")
            return stopped_code
        if result.summary.is_budget_spent:
            left = _rows(result.summary.not_run)
            err().line(f"The budget is used up: {left} not started. To continue, run again with a higher --budget-usd.")
            return ExitCode.FAILED
        return ExitCode.FAILED if failed else ExitCode.DONE

    def _draw(self) -> None:
        if self._bar is not None and self._task is not None:
            failed = f", {self._failed} failed" if self._failed else ""
            words = harmless(f"{self._running} running{failed}, {format_money(self._cost)}")
            self._bar.update(self._task, completed=self._ended, words=words)


def _rows(count: int) -> str:
    return format_count(count, "row was", "rows were")


def _row_line(result: RowResult) -> str:
    parts = [f"row {result.row}: {result.status}"]
    if result.score is not None:
        parts.append(f"score {format_score(result.score)}")
    if result.iterations:
        parts.append(format_count(result.iterations, "iteration"))
    parts += [format_duration(result.duration_s), format_money(result.cost_usd)]
    if result.warnings:
        parts.append(format_count(len(result.warnings), "warning"))
    return ", ".join(parts)


def write_summary(screen: Screen, summary: BatchSummary) -> None:
    """Write the totals of a batch, and a table of score and cost by number of iterations."""
    counts = [f"{summary.completed} of {summary.rows} rows completed"]
    if summary.reused:
        counts.append(f"{summary.reused} of them reused")
    if summary.failed:
        counts.append(f"{summary.failed} failed")
    if summary.not_run:
        counts.append(f"{summary.not_run} not run" + (" (budget used up)" if summary.is_budget_spent else ""))
    screen.line(f"{', '.join(counts)}.", style="bold")
    price = format_money(summary.cost_usd) + (" plus rows of unknown price" if summary.is_price_unknown else "")
    used = format_count(summary.tokens, "token")
    score = f", mean score {format_score(summary.mean_score)}" if summary.mean_score is not None else ""
    screen.line(f"{used}, {price}, {format_duration(summary.duration_s)} running{score}.")
    if summary.warnings:
        screen.line(
            f"{format_count(summary.warnings, 'warning')} in {format_count(summary.rows_with_warnings, 'row')}.",
            style="yellow",
        )
    if any(group.iterations for group in summary.by_iterations):
        heads = ("iterations", "rows", "mean score", "mean cost", "exit reasons")
        screen.table(heads, [_group_cells(summary, index) for index in range(len(summary.by_iterations))])


def _group_cells(summary: BatchSummary, index: int) -> tuple[str, ...]:
    group = summary.by_iterations[index]
    score = "" if group.mean_score is None else format_score(group.mean_score)
    reasons = ", ".join(f"{reason} {count}" for reason, count in group.exit_reasons.items())
    return (str(group.iterations), str(group.rows), score, format_money(group.mean_cost_usd), reasons)
