"""`NodeContext`: what a node's run function gets. Its settings and inputs, and the services of the run.

Also continues truncated replies. This module knows neither how a graph is run nor which node types there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from engine.expr import Scope
from engine.formatting import format_count
from engine.models.protocol import (
    Finish,
    Message,
    ModelCall,
    ModelChoice,
    ModelError,
    ModelErrorKind,
    Reply,
    Request,
    ToolDefinition,
    Usage,
    add_costs,
)
from engine.models.providers import runs_on_own_machine
from engine.safe_file_io import normalize_line_ends
from engine.text_sanitizing import one_line
from engine.values import Value, immutable, to_text

SettingsT = TypeVar("SettingsT")

QuestionKind = Literal["approval", "question"]
"""Whether a person is to approve a value or to answer a question."""

APPROVE: Final = "approve"
REJECT: Final = "reject"


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer: one of the choices or none, an edited value (None leaves it unchanged), and a comment."""

    choice: str = ""
    value: Value = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of a tool call: its result or error, and its arguments if a person edited them."""

    result: Value = None
    error: str = ""
    edited_arguments: Value = None


class Services(Protocol):
    """The services of a run for its nodes."""

    def parameter(self, name: str) -> Value:
        """Return the value of an input of the run; raises KeyError without one."""
        ...

    def complete(self, context: NodeContext[Any], choice: ModelChoice, request: Request) -> Awaitable[Reply]:
        """Make a model call within the budget, and stream its text as events."""
        ...

    async def call_tool(
        self, name: str, arguments: Mapping[str, Value], context: NodeContext[Any], *, may_reuse: bool = False
    ) -> Value:
        """Call a tool by name; with `may_reuse`, use a cached result if the node's setting `cache` allows it."""
        ...

    async def confirm_call(
        self, context: NodeContext[Any], tool: str, arguments: Mapping[str, Value]
    ) -> Mapping[str, Value]:
        """Ask a person to confirm a call that is not in the document, if the run requires that.

        Returns:
            The arguments, edited by the person or unchanged.
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
        """See `NodeContext.ask`."""
        ...

    async def act(
        self, context: NodeContext[Any], tool: str, arguments: Value, work: Callable[[], Awaitable[Value]]
    ) -> ToolOutcome:
        """See `NodeContext.act`."""
        ...

    def notes(self, context: NodeContext[Any]) -> tuple[Message, ...]:
        """Return the notes to the node that have arrived since the last call."""
        ...

    def post_note(self, context: NodeContext[Any], to: str, text: str) -> None:
        """Send a note to another node."""
        ...

    def exit_loop(self, context: NodeContext[Any]) -> None:
        """End the innermost loop around the node after this iteration."""
        ...


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
        note = f"{place} The result of the previous iteration is above; improve on it."
    else:
        note = f"{place} The result of the previous iteration:\n{previous}\n\nImprove on it."
    return f"{prompt}\n\n{note}" if prompt else note


@immutable
class IterationNote:
    """The facts of a note about an iteration.

    Attributes:
        iteration: The iteration's number, from 1.
        total: The maximum number of iterations.
        previous: The previous result; null in the first iteration.
    """

    iteration: int
    total: int
    previous: Value

    def added_to(self, prompt: str) -> str:
        """Append the note to a prompt."""
        return with_note(prompt, self.iteration, self.total, to_text(self.previous))


@dataclass(slots=True)
class _ReceivedNote:
    """A note, and its index in the conversation; None: after the messages of the next call."""

    message: Message
    index: int | None = None


def _no_fallbacks() -> dict[ModelChoice, int]:  # a call of `dict[...]` takes ten times as long
    return {}


@dataclass(slots=True)
class NodeContext(Generic[SettingsT]):
    """The context of an execution of a node.

    Attributes:
        path: The path of the node in the run (`loop[2].draft`).
        config: The node's settings.
        prepared: The result of the node type's `prepare`.
        inputs: Values by input port; a port without a value is absent.
        scope: Names for templates and expressions: the input ports (null without a value), and `loop` in a body.
        services: The services of the run.
        node_type: The node's type.
        iteration_note: For the first model node of a loop body, the note about the iteration.
        memory: In a loop body, the model node's own earlier prompts and replies.
        usage: Tokens used so far, failed attempts included.
        cost_usd: US dollars spent so far; None if a price is unknown.
        calls: The model calls made so far.
        cache_hits: Number of model and tool calls that were answered from the cache.
        warnings: What a person should know although the node succeeds.
        tool_calls: Number of tool calls made for a model.
        edited_arguments: The arguments of the current tool call, if a person edited them.
        exits_loop: Whether the node has ended the loop around it.
        model_choice: The last called model with its fallbacks; None before the first call.
        fallen_back: Index of the current fallback, by model choice.
        is_replaying: Whether the last model call was replayed from before a resume.
        retry_state: State that an attempt leaves for its retry, for node types that declare `keeps_retry_state`.
    """

    path: str
    config: SettingsT
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
    cache_hits: int = 0
    warnings: tuple[str, ...] = ()
    tool_calls: int = 0
    edited_arguments: Value = None
    exits_loop: bool = False
    model_choice: ModelChoice | None = None
    fallen_back: dict[ModelChoice, int] = field(default_factory=_no_fallbacks)
    is_replaying: bool = False
    retry_state: Any = None
    _notes: tuple[_ReceivedNote, ...] = ()

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
        """Make a model call. Notes to the node are added to the conversation, and stay in it for later calls.

        A reply that is empty or refuses is an error. A truncated reply is continued, used with a warning or an error,
        as the node's settings say.

        Raises:
            ModelError: The call returned no usable reply.
            BudgetError: It does not fit the remaining budget; no call was made.
        """
        request = Request(
            self._conversation(messages),
            temperature,
            max_tokens,
            schema,
            seed,
            self.path,
            tools,
            top_p,  # names in a call of a class cost as much as the rest of it
            stop,
            reasoning_effort,
            extra_parameters,
        )
        reply = await self.services.complete(self, choice, request)
        failure = failure_of(reply, request, self.config)
        if failure is not None:
            raise failure
        if reply.finish is Finish.STOP:
            return reply
        if reply.finish is Finish.LENGTH:
            reply = await self._handle_truncation(choice, request, reply)
        if reply.finish is Finish.CONTENT_FILTER:
            self.warn("The provider's content filter cut the reply off.")
        return reply

    async def _handle_truncation(self, choice: ModelChoice, request: Request, reply: Reply) -> Reply:
        on_cut_off = getattr(self.config, "on_cut_off", "warn")
        if on_cut_off == "fail":
            raise cut_off_error(reply, request)
        continued, last = 0, reply
        while on_cut_off == "continue" and can_be_continued(reply) and continued < MAX_CONTINUATIONS:
            rest = await self.services.complete(self, choice, rest_request(request, reply.text))
            if failure_of(rest, request, self.config) is not None:
                break
            reply, last = joined(reply, rest), rest
            continued += 1
        if reply.finish is Finish.LENGTH:
            self.warn(cut_off_warning(last, request, continued))
        return reply

    def _conversation(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Return the messages and the notes to the node, with normal line ends."""
        conversation = tuple(messages)
        new = self.services.notes(self)
        if new:
            self._notes += tuple(map(_ReceivedNote, new))
        if self._notes:
            conversation = self._with_notes(conversation)
        for message in conversation:
            if "\r" in message.text:
                return tuple(replace(one, text=normalize_line_ends(one.text)) for one in conversation)
        return conversation

    def _with_notes(self, conversation: tuple[Message, ...]) -> tuple[Message, ...]:
        """Insert the notes where they were first sent; new ones follow the messages."""
        for note in self._notes:
            note.index = len(conversation) if note.index is None else note.index
        messages = list(conversation)
        for note in reversed(self._notes):
            assert note.index is not None
            messages.insert(note.index, note.message)
        return tuple(messages)

    def restart_attempt(self) -> None:
        """Start an attempt from the beginning: earlier notes follow the messages of its first call."""
        for note in self._notes:
            note.index = None

    def act(self, tool: str, arguments: Value, work: Callable[[], Awaitable[Value]]) -> Awaitable[ToolOutcome]:
        """Make a tool call of a model and emit its events. A resumed run does not repeat a finished call.

        Args:
            tool: The tool's name, as the model wrote it.
            arguments: Its arguments, as the model wrote them.
            work: Makes the call; an `EngineError` becomes the outcome's error.
        """
        return self.services.act(self, tool, arguments, work)

    def exit_loop(self) -> None:
        """End the innermost loop around the node after this iteration.

        Raises:
            NodeError: The node is in no loop.
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
            kind: Whether to approve a value or to answer a question.
            message: The question; plain text.
            value: The value to approve, or that the question is about.
            choices: The possible choices; empty for a text.
            value_schema: A JSON Schema for an edited value; None allows any value of the same kind.
        """
        return self.services.ask(self, kind, message, value, choices, value_schema)

    @property
    def is_cached(self) -> bool:
        """Whether all its model and tool calls were cache hits."""
        return self.cache_hits > 0 and self.cache_hits >= len(self.calls) + self.tool_calls

    def warn(self, message: str) -> None:
        """Add a warning to the history of this node."""
        self.warnings = (*self.warnings, message)


