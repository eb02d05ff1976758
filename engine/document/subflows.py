"""Bringing the copies of other workflows in a document up to date with their files.

Files are read with the usual limits, never executed. What cannot be read is told, and the copy stays as it was.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final, TypeAlias

from engine.document.files import dumps, load
from engine.document.model import Node, Workflow
from engine.document.problems import DocumentError, Problem, Severity
from engine.text_sanitizing import shown
from engine.values import Value

_TYPE: Final = "subflow"
_MOST_DEEP: Final = 16
"""How deep workflows may lie inside one another."""

_Chain: TypeAlias = tuple[Path, ...]
"""A file behind those that it lies in, the outermost first."""

_Known: TypeAlias = "dict[_Chain, tuple[Value, DocumentError | Problem | None]]"
"""What was read so far, and what was wrong with it: few files can name one another in very many ways."""


def refresh_subflows(workflow: Workflow, path: Path) -> tuple[Workflow, list[Problem]]:
    """A document whose subflows are as their files are now, those inside them too.

    Args:
        workflow: The document.
        path: Its file, from whose folder the others are seen.

    Returns:
        The document, itself where nothing is new, and what could not be read: an error where there is no copy, a
        warning where the copy of before is left or the subflow is switched off.
    """
    return _refresh(workflow, path, (_real(path),), {})


def _refresh(workflow: Workflow, path: Path, around: _Chain, known: _Known) -> tuple[Workflow, list[Problem]]:
    problems: list[Problem] = []
    nodes: list[Node] = []
    for node in workflow.nodes:
        file, now, fault = node.config.get("file"), node, None
        if node.type == _TYPE and isinstance(file, str) and file.strip():
            now, fault = _with_copy(node, path.parent / file, around, known)
        nodes.append(now)
        problems += [fault] if fault is not None else []
    if all(new is old for new, old in zip(nodes, workflow.nodes, strict=True)):
        return workflow, problems
    return workflow.model_copy(update={"nodes": tuple(nodes)}), problems


def _with_copy(node: Node, file: Path, around: _Chain, known: _Known) -> tuple[Node, Problem | None]:
    """The node with the file's workflow in it, or as it was and why."""
    if not is_relative(str(node.config["file"])):
        message = f'"{shown(node.config["file"], 60)}" is no file seen from the folder of this workflow.'
        return node, _problem(node, "subflow-elsewhere", message, "Name it without drive or host.", is_error=True)
    real = _real(file)
    if real in around:
        message = f'The workflow "{shown(file.name, 60)}" contains itself.'
        return _without_copy(node), _problem(node, "contains-itself", message, "Choose another file.", is_error=True)
    if len(around) > _MOST_DEEP:
        message = f"Workflows lie more than {_MOST_DEEP} deep inside one another."
        return _without_copy(node), _problem(node, "nested-too-deep", message, "Flatten them.", is_error=True)
    has_copy = isinstance(node.config.get("workflow"), dict)
    chain = (*around, real)
    if chain not in known:
        known[chain] = _read(file, chain, known)
    copied, first = known[chain]
    if isinstance(first, DocumentError):
        message = f"{first.message} What runs is the copy in this document." if has_copy else first.message
        return node, _problem(node, "subflow-not-read", message, first.remedy, is_error=not has_copy)
    fault = None
    if first is not None:
        message = f'In "{shown(file.name, 60)}": {first.message}'
        fault = _problem(node, first.code, message, first.remedy, is_error=first.severity is Severity.ERROR)
    if node.config.get("workflow") == copied:
        return node, fault
    return node.model_copy(update={"config": {**node.config, "workflow": copied}}), fault


def _read(file: Path, chain: _Chain, known: _Known) -> tuple[Value, DocumentError | Problem | None]:
    """A file's workflow, those inside it as their files are now, and the worst that is wrong with it."""
    try:
        inner, faults = _refresh(load(file), file, chain, known)
        copied: dict[str, Value] = json.loads(dumps(inner))
    except DocumentError as error:
        return None, error
    copied.pop("layout", None)
    return copied, next(iter(sorted(faults, key=lambda fault: fault.severity is not Severity.ERROR)), None)


def is_relative(file: str) -> bool:
    """Whether a file is named as seen from a folder, and not on a drive or another machine."""
    # As Windows reads it, wherever this is: a path that names a host would be asked for there.
    return not PureWindowsPath(file).anchor and not PurePosixPath(file).is_absolute()


def _without_copy(node: Node) -> Node:
    config = {key: value for key, value in node.config.items() if key != "workflow"}
    return node if len(config) == len(node.config) else node.model_copy(update={"config": config})


def _problem(node: Node, code: str, message: str, remedy: str, *, is_error: bool) -> Problem:
    severity = Severity.ERROR if is_error and node.enabled else Severity.WARNING
    return Problem(code, message, remedy, severity, node=node.id, field="file")


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path  # a link that leads to itself, a name that is none: opening it says so
