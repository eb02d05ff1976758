"""Implements `loopwright run`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.common_options import (
    AllowCode,
    AllowPrivateAddresses,
    AllowUnknownPrice,
    BudgetTokens,
    BudgetUsd,
    EventLines,
    Folder,
    IterationsCap,
    ModelName,
    ResultJson,
    SourceName,
)
from engine.cli.consent import Allow
from engine.cli.history import StorePath
from engine.errors import EngineError
from engine.exits.max_iterations import MAX_ITERATIONS_CAP

if TYPE_CHECKING:
    from engine import Run, RunOptions
    from engine.document.model import Workflow
    from engine.store.store_protocol import Store


def run_command(
    file: SourceName,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=VALUE",
            help="Value of an input. @FILE reads it from a UTF-8 file; @@ escapes a leading @. Repeatable.",
        ),
    ] = None,
    model: ModelName = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    max_iterations_cap: IterationsCap = MAX_ITERATIONS_CAP,
    allow_unknown_price: AllowUnknownPrice = False,
    folder: Folder = None,
    allow_private_addresses: AllowPrivateAddresses = False,
    allow_code: AllowCode = False,
    allow: Allow = False,
    events: EventLines = False,
    as_json: ResultJson = False,
    store: StorePath = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not store the run in the history.")] = False,
) -> int:
    """Run a workflow.

    Shows the progress of loops, running nodes, tokens and cost. Ctrl+C cancels the run and stores what is finished; a
    second Ctrl+C ends the program at once. The run is stored in the history: see `loopwright runs`.

    Example: loopwright run self-refine -i task="Explain tides" --model openai/gpt-4o-mini
    """
    from engine import RunOptions, start
    from engine.cli.run_monitor import OutputFormat, monitor, report
    from engine.runner.event_loop import run_with_tools

    output = OutputFormat(events, as_json)
    kept: Store | None = None
    try:
        from engine.cli.arguments import open_source, parse_inputs
        from engine.cli.consent import ask_consent
        from engine.cli.history import models_with

        source = open_source(file)
        options = RunOptions(
            model=model,
            budget_usd=budget_usd,
            budget_tokens=budget_tokens,
            max_iterations_cap=max_iterations_cap,
            allow_unknown_price=allow_unknown_price,
            folder=folder,
            allow_private_addresses=allow_private_addresses,
            allow_code=allow_code,
            source=str(source.path.absolute()),
        )
        check_document(source.workflow, file, options)
        inputs = parse_inputs(source.workflow, given or ())
        # Templates are trusted, also when their runs are resumed.
        confirms = ask_consent(source.workflow, allow=allow or source.is_template)
        kept = None if no_store else open_history(store)
        models = models_with(store, kept)

        def begin() -> Run:
            if model is not None:
                models.get(model)
            return start(source.workflow, inputs, replace(options, models=models, store=kept, confirm_calls=confirms))

        monitored = run_with_tools(monitor(begin, models, output))
    except EngineError as error:
        if as_json:
            from engine.cli.output import write_json
            from engine.cli.run_monitor import refusal_to_json

            write_json(refusal_to_json(error))
        raise
    finally:
        if kept is not None:
            kept.close()
    return report(monitored, output, is_stored=kept is not None)


def open_history(path: Path | None) -> Store | None:
    """Open the history. If the default one cannot be opened, warn and return None, so that the run can start.

    Raises:
        StoreError: The file at `path` cannot be opened.
    """
    from engine.cli.output import err
    from engine.store import open_store
    from engine.store.store_protocol import StoreError

    try:
        return open_store(path)
    except StoreError as error:
        if path is not None:
            raise
        err().line(f"Warning: The run will not be stored. {error}", style="yellow")
        return None


def check_document(workflow: Workflow, name: str, options: RunOptions) -> None:
    """Write all problems of a document to standard error.

    Raises:
        DocumentError: Some problems are errors.
    """
    from engine import validate
    from engine.cli.output import count_problems, err, write_problems
    from engine.document.problems import DocumentError, has_errors
    from engine.text_sanitizing import shown

    problems = validate(workflow, max_iterations_cap=options.max_iterations_cap)
    write_problems(err(), problems)
    if has_errors(problems):
        raise DocumentError(
            f"{shown(name)} cannot run: {count_problems(problems)}.", "Correct the errors above.", problems
        )
