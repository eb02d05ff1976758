"""A run for showing: a fold of its events into loops, iterations and what every node did in each of them.

Exports and the command line read it, live runs and stored ones alike. Which part of a run is folded, whoever reads the
events decides: those of one level are enough to show that level.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from engine.events import (
    AnyEvent,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeAnswered,
    NodeCalled,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeToolCalled,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.models.base import Usage
from engine.nodes.spec import ModelCall
from engine.runner.result import LoopResult, RunResult
from engine.values import Value


@dataclass(slots=True)
class NodeOutline:
    """The last execution of a node: in a loop, in one iteration.

    Attributes:
        path: Where (`loop[2].draft`).
        node_type: Its type.
        state: `running`, `waiting`, `completed`, `failed`, `skipped`; `cancelled` where it was stopped before its end,
            `interrupted` where its run broke off.
        inputs: What reached it, by port.
        outputs: What it gave, by live port.
        calls: Its finished model calls, in full.
        usage: Tokens used; None where no model was called.
        cost_usd: US dollars; None where a price is unknown.
        duration_s: Seconds; None before its end.
        cached: Whether an earlier output was used again.
        retries: How often it was tried again.
        warnings: What a person should know although it went on.
        error: What went wrong, or why it was skipped.
        remedy: What to do about it.
        output_key: The name in the state under which its output is known from then on; empty for none.
        tool_calls: The tools that it called for its model, in order.
    """

    path: str
    node_type: str = ""
    state: str = "running"
    inputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    outputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    calls: tuple[ModelCall, ...] = ()
    usage: Usage | None = None
    cost_usd: float | None = 0.0
    duration_s: float | None = None
    cached: bool = False
    retries: int = 0
    warnings: tuple[str, ...] = ()
    error: str = ""
    remedy: str = ""
    output_key: str = ""
    tool_calls: tuple[NodeToolCalled, ...] = ()

    @property
    def node_id(self) -> str:
        """The node's id in the document."""
        return self.path.rpartition(".")[2]

    @property
    def level(self) -> str:
        """The iteration that it ran in (`loop[2]`); empty outside loops."""
        return self.path.rpartition(".")[0]


class RunOutline:
    """What a run's events add up to, for showing.

    Attributes:
        result: What the run and its loops came to.
        workflow: The document's name.
        inputs: The run's parameters by name.
        models: The models that it may call.
        parent: The run that it was forked from; empty for any other.
        forked_at: The place there.
        started: When it began, in seconds since the epoch; 0 before.
        paused: Whether no further node is to start.
        nodes: What each node did, by path, in the order in which they began.
        totals: How many iterations each loop may run at the most, by path.
    """

    def __init__(self, run_id: str, events: Iterable[AnyEvent] = ()) -> None:
        self.result = RunResult(run_id)
        self.workflow = ""
        self.inputs: Mapping[str, Value] = {}
        self.models: tuple[str, ...] = ()
        self.parent = ""
        self.forked_at = ""
        self.started = 0.0
        self.paused = False
        self.nodes: dict[str, NodeOutline] = {}
        self.totals: dict[str, int] = {}
        self._open: dict[str, None] = {}
        self._fold = self.result.full_fold
        for event in events:
            self.take(event)

    @property
    def loops(self) -> Mapping[str, LoopResult]:
        """What each loop came to, by path."""
        return self.result.loops

    def take(self, event: AnyEvent) -> None:
        """Go on by one event; events come in order."""
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
        fold = self._fold.get(type(event))
        if fold is not None:
            fold(event)

    def stop(self, state: str, *inside: str) -> None:
        """Give nodes that have not ended another state: all of them, or those whose paths begin like this.

        What was stopped has no end of its own in the events.
        """
        for path in [path for path in self._open if path.startswith(inside or "")]:
            self.close(path)
            self.nodes[path].state = state

    def open(self, path: str) -> None:
        """Note that a node has begun or waits."""
        self._open[path] = None

    def close(self, path: str) -> None:
        """Note that a node has come to an end."""
        self._open.pop(path, None)

    def on_level(self, level: str) -> list[NodeOutline]:
        """The nodes directly on a level: `loop[2]`, or empty for the outermost; in the order in which they began."""
        return [node for node in self.nodes.values() if node.level == level]

    def iteration(self, place: str) -> LoopIterationCompleted | None:
        """The iteration at a place such as `outer[1].inner[0]`; None where it did not end."""
        loop, _, index = place.removesuffix("]").rpartition("[")
        ended = self.loops[loop].iterations if loop in self.loops else []
        number = int(index) if index.isdigit() else -1
        row = bisect_left(ended, number, key=attrgetter("index"))
        return ended[row] if row < len(ended) and ended[row].index == number else None

    def node(self, path: str) -> NodeOutline:
        """The execution of the node at that path, made where there was none."""
        if path not in self.nodes:
            self.nodes[path] = NodeOutline(path)
            self.open(path)
        return self.nodes[path]


