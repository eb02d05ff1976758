"""Start a run, show it until it ends and report its result: the same for every command that runs a workflow."""

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
    from engine.models.catalog import Models


def write_report(screen: Screen, result: RunResult) -> None:
    """Write the results, with time, tokens and cost."""
    for name, value in result.outputs.items():
        screen.line()
        screen.line(f"{name}:", style="bold")
        screen.line(format_value(value))
    screen.line()
    figures = [format_duration(result.duration_s), format_tokens(result.usage), format_money(result.cost_usd)]
    screen.line(f"{_ENDINGS[result.status]} {', '.join(figures)}.", style="bold")


_ENDINGS = {"completed": "Done:", "failed": "Failed after", "cancelled": "Cancelled after"}


def write_failure(screen: Screen, result: RunResult) -> None:
    """Write why a run failed and what to do."""
    where = f" at {result.node}" if result.node else ""
    screen.line(f"The run failed{where}: {result.error} {result.remedy}".rstrip(), style="red")


def refusal_to_json(error: EngineError) -> dict[str, Any]:
    """The JSON object for a run that could not start."""
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
class OutputFormat:
    """The output of a run: events as JSON lines, the result as a JSON object, or both; without them text for people."""

    events: bool
    as_json: bool

    @property
    def for_machines(self) -> bool:
        """Whether standard output is for programs."""
        return self.events or self.as_json


@dataclass(frozen=True, slots=True)
class MonitoredRun:
    """A run that was shown until it ended or only waited for a person.

    Attributes:
        result: Its result; the status is `running` where it waits for a person.
        is_stored: Whether the history has all of it, if it was to be stored.
        questions: The open questions, by path.
        cancelled_code: The exit code for a cancelled run.
    """

    result: RunResult
    is_stored: bool
    questions: dict[str, NodeWaiting] = field(default_factory=dict[str, "NodeWaiting"])
    cancelled_code: int = ExitCode.INTERRUPTED


async def monitor(begin: Callable[[], Run], models: Models, output: OutputFormat) -> MonitoredRun:
    """Start a run and show it until it ends. Ctrl+C cancels it cleanly.

    Earlier events of a resumed run count towards its state and are not shown again. A person at the terminal answers
    its questions. Without a terminal, the run is left waiting in the history as soon as nothing else can run.

    Args:
        begin: Starts the run; called in the event loop.
        models: Its models; closed at the end.
        output: The output format.

    Raises:
        EngineError: It cannot start.
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
        view = _view(output, shown, _notes(models))
        begun = time.time()
        run = begin()
        shown.document = run.workflow
        loop = asyncio.get_running_loop()
        questions = QuestionHandler(run, state, view, has_person=can_ask())
        with Interrupts(lambda: loop.call_soon_threadsafe(run.cancel)) as interrupts:
            try:
                async with view:
                    try:
                        async for event in run.events():
                            apply(state, event)
                            if event.time >= begun:
                                questions.take(event)
                    finally:
                        questions.close()
            finally:
                # No effect on a run that has ended; a run that nobody can see any more is cancelled.
                run.cancel()
                result = await run.result()
        return MonitoredRun(result, state.is_stored, state.questions, interrupts.code)
    finally:
        await models.close()


def report(monitored: MonitoredRun, output: OutputFormat, *, is_stored: bool = True) -> int:
    """Report the result of a run.

    Args:
        monitored: The run.
        output: The output format.
        is_stored: Whether the run was to be stored in the history.

    Returns:
        The exit code.
    """
    from engine.cli.output import err, write_json

    result, is_stored = monitored.result, monitored.is_stored and is_stored
    if result.status == "running":
        return _report_waiting(monitored, output, is_stored=is_stored)
    if output.as_json:
        write_json(result.to_json())
    if not output.for_machines:
        screen = _screen(output)
        write_report(screen, result)
        if is_stored:
            screen.line(f"Stored as {result.run_id}: see 'loopwright runs show {result.run_id}'.")
        _write_warnings(err(), result.warnings)
    if result.status == "failed":
        write_failure(err(), result)
    if result.status == "cancelled":
        err().line("The run was cancelled.")
    return {"completed": ExitCode.DONE, "cancelled": monitored.cancelled_code}.get(result.status, ExitCode.FAILED)


def _write_warnings(screen: Screen, warnings: tuple[str, ...]) -> None:
    for warning in warnings[:_MOST_WARNINGS]:
        screen.line(f"Warning: {warning}", style="yellow")
    if len(warnings) > _MOST_WARNINGS:
        screen.line(f"… and {len(warnings) - _MOST_WARNINGS} more warnings.", style="yellow")


def _report_waiting(monitored: MonitoredRun, output: OutputFormat, *, is_stored: bool) -> int:
    """Report the questions of a waiting run and how to answer them."""
    from engine.cli.output import err, write_json
    from engine.cli.terminal_questions import question_lines
    from engine.store.answers import answer_command

    run_id, questions = monitored.result.run_id, monitored.questions
    if output.as_json:
        asked = {path: question.to_json() for path, question in questions.items()}
        write_json({**monitored.result.to_json(), "status": "waiting", "waiting": asked})
    screen = err()
    if not is_stored:
        screen.line(
            f"The run waits for an answer at {', '.join(questions)} and is not stored, so nobody can answer later. "
            "Run it on a terminal, or store it in the history.",
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


def _view(output: OutputFormat, shown: ShownRun, note_of: NoteOf) -> View:
    from engine.cli.run_views import EventView, LineView, LiveView

    if output.events:
        return EventView()
    screen = _screen(output)
    return LiveView(screen, shown, note_of) if screen.interactive else LineView(screen, shown, note_of)


def _screen(output: OutputFormat) -> Screen:
    """The screen for people: standard output, unless that is for programs."""
    from engine.cli.output import Screen

    return Screen(sys.stderr if output.for_machines else sys.stdout)
