"""Reading values of a foreign file that may be of any kind: a number that is a text, a name with several spellings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, cast

Object = Mapping[str, Any]

_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def as_object(value: object) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value as a text; empty for null, objects and lists."""
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, dict | list) else str(value)


def as_number(value: object) -> float | None:
    """The value as a finite number; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_whole(value: object) -> int | None:
    """The value as a whole number; None where it is none."""
    number = as_number(value)
    return int(number) if number is not None and number.is_integer() else None


def as_seconds(value: object) -> float | None:
    """A duration such as `30s` or `1m30s`, or a number of seconds; None where it is none."""
    number = as_number(value)
    if number is not None or not isinstance(value, str):
        return number
    text = value.strip()
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        return None
    return sum(float(count) * _SECONDS[unit] for count, unit in parts)


class Fields:
    """The members of an object, of which each is asked for once; what nobody asked for stays over."""

    def __init__(self, members: Object) -> None:
        self._members = dict(members)
        self.used: dict[str, str] = {}
        """What was asked for and says something, and the first of the names by which it was asked for."""

    def take(self, *names: str) -> Any:
        """The first member of these names that is there and not null; it and its namesakes are used up."""
        found = None
        for name in names:
            value = self._members.get(name)
            if found is None and value is not None:
                found = value
            elif name not in self._members or value not in (None, "", found):
                continue
            del self._members[name]
            if value not in (None, "", [], {}):
                self.used[name] = names[0]
        return found

    def peek(self, *names: str) -> Any:
        """The first member of these names that is there and not null; it stays to be asked for."""
        return next((self._members[name] for name in names if self._members.get(name) is not None), None)

    def has(self, *names: str) -> bool:
        """Whether one of them is there."""
        return any(self._members.get(name) is not None for name in names)

    @property
    def rest(self) -> dict[str, Any]:
        """What nobody has asked for."""
        return dict(self._members)