def _run_started(outline: RunOutline, event: RunStarted) -> None:
    outline.workflow, outline.inputs, outline.models = event.workflow, event.inputs, event.models
    outline.parent, outline.forked_at, outline.started = event.parent, event.forked_at, event.time


def _run_resumed(outline: RunOutline, _event: RunResumed) -> None:
    if not outline.paused:  # it had broken off, and what was running then starts again
        outline.stop("interrupted")
    outline.paused = False


def _run_ended(outline: RunOutline, _event: RunCompleted | RunFailed | RunCancelled) -> None:
    outline.stop("cancelled")


def _iteration_completed(outline: RunOutline, event: LoopIterationCompleted) -> None:
    outline.stop("cancelled", f"{event.path}[{event.index}].")


def _node_ended(outline: RunOutline, path: str) -> None:
    outline.close(path)
    outline.stop("cancelled", f"{path}[", f"{path}.")


def _run_paused(outline: RunOutline, _event: RunPaused) -> None:
    outline.paused = True


def _node_started(outline: RunOutline, event: NodeStarted) -> None:
    # One that had begun before the run broke off keeps its place and the calls that it had finished.
    before = outline.nodes.get(event.path) or NodeOutline(event.path)
    outline.nodes[event.path] = NodeOutline(
        event.path, event.node_type, inputs=event.inputs, calls=before.calls, tool_calls=before.tool_calls
    )
    outline.open(event.path)


def _node_called(outline: RunOutline, event: NodeCalled) -> None:
    node = outline.node(event.path)
    node.calls = (*node.calls[: event.number], event.call)


def _node_tool_called(outline: RunOutline, event: NodeToolCalled) -> None:
    node = outline.node(event.path)
    node.tool_calls = (*node.tool_calls[: event.number], event)


def _node_retrying(outline: RunOutline, event: NodeRetrying) -> None:
    node = outline.node(event.path)
    node.retries, node.error = event.attempt, event.error
    if not event.goes_on:
        outline.stop("cancelled", f"{event.path}[")
        _take_back(outline, f"{event.path}.")  # a subflow begins anew


def _node_waiting(outline: RunOutline, event: NodeWaiting) -> None:
    outline.node(event.path).state = "waiting"
    outline.open(event.path)


def _node_answered(outline: RunOutline, event: NodeAnswered) -> None:
    outline.node(event.path).state = "running"
    outline.open(event.path)


def _node_completed(outline: RunOutline, event: NodeCompleted) -> None:
    node = outline.node(event.path)
    node.node_type, node.state, node.outputs, node.cached = event.node_type, "completed", event.outputs, event.cached
    node.calls, node.warnings, node.error = event.calls, event.warnings, event.error
    node.output_key = event.output_key
    _node_ended(outline, event.path)
    node.usage, node.cost_usd, node.duration_s = event.usage, event.cost_usd, event.duration_s


def _node_failed(outline: RunOutline, event: NodeFailed) -> None:
    node = outline.node(event.path)
    node.node_type, node.state, node.calls = event.node_type, "failed", event.calls
    node.error, node.remedy, node.warnings = event.error, event.remedy, event.warnings
    _node_ended(outline, event.path)
    node.usage, node.cost_usd, node.duration_s = event.usage, event.cost_usd, event.duration_s


def _node_skipped(outline: RunOutline, event: NodeSkipped) -> None:
    outline.nodes[event.path] = NodeOutline(event.path, event.node_type, "skipped", error=event.reason)
    outline.close(event.path)


def _iteration_started(outline: RunOutline, event: LoopIterationStarted) -> None:
    outline.totals[event.path] = event.total
    if event.index == 0 and event.path in outline.loops:  # the loop begins anew
        _take_back(outline, f"{event.path}[")


def _take_back(outline: RunOutline, inside: str) -> None:
    by_path: tuple[dict[str, Any], ...] = (outline.nodes, outline.totals)
    for entries in by_path:
        for path in [path for path in entries if path.startswith(inside)]:
            del entries[path]
            outline.close(path)


_HANDLERS: dict[type[AnyEvent], Callable[[RunOutline, Any], None]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    RunPaused: _run_paused,
    NodeStarted: _node_started,
    NodeCalled: _node_called,
    NodeToolCalled: _node_tool_called,
    NodeRetrying: _node_retrying,
    NodeWaiting: _node_waiting,
    NodeAnswered: _node_answered,
    NodeCompleted: _node_completed,
    NodeFailed: _node_failed,
    NodeSkipped: _node_skipped,
    LoopIterationStarted: _iteration_started,
    LoopIterationCompleted: _iteration_completed,
    RunCompleted: _run_ended,
    RunFailed: _run_ended,
    RunCancelled: _run_ended,
}
