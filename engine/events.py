"""The events of a run: everything that the runner reports, and all that anybody knows of a run.

Events are the only interface between a running workflow and those who follow it. The canvas, the command line, the
history and a caller's own callback read them; `engine.run_state` reduces them to the state of the run. Values in events
are shared: never change them.

A resumed run continues its log: `run.resumed` follows the earlier end, unfinished nodes start again (the last
`node.started` of a path counts), and finished ones are not reported again. `loop.started` voids whatever an earlier
attempt of the same loop reported.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from engine.errors import EngineError
from engine.models.protocol import ModelCall, Request, Usage
from engine.nodes.context import QuestionKind
from engine.nodes.spec import Outputs
from engine.text_sanitizing import shown
from engine.values import Value, immutable


@immutable
class Event:
    """What all events have in common.

    Attributes:
        run_id: The run that reports it.
        seq: Its number in the run, counted from 0 without gaps.
        time: Seconds since the epoch (UTC).
        path: The node or loop that it is about (`draft`, `loop[2].draft`, `outer[1].inner`); empty for the run itself.
    """

    type: ClassVar[str] = "event"

    run_id: str
    seq: int
    time: float
    path: str

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON object, with its type first."""
        fields = {field.name: _to_json(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return {"type": self.type, **fields}


def _to_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


@immutable
class RunStarted(Event):
    """The run started.

    Attributes:
        workflow: The name of the document.
        inputs: The run's parameters, by name.
        models: The models that it may call.
        parent: The run that it was forked from; empty for any other run.
        forked_at: The place in the parent (`loop[2]`, `loop[2].critique`) from which it runs again.
        edits: Values that a person set, by place: an iteration's input or a node's output.
        strategies: The turn strategies of its agents, each once.
        state_order: Of a fork, the order in which its parent set and read the named state.
        extent: Of a run of a part of the workflow, how much runs (`engine.plan.partial_run.Extent`); else empty.
        target: The node of that part.
    """

    type: ClassVar[str] = "run.started"
    workflow: str
    inputs: dict[str, Value]
    models: tuple[str, ...]
    parent: str = ""
    forked_at: str = ""
    edits: dict[str, Value] = field(default_factory=dict[str, Value])
    strategies: tuple[str, ...] = ()
    state_order: tuple[str, ...] = ()
    extent: str = ""
    target: str = ""


@immutable
class NodeStarted(Event):
    """A node started with these `inputs`, by port."""

    type: ClassVar[str] = "node.started"
    node_type: str
    inputs: dict[str, Value]


@immutable
class NodeStreaming(Event):
    """A piece of a model's reply arrived; `tokens` counts the pieces of this call so far."""

    type: ClassVar[str] = "node.streaming"
    text: str
    tokens: int


@immutable
class NodeCalling(Event):
    """A node is about to call a model.

    Emitted only for stored runs, and stored before the call: after a crash it shows that the call may have been billed.

    Attributes:
        number: How many calls the node had finished before.
        model: The model.
        request: The request; stored only for a model whose replies depend on the calls before (`RemembersCalls`).
    """

    type: ClassVar[str] = "node.calling"
    number: int
    model: str
    request: Request | None = None


@immutable
class NodeCalled(Event):
    """A node finished a model call. Emitted only for stored runs, so that a finished call is never paid for twice."""

    type: ClassVar[str] = "node.called"
    number: int
    call: ModelCall


@immutable
class NodeToolCalling(Event):
    """A node is about to call a tool that is not idempotent.

    Emitted only for stored runs, and stored before the call: after a crash it shows that the tool may have run.

    Attributes:
        tool: The tool.
        arguments: Its arguments as JSON text, truncated.
    """

    type: ClassVar[str] = "node.tool_calling"
    tool: str
    arguments: str


@immutable
class NodeToolCalled(Event):
    """A tool call that a model requested finished, or was refused.

    Attributes:
        number: How many tool calls the node had made before, over all its turns.
        tool: The tool, as the model wrote it.
        arguments: The model's arguments: an object, or text that could not be parsed.
        result: The tool's result.
        error: Why there is no result; empty if there is one.
        duration_s: Seconds, including the time that a person took to approve.
        edited_arguments: The arguments as changed by a person; null if nobody changed them.
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


@immutable
class NotePosted(Event):
    """A note for a node was posted, by a person (`path` is empty) or by the node at `path`.

    `to` is a node's id, or a place (`loop[0].worker`); the note waits for the next model call there.
    """

    type: ClassVar[str] = "note.posted"
    to: str
    text: str


@immutable
class NodeNoted(Event):
    """A node received a note, and its next model call includes it.

    Attributes:
        to: The recipient, as it was posted.
        text: The note.
        sender: The path of the node that posted it; empty for a person.
    """

    type: ClassVar[str] = "node.noted"
    to: str
    text: str
    sender: str


@immutable
class NodeWaiting(Event):
    """A node waits for a person.

    Attributes:
        node_type: The node's type.
        kind: Whether a value is to be approved or a question to be answered.
        message: What the person is asked. Plain text, never markup.
        value: The value to approve, or the subject of the question; null for none.
        choices: The possible answers; empty where any text is an answer.
        value_schema: A JSON Schema for an edited value; None where it only has to be of the same kind.
    """

    type: ClassVar[str] = "node.waiting"
    node_type: str
    kind: QuestionKind
    message: str
    value: Value
    choices: tuple[str, ...]
    value_schema: dict[str, Value] | None = None


@immutable
class NodeAnswered(Event):
    """A person answered a waiting node: a choice (or none), the value as they left it, a comment."""

    type: ClassVar[str] = "node.answered"
    choice: str
    value: Value
    comment: str


@immutable
class NodeRetrying(Event):
    """An attempt failed, and another follows after `delay_s` seconds.

    Attributes:
        attempt: The number of the attempt that failed, from 1.
        delay_s: Seconds until the next one.
        error: Why it failed.
        goes_on: Whether the next attempt continues after the last finished model or tool call instead of starting over.
        fallback: The model that the node uses from now on because the one before failed; empty for a plain retry.
    """

    type: ClassVar[str] = "node.retrying"
    attempt: int
    delay_s: float
    error: str
    goes_on: bool = False
    fallback: str = ""


@immutable
class NodeCompleted(Event):
    """A node completed.

    Attributes:
        node_type: The node's type.
        outputs: Its outputs, by live port.
        usage: Tokens used, including failed attempts; None where no model was called.
        cost_usd: US dollars; None where a price is unknown.
        duration_s: Seconds since its start.
        cached: Whether an earlier output was reused.
        calls: Its model calls, with requests and replies in full.
        warnings: Its warnings.
        error: Why it failed, where its settings let the run continue.
        output_key: The name under which `state` holds its output from now on; empty for none.
        exits_loop: Whether it ended the loop around it.
        pinned: Whether its pinned values were used and it did not run.
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
    pinned: bool = False


@immutable
class NodeSkipped(Event):
    """A node did not run, because nothing live reached it or because it is disabled."""

    type: ClassVar[str] = "node.skipped"
    node_type: str
    reason: str


@immutable
class NodeFailed(Event):
    """A node failed, and with it whatever it is part of. `remedy` says what to do, `fix` as in `EngineError`."""

    type: ClassVar[str] = "node.failed"
    node_type: str
    error: str
    remedy: str
    duration_s: float
    usage: Usage | None = None
    cost_usd: float | None = 0.0
    calls: tuple[ModelCall, ...] = ()
    warnings: tuple[str, ...] = ()
    fix: str = ""


@immutable
class LoopStarted(Event):
    """A loop or an iterator starts an attempt, from iteration 0; earlier attempts are void.

    A resumed run that continues an attempt does not report its start again.

    Attributes:
        attempt: The number of the attempt, from 1.
        max_iterations: The most iterations that it may run; of an iterator the number of its items.
        timeout_s: Its timeout in seconds; None without one.
        budget_usd: Its own budget in US dollars; None without one.
    """

    type: ClassVar[str] = "loop.started"
    attempt: int
    max_iterations: int
    timeout_s: float | None = None
    budget_usd: float | None = None


@immutable
class LoopIterationStarted(Event):
    """An iteration started: number `index` (from 0) of at most `total`. `path` is the loop's."""

    type: ClassVar[str] = "loop.iteration.started"
    index: int
    total: int
    input_preview: str


@immutable
class LoopIterationCompleted(Event):
    """An iteration completed. `path` is the loop's.

    Attributes:
        index: Its number, from 0.
        input: The iteration input.
        result: What reached the exit.
        feedback: The value carried to the next iteration.
        branch: The choice of the controlling router; None without one.
        reason: The router's reason; None without one.
        score: The score; None without one.
        similarity: To the result before, from 0 to 1; None where it was not computed or there is none before.
        usage: Tokens used in it.
        cost_usd: US dollars spent in it; None where a price is unknown.
        duration_s: Seconds.
        warnings: Its warnings and those of everything in it, each with its place (`loop[2].draft: …`).
        tested: The values that the exit conditions tested, by condition (`stable_output`: the similarity).
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


@immutable
class LoopCompleted(Event):
    """A loop or an iterator ended.

    Attributes:
        iterations_run: How many iterations completed.
        exit_reason: The exit reason; several are joined with `+`.
        converged: Whether something other than the count, money or time ended it.
        returned: Index of the iteration whose result is the output; None without one.
        cost_usd: US dollars spent in it; None where a price is unknown.
        duration_s: Seconds.
        warnings: Its own warnings.
    """

    type: ClassVar[str] = "loop.completed"
    iterations_run: int
    exit_reason: str
    converged: bool
    returned: int | None
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()


@immutable
class BudgetWarning(Event):
    """Most of a budget is spent, the loop's at `path` or the run's: `spent` of `limit`, in `usd` or `tokens`."""

    type: ClassVar[str] = "budget.warning"
    unit: str
    spent: float
    limit: float


@immutable
class RunNotKept(Event):
    """The run continues, but from here on it is not stored: what failed, and what to do."""

    type: ClassVar[str] = "run.not_kept"
    error: str
    remedy: str


@immutable
class RunPaused(Event):
    """No further node starts until the run is resumed."""

    type: ClassVar[str] = "run.paused"


@immutable
class RunResumed(Event):
    """Nodes start again: after a pause, or in a run that was interrupted, failed or was cancelled."""

    type: ClassVar[str] = "run.resumed"


@immutable
class RunCompleted(Event):
    """The run completed with these named results; `warnings` are those of the whole run, each with its place."""

    type: ClassVar[str] = "run.completed"
    outputs: dict[str, Value]
    usage: Usage
    cost_usd: float | None
    duration_s: float
    warnings: tuple[str, ...] = ()


@immutable
class RunFailed(Event):
    """The run failed.

    Attributes:
        error: What failed and why.
        remedy: What to do.
        node: The path of the node that failed; empty where it was none.
        outputs: The named results that were ready before.
        usage: Tokens used.
        cost_usd: US dollars; None where a price is unknown.
        duration_s: Seconds.
        warnings: Those of the whole run, each with its place.
        fix: As in `EngineError`.
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
    fix: str = ""


@immutable
class RunCancelled(Event):
    """The run was cancelled; `outputs` were ready before, `warnings` are those of the whole run."""

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
    | LoopStarted
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


UNKNOWN_ATTEMPT = 0
"""The attempt in a `loop.started` that was added; readers count it themselves."""


def missing_start(announced: set[str], event: LoopIterationStarted) -> LoopStarted | None:
    """Return the `loop.started` that is missing before an iteration, or None.

    Versions before 1.3 did not report `loop.started`; in their logs iteration 0 starts or restarts a loop.

    Args:
        announced: Loops whose start was reported, and whose iteration 0 has not started yet; updated.
        event: The start of an iteration.
    """
    if event.index > 0:
        return None
    if event.path in announced:
        announced.discard(event.path)
        return None
    return LoopStarted(event.run_id, event.seq, event.time, event.path, UNKNOWN_ATTEMPT, event.total)


def with_loop_starts(events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """Add missing `loop.started` events to a log; each has the number of the event after it."""
    announced: set[str] = set()
    for event in events:
        if isinstance(event, LoopStarted):
            announced.add(event.path)
        elif isinstance(event, LoopIterationStarted):
            start = missing_start(announced, event)
            if start is not None:
                yield start
        yield event


_STEP: Final = re.compile(r"([a-z][a-z0-9_]*)(?:\[(0|[1-9][0-9]{0,8})\])?")


class PlaceError(EngineError):
    """A text is not a place in a run."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a place: a node, or with an index an iteration of a loop."""

    node: str
    index: int | None = None

    def __str__(self) -> str:
        return self.node if self.index is None else f"{self.node}[{self.index}]"


@dataclass(frozen=True, slots=True)
class Place:
    """A node or an iteration of a run: `draft`, `loop[2]`, `outer[1].inner[0].draft`.

    Every step but the last is an iteration or a subflow.
    """

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return ".".join(str(step) for step in self.steps)

    @property
    def last(self) -> Step:
        """The last step: the node or iteration itself."""
        return self.steps[-1]

    @property
    def level(self) -> str:
        """The iteration or subflow around it; empty for the outermost level."""
        return str(Place(self.steps[:-1]))

    def iterations(self) -> Iterator[tuple[str, int]]:
        """Yield the iterations around and at the place, outermost first: path of the loop, and index."""
        around = ""
        for step in self.steps:
            if step.index is not None:
                yield f"{around}{step.node}", step.index
            around += f"{step}."


def parse_place(text: str) -> Place:
    """Parse a place.

    Raises:
        PlaceError: The text is not a place.
    """
    steps: list[Step] = []
    for part in text.strip().split("."):
        match = _STEP.fullmatch(part)
        if match is None:
            raise PlaceError(
                f"{shown(text)} is not a place in a run.",
                "Write an iteration as loop[2], a node in it as loop[2].draft; iterations count from 0 there.",
            )
        steps.append(Step(match[1], None if match[2] is None else int(match[2])))
    return Place(tuple(steps))
