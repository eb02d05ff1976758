"""What a node's run function gets: its config and inputs, and what the run offers to it.

This module knows neither how a graph is run nor which node types there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal, Protocol

from engine.expr import Scope
from engine.models.protocol import Finish, Message, Reply, Request, ToolDefinition, Usage
from engine.nodes.iteration_note import IterationNote
from engine.nodes.replies import (
    MAX_CONTINUATIONS,
    can_be_continued,
    cut_off_error,
    cut_off_warning,
    failure_of,
    joined,
    rest_request,
)
from engine.nodes.spec import ConfigT, ModelCall, ModelChoice
from engine.safe_file_io import normalize_line_ends
from engine.values import Value

QuestionKind = Literal["approval", "question"]
"""What a person is asked for: to approve a value, or to answer a question."""

APPROVE: Final = "approve"
REJECT: Final = "reject"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answered: one of the choices (or none), the value as they left it, and a comment.

    A value of null leaves it as it was.
    """

    choice: str = ""
    value: Value = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a tool call: its result, or why there is none; and its arguments, if a person changed them."""

    result: Value = None
    error: str = ""
    edited_arguments: Value = None


class Services(Protocol):
    """What a run offers to the nodes that it runs."""

    def parameter(self, name: str) -> Value:
        """The value given to the run for that input; raises KeyError where none was given."""
        ...

    def complete(self, context: NodeContext[Any], choice: ModelChoice, request: Request) -> Awaitable[Reply]:
        """Make one model call within the budget, streaming its text into the run's events."""
        ...

    async def call_tool(
        self, name: str, arguments: Mapping[str, Value], context: NodeContext[Any], *, may_reuse: bool = False
    ) -> Value:
        """Call a tool by name; with `may_reuse` use a cached result where the node's setting `cache` allows it."""
        ...

    async def confirm_call(
        self, context: NodeContext[Any], tool: str, arguments: Mapping[str, Value]
    ) -> Mapping[str, Value]:
        """Have a person confirm a call that the document does not hold, where the run asks for that.

        Returns:
            The arguments as the person leaves them.
        """
        ...

    async def ask(
        self,
        context: NodeContext[Any],
        kind: QuestionKind,
        message: str,
        value: Value,
        choices: tuple[str, ...],
        value_schema: dict[str, Value] | None = None,
    ) -> Answer:
        """Ask a person, and wait for the answer however long it takes."""
        ...

    async def act(
        self, context: NodeContext[Any], tool: str, arguments: Value, work: Callable[[], Awaitable[Value]]
    ) -> ToolOutcome:
        """Do what a model wants done by a tool, tell it, and never do it twice."""
        ...

    def notes(self, context: NodeContext[Any]) -> tuple[Message, ...]:
        """The notes that have come for the node since it last asked."""
        ...

    def post_note(self, context: NodeContext[Any], to: str, text: str) -> None:
        """Post a note to another node."""
        ...

    def exit_loop(self, context: NodeContext[Any]) -> None:
        """End the innermost loop around the node after this iteration."""
        ...


@dataclass(slots=True)
class _ReceivedNote:
    """A note, and after how many messages of the conversation it came; None: after those of the next call."""

    message: Message
    place: int | None = None


def _no_fallbacks() -> dict[ModelChoice, int]:  # calling `dict[...]` itself takes ten times as long
    return {}


def _no_notes() -> list[_ReceivedNote]:
    return []


