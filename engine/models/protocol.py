"""The model protocol: what a model call is, for every kind of model.

It imports little, so importing it costs nothing. An adapter turns a `Request` into a `Reply` or raises a `ModelError`.
It makes exactly one attempt: retries, deadlines, budget and concurrency belong to the engine, and an adapter switches
off its own.

`clean_request` and `clean_reply` remove lone surrogates and NUL, which neither the history nor HTTP can carry.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, Literal, Protocol, cast, runtime_checkable

from engine.errors import EngineError
from engine.values import Value, clean_text, clean_value, compact_json, immutable, is_clean_text

EMBEDDED_MODEL = "embedded:smollm2-135m"
SCRIPTED_PREFIX = "scripted:"
RECORDED_PREFIX = "recorded:"
GGUF_PREFIX = "gguf:"

_WINDOWS_PATH: Final = re.compile(r"[A-Za-z]:[\\/]|\\")


def is_gguf_path(model: str) -> bool:
    """Whether a model is a GGUF file that is named by its path (`gguf:~/models/mine.gguf`)."""
    name = model.removeprefix(GGUF_PREFIX)
    is_path = name.lower().endswith(".gguf") or name.startswith(("/", "~", ".")) or _WINDOWS_PATH.match(name)
    return name != model and bool(is_path)


def with_absolute_path(model: str) -> str:
    """Return the name of a model with the absolute path of its file; any other name unchanged."""
    prefix = SCRIPTED_PREFIX if model.startswith(SCRIPTED_PREFIX) else GGUF_PREFIX if is_gguf_path(model) else ""
    if not prefix:
        return model
    path = model.removeprefix(prefix)
    return f"{prefix}{os.path.abspath(os.path.expanduser(path))}"  # noqa: PTH100, PTH111 - removes `./`; see gguf_files


def reads_this_machine(model: str) -> bool:
    """Whether a model's name says which file, or which run of the history, it reads."""
    return model.startswith((SCRIPTED_PREFIX, RECORDED_PREFIX)) or is_gguf_path(model)


OnText = Callable[[str], None]
"""Receives each new piece of a streamed reply's text. It must not block."""
CountTokens = Callable[[str], int]
"""Counts the tokens of a text."""


@immutable
class ToolDefinition:
    """A tool that a model may call.

    Attributes:
        name: Its name for the model.
        description: What it does, for the model.
        parameters: A JSON Schema of its arguments, an object.
    """

    name: str
    description: str
    parameters: dict[str, Value]


@immutable
class ToolCall:
    """A call of a tool that a model requests.

    Attributes:
        id: Links the call to the message with its result.
        name: The tool, as the model wrote it; it may not exist.
        arguments: An object; the model's text if that is not an object.
    """

    id: str
    name: str
    arguments: dict[str, Value] | str


@immutable
class Message:
    """One message of a conversation.

    Attributes:
        role: The author.
        text: The text.
        tool_calls: In a model's message: the tool calls that it requested.
        tool_call_id: In a tool's result: the id of the call.
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
        max_tokens: Maximum length of the reply; None leaves it to the model.
        schema: A JSON Schema that the reply must follow; None for free text.
        seed: Makes sampling repeatable if the model supports it.
        path: Where in the run the call is made (`loop[2].draft`), by which a scripted model selects its reply. A real
            model never sees it.
        tools: The tools that the model may call.
        top_p: Nucleus sampling: the share of probability that tokens are drawn from; None leaves it to the model.
        stop: Texts at which the reply ends; the reply does not include them.
        reasoning_effort: How much a reasoning model thinks first (`low`, `high`); None leaves it to the model.
        extra_parameters: Further parameters of the provider, sent unchanged.
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
    """Tokens of one or more calls. `exact` is False if a number is an estimate."""

    input_tokens: int = 0
    output_tokens: int = 0
    exact: bool = True

    @property
    def total_tokens(self) -> int:
        """Tokens in and out together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, self.exact and other.exact
        )


