"""The views of a run that need no terminal: a line an event for people, a JSON object an event for machines.

A view is given every event in order. `engine.cli.live` has the one that draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Protocol, Self

from engine.cli.output import Screen, write_json
from engine.cli.progress import Progress, without_indices
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
    format_duration,
    format_exit,
    format_money,
    format_percent,
    format_retry,
    format_score,
    format_tokens,
)
from engine.nodes.pairs import PAIR_BY_START
from engine.runner.warning_log import budget_warning, not_kept
from engine.store.stopping import loop_config, why_stopped
from engine.text_sanitizing import one_line

PREVIEW_CHARACTERS = 100
_COMPARED_CHARACTERS = 10_000

NoteOf = Callable[[str], str]
"""What a person should know before trusting the model of that name; empty for most."""


class View(Protocol):
    """Something that shows a run while it goes."""

    async def __aenter__(self) -> Self:
        """Begin to show."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Stop showing, and leave the terminal as it was."""
        ...

    def take(self, event: AnyEvent) -> None:
        """Show one event; `OSError` means that nobody can see it any more."""
        ...

    def step_back(self) -> None:
        """Leave the terminal to whoever asks a person."""
        ...

    def step_forward(self) -> None:
        """Have it again."""
        ...


class QuietView:
    """Shows nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def take(self, event: AnyEvent) -> None:
        """Show nothing."""

    def step_back(self) -> None:
        """There is nothing to take away."""

    def step_forward(self) -> None:
        """There is nothing to bring back."""


class EventView(QuietView):
    """Writes each event to standard output as one line of JSON, at once."""

    def take(self, event: AnyEvent) -> None:
        """Write the event."""
        write_json(event.to_json())


class LineView(QuietView):
    """Writes a plain line for each finished node, each iteration, and whatever a person should know.

    Args:
        screen: Where to write.
        progress: The run's state, already that after the event.
        note_of: What is to be said of a model.
    """

    def __init__(self, screen: Screen, progress: Progress, note_of: NoteOf) -> None:
        self._screen = screen
        self._progress = progress
        self._note_of = note_of

    def take(self, event: AnyEvent) -> None:
        """Write what the event says, where it says something."""
        if isinstance(event, NodeCompleted) and event.node_type not in PAIR_BY_START:
            self._screen.line(_node_line(event))
        line = event_line(event, self._progress, self._note_of)
        if line:
            self._screen.line(line)


def event_line(event: AnyEvent, progress: Progress, note_of: NoteOf) -> str:
    """What is worth a line that stays, in every view for people; empty for all other events."""
    lines: list[str] = []
    match event:
        case RunStarted():
            lines = [_start_line(event, note_of)]
        case LoopIterationCompleted():
            place = f"{event.path}[{event.index}]"
            own = (text.removeprefix(f"{place}: ") for text in event.warnings if not text.startswith(f"{place}."))
            lines = [_iteration_line(event, progress), *_told(event.path, own)]
        case LoopCompleted():
            lines = _told(event.path, (_why_stopped(event, progress), *event.warnings))
        case NodeCompleted():
            lines = _told(event.path, (event.error, *event.warnings))
        case NodeFailed() if event.node_type not in PAIR_BY_START:  # a loop fails because a node in it has
            lines = _told(event.path, (f"failed: {event.error}", *event.warnings))
        case NodeRetrying():
            lines = _told(event.path, (format_retry(event.error, event.attempt, event.delay_s, event.fallback),))
        case NodeWaiting():
            lines = _told(event.path, (f"waits for an answer: {one_line(event.message, PREVIEW_CHARACTERS)}",))
        case RunNotKept():
            lines = [f"{not_kept(event.error)} {event.remedy}".rstrip()]
        case BudgetWarning():
            said = budget_warning(event.spent, event.limit, event.unit)
            lines = [f"{event.path or 'The run'}: {said[0].lower()}{said[1:]}"]
        case _:
            pass
    return "\n".join(lines)


def _why_stopped(event: LoopCompleted, progress: Progress) -> str:
    total = progress.totals.get(event.path)
    if progress.document is None:
        return format_exit(event.exit_reason, event.iterations_run, total)
    config = loop_config(progress.document, event.path, total)
    return why_stopped(config, progress.iterations.get(event.path, ()), event.exit_reason, total)


def _told(path: str, sentences: Iterable[str]) -> list[str]:
    return [f"{path}: {sentence}" for sentence in sentences if sentence]


def model_line(models: tuple[str, ...], note_of: NoteOf) -> str:
    """The models in use, each with what should be known of it."""
    return ", ".join(f"{model} ({note})" if (note := note_of(model)) else model for model in models)


def _start_line(event: RunStarted, note_of: NoteOf) -> str:
    models = model_line(event.models, note_of)
    return f"Running {event.workflow or 'the workflow'}{' with ' if models else ''}{models}."


def _node_line(event: NodeCompleted) -> str:
    figures = [format_duration(event.duration_s)]
    if event.usage is not None:
        figures += [format_tokens(event.usage), format_money(event.cost_usd)]
    return f"{event.path}: done ({', '.join(figures)})"


def _iteration_line(event: LoopIterationCompleted, progress: Progress) -> str:
    figures = [format_duration(event.duration_s)]
    is_item = event.path in progress.iterators
    if event.branch is not None:
        figures.append(event.branch.replace("_", " ") if is_item else f"branch {event.branch}")
    if event.similarity is not None:
        figures.append(f"similarity {format_percent(event.similarity)}")
    if event.score is not None:
        figures.append(f"score {format_score(event.score)}")
    where = f"{event.path} {event.index + 1}/{progress.totals.get(event.path, '?')}"
    loop = progress.loops[without_indices(event.path)]
    said = event.reason if is_item and event.reason else what_is_new(loop.before, loop.result)
    return f"{where} ({', '.join(figures)}): {said}"


def what_is_new(before: str, result: str) -> str:
    """The beginning of a result on one line; where it begins like the one before, the part at which they differ."""
    if result == before != "":
        return "the same once more"
    compared = zip(before[:_COMPARED_CHARACTERS], result, strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], compared))
    if shared <= PREVIEW_CHARACTERS // 2:
        return one_line(result, PREVIEW_CHARACTERS)
    start = result.rfind(" ", 0, max(0, shared - PREVIEW_CHARACTERS // 4)) + 1
    return f"... {one_line(result[start:], PREVIEW_CHARACTERS)}"
