"""Base class of the editors in a form, and their connection to the object that the form edits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget

from app.inspector.field_spec import FieldSpec
from app.inspector.model_list import ModelSource
from app.session import Session
from app.theme.style import set_style_properties
from app.theme.widgets import ignore_wheel_unless_focused, plain_tool_tip, vbox
from engine.document.operations import Operation, SetConfig, SetSettings, Unset
from engine.document.problems import JsonPath, Problem, Severity
from engine.values import Value

_REDO: Final = (QKeySequence("Ctrl+Shift+Z"), QKeySequence("Ctrl+Y"))
"""Redo on every platform, in addition to the platform's own shortcut."""


class FieldEventFilter(QObject):
    """Event filter for the widgets of a form.

    Undo and redo go to the document, and losing the focus ends an undo step.

    Signals:
        entered: A watched widget received the keyboard focus.
    """

    entered = Signal(QWidget)

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session

    def watch(self, widget: QWidget) -> None:
        """Install the filter on a widget."""
        widget.installEventFilter(self)
        ignore_wheel_unless_focused(widget)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # Qt's name
        """Handle undo, redo and focus changes."""
        match event.type():
            case QEvent.Type.FocusOut:
                self._session.seal()
            case QEvent.Type.FocusIn:
                self.entered.emit(watched)
            case QEvent.Type.KeyPress if isinstance(event, QKeyEvent):
                return self._handle_key(event)
            case _:
                pass
        return False

    def _handle_key(self, event: QKeyEvent) -> bool:
        if event.matches(QKeySequence.StandardKey.Undo):
            self._session.undo()
            return True
        keys = QKeySequence(event.keyCombination())
        if event.matches(QKeySequence.StandardKey.Redo) or keys in _REDO:
            self._session.redo()
            return True
        return False


class ConfigBinding(QObject):
    """The object that a form shows and edits.

    Attributes:
        session: The open document.
        node_id: The node; None for the workflow itself.
        models: The models to choose from.
        events: The event filter for the widgets of the form.
        fields: The fields of the object.
    """

    def __init__(
        self,
        session: Session,
        models: ModelSource,
        node_id: str | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.session = session
        self.node_id = node_id
        self.models = models
        self.events = FieldEventFilter(session, self)
        self.fields: Mapping[str, FieldSpec] = {}

    @property
    def values(self) -> dict[str, Any]:
        """The current values in the document."""
        if self.node_id is None:
            return self.session.workflow.settings
        node = self.session.node(self.node_id)
        return {} if node is None else node.config

    def write(self, path: JsonPath, value: Value | Unset) -> bool:
        """Change a value in the document."""
        operation: Operation
        operation = SetSettings(path, value) if self.node_id is None else SetConfig(self.node_id, path, value)
        return self.session.do(operation)


_NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem in the value of a field, with its dotted path in that value; empty for the value as a whole."""

    path: str
    problem: Problem


class Editor(QWidget):
    """Edits one value.

    Invalid input is emitted unchanged: the document stores it, and its validation reports the problem.

    Signals:
        edited: The user changed the value; the new value.
        layout_changed: Widgets were added or removed.
        editing_finished: The user left the text; problems of unfinished texts are due.

    Attributes:
        binding: The object that the form edits.
        path: The place of the value in the config.
        main_widget: The widget that receives the focus first.
        box: The layout of its widgets.
    """

    explains_itself = False
    """Whether its widgets explain the field, so that no help is needed below it."""

    edited = Signal(object)
    layout_changed = Signal()
    editing_finished = Signal()

    def __init__(self, field: FieldSpec, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = field
        self.binding = binding
        self.path: JsonPath = (field.name,)
        self.main_widget: QWidget = self
        self._value: Any = _NOTHING
        self.box = vbox(spacing=1, parent=self)

    def show_value(self, value: Any) -> None:
        """Show a value. If it equals the current one, leave the text as it was typed."""
        if is_same_json(value, self._value):
            return
        self._value = value
        self._display(value)

    def refresh(self) -> None:
        """Update what depends on the rest of the document: variables, nodes, models."""

    def refresh_run(self) -> None:
        """Update what depends on the last run."""

    def show_problems(self, problems: list[FieldProblem]) -> list[FieldProblem]:
        """Mark problems.

        Returns:
            The problems that the editor does not show itself.
        """
        mark_invalid(self.main_widget, invalid=any(found.problem.severity is Severity.ERROR for found in problems))
        return problems

    def help_for(self, value: Any) -> str:
        """Return the help of a value; that of the field by default."""
        del value
        return self.field.help

    def focus_path(self, path: str) -> None:
        """Move the focus to a dotted path in the value."""
        del path
        self.main_widget.setFocus()

    def register(self, widget: QWidget, title: str = "", text: str = "") -> None:
        """Set the accessible name of a widget and watch its events."""
        describe_widget(widget, title or self.field.title, text or self.field.help)
        self.binding.events.watch(widget)

    def _display(self, value: Any) -> None:
        raise NotImplementedError

    def _commit(self, value: Any) -> None:
        if is_same_json(value, self._value):
            return
        self._value = value
        self.edited.emit(value)

    def _commit_step(self, value: Any) -> None:
        """Emit a new value as an undo step of its own, and show it."""
        self.binding.session.seal()
        self._commit(value)
        self._display(value)
        self.binding.session.seal()


def is_same_json(first: Any, second: Any) -> bool:
    """Return whether two values are the same JSON. Unlike in Python, 1, 1.0 and true differ, and so does key order."""
    if type(first) is not type(second) or first != second:
        return False
    return not isinstance(first, dict | list) or json.dumps(first) == json.dumps(second)


def mark_invalid(widget: QWidget, *, invalid: bool) -> None:
    """Set or clear the error style of a widget."""
    if bool(widget.property("invalid")) != invalid:
        set_style_properties(widget, invalid=invalid)


def describe_widget(widget: QWidget, title: str, text: str = "") -> None:
    """Set the accessible name of a widget, and its help as description and tooltip."""
    widget.setAccessibleName(title)
    if text:
        widget.setAccessibleDescription(text)
        widget.setToolTip(plain_tool_tip(text))
