"""The inputs that a workflow declares, for whoever asks a person for their values."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from engine.document.json_rules import faults
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.nodes.input import InputConfig
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.spec import PortType
from engine.text_sanitizing import one_line, shown
from engine.values import Value, to_text, value_of_json


class InputError(EngineError):
    """Values that do not fit the workflow's inputs."""


def read_parameters(declared: Mapping[str, InputConfig], given: Mapping[str, Value]) -> dict[str, Value]:
    """The value of each input, by name: the one given, else its default.

    Raises:
        InputError: A name is unknown, a value is missing or does not fit.
    """
    names = ", ".join(declared) or "none"
    for name in given:
        if name not in declared:
            near = difflib.get_close_matches(name, declared, n=1)
            hint = f'Did you mean "{near[0]}"? ' if near else ""
            raise InputError(f'The workflow has no input "{name}".', f"{hint}It has: {names}.")
    values: dict[str, Value] = {}
    for name, config in declared.items():
        value = given.get(name, config.default)
        fault = next(iter(faults(value)), None)
        if fault is not None:
            raise InputError(f'The value of the input "{name}" is no JSON value: {fault.message}', fault.remedy)
        if value is None and name not in given:
            raise InputError(f'The input "{name}" has no value.', f"Give one with -i {name}=VALUE.")
        try:
            values[name] = convert(value, config.type)
        except ConversionError as error:
            raise InputError(f'The value of the input "{name}" does not fit: {error.message}', error.remedy) from error
    return values


MAX_FILE_BYTES: Final = 10_000_000
"""The largest file from which the value of an input is read."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An input that a workflow declares.

    Attributes:
        name: What `-i` calls it.
        type: What kind of value it takes.
        default: What a run takes that gives no value; None where one must be given.
        description: A line for the person who fills it in.
    """

    name: str
    type: PortType
    default: Value
    description: str

    def __str__(self) -> str:
        usual = "required" if self.default is None else f"default {one_line(json.dumps(to_text(self.default)), 50)}"
        return f"{shown(self.name, 60)} ({self.type}, {usual})"

    def to_json(self) -> dict[str, Any]:
        """It as a JSON object."""
        return {
            "name": self.name,
            "type": str(self.type),
            "required": self.default is None,
            "default": self.default,
            "description": self.description,
        }


def declared_inputs(workflow: Workflow) -> list[Declared]:
    """The inputs that a workflow declares and that are not switched off; of those with problems what can be read."""
    return _inputs(workflow, is_enabled=True)


def still_declared(workflow: Workflow, given: Mapping[str, Value]) -> dict[str, Value]:
    """The values that an earlier run was given, without those of inputs that are switched off in the document now."""
    off, declared = ({item.name for item in _inputs(workflow, is_enabled=on)} for on in (False, True))
    return {name: value for name, value in given.items() if name in declared or name not in off}


def _inputs(workflow: Workflow, *, is_enabled: bool) -> list[Declared]:
    found: list[Declared] = []
    for node in workflow.nodes:
        if node.type != "input" or node.enabled is not is_enabled:
            continue
        try:
            config = InputConfig.model_validate(node.config)
        except ValidationError:
            continue
        found.append(Declared(config.name or node.id, config.type, config.default, config.description))
    return found


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
