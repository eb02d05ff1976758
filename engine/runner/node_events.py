"""What a run tells of its nodes; part of `engine.runner.events`, from where these are imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.models.base import Request, Usage
from engine.nodes.context import QuestionKind
from engine.nodes.spec import ModelCall, Outputs
from engine.runner.event import Event
from engine.values import Value


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
    billed. `request` is stored only for a model whose replies depend on the calls before (`RemembersCalls`).
    """

    type: ClassVar[str] = "node.calling"
    number: int
    model: str
    request: Request | None = None


@dataclass(frozen=True, slots=True)
class NodeCalled(Event):
    """A model call of a node has come to its end. Told only where the run is kept: a finished call is paid for once."""

    type: ClassVar[str] = "node.called"
    number: int
    call: ModelCall


@dataclass(frozen=True, slots=True)
class NodeToolCalling(Event):
    """A node is about to call a tool that is not idempotent.

    Emitted only for stored runs, and stored before the call: after a crash it says that the tool may have run.

    Attributes:
        tool: The tool.
        arguments: Its arguments as JSON text, truncated.
    """

    type: ClassVar[str] = "node.tool_calling"
    tool: str
    arguments: str


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
        edited_arguments: What a person changed the arguments to; null if nobody did.
    """

    type: ClassVar[str] = "node.tool_called"
    number: int
    tool: str
    arguments: Value
    result: Value
    error: str
    duration_s: float
    edited_arguments: Value = None

    @property
    def used_arguments(self) -> Value:
        """The arguments with which the tool was called."""
        return self.arguments if self.edited_arguments is None else self.edited_arguments


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
        value_schema: A JSON Schema that an edited value must follow; None where it only has to be of the same kind.
    """

    type: ClassVar[str] = "node.waiting"
    node_type: str
    kind: QuestionKind
    message: str
    value: Value
    choices: tuple[str, ...]
    value_schema: dict[str, Value] | None = None


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
    `fallback`: the model that it uses from now on, because the one before failed; empty for a plain retry.
    """

    type: ClassVar[str] = "node.retrying"
    attempt: int
    delay_s: float
    error: str
    goes_on: bool = False
    fallback: str = ""


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
    warnings: tuple[str, ...] = ()
