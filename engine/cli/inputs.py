"""The values that `-i NAME=VALUE` gives to a workflow: found, read from files, and parsed by their declared types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.document.model import Workflow
from engine.runner.declared import MAX_FILE_BYTES, Declared, declared_inputs
from engine.runner.declared_text import value_of_text
from engine.runner.parameters import InputError
from engine.safe_file_io import NotTextError, read_text_file
from engine.text_sanitizing import shown
from engine.values import Value


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
        values[name] = value_of_text(text_or_file(value, f'the input "{shown(name, 60)}"'), declared[name])
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


def text_or_file(value: str, what: str) -> str:
    """The text that a person gives: `@FILE` is what the file says, `@@…` a text that begins with `@`.

    Args:
        value: What was given.
        what: What it is for, in words.

    Raises:
        InputError: The file cannot be read.
    """
    if not value.startswith("@"):
        return value
    if value.startswith("@@"):
        return value[1:]
    path = value[1:]
    try:
        return read_text_file(Path(path), MAX_FILE_BYTES)
    except NotTextError as error:
        reason, remedy = str(error), "Save it as UTF-8."
    except (OSError, ValueError) as error:
        reason = shown(getattr(error, "strerror", None) or error)
        remedy = "Check the path; a value that begins with @ is written with @@."
    raise InputError(f'The file "{shown(path)}" for {what} cannot be read: {reason}.', remedy)
