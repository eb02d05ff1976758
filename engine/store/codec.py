"""Codec of events: JSON arrays without loss, and previews with truncated values.

An event is stored as the number of its type, the four common fields, and an array of its own fields in order. Old
arrays may be shorter: fields are only added at the end, with a default. The caller encodes the values inside an event
(`Put`, `Get`), so this module is independent of the database.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any, Final, TypeGuard, cast, get_args

from engine import events
from engine.events import AnyEvent
from engine.models.protocol import Finish, Message, ModelCall, Reply, Request, ToolCall, ToolDefinition, Usage

Put = Callable[[Any, Any], Any]
"""Encodes a value (a text, a list, an object…) at a place in the event."""

Get = Callable[[Any], Any]
"""Decodes a value: the inverse of `Put`."""

Place = Any
"""Place of a value in an event. Values in the same place of several events tend to be similar."""

KIND_CODES: Final[dict[type[AnyEvent], int]] = {
    events.RunStarted: 1,
    events.NodeStarted: 2,
    events.NodeStreaming: 3,
    events.NodeCalling: 4,
    events.NodeCalled: 5,
    events.NodeWaiting: 6,
    events.NodeAnswered: 7,
    events.NodeRetrying: 8,
    events.NodeCompleted: 9,
    events.NodeSkipped: 10,
    events.NodeFailed: 11,
    events.LoopIterationStarted: 12,
    events.LoopIterationCompleted: 13,
    events.LoopCompleted: 14,
    events.BudgetWarning: 15,
    events.RunNotKept: 16,
    events.RunPaused: 17,
    events.RunResumed: 18,
    events.RunCompleted: 19,
    events.RunFailed: 20,
    events.RunCancelled: 21,
    events.NodeToolCalled: 22,
    events.NotePosted: 23,
    events.NodeNoted: 24,
    events.NodeToolCalling: 25,
    events.LoopStarted: 26,
}
"""Number of each event type. Numbers are stored in files: never change or reuse one."""

assert set(KIND_CODES) == set(get_args(AnyEvent))

KINDS: Final = {code: kind for kind, code in KIND_CODES.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    encode: Callable[[Any, Put, Place], Any]
    decode: Callable[[Any, Get], Any]


def encode_fields(event: AnyEvent, put: Put) -> list[Any]:
    """Encode the event's own fields as an array for JSON."""
    return [field.encode(getattr(event, field.name), put, (field.name,)) for field in _FIELDS[type(event)]]


def field_index(kind: type[AnyEvent], name: str) -> int:
    """Return the index of a field in the output of `encode_fields`."""
    return [field.name for field in _FIELDS[kind]].index(name)


def decode_event(
    kind: type[AnyEvent], run_id: str, seq: int, time: float, path: str, array: list[Any], get: Get
) -> AnyEvent:
    """Decode an event from the output of `encode_fields`.

    Args:
        kind: Its type.
        run_id: Its run.
        seq: Its number in the run.
        time: Its time.
        path: Its path.
        array: Its own fields.
        get: Decodes the values.
    """
    fields = [field.decode(item, get) for field, item in zip(_FIELDS[kind], array, strict=False)]
    return kind(run_id, seq, time, path, *fields)


def encode_reply(reply: Reply, put: Put, place: Place) -> list[Any]:
    """Encode a model's reply as an array."""
    usage = _encode_usage(reply.usage, put, place)
    head = [put(reply.text, (*place, "reply")), reply.finish.value, usage, put(reply.model, place), reply.cost_usd]
    beside = (reply.reasoning, reply.refusal, reply.warnings)
    if not reply.tool_calls and not any(beside):
        return head
    head.append(_encode_tool_calls(reply.tool_calls, put, place))
    if any(beside):
        head += [put(reply.reasoning, (*place, "reasoning")), put(reply.refusal, (*place, "refusal"))]
        head.append(_encode_texts(reply.warnings, put, (*place, "warning")))
    return head


def decode_reply(array: list[Any], get: Get) -> Reply:
    """Decode a reply from the output of `encode_reply`."""
    text, finish, usage, model, cost_usd, *more = array
    calls, reasoning, refusal, warnings = more + [[], "", "", []][len(more) :]
    return Reply(
        get(text),
        Finish(finish),
        _decode_usage(usage, get) or Usage(),
        get(model),
        cost_usd,
        _decode_tool_calls(calls, get),
        get(reasoning),
        get(refusal),
        _decode_texts(warnings, get),
    )


