"""Start a run, show it until it ends and report its result: the same for every command that runs a workflow.

A view gets each event after the state of the run has changed by it, and selects loops, nodes and figures from the
state: lines for people, JSON for programs, or a live display on a terminal.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

from engine.cli.common_options import can_ask
from engine.cli.exit_codes import ExitCode, Interrupts
from engine.cli.output import Screen, err, write_json
from engine.cli.remedies import remedy_with_command
from engine.cli.terminal_questions import LineReader, answer_command, ask, question_lines
from engine.document.model import Workflow
from engine.document.problems import DocumentError
from engine.errors import EngineError
from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeWaiting,
    RunNotKept,
    RunStarted,
)
from engine.formatting import (
    format_count,
    format_duration,
    format_money,
    format_percent,
    format_retry,
    format_score,
    format_tokens,
    format_value,
)
from engine.nodes.context import Answer
from engine.nodes.spec import ITERATOR, PAIR_BY_START
from engine.plan.partial_run import part_of
from engine.plan.structure import analyse
from engine.run_state.reducer import apply
from engine.run_state.result import main_outputs, part_outputs
from engine.run_state.state import (
    SETTLE_S,
    LoopExecution,
    NodeExecution,
    RunState,
    active_nodes,
    budget_warning,
    not_stored,
    waits_only,
)
from engine.store.exit_explanation import explain_exit, loop_config
from engine.text_sanitizing import harmless, one_line
from engine.values import Value, to_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engine import Run, RunOptions, RunResult
    from engine.models.catalog import Models
    from engine.plan.partial_run import Part

_PREVIEW_CHARACTERS: Final = 100
_COMPARED_CHARACTERS: Final = 10_000
_REFRESH_S: Final = 0.1
_BAR_CELLS: Final = 24
_MAX_NODES: Final = 6
_MAX_STREAMED: Final = 400
_MAX_WARNINGS: Final = 20
_INDEX: Final = re.compile(r"\[\d+\]")
_ENDINGS: Final = {"completed": "Done:", "failed": "Failed after", "cancelled": "Cancelled after"}

NoteOf = Callable[[str], str]
"""Returns what a user should know before trusting the model of that name; empty for most models."""


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """The output of a run: events as JSON lines, the result as a JSON object, or both; without them text for people."""

    events: bool
    as_json: bool

    @property
    def for_machines(self) -> bool:
        """Whether standard output is for programs."""
        return self.events or self.as_json

    def screen(self) -> Screen:
        """The screen for people: standard output, unless that is for programs."""
        return Screen(sys.stderr if self.for_machines else sys.stdout)


@dataclass(frozen=True, slots=True)
class MonitoredRun:
    """A run that was shown until it ended or only waited for a person.

    Attributes:
        result: Its result; the status is `running` if it waits for a person.
        is_stored: Whether the history has all of it, if it was to be stored.
        questions: The open questions, by path.
        cancelled_code: The exit code for a cancelled run.
        part: Of a run of a part, the part.
        part_outputs: The outputs of its node by port.
    """

    result: RunResult
    is_stored: bool
    questions: dict[str, NodeWaiting] = field(default_factory=dict[str, "NodeWaiting"])
    cancelled_code: int = ExitCode.INTERRUPTED
    part: Part | None = None
    part_outputs: Mapping[str, Value] = field(default_factory=dict[str, Value])

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON object; of a run of a part with the outputs of its node."""
        if self.part is None:
            return self.result.to_json()
        part = {"extent": self.part.extent, "node": self.part.node, "outputs": dict(self.part_outputs)}
        return {**self.result.to_json(), "part": part}


