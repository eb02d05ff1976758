"""Implements `loopwright batch`, with its progress and summary."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from engine.cli.common_options import (
    NO_FLAGS,
    Allow,
    BudgetTokens,
    ModelName,
    RunFlags,
    SourceName,
    StorePath,
    ask_consent,
    finite,
    models_with,
    server_addresses,
    with_run_flags,
)
from engine.cli.exit_codes import ExitCode, Interrupts
from engine.cli.output import Screen, err, out, write_json
from engine.cli.remedies import command_of
from engine.errors import EngineError, Fix
from engine.formatting import format_count, format_duration, format_money, format_score
from engine.models.protocol import add_costs
from engine.text_sanitizing import harmless, shown

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from rich.progress import Progress, TaskID

    from engine import Batch, BatchResult, RunOptions, Workflow
    from engine.batch.rows import BatchRow, BatchSummary, RowResult

_MAX_FAILURES = 10


@with_run_flags()
def batch_command(
    file: SourceName,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="CSV, Excel workbook or JSON Lines (.jsonl), with an input per column and a run per row; - for "
            "standard input.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="Output file for the results: .csv, .xlsx or .jsonl."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="INPUT=COLUMN", help="Column with the values of an input. Repeatable."),
    ] = None,
    no_extra_columns: Annotated[
        bool,
        typer.Option(
            "--no-extra-columns", "--ignore-others", help="Omit columns that are not inputs from the results."
        ),
    ] = False,
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="Sheet of a workbook. Default: the first with rows.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="Text encoding of the table, such as cp1252. Default: detected.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rows that run at the same time.")] = 4,
    model: ModelName = None,
    budget_usd: Annotated[
        float | None,
        typer.Option(min=0, callback=finite, metavar="USD", help="Budget of all rows together in US dollars."),
    ] = None,
    row_budget_usd: Annotated[
        float | None, typer.Option(min=0, callback=finite, metavar="USD", help="Budget of each row in US dollars.")
    ] = None,
    budget_tokens: BudgetTokens = None,
    name: Annotated[str, typer.Option(metavar="TEXT", help="Name of the batch. A new name runs every row again.")] = "",
    executor: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="Where rows run: dask for local processes, dask=ADDRESS for a cluster."),
    ] = None,
    retry_in_flight: Annotated[
        bool,
        typer.Option("--retry-in-flight", help="Repeat tool calls that were in flight when a row stopped."),
    ] = False,
    flags: RunFlags = NO_FLAGS,
    allow: Allow = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the summary as one JSON object.")] = False,
    store: StorePath = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not store the runs in the history.")] = False,
) -> int:
    """Run a workflow for each row of a table, and write the results.

    Ctrl+C stops the batch; finished rows are stored. To continue, run the same command again: rows that are finished
    in OUT or in the history do not run again.

    With --budget-usd, the batch stops before a call that could exceed the budget, with exit code 1. To continue, run
    the command again with a higher budget.

    Example: loopwright batch self-refine tasks.csv -o results.csv --concurrency 8
    """
    from engine import Batch, BatchOptions, inputs_of_table, read_table
    from engine.batch.read_table import read_piped_table
    from engine.batch.table import MAX_BYTES
    from engine.batch.text_encoding import EncodingError
    from engine.cli.arguments import STANDARD_INPUT, open_source, read_standard_input, used_twice
    from engine.cli.run_command import check_document, open_history
    from engine.cli.run_monitor import pin_notice
    from engine.runner.event_loop import run_in_new_loop

    if file == str(table) == STANDARD_INPUT:  # else the table would be read as the workflow
        raise used_twice()
    source = open_source(file)
    flags = replace(flags, model=model, budget_usd=row_budget_usd, budget_tokens=budget_tokens)
    options = replace(flags.options(source.workflow), source=source.stored_path)
    check_document(source.workflow, file, options)
    _check_model_files(source.workflow, options)
    try:
        if str(table) == STANDARD_INPUT:
            content = read_piped_table(read_standard_input(MAX_BYTES), sheet=sheet, encoding=encoding)
        else:
            content = read_table(table, sheet=sheet, encoding=encoding)
    except EncodingError as error:
        remedy = "Add --encoding, such as --encoding cp1252, or save the table as UTF-8 or as an Excel workbook."
        raise EngineError(error.message, remedy if encoding is None else error.remedy) from error
    inputs = inputs_of_table(source.workflow, content, _columns(columns or ()), extra_columns=not no_extra_columns)
    # Templates are trusted, also when their runs are resumed.
    confirms = ask_consent(source.workflow, allow=allow or source.is_template)
    view = BatchView(len(inputs), is_quiet=as_json)
    with (
        nullcontext() if no_store else open_history(store) as opened,
        _executor(executor, concurrency) as rows_executor,
    ):
        view.note(f"{content.name}: {note}" for note in content.notes)
        view.note(pin_notice(source.workflow))
        batch_options = BatchOptions(
            run=replace(options, confirm_calls=confirms),
            concurrency=concurrency,
            budget_usd=budget_usd,
            out=out,
            store=opened,
            name=name,
            models=lambda: models_with(store, opened),
            addresses=server_addresses(),
            executor=rows_executor,
            retry_in_flight=retry_in_flight,
        )
        batch = Batch(source.workflow, inputs, batch_options, on_row=view.take, on_begin=view.begin)
        result, stopped_code = run_in_new_loop(_watched(batch, view))
    return view.finish(result, out, as_json=as_json, stopped_code=stopped_code if batch.is_stopped else None)


def _check_model_files(workflow: Workflow, options: RunOptions) -> None:
    """Refuse a batch of which each row would fail for the same reason.

    Raises:
        EngineError: A model is a file that is missing on this computer.
    """
    from engine.plan.model_files import missing_model_files
    from engine.plan.structure import analyse

    problem = next(missing_model_files(analyse(workflow), options.default_model or "", options.model), None)
    if problem is not None:
        raise EngineError(f"{problem.place}: {problem.message}", problem.remedy, fix=problem.fix)


async def _watched(batch: Batch, view: BatchView) -> tuple[BatchResult, int]:
    loop = asyncio.get_running_loop()
    with Interrupts(lambda: loop.call_soon_threadsafe(batch.stop)) as interrupts:
        async with view:
            result = await batch.run()
        return result, interrupts.code


def _columns(given: list[str] | tuple[str, ...]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for text in given:
        name, sign, column = text.partition("=")
        if not sign:
            raise EngineError(f'"--column {shown(text, 60)}" is malformed.', "Use --column INPUT=COLUMN.")
        columns[name] = column
    return columns


@contextmanager
def _executor(where: str | None, workers: int) -> Generator[Executor | None]:
    if where is None:
        yield None
        return
    kind, _, address = where.partition("=")
    if kind != "dask":
        raise EngineError(f'The executor "{shown(where, 60)}" is unknown.', "Use dask, or dask=ADDRESS.")
    from engine.batch.executors import dask_executor

    with dask_executor(address, workers) as executor:
        yield executor


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
                *columns, TextColumn("{task.fields[text]}"), console=self._screen.console, transient=True
            )
            self._task = self._bar.add_task("", total=self._rows, text="")
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
        """Count a row that has started."""
        self._running += 1
        self._draw()

    def take(self, result: RowResult) -> None:
        """Count a row that has ended, and write its line."""
        if not result.is_reused:
            self._running = max(self._running - 1, 0)
            self._cost = add_costs(self._cost, result.cost_usd)
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
            _write_summary(out(), result.summary)
            if out_path is not None:
                out().line(f"Results: {out_path}.")
        self.note(result.notes)
        failed = [row for row in result.rows if row.status == "failed"]
        for row in failed[:_MAX_FAILURES]:
            err().line(f"Row {row.row} failed: {row.error} {_command(row.fix)}".rstrip(), style="red")
        if len(failed) > _MAX_FAILURES:
            err().line(f"{len(failed) - _MAX_FAILURES} more rows failed.", style="red")
        if stopped_code is not None:
            err().line("Stopped. To continue, run the same command again.")
            return stopped_code
        if result.summary.is_budget_spent:
            left = format_count(result.summary.not_run, "row was", "rows were")
            err().line(f"The budget is used up: {left} not started. To continue, run again with a higher --budget-usd.")
            return ExitCode.FAILED
        return ExitCode.FAILED if failed else ExitCode.DONE

    def _draw(self) -> None:
        if self._bar is not None and self._task is not None:
            failed = f", {self._failed} failed" if self._failed else ""
            text = harmless(f"{self._running} running{failed}, {format_money(self._cost)}")
            self._bar.update(self._task, completed=self._ended, text=text)


def _command(fix: str) -> str:
    """The option or command that applies the fix of a row, whose budget is its own or what the batch has left."""
    return (
        "Use --row-budget-usd, --budget-usd or --budget-tokens."
        if fix.startswith(Fix.RAISE_BUDGET)
        else command_of(fix)
    )


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


def _write_summary(screen: Screen, summary: BatchSummary) -> None:
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
        rows: list[tuple[str, ...]] = []
        for group in summary.by_iterations:
            mean_score = "" if group.mean_score is None else format_score(group.mean_score)
            reasons = ", ".join(f"{reason} {count}" for reason, count in group.exit_reasons.items())
            figures = (str(group.iterations), str(group.rows), mean_score, format_money(group.mean_cost_usd))
            rows.append((*figures, reasons))
        screen.table(("iterations", "rows", "mean score", "mean cost", "exit reasons"), rows)
