"""Text widgets of the panels: a field that grows with its text, and a viewer for long texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QResizeEvent, QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QTextBrowser, QTextEdit, QToolButton, QWidget

from app.inspector.editor import describe_widget
from app.theme.style import style
from app.theme.widgets import vbox
from engine.formatting import format_count


def to_utf16_units(text: str) -> str:
    """Expand a text to one character per UTF-16 code unit, so that its indexes are Qt's text positions."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(raw[index] | raw[index + 1] << 8) for index in range(0, len(raw), 2))


def from_utf16_units(units: str) -> str:
    """Undo `to_utf16_units`; a lone surrogate becomes U+FFFD, because Qt cannot display it."""
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_PARAGRAPH: Final = "\u2029"


_FRAME: Final = 12
"""Vertical border and padding in the style sheet, in pixels."""


class GrowingEdit(QPlainTextEdit):
    """Text field whose height follows its text. It has no undo of its own: undo belongs to the document.

    Args:
        min_lines: Minimum height in lines.
        max_lines: Maximum height in lines.
        parent: The parent widget.
        fills: Whether it fills the available height instead.

    Signals:
        typed: The user changed the text.
    """

    typed = Signal(str)

    def __init__(
        self, min_lines: int = 1, max_lines: int = 8, parent: QWidget | None = None, *, fills: bool = False
    ) -> None:
        super().__init__(parent)
        self._min_lines, self._max_lines, self._fills = min_lines, min_lines if fills else max_lines, fills
        self._silent = False
        self._known = ""
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        # Lines wrap, so it is never needed; Qt would flash it whenever the vertical bar appears.
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(
            QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding if fills else QSizePolicy.Policy.Fixed
        )
        self._wrapping = QTimer(self, singleShot=True)
        self._wrapping.timeout.connect(self._rewrap)
        self.textChanged.connect(self._changed)

    def text(self) -> str:
        """Return the exact text."""
        return exact_text(self)

    def set_text(self, text: str) -> None:
        """Set the text. Only the changed part is replaced, to keep cursor and scroll position."""
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
        """Return the height of the text, within the limits."""
        line = self._line_height()
        height = min(max(self._text_height(), self._min_lines * line), self._max_lines * line)
        return QSize(120, math.ceil(height + 2 * self.document().documentMargin()) + _FRAME)

    def minimumSizeHint(self) -> QSize:  # Qt's name
        """Return the same height as `sizeHint`."""
        return QSize(60, self.sizeHint().height())

    def changeEvent(self, event: QEvent) -> None:  # Qt's name
        """Adjust to a font change."""
        super().changeEvent(event)
        if event.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # Qt's name
        """Adjust the height to the width."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width() or (self._fills and event.size() != event.oldSize()):
            self._fit()

    def _line_height(self) -> float:
        return QFontMetricsF(self.font()).lineSpacing()

    def _available_height(self) -> float:
        """Return the maximum text height that needs no scroll bar."""
        limit = self._max_lines * self._line_height()
        inside = self.viewport().height() - 2 * self.document().documentMargin()
        return max(limit, inside) if self._fills else limit

    def _text_height(self) -> float:
        """Return the height of the text, measured only until it exceeds the limit."""
        block, height = self.document().begin(), 0.0
        room = self._available_height()
        while block.isValid() and height <= room:
            height += self.blockBoundingRect(block).height()
            block = block.next()
        return height

    def _fit(self) -> None:
        # The scroll bar is set explicitly: a bar that Qt adds on demand comes after the text was wrapped and covers the
        # ends of its lines.
        policy = Qt.ScrollBarPolicy.ScrollBarAlwaysOn
        if self._text_height() <= self._available_height():
            policy = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if policy is not self.verticalScrollBarPolicy():
            self.setVerticalScrollBarPolicy(policy)
            self._wrapping.start()
        self.updateGeometry()

    def _rewrap(self) -> None:
        # Qt misses the changed width if the bar appeared or disappeared while text was inserted.
        super().resizeEvent(QResizeEvent(self.viewport().size(), QSize()))

    def _changed(self) -> None:
        self._fit()
        # Qt also emits textChanged if only the formatting has changed, as with another theme.
        text = self.text()
        if text == self._known:
            return
        self._known = text
        if not self._silent:
            self.typed.emit(text)


def exact_text(edit: QPlainTextEdit) -> str:
    """Return the exact text of a field; `toPlainText` would replace non-breaking spaces."""
    return edit.document().toRawText().replace(_PARAGRAPH, "\n")


def _difference(old: str, new: str) -> tuple[int, int, int]:
    """Return the start of the difference of two texts, and its end in each of them."""
    start = _common(old, new)
    rest = min(len(old), len(new)) - start
    tail = _common(old[len(old) - rest :][::-1], new[len(new) - rest :][::-1])
    if start and "\ud800" <= new[start - 1 : start] <= "\udbff":
        start -= 1  # do not split a surrogate pair
    if tail and "\udc00" <= new[len(new) - tail : len(new) - tail + 1] <= "\udfff":
        tail -= 1
    return start, len(old) - tail, len(new) - tail


def _common(first: str, second: str) -> int:
    """Return the length of the common prefix by binary search; comparing slices is fast."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


