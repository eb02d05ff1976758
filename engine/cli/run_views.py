"""The views of a running run: lines for people, JSON for machines, a live display on a terminal.

A view is handed every event after the state of the run has changed by it. Nothing here reduces events: bars, nodes and
figures are selected from the state.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self

from engine.cli.output import Screen, write_json
from engine.document.model import Workflow
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
from engine.exits.loop_conditions import format_exit
from engine.formatting import (
    format_duration,
    format_money,
    format_percent,
    format_retry,
    format_score,
    format_tokens,
)
from engine.nodes.spec import ITERATOR, PAIR_BY_START
from engine.run_state.state import LoopExecution, NodeExecution, RunState, active_nodes, budget_warning, not_stored
from engine.store.exit_explanation import explain_exit, loop_config
from engine.text_sanitizing import harmless, one_line
from engine.values import to_text

if TYPE_CHECKING:
    from rich.console import RenderableType

PREVIEW_CHARACTERS = 100
_COMPARED_CHARACTERS = 10_000
_REFRESH_S = 0.1
_BAR_CELLS = 24
_MAX_NODES = 6
_MAX_STREAMED = 400
_INDEX: Final = re.compile(r"\[\d+\]")

NoteOf = Callable[[str], str]
"""What a person should know before trusting the model of that name; empty for most."""


@dataclass(slots=True)
class ShownRun:
    """What views show: the state of a run, and the document that runs; None where it is not known."""

    state: RunState
    document: Workflow | None = None


class View(Protocol):
    """Something that shows a run while it is running."""

    async def __aenter__(self) -> Self:
        """Start to show it."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Stop showing it, and leave the terminal as it was."""
        ...

    def take(self, event: AnyEvent) -> None:
        """Show one event; `OSError` means that nobody can see it any more."""
        ...

    def suspend(self) -> None:
        """Leave the terminal to a question for a person."""
        ...

    def restore(self) -> None:
        """Continue after the question."""
        ...


