"""Connects a form to the object that it edits: the config of a node, or the settings of the workflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget

from app.session import Session
from app.theme.widgets import ignore_wheel_unless_focused
from engine.document.json_rules import JsonPath
from engine.document.operation import Operation, Unset
from engine.document.operations import SetConfig, SetSettings
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
        model_names: Returns the names of models to choose from.
        events: The event filter for the widgets of the form.
    """

    def __init__(
        self,
        session: Session,
        model_names: Callable[[], list[str]],
        node_id: str | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.session = session
        self.node_id = node_id
        self.model_names = model_names
        self.events = FieldEventFilter(session, self)

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
