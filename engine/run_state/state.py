"""The state of a run: plain data, changed by `engine.run_state.reducer` and read by everybody else."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeAnswered,
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
)
from engine.formatting import format_spending
from engine.models.protocol import ModelCall, Usage
from engine.nodes.spec import PAIR_BY_START
from engine.nodes.subflow import SUBFLOW
from engine.plan.partial_run import Part
from engine.values import Value

_ITERATION_END: Final = re.compile(r"\]")


class WarningLog:
    """The warnings of a run, in order.

    One reads `loop[2].draft: The reply was cut off.`; one of the run itself has no place.
    """

    def __init__(self) -> None:
        self._all: dict[str, None] = {}
        self._by_path: dict[str, list[str]] = {}
        self._by_iteration: dict[str, dict[str, None]] = {}

    @property
    def all(self) -> tuple[str, ...]:
        """All warnings so far."""
        return tuple(self._all)

    def inside(self, iteration: str) -> tuple[str, ...]:
        """The warnings of an iteration (`loop[2]`) and of everything in it."""
        return tuple(self._by_iteration.get(iteration, ()))

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
        """Drop the warnings of the node or loop at a path itself."""
        if not self._by_path:
            return
        for text in self._by_path.pop(path, ()):
            self._all.pop(text, None)
            for end in _ITERATION_END.finditer(path):
                self._by_iteration.get(path[: end.end()], {}).pop(text, None)

    def drop_inside(self, path: str) -> None:
        """Drop the warnings of everything in a loop or a subflow."""
        inside = (f"{path}[", f"{path}.")
        for other in [other for other in self._by_path if other.startswith(inside)]:
            self.drop(other)


def budget_warning(spent: float, limit: float, unit: str) -> str:
    """The warning that most of a budget is used; `unit`: `usd` or `tokens`."""
    return f"Most of the budget is used ({format_spending(spent, limit, unit)})."


def not_stored(error: str) -> str:
    """The warning that the history no longer stores a run."""
    return f"The run is no longer stored in the history: {error}"


class RunStatus(StrEnum):
    """The status of a run.

    `waiting`: a node waits for a person, whether or not a process is there to take the answer. `interrupted`: the run
    has not ended and its process is gone; only a store can tell.
    """

    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self in _OVER


_OVER = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


class NodeState(StrEnum):
    """The state of one execution of a node.

    `waiting`: for a person. `cached`: completed with a reused output. `pinned`: completed with its
    pinned value. `cancelled`: stopped with what it was part of.
    `interrupted`: the run was interrupted, and the node has not started again.
    """

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    CACHED = "cached"
    PINNED = "pinned"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


FINISHED: Final = frozenset({NodeState.COMPLETED, NodeState.CACHED, NodeState.PINNED})
"""States of a node that has outputs."""
_ENDED = FINISHED | {NodeState.FAILED, NodeState.SKIPPED}


class Detail(Enum):
    """How much of a run a state holds, and so which events change it.

    `SUMMARY`: what lists of runs show, and the open questions; of constant size, so that a store can save it after each
    event. `LOOPS`: also loops, iterations, warnings and results. `NODES`: also each execution of each node.
    """

    SUMMARY = 0
    LOOPS = 1
    NODES = 2


@dataclass(slots=True)
class NodeExecution:
    """The last execution of a node: in a loop, one an iteration.

    Attributes:
        path: Its place (`loop[2].draft`).
        node_type: Its type.
        state: Its state.
        inputs: Its inputs, by port.
        outputs: Its outputs, by live port.
        calls: Its finished model calls, in full.
        usage: Tokens used; None where no model was called.
        cost_usd: US dollars; None where a price is unknown.
        duration_s: Seconds; None before its end.
        retries: How many attempts have failed.
        retry_delay_s: Seconds between the last failed attempt and the next one.
        warnings: Its warnings.
        error: What went wrong, or why it was skipped.
        remedy: What to do about it.
        fix: What the program offers for it, as in `EngineError`.
        output_key: The name under which `state` holds its output; empty for none.
        tool_calls: Its tool calls, in order.
        started: When it started, in seconds since the epoch; 0 before.
        streamed: The pieces of the reply that is streaming in.
    """

    path: str = ""
    node_type: str = ""
    state: NodeState = NodeState.PENDING
    inputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    outputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    calls: tuple[ModelCall, ...] = ()
    usage: Usage | None = None
    cost_usd: float | None = 0.0
    duration_s: float | None = None
    retries: int = 0
    retry_delay_s: float = 0.0
    warnings: tuple[str, ...] = ()
    error: str = ""
    remedy: str = ""
    fix: str = ""
    output_key: str = ""
    tool_calls: tuple[NodeToolCalled, ...] = ()
    started: float = 0.0
    streamed: list[str] = field(default_factory=list[str])

    @property
    def node_id(self) -> str:
        """The node's id in its document."""
        return self.path.rpartition(".")[2]

    @property
    def level(self) -> str:
        """The iteration or subflow that it ran in (`loop[2]`); empty for the run itself."""
        return self.path.rpartition(".")[0]

    @property
    def is_cached(self) -> bool:
        """Whether an earlier output was reused."""
        return self.state is NodeState.CACHED

    @property
    def is_pinned(self) -> bool:
        """Whether its pinned value was used."""
        return self.state is NodeState.PINNED

    @property
    def has_completed(self) -> bool:
        """Whether it completed, with a new, a reused or a pinned output."""
        return self.state in FINISHED

    @property
    def has_ended(self) -> bool:
        """Whether it reported its end."""
        return self.state in _ENDED

    @property
    def text(self) -> str:
        """The text that has streamed in."""
        if len(self.streamed) > 1:  # joined once, however often it is read
            self.streamed[:] = ["".join(self.streamed)]
        return self.streamed[0] if self.streamed else ""


