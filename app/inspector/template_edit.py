"""A text that names values: coloured, with names offered while one is typed."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QTextCursor
from PySide6.QtWidgets import QToolTip, QWidget

from app.inspector.completions import Completions, fitting
from app.inspector.editors.texts import GrowingEdit
from app.inspector.highlighter import Highlighter
from app.inspector.holes import find_holes, name_before
from app.inspector.names import Name
from app.inspector.units import to_units
from app.theme.widgets import plain_tool_tip
from engine.nodes.spec import TextKind

_PICK = {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab}
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 5, Qt.Key.Key_PageUp: -5}


class TemplateEdit(GrowingEdit):
    """A template or an expression.

    Attributes:
        names: The names that may stand here.
        highlighter: Colours it.
        completions: The names on offer; hidden while there are none.
    """

    def __init__(self, kind: TextKind, least: int, most: int, parent: QWidget | None = None) -> None:
        super().__init__(least, most, parent)
        self._kind = kind
        self.names: list[Name] = []
        self.highlighter = Highlighter(self.document(), kind)
        self.completions = Completions(self)
        self.completions.picked.connect(self._pick)
        self.cursorPositionChanged.connect(self._follow_cursor)

    def set_names(self, names: list[Name]) -> None:
        """Say which names may stand here."""
        self.names = names
        self.highlighter.set_names(names)

    def offer_names(self, *, open_hole: bool = False) -> None:
        """Open the list at the text cursor; with `open_hole` braces are typed first where there are none."""
        self.setFocus()
        if open_hole and self._kind is TextKind.TEMPLATE and self._typed_name() is None:
            self.insertPlainText("{{")
        self._offer(always=True)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # Qt's name
        """While names are on offer, arrows choose, Enter and Tab take, Esc closes."""
        if event.key() == Qt.Key.Key_Space and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            self._offer(always=True)
            return
        if self.completions.isVisible() and event.modifiers() == Qt.KeyboardModifier.NoModifier:
            if event.key() in _PICK:
                self._pick(self.completions.chosen)
                return
            if event.key() in _STEPS:
                self.completions.move_choice(_STEPS[Qt.Key(event.key())])
                return
            if event.key() == Qt.Key.Key_Escape:
                self.completions.hide()
                return
        before = self.text()
        super().keyPressEvent(event)
        if event.text() and self.text() != before:
            self._offer(always=False)

    def event(self, event: QEvent) -> bool:
        """Say what the name under the pointer stands for; keep Tab and Esc while names are on offer."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            self._tell_name(event)
            return True
        if event.type() == QEvent.Type.ShortcutOverride and self.completions.isVisible():
            event.accept()
        if event.type() == QEvent.Type.KeyPress and self.completions.isVisible() and isinstance(event, QKeyEvent):
            self.keyPressEvent(event)  # before Tab leaves the field
            return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # Qt's name
        """Offer nothing to someone who is elsewhere."""
        self.completions.hide()
        super().focusOutEvent(event)

    def _typed_name(self) -> str | None:
        """The unfinished name before the text cursor; None where no name may stand."""
        position = self.textCursor().position()
        before = to_units(self.text())[:position]
        if self._kind is TextKind.EXPRESSION:
            return name_before(before)
        holes = find_holes(before)
        if not holes or holes[-1].closed:
            return None
        return name_before(holes[-1].content)

    def _offer(self, *, always: bool) -> None:
        typed = self._typed_name()
        is_wanted = typed is not None and (always or typed or self._kind is TextKind.TEMPLATE)
        names = fitting(self.names, typed or "") if is_wanted else []
        if not names:
            self.completions.hide()
            return
        place = self.cursorRect()
        width = max(260, self.width() - 24)
        corner = self.viewport().mapToGlobal(place.topLeft() - QPoint(8, 0))
        self.completions.offer(names, corner, place.height() + 4, width)

    def _follow_cursor(self) -> None:
        if self.completions.isVisible() and self._typed_name() is None:
            self.completions.hide()

    def _pick(self, name: Name | None) -> None:
        self.completions.hide()
        typed = self._typed_name()
        if name is None or typed is None:
            return
        cursor = self.textCursor()
        cursor.beginEditBlock()
        cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, len(typed))
        cursor.insertText(name.text)
        if self._kind is TextKind.TEMPLATE:
            rest = to_units(self.text())[cursor.position() :]
            if rest.lstrip(" ").startswith("}}"):
                cursor.setPosition(cursor.position() + rest.index("}}") + 2)
            else:
                cursor.insertText("}}")
        cursor.endEditBlock()
        self.setTextCursor(cursor)
        self.completions.hide()

    def _tell_name(self, event: QHelpEvent) -> None:
        place = self.viewport().mapFrom(self, event.pos())
        span = self.highlighter.span_at(self.cursorForPosition(place).position())
        if span is not None and span.tip:
            QToolTip.showText(event.globalPos(), plain_tool_tip(span.tip), self)
        else:
            QToolTip.hideText()
