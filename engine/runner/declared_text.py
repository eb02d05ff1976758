"""Values of a workflow's inputs that a person has written as text: on the command line, in a cell of a table."""

from __future__ import annotations

from typing import Final

from engine.document.wording import shown
from engine.nodes.spec import PortType
from engine.runner.declared import Declared
from engine.runner.parameters import InputError
from engine.values import Value, value_of_json

_TYPES: Final = {
    PortType.NUMBER: ("a number", "42 or 0.5"),
    PortType.BOOLEAN: ("true or false", "true"),
    PortType.LIST: ("a list in JSON", '["a", "b"]'),
    PortType.JSON: ("JSON", '{"a": 1}; a text stands in double quotes'),
}


def value_of_text(text: str, declared: Declared) -> Value:
    """The value that a text stands for: itself for an input that takes texts, else what its JSON says.

    Raises:
        InputError: It does not fit the input's type.
    """
    if declared.type in {PortType.TEXT, PortType.ANY}:
        return text
    try:
        value = value_of_json(text)
    except ValueError:
        raise _misfit(text, declared) from None
    if not _fits(value, declared.type):
        raise _misfit(text, declared)
    return value


def _fits(value: Value, kind: PortType) -> bool:
    match kind:
        case PortType.NUMBER:
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case PortType.BOOLEAN:
            return isinstance(value, bool)
        case PortType.LIST:
            return isinstance(value, list)
        case _:
            return True


def _misfit(text: str, declared: Declared) -> InputError:
    kind, example = _TYPES[declared.type]
    return InputError(
        f'The input "{shown(declared.name, 60)}" takes {kind}, not "{shown(text, 60)}".', f"Write it like {example}."
    )
