"""Refresh the copies of other workflows in a document from their files.

Files are read with the usual limits and never executed. If a file cannot be read, its copy stays unchanged.

The path of a file is relative to the folder of the file around it. The workflow of a subflow without a file is part of
the document, so paths in it are relative to the folder of the document too.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final, TypeAlias, cast

from pydantic import ValidationError

from engine.document.files import dumps, load
from engine.document.migrate import upgraded_copy
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
        file, now, fault = file_of(node), node, None
        if file:
            now, fault = _with_copy(node, path.parent / file, around, known)
        elif (inner := _embedded(node)) is not None:
            now, fault = _with_embedded(node, inner, *_refresh(inner, path, around, known))
        nodes.append(now)
        problems += [fault] if fault is not None else []
    if all(new is old for new, old in zip(nodes, workflow.nodes, strict=True)):
        return workflow, problems
    return workflow.model_copy(update={"nodes": tuple(nodes)}), problems


def file_of(node: Node | None) -> str:
    """Return the file that a subflow names; empty without one, and for other nodes.

    Folders are separated by slashes, so that a path that was typed on Windows leads to the same file everywhere.
    """
    file = node.config.get("file") if node is not None and node.type == _TYPE else None
    return file.strip().replace("\\", "/") if isinstance(file, str) else ""


def named_files(workflow: Workflow, prefix: str = "") -> set[tuple[str, str]]:
    """Return the files that subflows of a document name, as pairs of a subflow's path (`outer.inner`) and a file."""
    found: set[tuple[str, str]] = set()
    for node in workflow.nodes:
        if file := file_of(node):
            found.add((f"{prefix}{node.id}", file))
        elif (inner := _embedded(node)) is not None:
            found |= named_files(inner, f"{prefix}{node.id}.")
    return found


def workflow_in(node: Node | None) -> Workflow | None:
    """Return the workflow of a subflow; None without one or if it is not valid, and for other nodes."""
    copy = node.config.get("workflow") if node is not None and node.type == _TYPE else None
    if not isinstance(copy, dict):
        return None
    try:
        return Workflow.model_validate(upgraded_copy(cast("dict[str, Value]", copy)))
    except ValidationError:
        return None


def _embedded(node: Node) -> Workflow | None:
    """The workflow of a subflow without a file."""
    return None if file_of(node) else workflow_in(node)


def _with_embedded(
    node: Node, inner: Workflow, refreshed: Workflow, problems: list[Problem]
) -> tuple[Node, Problem | None]:
    """The node with its refreshed workflow, and the most severe problem in it."""
    fault = _inner_problem(node, node.title or node.id, _most_severe(problems))
    return (node if refreshed is inner else _with_workflow(node, refreshed)), fault


def _most_severe(problems: list[Problem]) -> Problem | None:
    return min(problems, key=lambda problem: problem.severity is not Severity.ERROR, default=None)


def _inner_problem(node: Node, name: str, first: Problem | None) -> Problem | None:
    """Report a problem of a subflow's workflow, which people call by that name, at the subflow."""
    if first is None:
        return None
    message = f'In "{shown(name, 60)}": {first.message}'
    return _problem(node, first.code, message, first.remedy, is_error=first.severity is Severity.ERROR)


def _with_workflow(node: Node, workflow: Workflow) -> Node:
    return node.model_copy(update={"config": {**node.config, "workflow": json.loads(dumps(workflow))}})


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
    fault = _inner_problem(node, file.name, first)
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
    return copied, _most_severe(faults)


def with_moved_files(workflow: Workflow, old: Path, new: Path) -> Workflow:
    """Return a document as it has to be in another folder, so that the paths of its subflows lead to the same files.

    Args:
        workflow: The document.
        old: Its file.
        new: Its new file.

    Returns:
        The same object if nothing changes. Paths to another drive stay as they are.
    """
    return (
        _with_paths(workflow, lambda file: relative_path(old.parent / file, new))
        if old.parent != new.parent
        else workflow
    )


def with_files_from(workflow: Workflow, file: str) -> Workflow:
    """Return the workflow of a subflow's file as it has to be in the document around it.

    Args:
        workflow: The workflow.
        file: The path of its file, as the subflow names it.
    """
    folder = posixpath.dirname(Path(file).as_posix())
    if not folder or not is_relative(file):
        return workflow
    return _with_paths(workflow, lambda inner: posixpath.normpath(posixpath.join(folder, Path(inner).as_posix())))


def _with_paths(workflow: Workflow, move: Callable[[str], str]) -> Workflow:
    """Change the relative paths that are relative to the folder of a document; an empty new path changes nothing."""
    nodes = tuple(_with_path(node, move) for node in workflow.nodes)
    if all(moved is node for moved, node in zip(nodes, workflow.nodes, strict=True)):
        return workflow
    return workflow.model_copy(update={"nodes": nodes})


def _with_path(node: Node, move: Callable[[str], str]) -> Node:
    file, inner = file_of(node), _embedded(node)
    if file and is_relative(file):
        moved = move(file)
        return node if moved in {"", file} else node.model_copy(update={"config": {**node.config, "file": moved}})
    moved_inner = _with_paths(inner, move) if inner is not None else None
    return node if moved_inner is None or moved_inner is inner else _with_workflow(node, moved_inner)


def relative_path(file: Path, document: Path) -> str:
    """Return the path of a file relative to the folder of a document; empty on another drive."""
    try:
        return Path(os.path.relpath(file, document.parent)).as_posix()
    except ValueError:
        return ""


def is_relative(file: str) -> bool:
    """Whether a path is relative, and not on a drive or another computer."""
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