async def monitor(
    begin: Callable[[RunOptions], Run], options: RunOptions, models: Models, output: OutputFormat
) -> MonitoredRun:
    """Start a run and show it until it ends. Ctrl+C cancels it cleanly.

    Earlier events of a resumed run count towards its state and are not shown again. A person at the terminal answers
    its questions. Without a terminal, the run is left waiting in the history as soon as nothing else can run.

    Args:
        begin: Starts the run; called in the event loop.
        options: The options of the run.
        models: Its models; closed at the end.
        output: The output format.

    Raises:
        EngineError: It cannot start.
    """
    try:
        if options.model is not None:
            models.get(options.model)
        state = RunState()
        start_time = time.time()
        run = begin(replace(options, models=models))
        view = _view(output, state, run.workflow, models)
        loop = asyncio.get_running_loop()
        questions = _QuestionHandler(run, state, view, has_person=can_ask())
        with Interrupts(lambda: loop.call_soon_threadsafe(run.cancel)) as interrupts:
            try:
                async with view:
                    try:
                        async for event in run.events():
                            apply(state, event)
                            if event.time >= start_time:
                                questions.take(event)
                    finally:
                        questions.close()
            finally:
                # No effect on a run that has ended; a run that nobody can see any more is cancelled.
                run.cancel()
                result = await run.result()
        monitored = MonitoredRun(result, state.is_stored, state.questions, interrupts.code, state.part)
        if state.part is None:
            return monitored
        return replace(monitored, part_outputs=part_outputs(state, analyse(run.workflow, options.registry)))
    finally:
        await models.close()


def _view(output: OutputFormat, state: RunState, document: Workflow, models: Models) -> View:
    def note_of(name: str) -> str:
        try:
            return models.get(name).note
        except EngineError:
            return ""

    if output.events:
        return EventView()
    screen = output.screen()
    view = LiveView if screen.interactive else LineView
    return view(screen, state, document, note_of)


class _QuestionHandler:
    """Handles the questions of a run.

    Args:
        run: The run.
        state: Its state, updated before each call of `take`.
        view: Displays the run.
        has_person: Whether a person can answer at the terminal.
    """

    def __init__(self, run: Run, state: RunState, view: View, *, has_person: bool) -> None:
        self._run = run
        self._state = state
        self._view = view
        self._has_person = has_person
        self._lines = LineReader()
        self._asking: asyncio.Task[None] | None = None
        self._asked: NodeWaiting | None = None
        self._queued: list[AnyEvent] = []
        self._suspension: asyncio.TimerHandle | None = None

    def take(self, event: AnyEvent) -> None:
        """Display an event, or queue it while a question is open, and handle open questions."""
        if self._asked is None:
            self._view.take(event)
        else:
            self._queued.append(event)
        self._handle_questions()

    def close(self) -> None:
        """Stop asking."""
        if self._suspension is not None:
            self._suspension.cancel()
        if self._asking is not None:
            self._asking.cancel()
        self._done()

    def _handle_questions(self) -> None:
        questions = self._state.questions
        if self._suspension is not None:
            self._suspension.cancel()
            self._suspension = None
        if self._asked is not None and questions.get(self._asked.path) is not self._asked:
            assert self._asking is not None
            self._asking.cancel()  # it was answered elsewhere, or cancelled
            err().line()
            err().line("The question was answered elsewhere or cancelled.", style="yellow")
            self._done()
        if not questions:
            return
        if self._has_person:
            if self._asked is None:
                self._asked = next(iter(questions.values()))
                self._asking = asyncio.create_task(self._ask(self._asked))
        elif waits_only(self._state):
            self._suspension = asyncio.get_running_loop().call_later(SETTLE_S, self._run.suspend)

    async def _ask(self, asked: NodeWaiting) -> None:
        self._view.suspend()
        answer = await ask(asked, self._lines.next)
        self._done()
        if answer is None:
            self._has_person = False
            self._handle_questions()
        else:
            self._answer(asked, answer)

    def _answer(self, asked: NodeWaiting, answer: Answer) -> None:
        try:
            self._run.answer(asked.path, answer)
        except EngineError as error:  # answered elsewhere just now, or invalid: ask again if it is still open
            err().line(str(error), style="yellow")
            self._handle_questions()

    def _done(self) -> None:
        """Close the question and display the queued events."""
        if self._asked is None:
            return
        self._asked = None
        self._view.restore()
        queued, self._queued = self._queued, []
        for event in queued:
            self._view.take(event)


@contextmanager
def refusal_as_json(output: OutputFormat) -> Generator[None]:
    """Write the error of a run that cannot start as a JSON object if the result is JSON, and raise it again."""
    try:
        yield
    except EngineError as error:
        if output.as_json:
            problems = error.problems if isinstance(error, DocumentError) else ()
            refusal: dict[str, object] = {
                "status": "refused",
                "outputs": {},
                "loops": {},
                "error": error.message,
                "remedy": error.remedy,
                "problems": [problem.to_json() for problem in problems],
            }
            write_json(refusal)
        raise


