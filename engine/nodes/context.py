"""What a node's run function gets: its config and inputs, and what the run offers to it.

This module knows neither how a graph is run nor which node types there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol

from engine.expr import Scope
from engine.formatting import format_count
from engine.models.protocol import Finish, Message, ModelError, ModelErrorKind, Reply, Request, ToolDefinition, Usage
from engine.nodes.spec import ConfigT, ModelCall, ModelChoice
from engine.safe_file_io import normalize_line_ends
from engine.text_sanitizing import one_line
from engine.values import Value, immutable, to_text

if TYPE_CHECKING:
    from engine.nodes.spec import ModelCall


MAX_CONTINUATIONS: Final = 5
"""The most calls that continue one reply that was cut off."""

CONTINUE: Final = Message(
    "user",
    "Your reply was cut off. Continue it exactly where it ended, even in the middle of a word. Start with the space or "
    "line break that comes next, if there is one. Do not repeat what you wrote, and add nothing else.",
)
"""Asks for the rest of a reply that was cut off."""

_RAISE_LIMIT: Final = "Raise 'Max tokens', or choose 'continue' under 'When a reply is truncated'."
_CHANGE_PROMPT: Final = "Change the prompt, or choose another model."
_QUOTED_LENGTH: Final = 300
_LONGEST_SEAM: Final = 4000
_SURE_SEAM: Final = 8
_SURE_SEAM_OF_WORDS: Final = 4
_SURE_SEAM_WITHOUT_LETTERS: Final = 20


def failure_of(reply: Reply, request: Request, config: Any) -> ModelError | None:
    """Tell why a reply cannot be used: it refuses, or has no text.

    Args:
        reply: The reply. One that calls tools that were offered needs no text.
        request: What was asked.
        config: The settings of the node that asked; `allow_empty` accepts a reply without text.
    """
    if reply.refusal and reply.refusal.strip():
        quoted = one_line(reply.refusal, _QUOTED_LENGTH)
        return _error(ModelErrorKind.REFUSAL, f"The model refused to answer: “{quoted}”", _CHANGE_PROMPT, reply)
    if reply.text.strip() or (reply.tool_calls and request.tools):
        return None
    if reply.finish is Finish.CONTENT_FILTER:
        return _error(ModelErrorKind.REFUSAL, "The content filter withheld the reply.", _CHANGE_PROMPT, reply)
    if getattr(config, "allow_empty", False):
        return None
    return no_text(reply)


def no_text(reply: Reply) -> ModelError:
    """The error for a reply without text where a text is needed."""
    return _error(ModelErrorKind.EMPTY_REPLY, _what_is_there(reply), _remedy(reply), reply)


def cut_off_error(reply: Reply, request: Request) -> ModelError:
    """The error for a reply that was cut off, where the settings say that this is a failure."""
    message = f"The reply was cut off{_limit(request)}."
    return ModelError(ModelErrorKind.CUT_OFF, message, _RAISE_LIMIT, partial=reply.text)


def cut_off_warning(request: Request, continued: int = 0) -> str:
    """What is said of a reply that was cut off and is used as far as it goes."""
    times = f", and still is after {format_count(continued, 'continuation')}" if continued else ""
    return f"The reply was cut off{_limit(request)}{times}. {_RAISE_LIMIT}"


def can_be_continued(reply: Reply) -> bool:
    """Whether a reply is a text that was cut off; what tool calls lack cannot be asked for."""
    return reply.finish is Finish.LENGTH and not reply.tool_calls and bool(reply.text.strip())


def rest_request(request: Request, text: str) -> Request:
    """The request for the rest of a reply of which `text` has arrived.

    It asks for no schema: the rest of a JSON value is no JSON value.
    """
    return replace(request, messages=(*request.messages, Message("assistant", text), CONTINUE), schema=None)


def joined(first: Reply, rest: Reply) -> Reply:
    """Two parts of one reply as a whole."""
    costs = (first.cost_usd, rest.cost_usd)
    return replace(
        rest,
        text=join(first.text, rest.text),
        usage=first.usage + rest.usage,
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        reasoning="\n\n".join(part for part in (first.reasoning, rest.reasoning) if part),
    )


def whole_text(call: ModelCall) -> str:
    """The text of a call's reply; with what it continues, where it continues an earlier one."""
    messages = call.request.messages
    if len(messages) > 1 and messages[-1] == CONTINUE:
        return join(messages[-2].text, call.reply.text)
    return call.reply.text