@dataclass(slots=True)
class LoopExecution:
    """The last attempt of a loop or an iterator.

    Attributes:
        path: Its place (`outer[1].inner`).
        attempt: The number of the attempt, from 1.
        total: The most iterations that it may run; 0 where that is not known.
        current: Index of the latest iteration that started; -1 before the first.
        input_preview: The beginning of that iteration's input.
        iterations: The completed iterations, each at its index; of an iterator's items, which complete in any order,
            those before the first that has not.
        ahead: The other completed items, by index.
        cost_usd: US dollars; None where a price is unknown.
        exit_reason: The exit reason; empty before its end.
        returned: Index of the iteration whose result is the output.
        converged: Whether something other than the count, money or time ended it.
        warnings: Its own warnings.
        iterations_run: How many iterations completed, as it reported at its end.
    """

    path: str = ""
    attempt: int = 1
    total: int = 0
    current: int = -1
    input_preview: str = ""
    iterations: list[LoopIterationCompleted] = field(default_factory=list[LoopIterationCompleted])
    ahead: dict[int, LoopIterationCompleted] = field(default_factory=dict[int, LoopIterationCompleted])
    cost_usd: float | None = 0.0
    exit_reason: str = ""
    returned: int | None = None
    converged: bool = False
    warnings: tuple[str, ...] = ()
    iterations_run: int = 0

    @property
    def completed(self) -> int:
        """How many iterations have completed."""
        return len(self.iterations) + len(self.ahead)

    @property
    def all_iterations(self) -> list[LoopIterationCompleted]:
        """All completed iterations, in the order of their indices."""
        return (
            [*self.iterations, *(self.ahead[index] for index in sorted(self.ahead))] if self.ahead else self.iterations
        )

    @property
    def cap(self) -> int | None:
        """The most iterations that it may run; None before the first one has started."""
        return self.total if self.current >= 0 else None

    def iteration(self, index: int) -> LoopIterationCompleted | None:
        """The iteration of that index; None where it has not completed."""
        return self.iterations[index] if 0 <= index < len(self.iterations) else self.ahead.get(index)


