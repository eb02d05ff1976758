"""The inputs that a workflow declares, and the values of a run for them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from engine.document.model import Workflow
from engine.document.problems import faults
from engine.errors import EngineError, did_you_mean
from engine.nodes.input import InputConfig
from engine.nodes.json_values import ConversionError, convert, fits
from engine.nodes.spec import PortType
from engine.text_sanitizing import one_line, shown
from engine.values import Value, to_text, value_of_json


class InputError(EngineError):
    """Values that do not match the workflow's inputs."""


def read_parameters(declared: Mapping[str, InputConfig], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the value of each input by name: the given value, or the default.

    Raises:
        InputError: A name is unknown, or a value is missing or invalid.
    """
    names = ", ".join(declared) or "none"
    for name in given:
        if name not in declared:
            remedy = f"{did_you_mean(name, declared)} It has: {names}.".lstrip()
            raise InputError(f'The workflow has no input "{name}".', remedy)
    values: dict[str, Value] = {}
    for name, config in declared.items():
        value = given.get(name, config.default)
        fault = next(iter(faults(value)), None)
        if fault is not None:
            raise InputError(f'The value of the input "{name}" is not a JSON value: {fault.message}', fault.remedy)
        if value is None and name not in given:
            raise InputError(f'The input "{name}" has no value.', "Give it a value, or a default in the workflow.")
        try:
            values[name] = convert(value, config.type)
        except ConversionError as error:
            raise InputError(f'The value of the input "{name}" does not fit: {error.message}', error.remedy) from error
    return values


MAX_FILE_BYTES: Final = 10_000_000
"""Maximum size of a file with the value of an input."""


@dataclass(frozen=True, slots=True)
class DeclaredInput:
    """An input that a workflow declares.

    Attributes:
        name: Its name.
        type: Type of its value.
        default: Its default; None if a value is required.
        description: A line for the person who provides the value.
    """

    name: str
    type: PortType
    default: Value
    description: str

    def __str__(self) -> str:
        default = "required" if self.default is None else f"default {one_line(json.dumps(to_text(self.default)), 50)}"
        return f"{shown(self.name, 60)} ({self.type}, {default})"

    def to_json(self) -> dict[str, Any]:
        """Return the input as a JSON object."""
        return {
            "name": self.name,
            "type": str(self.type),
            "required": self.default is None,
            "default": self.default,
            "description": self.description,
        }


def without_disabled(workflow: Workflow, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values of an earlier run without those of inputs that are disabled now."""
    off, declared = ({item.name for item in declared_inputs(workflow, is_enabled=on)} for on in (False, True))
    return {name: value for name, value in given.items() if name in declared or name not in off}


def given_inputs(workflow: Workflow, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the inputs of an earlier run without those that were the defaults of its workflow."""
    defaults = {item.name: item.default for item in declared_inputs(workflow)}
    return {name: value for name, value in values.items() if value != defaults.get(name)}


def declared_inputs(workflow: Workflow, *, is_enabled: bool = True) -> list[DeclaredInput]:
    """Return the enabled (or disabled) inputs of a workflow; inputs with invalid settings are left out."""
    found: list[DeclaredInput] = []
    for node in workflow.nodes:
        if node.type != "input" or node.enabled is not is_enabled:
            continue
        try:
            config = InputConfig.model_validate(node.config)
        except ValidationError:
            continue
        found.append(DeclaredInput(config.name or node.id, config.type, config.default, config.description))
    return found


_TYPE_HELP: Final = {
    PortType.NUMBER: ("a number", "42 or 0.5"),
    PortType.BOOLEAN: ("true or false", "true, false, yes, no, 1 or 0"),
    PortType.LIST: ("a list in JSON", '["a", "b"]'),
    PortType.JSON: ("JSON", '{"a": 1}; put text in double quotes'),
}

_BOOLEAN_WORDS: Final = {
    word: boolean
    for boolean, words in (
        (True, "true yes on y t 1 wahr ja vrai oui verdadero sí si"),
        (False, "false no off n f 0 falsch nein faux non falso"),
    )
    for word in words.split()
}
"""Words that people and spreadsheets write for true and false."""
_GROUPED: Final = re.compile(r"[+-]?[0-9]{1,3}(\s[0-9]{3})+(\.[0-9]*)?")
_NUMBER: Final = re.compile(r"([+-]?)(?=[0-9]|\.[0-9])([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?[0-9.\s]*,[0-9.,]*")


def value_of_text(text: str, declared: DeclaredInput) -> Value:
    """Convert a text to the value of an input: unchanged for text inputs, otherwise as JSON.

    Raises:
        InputError: It does not match the input's type.
    """
    if declared.type in {PortType.TEXT, PortType.ANY}:
        return text
    if declared.type is PortType.BOOLEAN and (boolean := _BOOLEAN_WORDS.get(text.strip().casefold())) is not None:
        return boolean
    try:
        value = value_of_json(_plain_number(text) if declared.type is PortType.NUMBER else text)
    except ValueError:
        raise invalid_value(text, declared) from None
    if not fits(value, declared.type):
        raise invalid_value(text, declared)
    return value


def _plain_number(text: str) -> str:
    """Write a number as JSON: without spaces between digits, a plus sign or leading zeros."""
    text = text.strip().replace("\u2212", "-")
    if _GROUPED.fullmatch(text):
        text = re.sub(r"\s", "", text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    sign, whole, fraction, exponent = match.groups("")
    decimals = f".{fraction}" if fraction else ""
    return f"{sign.strip('+')}{whole.lstrip('0') or '0'}{decimals}{exponent}"


def invalid_value(text: str, declared: DeclaredInput) -> InputError:
    """Return the error for a text that is not a valid value of an input, with an example."""
    kind, example = _TYPE_HELP[declared.type]
    remedy = f"Write it like {example}."
    if declared.type is PortType.NUMBER and _DECIMAL_COMMA.fullmatch(text.strip()):
        remedy = "Write decimals after a point, like 0.5, and nothing between thousands."
    return InputError(f'The input "{shown(declared.name, 60)}" takes {kind}, not "{shown(text, 60)}".', remedy)
