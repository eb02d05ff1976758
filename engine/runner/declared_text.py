"""Values of a workflow's inputs that a person has written as text: on the command line, in a cell of a table."""

from __future__ import annotations

import re
from typing import Final

from engine.nodes.spec import PortType
from engine.runner.declared import Declared
from engine.runner.parameters import InputError
from engine.text_sanitizing import shown
from engine.values import Value, value_of_json

_TYPES: Final = {
    PortType.NUMBER: ("a number", "42 or 0.5"),
    PortType.BOOLEAN: ("true or false", "true, false, yes, no, 1 or 0"),
    PortType.LIST: ("a list in JSON", '["a", "b"]'),
    PortType.JSON: ("JSON", '{"a": 1}; a text stands in double quotes'),
}

_TRUTHS: Final = {
    word: truth
    for truth, words in (
        (True, "true yes on y t 1 wahr ja vrai oui verdadero sí si"),
        (False, "false no off n f 0 falsch nein faux non falso"),
    )
    for word in words.split()
}
"""What people and spreadsheets write for true and false."""
_GROUPED: Final = re.compile(r"[+-]?[0-9]{1,3}(\s[0-9]{3})+(\.[0-9]*)?")
_NUMBER: Final = re.compile(r"([+-]?)(?=[0-9]|\.[0-9])([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?[0-9.\s]*,[0-9.,]*")


def value_of_text(text: str, declared: Declared) -> Value:
    """The value that a text stands for: itself for an input that takes texts, else what its JSON says.

    Raises:
        InputError: It does not fit the input's type.
    """
    if declared.type in {PortType.TEXT, PortType.ANY}:
        return text
    if declared.type is PortType.BOOLEAN and (truth := _TRUTHS.get(text.strip().casefold())) is not None:
        return truth
    try:
        value = value_of_json(_plain_number(text) if declared.type is PortType.NUMBER else text)
    except ValueError:
        raise misfit(text, declared) from None
    if not _fits(value, declared.type):
        raise misfit(text, declared)
    return value


def _plain_number(text: str) -> str:
    """A number as JSON writes it: without spaces between groups of digits, a plus sign or leading zeros."""
    text = text.strip().replace("\u2212", "-")
    if _GROUPED.fullmatch(text):
        text = re.sub(r"\s", "", text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    sign, whole, fraction, exponent = match.groups("")
    decimals = f".{fraction}" if fraction else ""
    return f"{sign.strip('+')}{whole.lstrip('0') or '0'}{decimals}{exponent}"


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


def misfit(text: str, declared: Declared) -> InputError:
    """The error for a text that is no value of an input, with what would be."""
    kind, example = _TYPES[declared.type]
    remedy = f"Write it like {example}."
    if declared.type is PortType.NUMBER and _DECIMAL_COMMA.fullmatch(text.strip()):
        remedy = "Write decimals after a point, like 0.5, and nothing between thousands."
    return InputError(f'The input "{shown(declared.name, 60)}" takes {kind}, not "{shown(text, 60)}".', remedy)