def _encode_ports(ports: dict[str, Any], put: Put, place: Place) -> list[Any]:
    return [item for name, value in ports.items() for item in (put(name, place), put(value, (*place, name)))]


def _decode_ports(flat: list[Any], get: Get) -> dict[str, Any]:
    return {get(flat[index]): get(flat[index + 1]) for index in range(0, len(flat), 2)}


def _encode_texts(texts: tuple[str, ...], put: Put, place: Place) -> list[Any]:
    return [put(text, place) for text in texts]


def _decode_texts(texts: list[Any], get: Get) -> tuple[str, ...]:
    return tuple(get(text) for text in texts)


def _encode_usage(usage: Usage | None, _put: Put, _place: Place) -> list[Any] | None:
    return None if usage is None else [usage.input_tokens, usage.output_tokens, usage.exact]


def _decode_usage(array: list[Any] | None, _get: Get) -> Usage | None:
    return None if array is None else Usage(*array)


def _encode_call(call: ModelCall, put: Put, place: Place) -> list[Any]:
    messages, settings, *tools = _encode_request(call.request, put, place)
    reply = encode_reply(call.reply, put, place)
    return [put(call.model, place), messages, settings, reply, call.cost_usd, call.duration_s, *tools]


def _encode_request(request: Request, put: Put, place: Place) -> list[Any]:
    messages = [
        item
        for index, message in enumerate(request.messages)
        for item in (message.role, put(message.text, (*place, index)))
    ]
    schema = put(request.schema, (*place, "schema"))
    settings = [request.temperature, request.max_tokens, schema, request.seed, put(request.path, place)]
    sampling = (request.top_p, request.stop, request.reasoning_effort, request.extra_parameters)
    if sampling != (None, (), None, None):
        extra = put(request.extra_parameters, (*place, "extra"))
        effort = put(request.reasoning_effort, place)
        settings += [request.top_p, _encode_texts(request.stop, put, place), effort, extra]
    with_tools = request.tools or any(message.tool_calls or message.tool_call_id for message in request.messages)
    return [messages, settings, *_encode_tools(request, put, place)] if with_tools else [messages, settings]


def _encode_tools(request: Request, put: Put, place: Place) -> list[Any]:
    """Encode what only a request with tools has: the tools, and by message its calls and the call that it answers."""
    tools = [
        put(part, (*place, "tool")) for tool in request.tools for part in (tool.name, tool.description, tool.parameters)
    ]
    parts: list[Any] = [
        [index, _encode_tool_calls(message.tool_calls, put, place), put(message.tool_call_id, place)]
        for index, message in enumerate(request.messages)
        if message.tool_calls or message.tool_call_id
    ]
    return [tools, parts]


def _encode_tool_calls(calls: tuple[ToolCall, ...], put: Put, place: Place) -> list[Any]:
    return [put(part, (*place, "tool_call")) for call in calls for part in (call.id, call.name, call.arguments)]


def _decode_tool_calls(flat: list[Any], get: Get) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(*(get(part) for part in flat[index : index + 3])) for index in range(0, len(flat), 3))


def _decode_tools(messages: list[Message], more: list[Any], get: Get) -> tuple[ToolDefinition, ...]:
    if not more:
        return ()
    tools, parts = more
    for index, calls, call_id in cast("list[list[Any]]", parts):
        place = int(index)  # for the type checker
        messages[place] = dataclasses.replace(
            messages[place], tool_calls=_decode_tool_calls(calls, get), tool_call_id=get(call_id)
        )
    # A preview truncates long parameters to a text.
    parts = [get(part) for part in tools]
    return tuple(
        ToolDefinition(name, description, _object(parameters) or {})
        for name, description, parameters in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    )


