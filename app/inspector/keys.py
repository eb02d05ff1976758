"""What the keyboard means in every field: undo is the document's, leaving a field ends a step."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget

from app.session import Session
from app.theme.wheel import scroll_past

_REDO: Final = (QKeySequence("Ctrl+Shift+Z"), QKeySequence("Ctrl+Y"))
"""Both count, whatever the platform's own is."""


class Keys(QObject):
    """Watches the widgets of a form.

    Signals:
        entered: A widget has got the keyboard.
    """

    entered = Signal(QWidget)

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session

    def watch(self, widget: QWidget) -> None:
        """Watch a widget from now on."""
        widget.installEventFilter(self)
        scroll_past(widget)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # Qt's name
        """Take what is not the widget's own."""
        match event.type():
            case QEvent.Type.FocusOut:
                self._session.seal()
            case QEvent.Type.FocusIn:
                self.entered.emit(watched)
            case QEvent.Type.KeyPress if isinstance(event, QKeyEvent):
                return self._is_taken(event)
            case _:
                pass
        return False

    def _is_taken(self, event: QKeyEvent) -> bool:
        if event.matches(QKeySequence.StandardKey.Undo):
            self._session.undo()
            return True
        keys = QKeySequence(event.keyCombination())
        if event.matches(QKeySequence.StandardKey.Redo) or keys in _REDO:
            self._session.redo()
            return True
        return False
