"""The operation protocol: how documents change, and how changes are undone.

An operation is frozen data. Applied to a workflow, it returns a new workflow and the inverse operation; the old
workflow is unchanged. An inverse shares the previous parts instead of copying them, so undo is exact, including the
order of nodes, edges and keys, whatever problems the document has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, cast

from engine.document.json_rules import JsonPath, faults
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.text_sanitizing import shown
from engine.values import Value


class OperationError(EngineError):
    """An operation cannot be applied to the document, which is unchanged."""


class Operation(Protocol):
    """A change of a document."""

    @property
    def title(self) -> str:
        """Description for the undo menu: `Connect draft → critique`."""
        ...

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Return the changed workflow and the inverse operation.

        Raises:
            OperationError: The operation cannot be applied to this workflow.
        """
        ...


@dataclass(frozen=True, slots=True)
class Restore:
    """Restores fields of a document: the inverse of every other operation.

    Attributes:
        title: The title of the operation to undo.
        expected: The current values of these fields.
        parts: The values to restore.
    """

    title: str
    expected: Mapping[str, Any]
    parts: Mapping[str, Any]

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Restore the fields.

        Raises:
            OperationError: The document has changed since the operation.
        """
        for name, value in self.expected.items():
            present = getattr(workflow, name)
            if present is not value and present != value:
                message = f'"{shown(self.title)}" cannot be undone: the {name} have changed since.'
                raise OperationError(message, "Undo the later changes first.")
        back = workflow.model_copy(update=self.parts)
        return back, Restore(self.title, expected=self.parts, parts=self.expected)


@dataclass(frozen=True, slots=True)
class Batch:
    """Several operations that are applied and undone as one.

    Attributes:
        title: Description for the undo menu.
        operations: The operations, in the order of application.
    """

    title: str
    operations: tuple[Operation, ...]

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Apply all operations, or none.

        Raises:
            OperationError: One of them cannot be applied.
        """
        inverses: list[Operation] = []
        for operation in self.operations:
            workflow, inverse = operation.apply(workflow)
            inverses.append(inverse)
        return workflow, Batch(self.title, tuple(reversed(inverses)))


def changed(workflow: Workflow, title: str, **parts: object) -> tuple[Workflow, Restore]:
    """Return the workflow with some fields replaced, and the inverse operation."""
    before = {name: getattr(workflow, name) for name in parts}
    return workflow.model_copy(update=parts), Restore(title, expected=parts, parts=before)


def require_json(value: object, what: str, depth: int, path: JsonPath = ()) -> None:
    """Check that a value can be saved.

    Args:
        value: The new part of the document.
        what: Its name for error messages.
        depth: The number of objects and lists of the document that contain it.
        path: Its path inside of `what`.

    Raises:
        OperationError: The value is not valid JSON for a document.
    """
    for fault in faults(value, depth=depth):
        place = ".".join(map(str, (*path, *fault.path)))
        where = f', "{shown(place)}"' if place else ""
        raise OperationError(f"{what}{where}: {fault.message}", fault.remedy)


def index_of(workflow: Workflow, node_id: str) -> int:
    """Index of a node in the list. If nodes share an id, of the first one.

    Raises:
        OperationError: There is no such node.
    """
    for index, node in enumerate(workflow.nodes):
        if node.id == node_id:
            return index
    raise OperationError(f'There is no node "{shown(node_id)}".', "Choose an existing node.")


class Unset(Enum):
    """Type of `UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""Stands for the absence of a value, which differs from null."""


def set_in(
    container: dict[str, Value], path: JsonPath, value: Value | Unset, what: str, *, depth: int
) -> dict[str, Value]:
    """Set or remove one value deep inside an object, without changing the original.

    Missing objects and lists on the path are created. The index after the last entry appends to a list. Removing a
    missing value has no effect. Everything beside the path is shared with the original.

    Args:
        container: The object.
        path: Keys and list indices.
        value: The value, or `UNSET` to remove it.
        what: The object's name for error messages.
        depth: The number of objects and lists of the document that contain it.

    Raises:
        OperationError: The path is empty or invalid, or the value is not valid JSON for a document.
    """
    try:
        if not path:
            raise LookupError("the path is empty")
        changed = cast("dict[str, Value]", _with_value(container, path, value))
    except LookupError as error:
        message = f'{what} cannot be changed at "{shown(".".join(map(str, path)))}": {error.args[0]}.'
        raise OperationError(message, "Choose an existing place.") from error
    # Check only what is new, so that moving a node does not check a large layout.
    require_json(dict.fromkeys(key for key in path if isinstance(key, str)), what, depth)
    if not isinstance(value, Unset):
        require_json(value, what, depth + len(path), path)
    return changed


def _with_value(container: Value, path: JsonPath, value: Value | Unset) -> Value:
    key, rest = path[0], path[1:]
    if isinstance(container, dict) and isinstance(key, str):
        return _in_object(container, key, rest, value)
    if isinstance(container, list) and isinstance(key, int):
        return _in_list(container, key, rest, value)
    kind = "an object" if isinstance(key, str) else "a list"
    raise LookupError(f'"{shown(key)}" needs {kind} around it')


def _in_object(container: dict[str, Value], key: str, rest: JsonPath, value: Value | Unset) -> Value:
    if value is UNSET and key not in container:
        return container
    if not rest and value is UNSET:
        return {name: item for name, item in container.items() if name != key}
    return {**container, key: _deeper(container.get(key, UNSET), rest, value)}


def _in_list(container: list[Value], index: int, rest: JsonPath, value: Value | Unset) -> Value:
    if not 0 <= index <= len(container):
        raise LookupError(f"the list has {len(container)} entries, so the index {index} is out of range")
    if value is UNSET and index == len(container):
        return container
    if not rest and value is UNSET:
        return container[:index] + container[index + 1 :]
    old = container[index] if index < len(container) else UNSET
    return [*container[:index], _deeper(old, rest, value), *container[index + 1 :]]


def _deeper(old: Value | Unset, rest: JsonPath, value: Value | Unset) -> Value:
    if not rest:
        return cast("Value", value)
    if isinstance(old, Unset):
        old = {} if isinstance(rest[0], str) else []
    return _with_value(old, rest, value)