def add_costs(first: float | None, second: float | None) -> float | None:
    """Sum of two costs in USD; None if one of them is unknown."""
    return None if first is None or second is None else first + second


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """Sum of costs in USD; None if one of them is unknown."""
    return functools.reduce(add_costs, costs, 0.0)


_BYTES_PER_TOKEN: Final = 4
_MAX_USD: Final = 1e9


def estimated_usage(
    request: Request,
    *written: str,
    tool_calls: Iterable[ToolCall] = (),
    count: CountTokens | None = None,
) -> Usage:
    """Estimate the tokens of a call that its server did not count.

    Args:
        request: The request; its tools and schema count too.
        written: The texts that the model wrote, with its reasoning.
        tool_calls: The calls that it wrote.
        count: The model's tokenizer; None counts four bytes per token. A Chinese character is about a token, and has
            three bytes.
    """
    sent = [message.text + _calls_text(message.tool_calls) for message in request.messages]
    sent += [tool.name + tool.description + compact_json(tool.parameters) for tool in request.tools]
    sent += [] if request.schema is None else [compact_json(request.schema)]
    received = [*written, _calls_text(tool_calls)]
    if count is not None:
        return Usage(sum(map(count, sent)), sum(map(count, received)), exact=False)
    return Usage(*(estimated_tokens(sum(map(_bytes, texts))) for texts in (sent, received)), exact=False)


def _calls_text(calls: Iterable[ToolCall]) -> str:
    return "".join(call.name + compact_json(call.arguments) for call in calls)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def estimated_tokens(size: int) -> int:
    """Estimate the tokens of a text by its length in bytes, or in characters."""
    return -(-size // _BYTES_PER_TOKEN)


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
    """A model's reply.

    Attributes:
        text: The text, unchanged. It is never treated as markup, template or code.
        finish: Why the reply ended.
        usage: The tokens of the call.
        model: The provider's name of the model that replied.
        cost_usd: The price that the provider reported; None: calculate it from `Price`.
        tool_calls: The tool calls that the model requests, in its order.
        reasoning: The model's reasoning, separate from its answer; shown to people and used for nothing else.
        refusal: Why the model declined to answer, in its own words; empty if it did not.
        warnings: What a person should know about the call, such as a setting that the server refused.
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


def checked_cost_usd(cost: object) -> float | None:
    """A price in US dollars that a server or a plugin reports; None if it is not one."""
    return float(cost) if isinstance(cost, (int, float)) and type(cost) is not bool and 0 <= cost <= _MAX_USD else None


@immutable
class LongPrice:
    """The price of all tokens of a call with more than a number of input tokens, in US dollars per token."""

    above_input_tokens: int
    input_usd_per_token: float
    output_usd_per_token: float


@immutable
class Price:
    """The price of a model, in US dollars. A local model costs 0.0; None stands for an unknown price.

    Attributes:
        input_usd_per_token: Price of an input token.
        output_usd_per_token: Price of an output token.
        usd_per_call: Price of a call, in addition to its tokens.
        long: Prices of long calls, in increasing order of length.
    """

    input_usd_per_token: float
    output_usd_per_token: float
    usd_per_call: float = 0.0
    long: tuple[LongPrice, ...] = ()

    def cost_usd(self, usage: Usage) -> float:
        """The price of one call in US dollars."""
        input_price, output_price = self.input_usd_per_token, self.output_usd_per_token
        for price in self.long:
            if usage.input_tokens > price.above_input_tokens:
                input_price, output_price = price.input_usd_per_token, price.output_usd_per_token
        return usage.input_tokens * input_price + usage.output_tokens * output_price + self.usd_per_call


@immutable
class ModelChoice:
    """The model that a node calls.

    Attributes:
        name: The model's full name; None for the workflow's default.
        api_base: Address of its server; None for the provider's.
        fallbacks: Models to use instead, in order, when it fails.
    """

    name: str | None = None
    api_base: str | None = None
    fallbacks: tuple[str, ...] = ()

    @property
    def chain(self) -> tuple[ModelChoice, ...]:
        """The model and its fallbacks, in the order in which they are tried."""
        if not self.fallbacks:
            return (self,)
        models = (ModelChoice(self.name, self.api_base), *(ModelChoice(name) for name in self.fallbacks))
        return tuple(dict.fromkeys(models))


@immutable
class ModelCall:
    """A finished model call, as the history stores it."""

    model: str
    request: Request
    reply: Reply
    cost_usd: float | None
    duration_s: float


class ModelErrorKind(StrEnum):
    """What went wrong with a model call, if that affects what to do next."""

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
    OUT_OF_MEMORY = "out_of_memory"
    UNAVAILABLE = "unavailable"


_RETRYABLE = frozenset(
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
        retry_after: Seconds that the provider asks to wait before the next attempt; None if it does not.
        partial: The text that had arrived before the failure.
        usage: The tokens of the failed call; None if unknown.
    """

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        remedy: str = "",
        *,
        fix: str = "",
        retry_after: float | None = None,
        partial: str = "",
    ) -> None:
        super().__init__(message, remedy, fix=fix, retryable=kind in _RETRYABLE)
        self.kind = kind
        self.retry_after = retry_after
        self.partial = partial
        self.usage: Usage | None = None


