"""Tool calls in words, for models that know no other way, and the reading of what models write as arguments.

Pure functions on requests and texts. What a model writes is read tolerantly and is data, never anything else.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, cast

from engine.lenient_json import find_json, parse_lenient
from engine.models.protocol import Finish, Message, Reply, Request, ToolCall, ToolDefinition
from engine.values import TooDeepError, Value, compact_json

_MOST_READ: Final = 200_000
"""Characters of a reply in which calls are looked for."""

_MOST_CALLS: Final = 1000

_UNREADABLE: Final = "(nested too deep)"

_BARE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_./-]{0,99})(?:\s*\(\s*\))?")
_AROUND_BARE: Final = "` \t\r\n"

_NOT_ON_THE_WIRE: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ON_THE_WIRE: Final = 64


def read_arguments(text: str) -> dict[str, Value] | str:
    """Parse a call's arguments: the object, or the text itself where it is none. No text means no arguments."""
    if not text.strip():
        return {}
    value = _json_object(text)
    return cast("dict[str, Value]", value) if isinstance(value, dict) and _can_be_kept(value) else text


def _json_object(text: str) -> Any:
    """What a text of JSON in any dialect says, also where it says it in a string once more; None for other texts."""
    try:
        value = json.loads(text)
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        pass
    try:
        return parse_lenient(text)
    except ValueError:
        return None


def in_words(request: Request) -> Request:
    """The request without its tools: what they are, and all calls and results so far, told in plain messages."""
    if not request.tools:
        return request
    messages = [_plain(message, request.messages[:place]) for place, message in enumerate(request.messages)]
    words = _words(request.tools)
    if messages and messages[0].role == "system":
        messages[0] = replace(messages[0], text=f"{messages[0].text}\n\n{words}")
    else:
        messages.insert(0, Message("system", words))
    return replace(request, messages=tuple(messages), tools=())


def read_in_words(reply: Reply, request: Request) -> Reply:
    """The reply to a request that was told in words, with the calls that are written in its text."""
    calls = tuple(_written_calls(reply.text, {tool.name for tool in request.tools})) if request.tools else ()
    if not calls:
        return reply
    numbered = tuple(replace(call, id=f"call_{number}") for number, call in enumerate(calls, 1))
    finish = reply.finish if reply.finish is Finish.LENGTH else Finish.TOOL_CALLS
    return replace(reply, tool_calls=numbered, finish=finish)


def _words(tools: tuple[ToolDefinition, ...]) -> str:
    listed = "\n".join(
        f"- {tool.name}: {tool.description} Arguments: {compact_json(tool.parameters)}" for tool in tools
    )
    return (
        'You may call tools. To call one, answer with one JSON object, {"tool": NAME, "arguments": {…}}, and with '
        f"nothing else. You are told the result then. The tools:\n{listed}"
    )


def _plain(message: Message, earlier: tuple[Message, ...]) -> Message:
    if message.role == "assistant" and message.tool_calls:
        calls = "\n".join(compact_json({"tool": call.name, "arguments": call.arguments}) for call in message.tool_calls)
        return Message("assistant", f"{message.text}\n{calls}" if message.text else calls)
    if message.role == "tool":
        # The last of that id: a model without ids of its own has its calls numbered anew in each reply.
        calls = (call for said in reversed(earlier) for call in said.tool_calls)
        name = next((call.name for call in calls if call.id == message.tool_call_id), "the tool")
        return Message("user", f"Result of {name}:\n{message.text}")
    return message


def _written_calls(text: str, names: set[str]) -> Iterator[ToolCall]:
    """The calls written in a text: JSON objects that name a tool, else nothing but a tool's name."""
    found = False
    for value in _objects(text[:_MOST_READ]):
        call = _call_of(value, names)
        if call is not None:
            found = True
            yield call
    # What stands around it is cut off first: a pattern that allows for it goes over long white space again and again.
    bare = None if found else _BARE.fullmatch(text[:_MOST_READ].lstrip(_AROUND_BARE).rstrip(f"{_AROUND_BARE}."))
    if bare is not None and bare[1] in names:
        yield ToolCall("", bare[1], {})


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects in a text, and those in its lists; in any dialect, but none that is cut off."""
    values, _, _ = find_json(text)
    listed = (cast("list[Any]", value) if isinstance(value, list) else [value] for value in values)
    for value in itertools.islice(itertools.chain.from_iterable(listed), _MOST_CALLS):
        if isinstance(value, dict) and _can_be_kept(value):
            yield cast("dict[str, Any]", value)


def _call_of(value: dict[str, Any], names: set[str]) -> ToolCall | None:
    function = value.get("function")
    if isinstance(function, dict):
        return _call_of(cast("dict[str, Any]", function), names)
    name = value.get("tool", value.get("name", function))
    if not isinstance(name, str) or (name not in names and "tool" not in value):
        return None
    arguments: Any = next((value[key] for key in ("arguments", "parameters", "args") if key in value), "")
    if isinstance(arguments, dict):
        return ToolCall("", name, cast("dict[str, Value]", arguments))
    return ToolCall("", name, read_arguments(arguments) if isinstance(arguments, str) else json.dumps(arguments))


def _can_be_kept(value: Any) -> bool:
    """Whether a value that a model wrote can be written again: Python reads NaN and any depth."""
    try:
        compact_json(value)
    except (ValueError, TooDeepError):
        return False
    return True


def call_message(message: Message, tools: tuple[ToolDefinition, ...] = ()) -> dict[str, Any]:
    """A message of a request with these tools, as servers of the OpenAI kind read it."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        plain["content"] = message.text or None
        names = wire_names(tools)
        plain["tool_calls"] = [_sent_call(call, names) for call in message.tool_calls]
    return plain


