"""Inline editors for titles, frames and notes.

The text is committed before anything else happens, such as saving or closing the window: shortcuts and most buttons do
not move the focus. Until then it is the session's pending edit, which autosave includes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QWidget

from app.session import Session
from app.theme.style import style
from engine.document.operation import Operation

SMALLEST: Final = (120, 28)

Step = Callable[[str], Operation | None]
"""Returns the operation for a text, or None if nothing changes."""


class InlineEditor(QObject):
    """The single-line and the multi-line editor.

    Args:
        session: The document's session.
        parent: The widget that the editors lie over.
    """

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._parent = parent
        self.line = QLineEdit(parent)
        self.line.setAccessibleName("Title")
        self.area = QPlainTextEdit(parent)
        self.area.setAccessibleName("Note")
        self.area.setTabChangesFocus(True)
        self._step: Step | None = None
        self._outside_filter = _OutsideEventFilter(self)
        for field in (self.line, self.area):
            field.hide()
            field.installEventFilter(self)
            field.textChanged.connect(self._update_pending_edit)

    @property
    def is_open(self) -> bool:
        """Whether an editor is open."""
        return self._step is not None

    def edit_line(self, rect: QRect, text: str, step: Step) -> None:
        """Edit a line in place; `step` makes the operation unless the user cancels."""
        self._open(self.line, rect, step)
        self.line.setText(text)
        self.line.selectAll()

    def edit_text(self, rect: QRect, text: str, step: Step) -> None:
        """Edit several lines in place; Ctrl+Enter or a click elsewhere commits."""
        self._open(self.area, rect, step)
        self.area.setPlainText(text)
        self.area.selectAll()

    def commit(self) -> None:
        """Commit the open editor, if any."""
        make, self._step = self._step, None
        if make is None:
            return
        self._outside_filter.ignore()
        text = self._text()
        self._close()
        step = make(text)
        if step is not None:
            self._session.do(step)
        self._session.draft.put(None)  # last, so that autosave never misses the text

    def cancel(self) -> None:
        """Close the editor without a change."""
        self._outside_filter.ignore()
        self._step = None
        self._close()
        self._session.draft.put(None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Commit on Enter and on losing the focus; cancel on Escape."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            is_enter = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
            with_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            if event.key() == Qt.Key.Key_Escape:
                self.cancel()
                return True
            if is_enter and (watched is self.line or with_control):
                self.commit()
                return True
        if event.type() == QEvent.Type.FocusOut and self.is_open and not self.owns(QApplication.activePopupWidget()):
            self.commit()
        return super().eventFilter(watched, event)

    def owns(self, thing: QObject | None) -> bool:
        """Whether an object is an editor or part of one, such as its context menu."""
        while thing is not None and thing is not self.line and thing is not self.area:
            thing = thing.parent()
        return thing is not None

    def is_outside(self, watched: QObject, event: QEvent) -> bool:
        """Whether an event starts something else: a shortcut, a mouse press elsewhere, closing the window."""
        kind = event.type()
        if kind == QEvent.Type.MouseButtonPress:
            return isinstance(watched, QWidget) and not self.owns(watched)
        return kind == QEvent.Type.Shortcut or (kind == QEvent.Type.Close and watched is self._parent.window())

    def _text(self) -> str:
        return self.line.text() if self.line.isVisible() else self.area.toPlainText()

    def _update_pending_edit(self) -> None:
        if self._step is not None:
            self._session.draft.put(self._step(self._text()))

    def _open(self, field: QLineEdit | QPlainTextEdit, rect: QRect, step: Step) -> None:
        self.commit()
        self._step = step
        self._outside_filter.watch()
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


class _OutsideEventFilter(QObject):
    """Application-wide event filter while an editor is open."""

    def __init__(self, edit: InlineEditor) -> None:
        super().__init__(edit)
        self._edit = edit
        application = QApplication.instance()
        assert application is not None
        self._application = application

    def watch(self) -> None:
        self._application.installEventFilter(self)

    def ignore(self) -> None:
        self._application.removeEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self._edit.is_outside(watched, event):
            self._edit.commit()
        return False
