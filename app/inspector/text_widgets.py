"""Text widgets of the panels: a field that grows with its text, and a viewer for long texts."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetricsF, QResizeEvent, QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.inspector.editors.editor import describe_widget
from app.theme.tokens import UNIT
from engine.formatting import format_count


def to_utf16_units(text: str) -> str:
    """The text with one character for each that Qt counts, so that places agree."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(raw[index] | raw[index + 1] << 8) for index in range(0, len(raw), 2))


def from_utf16_units(units: str) -> str:
    """The text again; half a character becomes U+FFFD, since Qt could not show it."""
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_PARAGRAPH: Final = "\u2029"


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

    def __init__(
        self, min_lines: int = 1, max_lines: int = 8, parent: QWidget | None = None, *, fills: bool = False
    ) -> None:
        super().__init__(parent)
        self._least, self._most, self._fills = min_lines, min_lines if fills else max_lines, fills
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
        start, end_old, end_new = _difference(to_utf16_units(old), to_utf16_units(text))
        cursor = QTextCursor(self.document())
        cursor.setPosition(start)
        cursor.setPosition(end_old, QTextCursor.MoveMode.KeepAnchor)
        self._silent = True
        try:
            cursor.insertText(from_utf16_units(to_utf16_units(text)[start:end_new]))
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
        max_lines = self._most * self._line_height()
        inside = self.viewport().height() - 2 * self.document().documentMargin()
        return max(max_lines, inside) if self._fills else max_lines

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


INITIAL_CHARACTERS: Final = 20_000
"""How many characters are shown at first."""

_PIECE: Final = 20_000
_LONGEST_LINE: Final = 2_000
"""Where a line is broken for the eye: Qt lays out a whole line at once, however long it is."""


class LongTextView(QWidget):
    """A text to read.

    Args:
        name: Its accessible name.
        fills: Whether it takes all the room that there is, and not only what the text needs.

    Attributes:
        view: Shows it, or its beginning.
        more: Shows the rest; hidden where there is none.
    """

    def __init__(self, name: str, parent: QWidget | None = None, *, fills: bool = False) -> None:
        super().__init__(parent)
        self.text = ""
        self._place = 0
        self._wants_all = False
        self.view = GrowingEdit(min_lines=1, max_lines=14, fills=fills)
        self.view.setReadOnly(True)
        describe_widget(self.view, name)
        self.more = QToolButton()
        self.more.setProperty("link", True)
        self.more.clicked.connect(self._show_all)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(UNIT)
        box.addWidget(self.view)
        box.addWidget(self.more)
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._add_piece)
        self._offer_more()

    @property
    def is_complete(self) -> bool:
        """Whether all of the text is shown."""
        return self._place >= len(self.text)

    def set_text(self, text: str) -> None:
        """Show another text."""
        if text == self.text:
            return
        grows = self._wants_all and bool(self.text) and text.startswith(self.text)
        self.text = text
        if grows:
            self._timer.start()
            return
        self._timer.stop()
        self._wants_all = False
        self._place = min(len(text), INITIAL_CHARACTERS)
        self.view.set_text(displayable(text[:INITIAL_CHARACTERS]))
        self._offer_more()

    def _offer_more(self) -> None:
        self.more.setVisible(not self.is_complete and not self._wants_all)
        words = f"Show all {format_count(len(self.text), 'character')}"
        self.more.setText(words)
        describe_widget(self.more, words)

    def _show_all(self) -> None:
        self._wants_all = True
        self._offer_more()
        self.view.setFocus()
        self._timer.start()

    def _add_piece(self) -> None:
        piece = self.text[self._place : self._place + _PIECE]
        self._place += len(piece)
        cursor = QTextCursor(self.view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(displayable(piece))
        if self.is_complete:
            self._timer.stop()


def displayable(text: str) -> str:
    """A text as it can be shown: no half characters, and no line so long that laying it out would take a while."""
    lines = from_utf16_units(text).split("\n")
    if max(map(len, lines)) <= _LONGEST_LINE:
        return "\n".join(lines)
    pieces: list[str] = []
    for line in lines:
        pieces.extend(line[start : start + _LONGEST_LINE] for start in range(0, max(len(line), 1), _LONGEST_LINE))
    return "\n".join(pieces)
