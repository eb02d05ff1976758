"""What model servers do differently from one another, and how each difference is handled.

A server that refuses a setting, a role or a format is asked again without it. What worked is remembered for the model
and reported as a warning. `docs/providers.md` is generated from the tables, and each row is tested against a server
that behaves like that. Nothing is sent here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from typing import Any, Final, Literal

from engine.models.protocol import Message, Request, with_instruction
from engine.models.server_errors import Refusal
from engine.models.tool_calls import in_words
from engine.values import Value

Side = Literal["request", "error", "reply"]


@dataclass(frozen=True, slots=True)
class Quirk:
    """One difference.

    Attributes:
        id: Its name; for a change to a request that of `request_form.Change`.
        side: Which part of a call it is about.
        what: What the server does.
        servers: Where it is seen.
        handling: What the program makes of it.
    """

    id: str
    side: Side
    what: str
    servers: str
    handling: str


_LEFT_OUT: Final = "The setting is left out from then on, with a warning."

QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk(
        "no_system_role",
        "request",
        "Refuses system messages.",
        "Gemma templates in vLLM, llama.cpp and SGLang; Gemma at Google; o1-preview",
        "The system prompt becomes the start of the first user message, with a warning.",
    ),
    Quirk(
        "joined_roles",
        "request",
        "Wants user and assistant messages to alternate.",
        "Mistral and Gemma templates in vLLM, llama.cpp and LM Studio",
        "Neighbouring messages of the same role are joined, with a warning.",
    ),
    Quirk(
        "max_completion_tokens",
        "request",
        "Refuses `max_tokens` and wants `max_completion_tokens`.",
        "OpenAI's and Azure's reasoning models",
        "The limit is sent under the other name, with a warning.",
    ),
    Quirk(
        "max_tokens",
        "request",
        "Refuses `max_completion_tokens` and wants `max_tokens`.",
        "Older OpenAI-compatible servers",
        "The limit is sent under the other name, with a warning.",
    ),
    Quirk(
        "no_stream_options",
        "request",
        "Refuses `stream_options`.",
        "Older vLLM, LocalAI, Azure AI and Mistral deployments",
        "It is left out, with a warning; token counts that the stream lacks are estimated.",
    ),
    Quirk(
        "no_stream",
        "request",
        "Refuses to stream.",
        "Gateways; some reasoning models",
        "The reply is asked for as a whole, with a warning.",
    ),
    Quirk("no_seed", "request", "Refuses `seed`.", "Anthropic, Perplexity, Mistral on Azure", _LEFT_OUT),
    Quirk(
        "no_top_p",
        "request",
        "Refuses `top_p`, or `top_p` beside `temperature`.",
        "OpenAI's reasoning models; Claude 4.1 and later; Claude with extended thinking",
        _LEFT_OUT,
    ),
    Quirk("no_stop", "request", "Refuses `stop`.", "OpenAI's reasoning models, Grok 4, Perplexity", _LEFT_OUT),
    Quirk(
        "no_temperature",
        "request",
        "Takes no `temperature` but its own.",
        "OpenAI's reasoning models, recent Claude models, Claude with extended thinking, Kimi",
        _LEFT_OUT,
    ),
    Quirk("no_reasoning_effort", "request", "Refuses `reasoning_effort`.", "Models that do not reason", _LEFT_OUT),
    Quirk(
        "tools_in_words",
        "request",
        "Refuses tools.",
        "Small models in Ollama, vLLM without `--enable-auto-tool-choice`, llama.cpp without `--jinja`, Gemma at "
        "Google, some routes of OpenRouter",
        "The tools are described in the prompt, and calls are read from the text, with a warning.",
    ),
    Quirk(
        "json_object",
        "request",
        "Refuses a JSON Schema, but knows JSON mode.",
        "DeepSeek, older OpenAI models, some gateways",
        "JSON mode is used and the schema is part of the prompt, with a warning.",
    ),
    Quirk(
        "schema_in_words",
        "request",
        "Refuses `response_format`.",
        "Older OpenAI-compatible servers",
        "JSON is asked for in the prompt, with a warning.",
    ),
    Quirk(
        "error_text",
        "error",
        'Sends `{"error": "text"}`.',
        "Ollama, Text Generation Inference, LM Studio",
        "The text is part of the error message.",
    ),
    Quirk(
        "error_message",
        "error",
        'Sends `{"error": {"message": …}}`, or a list of these.',
        "OpenAI and most others; Gemini (list)",
        "The message is part of the error message.",
    ),
    Quirk(
        "error_detail",
        "error",
        'Sends `{"detail": …}`: a text, or one object for each wrong field.',
        "FastAPI servers: vLLM, Mistral, Azure AI, LiteLLM proxies",
        "The fields and what is wrong with them are part of the error message.",
    ),
    Quirk(
        "error_plain_message",
        "error",
        'Sends `{"message": …}` or `{"errors": […]}`.',
        "Cohere, vLLM, AWS, Cloudflare",
        "The messages are part of the error message.",
    ),
    Quirk(
        "error_behind_gateway",
        "error",
        "Hides the real error in another one.",
        "OpenRouter (`metadata.raw`), proxies that put JSON into a text",
        "Both are part of the error message.",
    ),
    Quirk(
        "error_page",
        "error",
        "Sends a web page or plain text.",
        "Proxies, load balancers, Cloudflare",
        "The title of the page, or its text without markup, is part of the error message.",
    ),
    Quirk(
        "error_in_success",
        "error",
        "Sends an error with the status 200, or in the middle of a stream.",
        "OpenRouter, older llama.cpp, gateways",
        "It is an error of the kind that its code or its wording tells.",
    ),
    Quirk(
        "context_length_anywhere",
        "error",
        "Reports a request that is too long with any status.",
        "llama.cpp (400 and 500), Ollama (400), proxies (413), Text Generation Inference (422)",
        "It is recognised by the wording or by status 413; the message names the settings that shorten a request.",
    ),
    Quirk(
        "tokens_per_minute",
        "error",
        "Reports a request that is longer than its limit of tokens a minute as a rate limit.",
        "OpenAI (429), Groq (413)",
        "It counts as too long, since trying again cannot help.",
    ),
    Quirk(
        "quota_that_passes",
        "error",
        "Uses the same words for a limit a minute and for an account without credit.",
        "Gemini",
        "With a time to wait it is a rate limit, which is tried again; without one it is not.",
    ),
    Quirk(
        "no_credit_in_any_status",
        "error",
        "Reports an account without credit as 400, 402, 403 or 429.",
        "Anthropic (400), DeepSeek and OpenRouter (402), xAI (403), OpenAI (429)",
        "It is recognised by the wording and not tried again.",
    ),
    Quirk(
        "wrong_key_in_bad_request",
        "error",
        "Reports a wrong key as 400.",
        "Gemini, xAI",
        "It counts as a refused key, and the message says where to put the right one.",
    ),
    Quirk(
        "unknown_model_in_bad_request",
        "error",
        "Reports an unknown or retired model as 400 or 500.",
        "DeepSeek, OpenRouter, Mistral, Groq",
        "It counts as a model that is not there.",
    ),
    Quirk(
        "wait_in_body",
        "error",
        "Says in the error text how long to wait.",
        "Groq, OpenAI, Gemini (`retryDelay`)",
        "The next attempt waits that long.",
    ),
    Quirk(
        "content_parts",
        "reply",
        "Sends the text as a list of parts.",
        "Mistral, proxies for Anthropic, Cohere",
        "The parts are joined; parts with reasoning are kept apart from the answer.",
    ),
    Quirk(
        "think_tags",
        "reply",
        "Puts the model's reasoning into the text, between `<think>` tags.",
        "DeepSeek R1, Qwen and others in Ollama, LM Studio and llama.cpp",
        "The reasoning is kept apart from the answer.",
    ),
    Quirk(
        "reasoning_field",
        "reply",
        "Has a field of its own for reasoning: `reasoning_content`, `reasoning`, `thinking`.",
        "DeepSeek, vLLM, OpenRouter, Ollama",
        "The reasoning is kept apart from the answer.",
    ),
    Quirk(
        "no_finish_reason",
        "reply",
        "Does not say why a reply ended.",
        "Small OpenAI-compatible servers",
        "A reply that ended in good form is complete.",
    ),
    Quirk(
        "finish_spelling",
        "reply",
        "Has other words for why a reply ended: `max_tokens`, `eos`, `SAFETY`.",
        "Gateways for Anthropic and Gemini, Text Generation Inference",
        "They are read as the usual ones.",
    ),
    Quirk(
        "odd_usage",
        "reply",
        "Counts no tokens, or counts them as text or as null.",
        "Small OpenAI-compatible servers, proxies",
        "The counts are estimated and marked as estimates.",
    ),
    Quirk(
        "refusal",
        "reply",
        "Puts a refusal into a field of its own, with no text.",
        "OpenAI",
        "The refusal is kept as such and never taken for an answer.",
    ),
    Quirk(
        "tool_arguments",
        "reply",
        "Sends the arguments of a tool call as an object instead of a text.",
        "Ollama, gateways",
        "Both are read.",
    ),
    Quirk(
        "function_call",
        "reply",
        "Sends the old `function_call` instead of `tool_calls`.",
        "Older OpenAI-compatible servers",
        "It is read as a tool call.",
    ),
    Quirk(
        "whole_reply_to_stream",
        "reply",
        "Sends a whole reply although a stream was asked for.",
        "Gateways, caches",
        "It is read like any other reply.",
    ),
)


class SchemaMode(Enum):
    """The forms, the strictest first."""

    JSON_SCHEMA = auto()
    JSON_OBJECT = auto()
    INSTRUCTION = auto()

    @property
    def simpler(self) -> SchemaMode:
        """The next form to try where a server does not know this one; after the plainest comes itself."""
        return SchemaMode.JSON_OBJECT if self is SchemaMode.JSON_SCHEMA else SchemaMode.INSTRUCTION


def response_format(schema: dict[str, Value], mode: SchemaMode) -> dict[str, Any] | None:
    """The request's `response_format`; None where the form has none."""
    if mode is SchemaMode.JSON_SCHEMA:
        form = {"name": "reply", "schema": schema, "strict": is_strict(schema)}
        return {"type": "json_schema", "json_schema": form}
    return {"type": "json_object"} if mode is SchemaMode.JSON_OBJECT else None