def _object(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _decode_call(array: list[Any], get: Get) -> ModelCall:
    model, messages, settings, reply, cost_usd, duration_s, *tools = array
    request = _decode_request([messages, settings, *tools], get)
    return ModelCall(get(model), request, decode_reply(reply, get), cost_usd, duration_s)


def _decode_request(array: list[Any], get: Get) -> Request:
    flat, settings, *more = array
    temperature, max_tokens, stored_schema, seed, path, *sampling = settings
    top_p, stop, effort, extra = sampling or [None, [], None, None]
    messages = [Message(flat[index], get(flat[index + 1])) for index in range(0, len(flat), 2)]
    tools = _decode_tools(messages, more, get)
    # A preview truncates a long schema to a text, which no request can have.
    return Request(
        tuple(messages),
        temperature,
        max_tokens,
        _object(get(stored_schema)),
        seed,
        get(path),
        tools,
        top_p,
        _decode_texts(stop, get),
        get(effort),
        _object(get(extra)),
    )


def _encode_calls(calls: tuple[ModelCall, ...], put: Put, place: Place) -> list[Any]:
    return [_encode_call(call, put, ("call",)) for call in calls]


def _decode_calls(calls: list[Any], get: Get) -> tuple[ModelCall, ...]:
    return tuple(_decode_call(call, get) for call in calls)


_Codec = tuple[Callable[[Any, Put, Place], Any], Callable[[Any, Get], Any]]
_VALUE_CODEC: Final[_Codec] = (lambda value, put, place: put(value, place), lambda value, get: get(value))
# By field names, which mean the same in every event. All other fields are values.
_CODECS: Final[dict[str, _Codec]] = {
    **dict.fromkeys(("inputs", "outputs", "edits"), (_encode_ports, _decode_ports)),
    **dict.fromkeys(("models", "choices", "warnings", "strategies", "state_order"), (_encode_texts, _decode_texts)),
    "usage": (_encode_usage, _decode_usage),
    "call": (_encode_call, _decode_call),
    "calls": (_encode_calls, _decode_calls),
    "request": (
        lambda request, put, place: None if request is None else _encode_request(request, put, place),
        lambda array, get: None if array is None else _decode_request(array, get),
    ),
}
_COMMON: Final = frozenset({"run_id", "seq", "time", "path"})
_FIELDS: Final[dict[type[AnyEvent], tuple[_Field, ...]]] = {
    kind: tuple(
        _Field(field.name, *_CODECS.get(field.name, _VALUE_CODEC))
        for field in dataclasses.fields(kind)
        if field.name not in _COMMON
    )
    for kind in KIND_CODES
}


Opener = Callable[[Any], Any]
"""Decodes a stored value: at least the start of a text, one level of a list or object."""


def truncate_text(text: str, limit: int) -> str:
    """Truncate a text to `limit` characters and "…"."""
    return text if len(text) <= limit else text[:limit] + "…"


def json_start(value: Any, length: int, opener: Opener, *, spaced: bool = False) -> str:
    """Return the first characters of a value's JSON. Decodes no more of the value than needed.

    Args:
        value: The stored value.
        length: Number of characters.
        opener: Decodes a value in it.
        spaced: Whether to put spaces after commas and colons and keep the order of keys, instead of compact, sorted
            JSON.
    """
    pieces: list[str] = []
    written = 0
    for piece in _json_pieces(value, opener, spaced):
        pieces.append(piece)
        written += len(piece)
        if written >= length:
            break
    return "".join(pieces)[:length]


def is_container(value: Any) -> TypeGuard[list[Any] | dict[str, Any]]:
    """Return whether a value is a list or an object."""
    return isinstance(value, (list, dict))


def _json_pieces(root: Any, opener: Opener, spaced: bool) -> Iterator[str]:
    """Yield the JSON in pieces. Uses a stack instead of recursion, because values may be nested deeply."""
    value = opener(root)
    if not is_container(value):
        yield _scalar(value)
        return
    stack = [_Level(value, spaced)]
    yield stack[0].opening
    while stack:
        level = stack[-1]
        for label, item in level.items:
            yield label
            child = opener(item)
            if is_container(child):
                stack.append(_Level(child, spaced))
                yield stack[-1].opening
                break
            yield _scalar(child)
        else:
            yield level.closing
            stack.pop()


class _Level:
    """A list or object that is being written: its remaining items, each with the text before it."""

    def __init__(self, value: list[Any] | dict[str, Any], spaced: bool) -> None:
        comma, colon = (", ", ": ") if spaced else (",", ":")
        labels = chain([""], repeat(comma))
        if isinstance(value, list):
            self.opening, self.closing, self.items = "[", "]", zip(labels, value, strict=False)
        else:
            keys = iter(value) if spaced else sorted(value)
            self.opening, self.closing = "{", "}"
            self.items = (
                (f"{label}{_scalar(key)}{colon}", value[key]) for label, key in zip(labels, keys, strict=False)
            )


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
