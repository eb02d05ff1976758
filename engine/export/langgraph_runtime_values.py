"""Runtime of exported LangGraph modules: values, ports and expressions.

The export copies the functions that a workflow uses into its module, which then needs nothing of Loopwright: only
the standard library and the other runtime functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

State = dict[str, Any]
Update = dict[str, Any]
Step = Callable[[State], Update]

NOTHING: Any = object()
"""The value of a port that no live value has reached."""


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Merge an update into the state, key by key."""
    return {**old, **new}


def node_outputs(node: str, ports: dict[str, Any], key: str = "") -> Update:
    """The update for a node's outputs by port; a missing port is dead. `key` names the output in the state."""
    named = {"_named": {key: ports.get("output")}} if key else {}
    return {"_values": {node: ports}, **named}


def skipped(node: str) -> Update:
    """The update for a node that did not run."""
    return {"_values": {node: {}}}


def port_value(state: State, sources: Sequence[str]) -> Any:
    """The value at a port: one live value unchanged, several texts joined, several other values as a list."""
    live: list[Any] = []
    for source in sources:
        node, _, port = source.partition(".")
        ports = state["_values"].get(node, {})
        if port in ports:
            live.append(ports[port])
    if len(live) <= 1:
        return live[0] if live else NOTHING
    return "\n\n".join(live) if all(isinstance(value, str) for value in live) else live


def node_inputs(
    state: State,
    required: Mapping[str, Sequence[str]],
    optional: Mapping[str, Sequence[str]] | None = None,
    blank: Sequence[str] = (),
    convert: Mapping[str, str] | None = None,
) -> dict[str, Any] | None:
    """A node's inputs by port; None if it is skipped because a required port has no live value."""
    inputs: dict[str, Any] = {}
    for port, sources in {**required, **(optional or {})}.items():
        value = port_value(state, sources)
        if value is not NOTHING:
            inputs[port] = as_type(value, (convert or {}).get(port, "any"))
        elif port in required:
            return None
    if not inputs and (required or optional):
        return None
    return {**dict.fromkeys(blank), **inputs}


def as_type(value: Any, kind: str) -> Any:
    """Convert a value to the type of a port: JSON to text, and text to JSON."""
    if kind == "any" or value is None:
        return value
    if kind == "text":
        return to_text(value)
    if isinstance(value, str):
        value = json.loads(value)
    kinds: dict[str, Any] = {"number": (int, float), "boolean": bool, "list": list, "json": object}
    if not issubclass(type(value), kinds[kind]) or (kind == "number" and isinstance(value, bool)):
        raise ValueError(f"{to_text(value)[:60]!r} is not of type {kind}.")
    return value


def to_text(value: Any) -> str:
    """A value as text in a prompt: text unchanged, null as empty text, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else compact_json(value)


def compact_json(value: Any) -> str:
    """A value as JSON with sorted keys and without white space."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def fill(*parts: Any) -> str:
    """The text of a template from its parts."""
    return "".join(to_text(part) for part in parts)


class Record(dict[str, Any]):
    """The record of an iteration. Text and JSON of the whole record omit the members in `by_name`."""

    def __init__(self, whole: Mapping[str, Any], **by_name: Any) -> None:
        super().__init__(whole)
        self.by_name = by_name

    def __missing__(self, name: str) -> Any:
        return self.by_name[name]


class Records(list[Any]):
    """A list that grows to a known length; elements that do not exist yet are `blank`."""

    def __init__(self, there: Sequence[Any], blank: Any, max_length: int) -> None:
        super().__init__(there)
        self.blank, self.max_length = blank, max_length


def member(value: Any, name: str) -> Any:
    """A member of an object."""
    try:
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)[name]
    except KeyError:
        pass
    raise KeyError(f"There is no {name!r} here.")


def optional_member(value: Any, *names: str) -> Any:
    """A member of a value that may not exist yet, as in a loop's first iteration; null if it does not."""
    for name in names:
        value = None if value is None else member(value, name)
    return value


def element(value: Any, index: Any) -> Any:
    """An element of a list, or a member of an object."""
    if isinstance(value, dict):
        return member(value, index)
    if isinstance(value, Records) and len(value) <= index < value.max_length:
        return value.blank
    if not 0 <= index < len(value):
        raise IndexError(f"The list has {len(value)} elements; there is none at {index}.")
    return cast("list[Any]", value)[int(index)]


def matches(text: str, pattern: str) -> bool:
    """Whether a text contains a match of a pattern."""
    return re.search(pattern, text) is not None


def has(read: Callable[[], Any]) -> bool:
    """Whether a member exists."""
    try:
        read()
    except KeyError:
        return False
    return True
