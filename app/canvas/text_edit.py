"""Titles, frames and notes edited in place: a field that lies over the text and goes when one is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from app.theme.style import style

SMALLEST: Final = (120, 28)

Kept = Callable[[str], object]


class TextEdit(QObject):
    """The field for one line, and the one for several."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parent = parent
        self.line = QLineEdit(parent)
        self.line.setAccessibleName("Title")
        self.area = QPlainTextEdit(parent)
        self.area.setAccessibleName("Note")
        self.area.setTabChangesFocus(True)
        self._kept: Kept | None = None
        for field in (self.line, self.area):
            field.hide()
            field.installEventFilter(self)

    @property
    def is_open(self) -> bool:
        """Whether something is being edited."""
        return self._kept is not None

    def edit_line(self, rect: QRect, text: str, kept: Kept) -> None:
        """Edit one line in place; `kept` gets the new text unless one gives up."""
        self._open(self.line, rect, kept)
        self.line.setText(text)
        self.line.selectAll()

    def edit_text(self, rect: QRect, text: str, kept: Kept) -> None:
        """Edit several lines in place; Ctrl+Enter or a click elsewhere ends it."""
        self._open(self.area, rect, kept)
        self.area.setPlainText(text)
        self.area.selectAll()

    def finish(self) -> None:
        """Keep what is there, if something is being edited."""
        kept, self._kept = self._kept, None
        if kept is None:
            return
        text = self.line.text() if self.line.isVisible() else self.area.toPlainText()
        self._close()
        kept(text)

    def give_up(self) -> None:
        """Leave everything as it was."""
        self._kept = None
        self._close()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter keeps, Escape gives up, leaving keeps."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            is_enter = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
            with_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            if event.key() == Qt.Key.Key_Escape:
                self.give_up()
                return True
            if is_enter and (watched is self.line or with_control):
                self.finish()
                return True
        if event.type() == QEvent.Type.FocusOut and self.is_open:
            self.finish()
        return super().eventFilter(watched, event)

    def _open(self, field: QLineEdit | QPlainTextEdit, rect: QRect, kept: Kept) -> None:
        self.finish()
        self._kept = kept
        scale = style().scale
        width = max(rect.width(), round(SMALLEST[0] * scale))
        height = max(rect.height(), round(SMALLEST[1] * scale))
        room = self._parent.rect()
        field.setGeometry(
            min(max(rect.x(), 0), max(room.width() - width, 0)),
            min(max(rect.center().y() - height // 2, 0), max(room.height() - height, 0)),
            width,
            height,
        )
        field.show()
        field.raise_()
        field.setFocus(Qt.FocusReason.PopupFocusReason)

    def _close(self) -> None:
        had_focus = self.line.hasFocus() or self.area.hasFocus()
        self.line.hide()
        self.area.hide()
        if had_focus:
            self._parent.setFocus()
