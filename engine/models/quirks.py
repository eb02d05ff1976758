"""Changes to requests for model servers that refuse the usual form.

A server that refuses a setting, a role or a format is asked again without it. What worked is remembered for the model
and reported as a warning. `docs/providers.md` lists which server refuses what. Nothing is sent here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from engine.models.protocol import Message, ModelError, ModelErrorKind, Request, with_instruction
from engine.models.tool_calls import describe_tools
from engine.values import Value


class Change(StrEnum):
    """A change to a request for a server that refused the usual form."""

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
        change: The change.
        refused: Finds in a server's error text that this is what it refused.
        affects: Whether the change affects a request; the second argument is whether the reply is streamed.
        warning: The warning of the run, after the name of the server.
        needs_refusal_words: Whether the error text must also say that something is not accepted, since the pattern
            alone proves nothing.
    """

    change: Change
    refused: re.Pattern[str]
    affects: Callable[[Request, bool], bool]
    warning: str
    needs_refusal_words: bool = True


# Words of a refusal, as opposed to a value out of range, which the person has to correct.
_REFUSAL_WORDS: Final = re.compile(
    r"unsupported|no endpoints found that support"
    r"|(not|n't|never|no) (currently )?(be )?(support|accept|allow|permit|enabl|implement|available|recogni)"
    r"|unrecogni[sz]ed|unknown|unexpected|extra[ _](inputs?|fields?|forbidden)|additional propert|deprecated"
    r"|only the default|only \S{1,20} is (allowed|supported)|(may|can) only be set to|\bor unset\b"
    r"|cannot (both )?be (set|used|specified)|invalid (argument|field|param|role)|not a valid (field|param)"
    r"|['\"` ]instead\b|no longer|requires --(enable|jinja)|input should be|only user and assistant",
    re.IGNORECASE,
)


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_OMITTED: Final[dict[Change, tuple[str, Any]]] = {
    Change.NO_SEED: ("seed", None),
    Change.NO_TOP_P: ("top_p", None),
    Change.NO_STOP: ("stop", ()),
    Change.NO_REASONING_EFFORT: ("reasoning_effort", None),
    Change.NO_TEMPERATURE: ("temperature", None),
}
"""Fields of a request that a change omits, and their default values."""


def _setting(change: Change, names: str, title: str) -> Adaptation:
    """The adaptation that omits a setting."""
    field, default = _OMITTED[change]
    return Adaptation(
        change,
        _pattern(rf"(?<![\w])({names})(?![\w])"),
        lambda request, _streams: getattr(request, field) != default,
        f"does not accept the setting '{title}'; it was omitted.",
    )


ADAPTATIONS: Final[tuple[Adaptation, ...]] = (
    Adaptation(
        Change.NO_STREAM_OPTIONS,
        _pattern(r"stream_options|include_usage"),
        lambda _request, streams: streams,
        "does not count the tokens of a streamed reply on request; where it reports none, they are estimated.",
    ),
    Adaptation(
        Change.MAX_COMPLETION_TOKENS,
        _pattern(r"max_completion_tokens\W{1,3}instead|(?<!\w)max_tokens(?!\w)(?!.*max_completion_tokens)"),
        lambda request, _streams: request.max_tokens is not None,
        "expects `max_completion_tokens` instead of `max_tokens`.",
    ),
    Adaptation(
        Change.MAX_TOKENS,
        _pattern(r"max_completion_tokens(?!\W{1,3}instead)"),
        lambda request, _streams: request.max_tokens is not None,
        "expects `max_tokens` instead of `max_completion_tokens`.",
    ),
    _setting(Change.NO_SEED, "(random_)?seed", "Seed"),
    # Before the temperature: of two settings that exclude each other, the more common one stays.
    _setting(Change.NO_TOP_P, "top_?p|topp|p", "Top P"),
    _setting(Change.NO_STOP, "stop(_sequences)?", "Stop sequences"),
    # Before the reasoning effort: Claude accepts no other temperature while it thinks, and its error names both.
    _setting(Change.NO_TEMPERATURE, "temperature", "Temperature"),
    _setting(Change.NO_REASONING_EFFORT, "reasoning([_. ]effort)?|thinking|think(ing_?budget)?", "Reasoning effort"),
    Adaptation(
        Change.TOOLS_IN_WORDS,
        _pattern("tool|function[ _-]?call"),
        lambda request, _streams: bool(request.tools),
        "does not accept tools; they are described in the prompt instead.",
        needs_refusal_words=False,
    ),
    Adaptation(
        Change.JSON_OBJECT,
        _pattern("response[_ .]?format|json_?schema|schema|grammar|structured output"),
        lambda request, _streams: request.schema is not None,
        "does not accept a JSON Schema; it is part of the prompt instead.",
        needs_refusal_words=False,
    ),
    Adaptation(
        Change.SCHEMA_IN_WORDS,
        _pattern("response[_ .]?format|json_?(schema|object)|json mode|schema|grammar|structured output"),
        lambda request, _streams: request.schema is not None,
        "has no setting for a JSON reply; it is requested in the prompt instead.",
        needs_refusal_words=False,
    ),
    Adaptation(
        Change.JOINED_ROLES,
        _pattern("roles? must alternate|alternat(e|ing) .{0,40}role|consecutive .{0,40}(role|message)"),
        lambda request, _streams: any(_can_join(*pair) for pair in itertools.pairwise(request.messages)),
        "accepts no two messages of the same role in a row; they were joined.",
        needs_refusal_words=False,
    ),
    Adaptation(
        Change.NO_SYSTEM_ROLE,
        _pattern(
            r"system['\"`]?[ _-](role|message|prompt|instruction)|role\W{0,4}(of )?\W{0,2}system|developer instruction"
            r"|role.{0,60}system|only user and assistant|role: input should be|roles? must alternate"
        ),
        lambda request, _streams: any(message.role == "system" for message in request.messages),
        "accepts no system message; it is part of the first user message instead.",
        needs_refusal_words=False,
    ),
    Adaptation(
        Change.NO_STREAM,
        _pattern(r"(?<!\w)stream(ing|ed)?(?!\w)"),
        lambda _request, streams: streams,
        "does not stream; its replies arrive whole.",
    ),
)
"""All adaptations, in the order in which they are tried if an error text names several things."""


