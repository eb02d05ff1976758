"""Runtime of exported LangGraph modules: values, ports and expressions.

The export copies the functions that a workflow uses into its module, which then needs nothing of Loopwright: only
the standard library and the other runtime functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

State = dict[str, Any]
Update = dict[str, Any]
Step = Callable[[State], Update]

NOTHING: Any = object()
"""What a port has that no live value has reached."""


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """How LangGraph puts an update into the state: key by key."""
    return {**old, **new}


def gave(node: str, ports: dict[str, Any], key: str = "") -> Update:
    """What a node gave, by port; a port that is not there is dead. With a key it is named in the state, too."""
    named = {"_named": {key: ports.get("output")}} if key else {}
    return {"_values": {node: ports}, **named}


def skipped(node: str) -> Update:
    """A node that did not run."""
    return {"_values": {node: {}}}


def goes_on_after_error(node: str, port: str, *value: Any) -> Callable[[Step], Step]:
    """Let the run go on where a node fails: with that value at its port, or else with what went wrong."""

    def changed(step: Step) -> Step:
        def safely(state: State) -> Update:
            try:
                return step(state)
            except GraphBubbleUp:
                raise
            except Exception as error:
                return gave(node, {port: value[0] if value else str(error)})

        return safely

    return changed


def collect(state: State, sources: Sequence[str]) -> Any:
    """What reached a port: one live value, several texts joined, or a list of several other values."""
    live: list[Any] = []
    for source in sources:
        node, _, port = source.partition(".")
        ports = state["_values"].get(node, {})
        if port in ports:
            live.append(ports[port])
    if len(live) <= 1:
        return live[0] if live else NOTHING
    return "\n\n".join(live) if all(isinstance(value, str) for value in live) else live


def take(
    state: State,
    required: Mapping[str, Sequence[str]],
    optional: Mapping[str, Sequence[str]] | None = None,
    blank: Sequence[str] = (),
    convert: Mapping[str, str] | None = None,
) -> dict[str, Any] | None:
    """A node's inputs by port; None where it is to be skipped, because nothing live reached what it needs."""
    given: dict[str, Any] = {}
    for port, sources in {**required, **(optional or {})}.items():
        value = collect(state, sources)
        if value is not NOTHING:
            given[port] = fitted(value, (convert or {}).get(port, "any"))
        elif port in required:
            return None
    if not given and (required or optional):
        return None
    return {**dict.fromkeys(blank), **given}


def fitted(value: Any, kind: str) -> Any:
    """A value made to fit a port: text and JSON turn into each other."""
    if kind == "any" or value is None:
        return value
    if kind == "text":
        return to_text(value)
    if isinstance(value, str):
        value = json.loads(value)
    kinds: dict[str, Any] = {"number": (int, float), "boolean": bool, "list": list, "json": object}
    if not issubclass(type(value), kinds[kind]) or (kind == "number" and isinstance(value, bool)):
        raise ValueError(f"{to_text(value)[:60]!r} is no {kind}.")
    return value


def to_text(value: Any) -> str:
    """A value as it stands in a prompt: a text as it is, null as nothing, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return compact_json(value)


def compact_json(value: Any) -> str:
    """A value as JSON with sorted keys and without white space."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def fill(*parts: Any) -> str:
    """A text with values put in."""
    return "".join(to_text(part) for part in parts)


class Record(dict[str, Any]):
    """An iteration's record, with members `by_name` that text and JSON made of the whole record leave out."""

    def __init__(self, whole: Mapping[str, Any], **by_name: Any) -> None:
        super().__init__(whole)
        self.by_name = by_name

    def __missing__(self, name: str) -> Any:
        return self.by_name[name]


class Records(list[Any]):
    """A list that grows up to a known length; an element that is not there yet is the `blank` one."""

    def __init__(self, there: Sequence[Any], blank: Any, most: int) -> None:
        super().__init__(there)
        self.blank, self.most = blank, most


def member(value: Any, name: str) -> Any:
    """A member of an object."""
    try:
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)[name]
    except KeyError:
        pass
    raise KeyError(f"There is no {name!r} here.")


def inside(value: Any, *names: str) -> Any:
    """A member of what may not be there yet, as in a loop's first iteration: then it is null."""
    for name in names:
        value = None if value is None else member(value, name)
    return value


def element(value: Any, index: Any) -> Any:
    """An element of a list, or a member of an object."""
    if isinstance(value, dict):
        return member(value, index)
    if isinstance(value, Records) and len(value) <= index < value.most:
        return value.blank
    if not 0 <= index < len(value):
        raise IndexError(f"The list has {len(value)} elements, and none at {index}.")
    return cast("list[Any]", value)[int(index)]


def divide(left: float, right: float) -> float:
    """A quotient; of whole numbers a whole one, cut off towards zero."""
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def remainder(left: float, right: float) -> float:
    """The remainder of a division; it has the sign of the dividend."""
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern is found in a text."""
    return re.search(pattern, text) is not None


def has(read: Callable[[], Any]) -> bool:
    """Whether a member is there."""
    try:
        read()
    except KeyError:
        return False
    return True
