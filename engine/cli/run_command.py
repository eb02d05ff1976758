"""Implements `loopwright run`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.common_options import (
    NO_FLAGS,
    Allow,
    EventLines,
    ResultJson,
    RunFlags,
    SourceName,
    StorePath,
    ask_consent,
    models_with,
    with_run_flags,
)
from engine.cli.output import count_problems, err, write_problems
from engine.text_sanitizing import shown

if TYPE_CHECKING:
    from engine import RunOptions
    from engine.document.model import Workflow
    from engine.store.store_protocol import Store


@with_run_flags()
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
    flags: RunFlags = NO_FLAGS,
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
    from engine import start
    from engine.cli.run_monitor import OutputFormat, monitor, refusal_as_json, report
    from engine.runner.event_loop import run_in_new_loop

    output = OutputFormat(events, as_json)
    opened: Store | None = None
    try:
        with refusal_as_json(output):
            from engine.cli.arguments import open_source, parse_inputs

            source = open_source(file)
            options = replace(flags.options(), source=str(source.path.absolute()))
            check_document(source.workflow, file, options)
            inputs = parse_inputs(source.workflow, given or ())
            # Templates are trusted, also when their runs are resumed.
            confirms = ask_consent(source.workflow, allow=allow or source.is_template)
            opened = None if no_store else open_history(store)
            options = replace(options, store=opened, confirm_calls=confirms)
            begin = partial(start, source.workflow, inputs)
            monitored = run_in_new_loop(monitor(begin, options, models_with(store, opened), output))
    finally:
        if opened is not None:
            opened.close()
    return report(monitored, output, is_stored=opened is not None)


def open_history(path: Path | None) -> Store | None:
    """Open the history. If the default one cannot be opened, warn and return None, so that the run can start.

    Raises:
        StoreError: The file at `path` cannot be opened.
    """
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
    from engine.document.problems import DocumentError, has_errors

    problems = validate(workflow, max_iterations_cap=options.max_iterations_cap)
    write_problems(err(), problems)
    if has_errors(problems):
        raise DocumentError(
            f"{shown(name)} cannot run: {count_problems(problems)}.", "Correct the errors above.", problems
        )
