"""The questions of a run that wait for a person, as its events tell them, and which answers fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from engine.document.wording import shown
from engine.errors import EngineError
from engine.runner.events import (
    AnyEvent,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeAnswered,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeStarted,
    NodeWaiting,
)

CLOSING: Final = (NodeAnswered, NodeCompleted, NodeFailed, NodeRetrying, NodeStarted)
"""Told at a node's path, each of these says that nothing waits there any more."""
TELLING: Final = (NodeWaiting, LoopIterationStarted, LoopIterationCompleted, *CLOSING)
"""The events that tell whether a question is open."""
_OVER: Final = (NodeCompleted, NodeFailed, NodeRetrying)
"""Told of a loop, an iterator or a subflow, each of these says that nothing waits in it any more."""


def closes(event: AnyEvent, path: str) -> bool:
    """Whether a question at a path waits no more once this is told."""
    if isinstance(event, LoopIterationStarted):
        return event.index == 0 and path.startswith(f"{event.path}[")  # a loop that begins anew
    if isinstance(event, LoopIterationCompleted):
        return path.startswith(f"{event.path}[{event.index}].")  # an item of an iterator may fail while others go on
    if isinstance(event, CLOSING) and event.path == path:
        return True
    return isinstance(event, _OVER) and path.startswith((f"{event.path}[", f"{event.path}."))


def open_questions(past: Iterable[AnyEvent]) -> dict[str, NodeWaiting]:
    """The questions that nobody has answered, by path, the oldest first."""
    waiting: dict[str, NodeWaiting] = {}
    for event in past:
        if isinstance(event, NodeWaiting):
            waiting[event.path] = event
        elif waiting:
            waiting = {path: asked for path, asked in waiting.items() if not closes(event, path)}
    return waiting


def check_choice(path: str, choice: str, choices: Sequence[str]) -> None:
    """Refuse an answer that is none of those to choose between.

    Raises:
        EngineError: It is none of them.
    """
    if choices and choice not in choices:
        given = f'"{shown(choice, 40)}" is no answer' if choice else "An answer chooses nothing"
        raise EngineError(f'{given} to the question at "{path}".', f"Choose one of: {', '.join(choices)}.")
