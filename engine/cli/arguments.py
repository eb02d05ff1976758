"""Parse the arguments FILE, `-i NAME=VALUE` and `--set NODE.FIELD=VALUE`.

FILE is a path, the name of a bundled template, or `-` for standard input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO
from weakref import WeakSet

from pydantic import ValidationError

from engine.bundled import templates_folder
from engine.cli.output import err
from engine.cli.remedies import quote_argument
from engine.document.files import MAX_BYTES, load, loads
from engine.document.migrate import upgraded_config
from engine.document.model import FILE_SUFFIX, Node, Workflow, is_workflow_file, stem_of
from engine.document.problems import DocumentError, Severity
from engine.document.subflows import refresh_subflows
from engine.errors import EngineError, reason_of
from engine.formatting import format_count
from engine.nodes.node_names import find_node
from engine.nodes.node_registry import builtin_registry
from engine.nodes.spec import AnySpec
from engine.runner.declared_inputs import MAX_FILE_BYTES, DeclaredInput, InputError, declared_inputs, value_of_text
from engine.safe_file_io import NotTextError, decode_text, read_text_file
from engine.text_sanitizing import shown
from engine.values import Value, compact_json

STANDARD_INPUT: Final = "-"
"""Stands for standard input where the command line takes a file to read."""
STANDARD_INPUT_NAME: Final = "standard input"
_PIPE_A_FILE: Final = "Pipe a file to the command, such as `loopwright run - < my.loop.json`."

_consumed: Final = WeakSet[TextIO]()


def read_standard_input(max_bytes: int) -> bytes:
    """Read all of standard input, for one argument of a command.

    Args:
        max_bytes: Maximum size in bytes, a whole number of millions.

    Raises:
        EngineError: Nothing is piped to it, it has been read already, or it is too large.
    """
    stream = sys.stdin
    if stream.isatty():
        raise EngineError(
            'The argument "-" stands for standard input, but nothing is piped to it.',
            _PIPE_A_FILE,
        )
    if stream in _consumed:
        raise used_twice()
    _consumed.add(stream)
    try:
        content = stream.buffer.read(max_bytes + 1)
    except OSError as error:
        raise EngineError(f"Standard input cannot be read: {error.strerror}.", "Use a file.") from error
    if len(content) > max_bytes:
        raise EngineError(
            f"Standard input has more than {format_count(max_bytes // 1_000_000)} MB.", "Split it, or use a file."
        )
    return content


def used_twice() -> EngineError:
    """Return the error of two arguments that are standard input."""
    return EngineError("Standard input is used for two arguments.", 'Use "-" for one, and a file for the other.')


@dataclass(frozen=True, slots=True)
class Source:
    """A workflow and its origin.

    Attributes:
        path: The file; None for standard input.
        workflow: The document.
        is_template: Whether it is a bundled template.
    """

    path: Path | None
    workflow: Workflow
    is_template: bool = False

    @property
    def stored_path(self) -> str:
        """The absolute path to store with runs; empty for standard input."""
        return str(self.path.absolute()) if self.path is not None else ""


def templates() -> dict[str, Path]:
    """The files of the bundled templates by their names on the command line, such as `self-refine`.

    Raises:
        EngineError: They are missing from the installation.
    """
    return {stem_of(file.name): file for file in sorted(templates_folder().glob(f"*{FILE_SUFFIX}"))}


def open_source(name: str, *, with_subflows: bool = True) -> Source:
    """Open a workflow file, or the template with that name if there is no such file, and refresh its subflows.

    The subflows of a workflow from standard input are relative to the current folder.

    Args:
        name: The path, the name of a template, or `-` for standard input.
        with_subflows: Whether the subflows are refreshed from their files, with warnings.

    Raises:
        DocumentError: The file or template does not exist or cannot be opened.
        EngineError: The templates are missing from the installation, or standard input is empty or cannot be read.
    """
    if name == STANDARD_INPUT:
        content = read_standard_input(MAX_BYTES)
        if not content.strip():
            raise EngineError("Standard input is empty.", _PIPE_A_FILE)
        workflow = loads(content, source=STANDARD_INPUT_NAME)
        return Source(None, _with_subflows(workflow, Path(STANDARD_INPUT_NAME)))
    path = Path(name)
    try:
        exists = path.exists()
    except (OSError, ValueError):
        exists = True  # opening the file reports the error
    if exists:
        workflow = load(name)
        return Source(path, _with_subflows(workflow, path) if with_subflows else workflow)
    bundled = templates()
    found = bundled.get(stem_of(name))
    if found is not None:
        return Source(found, load(found), is_template=True)
    if "/" in name or "\\" in name or is_workflow_file(name):
        load(name)
    raise DocumentError(
        f'There is no file and no bundled template "{shown(name)}".',
        f"Check the path. Bundled templates: {', '.join(bundled) or 'none'}.",
    )


def _with_subflows(workflow: Workflow, path: Path) -> Workflow:
    """Refresh the subflows from their files."""
    refreshed, problems = refresh_subflows(workflow, path)
    for problem in problems:
        if problem.severity is Severity.ERROR:
            raise DocumentError(f"{problem.place}: {problem.message}", problem.remedy, problems)
        err().line(f"Warning: {problem.place}: {problem.message}", style="yellow")
    return refreshed


def parse_inputs(workflow: Workflow, given: Sequence[str], *, may_miss: bool = False) -> dict[str, Value]:
    """Parse the values of `-i` options.

    Args:
        workflow: The workflow with the inputs.
        given: `NAME=VALUE`, `NAME=@file` (`@-` for standard input), or `NAME=@@…` for a value that begins with `@`.
        may_miss: Whether inputs without a default may be left out.

    Raises:
        InputError: An input is malformed, unknown, repeated, missing or of the wrong type, or its file is unreadable.
    """
    declared = {item.name: item for item in declared_inputs(workflow)}
    values: dict[str, Value] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(f'"-i {shown(text, 60)}" has no value.', "Use -i NAME=VALUE or -i NAME=@FILE.")
        if name not in declared:
            raise InputError(f'The workflow has no input "{shown(name, 60)}".', _list_inputs(declared.values()))
        if name in values:
            raise InputError(f'The input "{shown(name, 60)}" is given twice.', "Give it once.")
        values[name] = value_of_text(text_or_file(value, f'the input "{shown(name, 60)}"'), declared[name])
    missing = [item.name for item in declared.values() if item.default is None and item.name not in values]
    if missing and not may_miss:
        names = ", ".join(f'"{shown(name, 60)}"' for name in missing)
        raise InputError(
            f"No value is given for {'the input' if len(missing) == 1 else 'the inputs'} {names}.",
            f"Add -i {shown(missing[0], 60)}=VALUE. {_list_inputs(declared.values())}",
        )
    return values


def _list_inputs(declared: Iterable[DeclaredInput]) -> str:
    names = "; ".join(map(str, declared))
    return f"Inputs: {names}." if names else "The workflow has no inputs."


def text_or_file(value: str, what: str) -> str:
    """Resolve an argument: `@FILE` is the file's text, `@-` standard input, `@@…` a text that begins with `@`.

    Args:
        value: The argument.
        what: What the value is for, for error messages.

    Raises:
        InputError: The file cannot be read.
        EngineError: Standard input cannot be read.
    """
    if not value.startswith("@"):
        return value
    if value.startswith("@@"):
        return value[1:]
    path = value[1:]
    try:
        if path == STANDARD_INPUT:
            return decode_text(read_standard_input(MAX_FILE_BYTES))
        return read_text_file(Path(path), MAX_FILE_BYTES)
    except NotTextError as error:
        reason, remedy = str(error), "Save it as UTF-8."
    except (OSError, ValueError) as error:
        reason = shown(reason_of(error))
        remedy = "Check the path. For a value that begins with @, write @@."
    raise InputError(f'The file "{shown(path)}" for {what} cannot be read: {reason}.', remedy)


def read_settings(given: Sequence[str], workflow: Workflow) -> Mapping[str, Mapping[str, Value]]:
    """Parse `--set` options.

    Args:
        given: `NODE.FIELD=VALUE`, `NODE.FIELD=@file`, or `NODE.FIELD=@@…` for a value that begins with `@`.
        workflow: The workflow with the nodes.

    Returns:
        By node id, the fields and their new values.

    Raises:
        EngineError: An option is malformed, names an unknown node or field, or has an invalid value.
    """
    found: dict[str, dict[str, Value]] = {}
    for text in given:
        place, sign, value = text.partition("=")
        name, _, field = place.partition(".")
        if name not in workflow.nodes_by_id:  # a title, which may contain dots
            name, _, field = place.rpartition(".")
        if not (sign and name and field):
            raise EngineError(f'"--set {shown(text, 60)}" is malformed.', "Use --set NODE.FIELD=VALUE.")
        node = find_node(workflow, name)
        found.setdefault(node, {})[field] = _setting(
            workflow, node, field, text_or_file(value, f"--set {shown(place)}")
        )
    return found


def _setting(workflow: Workflow, node_id: str, field: str, text: str) -> Value:
    """The value of a setting: the text itself if the field accepts it, else the text parsed as JSON."""
    node = workflow.nodes_by_id[node_id]
    spec = builtin_registry().find(node.type)
    if spec is None or field not in spec.config.model_fields:
        known = ", ".join(spec.config.model_fields) if spec is not None else "none, because its type is unknown"
        remedy = _renamed_setting(node, field, text) or f"Settings: {known}."
        raise EngineError(f'The node "{node_id}" has no setting "{shown(field, 60)}".', remedy)
    for candidate in _candidates(text):
        if _accepts(spec, {**node.config, field: candidate}):
            return candidate
    raise EngineError(
        f'The setting "{field}" of the node "{node_id}" does not accept "{shown(text, 60)}".',
        f"See 'loopwright nodes {node.type}'.",
    )


def _candidates(text: str) -> list[Any]:
    try:
        return [text, json.loads(text)]
    except (ValueError, RecursionError):
        return [text]


def _accepts(spec: AnySpec, config: Mapping[str, Value]) -> bool:
    try:
        spec.config.model_validate(config)
    except ValidationError:
        return False
    return True


def _renamed_setting(node: Node, field: str, text: str) -> str:
    """How to write a setting of version 1 of the file format today; empty if there was no such setting."""
    spec = builtin_registry().find(node.type)
    for candidate in _candidates(text):
        config = upgraded_config(node.type, {field: candidate})
        if field in config or spec is None:
            return ""
        if config and _accepts(spec, config):
            options = " ".join(
                f"--set {quote_argument(f'{node.id}.{name}={compact_json(value)}')}" for name, value in config.items()
            )
            return f"It is part of {' and '.join(config)} now: use {options}."
    return f"Conditions are in stop_when and their combination is in stop_mode now: see 'loopwright nodes {node.type}'."