INITIAL_CHARACTERS: Final = 20_000
"""Number of characters that are shown at first."""

_PIECE: Final = 20_000
_MAX_HIGHLIGHTS: Final = 1_000
_LONGEST_LINE: Final = 2_000
"""Longer lines are broken for display: Qt lays out a whole line at once, however long it is."""


class LongTextView(QWidget):
    """Read-only view of a text that may be very long: its beginning at once, the rest on demand.

    Args:
        name: Accessible name.
        fills: Whether it fills the available height.

    Attributes:
        view: The text, or its beginning.
        more: Button that shows the rest; hidden if there is none.

    Signals:
        completed: The rest of a long text was added.
    """

    completed = Signal()

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
        self.more.clicked.connect(self._expand)
        vbox(self.view, self.more, spacing=1, parent=self)
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._add_piece)
        self._offer_more()

    @property
    def is_complete(self) -> bool:
        """Whether the whole text is shown."""
        return self._place >= len(self.text)

    def set_text(self, text: str) -> None:
        """Set the text."""
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
        label = f"Show all {format_count(len(self.text), 'character')}"
        self.more.setText(label)
        describe_widget(self.more, label)

    def show_all(self) -> None:
        """Add the rest of the text, piece by piece."""
        self._wants_all = True
        self._offer_more()
        self._timer.start()

    def _expand(self) -> None:
        self.show_all()
        self.view.setFocus()

    def _add_piece(self) -> None:
        piece = self.text[self._place : self._place + _PIECE]
        self._place += len(piece)
        cursor = QTextCursor(self.view.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(displayable(piece))
        if self.is_complete:
            self._timer.stop()
            self.completed.emit()


def displayable(text: str) -> str:
    """Replace lone surrogates and break very long lines, which Qt would take long to lay out."""
    lines = from_utf16_units(text).split("\n")
    if max(map(len, lines)) <= _LONGEST_LINE:
        return "\n".join(lines)
    pieces: list[str] = []
    for line in lines:
        pieces.extend(line[start : start + _LONGEST_LINE] for start in range(0, max(len(line), 1), _LONGEST_LINE))
    return "\n".join(pieces)


def mark_matches(edit: QPlainTextEdit | QTextBrowser, places: Sequence[tuple[int, int]], at: int) -> None:
    """Highlight the places around the one with an index, which stands out; none does for -1."""
    theme = style().theme
    first = max(at - _MAX_HIGHLIGHTS // 2, 0)
    selections: list[QTextEdit.ExtraSelection] = []
    for number, (start, end) in enumerate(places[first : first + _MAX_HIGHLIGHTS], first):
        selection = QTextEdit.ExtraSelection()
        selection.cursor = QTextCursor(edit.document())
        selection.cursor.setPosition(start)
        selection.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        selection.format.setBackground(QColor(theme.accent if number == at else theme.warning_soft))
        selection.format.setForeground(QColor(theme.on_accent if number == at else theme.text))
        selections.append(selection)
    edit.setExtraSelections(selections)
