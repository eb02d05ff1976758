"""What a run's log comes to in a list of runs: a fold, event by event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Final

from engine import events
from engine.events import AnyEvent
from engine.nodes.pairs import PAIR_BY_START
from engine.runner.journal import RunHead
from engine.runner.questions import closes
from engine.store.base import RunStatus, RunSummary


@dataclass(slots=True)
class RunFold:
    """What the events so far come to; the fields mean what those of `RunSummary` mean.

    Attributes:
        state: How the run stands by its own account: it cannot tell that its process is gone.
        asking: The paths at which a person is asked. Not kept beside the events, which tell it.
    """

    workflow: str = ""
    state: RunStatus = RunStatus.RUNNING
    started: float = 0.0
    updated: float = 0.0
    duration_s: float | None = None
    iterations: int = 0
    exit_reason: str = ""
    tokens: int = 0
    cost_usd: float | None = 0.0
    models: tuple[str, ...] = ()
    error: str = ""
    asking: set[str] = field(default_factory=set[str])

    def copy(self) -> RunFold:
        """The same once more, to take up further events apart from this one."""
        fold = RunFold(*_VALUES(self))
        fold.asking = set(self.asking)
        return fold

    def take(self, event: AnyEvent) -> None:
        """Take up the next event."""
        self.updated = event.time
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
        if self.asking:
            self.asking = {path for path in self.asking if not closes(event, path)}
        if self.state is RunStatus.WAITING and not self.asking:
            self.state = RunStatus.RUNNING

    def summary(self, head: RunHead, *, is_held: bool, pinned: bool, size: int) -> RunSummary:
        """The run as lists show it.

        Args:
            head: What was known of it before its first event.
            is_held: Whether a process is at work on it.
            pinned: Whether retention leaves it alone.
            size: Bytes that it takes.
        """
        return RunSummary(
            head.run_id,
            self.workflow,
            head.source,
            status(self.state, is_held=is_held),
            self.started,
            self.updated,
            self.duration_s,
            self.iterations,
            self.exit_reason,
            self.tokens,
            self.cost_usd,
            self.models,
            self.error,
            head.parent,
            head.forked_at,
            pinned,
            size,
        )


_VALUES: Final = attrgetter(*(field.name for field in fields(RunFold)))
"""All that a fold holds, in order."""

UNDER_WAY: Final = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})
"""How a run stands on which a process is surely at work."""
OPEN: Final = UNDER_WAY | {RunStatus.WAITING}
"""States of a run that has not come to an end, and that goes on or waits for somebody."""


def status(state: RunStatus, *, is_held: bool) -> RunStatus:
    """How a run stands: one that has not ended and on which no process is at work is interrupted."""
    return RunStatus.INTERRUPTED if state in UNDER_WAY and not is_held else state


def _run_started(fold: RunFold, event: events.RunStarted) -> None:
    fold.workflow = event.workflow
    fold.models = event.models
    fold.started = event.time


def _node_ended(fold: RunFold, event: events.NodeCompleted | events.NodeFailed) -> None:
    # What a loop spent was spent by the nodes in it.
    if event.usage is not None and event.node_type not in PAIR_BY_START:
        fold.tokens += event.usage.total_tokens
        fold.cost_usd = None if fold.cost_usd is None or event.cost_usd is None else fold.cost_usd + event.cost_usd


def _iteration_completed(fold: RunFold, _event: events.LoopIterationCompleted) -> None:
    fold.iterations += 1


def _loop_completed(fold: RunFold, event: events.LoopCompleted) -> None:
    if "." not in event.path:
        fold.exit_reason = event.exit_reason


def _waiting(fold: RunFold, event: events.NodeWaiting) -> None:
    fold.asking.add(event.path)
    if fold.state is RunStatus.RUNNING:
        fold.state = RunStatus.WAITING


def _paused(fold: RunFold, _event: events.RunPaused) -> None:
    fold.state = RunStatus.PAUSED


def _resumed(fold: RunFold, _event: events.RunResumed) -> None:
    if fold.state is not RunStatus.PAUSED:  # a run that is taken up again asks anew
        fold.asking = set()
    fold.state = RunStatus.WAITING if fold.asking else RunStatus.RUNNING
    fold.duration_s = None
    fold.error = ""


def _completed(fold: RunFold, event: events.RunCompleted) -> None:
    _ended(fold, event, RunStatus.COMPLETED)


def _failed(fold: RunFold, event: events.RunFailed) -> None:
    _ended(fold, event, RunStatus.FAILED)
    fold.error = event.error


def _cancelled(fold: RunFold, event: events.RunCancelled) -> None:
    _ended(fold, event, RunStatus.CANCELLED)


def _ended(
    fold: RunFold, event: events.RunCompleted | events.RunFailed | events.RunCancelled, state: RunStatus
) -> None:
    # The run's own account also knows of calls that broke off in nodes that came to no end.
    fold.state = state
    fold.tokens = event.usage.total_tokens
    fold.cost_usd = event.cost_usd
    fold.duration_s = event.duration_s


_HANDLERS: Final[dict[type[AnyEvent], Callable[[RunFold, Any], None]]] = {
    events.RunStarted: _run_started,
    events.NodeCompleted: _node_ended,
    events.NodeFailed: _node_ended,
    events.LoopIterationCompleted: _iteration_completed,
    events.LoopCompleted: _loop_completed,
    events.NodeWaiting: _waiting,
    events.RunPaused: _paused,
    events.RunResumed: _resumed,
    events.RunCompleted: _completed,
    events.RunFailed: _failed,
    events.RunCancelled: _cancelled,
}
