"""Implements `loopwright batch`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.common_options import (
    AllowCode,
    AllowPrivateAddresses,
    AllowUnknownPrice,
    BudgetTokens,
    Folder,
    IterationsCap,
    ModelName,
    SourceName,
    finite,
)
from engine.cli.consent import Allow
from engine.cli.history import StorePath
from engine.errors import EngineError
from engine.exits.max_iterations import MAX_ITERATIONS_CAP

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from engine import Batch, BatchResult
    from engine.cli.batch_view import BatchView

_DASK = "dask"


def batch_command(
    file: SourceName,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="CSV, Excel workbook or JSON Lines (.jsonl), with an input per column and a run per row.",
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
    max_iterations_cap: IterationsCap = MAX_ITERATIONS_CAP,
    allow_unknown_price: AllowUnknownPrice = False,
    folder: Folder = None,
    allow_private_addresses: AllowPrivateAddresses = False,
    allow_code: AllowCode = False,
    allow: Allow = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the summary as one JSON object.")] = False,
    store: StorePath = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not store the runs in the history.")] = False,
) -> int:
    """Run a workflow once for each row of a table, and write the results.

    Ctrl+C stops the batch; finished rows are stored. To continue, run the same command again: rows that are finished
    in OUT or in the history do not run again.

    With --budget-usd, the batch stops before a call that could exceed the budget, with exit code 1. To continue, run
    the command again with a higher budget.

    Example: loopwright batch self-refine tasks.csv -o results.csv --concurrency 8
    """
    from engine import Batch, BatchOptions, RunOptions, inputs_of_table, read_table
    from engine.batch.text_encoding import EncodingError
    from engine.cli.arguments import open_source
    from engine.cli.batch_view import BatchView
    from engine.cli.consent import ask_consent
    from engine.cli.history import models_with
    from engine.cli.run_command import check_document, open_history
    from engine.runner.event_loop import run_with_tools

    source = open_source(file)
    options = RunOptions(
        model=model,
        budget_usd=row_budget_usd,
        budget_tokens=budget_tokens,
        max_iterations_cap=max_iterations_cap,
        allow_unknown_price=allow_unknown_price,
        folder=folder,
        allow_private_addresses=allow_private_addresses,
        allow_code=allow_code,
        source=str(source.path.absolute()),
    )
    check_document(source.workflow, file, options)
    try:
        content = read_table(table, sheet=sheet, encoding=encoding)
    except EncodingError as error:
        remedy = "Add --encoding, such as --encoding cp1252, or save the table as UTF-8 or as an Excel workbook."
        raise EngineError(error.message, remedy if encoding is None else error.remedy) from error
    inputs = inputs_of_table(source.workflow, content, _columns(columns or ()), extra_columns=not no_extra_columns)
    # Templates are trusted, also when their runs are resumed.
    confirms = ask_consent(source.workflow, allow=allow or source.is_template)
    kept = None if no_store else open_history(store)
    view = BatchView(len(inputs), is_quiet=as_json)
    view.note(f"{content.name}: {note}" for note in content.notes)
    try:
        with _executor(executor, concurrency) as where:
            how = BatchOptions(
                run=replace(options, confirm_calls=confirms),
                concurrency=concurrency,
                budget_usd=budget_usd,
                out=out,
                store=kept,
                name=name,
                models=lambda: models_with(store, kept),
                executor=where,
                retry_in_flight=retry_in_flight,
            )
            batch = Batch(source.workflow, inputs, how, on_row=view.take, on_begin=view.begin)
            result, stopped_code = run_with_tools(_watched(batch, view))
    finally:
        if kept is not None:
            kept.close()
    return view.finish(result, out, as_json=as_json, stopped_code=stopped_code if batch.is_stopped else None)


async def _watched(batch: Batch, view: BatchView) -> tuple[BatchResult, int]:
    from engine.cli.exit_codes import Interrupts

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
            from engine.text_sanitizing import shown

            raise EngineError(f'"--column {shown(text, 60)}" is malformed.', "Use --column INPUT=COLUMN.")
        columns[name] = column
    return columns


@contextmanager
def _executor(where: str | None, workers: int) -> Generator[Executor | None]:
    if where is None:
        yield None
        return
    kind, _, address = where.partition("=")
    if kind != _DASK:
        from engine.text_sanitizing import shown

        raise EngineError(f'The executor "{shown(where, 60)}" is unknown.', "Use dask, or dask=ADDRESS.")
    from engine.batch.remote_executor import dask_executor

    with dask_executor(address, workers) as executor:
        yield executor