def report(monitored: MonitoredRun, output: OutputFormat, *, is_stored: bool = True) -> int:
    """Report the result of a run.

    Args:
        monitored: The run.
        output: The output format.
        is_stored: Whether the run was to be stored in the history.

    Returns:
        The exit code.
    """
    result, is_stored = monitored.result, monitored.is_stored and is_stored
    if result.status == "running":
        return _report_waiting(monitored, output, is_stored=is_stored)
    if output.as_json:
        write_json(monitored.to_json())
    if not output.for_machines:
        _write_result(output.screen(), result, monitored.part_outputs)
        if is_stored:
            output.screen().line(f"Stored as {result.run_id}: see 'loopwright runs show {result.run_id}'.")
        for warning in result.warnings[:_MAX_WARNINGS]:
            err().line(f"Warning: {warning}", style="yellow")
        if len(result.warnings) > _MAX_WARNINGS:
            err().line(f"… and {len(result.warnings) - _MAX_WARNINGS} more warnings.", style="yellow")
    if result.status == "failed":
        where = f" at {result.node}" if result.node else ""
        remedy = remedy_with_command(result.remedy, result.fix)
        err().line(f"The run failed{where}: {result.error} {remedy}".rstrip(), style="red")
    if result.status == "cancelled":
        err().line("The run was cancelled.")
    return {"completed": ExitCode.DONE, "cancelled": monitored.cancelled_code}.get(result.status, ExitCode.FAILED)


def _write_result(screen: Screen, result: RunResult, part_outputs: Mapping[str, Value]) -> None:
    for name, value in (result.outputs or main_outputs(part_outputs)).items():
        screen.line()
        screen.line(f"{name}:", style="bold")
        screen.line(format_value(value))
    screen.line()
    figures = [format_duration(result.duration_s), format_tokens(result.usage), format_money(result.cost_usd)]
    screen.line(f"{_ENDINGS[result.status]} {', '.join(figures)}.", style="bold")


def _report_waiting(monitored: MonitoredRun, output: OutputFormat, *, is_stored: bool) -> int:
    """Report the questions of a waiting run and how to answer them."""
    run_id, questions = monitored.result.run_id, monitored.questions
    if output.as_json:
        asked = {path: question.to_json() for path, question in questions.items()}
        write_json({**monitored.to_json(), "status": "waiting", "waiting": asked})
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


class View:
    """Shows a run while it is running. This one shows nothing."""

    async def __aenter__(self) -> Self:
        """Start showing the run."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop showing the run, and restore the terminal."""

    def take(self, event: AnyEvent) -> None:
        """Show an event. `OSError` means that nobody can see it any more."""

    def suspend(self) -> None:
        """Leave the terminal to a question."""

    def restore(self) -> None:
        """Continue after the question."""


class EventView(View):
    """Writes each event to standard output as one line of JSON, at once."""

    def take(self, event: AnyEvent) -> None:
        """Write the event."""
        write_json(event.to_json())


class LineView(View):
    """Writes a plain line for each finished node and each iteration, and warnings.

    Args:
        screen: The output.
        state: The state of the run.
        document: The document of the run.
        note_of: Returns the note on a model.
    """

    shows_nodes = True

    def __init__(self, screen: Screen, state: RunState, document: Workflow, note_of: NoteOf) -> None:
        self._screen = screen
        self._state = state
        self._document = document
        self._note_of = note_of

    def take(self, event: AnyEvent) -> None:
        """Write the lines for the event, if any."""
        if self.shows_nodes and isinstance(event, NodeCompleted) and event.node_type not in PAIR_BY_START:
            self._screen.line(_node_line(event))
        line = event_line(event, self._state, self._document, self._note_of)
        if line:
            self._screen.line(line)


