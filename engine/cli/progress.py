"""How far a run is, folded from its events: what the views of the command line show. It draws nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from engine.document.model import Workflow
from engine.events import (
    AnyEvent,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunNotKept,
    RunResumed,
    RunStarted,
)
from engine.models.base import Usage
from engine.nodes.pairs import ITERATOR, PAIR_BY_START
from engine.runner.at_work import AtWork, NodeAtWork
from engine.values import to_text

_INDEX: Final = re.compile(r"\[\d+\]")


@dataclass(slots=True)
class LoopProgress:
    """A loop: it is in iteration `current` (from 1) of at most `total`, and `completed` have ended.

    `result` is the text of the last one's result, `before` that of the one before.
    """

    current: int = 0
    total: int = 0
    completed: int = 0
    result: str = ""
    before: str = ""
    ended: bool = False


@dataclass(slots=True)
class Progress:
    """The state of a run.

    Attributes:
        workflow: The workflow's name.
        models: The models that it may call.
        started: When it began or was taken up again, in seconds since the epoch.
        loops: The loops by path without indices (`outer.inner`): a nested loop has one bar, whichever time it runs.
        totals: How many iterations each loop might run at the most, by its full path (`outer[1].inner`).
        work: The nodes at work and the questions that wait for a person.
        usage: The tokens used so far.
        cost_usd: US dollars spent so far; None as soon as one price in it is unknown.
        document: The document that runs; None where it is not known.
        iterations: Those that each loop has ended, by its full path; items in the order in which they ended.
        iterators: The full paths of those loops that are iterators.
        is_kept: Whether the history has all of it, should the run be kept at all.
    """

    workflow: str = ""
    models: tuple[str, ...] = ()
    started: float = 0.0
    loops: dict[str, LoopProgress] = field(default_factory=dict[str, LoopProgress])
    totals: dict[str, int] = field(default_factory=dict[str, int])
    work: AtWork = field(default_factory=AtWork)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    document: Workflow | None = None
    iterations: dict[str, list[LoopIterationCompleted]] = field(default_factory=dict[str, list[LoopIterationCompleted]])
    iterators: set[str] = field(default_factory=set[str])
    is_kept: bool = True

    @property
    def at_work(self) -> dict[str, NodeAtWork]:
        """The nodes at work, by path."""
        return self.work.nodes

    @property
    def questions(self) -> dict[str, NodeWaiting]:
        """What waits for a person, by path."""
        return self.work.questions

    def take(self, event: AnyEvent) -> None:
        """Go on by one event."""
        self.work.take(event)
        match event:
            case RunStarted():
                self.workflow, self.models, self.started = event.workflow, event.models, event.time
            case RunResumed():
                self.started = event.time
            case NodeStarted() if event.node_type == ITERATOR.start:
                self.iterators.add(event.path)
            case NodeCompleted() | NodeFailed():
                if event.node_type not in PAIR_BY_START:  # what a loop used, its nodes have told
                    self._count(event.usage, event.cost_usd)
            case RunCompleted() | RunFailed() | RunCancelled():
                for loop in self.loops.values():
                    loop.ended = True
            case RunNotKept():
                self.is_kept = False
            case LoopIterationStarted() | LoopIterationCompleted() | LoopCompleted():
                self._turn(event)
            case _:
                pass

    def _count(self, usage: Usage | None, cost_usd: float | None) -> None:
        if usage is not None:
            self.usage += usage
            self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd

    def _turn(self, event: LoopIterationStarted | LoopIterationCompleted | LoopCompleted) -> None:
        name = without_indices(event.path)
        loop = self.loops.setdefault(name, LoopProgress())
        match event:
            case LoopIterationStarted():
                loop.current, loop.total, loop.ended = event.index + 1, event.total, False
                self.totals[event.path] = event.total
                if event.index == 0:  # a loop that begins anew
                    self.iterations[event.path] = []
                loop.completed = len(self.iterations.get(event.path, ()))
            case LoopIterationCompleted():
                ended = self.iterations.setdefault(event.path, [])
                ended.append(event)
                loop.completed = len(ended)
                # Not what was shown last: the same loop may be at work in several items at once.
                has_before = len(ended) > 1 and event.path not in self.iterators
                loop.before = to_text(ended[-2].result) if has_before else ""
                loop.result = to_text(event.result)
            case LoopCompleted():
                loop.ended = True
                if "." in name:
                    self.loops.pop(name)


def without_indices(path: str) -> str:
    """The path of a node whatever the iteration: `outer[1].draft` is `outer.draft`."""
    return _INDEX.sub("", path)
