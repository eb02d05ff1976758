"""Refresh the copies of other workflows in a document from their files.

Files are read with the usual limits and never executed. If a file cannot be read, its copy stays unchanged.
"""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final, TypeAlias

from engine.document.files import dumps, load
from engine.document.model import Node, Workflow
from engine.document.problems import DocumentError, Problem, Severity
from engine.text_sanitizing import shown
from engine.values import Value

_TYPE: Final = "subflow"
_MAX_DEPTH: Final = 16
"""Maximum nesting of workflows."""

_Chain: TypeAlias = tuple[Path, ...]
"""A file, after the files of the workflows that contain it, outermost first."""

_Known: TypeAlias = "dict[_Chain, tuple[Value, DocumentError | Problem | None]]"
"""Cache of workflows read and their errors; a few files can refer to each other in very many ways."""


def refresh_subflows(workflow: Workflow, path: Path) -> tuple[Workflow, list[Problem]]:
    """Refresh all subflows of a document, nested ones included.

    Args:
        workflow: The document.
        path: Its file, to whose folder the other files are relative.

    Returns:
        The document, the same object if nothing has changed, and a problem for each file that could not be read: an
        error if there is no copy, a warning if a copy exists or the subflow is disabled.
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
    """The node with a fresh copy, or unchanged with the problem."""
    if not is_relative(str(node.config["file"])):
        message = f'"{shown(node.config["file"], 60)}" is not a path relative to the folder of this workflow.'
        return node, _problem(node, "subflow-elsewhere", message, "Use a relative path.", is_error=True)
    real = _real(file)
    if real in around:
        message = f'The workflow "{shown(file.name, 60)}" contains itself.'
        return _without_copy(node), _problem(node, "contains-itself", message, "Choose another file.", is_error=True)
    if len(around) > _MAX_DEPTH:
        message = f"Workflows are nested more than {_MAX_DEPTH} levels deep."
        return _without_copy(node), _problem(node, "nested-too-deep", message, "Reduce the nesting.", is_error=True)
    has_copy = isinstance(node.config.get("workflow"), dict)
    chain = (*around, real)
    if chain not in known:
        known[chain] = _read(file, chain, known)
    copied, first = known[chain]
    if isinstance(first, DocumentError):
        message = f"{first.message} The copy in this document is used." if has_copy else first.message
        return node, _problem(node, "subflow-not-read", message, first.remedy, is_error=not has_copy)
    fault = None
    if first is not None:
        message = f'In "{shown(file.name, 60)}": {first.message}'
        fault = _problem(node, first.code, message, first.remedy, is_error=first.severity is Severity.ERROR)
    if node.config.get("workflow") == copied:
        return node, fault
    return node.model_copy(update={"config": {**node.config, "workflow": copied}}), fault


def _read(file: Path, chain: _Chain, known: _Known) -> tuple[Value, DocumentError | Problem | None]:
    """The workflow in a file with refreshed subflows, and its most severe problem."""
    try:
        inner, faults = _refresh(load(file), file, chain, known)
        copied: dict[str, Value] = json.loads(dumps(inner))
    except DocumentError as error:
        return None, error
    copied.pop("layout", None)
    return copied, next(iter(sorted(faults, key=lambda fault: fault.severity is not Severity.ERROR)), None)


def moved_files(workflow: Workflow, old: Path, new: Path) -> dict[str, str]:
    """Return the paths of subflow files that change if the document moves, by the subflow's id.

    Args:
        workflow: The document.
        old: Its file.
        new: Its new file. The paths will be relative to its folder, and lead to the same files as before.
    """
    files = {node.id: node.config.get("file") for node in workflow.nodes if node.type == _TYPE}
    moved = {
        node_id: relative_path(old.parent / file, new)
        for node_id, file in files.items()
        if old.parent != new.parent and isinstance(file, str) and file.strip() and is_relative(file)
    }
    return {node_id: file for node_id, file in moved.items() if file and file != files[node_id]}


def relative_path(file: Path, document: Path) -> str:
    """Return the path of a file relative to the folder of a document; empty on another drive."""
    try:
        return Path(os.path.relpath(file, document.parent)).as_posix()
    except ValueError:
        return ""


def is_relative(file: str) -> bool:
    """Whether a path is relative, and not on a drive or another machine."""
    # By the rules of Windows too, where a path with a host would open a network connection.
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
        return path  # a circular link or an invalid name; opening the file reports it
