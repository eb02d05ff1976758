"""Collects the warnings of a run from its events: each once, and with the place it came from."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeStarted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunNotKept,
)
from engine.formatting import format_spending

_ITERATION_END: Final = re.compile(r"\]")


class WarningLog:
    """A reducer of events. A warning reads `loop[2].draft: The reply was cut off.`; one of the run has no place.

    What a loop or a subflow that starts over had warned of before is dropped.
    """

    def __init__(self) -> None:
        self._all: dict[str, None] = {}
        self._by_path: dict[str, list[str]] = {}
        self._by_iteration: dict[str, dict[str, None]] = {}

    @property
    def all(self) -> tuple[str, ...]:
        """All warnings so far, in order."""
        return tuple(self._all)

    def inside(self, iteration: str) -> tuple[str, ...]:
        """The warnings of an iteration (`loop[2]`) and of everything in it."""
        return tuple(self._by_iteration.get(iteration, ()))

    def take(self, event: AnyEvent) -> None:
        """Take the next event; events come in order."""
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def add(self, path: str, warning: str) -> None:
        """Add a warning of a node, a loop or an iteration; with an empty path of the run."""
        self.add_text(path, f"{path}: {warning}" if path else warning)

    def add_text(self, path: str, text: str) -> None:
        """Add a warning that names its place already."""
        if text in self._all:
            return
        self._all[text] = None
        self._by_path.setdefault(path, []).append(text)
        for end in _ITERATION_END.finditer(path):
            self._by_iteration.setdefault(path[: end.end()], {})[text] = None

    def drop(self, path: str) -> None:
        """Drop what the node or loop at a path itself has warned of."""
        for text in self._by_path.pop(path, ()):
            self._all.pop(text, None)
            for end in _ITERATION_END.finditer(path):
                self._by_iteration.get(path[: end.end()], {}).pop(text, None)

    def drop_inside(self, path: str) -> None:
        """Drop what everything in a loop or a subflow has warned of."""
        inside = (f"{path}[", f"{path}.")
        for other in [other for other in self._by_path if other.startswith(inside)]:
            self.drop(other)


def budget_warning(spent: float, limit: float, unit: str) -> str:
    """Warn that most of a budget is used; `unit`: `usd` or `tokens`."""
    return f"Most of the budget is used ({format_spending(spent, limit, unit)})."


def not_kept(error: str) -> str:
    """Warn that the history no longer stores a run."""
    return f"The run is no longer stored in the history: {error}"


def _node_ended(log: WarningLog, event: NodeCompleted | NodeFailed) -> None:
    for warning in event.warnings:
        log.add(event.path, warning)
    if isinstance(event, NodeCompleted) and event.error and "error" not in event.outputs:
        log.add(event.path, f"It failed, and its value on error is used: {event.error}")


def _started_over(log: WarningLog, event: NodeRetrying) -> None:
    if not event.goes_on:
        log.drop_inside(event.path)


def _iteration_started(log: WarningLog, event: LoopIterationStarted) -> None:
    if event.index == 0:
        log.drop(event.path)
        log.drop_inside(event.path)


def _iteration_ended(log: WarningLog, event: LoopIterationCompleted) -> None:
    place = f"{event.path}[{event.index}]"
    for text in event.warnings:
        has_place = text.startswith((f"{place}.", f"{place}:"))  # in older histories an iteration's own have none
        log.add_text(place, text if has_place else f"{place}: {text}")


def _loop_ended(log: WarningLog, event: LoopCompleted) -> None:
    for warning in event.warnings:
        log.add(event.path, warning)


def _run_ended(log: WarningLog, event: RunCompleted | RunFailed | RunCancelled) -> None:
    for text in event.warnings:
        log.add_text("", text)


_HANDLERS: Final[dict[type[AnyEvent], Callable[[WarningLog, Any], None]]] = {
    NodeStarted: lambda log, event: log.drop(event.path),
    NodeCompleted: _node_ended,
    NodeFailed: _node_ended,
    NodeRetrying: _started_over,
    LoopIterationStarted: _iteration_started,
    LoopIterationCompleted: _iteration_ended,
    LoopCompleted: _loop_ended,
    BudgetWarning: lambda log, event: log.add(event.path, budget_warning(event.spent, event.limit, event.unit)),
    RunNotKept: lambda log, event: log.add("", not_kept(event.error)),
    RunCompleted: _run_ended,
    RunFailed: _run_ended,
    RunCancelled: _run_ended,
}

WARNING_KINDS: Final = frozenset(_HANDLERS)
"""The types of events that a `WarningLog` reads."""
