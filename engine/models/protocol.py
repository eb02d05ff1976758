"""The model protocol: what a model call is, for every kind of model.

It imports little, so importing it costs nothing. An adapter turns a `Request` into a `Reply` or raises a `ModelError`.
It makes exactly one attempt: retries, deadlines, budget and concurrency belong to the engine, and an adapter switches
off its own.

`clean_request` and `clean_reply` remove lone surrogates and NUL, which neither the history nor HTTP can carry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Final, Literal, Protocol, cast, runtime_checkable

from engine.errors import EngineError
from engine.values import Value, clean_text, clean_value, compact_json, immutable, is_clean_text

OnText = Callable[[str], None]
"""Receives each new piece of a streamed reply's text. It must not block."""


@immutable
class ToolDefinition:
    """A tool that a model is told of.

    Attributes:
        name: How the model calls it.
        description: What it does, for the model.
        parameters: A JSON Schema of the object that it takes.
    """

    name: str
    description: str
    parameters: dict[str, Value]


@immutable
class ToolCall:
    """A model's wish that a tool be called.

    Attributes:
        id: Links the call to the message that brings its result.
        name: The tool, as the model wrote it; there may be none of that name.
        arguments: An object; where the model wrote something that is none, the text as it came.
    """

    id: str
    name: str
    arguments: dict[str, Value] | str


@immutable
class Message:
    """One message of a conversation.

    Attributes:
        role: Who speaks.
        text: What is said.
        tool_calls: Of a model's own message: the tools that it wanted called.
        tool_call_id: Of a tool's result: the call that it answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@immutable
class Request:
    """One call of a model.

    Attributes:
        messages: The conversation, oldest first.
        temperature: Sampling temperature; None leaves it to the model.
        max_tokens: The most tokens that the reply may have; None leaves it to the model.
        schema: A JSON Schema that the reply must follow; None for free text.
        seed: Makes sampling repeatable where the model can do that.
        path: Where in the run the call is made (`loop[2].draft`). A real model never sees it; a scripted one finds its
            reply by it.
        tools: What the model may have called.
        top_p: Nucleus sampling: the share of probability that tokens are drawn from; None leaves it to the model.
        stop: Texts at which the reply ends; the reply does not include them.
        reasoning_effort: How much a reasoning model thinks first (`low`, `high`); None leaves it to the model.
        extra_parameters: Parameters of the provider's own, sent unchanged.
    """

    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    schema: dict[str, Value] | None = None
    seed: int | None = None
    path: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    reasoning_effort: str | None = None
    extra_parameters: dict[str, Value] | None = None


@immutable
class Usage:
    """Tokens of one or more calls. `exact` is False as soon as one number in it is an estimate."""

    input_tokens: int = 0
    output_tokens: int = 0
    exact: bool = True

    @property
    def total_tokens(self) -> int:
        """Tokens in and out together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.exact and other.exact,
        )


_CHARACTERS_PER_TOKEN: Final = 4


def estimated_usage(request: Request, *written: str, tool_calls: Iterable[ToolCall] = ()) -> Usage:
    """Estimate the tokens of a call that its server did not count, at four characters a token.

    Args:
        request: What was sent; its tools and its schema count too.
        written: The texts that the model wrote, its reasoning included.
        tool_calls: The calls that it wrote.
    """
    sent = [len(message.text) + _calls_size(message.tool_calls) for message in request.messages]
    sent += [len(tool.name) + len(tool.description) + len(compact_json(tool.parameters)) for tool in request.tools]
    sent += [] if request.schema is None else [len(compact_json(request.schema))]
    received = sum(map(len, written)) + _calls_size(tool_calls)
    return Usage(_tokens_of(sum(sent)), _tokens_of(received), exact=False)


def _calls_size(calls: Iterable[ToolCall]) -> int:
    return sum(len(call.name) + len(compact_json(call.arguments)) for call in calls)


