"""Implements `loopwright run`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from engine.cli.completion import complete_nodes
from engine.cli.output import count_problems, err, write_problems
from engine.errors import EngineError
from engine.text_sanitizing import shown

if TYPE_CHECKING:
    from engine import Run, RunOptions
    from engine.document.model import Workflow
    from engine.plan.partial_run import Part
    from engine.store.store_protocol import Store
    from engine.values import Value


def _node_option(name: str, text: str) -> Any:
    return typer.Option(name, metavar="NODE", help=text, autocompletion=complete_nodes)


@with_run_flags()
def run_command(
    file: SourceName,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=VALUE",
            help="Value of an input. @FILE reads it from a UTF-8 file, @- from standard input; @@ escapes a leading @. "
            "Repeatable.",
        ),
    ] = None,
    until: Annotated[
        str | None, _node_option("--until", "Run only up to this node, given by its id or title: it and what it needs.")
    ] = None,
    only: Annotated[str | None, _node_option("--only", "Run only this node, with the values of the last run.")] = None,
    from_node: Annotated[
        str | None, _node_option("--from", "Run this node and all after it, with the values of the last run.")
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

    With --until, --only or --from, a part of the workflow runs, with the inputs and stored outputs of the last run of
    FILE where nothing before them has changed. A node in a loop stands for the whole loop.

    Example: loopwright run self-refine -i task="Explain tides" --model openai/gpt-4o-mini
    """
    from engine import start
    from engine.cli.run_monitor import OutputFormat, monitor, refusal_as_json, report
    from engine.runner.event_loop import run_in_new_loop

    output = OutputFormat(events, as_json)
    with refusal_as_json(output), ExitStack() as stack:
        from engine.cli.arguments import open_source, parse_inputs

        source = open_source(file)
        options = replace(flags.options(source.workflow), source=source.stored_path)
        part = _chosen_part(source.workflow, {"until": until, "only": only, "from": from_node})
        if part is None:
            check_document(source.workflow, file, options)
        inputs = parse_inputs(source.workflow, given or (), may_miss=part is not None)
        # Templates are trusted, also when their runs are resumed.
        confirms = ask_consent(source.workflow, allow=allow or source.is_template)
        opened = stack.enter_context(open_history(store)) if part is not None or not no_store else None
        options = replace(options, store=None if no_store else opened, confirm_calls=confirms)
        begin = partial(start, source.workflow, inputs)
        if part is not None:
            begin = _begin_part(opened, source.workflow, part, inputs, options)
        monitored = run_in_new_loop(monitor(begin, options, models_with(store, opened), output))
    return report(monitored, output, is_stored=options.store is not None)


def _chosen_part(workflow: Workflow, nodes: Mapping[str, str | None]) -> Part | None:
    """Return the part of a workflow that the options choose, given by extent; None for all of it.

    Raises:
        EngineError: Several are given, or there is no such node.
    """
    from engine.nodes.node_names import find_node
    from engine.plan.partial_run import Extent, Part

    parts = [Part(Extent(extent), find_node(workflow, node)) for extent, node in nodes.items() if node is not None]
    if len(parts) > 1:
        raise EngineError("Several parts of the workflow are chosen.", "Use only one of --until, --only and --from.")
    return parts[0] if parts else None


def _begin_part(
    store: Store | None, workflow: Workflow, part: Part, inputs: Mapping[str, Value], options: RunOptions
) -> Callable[[RunOptions], Run]:
    """Plan a run of a part with the last run of the file, and say what is used again. Return what starts it."""
    from engine.store.partial_runs import MissingValuesError, last_run, plan_partial_run, start_partial_run

    last = last_run(store, options.source) if store is not None else None
    try:
        planned = plan_partial_run(store, workflow, part, inputs, options, last=last)
    except MissingValuesError as error:
        raise EngineError(f"{error.message} Missing: {', '.join(error.nodes)}.", error.remedy, fix=error.fix) from error
    needed = [node.id for node in planned.plan.graph.nodes if node.id in planned.reused and node.exit_of is None]
    if needed and last is not None:
        err().line(f"Stored outputs of run {last.run_id} are used for: {', '.join(needed)}.")
    return partial(start_partial_run, store, planned)


@contextmanager
def open_history(path: Path | None) -> Generator[Store | None]:
    """Open the history, and close it afterwards. If the default one cannot be opened, warn, so that the run can start.

    Raises:
        StoreError: The file at `path` cannot be opened.
    """
    from engine.store import open_store
    from engine.store.store_protocol import StoreError

    try:
        store = open_store(path)
    except StoreError as error:
        if path is not None:
            raise
        err().line(f"Warning: The run will not be stored. {error}", style="yellow")
        yield None
        return
    with closing(store):
        yield store


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
