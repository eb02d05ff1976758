"""Tool calls: conversion to and from OpenAI's format, and to and from plain text for models without tools.

Pure functions on requests and texts. What a model writes is parsed tolerantly and is data, never anything else.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, cast

from engine.lenient_json import find_json, parse_lenient
from engine.models.protocol import Finish, Message, Reply, Request, ToolCall, ToolDefinition, with_system_text
from engine.values import TooDeepError, Value, compact_json, map_texts

_MAX_PARSED: Final = 200_000
"""Number of characters of a reply that are searched for calls."""

_MAX_CALLS: Final = 1000
_LONE_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_./-]{0,99})(?:\s*\(\s*\))?")
_AROUND_NAME: Final = "` \t\r\n"

_INVALID_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_LENGTH: Final = 64


def parse_arguments(text: str) -> dict[str, Value] | str:
    """Parse a call's arguments: the object, or the text itself if it is not an object. Empty means no arguments."""
    if not text.strip():
        return {}
    value = _json_object(text)
    return cast("dict[str, Value]", value) if isinstance(value, dict) and _is_serializable(value) else text


def _json_object(text: str) -> Any:
    """Parse JSON in any dialect, also if it is encoded twice; None for other texts."""
    try:
        value = json.loads(text)
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        pass
    try:
        return parse_lenient(text)
    except ValueError:
        return None


def describe_tools(request: Request) -> Request:
    """The request without tools: messages describe them, and all calls and results so far."""
    if not request.tools:
        return request
    messages = tuple(_plain(message, request.messages[:index]) for index, message in enumerate(request.messages))
    return replace(request, messages=with_system_text(messages, _description(request.tools)), tools=())


def parse_written_calls(reply: Reply, request: Request) -> Reply:
    """The reply to a request that `describe_tools` changed, with the calls written in its text."""
    calls = tuple(_written_calls(reply.text, {tool.name for tool in request.tools})) if request.tools else ()
    if not calls:
        return reply
    numbered = tuple(replace(call, id=f"call_{number}") for number, call in enumerate(calls, 1))
    finish = reply.finish if reply.finish is Finish.LENGTH else Finish.TOOL_CALLS
    return replace(reply, tool_calls=numbered, finish=finish)


def _description(tools: tuple[ToolDefinition, ...]) -> str:
    listed = "\n".join(
        f"- {tool.name}: {tool.description} Arguments: {compact_json(tool.parameters)}" for tool in tools
    )
    return (
        'You may call tools. To call one, answer with one JSON object, {"tool": NAME, "arguments": {…}}, and with '
        f"nothing else. You then receive the result. The tools:\n{listed}"
    )


def _plain(message: Message, earlier: tuple[Message, ...]) -> Message:
    if message.role == "assistant" and message.tool_calls:
        calls = "\n".join(compact_json({"tool": call.name, "arguments": call.arguments}) for call in message.tool_calls)
        return Message("assistant", f"{message.text}\n{calls}" if message.text else calls)
    if message.role == "tool":
        # The last call with that id: calls of a model without ids are numbered from 1 in each reply.
        calls = (call for other in reversed(earlier) for call in other.tool_calls)
        name = next((call.name for call in calls if call.id == message.tool_call_id), "the tool")
        return Message("user", f"Result of {name}:\n{message.text}")
    return message


def _written_calls(text: str, names: set[str]) -> Iterator[ToolCall]:
    """The calls written in a text: JSON objects that name a tool, else a tool's name alone."""
    found = False
    for value in _objects(text[:_MAX_PARSED]):
        call = _call_of(value, names)
        if call is not None:
            found = True
            yield call
    # Strip first: a pattern that allows for white space would scan long white space repeatedly.
    lone = None if found else _LONE_NAME.fullmatch(text[:_MAX_PARSED].lstrip(_AROUND_NAME).rstrip(f"{_AROUND_NAME}."))
    if lone is not None and lone[1] in names:
        yield ToolCall("", lone[1], {})


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost complete JSON objects in a text, in any dialect, and those in its lists."""
    values, _, _ = find_json(text)
    listed = (cast("list[Any]", value) if isinstance(value, list) else [value] for value in values)
    for value in itertools.islice(itertools.chain.from_iterable(listed), _MAX_CALLS):
        if isinstance(value, dict) and _is_serializable(value):
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
    return ToolCall("", name, parse_arguments(arguments) if isinstance(arguments, str) else json.dumps(arguments))


def _is_serializable(value: Any) -> bool:
    """Whether a model's value can be serialized: Python parses NaN and any depth."""
    try:
        compact_json(value)
    except (ValueError, TooDeepError):
        return False
    return True