MAX_CONTINUATIONS: Final = 5
"""Maximum number of calls that continue a truncated reply."""

CONTINUE: Final = Message(
    "user",
    "Your reply was cut off. Continue it exactly where it ended, even in the middle of a word. Start with the space or "
    "line break that comes next, if there is one. Do not repeat what you wrote, and add nothing else.",
)
"""Asks for the rest of a truncated reply."""

_ASK_FOR_REST: Final = "choose 'Ask for the rest' under 'When a reply is truncated'."
_CHANGE_PROMPT: Final = "Change the prompt, or choose another model."
_QUOTED_LENGTH: Final = 300
_LONGEST_SEAM: Final = 4000
_SURE_SEAM: Final = 8
_SURE_SEAM_OF_WORDS: Final = 4
_SURE_SEAM_WITHOUT_LETTERS: Final = 20


def failure_of(reply: Reply, request: Request, config: Any) -> ModelError | None:
    """Return the error of a reply that refuses or has no text; None for a usable reply.

    Args:
        reply: The reply. It needs no text if it calls tools of the request.
        request: The request.
        config: The settings of the node; `allow_empty` accepts a reply without text.
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
    return no_text(reply, request)


def no_text(reply: Reply, request: Request) -> ModelError:
    """The error of a reply without the text that is needed."""
    if reply.tool_calls:
        name = one_line(reply.tool_calls[0].name, 60)
        message = f'The model requested the tool "{name}", which it does not have, and wrote no text.'
    elif reply.reasoning.strip():
        message = "The reply has reasoning and no answer."
    else:
        message = "The model's reply is empty."
    remedy = "Change the prompt or the model, or turn on 'Allow empty replies'."
    if reply.finish is Finish.LENGTH:
        if request.max_tokens is None:
            todo = "raise 'Max tokens' or the model's context length, or shorten the prompt"
        elif _is_below_limit(reply, request.max_tokens):
            todo = "shorten the prompt, raise the model's context length, or choose another model"
        else:
            todo = "raise 'Max tokens'"
        remedy = f"Its limit was reached before any text: {todo}."
    return _error(ModelErrorKind.EMPTY_REPLY, message, remedy, reply)


def is_context_full(call: ModelCall) -> bool:
    """Whether a reply was truncated by the model's own limit, so that asking again with more text is no use.

    Without 'Max tokens', the servers of providers have limits of their own for replies; the context may have room.
    """
    reply, limit = call.reply, call.request.max_tokens
    if reply.finish is not Finish.LENGTH:
        return False
    return runs_on_own_machine(call.model) if limit is None else _is_below_limit(reply, limit)


def _is_below_limit(reply: Reply, limit: int) -> bool:
    """Whether a truncated reply is shorter than its limit: its context is full, or its server allows less."""
    return reply.usage.exact and 0 < reply.usage.output_tokens < limit


def context_full_error(call: ModelCall) -> ModelError:
    """The error of a reply that `is_context_full`."""
    where, remedy = _model_limit(call.reply)
    return ModelError(ModelErrorKind.CUT_OFF, f"The reply was cut off {where}.", remedy, partial=call.reply.text)


def cut_off_error(reply: Reply, request: Request) -> ModelError:
    """The error of a truncated reply."""
    limit, remedy = _limit(reply, request)
    return ModelError(ModelErrorKind.CUT_OFF, f"The reply was cut off {limit}.", remedy, partial=reply.text)


def cut_off_warning(reply: Reply, request: Request, continued: int = 0) -> str:
    """The warning about a truncated reply that is used."""
    times = f", and still is after {format_count(continued, 'continuation')}" if continued else ""
    limit, remedy = _limit(reply, request)
    return f"The reply was cut off {limit}{times}. {remedy}"


def can_be_continued(reply: Reply) -> bool:
    """Whether a reply is a truncated text. Truncated tool calls cannot be continued."""
    return reply.finish is Finish.LENGTH and not reply.tool_calls and bool(reply.text.strip())


def rest_request(request: Request, text: str) -> Request:
    """The request for the rest of a reply after `text`, without a schema, because the rest of JSON is not JSON."""
    return replace(request, messages=(*request.messages, Message("assistant", text), CONTINUE), schema=None)


def joined(first: Reply, rest: Reply) -> Reply:
    """Join two parts of a reply."""
    return replace(
        rest,
        text=join(first.text, rest.text),
        usage=first.usage + rest.usage,
        cost_usd=add_costs(first.cost_usd, rest.cost_usd),
        reasoning="\n\n".join(part for part in (first.reasoning, rest.reasoning) if part),
    )


def whole_text(call: ModelCall) -> str:
    """The text of a call's reply, with the text of the truncated reply that it continues."""
    messages = call.request.messages
    if len(messages) > 1 and messages[-1] == CONTINUE:
        return join(messages[-2].text, call.reply.text)
    return call.reply.text


