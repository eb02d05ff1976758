"""Settings of nodes that call a model, the prompts and calls made of them, and structured replies."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from engine.document.problems import faults as faults_in
from engine.expr import Scope, Template, compile_template
from engine.models.protocol import Finish, Message, ModelChoice, ModelError, Reply, ToolDefinition
from engine.nodes.context import NodeContext, context_full_error, is_context_full
from engine.nodes.json_values import SchemaError, compile_schema
from engine.nodes.spec import (
    CACHED_TEXTS,
    CacheMode,
    NamedText,
    NodeConfig,
    NodeError,
    Port,
    TextKind,
    named_ports,
    uses,
)
from engine.nodes.structured_replies import Faults, UnreadableReplyError, read_structured
from engine.text_sanitizing import shown
from engine.values import Value, to_text

_SET_ELSEWHERE: Final = "the program or another field of the node sets it"
_NO_REQUEST: Final = "it is not part of a model's request"
_RESERVED: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("messages", "prompt", "input", "system", "model", "models", "fallbacks", "stream", "streamoptions", "n"),
            *("tools", "toolchoice", "responseformat", "temperature", "topp", "maxtokens", "maxcompletiontokens"),
            *("stop", "seed", "reasoningeffort"),
        ),
        _SET_ELSEWHERE,
    ),
    **dict.fromkeys(
        (
            *("apibase", "baseurl", "apiversion", "organization", "customllmprovider", "headers", "extraheaders"),
            *("extrabody", "extraquery", "timeout", "maxretries", "numretries", "mockresponse"),
        ),
        _NO_REQUEST,
    ),
}
_TOKEN_LIMITS: Final = frozenset(
    {
        *("maxtokens", "maxcompletiontokens", "maxoutputtokens", "maxnewtokens", "maxlength", "maxgenerationlength"),
        *("npredict", "numpredict", "maxtokenstosample", "maxgentokens"),
        *("bestof", "candidatecount", "numreturnsequences", "numgenerations"),
    }
)
"""Names that servers use for the length or the number of replies, which a budget has to know."""


def _checked(parameters: dict[str, Value]) -> dict[str, Value]:
    for name in parameters:
        instead = _RESERVED.get(_plain(name))
        if instead is not None:
            raise PydanticCustomError("reserved_parameter", "reserved", {"name": name[:60], "instead": instead})
    for name in _names(parameters):
        if _plain(name) in _TOKEN_LIMITS:
            raise PydanticCustomError("reserved_parameter", "reserved", {"name": name[:60], "instead": _SET_ELSEWHERE})
    return parameters


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _names(parameters: dict[str, Value]) -> Iterator[str]:
    pending: list[Value] = [parameters]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


ExtraParameters = Annotated[dict[str, Any], AfterValidator(_checked)]
"""A JSON object of a provider's own parameters, without names that the request sets and without token limits.

