"""Undo stack of an open document."""

from __future__ import annotations

from dataclasses import dataclass

from engine.document.model import Workflow
from engine.document.operations import (
    Operation,
    OperationError,
    SetConfig,
    SetSettings,
    SetText,
    SetTitle,
)


@dataclass(frozen=True, slots=True)
class _Step:
    """An undo step: its inverse operation and the state before it."""

    title: str
    inverse: Operation
    state: int


class UndoStack:
    """An open document with its undo and redo steps.

    Consecutive changes of the same field (of a config, the settings, a title, the name or the description) are merged
    into one step, as when a person types. Undo, redo, a save and `seal` end such a step.

    Attributes:
        workflow: The current document.
        state: A number that identifies the current document; undo and redo restore earlier numbers.
    """

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.state = 0
        self._newest = 0
        self._saved = 0
        self._undo_steps: list[_Step] = []
        self._redo_steps: list[_Step] = []
        self._open_field: tuple[object, ...] | None = None

    @property
    def undo_title(self) -> str | None:
        """Title of the step that `undo` reverts, or None."""
        return self._undo_steps[-1].title if self._undo_steps else None

    @property
    def redo_title(self) -> str | None:
        """Title of the step that `redo` repeats, or None."""
        return self._redo_steps[-1].title if self._redo_steps else None

    @property
    def is_modified(self) -> bool:
        """Whether the document has unsaved changes."""
        return self._saved != self.state

    def do(self, operation: Operation) -> Workflow:
        """Apply an operation and clear the redo steps.

        Raises:
            OperationError: It cannot be applied; nothing has changed.
        """
        self.workflow, inverse = operation.apply(self.workflow)
        self._redo_steps.clear()
        before = self.state
        field = _field_of(operation)
        if field is not None and field == self._open_field:
            merged = self._undo_steps.pop()
            inverse, before = merged.inverse, merged.state
        self._undo_steps.append(_Step(operation.title, inverse, before))
        self._newest += 1
        self.state = self._newest
        self._open_field = field
        return self.workflow

    def undo(self) -> Workflow:
        """Undo the last step.

        Raises:
            OperationError: There is nothing to undo.
        """
        self._move(self._undo_steps, self._redo_steps, "undo")
        return self.workflow

    def redo(self) -> Workflow:
        """Redo the step that was undone last.

        Raises:
            OperationError: There is nothing to redo.
        """
        self._move(self._redo_steps, self._undo_steps, "redo")
        return self.workflow

    def seal(self) -> None:
        """End the current step, so that the next change starts a new one."""
        self._open_field = None

    def mark_saved(self, state: int | None = None) -> None:
        """Mark the current state, or an earlier one, as saved."""
        self._saved = self.state if state is None else state
        self.seal()

    def _move(self, source: list[_Step], target: list[_Step], what: str) -> None:
        if not source:
            raise OperationError(f"There is nothing to {what}.")
        self.workflow, inverse = source[-1].inverse.apply(self.workflow)
        step = source.pop()
        target.append(_Step(step.title, inverse, self.state))
        self.state = step.state
        self.seal()


def _field_of(operation: Operation) -> tuple[object, ...] | None:
    """The field that an operation changes; None if it must not be merged with others."""
    match operation:
        case SetConfig(path, values):
            return SetConfig, tuple(values), path
        case SetTitle(node_id):
            return SetTitle, node_id
        case SetSettings(path):
            return SetSettings, path
        case SetText(field):
            return SetText, field
        case _:
            return None