def _sent_call(call: ToolCall, names: Mapping[str, str]) -> dict[str, Any]:
    # What could not be read is sent back as an object: some servers refuse a conversation with anything else in it.
    arguments: dict[str, Value] = call.arguments if isinstance(call.arguments, dict) else {"unreadable": call.arguments}
    return {
        "id": call.id,
        "type": "function",
        "function": {
            "name": names.get(call.name) or wire_name(call.name),
            "arguments": compact_json(arguments),
        },
    }


def wire_name(name: str) -> str:
    """A tool's name as such servers take it: at most 64 letters, digits, underscores and hyphens."""
    plain = _NOT_ON_THE_WIRE.sub("_", name) or "unnamed"
    return plain if len(plain) <= _LONGEST_ON_THE_WIRE else _unmistakable(name)


def _unmistakable(name: str) -> str:
    return f"{_NOT_ON_THE_WIRE.sub('_', name)[:55]}_{sha256(name.encode()).hexdigest()[:8]}"


def wire_names(tools: tuple[ToolDefinition, ...]) -> dict[str, str]:
    """What each tool of a request is called on the wire: no two alike, as `web/search` and `web_search` would be."""
    plain = {tool.name: wire_name(tool.name) for tool in tools}
    times = Counter(plain.values())
    return {name: sent if times[sent] == 1 or sent == name else _unmistakable(name) for name, sent in plain.items()}


def offered(tools: tuple[ToolDefinition, ...]) -> list[dict[str, Any]] | None:
    """Tools as such servers read them; None for none."""
    names = wire_names(tools)
    functions = [
        {"name": names[tool.name], "description": tool.description, "parameters": tool.parameters} for tool in tools
    ]
    return [{"type": "function", "function": function} for function in functions] or None


@dataclass(slots=True)
class PartialCalls:
    """The tool calls of a reply, sent whole or piece by piece; nothing in them is trusted."""

    _calls: list[list[str]] = field(default_factory=list[list[str]])
    _places: dict[int, int] = field(default_factory=dict[int, int])

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, sent: Any) -> None:
        """Add the `tool_calls` of a message or of a piece of one."""
        entries = cast("list[Any]", sent if isinstance(sent, list) else [sent])
        for place, call in enumerate(entries):
            function: Any = _member(call, "function")
            if isinstance(function, str):  # {"function": "look", "arguments": {}}
                name, arguments = function, _member(call, "arguments")
            else:
                source = call if function is None else function
                name, arguments = _member(source, "name"), _member(source, "arguments")
            if function is None and name is None and arguments is None:
                continue
            index = _member(call, "index")
            self._add(index if type(index) is int else place, _text(_member(call, "id")), _text(name), arguments)

    def _add(self, index: int, call_id: str, name: str, arguments: Any) -> None:
        if len(self._calls) >= _MOST_CALLS:
            return
        parts = self._parts(index, call_id, name)
        # Id and name come once, whole; the arguments come in pieces.
        parts[0] = parts[0] or call_id
        parts[1] = parts[1] or name
        written = _written(arguments)
        if not (_is_object(parts[2]) and _is_object(written)):  # sent once more, whole
            parts[2] += written

    def _parts(self, index: int, call_id: str, name: str) -> list[str]:
        """What has come of the call with that index; some servers give all calls the same one."""
        place = self._places.get(index)
        known = None if place is None else self._calls[place]
        if known is None or (name and _is_another(known, call_id, name)):
            self._places[index] = len(self._calls)
            known = ["", "", ""]
            self._calls.append(known)
        return known

    def whole(self, tools: tuple[ToolDefinition, ...]) -> tuple[ToolCall, ...]:
        """All of them, each with an id of its own, called as the request calls its tools."""
        names = {sent: name for name, sent in wire_names(tools).items()}
        ids = _unique_ids([call_id for call_id, _, _ in self._calls])
        return tuple(
            ToolCall(call_id, names.get(name, name), read_arguments(arguments))
            for call_id, (_, name, arguments) in zip(ids, self._calls, strict=True)
        )


def _is_another(known: list[str], call_id: str, name: str) -> bool:
    """Whether a piece with a name begins another call than the one known under its index."""
    known_id, known_name, arguments = known
    if call_id and known_id and call_id != known_id:
        return True
    same_id = bool(call_id) and call_id == known_id
    # A different name, or without an id the same one once the arguments are complete.
    return bool(known_name) and (name != known_name or (not same_id and _is_object(arguments)))


def _is_object(text: str) -> bool:
    return text.lstrip().startswith("{") and isinstance(_json_object(text), dict)


def _unique_ids(ids: list[str]) -> list[str]:
    """The ids with a number for each that is empty, and an addition for each that comes again."""
    unique: list[str] = []
    used = set(ids)
    for number, call_id in enumerate(ids, 1):
        chosen = call_id
        if not call_id or call_id in unique:
            stem = f"{call_id}_" if call_id else "call_"
            chosen = next(new for count in itertools.count(number) if (new := f"{stem}{count}") not in used)
            used.add(chosen)
        unique.append(chosen)
    return unique


def _member(value: Any, name: str) -> Any:
    """A member of an object that a server or a library sent."""
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else getattr(value, name, None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def _written(arguments: Any) -> str:
    """Arguments as the text of JSON, in which most servers send them."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):
        return _UNREADABLE
