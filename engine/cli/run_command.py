"""`loopwright run`: starts a workflow, shows it while it goes, and reports what came out."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.common_options import MAX_ITERATIONS_CAP, IterationsCap, SourceName
from engine.cli.exit_codes import ExitCode
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine import RunOptions, RunResult
    from engine.cli.output import Screen
    from engine.cli.progress import Progress
    from engine.cli.views import NoteOf, View
    from engine.document.model import Workflow
    from engine.models.catalogue import Models
    from engine.values import Value


@dataclass(frozen=True, slots=True)
class _Form:
    """In which form a run is told: events, one object, or both; else for people."""

    events: bool
    as_json: bool

    @property
    def for_machines(self) -> bool:
        return self.events or self.as_json


def _finite(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("This is no amount of money.")
    return value


def run_command(
    file: SourceName,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=VALUE",
            help="A value for an input; @FILE takes it from a UTF-8 file, @@ stands for a first @. Repeatable.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="This model for every node, such as openai/gpt-4o-mini.",
        ),
    ] = None,
    budget_usd: Annotated[
        float | None,
        typer.Option(min=0, callback=_finite, metavar="USD", help="The most that the run may spend."),
    ] = None,
    budget_tokens: Annotated[int | None, typer.Option(min=0, metavar="N", help="The most tokens it may use.")] = None,
    max_iterations_cap: IterationsCap = MAX_ITERATIONS_CAP,
    allow_unknown_price: Annotated[
        bool, typer.Option("--allow-unknown-price", help="Run with a money budget and a model of unknown price.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            file_okay=False,
            help="The one folder that file tools may read and write. Without it they may touch none.",
        ),
    ] = None,
    allow_private_addresses: Annotated[
        bool, typer.Option("--allow-private-addresses", help="Let http_get reach this machine and private networks.")
    ] = False,
    events: Annotated[bool, typer.Option("--events", help="Write each event as a JSON object on a line.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the result as one JSON object.")] = False,
) -> int:
    """Run a workflow.

    Shows each loop's progress, the nodes at work, tokens and cost while it goes. Ctrl+C stops the run in good order and
    keeps what is finished; a second Ctrl+C ends the program at once.

    Example: loopwright run self-refine -i task="Explain tides" --model openai/gpt-4o-mini
    """
    from engine import RunOptions

    form = _Form(events, as_json)
    try:
        from engine.cli.inputs import parse_inputs
        from engine.cli.sources import open_source

        source = open_source(file)
        options = RunOptions(
            model=model,
            budget_usd=budget_usd,
            budget_tokens=budget_tokens,
            max_iterations_cap=max_iterations_cap,
            allow_unknown_price=allow_unknown_price,
            folder=folder,
            allow_private_addresses=allow_private_addresses,
        )
        _refuse_broken(source.workflow, file, options)
        inputs = parse_inputs(source.workflow, given or ())
        result = asyncio.run(_run(source.workflow, inputs, options, form))
    except EngineError as error:
        if as_json:
            from engine.cli.output import write_json
            from engine.cli.report import refusal_to_json

            write_json(refusal_to_json(error))
        raise
    return _tell(result, form)


def _refuse_broken(workflow: Workflow, name: str, options: RunOptions) -> None:
    """Write the document's problems, all of them.

    Raises:
        DocumentError: There are errors among them.
    """
    from engine import validate
    from engine.cli.output import err
    from engine.cli.problems import counted, write_problems
    from engine.document.problems import DocumentError, has_errors
    from engine.document.wording import shown

    problems = validate(workflow, max_iterations_cap=options.max_iterations_cap)
    write_problems(err(), problems)
    if has_errors(problems):
        raise DocumentError(f"{shown(name)} does not run: {counted(problems)}.", "Correct the errors above.", problems)


async def _run(workflow: Workflow, inputs: Mapping[str, Value], options: RunOptions, form: _Form) -> RunResult:
    from dataclasses import replace

    from engine import start
    from engine.cli.interrupt import Interrupts
    from engine.cli.progress import Progress
    from engine.models.catalogue import Models

    models = Models()
    try:
        if options.model is not None:
            models.get(options.model)
        progress = Progress()
        view = _view(form, progress, _notes(models))
        run = start(workflow, inputs, replace(options, models=models))
        loop = asyncio.get_running_loop()
        with Interrupts(lambda: loop.call_soon_threadsafe(run.cancel)):
            try:
                async with view:
                    async for event in run.events():
                        progress.take(event)
                        view.take(event)
            finally:
                # Does nothing to a run that has ended; one that nobody can watch any more is stopped.
                run.cancel()
                result = await run.result()
        return result
    finally:
        await models.close()


def _notes(models: Models) -> NoteOf:
    def note_of(name: str) -> str:
        try:
            return models.get(name).note
        except EngineError:
            return ""

    return note_of


def _view(form: _Form, progress: Progress, note_of: NoteOf) -> View:
    from engine.cli.live import LiveView
    from engine.cli.views import EventView, LineView

    if form.events:
        return EventView()
    screen = _screen(form)
    return LiveView(screen, progress, note_of) if screen.interactive else LineView(screen, progress, note_of)


def _screen(form: _Form) -> Screen:
    """Where people read: standard output, unless that is for machines."""
    from engine.cli.output import Screen

    return Screen(sys.stderr if form.for_machines else sys.stdout)


def _tell(result: RunResult, form: _Form) -> int:
    from engine.cli.output import err, write_json
    from engine.cli.report import write_failure, write_report

    if form.as_json:
        write_json(result.to_json())
    if not form.for_machines:
        write_report(_screen(form), result)
        for warning in result.warnings:
            err().line(f"Warning: {warning}", style="yellow")
    if result.status == "failed":
        write_failure(err(), result)
    if result.status == "cancelled":
        err().line("The run was cancelled.")
    return {"completed": ExitCode.DONE, "cancelled": ExitCode.INTERRUPTED}.get(result.status, ExitCode.FAILED)