Secrets in it are found with those of the whole document (`engine.plan.secrets`).
"""


MAX_TOKENS_DEFAULT = 1024


class ModelFields(NodeConfig):
    """Settings shared by the node types that call a model."""

    model: str | None = Field(
        default=None,
        title="Model",
        description=("Full name of the model, such as openai/gpt-4o-mini. Leave empty for the workflow's model."),
        json_schema_extra={"widget": "model"},
    )
    api_base: str | None = Field(
        default=None,
        title="Server address",
        description=(
            "Address of an OpenAI-compatible server, such as http://localhost:8080/v1. Leave empty for the provider's."
        ),
        json_schema_extra={"group": "more"},
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        title="Temperature",
        description="Lower is more predictable, higher more varied. Leave empty for the model's default.",
    )
    max_tokens: int | None = Field(
        default=MAX_TOKENS_DEFAULT,
        ge=1,
        title="Max tokens",
        description=("Maximum length of the reply. Also used to estimate a call's worst-case cost against the budget."),
    )
    seed: int | None = Field(
        default=None,
        title="Seed",
        description="The same seed gives the same reply, if the model supports it.",
        json_schema_extra={"group": "more"},
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        title="Top P",
        description=(
            "Samples only from the most likely tokens whose probabilities add up to this value. Leave empty for the "
            "model's default."
        ),
        json_schema_extra={"group": "more"},
    )
    stop: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default_factory=list,
        max_length=16,
        title="Stop sequences",
        description="Texts that end the reply; the reply does not include them. Many providers accept at most four.",
        json_schema_extra={"widget": "lines", "group": "more"},
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = Field(
        default=None,
        title="Reasoning effort",
        description="How much a reasoning model thinks before it answers. Leave empty for the model's default.",
        json_schema_extra={
            "group": "more",
            "labels": {
                "none": "None",
                "minimal": "Minimal",
                "low": "Low",
                "medium": "Medium",
                "high": "High",
                "xhigh": "Extra high",
            },
        },
    )
    extra_parameters: ExtraParameters | None = Field(
        default=None,
        title="Extra parameters",
        description=(
            'Other parameters of the provider as a JSON object, sent unchanged ({"top_k": 40}). Keys and other secrets '
            "are refused."
        ),
        json_schema_extra={"widget": "json", "group": "more"},
    )
    fallback_models: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        max_length=8,
        title="Fallback models",
        description="Models to use instead, in order, when the model fails and its retries are used up.",
        json_schema_extra={"widget": "models", "group": "more"},
    )
    on_cut_off: Literal["warn", "continue", "fail"] = Field(
        default="warn",
        title="When a reply is truncated",
        description=(
            "What to do when a reply reaches its token limit. continue: The model is asked for the rest, at most five "
            "times."
        ),
        json_schema_extra={
            "group": "more",
            "labels": {
                "warn": "Use the partial reply, with a warning",
                "continue": "Ask for the rest",
                "fail": "Fail",
            },
        },
    )
    allow_empty: bool = Field(
        default=False,
        title="Allow empty replies",
        description="Accept a reply without text as an empty text. If off, such a reply fails and is retried.",
        json_schema_extra={"group": "more"},
    )
    cache: CacheMode = Field(
        default="off",
        title="Cache replies",
        description=(
            "Reuses the stored reply to an identical request at no cost. Needs the history. off: The model is called "
            "every time."
        ),
        json_schema_extra={
            "group": "more",
            "labels": {"off": "Off", "repeatable": "At temperature 0", "always": "At any temperature"},
        },
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=20,
        title="Retries",
        description=("Number of retries after a temporary failure, such as an overload or a lost connection."),
        json_schema_extra={"group": "more"},
    )

    @cached_property
    def choice(self) -> ModelChoice:
        """The model and its fallbacks."""
        return ModelChoice(self.model or None, self.api_base or None, tuple(self.fallback_models))

    @cached_property
    def parameters(self) -> tuple[Any, ...]:
        """The settings that a request takes over, read once: reading one takes as long as a call."""
        extra_parameters = self.extra_parameters or None
        limits = (self.temperature, self.max_tokens, self.seed, self.top_p)
        return (*limits, tuple(self.stop), self.reasoning_effort, extra_parameters)

    @property
    def model_summary(self) -> str:
        """Model and temperature in a few words, for the canvas."""
        parts = [self.model.rpartition("/")[2] if self.model else "default model"]
        if self.temperature is not None:
            parts.append(f"temperature {self.temperature:g}")
        return " · ".join(parts)


MODEL_FIELDS: Final = frozenset(ModelFields.model_fields) - frozenset(NodeConfig.model_fields)
"""Names of the settings that only model calls need."""


def call_model(
    context: NodeContext[Any],
    config: ModelFields,
    messages: Iterable[Message],
    *,
    schema: dict[str, Value] | None = None,
    tools: tuple[ToolDefinition, ...] = (),
) -> Awaitable[Reply]:
    """Make one model call with a node's model settings.

    Args:
        context: The node that calls.
        config: Its model settings.
        messages: The conversation.
        schema: A JSON Schema that the reply must follow; None for free text.
        tools: The tools that the model may call.

    Raises:
        ModelError: The call returned no usable reply.
        BudgetError: It does not fit the remaining budget; no call was made.
    """
    temperature, max_tokens, seed, top_p, stop, reasoning_effort, extra_parameters = config.parameters
    return context.complete(
        config.choice,
        messages,
        temperature=temperature,
        max_tokens=max_tokens,
        schema=schema,
        seed=seed,
        tools=tools,
        top_p=top_p,
        stop=stop,
        reasoning_effort=reasoning_effort,
        extra_parameters=extra_parameters,
    )


class PromptFields(ModelFields):
    """Settings shared by the node types that have prompts."""

    prompt: str = Field(
        default="",
        title="Prompt",
        description=("The request to the model. {{input}} inserts the input; without it, the input is appended."),
        json_schema_extra={"widget": "prompt", "group": "first"},
    )
    system: str = Field(
        default="",
        title="System prompt",
        description="The model's role and rules. {{name}} inserts the value of the port with that name.",
        json_schema_extra={"widget": "prompt", "group": "first"},
    )


@dataclass(frozen=True, slots=True)
class Prompts:
    """Compiled prompts."""

    system: Template | None
    prompt: Template
    names_input: bool


def prompt_texts(config: PromptFields) -> tuple[NamedText, ...]:
    """The prompts as named texts."""
    return _texts(config.system, config.prompt)


@lru_cache(maxsize=CACHED_TEXTS)
def _texts(system: str, prompt: str) -> tuple[NamedText, ...]:
    return NamedText("system", TextKind.TEMPLATE, system), NamedText("prompt", TextKind.TEMPLATE, prompt)


def prompt_inputs(config: PromptFields) -> tuple[Port, ...]:
    """The input ports: `input`, and one for each bare name in the prompts."""
    return _inputs(config.system, config.prompt)


@lru_cache(maxsize=CACHED_TEXTS)
def _inputs(system: str, prompt: str) -> tuple[Port, ...]:
    texts = _texts(system, prompt)
    needed = uses(texts, "input") or not prompt.strip()
    return (
        Port("input", help="What the prompt calls {{input}}.", required=needed, gate=True, many=True),
        *named_ports(texts, beside=("input",)),
    )


def prepare_prompts(config: PromptFields) -> Prompts:
    """Compile the prompts."""
    return _prompts(config.system, config.prompt)


@lru_cache(maxsize=CACHED_TEXTS)
def _prompts(system: str, prompt: str) -> Prompts:
    names_input = uses(_texts(system, prompt), "input")
    return Prompts(compile_template(system) if system else None, compile_template(prompt), names_input)


def prompt_messages(context: NodeContext[Any]) -> list[Message]:
    """The first messages of a conversation."""
    prompts: Prompts = context.prepared
    scope: Scope = context.scope
    prompt = prompts.prompt.render(scope)
    if not prompts.names_input and "input" in context.inputs:
        given = to_text(context.inputs["input"])
        prompt = f"{prompt}\n\n{given}" if prompt else given
    if context.iteration_note is not None:
        prompt = context.iteration_note.added_to(prompt)
    messages = [*context.memory, Message("user", prompt)]
    if prompts.system is not None:
        messages.insert(0, Message("system", prompts.system.render(scope)))
    return messages


_JSON_BEGINS = ("{", "[", "```")
_JSON_ENDS = ("}", "]", "```")

_TRUNCATED: Final = {Finish.LENGTH: "at its token limit", Finish.CONTENT_FILTER: "by the provider's content filter"}

ReadT = TypeVar("ReadT")


class ContextFullError(UnreadableReplyError):
    """A reply cannot be read because it was truncated by the model's own limit.

    Attributes:
        error: The error for the user.
    """

    def __init__(self, error: ModelError) -> None:
        super().__init__(f"{error.message} {error.remedy}")
        self.error = error


async def ask(
    context: NodeContext[Any],
    config: ModelFields,
    messages: list[Message],
    schema: dict[str, Value],
    read_reply: Callable[[str], ReadT],
    what: str = "reply",
) -> ReadT:
    """Ask for a structured reply; if the first cannot be read, ask once more, unless the context is full.

    Args:
        context: The node that asks.
        config: Its model settings.
        messages: The conversation.
        schema: The JSON Schema for the reply.
        read_reply: Reads a reply, or raises `UnreadableReplyError`.
        what: The noun for the reply in the warning.

    Raises:
        ContextFullError: The last reply could not be read because the model's context is full.
        UnreadableReplyError: The second reply could not be read either.
        ModelError, BudgetError: A call failed, or did not fit the budget.
    """
    reply = await call_model(context, config, messages, schema=schema)
    try:
        return _read_last(context, reply, read_reply)
    except ContextFullError:
        raise
    except UnreadableReplyError as failure:
        context.warn(f"The {what} could not be read ({str(failure).rstrip('.')}); asked once more.")
        again = f"That could not be read: {shown(str(failure), 500)} Answer again, with the JSON object alone."
    answer = [Message("assistant", reply.text)] if reply.text.strip() else []  # servers refuse empty messages
    second = await call_model(context, config, [*messages, *answer, Message("user", again)], schema=schema)
    return _read_last(context, second, read_reply)


def _read_last(context: NodeContext[Any], reply: Reply, read_reply: Callable[[str], ReadT]) -> ReadT:
    """Read the reply of the last call, or of the calls that it continues."""
    try:
        return read_whole(reply, read_reply)
    except UnreadableReplyError as failure:
        last = context.calls[-1] if context.calls else None
        if last is not None and is_context_full(last):
            raise ContextFullError(context_full_error(last)) from failure
        raise


async def structured_reply(
    context: NodeContext[Any], config: ModelFields, messages: list[Message], schema: dict[str, Value]
) -> Value:
    """Ask for a reply that follows a JSON Schema, and return its value.

    Raises:
        ModelError: The model's context is full.
        NodeError: Neither the first nor the second reply follows the schema.
    """
    try:
        return await ask(context, config, messages, schema, partial(read, schema=schema))
    except ContextFullError as error:
        raise error.error from error
    except UnreadableReplyError as error:
        raise NodeError(
            f"The reply does not follow the JSON Schema, asked twice: {error}",
            "Make the schema simpler, allow more tokens in the reply, or take a stronger model.",
            retryable=True,
        ) from error


def read_whole(reply: Reply, read_reply: Callable[[str], ReadT]) -> ReadT:
    """Read a reply. A truncated one counts only if it starts or ends with complete JSON.

    JSON in the middle may be an example before the answer, and "done" may be the start of a sentence.

    Raises:
        UnreadableReplyError: It cannot be read, or was truncated too early.
    """
    if reply.finish not in _TRUNCATED:
        return read_reply(reply.text)
    text = reply.text.strip()
    try:
        if text.startswith(_JSON_BEGINS) or text.endswith(_JSON_ENDS):
            return read_reply(f"{text} [cut off]")
    except UnreadableReplyError:
        pass
    raise UnreadableReplyError(f"the reply was cut off {_TRUNCATED[reply.finish]}, before its end.")


def read(text: str, schema: dict[str, Value]) -> Value:
    """Read the JSON value in a reply.

    Raises:
        UnreadableReplyError: There is none, it does not follow the schema, or several values differ.
    """
    return read_structured(text, schema, faults_by(schema))


def faults_by(schema: dict[str, Value]) -> Faults:
    """Return a check of values against a schema and the JSON rules of documents.

    Raises:
        UnreadableReplyError: The schema is invalid.
    """
    try:
        compiled = compile_schema(schema)
    except SchemaError as error:
        raise UnreadableReplyError(error.message) from error

    def faults(value: Any) -> Sequence[tuple[int, str]]:
        broken = next(faults_in(value), None)
        return compiled.faults(value) if broken is None else [(len(broken.path), broken.message)]

    return faults
