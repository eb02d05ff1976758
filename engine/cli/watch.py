"""Watching a run from its beginning to its end, and telling what came out: the same for every command that runs one."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.cli.exit_codes import ExitCode
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine import Run, RunResult
    from engine.cli.output import Screen
    from engine.cli.progress import Progress
    from engine.cli.views import NoteOf, View
    from engine.models.catalogue import Models


@dataclass(frozen=True, slots=True)
class Form:
    """In which form a run is told: events, one object, or both; else for people."""

    events: bool
    as_json: bool

    @property
    def for_machines(self) -> bool:
        """Whether standard output is for programs."""
        return self.events or self.as_json


async def watch(begin: Callable[[], Run], models: Models, form: Form) -> tuple[RunResult, bool]:
    """Begin a run and show it until it has ended. Ctrl+C stops it in good order.

    What a run that goes on had told before is taken into account, and not shown once more.

    Args:
        begin: Begins it; called in the event loop.
        models: Its models, closed at the end.
        form: How it is told.

    Returns:
        What it came to, and whether all of it was kept, should it have been begun to be.

    Raises:
        EngineError: It cannot be begun.
    """
    from engine.cli.interrupt import Interrupts
    from engine.cli.progress import Progress

    try:
        progress = Progress()
        view = _view(form, progress, _notes(models))
        begun = time.time()
        run = begin()
        progress.document = run.workflow
        loop = asyncio.get_running_loop()
        with Interrupts(lambda: loop.call_soon_threadsafe(run.cancel)):
            try:
                async with view:
                    async for event in run.events():
                        progress.take(event)
                        if event.time >= begun:
                            view.take(event)
            finally:
                # Does nothing to a run that has ended; one that nobody can watch any more is stopped.
                run.cancel()
                result = await run.result()
        return result, progress.is_kept
    finally:
        await models.close()


def tell(result: RunResult, form: Form, *, is_kept: bool) -> int:
    """Report what a run has come to.

    Args:
        result: What it has come to.
        form: How it is told.
        is_kept: Whether the history has it, so that its id is worth telling.

    Returns:
        The exit code.
    """
    from engine.cli.output import err, write_json
    from engine.cli.report import write_failure, write_report

    if form.as_json:
        write_json(result.to_json())
    if not form.for_machines:
        screen = _screen(form)
        write_report(screen, result)
        if is_kept:
            screen.line(f"Kept as {result.run_id}: see 'loopwright runs show {result.run_id}'.")
        for warning in result.warnings:
            err().line(f"Warning: {warning}", style="yellow")
    if result.status == "failed":
        write_failure(err(), result)
    if result.status == "cancelled":
        err().line("The run was cancelled.")
    return {"completed": ExitCode.DONE, "cancelled": ExitCode.INTERRUPTED}.get(result.status, ExitCode.FAILED)


def _notes(models: Models) -> NoteOf:
    def note_of(name: str) -> str:
        try:
            return models.get(name).note
        except EngineError:
            return ""

    return note_of


def _view(form: Form, progress: Progress, note_of: NoteOf) -> View:
    from engine.cli.live import LiveView
    from engine.cli.views import EventView, LineView

    if form.events:
        return EventView()
    screen = _screen(form)
    return LiveView(screen, progress, note_of) if screen.interactive else LineView(screen, progress, note_of)


def _screen(form: Form) -> Screen:
    """Where people read: standard output, unless that is for machines."""
    from engine.cli.output import Screen

    return Screen(sys.stderr if form.for_machines else sys.stdout)
