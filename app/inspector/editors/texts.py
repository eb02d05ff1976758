"""Fields of text: one line, or a text that grows with what is in it."""

# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false
# (The stubs of PySide6 do not let a signal be connected.)

from __future__ import annotations

import math
import re
from typing import Any, Final, cast

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetricsF, QResizeEvent, QTextCursor, QTextOption
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QSizePolicy, QWidget

from app.inspector.editors.base import Editor
from app.inspector.fields import Field
from app.inspector.target import Target
from app.inspector.units import from_units, to_units
from engine.values import to_text

_PARAGRAPH: Final = "\u2029"
_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_UNESCAPED: Final = {written: sign for sign, written in _ESCAPES.items()}
_SPECIAL: Final = re.compile(r"[\\\n\t]")
_ESCAPED: Final = re.compile(r"\\[\\nt]")
_FRAME: Final = 12
"""Border and padding above and below, of the theme's style sheet."""


class GrowingEdit(QPlainTextEdit):
    """A text that is as high as it needs, within limits. Undo is the document's, not its own.

    Args:
        least: The least height, in lines.
        most: The greatest height, in lines.
        parent: Its parent.
        fills: Whether it takes all the room that there is instead, from the least height on.

    Signals:
        typed: A person changed the text.
    """

    typed = Signal(str)

    def __init__(self, least: int = 1, most: int = 8, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self._least, self._most, self._fills = least, least if fills else most, fills
        self._silent = False
        self._known = ""
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        # Every text is wrapped; Qt shows the bar all the same for a moment when the other one comes.
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(
            QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding if fills else QSizePolicy.Policy.Fixed
        )
        self._wrapping = QTimer(self)
        self._wrapping.setSingleShot(True)
        self._wrapping.timeout.connect(self._wrap_anew)
        self.textChanged.connect(self._changed)

    def text(self) -> str:
        """The text, exactly."""
        return exact_text(self)

    def set_text(self, text: str) -> None:
        """Show a text; only what differs is replaced, so that cursor and view stay where they are."""
        old = self.text()
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace(_PARAGRAPH, "\n")
        if text == old:
            return
        start, end_old, end_new = _difference(to_units(old), to_units(text))
        cursor = QTextCursor(self.document())
        cursor.setPosition(start)
        cursor.setPosition(end_old, QTextCursor.MoveMode.KeepAnchor)
        self._silent = True
        try:
            cursor.insertText(from_units(to_units(text)[start:end_new]))
        finally:
            self._silent = False

    def sizeHint(self) -> QSize:  # Qt's name
        """As high as the text, within limits."""
        height = min(max(self._text_height(), self._least * self._line_height()), self._most * self._line_height())
        return QSize(120, math.ceil(height + 2 * self.document().documentMargin()) + _FRAME)

    def minimumSizeHint(self) -> QSize:  # Qt's name
        """It is never less high than its text."""
        return QSize(60, self.sizeHint().height())

    def changeEvent(self, event: QEvent) -> None:  # Qt's name
        """Larger letters need more room."""
        super().changeEvent(event)
        if event.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # Qt's name
        """A narrower text is a higher one."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width() or (self._fills and event.size() != event.oldSize()):
            self._fit()

    def _line_height(self) -> float:
        return QFontMetricsF(self.font()).lineSpacing()

    def _room(self) -> float:
        """How high a text may be that is seen as a whole."""
        most = self._most * self._line_height()
        inside = self.viewport().height() - 2 * self.document().documentMargin()
        return max(most, inside) if self._fills else most

    def _text_height(self) -> float:
        """How high the text is, counted up to a little more than the limit."""
        block, height = self.document().begin(), 0.0
        room = self._room()
        while block.isValid() and height <= room:
            height += self.blockBoundingRect(block).height()
            block = block.next()
        return height

    def _fit(self) -> None:
        # Where all of the text fits there is no scroll bar, whose width would wrap it anew. Where it does not, the bar
        # is there for certain: one that Qt brings when needed comes after the text is wrapped, and covers its ends.
        policy = Qt.ScrollBarPolicy.ScrollBarAlwaysOn
        if self._text_height() <= self._room():
            policy = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if policy is not self.verticalScrollBarPolicy():
            self.setVerticalScrollBarPolicy(policy)
            self._wrapping.start()
        self.updateGeometry()

    def _wrap_anew(self) -> None:
        # Qt does not notice the other width where the bar came or went while a text was being put in.
        super().resizeEvent(QResizeEvent(self.viewport().size(), QSize()))

    def _changed(self) -> None:
        self._fit()
        # Qt says that a text has changed when only its colours have, as with another theme.
        text = self.text()
        if text == self._known:
            return
        self._known = text
        if not self._silent:
            self.typed.emit(text)


class LineEditor(Editor):
    """A text of one line."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.line = QLineEdit(self)
        self.adopt(self.line)
        self.box.addWidget(self.line)
        self.main_widget = self.line
        self.line.textEdited.connect(self._typed)

    def _put(self, value: Any) -> None:
        position = self.line.cursorPosition()
        self.line.setText(to_text(value))
        self.line.setCursorPosition(min(position, len(self.line.text())))

    def _typed(self, text: str) -> None:
        self._tell(None if self.field.nullable and not text else text)


class TextEditor(Editor):
    """A text of several lines."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.edit = GrowingEdit(parent=self)
        self.adopt(self.edit)
        self.box.addWidget(self.edit)
        self.main_widget = self.edit
        self.edit.typed.connect(self._typed)

    def _put(self, value: Any) -> None:
        self.edit.set_text(to_text(value))

    def _typed(self, text: str) -> None:
        self._tell(None if self.field.nullable and not text else text)


class LinesEditor(Editor):
    r"""A list of texts, one a line; `\n`, `\t` and `\\` stand for a line break, a tab and a backslash in one."""

    def __init__(self, field: Field, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(field, target, parent)
        self.edit = GrowingEdit(parent=self)
        self.edit.setPlaceholderText("One per line; \\n for a line break")
        self.adopt(self.edit)
        self.box.addWidget(self.edit)
        self.main_widget = self.edit
        self.edit.typed.connect(self._typed)

    def _put(self, value: Any) -> None:
        items = cast("list[Any]", value) if isinstance(value, list) else [value] if value else []
        self.edit.set_text("\n".join(_SPECIAL.sub(lambda sign: _ESCAPES[sign[0]], to_text(item)) for item in items))

    def _typed(self, text: str) -> None:
        lines = (line for line in text.split("\n") if line)
        self._tell([_ESCAPED.sub(lambda sign: _UNESCAPED[sign[0]], line) for line in lines])


def exact_text(edit: QPlainTextEdit) -> str:
    """What stands in a field, exactly: unlike `toPlainText`, it keeps spaces that do not break."""
    return edit.document().toRawText().replace(_PARAGRAPH, "\n")


def _difference(old: str, new: str) -> tuple[int, int, int]:
    """Where two texts begin to differ, and where the difference ends in each."""
    start = _common(old, new)
    rest = min(len(old), len(new)) - start
    tail = _common(old[len(old) - rest :][::-1], new[len(new) - rest :][::-1])
    if start and "\ud800" <= new[start - 1 : start] <= "\udbff":
        start -= 1  # never between the two halves of a character
    if tail and "\udc00" <= new[len(new) - tail : len(new) - tail + 1] <= "\udfff":
        tail -= 1
    return start, len(old) - tail, len(new) - tail


def _common(first: str, second: str) -> int:
    """How long the beginning is that two texts have in common, by halves: comparing slices costs next to nothing."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
