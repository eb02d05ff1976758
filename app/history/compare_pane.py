"""One side of a comparison: a text that is read and not written, with the words marked that only it has.

A large text is put in piece by piece, so that the window goes on meanwhile.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QColor, QSyntaxHighlighter, QTextCharFormat, QTextCursor, QTextDocument, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from app.inspector.text_widgets import from_utf16_units, to_utf16_units
from app.theme.style import style
from engine.formatting import format_count
from engine.text_diff import Check, Kind, Span, differences

Range = tuple[int, int]
"""From a place, to a place behind the last."""

_LINE_ENDS: Final = re.compile("\r\n|[\r\u2029]")
_NOT_SHOWN: Final = re.compile("[\x00\ud800-\udfff\ufdd0\ufdd1]")
"""What a text document cannot hold or takes for a mark of its own."""
_LONGEST_LINE: Final = 2_000
"""Where a line is broken for the eye: Qt lays out a whole line at once, however long it is."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Change:
    """One place where the texts differ: what only the left has, and what only the right has; either may be empty."""

    left: Range
    right: Range


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two texts side by side.

    Attributes:
        left: The first text, as it is shown.
        right: The second.
        changes: Where they differ, in order.
        words_left: How many words only the first has.
        words_right: How many words only the second has.
    """

    left: str
    right: str
    changes: tuple[Change, ...]
    words_left: int
    words_right: int

    def marks(self, *, is_left: bool) -> list[Range]:
        """The places that only one of the texts has, in order."""
        ranges = (change.left if is_left else change.right for change in self.changes)
        return [place for place in ranges if place[0] < place[1]]

    def across(self, place: int, *, is_left: bool) -> int:
        """The place in the other text that stands beside a place in one of them."""
        here = [change.left if is_left else change.right for change in self.changes]
        there = [change.right if is_left else change.left for change in self.changes]
        before = bisect_right(here, (place, place)) - 1
        if before < 0:
            return place
        (start, end), (other_start, other_end) = here[before], there[before]
        if place < end:
            return min(other_start + place - start, other_end)
        return other_end + place - end


def shown(text: str) -> str:
    """A text as a pane can show it: signs that it could not hold are replaced, one for one."""
    return _NOT_SHOWN.sub("\ufffd", _LINE_ENDS.sub("\n", text))


def compare(left: str, right: str, check: Check = lambda: None) -> Comparison:
    """Compare two texts word by word. Takes its time with large ones.

    Args:
        left: The one.
        right: The other.
        check: Called every few milliseconds; what it raises ends the work.
    """
    left, right = shown(left), shown(right)
    spans = differences(left, right, check)
    words = {kind: sum(_words(span.text) for span in spans if span.kind is kind) for kind in Kind}
    changes = list(_changes(spans))
    left, lefts = _broken(left, [change.left for change in changes])
    right, rights = _broken(right, [change.right for change in changes])
    pairs = tuple(Change(*pair) for pair in zip(lefts, rights, strict=True))
    return Comparison(left, right, pairs, words[Kind.DELETE], words[Kind.INSERT])


def summary(comparison: Comparison) -> str:
    """How much differs, in a sentence."""
    count = len(comparison.changes)
    if not count:
        return "The texts are identical." if comparison.left or comparison.right else "Both texts are empty."
    places = format_count(count, "place differs", "places differ")
    removed, added = format_count(comparison.words_left, "word"), format_count(comparison.words_right, "word")
    return f"{places}: {removed} removed, {added} added."


def _broken(text: str, ranges: list[Range]) -> tuple[str, list[Range]]:
    """Break the lines that are too long, and move the places of the text accordingly."""
    if all(len(line) <= _LONGEST_LINE for line in text.split("\n")):
        return text, ranges
    units = to_utf16_units(text)
    breaks: list[int] = []
    start = 0
    for line in units.split("\n"):
        for at in range(start + _LONGEST_LINE, start + len(line), _LONGEST_LINE):
            is_half = "\udc00" <= units[at] <= "\udfff"  # the second half of a character that Qt counts twice
            breaks.append(at + is_half)
        start += len(line) + 1
    pieces = (units[begin:end] for begin, end in zip([0, *breaks], [*breaks, len(units)], strict=True))
    moved = [(start + bisect_right(breaks, start), end + bisect_left(breaks, end)) for start, end in ranges]
    return from_utf16_units("\n".join(pieces)), [(start, max(start, end)) for start, end in moved]


def _words(text: str) -> int:
    return len(_WORD.findall(text))


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _changes(spans: Sequence[Span]) -> Iterator[Change]:
    left = right = 0
    open_left = open_right = None
    for span in spans:
        length = _units(span.text)
        if span.kind is Kind.EQUAL:
            if open_left is not None and open_right is not None:
                yield Change((open_left, left), (open_right, right))
            open_left = open_right = None
            left, right = left + length, right + length
            continue
        if open_left is None:
            open_left, open_right = left, right
        if span.kind is Kind.DELETE:
            left += length
        else:
            right += length
    if open_left is not None and open_right is not None:
        yield Change((open_left, left), (open_right, right))


PIECE: Final = 8_000
"""How many characters are put in at once: some milliseconds."""


class Marks(QSyntaxHighlighter):
    """Marks words by colour and by a line: through what is gone, under what is new."""

    def __init__(self, document: QTextDocument, *, is_left: bool) -> None:
        super().__init__(document)
        self._is_left = is_left
        self._ranges: list[Range] = []
        self._starts: list[int] = []
        self._look = QTextCharFormat()
        self.dress()

    def mark(self, ranges: list[Range]) -> None:
        """Mark these places of the text that is put in from now on."""
        self._ranges = ranges
        self._starts = [start for start, _ in ranges]

    def dress(self) -> None:
        """Take on the colours of the theme."""
        theme, look = style().theme, QTextCharFormat()
        look.setForeground(QColor(theme.bad if self._is_left else theme.good))
        look.setBackground(QColor(theme.bad_soft if self._is_left else theme.good_soft))
        look.setFontStrikeOut(self._is_left)
        look.setFontUnderline(not self._is_left)
        self._look = look

    def highlightBlock(self, text: str) -> None:  # Qt's name
        """Mark what of a line is marked."""
        del text
        block = self.currentBlock()
        first, last = block.position(), block.position() + block.length()
        at = max(bisect_right(self._starts, first) - 1, 0)
        while at < len(self._ranges) and self._ranges[at][0] < last:
            start, end = max(self._ranges[at][0], first), min(self._ranges[at][1], last)
            if start < end:
                self.setFormat(start - first, end - start, self._look)
            at += 1


class ComparePane(QPlainTextEdit):
    """One side.

    Signals:
        filled: All of the text stands there.
        moved: It was scrolled by a person; the place of the first character that is seen.
    """

    filled = Signal()
    moved = Signal(int)

    def __init__(self, name: str, *, is_left: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._marks = Marks(self.document(), is_left=is_left)
        self._shown: tuple[str, list[Range]] = ("", [])
        self._pending = ""
        self._is_following = False
        self._current: Range | None = None
        self._is_awaited = False  # the change that was gone to is not put in yet
        self._filling = QTimer(self)
        self._filling.setInterval(0)
        self._filling.timeout.connect(self._put_in)
        self.verticalScrollBar().valueChanged.connect(self._note_scroll)
        style().changed.connect(self._dress)

    @property
    def is_filled(self) -> bool:
        """Whether all of the text stands there."""
        return not self._pending

    def show_text(self, text: str, ranges: list[Range]) -> None:
        """Show a text from its beginning, with these places marked."""
        self._is_following = True
        self._shown = (text, ranges)
        self.clear()
        self._show_current(None)
        self._is_awaited = False
        self._marks.mark(ranges)
        self._pending = text
        self._put_in()
        self._is_following = False

    def go_to(self, place: Range) -> None:
        """Show a change in the middle, and put the cursor at its start, as soon as it is put in."""
        self._is_awaited = bool(self._pending) and place[1] >= self.document().characterCount()
        if self._is_awaited:
            self._current = place
            return
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(place[0], self.document().characterCount() - 1))
        self._is_following = True
        self.setTextCursor(cursor)
        self.centerCursor()
        self._is_following = False
        self._show_current(place)

    def follow(self, place: int) -> None:
        """Scroll so that this place is the first that is seen, without telling."""
        block = self.document().findBlock(place)
        if not block.isValid():
            block = self.document().lastBlock()
        line = block.layout().lineForTextPosition(place - block.position()) if block.isValid() else None
        within = line.lineNumber() if line is not None and line.isValid() else 0
        self._is_following = True
        self.verticalScrollBar().setValue(block.firstLineNumber() + within)
        self._is_following = False

    def _put_in(self) -> None:
        piece, self._pending = self._pending[:PIECE], self._pending[PIECE:]
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(piece)
        if self._is_awaited and self._current is not None:
            self.go_to(self._current)
        if self._pending:
            self._filling.start()
        else:
            self._filling.stop()
            self.filled.emit()

    def _note_scroll(self) -> None:
        if not self._is_following:
            block = self.firstVisibleBlock()
            lines = self.verticalScrollBar().value() - block.firstLineNumber()
            layout = block.layout()
            within = layout.lineAt(lines).textStart() if 0 < lines < layout.lineCount() else 0
            self.moved.emit(block.position() + within)

    def _show_current(self, place: Range | None) -> None:
        """Draw the change that was gone to last in the colour of a selection."""
        self._current = place
        if place is None or place[0] == place[1]:
            self.setExtraSelections([])
            return
        selection = QTextEdit.ExtraSelection()
        selection.cursor = QTextCursor(self.document())
        selection.cursor.setPosition(place[0])
        selection.cursor.setPosition(place[1], QTextCursor.MoveMode.KeepAnchor)
        selection.format.setBackground(QColor(style().theme.accent))
        selection.format.setForeground(QColor(style().theme.on_accent))
        self.setExtraSelections([selection])

    def _dress(self) -> None:
        self._marks.dress()
        if len(self._shown[0]) > PIECE:  # all at once would take too long
            current = self._current
            self.show_text(*self._shown)
            if current is not None:
                self.go_to(current)
            return
        self._show_current(self._current)
        self._marks.rehighlight()
