"""Events as JSON arrays and back, without loss.

An event is stored as the number of its type, the four things that all events have, and an array of its own fields in
their order. Old arrays may be shorter than today's: fields are only ever added at the end, with a default. What becomes
of the values inside an event is decided by the caller (`put`, `get`); this module knows of no database.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeGuard, cast, get_args

from engine import events
from engine.events import AnyEvent
from engine.models.protocol import Finish, Message, Reply, Request, ToolCall, ToolDefinition, Usage
from engine.nodes.spec import ModelCall

Put = Callable[[Any, Any], Any]
"""Makes of a value (a text, a list, an object…) and its place in the event what stands for it in the array."""

Get = Callable[[Any], Any]
"""The reverse of `Put`."""

Place = Any
"""Where in an event a value stands; values in the same place of several events tend to resemble each other."""

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
"""The number of each type of event. Numbers stand in files: never change one, never use one again."""

assert set(KIND_CODES) == set(get_args(AnyEvent))

KINDS: Final = {code: kind for kind, code in KIND_CODES.items()}
"""The type of event of each number."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """How one field of an event is written and read."""

    name: str
    encode: Callable[[Any, Put, Place], Any]
    decode: Callable[[Any, Get], Any]


def encode_fields(event: AnyEvent, put: Put) -> list[Any]:
    """The event's own fields as an array for JSON."""
    return [field.encode(getattr(event, field.name), put, (field.name,)) for field in _FIELDS[type(event)]]


def field_index(kind: type[AnyEvent], name: str) -> int:
    """Where in the array that `encode_fields` makes of such an event a field stands."""
    return [field.name for field in _FIELDS[kind]].index(name)


def decode_event(
    kind: type[AnyEvent], run_id: str, seq: int, time: float, path: str, array: list[Any], get: Get
) -> AnyEvent:
    """The event that `encode_fields` made that array of.

    Args:
        kind: Its type.
        run_id: Its run.
        seq: Its number there.
        time: When it was told.
        path: Where.
        array: Its own fields.
        get: Gives the values back.
    """
    fields = [field.decode(item, get) for field, item in zip(_FIELDS[kind], array, strict=False)]
    return kind(run_id, seq, time, path, *fields)


def encode_reply(reply: Reply, put: Put, place: Place) -> list[Any]:
    """A model's reply as an array."""
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
    """The reply that `encode_reply` made that array of."""
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


def _encode_value(value: Any, put: Put, place: Place) -> Any:
    return put(value, place)


def _decode_value(value: Any, get: Get) -> Any:
    return get(value)


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


def _encode_optional_request(request: Request | None, put: Put, place: Place) -> list[Any] | None:
    return None if request is None else _encode_request(request, put, place)


def _encode_tools(request: Request, put: Put, place: Place) -> list[Any]:
    """What only a request with tools has: the tools, and by message its calls and the call that it answers."""
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
    """The tools of a request; its messages get their parts of `_encode_tools`."""
    if not more:
        return ()
    tools, parts = more
    for index, calls, call_id in cast("list[list[Any]]", parts):
        place = int(index)  # said for the type checker, which cannot know it
        messages[place] = dataclasses.replace(
            messages[place], tool_calls=_decode_tool_calls(calls, get), tool_call_id=get(call_id)
        )
    # A preview cuts long parameters to a text.
    got = [get(part) for part in tools]
    return tuple(
        ToolDefinition(got[index], got[index + 1], _object_or_empty(got[index + 2])) for index in range(0, len(got), 3)
    )


