"""Watching a run from its beginning to its end, and telling what came out: the same for every command that runs one."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.cli.exit_codes import ExitCode
from engine.cli.output import Screen
from engine.document.problems import DocumentError
from engine.errors import EngineError
from engine.formatting import format_duration, format_money, format_tokens, format_value

if TYPE_CHECKING:
    from engine import Run, RunResult
    from engine.cli.run_views import NoteOf, ShownRun, View
    from engine.events import NodeWaiting
    from engine.models.catalogue import Models


def write_report(screen: Screen, result: RunResult) -> None:
    """Write the results, and what they took."""
    for name, value in result.outputs.items():
        screen.line()
        screen.line(f"{name}:", style="bold")
        screen.line(format_value(value))
    screen.line()
    figures = [format_duration(result.duration_s), format_tokens(result.usage), format_money(result.cost_usd)]
    screen.line(f"{_ENDINGS[result.status]} {', '.join(figures)}.", style="bold")


_ENDINGS = {"completed": "Done:", "failed": "Failed after", "cancelled": "Cancelled after"}


def write_failure(screen: Screen, result: RunResult) -> None:
    """Write why a run failed, and what to do."""
    where = f" at {result.node}" if result.node else ""
    screen.line(f"The run failed{where}: {result.error} {result.remedy}".rstrip(), style="red")


def refusal_to_json(error: EngineError) -> dict[str, Any]:
    """The object for a run that was never started."""
    problems: Sequence[Any] = error.problems if isinstance(error, DocumentError) else ()
    return {
        "status": "refused",
        "outputs": {},
        "loops": {},
        "error": error.message,
        "remedy": error.remedy,
        "problems": [problem.to_json() for problem in problems],
    }


_MOST_WARNINGS: Final = 20


@dataclass(frozen=True, slots=True)
class Form:
    """In which form a run is told: events, one object, or both; else for people."""

    events: bool
    as_json: bool

    @property
    def for_machines(self) -> bool:
        """Whether standard output is for programs."""
        return self.events or self.as_json


@dataclass(frozen=True, slots=True)
class Watched:
    """A run that was watched.

    Attributes:
        result: What it came to; its status is `running` where it was put aside to wait for a person.
        is_kept: Whether the history has all of it, should the run have been begun to be kept.
        questions: What it waits for, by path.
        stopped_code: The exit code where it was cancelled.
    """

    result: RunResult
    is_kept: bool
    questions: dict[str, NodeWaiting] = field(default_factory=dict[str, "NodeWaiting"])
    stopped_code: int = ExitCode.INTERRUPTED


async def watch(begin: Callable[[], Run], models: Models, form: Form) -> Watched:
    """Begin a run and show it until it has ended. Ctrl+C stops it in good order.

    What a run that goes on had told before is taken into account, and not shown once more. Where it asks, a person at
    the terminal answers; without one it is put aside as soon as nothing else is left to do.

    Args:
        begin: Begins it; called in the event loop.
        models: Its models, closed at the end.
        form: How it is told.

    Raises:
        EngineError: It cannot be begun.
    """
    from engine.cli.exit_codes import Interrupts
    from engine.cli.history import can_ask
    from engine.cli.run_views import ShownRun
    from engine.cli.terminal_questions import QuestionHandler
    from engine.run_state.reducer import apply
    from engine.run_state.state import RunState

    try:
        state = RunState()
        shown = ShownRun(state)
        view = _view(form, shown, _notes(models))
        begun = time.time()
        run = begin()
        shown.document = run.workflow
        loop = asyncio.get_running_loop()
        attendant = QuestionHandler(run, state, view, has_person=can_ask())
        with Interrupts(lambda: loop.call_soon_threadsafe(run.cancel)) as interrupts:
            try:
                async with view:
                    try:
                        async for event in run.events():
                            apply(state, event)
                            if event.time >= begun:
                                attendant.take(event)
                    finally:
                        attendant.close()
            finally:
                # Does nothing to a run that has ended; one that nobody can watch any more is stopped.
                run.cancel()
                result = await run.result()
        return Watched(result, state.is_stored, state.questions, interrupts.code)
    finally:
        await models.close()


def tell(watched: Watched, form: Form, *, is_kept: bool = True) -> int:
    """Report what a run has come to.

    Args:
        watched: The run.
        form: How it is told.
        is_kept: Whether the history was to have it.

    Returns:
        The exit code.
    """
    from engine.cli.output import err, write_json

    result, is_kept = watched.result, watched.is_kept and is_kept
    if result.status == "running":
        return _tell_waiting(watched, form, is_kept=is_kept)
    if form.as_json:
        write_json(result.to_json())
    if not form.for_machines:
        screen = _screen(form)
        write_report(screen, result)
        if is_kept:
            screen.line(f"Kept as {result.run_id}: see 'loopwright runs show {result.run_id}'.")
        _write_warnings(err(), result.warnings)
    if result.status == "failed":
        write_failure(err(), result)
    if result.status == "cancelled":
        err().line("The run was cancelled.")
    return {"completed": ExitCode.DONE, "cancelled": watched.stopped_code}.get(result.status, ExitCode.FAILED)


def _write_warnings(screen: Screen, warnings: tuple[str, ...]) -> None:
    for warning in warnings[:_MOST_WARNINGS]:
        screen.line(f"Warning: {warning}", style="yellow")
    if len(warnings) > _MOST_WARNINGS:
        screen.line(f"… and {len(warnings) - _MOST_WARNINGS} more warnings.", style="yellow")


def _tell_waiting(watched: Watched, form: Form, *, is_kept: bool) -> int:
    """Say what a run waits for that was put aside, and how to answer."""
    from engine.cli.output import err, write_json
    from engine.cli.terminal_questions import question_lines
    from engine.store.answers import answer_command

    run_id, questions = watched.result.run_id, watched.questions
    if form.as_json:
        asked = {path: question.to_json() for path, question in questions.items()}
        write_json({**watched.result.to_json(), "status": "waiting", "waiting": asked})
    screen = err()
    if not is_kept:
        screen.line(
            f"The run waits for an answer at {', '.join(questions)}, and is not kept: nobody can give one later. "
            "Run it on a terminal, or let it be kept.",
            style="red",
        )
        return ExitCode.FAILED
    for question in questions.values():
        for number, line in enumerate(question_lines(question)):
            screen.line(line, style="" if number else "bold")
        screen.line(f"Answer with: {answer_command(question, is_only=len(questions) == 1)}")
    screen.line(f"The run {run_id} waits for {'an answer' if len(questions) == 1 else 'answers'}; nothing is lost.")
    return ExitCode.WAITING


def _notes(models: Models) -> NoteOf:
    def note_of(name: str) -> str:
        try:
            return models.get(name).note
        except EngineError:
            return ""

    return note_of


def _view(form: Form, shown: ShownRun, note_of: NoteOf) -> View:
    from engine.cli.run_views import EventView, LineView, LiveView

    if form.events:
        return EventView()
    screen = _screen(form)
    return LiveView(screen, shown, note_of) if screen.interactive else LineView(screen, shown, note_of)


def _screen(form: Form) -> Screen:
    """Where people read: standard output, unless that is for machines."""
    from engine.cli.output import Screen

    return Screen(sys.stderr if form.for_machines else sys.stdout)