class LiveView(LineView):
    """Redraws the state of the run below the lines that stay, and clears it at the end."""

    shows_nodes = False

    def __init__(self, screen: Screen, state: RunState, document: Workflow, note_of: NoteOf) -> None:
        from rich.live import Live

        super().__init__(screen, state, document, note_of)
        self._live = Live(
            console=screen.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=lambda: live_display(state, note_of, time.time(), screen.console.width),
        )
        self._ticking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._live.start()
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            # A closed terminal shows in `take` or below; the ticker need not report it again.
            with suppress(asyncio.CancelledError, OSError):
                await self._ticking
        self._live.stop()

    def suspend(self) -> None:
        """Clear the display."""
        self._live.stop()

    def restore(self) -> None:
        """Draw it again."""
        self._live.start()

    async def _tick(self) -> None:
        while True:
            if self._live.is_started:
                self._live.refresh()
            await asyncio.sleep(_REFRESH_S)


def event_line(event: AnyEvent, state: RunState, document: Workflow, note_of: NoteOf) -> str:
    """The lines for an event in every view for people; empty for most events."""
    lines: list[str] = []
    match event:
        case RunStarted():
            lines = [_start_line(event, note_of), *pin_notice(document)]
        case LoopIterationCompleted():
            place = f"{event.path}[{event.index}]"
            own = (text.removeprefix(f"{place}: ") for text in event.warnings if not text.startswith(f"{place}."))
            lines = [_iteration_line(event, state), *_with_path(event.path, own)]
        case LoopCompleted():
            loop = state.loops[event.path]
            config = loop_config(document, event.path, loop.cap)
            why = explain_exit(config, loop.all_iterations, event.exit_reason, loop.cap)
            lines = _with_path(event.path, (why, *event.warnings))
        case NodeCompleted():
            lines = _with_path(event.path, (event.error, *event.warnings))
        case NodeFailed() if event.node_type not in PAIR_BY_START:  # a loop fails because a node in it has
            lines = _with_path(event.path, (f"failed: {event.error}", *event.warnings))
        case NodeRetrying():
            lines = _with_path(event.path, (format_retry(event.error, event.attempt, event.delay_s, event.fallback),))
        case NodeWaiting():
            lines = _with_path(event.path, (f"waits for an answer: {one_line(event.message, _PREVIEW_CHARACTERS)}",))
        case RunNotKept():
            lines = [f"{not_stored(event.error)} {event.remedy}".rstrip()]
        case BudgetWarning():
            warning = budget_warning(event.spent, event.limit, event.unit)
            lines = [f"{event.path or 'The run'}: {warning[0].lower()}{warning[1:]}"]
        case _:
            pass
    return "\n".join(lines)


def _with_path(path: str, sentences: Iterable[str]) -> list[str]:
    return [f"{path}: {sentence}" for sentence in sentences if sentence]


def _model_line(models: tuple[str, ...], note_of: NoteOf) -> str:
    """The models of a run, each with its note."""
    return ", ".join(f"{model} ({note})" if (note := note_of(model)) else model for model in models)


def _start_line(event: RunStarted, note_of: NoteOf) -> str:
    models, part = _model_line(event.models, note_of), part_of(event.extent, event.target)
    where = "" if part is None else f" {part}"
    return f"Running {event.workflow or 'the workflow'}{where}{' with ' if models else ''}{models}."


def pin_notice(document: Workflow) -> list[str]:
    """The line that says which nodes are pinned; none if no node is."""
    names = [one_line(node.title or node.id, 40) for node in document.pinned_nodes]
    verb = "is pinned and does" if len(names) == 1 else "are pinned and do"
    return [f"{format_count(len(names), 'node')} {verb} not run: {', '.join(names)}."] if names else []


def _node_line(event: NodeCompleted) -> str:
    if event.pinned:
        return f"{event.path}: pinned"
    figures = [format_duration(event.duration_s)]
    if event.usage is not None:
        figures += [format_tokens(event.usage), format_money(event.cost_usd)]
    return f"{event.path}: done ({', '.join(figures)})"


def _iteration_line(event: LoopIterationCompleted, state: RunState) -> str:
    node, loop = state.nodes.get(event.path), state.loops[event.path]
    is_item = node is not None and node.node_type == ITERATOR.start
    figures = [format_duration(event.duration_s)]
    if event.branch is not None:
        figures.append(event.branch.replace("_", " ") if is_item else f"branch {event.branch}")
    if event.similarity is not None:
        figures.append(f"similarity {format_percent(event.similarity)}")
    if event.score is not None:
        figures.append(f"score {format_score(event.score)}")
    where = f"{event.path} {event.index + 1}/{loop.total or '?'}"
    return f"{where} ({', '.join(figures)}): {_iteration_text(event, loop, is_item=is_item)}"