@dataclass(slots=True)
class NodeContext(Generic[ConfigT]):
    """What a node's run function gets: its config, its inputs, and what the run offers.

    Attributes:
        path: Where in the run this is (`loop[2].draft`).
        config: The node's settings.
        prepared: What the node type's `prepare` made of them, once a run.
        inputs: Values by input port; a port that nothing live reached is not in it.
        scope: Names for templates and expressions: every input port (null where nothing live reached it), and `loop`
            in a body.
        services: What the run offers.
        node_type: The node's type.
        iteration_note: What the first model node of a loop's body is told about its iteration; None elsewhere.
        memory: What a model node of a loop's body is reminded of: its own earlier prompts and replies.
        usage: Tokens used so far, failed attempts included.
        cost_usd: US dollars spent so far; None as soon as one price in it is unknown.
        calls: The model calls made so far.
        recalled: How many calls of models and tools were not made, because an earlier reply was used again.
        warnings: What a person should know although the node went on.
        tool_calls: How many tools have been called for a model.
        edited_arguments: What a person changed the arguments of its present tool call to; None if nobody did.
        exits_loop: Whether the node has ended the loop around it.
        model_choice: The model that was asked last, with its fallbacks; None before the first call.
        fallen_back: How far down its fallbacks the node is, by model choice.
        is_replaying: Whether the last model call was not made but taken from before a resume.
        kept: What an attempt hands on to the next, where the node type goes on from where the one before failed.
    """

    path: str
    config: ConfigT
    prepared: Any
    inputs: Mapping[str, Value]
    scope: Scope
    services: Services
    node_type: str = ""
    iteration_note: IterationNote | None = None
    memory: tuple[Message, ...] = ()
    usage: Usage | None = None
    cost_usd: float | None = 0.0
    calls: tuple[ModelCall, ...] = ()
    recalled: int = 0
    warnings: tuple[str, ...] = ()
    tool_calls: int = 0
    edited_arguments: Value = None
    exits_loop: bool = False
    model_choice: ModelChoice | None = None
    fallen_back: dict[ModelChoice, int] = field(default_factory=_no_fallbacks)
    is_replaying: bool = False
    kept: Any = None
    _notes: list[_ReceivedNote] = field(default_factory=_no_notes)

    async def complete(
        self,
        choice: ModelChoice,
        messages: Iterable[Message],
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        schema: dict[str, Value] | None = None,
        seed: int | None = None,
        tools: tuple[ToolDefinition, ...] = (),
        top_p: float | None = None,
        stop: tuple[str, ...] = (),
        reasoning_effort: str | None = None,
        extra_parameters: dict[str, Value] | None = None,
    ) -> Reply:
        """Make one model call. Notes that have come for the node go with it, and stay in what it says from then on.

        A reply without text, or that refuses, is a failure. One that was cut off is continued, used with a warning or
        a failure, as the node's settings say.

        Raises:
            ModelError: The call gave no usable reply.
            BudgetError: It does not fit into what is left of the budget; no call was made.
        """
        said = map(_with_normal_line_ends, self._with_notes(messages))
        request = Request(
            tuple(said),
            temperature,
            max_tokens,
            schema,
            seed,
            self.path,
            tools,
            top_p=top_p,
            stop=stop,
            reasoning_effort=reasoning_effort,
            extra_parameters=extra_parameters,
        )
        reply = await self.services.complete(self, choice, request)
        failure = failure_of(reply, request, self.config)
        if failure is not None:
            raise failure
        if reply.finish is Finish.STOP:
            return reply
        if reply.finish is Finish.LENGTH:
            reply = await self._completed(choice, request, reply)
        if reply.finish is Finish.CONTENT_FILTER:
            self.warn("The provider's content filter cut the reply off.")
        return reply

    async def _completed(self, choice: ModelChoice, request: Request, reply: Reply) -> Reply:
        """Do with a reply that was cut off what the settings say."""
        on_cut_off = getattr(self.config, "on_cut_off", "warn")
        if on_cut_off == "fail":
            raise cut_off_error(reply, request)
        continued = 0
        while on_cut_off == "continue" and can_be_continued(reply) and continued < MAX_CONTINUATIONS:
            rest = await self.services.complete(self, choice, rest_request(request, reply.text))
            if failure_of(rest, request, self.config) is not None:
                break
            reply = joined(reply, rest)
            continued += 1
        if reply.finish is Finish.LENGTH:
            self.warn(cut_off_warning(request, continued))
        return reply

    def _with_notes(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        for note in self.services.notes(self):
            self._notes.append(_ReceivedNote(note))
        if not self._notes:
            return tuple(messages)
        said = list(messages)
        for note in self._notes:
            note.place = len(said) if note.place is None else note.place
        for note in reversed(self._notes):
            assert note.place is not None
            said.insert(note.place, note.message)
        return tuple(said)

    def begin_anew(self) -> None:
        """Begin an attempt from the start: the notes so far belong behind what it says first."""
        for note in self._notes:
            note.place = None

    def act(self, tool: str, arguments: Value, work: Callable[[], Awaitable[Value]]) -> Awaitable[ToolOutcome]:
        """Do what a model wants done by a tool; on resume, what was done is not done again.

        Args:
            tool: The tool, as the model wrote it.
            arguments: What the model gave it.
            work: Does it; what it raises as an `EngineError` is the outcome's error.
        """
        return self.services.act(self, tool, arguments, work)

    def exit_loop(self) -> None:
        """End the innermost loop around the node after this iteration.

        Raises:
            NodeError: There is none.
        """
        self.services.exit_loop(self)
        self.exits_loop = True

    def ask(
        self,
        kind: QuestionKind,
        message: str,
        *,
        value: Value = None,
        choices: tuple[str, ...] = (),
        value_schema: dict[str, Value] | None = None,
    ) -> Awaitable[Answer]:
        """Ask a person, and wait for the answer however long it takes.

        Args:
            kind: Whether a value is to be approved or a question to be answered.
            message: What the person is asked; plain text.
            value: What is to be approved, or what the question is about.
            choices: What they may choose between; empty where only a text is asked for.
            value_schema: A JSON Schema that an edited value must follow; None: a value of the same kind fits.
        """
        return self.services.ask(self, kind, message, value, choices, value_schema)

    @property
    def is_recalled(self) -> bool:
        """Whether all that it asked for came from earlier replies."""
        return self.recalled > 0 and self.recalled >= len(self.calls) + self.tool_calls

    def warn(self, message: str) -> None:
        """Put a warning into the history of this node."""
        self.warnings = (*self.warnings, message)


def _with_normal_line_ends(message: Message) -> Message:
    return replace(message, text=normalize_line_ends(message.text)) if "\r" in message.text else message