def _tokens_of(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)


class Finish(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    CANCELLED = "cancelled"
    OTHER = "other"


@immutable
class Reply:
    """What a model answered.

    Attributes:
        text: The reply as it came. Never markup, template or code to us.
        finish: Why it ended.
        usage: The tokens that it took.
        model: The name of the model that answered, as the provider gave it.
        cost_usd: The price that the provider itself gave, where it does; None means: work it out from `Price`.
        tool_calls: The tools that the model wants called, in its order.
        reasoning: The model's thinking, apart from its answer; shown to people and used for nothing else.
        refusal: Why the model declined to answer, in its own words; empty where it did not.
        warnings: What a person should know about how the reply came about, such as a setting that the server refused.
    """

    text: str
    finish: Finish = Finish.STOP
    usage: Usage = Usage()
    model: str = ""
    cost_usd: float | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    refusal: str = ""
    warnings: tuple[str, ...] = ()


@immutable
class LongPrice:
    """What all tokens of a call cost, in US dollars a token, where more than so many go in."""

    above_input_tokens: int
    input_usd_per_token: float
    output_usd_per_token: float


@immutable
class Price:
    """What a model costs, in US dollars. A local model costs 0.0; an unknown price is no `Price` at all.

    Attributes:
        input_usd_per_token: A token that goes in.
        output_usd_per_token: A token that comes out.
        usd_per_call: A call, whatever its tokens cost beside.
        long: Its prices for long calls, the shortest of them first.
    """

    input_usd_per_token: float
    output_usd_per_token: float
    usd_per_call: float = 0.0
    long: tuple[LongPrice, ...] = ()

    def cost_usd(self, usage: Usage) -> float:
        """The price of one call of that many tokens, in US dollars."""
        read, written = self.input_usd_per_token, self.output_usd_per_token
        for price in self.long:
            if usage.input_tokens > price.above_input_tokens:
                read, written = price.input_usd_per_token, price.output_usd_per_token
        return usage.input_tokens * read + usage.output_tokens * written + self.usd_per_call


class ModelErrorKind(StrEnum):
    """What went wrong with a model call, as far as it changes what to do next."""

    MISSING_KEY = "missing_key"
    AUTHENTICATION = "authentication"
    NOT_FOUND = "not_found"
    BAD_REQUEST = "bad_request"
    CONTEXT_LENGTH = "context_length"
    CONTENT_FILTER = "content_filter"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    SERVER = "server"
    BAD_REPLY = "bad_reply"
    EMPTY_REPLY = "empty_reply"
    REFUSAL = "refusal"
    CUT_OFF = "cut_off"
    INTERRUPTED = "interrupted"
    UNAVAILABLE = "unavailable"


_WORTH_A_RETRY = frozenset(
    {
        ModelErrorKind.RATE_LIMIT,
        ModelErrorKind.TIMEOUT,
        ModelErrorKind.CONNECTION,
        ModelErrorKind.SERVER,
        ModelErrorKind.BAD_REPLY,
        ModelErrorKind.EMPTY_REPLY,
        ModelErrorKind.REFUSAL,
        ModelErrorKind.INTERRUPTED,
    }
)


class ModelError(EngineError):
    """A model call that gave no usable reply.

    Attributes:
        kind: What went wrong.
        retry_after: Seconds that the provider asks to wait before the next attempt; None where it says nothing.
        partial: The text that had arrived before the call broke.
        usage: The tokens that the call took although it failed; None where nobody knows of any.
    """

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        remedy: str = "",
        *,
        retry_after: float | None = None,
        partial: str = "",
    ) -> None:
        super().__init__(message, remedy)
        self.kind = kind
        self.retry_after = retry_after
        self.partial = partial
        self.usage: Usage | None = None

    @property
    def retryable(self) -> bool:
        """Whether the same request may well succeed when it is made again."""
        return self.kind in _WORTH_A_RETRY