def is_strict(schema: Value) -> bool:
    """Whether OpenAI takes the schema as a strict one: every object in it is closed and requires all its properties."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or isinstance(properties, dict):
        required = schema.get("required")
        named = set(properties) if isinstance(properties, dict) else set[str]()
        closed = schema.get("additionalProperties") is False
        if not closed or not isinstance(required, list) or {str(name) for name in required} != named:
            return False
    return all(is_strict(part) for part in schema.values())


class Change(StrEnum):
    """What is done differently for a server that refused the usual form."""

    NO_STREAM_OPTIONS = "no_stream_options"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"
    MAX_TOKENS = "max_tokens"
    NO_SEED = "no_seed"
    NO_TOP_P = "no_top_p"
    NO_STOP = "no_stop"
    NO_REASONING_EFFORT = "no_reasoning_effort"
    NO_TEMPERATURE = "no_temperature"
    TOOLS_IN_WORDS = "tools_in_words"
    JSON_OBJECT = "json_object"
    SCHEMA_IN_WORDS = "schema_in_words"
    JOINED_ROLES = "joined_roles"
    NO_SYSTEM_ROLE = "no_system_role"
    NO_STREAM = "no_stream"


Changes = tuple[Change, ...]
"""Changes in the order in which they were made."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """One way in which a request is changed.

    Attributes:
        change: Which it is.
        refused: Finds in what a server said that this is what it refused.
        matters: Whether it would change a request; the second argument is whether the reply is streamed.
        warning: What the run says about it, after the name of the server.
        is_named: Whether the server must also say that it does not take it, since the word alone proves nothing.
    """

    change: Change
    refused: re.Pattern[str]
    matters: Callable[[Request, bool], bool]
    warning: str
    is_named: bool = True


# A refusal, as opposed to a value out of range, which the person has to correct.
_NOT_TAKEN: Final = re.compile(
    r"unsupported|no endpoints found that support"
    r"|(not|n't|never|no) (currently )?(be )?(support|accept|allow|permit|enabl|implement|available|recogni)"
    r"|unrecogni[sz]ed|unknown|unexpected|extra[ _](inputs?|fields?|forbidden)|additional propert|deprecated"
    r"|only the default|only \S{1,20} is (allowed|supported)|(may|can) only be set to|\bor unset\b"
    r"|cannot (both )?be (set|used|specified)|invalid (argument|field|param|role)|not a valid (field|param)"
    r"|['\"` ]instead\b|no longer|requires --(enable|jinja)|input should be|only user and assistant",
    re.IGNORECASE,
)


def _setting(change: Change, names: str, title: str, matters: Callable[[Request, bool], bool]) -> Adaptation:
    refused = re.compile(rf"(?<![\w])({names})(?![\w])", re.IGNORECASE)
    return Adaptation(change, refused, matters, f"does not accept the setting '{title}'; it was left out.")


ADAPTATIONS: Final[tuple[Adaptation, ...]] = (
    Adaptation(
        Change.NO_STREAM_OPTIONS,
        re.compile(r"stream_options|include_usage", re.IGNORECASE),
        lambda _request, streams: streams,
        "does not count the tokens of a streamed reply on request; where it reports none, they are estimated.",
    ),
    Adaptation(
        Change.MAX_COMPLETION_TOKENS,
        re.compile(
            r"max_completion_tokens\W{1,3}instead|(?<!\w)max_tokens(?!\w)(?!.*max_completion_tokens)", re.IGNORECASE
        ),
        lambda request, _streams: request.max_tokens is not None,
        "expects `max_completion_tokens` instead of `max_tokens`.",
    ),
    Adaptation(
        Change.MAX_TOKENS,
        re.compile(r"max_completion_tokens(?!\W{1,3}instead)", re.IGNORECASE),
        lambda request, _streams: request.max_tokens is not None,
        "expects `max_tokens` instead of `max_completion_tokens`.",
    ),
    _setting(Change.NO_SEED, "(random_)?seed", "Seed", lambda request, _streams: request.seed is not None),
    # Before the temperature: of two that exclude each other, the one that more people set stays.
    _setting(Change.NO_TOP_P, "top_?p|topp|p", "Top P", lambda request, _streams: request.top_p is not None),
    _setting(Change.NO_STOP, "stop(_sequences)?", "Stop sequences", lambda request, _streams: bool(request.stop)),
    # Before the reasoning effort: Claude takes no other temperature while it thinks, and says both words.
    _setting(
        Change.NO_TEMPERATURE, "temperature", "Temperature", lambda request, _streams: request.temperature is not None
    ),
    _setting(
        Change.NO_REASONING_EFFORT,
        "reasoning([_. ]effort)?|thinking|think(ing_?budget)?",
        "Reasoning effort",
        lambda request, _streams: request.reasoning_effort is not None,
    ),
    Adaptation(
        Change.TOOLS_IN_WORDS,
        re.compile("tool|function[ _-]?call", re.IGNORECASE),
        lambda request, _streams: bool(request.tools),
        "does not accept tools; they are described in the prompt instead.",
        is_named=False,
    ),
    Adaptation(
        Change.JSON_OBJECT,
        re.compile("response[_ .]?format|json_?schema|schema|grammar|structured output", re.IGNORECASE),
        lambda request, _streams: request.schema is not None,
        "does not accept a JSON Schema; it is part of the prompt instead.",
        is_named=False,
    ),
    Adaptation(
        Change.SCHEMA_IN_WORDS,
        re.compile(
            "response[_ .]?format|json_?(schema|object)|json mode|schema|grammar|structured output", re.IGNORECASE
        ),
        lambda request, _streams: request.schema is not None,
        "has no setting for a JSON reply; it is asked for in the prompt instead.",
        is_named=False,
    ),
    Adaptation(
        Change.JOINED_ROLES,
        re.compile(
            "roles? must alternate|alternat(e|ing) .{0,40}role|consecutive .{0,40}(role|message)", re.IGNORECASE
        ),
        lambda request, _streams: _has_neighbours(request.messages),
        "takes no two messages of the same role in a row; they were joined.",
        is_named=False,
    ),
    Adaptation(
        Change.NO_SYSTEM_ROLE,
        re.compile(
            r"system['\"`]?[ _-](role|message|prompt|instruction)|role\W{0,4}(of )?\W{0,2}system|developer instruction"
            r"|role.{0,60}system|only user and assistant|role: input should be|roles? must alternate",
            re.IGNORECASE,
        ),
        lambda request, _streams: any(message.role == "system" for message in request.messages),
        "takes no system message; it is part of the first user message instead.",
        is_named=False,
    ),
    Adaptation(
        Change.NO_STREAM,
        re.compile(r"(?<!\w)stream(ing|ed)?(?!\w)", re.IGNORECASE),
        lambda _request, streams: streams,
        "does not stream; its replies arrive whole.",
    ),
)
"""All of them, those first that a message which names several things is most likely about."""


def next_change(refusal: Refusal, request: Request, changes: Changes, *, streams: bool) -> Change | None:
    """What to change after a refusal; None where the request as it stands is at fault.

    Each change is made at most once, so that a server that refuses everything is soon left alone.

    Args:
        refusal: What the server refused.
        request: The request as a node made it.
        changes: What is done differently already.
        streams: Whether the reply was to be streamed.
    """
    said = " ".join((refusal.text, *sorted(refusal.codes)))
    is_taken = _NOT_TAKEN.search(said) is None
    streams = streams and Change.NO_STREAM not in changes
    asked = changed(request, changes)
    for one in ADAPTATIONS:
        if one.change in changes or (is_taken and (one.is_named or not refusal.is_bad_request)):
            continue
        if one.change is Change.JSON_OBJECT and Change.SCHEMA_IN_WORDS in changes:
            continue
        if one.matters(asked, streams) and one.refused.search(said):
            return one.change
    return None


def warnings_of(who: str, request: Request, changes: Changes, *, streams: bool) -> tuple[str, ...]:
    """What a person should know about the changes that made a difference to a request."""
    told: list[str] = []
    for one in ADAPTATIONS:
        is_replaced = one.change is Change.JSON_OBJECT and Change.SCHEMA_IN_WORDS in changes
        before = tuple(change for change in changes if change is not one.change)
        if one.change in changes and not is_replaced and one.matters(changed(request, before), streams):
            told.append(f"{who} {one.warning}")
    return tuple(told)


def changed(request: Request, changes: Changes) -> Request:
    """The request in the form that the changes give it."""
    if Change.NO_SEED in changes:
        request = replace(request, seed=None)
    if Change.NO_TOP_P in changes:
        request = replace(request, top_p=None)
    if Change.NO_STOP in changes:
        request = replace(request, stop=())
    if Change.NO_REASONING_EFFORT in changes:
        request = replace(request, reasoning_effort=None)
    if Change.NO_TEMPERATURE in changes:
        request = replace(request, temperature=None)
    if Change.TOOLS_IN_WORDS in changes:
        request = in_words(request)
    if request.schema is not None and schema_mode(changes) is not SchemaMode.JSON_SCHEMA:
        request = replace(request, messages=with_instruction(request.messages, request.schema))
    if Change.NO_SYSTEM_ROLE in changes:
        request = replace(request, messages=_without_system(request.messages))
    if Change.JOINED_ROLES in changes:
        request = replace(request, messages=_joined(request.messages))
    return request


def schema_mode(changes: Changes) -> SchemaMode:
    """How a structured reply is asked for."""
    if Change.SCHEMA_IN_WORDS in changes:
        return SchemaMode.INSTRUCTION
    return SchemaMode.JSON_OBJECT if Change.JSON_OBJECT in changes else SchemaMode.JSON_SCHEMA


def _without_system(messages: Iterable[Message]) -> tuple[Message, ...]:
    """System messages as the beginning of the user message that follows, or as user messages of their own."""
    made: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message.role == "system":
            waiting.append(message.text)
            continue
        if waiting and message.role == "user":
            message = replace(message, text="\n\n".join((*waiting, message.text)))  # noqa: PLW2901 - the same one
        elif waiting:
            made.append(Message("user", "\n\n".join(waiting)))
        waiting.clear()
        made.append(message)
    if waiting:
        made.append(Message("user", "\n\n".join(waiting)))
    return tuple(made)


def _has_neighbours(messages: tuple[Message, ...]) -> bool:
    return any(_belong_together(first, second) for first, second in itertools.pairwise(messages))


def _belong_together(first: Message, second: Message) -> bool:
    is_plain = not (first.tool_calls or second.tool_calls or first.role == "tool")
    return is_plain and first.role == second.role


def _joined(messages: Iterable[Message]) -> tuple[Message, ...]:
    made: list[Message] = []
    for message in messages:
        if made and _belong_together(made[-1], message):
            made[-1] = replace(message, text=f"{made[-1].text}\n\n{message.text}")
        else:
            made.append(message)
    return tuple(made)
