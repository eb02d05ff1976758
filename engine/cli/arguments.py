"""Which workflow file a person means: a path, or the bare name of a bundled template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.bundled import templates_folder
from engine.cli.output import err
from engine.document.files import load
from engine.document.model import FILE_SUFFIX, Workflow
from engine.document.problems import DocumentError, Severity
from engine.document.subflows import refreshed
from engine.errors import EngineError
from engine.nodes.registry import builtin_registry
from engine.runner.declared import MAX_FILE_BYTES, Declared, declared_inputs
from engine.runner.declared_text import value_of_text
from engine.runner.parameters import InputError
from engine.safe_file_io import NotTextError, read_text_file
from engine.text_sanitizing import shown
from engine.values import Value


@dataclass(frozen=True, slots=True)
class Source:
    """A workflow and where it came from.

    Attributes:
        path: Its file.
        workflow: What the file says.
        is_template: Whether it came with the program.
    """

    path: Path
    workflow: Workflow
    is_template: bool = False


def template_files() -> list[Path]:
    """The bundled templates, by name.

    Raises:
        EngineError: The installation has lost them.
    """
    return sorted(templates_folder().glob(f"*{FILE_SUFFIX}"))


def template_name(file: Path) -> str:
    """How a template is called on the command line: `self-refine`."""
    return file.name.removesuffix(FILE_SUFFIX)


def open_source(name: str) -> Source:
    """Open a workflow by its path, or a template by its name where no such file exists; its subflows are read anew.

    Raises:
        DocumentError: There is no such file or template, or it cannot be opened.
        EngineError: The installation has lost its templates.
    """
    path = Path(name)
    if _exists(path):
        return Source(path, _with_subflows(load(name), path))
    templates = {template_name(file): file for file in template_files()}
    found = templates.get(name.removesuffix(FILE_SUFFIX))
    if found is not None:
        return Source(found, load(found), is_template=True)
    if "/" in name or "\\" in name:
        load(name)
    raise DocumentError(
        f'There is neither a file nor a bundled template "{shown(name)}".',
        f"Check the path; the bundled templates are: {', '.join(templates) or 'none'}.",
    )


def _with_subflows(workflow: Workflow, path: Path) -> Workflow:
    """The workflow with those in it as their files are now."""
    now, problems = refreshed(workflow, path)
    for problem in problems:
        if problem.severity is Severity.ERROR:
            raise DocumentError(f"{problem.place}: {problem.message}", problem.remedy, problems)
        err().line(f"Warning: {problem.place}: {problem.message}", style="yellow")
    return now


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # What cannot even be asked for is told by whoever opens it.
        return True


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


def read_settings(given: Sequence[str], workflow: Workflow) -> Mapping[str, Mapping[str, Value]]:
    """The settings that `--set` options give.

    Args:
        given: `NODE.FIELD=VALUE`, `NODE.FIELD=@file`, or `NODE.FIELD=@@…` for a value that begins with `@`.
        workflow: The workflow whose settings they are.

    Returns:
        By node id, config fields and their values.

    Raises:
        EngineError: One is malformed, names what is not there, or gives a value that does not fit.
    """
    found: dict[str, dict[str, Value]] = {}
    for text in given:
        place, sign, value = text.partition("=")
        node, _, field = place.partition(".")
        if not (sign and node and field):
            raise EngineError(f'"{shown(text, 60)}" sets nothing.', "Write --set NODE.FIELD=VALUE.")
        found.setdefault(node, {})[field] = _setting(
            workflow, node, field, text_or_file(value, f"--set {shown(place)}")
        )
    return found


def _setting(workflow: Workflow, node_id: str, field: str, text: str) -> Value:
    """The value of a setting: a text where the field takes one, else what the text says as JSON."""
    node = workflow.nodes_by_id.get(node_id)
    if node is None:
        raise EngineError(
            f'The workflow has no node "{shown(node_id, 60)}".', f"It has: {', '.join(workflow.nodes_by_id)}."
        )
    spec = builtin_registry().find(node.type)
    if spec is None or field not in spec.config.model_fields:
        known = ", ".join(spec.config.model_fields) if spec is not None else "none that this program knows"
        raise EngineError(f'The node "{node_id}" has no setting "{shown(field, 60)}".', f"It has: {known}.")
    for candidate in _readings(text):
        try:
            spec.config.model_validate({**node.config, field: candidate})
        except ValidationError:
            continue
        return candidate
    raise EngineError(
        f'The setting "{field}" of the node "{node_id}" does not take "{shown(text, 60)}".',
        f"See 'loopwright nodes {node.type}'.",
    )


def _readings(text: str) -> Iterator[Any]:
    yield text
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        return
