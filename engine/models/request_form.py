"""The form of a request, fitted to what a server refuses: one adaptation for each thing that some server does not take.

A server that refuses a setting, a role or a format is asked once more without it. What worked is remembered for the
model and reported as a warning. Pure functions on requests and texts; nothing is sent here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from engine.models.base import Message, Request
from engine.models.litellm_errors import Refusal
from engine.models.structured_output import SchemaMode, with_instruction
from engine.models.tool_calls import in_words


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
