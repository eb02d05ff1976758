"""The values that flow along edges, and the two ways in which they are written as text.

A value is what JSON can say, nothing else. This module knows of no other part of the engine but its errors.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar, dataclass_transform

from engine.errors import EngineError

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
"""A JSON value. Values are shared between nodes, events and the history: nobody changes one in place."""

MAX_NESTING: Final = 500
"""The most lists and objects inside each other that are written. Every Python can write a good many more, so that runs
do not end differently on different ones, and what is around a value (an event) can be written too."""

_UNCLEAN: Final = re.compile("[\\x00\\ud800-\\udfff]")


class TooDeepError(EngineError):
    """A value with more lists and objects inside each other than can be written."""


def compact_json(value: Value) -> str:
    """Write a value as JSON with sorted keys and without white space, so that equal values give equal texts.

    Raises:
        TooDeepError: It is nested more than `MAX_NESTING` deep, as when every iteration of a loop wraps the one before.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError as error:
        raise _too_deep() from error
    # Counting brackets costs next to nothing, and most often settles it.
    if text.count("[") + text.count("{") > MAX_NESTING and nesting(value) > MAX_NESTING:
        raise _too_deep()
    return text


def value_of_json(text: str | bytes) -> Value:
    """The value that a text of JSON stands for, whatever depth it has (`nesting`).

    Python's own reader lets NaN and 1e999 pass, which JSON cannot say again.

    Raises:
        ValueError: It is no JSON, not in a Unicode encoding, or holds a number that is not finite.
    """
    try:
        value: Value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("lists and objects stand too deep inside one another") from None
    return value


def _refuse(constant: str) -> Value:
    raise ValueError(f"{constant} is no JSON value")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number} is too large a number")
    return value


def is_empty(value: Value) -> bool:
    """Whether a value is nothing to work on: null, a text of white space alone, an empty list or an empty object."""
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def nesting(value: Value) -> int:
    """How many lists and objects stand inside each other, at the most; goes through the value level by level."""
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
    """The text as UTF-8, SQLite and HTTP can carry it.

    Surrogate pairs become their character; lone surrogates and NUL become U+FFFD.
    """
    if _UNCLEAN.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def is_clean_text(text: str) -> bool:
    """Whether `clean_text` would change nothing."""
    return "\0" not in text if text.isascii() else _UNCLEAN.search(text) is None  # most texts: a third of the time


def clean_value(value: Value) -> Value:
    """The value with every text in it cleaned, the names of an object's members included."""
    return map_texts(value, clean_text)


def map_texts(value: Value, change: Callable[[str], str]) -> Value:
    """The value with every text in it changed, the names of an object's members included."""
    if isinstance(value, str):
        return change(value)
    # Loops, not comprehensions: these would be a second frame for each level of nesting.
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
        f"A value holds more than {MAX_NESTING} lists or objects inside each other, too many to be written.",
        "Keep what is needed of it in a Transform, rather than wrapping it again.",
    )


def to_text(value: Value) -> str:
    """Write a value as it stands in a prompt: a text as it is, null as nothing, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return compact_json(value)


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """Make a dataclass that nobody may change.

    For values that a run makes by the thousand, such as events and messages. A frozen dataclass sets each field through
    `object.__setattr__`, which takes ten times as long as this.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
