"""What a run tells: the typed events that canvas, command line, history and a user's own callback read.

Whatever can be known about a run is in its events; its state is a fold of them (`engine.runner.result`). Values in
events are shared, never copied and never changed.

A run that was resumed tells on where it broke off: after its earlier end comes `run.resumed`, nodes and loops that had
not come to their ends start again (the last `node.started` of a path counts), and what was finished is not told again.
A loop that begins anew with iteration 0 takes back everything told under its path before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from engine.models.base import Usage
from engine.runner.event import Event
from engine.runner.node_events import (
    NodeAnswered,
    NodeCalled,
    NodeCalling,
    NodeCompleted,
    NodeFailed,
    NodeNoted,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeStreaming,
    NodeToolCalled,
    NodeToolCalling,
    NodeWaiting,
    NotePosted,
)
from engine.values import Value


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The run begins.

    Attributes:
        workflow: The document's name.
        inputs: Its parameters, by name.
        models: The models that it may call.
        parent: The run that it was forked from; empty for any other.
        forked_at: The place in the parent (`loop[2]`, `loop[2].critique`) from which on it is run anew.
        edits: Values that a person gave by hand, by place: of an iteration what it starts from, of a node what it gave.
        strategies: The turn strategies of its agents, each once.
    """

    type: ClassVar[str] = "run.started"
    workflow: str
    inputs: dict[str, Value]
    models: tuple[str, ...]
    parent: str = ""
    forked_at: str = ""
    edits: dict[str, Value] = field(default_factory=dict[str, Value])
    strategies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopIterationStarted(Event):
    """An iteration begins: number `index` (from 0) of at most `total`; `path` is the loop's."""

    type: ClassVar[str] = "loop.iteration.started"
    index: int
    total: int
    input_preview: str


@dataclass(frozen=True, slots=True)
class LoopIterationCompleted(Event):
    """An iteration has ended; `path` is the loop's.

    Attributes:
        index: Its number, from 0.
        input: What it started from.
        result: What reached the exit.
        feedback: What the next one starts from.
        branch: What the controlling router chose; None without one.
        reason: Why it chose that; None without one.
        score: What the score expression gave; None without one.
        similarity: To the result before, from 0 to 1; None where it was not asked for or there is none before.
        usage: Tokens used in it.
        cost_usd: US dollars spent in it; None where a price is unknown.
        duration_s: Seconds.
        warnings: Its warnings and those of everything in it, each with its place (`loop[2].draft: …`).
        tested: What the exit conditions looked at, by condition (`stable_output`: the similarity).
        nodes: The output of each node of the body, by id; null for a node that was skipped.
    """

    type: ClassVar[str] = "loop.iteration.completed"
    index: int
    input: Value
    result: Value
    feedback: Value
    branch: str | None
    reason: str | None
    score: float | None
    similarity: float | None
    usage: Usage
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()
    tested: dict[str, Value] = field(default_factory=dict[str, Value])
    nodes: dict[str, Value] = field(default_factory=dict[str, Value])


@dataclass(frozen=True, slots=True)
class LoopCompleted(Event):
    """A loop has ended, for this reason: an exit condition's, `error`, `cancelled`, `budget`, `timeout`.

    `returned` is the index of the iteration whose result it gave, where it gave one.
    """

    type: ClassVar[str] = "loop.completed"
    iterations_run: int
    exit_reason: str
    converged: bool
    returned: int | None
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetWarning(Event):
    """Most of a budget is spent, the loop's at `path` or the run's: `spent` of `limit`, in `usd` or `tokens`."""

    type: ClassVar[str] = "budget.warning"
    unit: str
    spent: float
    limit: float


@dataclass(frozen=True, slots=True)
class RunNotKept(Event):
    """From here on the run is not written to the history: what failed, and what to do. The run itself goes on."""

    type: ClassVar[str] = "run.not_kept"
    error: str
    remedy: str


@dataclass(frozen=True, slots=True)
class RunPaused(Event):
    """No further node is started until the run is resumed."""

    type: ClassVar[str] = "run.paused"


@dataclass(frozen=True, slots=True)
class RunResumed(Event):
    """Nodes are started again: after a pause, or in a run that had broken off, failed or been stopped."""

    type: ClassVar[str] = "run.resumed"


@dataclass(frozen=True, slots=True)
class RunCompleted(Event):
    """The run has come to its end with these named results; `warnings` are those of the whole run, with places."""

    type: ClassVar[str] = "run.completed"
    outputs: dict[str, Value]
    usage: Usage
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """The run ended because a node failed; `node` is that node's path, `outputs` what had come out before.

    `warnings` are those of the whole run, each with its place.
    """

    type: ClassVar[str] = "run.failed"
    error: str
    remedy: str
    node: str
    outputs: dict[str, Value]
    usage: Usage
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunCancelled(Event):
    """The run was stopped; `outputs` are what had come out before, `warnings` those of the whole run."""

    type: ClassVar[str] = "run.cancelled"
    outputs: dict[str, Value]
    usage: Usage
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()


AnyEvent: TypeAlias = (
    RunStarted
    | NodeStarted
    | NodeStreaming
    | NodeCalling
    | NodeCalled
    | NodeToolCalling
    | NodeToolCalled
    | NotePosted
    | NodeNoted
    | NodeWaiting
    | NodeAnswered
    | NodeRetrying
    | NodeCompleted
    | NodeSkipped
    | NodeFailed
    | LoopIterationStarted
    | LoopIterationCompleted
    | LoopCompleted
    | BudgetWarning
    | RunNotKept
    | RunPaused
    | RunResumed
    | RunCompleted
    | RunFailed
    | RunCancelled
)