def openai_message(message: Message, tools: tuple[ToolDefinition, ...] = ()) -> dict[str, Any]:
    """A message of a request with these tools, in OpenAI's format."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        plain["content"] = message.text or None
        names = wire_names(tools)
        plain["tool_calls"] = [_openai_call(call, names) for call in message.tool_calls]
    return plain


def _openai_call(call: ToolCall, names: Mapping[str, str]) -> dict[str, Any]:
    # Arguments that could not be parsed are sent as an object: some servers refuse anything else.
    arguments: dict[str, Value] = call.arguments if isinstance(call.arguments, dict) else {"unreadable": call.arguments}
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": names.get(call.name) or wire_name(call.name), "arguments": compact_json(arguments)},
    }


def wire_name(name: str) -> str:
    """A tool's name as servers accept it: at most 64 letters, digits, underscores and hyphens."""
    plain = _INVALID_IN_NAME.sub("_", name) or "unnamed"
    return plain if len(plain) <= _MAX_NAME_LENGTH else _hashed(name)


def _hashed(name: str) -> str:
    return f"{_INVALID_IN_NAME.sub('_', name)[:55]}_{sha256(name.encode()).hexdigest()[:8]}"


def wire_names(tools: tuple[ToolDefinition, ...]) -> dict[str, str]:
    """A distinct name for each tool of a request, also for `web/search` and `web_search`."""
    plain = {tool.name: wire_name(tool.name) for tool in tools}
    times = Counter(plain.values())
    return {name: sent if times[sent] == 1 or sent == name else _hashed(name) for name, sent in plain.items()}


def openai_tools(tools: tuple[ToolDefinition, ...]) -> list[dict[str, Any]] | None:
    """Tools in OpenAI's format; None without tools."""
    names = wire_names(tools)
    functions = [
        {"name": names[tool.name], "description": tool.description, "parameters": tool.parameters} for tool in tools
    ]
    return [{"type": "function", "function": function} for function in functions] or None


@dataclass(slots=True)
class PartialCalls:
    """The tool calls of a reply that arrives whole or in chunks; nothing in them is trusted."""

    _calls: list[list[str]] = field(default_factory=list[list[str]])
    _positions: dict[int, int] = field(default_factory=dict[int, int])

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, sent: Any) -> None:
        """Add the `tool_calls` of a message or a chunk."""
        entries = cast("list[Any]", sent if isinstance(sent, list) else [sent])
        for position, call in enumerate(entries):
            function: Any = _member(call, "function")
            if isinstance(function, str):  # {"function": "look", "arguments": {}}
                name, arguments = function, _member(call, "arguments")
            else:
                source = call if function is None else function
                name, arguments = _member(source, "name"), _member(source, "arguments")
            if function is None and name is None and arguments is None:
                continue
            index = _member(call, "index")
            self._add(index if type(index) is int else position, _text(_member(call, "id")), _text(name), arguments)

    def _add(self, index: int, call_id: str, name: str, arguments: Any) -> None:
        if len(self._calls) >= _MAX_CALLS:
            return
        parts = self._parts(index, call_id, name)
        # Id and name arrive once; the arguments arrive in pieces.
        parts[0] = parts[0] or call_id
        parts[1] = parts[1] or name
        piece = _argument_text(arguments)
        if not (_is_object(parts[2]) and _is_object(piece)):  # a complete repetition
            parts[2] += piece

    def _parts(self, index: int, call_id: str, name: str) -> list[str]:
        """The parts so far of the call with that index; some servers give all calls the same one."""
        position = self._positions.get(index)
        known = None if position is None else self._calls[position]
        if known is None or (name and _is_another(known, call_id, name)):
            self._positions[index] = len(self._calls)
            known = ["", "", ""]
            self._calls.append(known)
        return known

    def complete(self, tools: tuple[ToolDefinition, ...], clean: Callable[[str], str] = str) -> tuple[ToolCall, ...]:
        """All calls, with distinct ids, the tools' names in the request, and every text cleaned."""
        names = {sent: name for name, sent in wire_names(tools).items()}
        ids = _unique_ids([call_id for call_id, _, _ in self._calls])
        return tuple(
            ToolCall(
                clean(call_id),
                clean(names.get(name, name)),
                cast("dict[str, Value] | str", map_texts(parse_arguments(arguments), clean)),
            )
            for call_id, (_, name, arguments) in zip(ids, self._calls, strict=True)
        )


def _is_another(known: list[str], call_id: str, name: str) -> bool:
    """Whether a chunk with a name starts another call than the known one with its index."""
    known_id, known_name, arguments = known
    if call_id and known_id and call_id != known_id:
        return True
    same_id = bool(call_id) and call_id == known_id
    # Another name, or without an id the same name after complete arguments.
    return bool(known_name) and (name != known_name or (not same_id and _is_object(arguments)))


def _is_object(text: str) -> bool:
    return text.lstrip().startswith("{") and isinstance(_json_object(text), dict)


def _unique_ids(ids: list[str]) -> list[str]:
    """The ids, with a number for each empty one and a suffix for each duplicate."""
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
    """A member of an object from a server or a library."""
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else getattr(value, name, None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def _argument_text(arguments: Any) -> str:
    """Arguments as JSON text, which most servers send."""
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):
        return "(nested too deep)"