def join(text: str, rest: str) -> str:
    """Join a text and its rest, without the last words of the text that the rest repeats."""
    if rest.startswith(text):
        return rest
    end, start = text[-_LONGEST_SEAM:].rstrip(), rest.lstrip()
    for length in range(min(len(end), len(start)), 0, -1):
        if end.endswith(start[:length]) and _is_repeated(end, start, length):
            return text.rstrip() + start[length:]
    return text + rest


def _is_repeated(end: str, start: str, length: int) -> bool:
    """Whether the shared text is a repetition of words, not a coincidence such as the l in "hel" and "lo"."""
    shared = start[:length]
    if not any(character.isalpha() for character in shared):
        return length >= _SURE_SEAM_WITHOUT_LETTERS
    starts_word = length == len(end) or not (end[-length - 1].isalnum() and shared[0].isalnum())
    ends_word = length == len(start) or not (shared[-1].isalnum() and start[length].isalnum())
    # Coincidences are rarer in scripts without spaces and with many characters.
    sure = _SURE_SEAM if shared.isascii() else _SURE_SEAM_OF_WORDS
    return length >= sure or (starts_word and (ends_word or length >= _SURE_SEAM_OF_WORDS))


def _limit(reply: Reply, request: Request) -> tuple[str, str]:
    """Return where a truncated reply was cut off, and what to do."""
    limit = request.max_tokens
    if limit is None:
        return "at the model's limit", f"Raise 'Max tokens' or the model's context length, or {_ASK_FOR_REST}"
    if _is_below_limit(reply, limit):
        return _model_limit(reply)
    return f"at {format_count(limit, 'token')}", f"Raise 'Max tokens', or {_ASK_FOR_REST}"


def _model_limit(reply: Reply) -> tuple[str, str]:
    where = f"after {format_count(reply.usage.output_tokens, 'token')}, at the model's limit"
    return where, "Shorten the prompt, raise the model's context length, or choose another model."


def _error(kind: ModelErrorKind, message: str, remedy: str, reply: Reply) -> ModelError:
    return ModelError(kind, message, remedy, partial=reply.text)