def _iteration_text(event: LoopIterationCompleted, loop: LoopExecution, *, is_item: bool) -> str:
    """The reason or result of an item; of an iteration, the part of its result that differs from the one before."""
    if is_item:
        return event.reason or _difference("", to_text(event.result))
    before = loop.iteration(event.index - 1)
    return _difference("" if before is None else to_text(before.result), to_text(event.result))


def _difference(before: str, result: str) -> str:
    """The beginning of a result on one line; if the result before begins alike, the part where they differ."""
    if result == before != "":
        return "unchanged"
    compared = zip(before[:_COMPARED_CHARACTERS], result, strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], compared))
    if shared <= _PREVIEW_CHARACTERS // 2:
        return one_line(result, _PREVIEW_CHARACTERS)
    start = result.rfind(" ", 0, max(0, shared - _PREVIEW_CHARACTERS // 4)) + 1
    return f"... {one_line(result[start:], _PREVIEW_CHARACTERS)}"


@dataclass(frozen=True, slots=True)
class LoopBar:
    """Progress bar of a loop: in iteration `current` (from 1) of at most `total`, with `completed` iterations."""

    name: str
    current: int
    total: int
    completed: int
    is_open: bool


def loop_bars(state: RunState) -> list[LoopBar]:
    """The bars of the outermost loops and of nested loops that are running.

    A nested loop that runs in several iterations at once has one bar, for the latest start.
    """
    bars: dict[str, LoopBar] = {}
    for path, loop in state.loops.items():
        is_open = path in state.open_loops
        if loop.total and ("." not in path or is_open):
            name = _INDEX.sub("", path)
            bars[name] = LoopBar(name, loop.current + 1, loop.total, loop.completed, is_open)
    return list(bars.values())


def live_display(state: RunState, note_of: NoteOf, now: float, width: int) -> RenderableType:
    """The live display: a row for each loop and each running node, and one with time, tokens and cost.

    Args:
        state: The state of the run.
        note_of: Returns the note on a model.
        now: The current time in seconds since the epoch.
        width: The width of the terminal in cells.
    """
    from rich.console import Group

    rows: list[RenderableType] = [_loop_row(bar) for bar in loop_bars(state)]
    active = active_nodes(state)
    shown = list(active.items())[-_MAX_NODES:]
    rows += [_node_row(path, node, width) for path, node in shown]
    if len(active) > len(shown):
        rows.append(_row(f"and {len(active) - len(shown)} more running"))
    figures = format_duration(state.active_until(now)), format_tokens(state.usage), format_money(state.cost_usd)
    rows.append(_row("   ".join(figures), style="bold"))
    if state.models:
        rows.append(_row(_model_line(state.models, note_of), style="dim"))
    return Group(*rows)


def _row(text: str, style: str = "") -> RenderableType:
    from rich.text import Text

    return Text(harmless(text), style=style, no_wrap=True, overflow="ellipsis")


def _loop_row(bar: LoopBar) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    row = Table.grid(padding=(0, 1))
    row.add_row(
        _row(bar.name, style="bold"),
        ProgressBar(total=bar.total, completed=bar.completed, width=_BAR_CELLS),
        _row(f"{bar.current}/{bar.total}{'' if bar.is_open else ' ended'}"),
    )
    return row


def _node_row(path: str, node: NodeExecution, width: int) -> RenderableType:
    from rich.cells import cell_len
    from rich.text import Text

    text = node.text[-_MAX_STREAMED:]
    if not text and node.retries:
        text = format_retry(node.error, node.retries, node.retry_delay_s)
    text = " ".join(harmless(text).split())
    room = width - cell_len(harmless(path)) - 3
    while text and cell_len(text) > room:
        text = text[max(1, (cell_len(text) - room) // 2) :]
    row = Text(no_wrap=True, overflow="ellipsis")
    row.append(harmless(path), style="cyan")
    row.append(f"  {text}")
    return row
