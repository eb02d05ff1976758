"""What an operation on a document is, how it is taken back, and how several are one.

An operation is frozen data. Applied to a workflow it gives a new workflow and the operation that leads back; the old
workflow is as it was. An inverse holds the parts that were there before, shared and not copied, so taking back is
exact, the order of nodes, edges and keys included, whatever problems the document has.
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
    """An operation that does not fit the document. The document is unchanged."""


class Operation(Protocol):
    """A change of a document."""

    @property
    def title(self) -> str:
        """What it does, in words for an undo menu: `Connect draft → critique`."""
        ...

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Give the changed workflow, and the operation that leads back from there.

        Raises:
            OperationError: It does not fit this workflow.
        """
        ...


@dataclass(frozen=True, slots=True)
class Restore:
    """Puts parts of a document back: the inverse of every other operation.

    Attributes:
        title: The title of the operation that it takes back.
        expected: Fields of the workflow as they must be now.
        parts: The same fields as they shall be.
    """

    title: str
    expected: Mapping[str, Any]
    parts: Mapping[str, Any]

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Put the parts back.

        Raises:
            OperationError: The document is not the one that the operation had led to.
        """
        for name, value in self.expected.items():
            present = getattr(workflow, name)
            if present is not value and present != value:
                message = f'"{shown(self.title)}" cannot be taken back: the {name} have changed since.'
                raise OperationError(message, "Take back the later changes first.")
        back = workflow.model_copy(update=self.parts)
        return back, Restore(self.title, expected=self.parts, parts=self.expected)


@dataclass(frozen=True, slots=True)
class Batch:
    """Several operations that are done and taken back as one.

    Attributes:
        title: What they do together.
        operations: In the order in which they are applied; all or none.
    """

    title: str
    operations: tuple[Operation, ...]

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Apply one after the other.

        Raises:
            OperationError: One of them does not fit.
        """
        inverses: list[Operation] = []
        for operation in self.operations:
            workflow, inverse = operation.apply(workflow)
            inverses.append(inverse)
        return workflow, Batch(self.title, tuple(reversed(inverses)))


def changed(workflow: Workflow, title: str, **parts: object) -> tuple[Workflow, Restore]:
    """The workflow with some of its fields replaced, and the way back."""
    before = {name: getattr(workflow, name) for name in parts}
    return workflow.model_copy(update=parts), Restore(title, expected=parts, parts=before)


def require_json(value: object, what: str, depth: int, path: JsonPath = ()) -> None:
    """Refuse a value that could not be saved.

    Args:
        value: What shall become part of the document.
        what: What to call it in the message.
        depth: How many objects and lists of the document stand around it.
        path: Where it stands in what `what` names.

    Raises:
        OperationError: It is not JSON, or breaks the rules of a document.
    """
    for fault in faults(value, depth=depth):
        place = ".".join(map(str, (*path, *fault.path)))
        where = f', "{shown(place)}"' if place else ""
        raise OperationError(f"{what}{where}: {fault.message}", fault.remedy)


def index_of(workflow: Workflow, node_id: str) -> int:
    """Where a node stands in the list; of nodes that share an id, the first.

    Raises:
        OperationError: There is no such node.
    """
    for index, node in enumerate(workflow.nodes):
        if node.id == node_id:
            return index
    raise OperationError(f'There is no node "{shown(node_id)}".', "Choose a node that is there.")


class Unset(Enum):
    """The kind of `UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""In place of a value: that there shall be none, which is something else than null."""


def set_in(
    container: dict[str, Value], path: JsonPath, value: Value | Unset, what: str, *, depth: int
) -> dict[str, Value]:
    """An object with one value set or taken out.

    Objects and lists that are missing on the way are made. An index one behind the end of a list adds to it. To take
    out what is not there changes nothing.

    Args:
        container: The object.
        path: Keys and list indices that lead to the place.
        value: What shall stand there.
        what: What to call the object in messages.
        depth: How many objects and lists of the document stand around it.

    Raises:
        OperationError: The path is empty, leads through something that is no object or list, or behind a list's end; or
            the value is not JSON.
    """
    try:
        if not path:
            raise LookupError("the path is empty")
        changed = cast("dict[str, Value]", _with_value(container, path, value))
    except LookupError as error:
        message = f'{what} cannot be changed at "{shown(".".join(map(str, path)))}": {error.args[0]}.'
        raise OperationError(message, "Choose a place that is there.") from error
    # Only what is new: a large layout is not gone through for every node that is moved in it.
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
    raise LookupError(f'"{shown(key)}" would have to stand in {kind}')


def _in_object(container: dict[str, Value], key: str, rest: JsonPath, value: Value | Unset) -> Value:
    if value is UNSET and key not in container:
        return container
    if not rest and value is UNSET:
        return {name: kept for name, kept in container.items() if name != key}
    return {**container, key: _deeper(container.get(key, UNSET), rest, value)}


def _in_list(container: list[Value], index: int, rest: JsonPath, value: Value | Unset) -> Value:
    if not 0 <= index <= len(container):
        raise LookupError(f"the list has {len(container)} entries and no place {index}")
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
