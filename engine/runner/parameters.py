"""The values that a run is given for the workflow's inputs, held against what the inputs say."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from engine.document.json_rules import faults
from engine.errors import EngineError
from engine.nodes.convert import ConversionError, convert
from engine.nodes.input import InputConfig
from engine.values import Value


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