def next_change(
    failure: ModelError,
    words: str,
    request: Request,
    changes: Changes,
    *,
    streams: bool,
    among: Collection[Change] = tuple(Change),
) -> Change | None:
    """The change to try after a refusal; None if the request itself is at fault.

    Each change is made at most once, so a server that refuses everything is soon given up.

    Args:
        failure: The refusal.
        words: What the server said.
        request: The request as a node made it.
        changes: Changes that were made already.
        streams: Whether the reply was to be streamed.
        among: The changes that are possible.
    """
    is_bad_request = failure.kind is ModelErrorKind.BAD_REQUEST
    has_refusal_words = _REFUSAL_WORDS.search(words) is not None
    streams = streams and Change.NO_STREAM not in changes
    sent = apply_changes(request, changes)
    for adaptation in ADAPTATIONS:
        change = adaptation.change
        if change not in among or change in changes:
            continue
        if change is Change.JSON_OBJECT and Change.SCHEMA_IN_WORDS in changes:
            continue
        if not has_refusal_words and (adaptation.needs_refusal_words or not is_bad_request):
            continue
        if adaptation.affects(sent, streams) and adaptation.refused.search(words):
            return change
    return None


def change_warnings(server: str, request: Request, changes: Changes, *, streams: bool) -> tuple[str, ...]:
    """A warning for each change that affected a request."""
    warnings: list[str] = []
    for adaptation in ADAPTATIONS:
        change = adaptation.change
        if change not in changes or (change is Change.JSON_OBJECT and Change.SCHEMA_IN_WORDS in changes):
            continue
        others = tuple(other for other in changes if other is not change)
        if adaptation.affects(apply_changes(request, others), streams):
            warnings.append(f"{server} {adaptation.warning}")
    return tuple(warnings)


def apply_changes(request: Request, changes: Changes) -> Request:
    """Apply changes to a request."""
    request = replace(request, **dict(_OMITTED[change] for change in changes if change in _OMITTED))
    if Change.TOOLS_IN_WORDS in changes:
        request = describe_tools(request)
    if request.schema is not None and (Change.JSON_OBJECT in changes or Change.SCHEMA_IN_WORDS in changes):
        request = replace(request, messages=with_instruction(request.messages, request.schema))
    if Change.NO_SYSTEM_ROLE in changes:
        request = replace(request, messages=_without_system(request.messages))
    if Change.JOINED_ROLES in changes:
        request = replace(request, messages=_joined(request.messages))
    return request


def response_format(schema: dict[str, Value], changes: Changes) -> dict[str, Any] | None:
    """The parameter that requests a structured reply; None if the prompt alone does."""
    if Change.SCHEMA_IN_WORDS in changes:
        return None
    if Change.JSON_OBJECT in changes:
        return {"type": "json_object"}
    form = {"name": "reply", "schema": schema, "strict": is_strict(schema)}
    return {"type": "json_schema", "json_schema": form}


def is_strict(schema: Value) -> bool:
    """Whether OpenAI accepts the schema as strict: every object in it is closed and requires all its properties."""
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


def _without_system(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Turn system messages into the start of the next user message, or into user messages of their own."""
    made: list[Message] = []
    pending: list[str] = []
    for message in messages:
        if message.role == "system":
            pending.append(message.text)
            continue
        if pending and message.role == "user":
            made.append(replace(message, text="\n\n".join((*pending, message.text))))
        else:
            made += [Message("user", "\n\n".join(pending)), message] if pending else [message]
        pending.clear()
    if pending:
        made.append(Message("user", "\n\n".join(pending)))
    return tuple(made)


def _can_join(first: Message, second: Message) -> bool:
    is_plain = not (first.tool_calls or second.tool_calls or first.role == "tool")
    return is_plain and first.role == second.role


def _joined(messages: Iterable[Message]) -> tuple[Message, ...]:
    made: list[Message] = []
    for message in messages:
        if made and _can_join(made[-1], message):
            made[-1] = replace(message, text=f"{made[-1].text}\n\n{message.text}")
        else:
            made.append(message)
    return tuple(made)
