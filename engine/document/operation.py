"""What an operation on a document is, how it is taken back, and how several are one.

An operation is frozen data. Applied to a workflow it gives a new workflow and the operation that leads back; the old
workflow is as it was. An inverse holds the parts that were there before, shared and not copied, so taking back is
exact, the order of nodes, edges and keys included, whatever problems the document has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engine.document.json_rules import JsonPath, faults
from engine.document.model import Workflow
from engine.document.wording import shown
from engine.errors import EngineError


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