def join(text: str, rest: str) -> str:
    """A text and its rest, without the last words of the text that the rest repeats."""
    if rest.startswith(text):
        return rest
    end, start = text[-_LONGEST_SEAM:].rstrip(), rest.lstrip()
    for length in range(min(len(end), len(start)), 0, -1):
        if end.endswith(start[:length]) and _is_repeated(end, start, length):
            return text.rstrip() + start[length:]
    return text + rest


def _is_repeated(end: str, start: str, length: int) -> bool:
    """Whether what both share is repeated words, and no coincidence such as the l in "hel" and "lo"."""
    shared = start[:length]
    if not any(character.isalpha() for character in shared):
        return length >= _SURE_SEAM_WITHOUT_LETTERS
    starts_word = length == len(end) or not (end[-length - 1].isalnum() and shared[0].isalnum())
    ends_word = length == len(start) or not (shared[-1].isalnum() and start[length].isalnum())
    # Languages without spaces, and with many letters, meet by coincidence less often.
    sure = _SURE_SEAM if shared.isascii() else _SURE_SEAM_OF_WORDS
    return length >= sure or (starts_word and (ends_word or length >= _SURE_SEAM_OF_WORDS))


def _limit(request: Request) -> str:
    return (
        f" at {format_count(request.max_tokens, 'token')}"
        if request.max_tokens is not None
        else " at the model's limit"
    )


def _what_is_there(reply: Reply) -> str:
    if reply.tool_calls:
        name = one_line(reply.tool_calls[0].name, 60)
        return f'The model wants the tool "{name}" called, which it does not have, and wrote no text.'
    if reply.reasoning.strip():
        return "The reply has reasoning and no answer."
    return "The model's reply is empty."


def _remedy(reply: Reply) -> str:
    if reply.finish is Finish.LENGTH:
        return "Its limit was reached before any text: raise 'Max tokens'."
    return "Change the prompt or the model, or turn on 'Allow empty replies'."


def _error(kind: ModelErrorKind, message: str, remedy: str, reply: Reply) -> ModelError:
    return ModelError(kind, message, remedy, partial=reply.text)


def with_note(prompt: str, iteration: int, total: int, previous: str) -> str:
    """Append a note to a prompt: which iteration this is, and the previous result. Copied into LangGraph exports.

    A result that the prompt already contains is not repeated, unless it is so short that it may be a coincidence.

    Args:
        prompt: The prompt.
        iteration: The iteration's number, from 1.
        total: The maximum number of iterations.
        previous: The previous result as text.
    """
    place = f"This is iteration {iteration} of {total}."
    if iteration == 1:
        note = place
    elif len(previous) >= 40 and previous in prompt:
        note = f"{place} What the iteration before gave stands above; improve on it."
    else:
        note = f"{place} The iteration before gave:\n{previous}\n\nImprove on it."
    return f"{prompt}\n\n{note}" if prompt else note


@immutable
class IterationNote:
    """Which iteration this is, of how many, and what the one before gave.

    Attributes:
        iteration: Its number, from 1.
        total: How many there are at the most.
        previous: The result before; null in the first iteration.
    """

    iteration: int
    total: int
    previous: Value

    def added_to(self, prompt: str) -> str:
        """The prompt with the note below it."""
        return with_note(prompt, self.iteration, self.total, to_text(self.previous))


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
