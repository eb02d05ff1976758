"""How a value becomes what a port takes.

Text and JSON turn into each other where nothing is lost; where something would be, that is an error that says so.
"""

from __future__ import annotations

import json
from typing import Final

from engine.errors import EngineError
from engine.nodes.json_text import parse_json
from engine.nodes.spec import PortType
from engine.values import Value, to_text

_ARTICLE: Final = {
    PortType.NUMBER: "a number",
    PortType.BOOLEAN: "true or false",
    PortType.LIST: "a list",
    PortType.JSON: "JSON",
}

_NEVER: Final = frozenset(
    {
        (PortType.NUMBER, PortType.LIST),
        (PortType.NUMBER, PortType.BOOLEAN),
        (PortType.BOOLEAN, PortType.LIST),
        (PortType.BOOLEAN, PortType.NUMBER),
        (PortType.LIST, PortType.NUMBER),
        (PortType.LIST, PortType.BOOLEAN),
    }
)


class ConversionError(EngineError):
    """A value that does not fit the port that it reached."""


def can_ever_fit(source: PortType, target: PortType) -> bool:
    """Whether some value of a port of type `source` fits a port of type `target`."""
    return (source, target) not in _NEVER


def convert(value: Value, target: PortType) -> Value:
    """Make a value fit a port.

    Raises:
        ConversionError: It cannot without losing something.
    """
    if target is PortType.ANY or value is None:
        return value
    if target is PortType.TEXT:
        return to_text(value)
    if isinstance(value, str):
        value = _parsed(value, target)
    if _fits(value, target):
        return value
    raise ConversionError(
        f"{_shown(value)} is not {_ARTICLE[target]}.", "Put a Transform between the two nodes that makes it fit."
    )


def _fits(value: Value, target: PortType) -> bool:
    if target is PortType.NUMBER:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if target is PortType.BOOLEAN:
        return isinstance(value, bool)
    if target is PortType.LIST:
        return isinstance(value, list)
    return True


def _parsed(text: str, target: PortType) -> Value:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ConversionError(
            f"The text {_shown(text)} is not {_ARTICLE[target]}.",
            "Put a Transform between the two nodes, or ask the model for a structured reply.",
        ) from error


def _shown(value: Value) -> str:
    text = to_text(value)
    return json.dumps(text if len(text) <= 60 else text[:57] + "…", ensure_ascii=False)
