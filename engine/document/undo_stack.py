"""Undo and redo of one open document. Knows operations and nothing of files or windows."""

from __future__ import annotations

from dataclasses import dataclass

from engine.document.model import Workflow
from engine.document.operation import Operation, OperationError, Restore
from engine.document.operations import SetConfig, SetDescription, SetName, SetSettings, SetTitle


@dataclass(frozen=True, slots=True)
class _Step:
    """A step, and the state to which its way back leads."""

    title: str
    way_back: Operation
    state: int


class History:
    """An open document with what was done to it and what was taken back.

    Changes of the same field one after the other (of a config, the settings, a title, the name or the description)
    become one step, as when a person types; undo, redo, a save and `seal` end such a step.

    Attributes:
        workflow: The document as it is now.
        state: A number for the document as it is now; undo and redo come back to the numbers that were there before.
    """

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.state = 0
        self._newest = 0
        self._saved = 0
        self._done: list[_Step] = []
        self._undone: list[_Step] = []
        self._open_field: tuple[object, ...] | None = None

    @property
    def undo_title(self) -> str | None:
        """What `undo` would take back; None where there is nothing."""
        return self._done[-1].title if self._done else None

    @property
    def redo_title(self) -> str | None:
        """What `redo` would do again; None where there is nothing."""
        return self._undone[-1].title if self._undone else None

    @property
    def is_modified(self) -> bool:
        """Whether the document differs from the one that was opened or saved last."""
        return self._saved != self.state

    def do(self, operation: Operation) -> Workflow:
        """Change the document; what was taken back before can no longer be done again.

        Raises:
            OperationError: It does not fit; nothing has changed.
        """
        self.workflow, way_back = operation.apply(self.workflow)
        self._undone.clear()
        before = self.state
        field = _field_of(operation)
        if field is not None and field == self._open_field:
            joined = self._done.pop()
            way_back, before = _joined(joined.way_back, way_back), joined.state
        self._done.append(_Step(operation.title, way_back, before))
        self._newest += 1
        self.state = self._newest
        self._open_field = field
        return self.workflow

    def undo(self) -> Workflow:
        """Take the last step back.

        Raises:
            OperationError: There is none.
        """
        self._move(self._done, self._undone, "taken back")
        return self.workflow

    def redo(self) -> Workflow:
        """Do again what was taken back last.

        Raises:
            OperationError: There is nothing.
        """
        self._move(self._undone, self._done, "done again")
        return self.workflow

    def seal(self) -> None:
        """End the present step: the next change is one of its own."""
        self._open_field = None

    def mark_saved(self, state: int | None = None) -> None:
        """Remember the document as the saved one: as it is now, or as it was in an earlier state."""
        self._saved = self.state if state is None else state
        self.seal()

    def _move(self, source: list[_Step], target: list[_Step], what: str) -> None:
        if not source:
            raise OperationError(f"There is nothing that could be {what}.")
        self.workflow, way_back = source[-1].way_back.apply(self.workflow)
        step = source.pop()
        target.append(_Step(step.title, way_back, self.state))
        self.state = step.state
        self.seal()


def _field_of(operation: Operation) -> tuple[object, ...] | None:
    """The one field that an operation changes; None for an operation that is a step of its own."""
    match operation:
        case SetConfig(node_id, path):
            return SetConfig, node_id, path
        case SetTitle(node_id):
            return SetTitle, node_id
        case SetSettings(path):
            return SetSettings, path
        case SetName() | SetDescription():
            return (type(operation),)
        case _:
            return None


def _joined(first: Operation, second: Operation) -> Operation:
    # Both lead back from a change of the same field: leave where the second begins, arrive where the first does.
    assert isinstance(first, Restore)
    assert isinstance(second, Restore)
    return Restore(second.title, expected=second.expected, parts=first.parts)
