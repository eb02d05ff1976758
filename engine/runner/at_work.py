"""What a run is at: its nodes at work and its open questions, folded from its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeStreaming,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
)
from engine.formatting import format_retry
from engine.nodes.pairs import PAIR_BY_START
from engine.nodes.subflow import SUBFLOW
from engine.runner.questions import closes

GRACE_S: Final = 0.3
"""For how long nothing else may happen before a run counts as one that only waits; a node may be about to begin."""
_KEPT_CHARACTERS: Final = 400


@dataclass(slots=True)
class NodeAtWork:
    """A node that has begun and not ended: its type, and the last words of its model or of what hinders it."""

    node_type: str
    words: str = ""


@dataclass(slots=True)
class AtWork:
    """What a run is at.

    Attributes:
        nodes: The nodes at work, by path; loops, iterators and subflows not, as what is in them is told itself.
        questions: What waits for a person, by path.
    """

    nodes: dict[str, NodeAtWork] = field(default_factory=dict[str, NodeAtWork])
    questions: dict[str, NodeWaiting] = field(default_factory=dict[str, NodeWaiting])

    @property
    def only_waits(self) -> bool:
        """Whether all that is at work waits for a person."""
        return bool(self.questions) and self.nodes.keys() == self.questions.keys()

    def take(self, event: AnyEvent) -> None:
        """Go on by one event."""
        self._ask(event)
        match event:
            case RunResumed():
                # What was at work or waited when the run broke off begins anew, or asks anew.
                self.nodes.clear()
            case NodeStarted() if event.node_type not in PAIR_BY_START and event.node_type != SUBFLOW:
                self.nodes[event.path] = NodeAtWork(event.node_type)
            case NodeStreaming():
                self._say(event.path, event.text, joined=True)
            case NodeRetrying():
                self._say(event.path, format_retry(event.error, event.attempt, event.delay_s), joined=False)
                self._stop_inside(event.path)
            case NodeCompleted() | NodeFailed():
                self.nodes.pop(event.path, None)
                self._stop_inside(event.path)
            case LoopIterationCompleted():
                self._stop_inside(f"{event.path}[{event.index}]")
            case RunCompleted() | RunFailed() | RunCancelled():
                self.nodes.clear()
                self.questions = {}
            case NodeSkipped():
                self.nodes.pop(event.path, None)
            case _:
                pass

    def _ask(self, event: AnyEvent) -> None:
        if isinstance(event, NodeWaiting):
            self.questions[event.path] = event
        elif isinstance(event, RunResumed):
            self.questions.clear()
        elif self.questions:
            self.questions = {path: asked for path, asked in self.questions.items() if not closes(event, path)}

    def _say(self, path: str, words: str, *, joined: bool) -> None:
        node = self.nodes.get(path)
        if node is not None:
            node.words = (node.words + words if joined else words)[-_KEPT_CHARACTERS:]

    def _stop_inside(self, path: str) -> None:
        """Nothing is at work any more in what is over: nodes that were stopped in it tell no end of their own."""
        for inner in [inner for inner in self.nodes if inner.startswith((f"{path}[", f"{path}."))]:
            del self.nodes[inner]
