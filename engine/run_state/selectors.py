"""Selectors: what several readers of a run ask of its state."""

from __future__ import annotations

from typing import Final

from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeAnswered,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
)
from engine.run_state.reducer import CONTAINERS
from engine.run_state.state import NodeExecution, RunState

SETTLE_S: Final = 0.3
"""Seconds without an event after which a run counts as waiting only; before, another node may be about to start."""

QUESTION_EVENTS: Final[frozenset[type[AnyEvent]]] = frozenset(
    {
        NodeStarted,
        NodeWaiting,
        NodeAnswered,
        NodeRetrying,
        NodeCompleted,
        NodeFailed,
        NodeSkipped,
        LoopStarted,
        LoopIterationStarted,
        LoopIterationCompleted,
        RunPaused,
        RunResumed,
        RunCompleted,
        RunFailed,
        RunCancelled,
    }
)
"""The types of events that are enough for the questions of a run."""


def active_nodes(state: RunState) -> dict[str, NodeExecution]:
    """The nodes that have started and not ended, by path; not those that contain others."""
    return {path: node for path, node in state.open.items() if node.node_type not in CONTAINERS}


def waits_only(state: RunState) -> bool:
    """Whether nothing is left to do before a person answers."""
    return bool(state.questions) and active_nodes(state).keys() == state.questions.keys()


def nodes_on(state: RunState, level: str) -> list[NodeExecution]:
    """The nodes directly on a level (`loop[2]`, or empty for the outermost), in the order in which they started."""
    return [node for node in state.nodes.values() if node.level == level]


def iteration_at(state: RunState, place: str) -> LoopIterationCompleted | None:
    """The iteration at a place such as `outer[1].inner[0]`; None where it has not completed."""
    path, _, index = place.removesuffix("]").rpartition("[")
    loop = state.loops.get(path)
    return loop.iteration(int(index)) if loop is not None and index.isdigit() else None


def unanswered_questions(state: RunState) -> dict[str, NodeWaiting]:
    """The open questions and those that the run ended with, by path, the oldest first."""
    return {**state.unanswered, **state.questions}