class Model(Protocol):
    """A language model that can be called."""

    @property
    def name(self) -> str:
        """Its name for documents and people (`openai/gpt-4o-mini`, `embedded:smollm2-135m`)."""
        ...

    @property
    def note(self) -> str:
        """What a person should know before using it; usually empty."""
        ...

    async def price(self) -> Price | None:
        """Its price; None if unknown. May be slow the first time; must not use the network."""
        ...

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Make one call; cancelling the awaiting task ends the call.

        Raises:
            ModelError: The call gave no usable reply.
        """
        ...

    async def close(self) -> None:
        """Release processes and connections. The model is not used afterwards."""
        ...


@runtime_checkable
class HasTokenizer(Protocol):
    """A model that can count tokens before a call."""

    async def count_tokens(self, texts: Sequence[str]) -> int | None:
        """Return how many tokens texts have together, rather too many than too few; None if that is unknown."""
        ...


@runtime_checkable
class RemembersCalls(Protocol):
    """A model whose replies depend on earlier calls, such as one that plays a list of replies.

    The history contains the request of each of its calls, so that it continues correctly when a run is resumed.
    """

    def resume_from(self, earlier: Iterable[Request], in_flight: Collection[str]) -> None:
        """Continue as if exactly these calls had been made.

        Args:
            earlier: The requests of all calls that the run started, in order.
            in_flight: The paths whose last call has no outcome yet. When that is repeated, it gets the same reply.
        """
        ...


def clean_request(request: Request) -> Request:
    """Clean every text in a request (`clean_text`); return the same object if it is clean."""
    if request.tools or request.stop or request.schema is not None or request.extra_parameters is not None:
        return _clean_request(request)
    for message in request.messages:
        if message.tool_calls or message.tool_call_id or not is_clean_text(message.text):
            return _clean_request(request)
    return request  # as most are: a few messages with clean text


def _clean_request(request: Request) -> Request:
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


def clean_reply(reply: Reply) -> Reply:
    """Clean every text in a reply (`clean_text`); return the same object if it is clean."""
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


def with_instruction(messages: tuple[Message, ...], schema: dict[str, Value]) -> tuple[Message, ...]:
    """Add an instruction to follow the schema, at the end of the system message or as a new one."""
    return with_system_text(
        messages,
        "Answer with one JSON value that follows this JSON Schema, and with nothing else, no fences:\n"
        f"{compact_json(schema)}",
    )


def with_system_text(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Add a text at the end of the system message or as a new one."""
    if messages and messages[0].role == "system":
        return (replace(messages[0], text=f"{messages[0].text}\n\n{text}"), *messages[1:])
    return (Message("system", text), *messages)
