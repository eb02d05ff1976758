"""Titles, frames and notes edited in place: a field that lies over the text and goes when one is done.

What was typed is in the document before anything else is done, such as saving it or closing the window: shortcuts and
most buttons leave the focus where it is. Until then it is the session's draft, with which it is kept against a crash.
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
"""Gives what is to be done for a text; None where it would change nothing."""


class InlineEditor(QObject):
    """The field for one line, and the one for several.

    Args:
        session: The document.
        parent: What the fields lie over.
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
            field.textChanged.connect(self._note_typing)

    @property
    def is_open(self) -> bool:
        """Whether something is being edited."""
        return self._step is not None

    def edit_line(self, rect: QRect, text: str, step: Step) -> None:
        """Edit one line in place; `step` is done with the new text unless one gives up."""
        self._open(self.line, rect, step)
        self.line.setText(text)
        self.line.selectAll()

    def edit_text(self, rect: QRect, text: str, step: Step) -> None:
        """Edit several lines in place; Ctrl+Enter or a click elsewhere ends it."""
        self._open(self.area, rect, step)
        self.area.setPlainText(text)
        self.area.selectAll()

    def commit(self) -> None:
        """Keep what is there, if something is being edited."""
        make, self._step = self._step, None
        if make is None:
            return
        self._outside_filter.ignore()
        text = self._text()
        self._close()
        step = make(text)
        if step is not None:
            self._session.do(step)
        self._session.draft.put(None)  # only now: in between nothing of it would be kept

    def cancel(self) -> None:
        """Leave everything as it was."""
        self._outside_filter.ignore()
        self._step = None
        self._close()
        self._session.draft.put(None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter keeps, Escape gives up, leaving keeps."""
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
        """Whether it is a field of this one, or a part of it, such as its menu."""
        while thing is not None and thing is not self.line and thing is not self.area:
            thing = thing.parent()
        return thing is not None

    def is_outside(self, watched: QObject, event: QEvent) -> bool:
        """Whether an event begins something else: a shortcut, a press of the mouse, the end of the window."""
        kind = event.type()
        if kind == QEvent.Type.MouseButtonPress:
            return isinstance(watched, QWidget) and not self.owns(watched)
        return kind == QEvent.Type.Shortcut or (kind == QEvent.Type.Close and watched is self._parent.window())

    def _text(self) -> str:
        return self.line.text() if self.line.isVisible() else self.area.toPlainText()

    def _note_typing(self) -> None:
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
    """Looks at all events of the program while something is being edited, and only then."""

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