@dataclass(slots=True)
class RunState:
    """The state of a run, as far as its events say.

    One owner creates a state and hands it one event after the other (`engine.run_state.reducer.apply`). Everybody else
    only reads it.

    Attributes:
        run_id: The run.
        detail: How much it holds; the attributes below are grouped by it.
        has_loops: Whether `detail` includes loops.
        has_nodes: Whether `detail` includes executions of nodes.

        workflow: The document's name.
        models: The models that the run may call.
        started: When it started, in seconds since the epoch; 0 before.
        updated: When the last event was emitted.
        duration_s: Seconds that it was running, as it reported itself; None before its end.
        completed_iterations: How many iterations its loops have completed, those of failed attempts included.
        exit_reason: The exit reason of its outermost loop, of several the one that ended last.
        usage: Tokens used.
        cost_usd: US dollars; None where a price is unknown.
        error: What failed and why; empty where nothing did.
        questions: The nodes that wait for a person, by path, the oldest first.
        unanswered: The questions that were open when the run ended.
        phase: `running`, `paused` or how the run ended; see `status`.
        announced: Loops whose start was reported and whose iteration 0 has not started yet.

        inputs: The run's parameters, by name.
        parent: The run that it was forked from; empty for any other.
        forked_at: The place in the parent.
        part: The part of the workflow that runs; None for all of it.
        outputs: Named results; of a failed or cancelled run, those that were ready.
        remedy: What to do about the error.
        fix: What the program offers for it, as in `EngineError`.
        failed_node: The path of the node that failed.
        is_stored: Whether the history has all of it, if it was to be stored.
        budget: The last warning about a budget.
        loops: The last attempt of each loop, by path.
        open_loops: The loops that have not ended, by path.
        warnings: The warnings of the run.
        active_before_s: Seconds that it was running before `active_since`.
        active_since: When it last started running; None while it is not.

        nodes: The last execution of each node, by path, in the order in which they first started.
        open: Those of them that have not ended, by path.
    """

    run_id: str = ""
    detail: Detail = Detail.NODES
    has_loops: bool = field(init=False)  # read for every event, and faster than a comparison of the enum
    has_nodes: bool = field(init=False)

    workflow: str = ""
    models: tuple[str, ...] = ()
    started: float = 0.0
    updated: float = 0.0
    duration_s: float | None = None
    completed_iterations: int = 0
    exit_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    error: str = ""
    questions: dict[str, NodeWaiting] = field(default_factory=dict[str, NodeWaiting])
    unanswered: dict[str, NodeWaiting] = field(default_factory=dict[str, NodeWaiting])
    phase: RunStatus = RunStatus.RUNNING
    announced: set[str] = field(default_factory=set[str])

    inputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    parent: str = ""
    forked_at: str = ""
    part: Part | None = None
    outputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    remedy: str = ""
    fix: str = ""
    failed_node: str = ""
    is_stored: bool = True
    budget: BudgetWarning | None = None
    loops: dict[str, LoopExecution] = field(default_factory=dict[str, LoopExecution])
    open_loops: dict[str, LoopExecution] = field(default_factory=dict[str, LoopExecution])
    warnings: WarningLog = field(default_factory=WarningLog)
    active_before_s: float = 0.0
    active_since: float | None = None

    nodes: dict[str, NodeExecution] = field(default_factory=dict[str, NodeExecution])
    open: dict[str, NodeExecution] = field(default_factory=dict[str, NodeExecution])

    def __post_init__(self) -> None:
        self.has_loops = self.detail is not Detail.SUMMARY
        self.has_nodes = self.detail is Detail.NODES

    @property
    def status(self) -> RunStatus:
        """The status of the run by its own account: it cannot tell that its process is gone."""
        return RunStatus.WAITING if self.questions and self.phase is RunStatus.RUNNING else self.phase

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.phase.is_over

    @property
    def active_s(self) -> float:
        """Seconds that the run has been running, up to its last event."""
        return self.active_until(self.updated)

    def active_until(self, now: float) -> float:
        """Seconds that the run has been running, up to a time in seconds since the epoch."""
        return self.active_before_s + (max(now - self.active_since, 0.0) if self.active_since is not None else 0.0)

    def copy_summary(self) -> RunState:
        """A copy of a state with `Detail.SUMMARY`, which further events change independently."""
        assert self.detail is Detail.SUMMARY, "a state with more detail is not copied after each event"
        other = copy.copy(self)
        other.questions, other.unanswered = dict(self.questions), dict(self.unanswered)
        other.announced = set(self.announced)
        return other


CONTAINERS: Final = frozenset({*PAIR_BY_START, SUBFLOW})
"""The types of nodes that contain other nodes."""

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
