"""The live view of a run on a terminal: a bar a loop, the nodes at work with their last words, tokens and cost."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Self

from engine.cli.output import Screen
from engine.cli.progress import LoopProgress, Progress
from engine.cli.views import NoteOf, event_line, model_line
from engine.formatting import format_duration, format_money, format_tokens
from engine.runner.at_work import NodeAtWork
from engine.text_sanitizing import harmless

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engine.events import AnyEvent

_REFRESH_S = 0.1
_BAR_CELLS = 24
_MOST_NODES = 6


class LiveView:
    """Draws the run's state again and again below the lines that stay, and wipes it away at the end.

    Args:
        screen: The terminal.
        progress: The run's state, already that after the event.
        note_of: What is to be said of a model.
    """

    def __init__(self, screen: Screen, progress: Progress, note_of: NoteOf) -> None:
        from rich.live import Live

        self._screen = screen
        self._progress = progress
        self._note_of = note_of
        self._live = Live(
            console=screen.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=lambda: picture(progress, note_of, time.time(), screen.console.width),
        )
        self._ticking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._live.start()
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            # A terminal that has gone shows itself in `take` or below; the ticker need not say it again.
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await self._ticking
        self._live.stop()

    def take(self, event: AnyEvent) -> None:
        """Write what is to stay; the picture follows within a tenth of a second."""
        line = event_line(event, self._progress, self._note_of)
        if line:
            self._screen.line(line)

    def step_back(self) -> None:
        """Wipe the picture away."""
        self._live.stop()

    def step_forward(self) -> None:
        """Draw it again."""
        self._live.start()

    async def _tick(self) -> None:
        while True:
            if self._live.is_started:
                self._live.refresh()
            await asyncio.sleep(_REFRESH_S)


def picture(progress: Progress, note_of: NoteOf, now: float, width: int) -> RenderableType:
    """What is drawn: a row for each loop, for each node at work, and one with the figures.

    Args:
        progress: The run's state.
        note_of: What is to be said of a model.
        now: The present moment, in seconds since the epoch.
        width: Cells in a row.
    """
    from rich.console import Group

    rows: list[RenderableType] = [_loop_row(name, loop) for name, loop in progress.loops.items() if loop.total]
    shown = list(progress.at_work.items())[-_MOST_NODES:]
    rows += [_node_row(path, node, width) for path, node in shown]
    if len(progress.at_work) > len(shown):
        rows.append(_row(f"and {len(progress.at_work) - len(shown)} more at work"))
    elapsed = format_duration(max(0.0, now - progress.started)) if progress.started else format_duration(0)
    rows.append(_row(f"{elapsed}   {format_tokens(progress.usage)}   {format_money(progress.cost_usd)}", style="bold"))
    if progress.models:
        rows.append(_row(model_line(progress.models, note_of), style="dim"))
    return Group(*rows)


def _row(text: str, style: str = "") -> RenderableType:
    from rich.text import Text

    return Text(harmless(text), style=style, no_wrap=True, overflow="ellipsis")


def _loop_row(name: str, loop: LoopProgress) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    row = Table.grid(padding=(0, 1))
    row.add_row(
        _row(name, style="bold"),
        ProgressBar(total=loop.total, completed=loop.completed, width=_BAR_CELLS),
        _row(f"{loop.current}/{loop.total}{' ended' if loop.ended else ''}"),
    )
    return row


def _node_row(path: str, node: NodeAtWork, width: int) -> RenderableType:
    from rich.cells import cell_len
    from rich.text import Text

    words = " ".join(harmless(node.words).split())
    room = width - cell_len(harmless(path)) - 3
    while words and cell_len(words) > room:
        words = words[max(1, (cell_len(words) - room) // 2) :]
    row = Text(no_wrap=True, overflow="ellipsis")
    row.append(harmless(path), style="cyan")
    row.append(f"  {words}")
    return row
