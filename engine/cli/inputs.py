"""The values that `-i NAME=VALUE` gives to a workflow: found, read from files, and parsed by their declared types."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from engine.cli.output import one_line
from engine.document.model import Workflow
from engine.document.wording import shown
from engine.nodes.input import InputConfig
from engine.nodes.spec import PortType
from engine.runner.parameters import InputError
from engine.values import Value, to_text

MAX_FILE_BYTES: Final = 10_000_000
_TYPES: Final = {
    PortType.NUMBER: ("a number", "42 or 0.5"),
    PortType.BOOLEAN: ("true or false", "true"),
    PortType.LIST: ("a list in JSON", '["a", "b"]'),
    PortType.JSON: ("JSON", '{"a": 1}; a text stands in double quotes'),
}


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
    """The inputs that a workflow declares; of a document with problems those that can be read."""
    found: list[Declared] = []
    for node in workflow.nodes:
        if node.type != "input":
            continue
        try:
            config = InputConfig.model_validate(node.config)
        except ValidationError:
            continue
        found.append(Declared(config.name or node.id, config.type, config.default, config.description))
    return found


def parse_inputs(workflow: Workflow, given: Sequence[str]) -> dict[str, Value]:
    """Read the values of `-i` options.

    Args:
        workflow: The workflow that they are for.
        given: `NAME=VALUE`, `NAME=@file`, or `NAME=@@…` for a value that begins with `@`.

    Raises:
        InputError: One is malformed, unknown, given twice, missing or of the wrong type, or its file cannot be read.
    """
    declared = {item.name: item for item in declared_inputs(workflow)}
    values: dict[str, Value] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(
                f'"{shown(text, 60)}" gives no value to an input.', "Write -i NAME=VALUE or -i NAME=@file."
            )
        if name not in declared:
            raise InputError(f'The workflow has no input "{shown(name, 60)}".', _there_are(declared.values()))
        if name in values:
            raise InputError(f'The input "{shown(name, 60)}" is given twice.', "Give each input once.")
        values[name] = _parse(_read(name, value), declared[name])
    missing = [item.name for item in declared.values() if item.default is None and item.name not in values]
    if missing:
        names = ", ".join(f'"{shown(name, 60)}"' for name in missing)
        raise InputError(
            f"No value is given for {'the input' if len(missing) == 1 else 'the inputs'} {names}.",
            f"Add -i {shown(missing[0], 60)}=VALUE. {_there_are(declared.values())}",
        )
    return values


def _there_are(declared: Iterable[Declared]) -> str:
    names = "; ".join(map(str, declared))
    return f"The inputs are: {names}." if names else "It has no inputs."


def _read(name: str, value: str) -> str:
    if not value.startswith("@"):
        return value
    if value.startswith("@@"):
        return value[1:]
    path = value[1:]
    try:
        return _content(Path(path)).decode("utf-8-sig")
    except UnicodeDecodeError:
        reason, remedy = "it is not UTF-8 text", "Save it as UTF-8."
    except (OSError, ValueError) as error:
        reason = shown(getattr(error, "strerror", None) or error)
        remedy = "Check the path; a value that begins with @ is written with @@."
    raise InputError(f'The file "{shown(path)}" for the input "{shown(name, 60)}" cannot be read: {reason}.', remedy)


def _content(path: Path) -> bytes:
    # Not to wait for a writer, should it be a pipe.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no ordinary file")
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"it has more than {MAX_FILE_BYTES // 1_000_000} MB")
    return content


def _parse(text: str, declared: Declared) -> Value:
    if declared.type in {PortType.TEXT, PortType.ANY}:
        return text
    try:
        value: Value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        raise _misfit(text, declared) from None
    if not _fits(value, declared.type):
        raise _misfit(text, declared)
    return value


def _refuse(constant: str) -> Value:
    raise ValueError(constant)


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(number)
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
