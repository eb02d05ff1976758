"""The values that flow along edges, and the two ways in which they are written as text.

A value is what JSON can say, nothing else. This module knows of no other part of the engine but its errors.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from engine.errors import EngineError

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
"""A JSON value. Values are shared between nodes, events and the history: nobody changes one in place."""


class TooDeepError(EngineError):
    """A value with more lists and objects inside each other than can be written."""


def compact_json(value: Value) -> str:
    """Write a value as JSON with sorted keys and without white space, so that equal values give equal texts.

    Raises:
        TooDeepError: It is nested too deeply, as when every iteration of a loop wraps the one before.
    """
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError as error:
        raise TooDeepError(
            "A value holds too many lists or objects inside each other to be written.",
            "Keep what is needed of it in a Transform, rather than wrapping it again.",
        ) from error


def to_text(value: Value) -> str:
    """Write a value as it stands in a prompt: a text as it is, null as nothing, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return compact_json(value)
