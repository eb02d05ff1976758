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
from engine.nodes.context import QuestionKind
from engine.nodes.spec import ModelCall, Outputs
from engine.runner.event import Event
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
class NodeStarted(Event):
    """A node begins its work on these `inputs` (by port)."""

    type: ClassVar[str] = "node.started"
    node_type: str
    inputs: dict[str, Value]


@dataclass(frozen=True, slots=True)
class NodeStreaming(Event):
    """A piece of a model's reply arrived; `tokens` counts the pieces of this call so far."""

    type: ClassVar[str] = "node.streaming"
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class NodeCalling(Event):
    """A node is about to call this model: its `number`-th finished call (from 0), should it come to an end.

    Told only where the run is kept, and kept before the call is made: after a crash it says that the call may have been
    billed.
    """

    type: ClassVar[str] = "node.calling"
    number: int
    model: str


@dataclass(frozen=True, slots=True)
class NodeCalled(Event):
    """A model call of a node has come to its end. Told only where the run is kept: a finished call is paid for once."""

    type: ClassVar[str] = "node.called"
    number: int
    call: ModelCall


@dataclass(frozen=True, slots=True)
class NodeToolCalled(Event):
    """A tool that a model wanted called has been called, or was refused.

    Attributes:
        number: How many the node had called before, in all its turns.
        tool: The tool, as the model wrote it.
        arguments: What the model gave it: an object, or a text that is none.
        result: What it gave.
        error: Why it gave nothing; empty where it did.
        duration_s: Seconds, those in which a person was asked included.
    """

    type: ClassVar[str] = "node.tool_called"
    number: int
    tool: str
    arguments: Value
    result: Value
    error: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class NotePosted(Event):
    """A note for a node was posted, by a person (`path` is empty) or by the node at `path`.

    `to` is a node's id, or a place (`loop[0].worker`); the note waits for the next model call there.
    """

    type: ClassVar[str] = "note.posted"
    to: str
    text: str


@dataclass(frozen=True, slots=True)
class NodeNoted(Event):
    """A node has got a note, and its next model call has it; `sender` is the path of the node that posted it, if any.

    `to` is as it was posted.
    """

    type: ClassVar[str] = "node.noted"
    to: str
    text: str
    sender: str


@dataclass(frozen=True, slots=True)
class NodeWaiting(Event):
    """A node waits for a person.

    Attributes:
        node_type: The node's type.
        kind: What is wanted: that a value be approved, or that a question be answered.
        message: What the person is asked. Plain text, never markup.
        value: What is to be approved, or what the question is about; null for nothing.
        choices: What the person may choose between; empty where only a text is asked for.
    """

    type: ClassVar[str] = "node.waiting"
    node_type: str
    kind: QuestionKind
    message: str
    value: Value
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeAnswered(Event):
    """A person answered a node that waited: one of its choices (or none), the value as they left it, a comment."""

    type: ClassVar[str] = "node.answered"
    choice: str
    value: Value
    comment: str


@dataclass(frozen=True, slots=True)
class NodeRetrying(Event):
    """An attempt failed and another will be made: the `attempt`-th (from 1), after `delay_s` seconds.

    `goes_on`: it does not begin anew, but goes on from the last model or tool call that came to an end.
    """

    type: ClassVar[str] = "node.retrying"
    attempt: int
    delay_s: float
    error: str
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class NodeCompleted(Event):
    """A node has done its work.

    Attributes:
        outputs: What it gave, by live output port.
        usage: Tokens used, failed attempts included; None where no model was called.
        cost_usd: US dollars; None where a price is unknown.
        duration_s: Seconds from its start.
        cached: Whether an earlier output was used again.
        calls: Its model calls, requests and replies in full.
        warnings: What a person should know although it went on.
        error: Why it failed, where its settings say that the run goes on all the same.
        output_key: The name in `state` under which its output is known from then on; empty for none.
        exits_loop: Whether it ended the loop around it.
    """

    type: ClassVar[str] = "node.completed"
    node_type: str
    outputs: Outputs
    usage: Usage | None
    cost_usd: float | None
    duration_s: float
    cached: bool = False
    calls: tuple[ModelCall, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ""
    output_key: str = ""
    exits_loop: bool = False


@dataclass(frozen=True, slots=True)
class NodeSkipped(Event):
    """A node did not run, because nothing live reached it or because it is disabled."""

    type: ClassVar[str] = "node.skipped"
    node_type: str
    reason: str


@dataclass(frozen=True, slots=True)
class NodeFailed(Event):
    """A node failed, and with it what it is part of. `remedy` says what to do."""

    type: ClassVar[str] = "node.failed"
    node_type: str
    error: str
    remedy: str
    duration_s: float
    usage: Usage | None = None
    cost_usd: float | None = 0.0
    calls: tuple[ModelCall, ...] = ()


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
        warnings: What a person should know although it went on.
        tested: What the exit conditions looked at, by condition (`stable_output`: the similarity).
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
    """The run has come to its end with these named results."""

    type: ClassVar[str] = "run.completed"
    outputs: dict[str, Value]
    usage: Usage
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """The run ended because a node failed; `node` is that node's path, `outputs` what had come out before."""

    type: ClassVar[str] = "run.failed"
    error: str
    remedy: str
    node: str
    outputs: dict[str, Value]
    usage: Usage
    cost_usd: float | None
    duration_s: float


@dataclass(frozen=True, slots=True)
class RunCancelled(Event):
    """The run was stopped; `outputs` are what had come out before."""

    type: ClassVar[str] = "run.cancelled"
    outputs: dict[str, Value]
    usage: Usage
    cost_usd: float | None
    duration_s: float


AnyEvent: TypeAlias = (
    RunStarted
    | NodeStarted
    | NodeStreaming
    | NodeCalling
    | NodeCalled
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