class QuietView:
    """Shows nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def take(self, event: AnyEvent) -> None:
        """Show nothing."""

    def suspend(self) -> None:
        """There is nothing to hide."""

    def restore(self) -> None:
        """There is nothing to show again."""


class EventView(QuietView):
    """Writes each event to standard output as one line of JSON, at once."""

    def take(self, event: AnyEvent) -> None:
        """Write the event."""
        write_json(event.to_json())


class LineView(QuietView):
    """Writes a plain line for each finished node, each iteration, and whatever a person should know.

    Args:
        screen: Where to write.
        run: The run.
        note_of: The note about a model.
    """

    def __init__(self, screen: Screen, run: ShownRun, note_of: NoteOf) -> None:
        self._screen = screen
        self._run = run
        self._note_of = note_of

    def take(self, event: AnyEvent) -> None:
        """Write what the event says, where it says something."""
        if isinstance(event, NodeCompleted) and event.node_type not in PAIR_BY_START:
            self._screen.line(_node_line(event))
        line = event_line(event, self._run, self._note_of)
        if line:
            self._screen.line(line)


class LiveView:
    """Redraws the state of the run below the lines that stay, and clears it at the end.

    Args:
        screen: The terminal.
        run: The run.
        note_of: The note about a model.
    """

    def __init__(self, screen: Screen, run: ShownRun, note_of: NoteOf) -> None:
        from rich.live import Live

        self._screen = screen
        self._run = run
        self._note_of = note_of
        self._live = Live(
            console=screen.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=lambda: live_display(run.state, note_of, time.time(), screen.console.width),
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
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await self._ticking
        self._live.stop()

    def take(self, event: AnyEvent) -> None:
        """Write what is to stay; the display follows within a tenth of a second."""
        line = event_line(event, self._run, self._note_of)
        if line:
            self._screen.line(line)

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


def event_line(event: AnyEvent, run: ShownRun, note_of: NoteOf) -> str:
    """The line for an event that is worth one, in every view for people; empty for all others."""
    lines: list[str] = []
    match event:
        case RunStarted():
            lines = [_start_line(event, note_of)]
        case LoopIterationCompleted():
            place = f"{event.path}[{event.index}]"
            own = (text.removeprefix(f"{place}: ") for text in event.warnings if not text.startswith(f"{place}."))
            lines = [_iteration_line(event, run.state), *_with_path(event.path, own)]
        case LoopCompleted():
            lines = _with_path(event.path, (_why_stopped(event, run), *event.warnings))
        case NodeCompleted():
            lines = _with_path(event.path, (event.error, *event.warnings))
        case NodeFailed() if event.node_type not in PAIR_BY_START:  # a loop fails because a node in it has
            lines = _with_path(event.path, (f"failed: {event.error}", *event.warnings))
        case NodeRetrying():
            lines = _with_path(event.path, (format_retry(event.error, event.attempt, event.delay_s, event.fallback),))
        case NodeWaiting():
            lines = _with_path(event.path, (f"waits for an answer: {one_line(event.message, PREVIEW_CHARACTERS)}",))
        case RunNotKept():
            lines = [f"{not_stored(event.error)} {event.remedy}".rstrip()]
        case BudgetWarning():
            warning = budget_warning(event.spent, event.limit, event.unit)
            lines = [f"{event.path or 'The run'}: {warning[0].lower()}{warning[1:]}"]
        case _:
            pass
    return "\n".join(lines)


def _why_stopped(event: LoopCompleted, run: ShownRun) -> str:
    loop = run.state.loops[event.path]
    if run.document is None:
        return format_exit(event.exit_reason, event.iterations_run, loop.cap)
    config = loop_config(run.document, event.path, loop.cap)
    return explain_exit(config, loop.all_iterations, event.exit_reason, loop.cap)


def _with_path(path: str, sentences: Iterable[str]) -> list[str]:
    return [f"{path}: {sentence}" for sentence in sentences if sentence]


def model_line(models: tuple[str, ...], note_of: NoteOf) -> str:
    """The models of a run, each with its note."""
    return ", ".join(f"{model} ({note})" if (note := note_of(model)) else model for model in models)


def _start_line(event: RunStarted, note_of: NoteOf) -> str:
    models = model_line(event.models, note_of)
    return f"Running {event.workflow or 'the workflow'}{' with ' if models else ''}{models}."


def _node_line(event: NodeCompleted) -> str:
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
    return f"{where} ({', '.join(figures)}): {_news(event, loop, is_item=is_item)}"


def _news(event: LoopIterationCompleted, loop: LoopExecution, *, is_item: bool) -> str:
    """What is new in an iteration: of an item its reason or result, else the part that the one before did not have."""
    if is_item:
        return event.reason or what_is_new("", to_text(event.result))
    before = loop.iteration(event.index - 1)
    return what_is_new("" if before is None else to_text(before.result), to_text(event.result))


def what_is_new(before: str, result: str) -> str:
    """The beginning of a result on one line; where it begins like the one before, the part at which they differ."""
    if result == before != "":
        return "unchanged"
    compared = zip(before[:_COMPARED_CHARACTERS], result, strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], compared))
    if shared <= PREVIEW_CHARACTERS // 2:
        return one_line(result, PREVIEW_CHARACTERS)
    start = result.rfind(" ", 0, max(0, shared - PREVIEW_CHARACTERS // 4)) + 1
    return f"... {one_line(result[start:], PREVIEW_CHARACTERS)}"


@dataclass(frozen=True, slots=True)
class LoopBar:
    """The bar of a loop: it is in iteration `current` (from 1) of at most `total`, and `completed` have completed."""

    name: str
    current: int
    total: int
    completed: int
    is_open: bool


def loop_bars(state: RunState) -> list[LoopBar]:
    """The bars of the outermost loops and of the nested ones that are running.

    A nested loop that runs in several iterations at once has one bar, that of the run that started last.
    """
    bars: dict[str, LoopBar] = {}
    for path, loop in state.loops.items():
        is_open = path in state.open_loops
        if loop.total and ("." not in path or is_open):
            name = _INDEX.sub("", path)
            bars[name] = LoopBar(name, loop.current + 1, loop.total, loop.completed, is_open)
    return list(bars.values())


def live_display(state: RunState, note_of: NoteOf, now: float, width: int) -> RenderableType:
    """The live display: a row for each loop and each running node, and one with the figures.

    Args:
        state: The state of the run.
        note_of: The note about a model.
        now: The present moment, in seconds since the epoch.
        width: Cells in a row.
    """
    from rich.console import Group

    rows: list[RenderableType] = [_loop_row(bar) for bar in loop_bars(state)]
    active = active_nodes(state)
    shown = list(active.items())[-_MAX_NODES:]
    rows += [_node_row(path, node, width) for path, node in shown]
    if len(active) > len(shown):
        rows.append(_row(f"and {len(active) - len(shown)} more running"))
    elapsed = state.active_before_s + (max(0.0, now - state.active_since) if state.active_since is not None else 0.0)
    rows.append(
        _row(
            f"{format_duration(elapsed)}   {format_tokens(state.usage)}   {format_money(state.cost_usd)}", style="bold"
        )
    )
    if state.models:
        rows.append(_row(model_line(state.models, note_of), style="dim"))
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
