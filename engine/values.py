"""The values that flow along edges, which are JSON values, and how they are written as text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, cast, dataclass_transform

from engine.errors import EngineError

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
"""A JSON value. Nodes, events and the history share values: never change one in place."""

MAX_NESTING: Final = 500
"""Maximum nesting depth of values that are written. It is far below the limit of every Python version, so that runs end
in the same way everywhere, and events around a value can be written, too."""

_UNCLEAN: Final = re.compile("[\\x00\\ud800-\\udfff]")


class TooDeepError(EngineError):
    """A value is nested too deeply to be written."""


def compact_json(value: Value) -> str:
    """Write a value as JSON with sorted keys and without white space, so that equal values give equal texts.

    Raises:
        TooDeepError: It is nested more than `MAX_NESTING` deep, as when every iteration of a loop wraps the one before.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError as error:
        raise _too_deep() from error
    # Counting brackets is cheap, and usually sufficient.
    if text.count("[") + text.count("{") > MAX_NESTING and nesting(value) > MAX_NESTING:
        raise _too_deep()
    return text


def value_of_json(text: str | bytes) -> Value:
    """Parse JSON of any depth, without NaN and infinite numbers.

    Raises:
        ValueError: It is not JSON, not in a Unicode encoding, or has a number that is not finite.
    """
    try:
        value: Value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("lists and objects are nested too deeply") from None
    return value


def _refuse(constant: str) -> Value:
    raise ValueError(f"{constant} is not a JSON value")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number} is too large a number")
    return value


def is_empty(value: Value) -> bool:
    """Whether a value is null, blank text, an empty list or an empty object."""
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def as_object(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value if it is a list, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def nesting(value: Value) -> int:
    """Return the nesting depth of a value."""
    depth = 0
    level = [value] if isinstance(value, (list, dict)) else []
    while level:
        depth += 1
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (list, dict))
        ]
    return depth


def clean_text(text: str) -> str:
    """Clean a text for UTF-8, SQLite and HTTP.

    Surrogate pairs become one character; lone surrogates and NUL become U+FFFD.
    """
    return text if _UNCLEAN.search(text) is None else encodable_text(text).replace("\0", "\ufffd")


def encodable_text(text: str) -> str:
    """Make a text encodable in UTF-8: surrogate pairs become one character, lone surrogates U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_clean_text(text: str) -> bool:
    """Whether `clean_text` would change nothing."""
    return "\0" not in text if text.isascii() else _UNCLEAN.search(text) is None  # most texts: a third of the time


def clean_value(value: Value) -> Value:
    """Clean all texts in a value, including the keys of objects."""
    return map_texts(value, clean_text)


def map_texts(value: Value, change: Callable[[str], str]) -> Value:
    """Change all texts in a value, including the keys of objects."""
    if isinstance(value, str):
        return change(value)
    # Loops, because comprehensions would need a second stack frame for each level.
    if isinstance(value, list):
        items: list[Value] = []
        for item in value:
            items.append(map_texts(item, change))  # noqa: PERF401
        return items
    if isinstance(value, dict):
        members: dict[str, Value] = {}
        for name, member in value.items():
            members[change(name)] = map_texts(member, change)
        return members
    return value


def _too_deep() -> TooDeepError:
    return TooDeepError(
        f"A value has more than {MAX_NESTING} nested lists or objects, too many to be written.",
        "Select the part that you need in a Transform instead of wrapping the value again.",
    )


def to_text(value: Value) -> str:
    """Write a value for a prompt: text unchanged, null as empty text, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return compact_json(value)


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """Create a dataclass that only the type checker makes immutable.

    For events, messages and other values that a run creates by the thousand: a frozen dataclass sets each field through
    `object.__setattr__`, which takes ten times as long.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