class Model(Protocol):
    """A language model that can be called."""

    @property
    def name(self) -> str:
        """The name by which documents and people call it (`openai/gpt-4o-mini`, `embedded:smollm2-135m`)."""
        ...

    @property
    def note(self) -> str:
        """What a person should know before trusting it; empty for most."""
        ...

    async def price(self) -> Price | None:
        """What it costs; None where nobody knows. May be slow the first time; must not use the network."""
        ...

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call; cancelling the awaiting task ends the call itself.

        Raises:
            ModelError: The call gave no usable reply.
        """
        ...

    async def close(self) -> None:
        """Give back processes and connections. The model is not used afterwards."""
        ...


@runtime_checkable
class RemembersCalls(Protocol):
    """A model whose replies depend on the calls before, such as one that plays a list of replies.

    The history has the request of each of its calls, so that it continues where it was when a run is resumed.
    """

    def resume_from(self, earlier: Iterable[Request], in_flight: Collection[str]) -> None:
        """Continue as if these calls had been made, and no others.

        Args:
            earlier: The requests of all calls that the run began, in order.
            in_flight: The paths whose last call had no outcome yet. When it is made again, it gets the same reply.
        """
        ...


def clean_request(request: Request) -> Request:
    """The request with every text in it cleaned (`clean_text`); the very same where nothing is to be cleaned."""
    if _is_clean_request(request):
        return request
    return replace(
        request,
        messages=tuple(
            Message(
                message.role,
                clean_text(message.text),
                _clean_calls(message.tool_calls),
                clean_text(message.tool_call_id),
            )
            for message in request.messages
        ),
        tools=tuple(
            ToolDefinition(clean_text(tool.name), clean_text(tool.description), _clean_object(tool.parameters))
            for tool in request.tools
        ),
        schema=None if request.schema is None else _clean_object(request.schema),
        stop=tuple(clean_text(text) for text in request.stop),
        extra_parameters=None if request.extra_parameters is None else _clean_object(request.extra_parameters),
    )


def _is_clean_request(request: Request) -> bool:
    """Whether a request has nothing but messages of clean text, as most have."""
    if request.tools or request.stop or request.schema is not None or request.extra_parameters is not None:
        return False
    for message in request.messages:
        if message.tool_calls or message.tool_call_id or not is_clean_text(message.text):
            return False
    return True


def clean_reply(reply: Reply) -> Reply:
    """The reply with every text in it cleaned (`clean_text`); the very same where nothing is to be cleaned."""
    texts = f"{reply.text}{reply.model}{reply.reasoning}{reply.refusal}"
    if not reply.tool_calls and is_clean_text(texts):
        return reply
    return replace(
        reply,
        text=clean_text(reply.text),
        model=clean_text(reply.model),
        tool_calls=_clean_calls(reply.tool_calls),
        reasoning=clean_text(reply.reasoning),
        refusal=clean_text(reply.refusal),
    )


def _clean_calls(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            clean_text(call.id), clean_text(call.name), cast("dict[str, Value] | str", clean_value(call.arguments))
        )
        for call in calls
    )


def _clean_object(value: dict[str, Value]) -> dict[str, Value]:
    return cast("dict[str, Value]", clean_value(value))


EMBEDDED_MODEL = "embedded:smollm2-135m"
SCRIPTED_PREFIX = "scripted:"
RECORDED_PREFIX = "recorded:"


def with_instruction(messages: tuple[Message, ...], schema: dict[str, Value]) -> tuple[Message, ...]:
    """The messages with the schema in words, at the end of the system message or as one of its own."""
    words = (
        "Answer with one JSON value that follows this JSON Schema, and with nothing else, no fences:\n"
        f"{compact_json(schema)}"
    )
    if messages and messages[0].role == "system":
        return (Message("system", f"{messages[0].text}\n\n{words}"), *messages[1:])
    return (Message("system", words), *messages)