def _object_or_empty(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


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
    # A preview cuts a long schema to a text, which no request can have.
    value = get(stored_schema)
    schema = cast(dict[str, Any], value) if isinstance(value, dict) else None
    extra = cast(dict[str, Any], value) if isinstance(value := get(extra), dict) else None
    texts = _decode_texts(stop, get)
    return Request(
        tuple(messages), temperature, max_tokens, schema, seed, get(path), tools, top_p, texts, get(effort), extra
    )


def _decode_optional_request(array: list[Any] | None, get: Get) -> Request | None:
    return None if array is None else _decode_request(array, get)


def _encode_calls(calls: tuple[ModelCall, ...], put: Put, place: Place) -> list[Any]:
    return [_encode_call(call, put, ("call",)) for call in calls] if calls else []


def _decode_calls(calls: list[Any], get: Get) -> tuple[ModelCall, ...]:
    return tuple(_decode_call(call, get) for call in calls)


_AS_VALUE: Final = (_encode_value, _decode_value)
_AS_PORTS: Final = (_encode_ports, _decode_ports)
_AS_TEXTS: Final = (_encode_texts, _decode_texts)
# By the fields' names, which mean the same in every event. What is not named here is a value.
_FORMS: Final[dict[str, tuple[Callable[[Any, Put, Place], Any], Callable[[Any, Get], Any]]]] = {
    **dict.fromkeys(("inputs", "outputs", "edits"), _AS_PORTS),
    **dict.fromkeys(("models", "choices", "warnings", "strategies", "state_order"), _AS_TEXTS),
    "usage": (_encode_usage, _decode_usage),
    "call": (_encode_call, _decode_call),
    "calls": (_encode_calls, _decode_calls),
    "request": (_encode_optional_request, _decode_optional_request),
}
_COMMON: Final = frozenset({"run_id", "seq", "time", "path"})
_FIELDS: Final[dict[type[AnyEvent], tuple[_Field, ...]]] = {
    kind: tuple(
        _Field(field.name, *_FORMS.get(field.name, _AS_VALUE))
        for field in dataclasses.fields(kind)
        if field.name not in _COMMON
    )
    for kind in KIND_CODES
}


Opener = Callable[[Any], Any]
"""Makes of what is stored for a value the value itself: at least the start of a text, one level of a list or object."""


def cut_text(text: str, limit: int) -> str:
    """The text, or its first `limit` characters and "…"."""
    return text if len(text) <= limit else text[:limit] + "…"


def cut_value(value: Any, limit: int) -> Any:
    """The value; a long text cut, a list or object with long JSON as the cut text of it."""
    if isinstance(value, str):
        return cut_text(value, limit)
    if is_container(value):
        start = json_start(value, limit + 1, _as_it_is)
        return value if len(start) <= limit else cut_text(start, limit)
    return value


def cut_event(event: AnyEvent, limit: int) -> AnyEvent:
    """The event with all values in it cut."""
    fields = encode_fields(event, lambda value, _place: value)
    return decode_event(
        type(event), event.run_id, event.seq, event.time, event.path, fields, lambda value: cut_value(value, limit)
    )


def json_start(value: Any, length: int, opener: Opener) -> str:
    """The first `length` characters of the compact JSON, keys sorted; no more of the value is looked at than needed."""
    pieces: list[str] = []
    written = 0
    for piece in _json_pieces(value, opener):
        pieces.append(piece)
        written += len(piece)
        if written >= length:
            break
    return "".join(pieces)[:length]


def is_container(value: Any) -> TypeGuard[list[Any] | dict[str, Any]]:
    """Whether it is a list or an object."""
    return isinstance(value, (list, dict))


def _as_it_is(value: Any) -> Any:
    return value


def _json_pieces(root: Any, opener: Opener) -> Iterator[str]:
    """The JSON in pieces; nesting is kept on a stack of its own, because values may be nested deeply."""
    value = opener(root)
    if not is_container(value):
        yield _scalar(value)
        return
    stack = [_Level(value)]
    yield stack[0].opening
    while stack:
        level = stack[-1]
        for label, item in level.items:
            yield label
            child = opener(item)
            if is_container(child):
                stack.append(_Level(child))
                yield stack[-1].opening
                break
            yield _scalar(child)
        else:
            yield level.closing
            stack.pop()


class _Level:
    """A list or object that is being written: what is still to come, each with what stands before it."""

    def __init__(self, value: list[Any] | dict[str, Any]) -> None:
        if isinstance(value, list):
            self.opening, self.closing, self.items = "[", "]", _list_items(value)
        else:
            self.opening, self.closing, self.items = "{", "}", _object_items(value)


def _list_items(value: list[Any]) -> Iterator[tuple[str, Any]]:
    for number, item in enumerate(value):
        yield "," if number else "", item


def _object_items(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for number, key in enumerate(sorted(value)):
        yield f"{',' if number else ''}{_scalar(key)}:", value[key]


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
