"""Comparison of two texts, and a read-only pane that shows one side with its changes highlighted.

A large text is inserted in chunks, so that the window stays responsive.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from PySide6.QtCore import QTextBoundaryFinder, QTimer, Signal
from PySide6.QtGui import QColor, QSyntaxHighlighter, QTextCharFormat, QTextCursor, QTextDocument, QTextOption
from PySide6.QtWidgets import QPlainTextEdit

from app.inspector.text_widgets import from_utf16_units, mark_matches, to_utf16_units
from app.theme.style import style
from engine.formatting import format_count
from engine.text_diff import Check, Kind, Span, differences, split_words

Range = tuple[int, int]
"""Start and end of a range in UTF-16 units."""

_LINE_ENDS: Final = re.compile("\r\n|[\r\u2029]")
_NOT_SHOWN: Final = re.compile("[\x00\ud800-\udfff\ufdd0\ufdd1]")
"""Characters that a text document cannot contain or interprets itself."""
_LONGEST_LINE: Final = 2_000
"""Length at which a line is broken for display: Qt lays out a whole line at once."""
_WITHOUT_SPACES: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Characters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference: the range that only the left text has, and that of the right one; either may be empty."""

    left: Range
    right: Range


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two texts side by side.

    Attributes:
        left: The left text as displayed.
        right: The right text as displayed.
        changes: The differences in order.
        words_left: Number of words that only the left text has.
        words_right: Number of words that only the right text has.
    """

    left: str
    right: str
    changes: tuple[Change, ...]
    words_left: int
    words_right: int

    def marks(self, *, is_left: bool) -> list[Range]:
        """Return the ranges that only one of the texts has, in order."""
        ranges = (change.left if is_left else change.right for change in self.changes)
        return [place for place in ranges if place[0] < place[1]]

    def matching_position(self, place: int, *, is_left: bool) -> int:
        """Return the position in the other text that corresponds to a position in one of them."""
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
    """Replace characters that a pane cannot show, one for one."""
    return _NOT_SHOWN.sub("\ufffd", _LINE_ENDS.sub("\n", text))


def compare(left: str, right: str, check: Check = lambda: None) -> Comparison:
    """Compare two texts word by word, which takes long for large ones.

    Args:
        left: Left text.
        right: Right text.
        check: Called every few milliseconds; its exceptions cancel the comparison.
    """
    left, right = shown(left), shown(right)
    spans = differences(left, right, check, split_into_words)
    words = {kind: sum(_word_count(span.text) for span in spans if span.kind is kind) for kind in Kind}
    changes = list(_changes(spans))
    left, lefts = _broken(left, [change.left for change in changes])
    right, rights = _broken(right, [change.right for change in changes])
    pairs = tuple(Change(*pair) for pair in zip(lefts, rights, strict=True))
    return Comparison(left, right, pairs, words[Kind.DELETE], words[Kind.INSERT])


def not_compared(left: str, right: str) -> Comparison:
    """Return two texts side by side without highlights, one of which is nothing."""
    return Comparison(_broken(shown(left), [])[0], _broken(shown(right), [])[0], (), 0, 0)


def summary(comparison: Comparison) -> str:
    """Describe in one sentence how much differs."""
    count = len(comparison.changes)
    if not count:
        return "The texts are identical." if comparison.left or comparison.right else "Both texts are empty."
    places = format_count(count, "place differs", "places differ")
    removed, added = format_count(comparison.words_left, "word"), format_count(comparison.words_right, "word")
    return f"{places}: {removed} removed, {added} added."


def _broken(text: str, ranges: list[Range]) -> tuple[str, list[Range]]:
    """Break long lines and shift the ranges accordingly."""
    if all(len(line) <= _LONGEST_LINE for line in text.split("\n")):
        return text, ranges
    units = to_utf16_units(text)
    breaks: list[int] = []
    start = 0
    for line in units.split("\n"):
        for at in range(start + _LONGEST_LINE, start + len(line), _LONGEST_LINE):
            is_half = "\udc00" <= units[at] <= "\udfff"  # the second half of a surrogate pair
            breaks.append(at + is_half)
        start += len(line) + 1
    pieces = (units[begin:end] for begin, end in zip([0, *breaks], [*breaks, len(units)], strict=True))
    moved = [(start + bisect_right(breaks, start), end + bisect_left(breaks, end)) for start, end in ranges]
    return from_utf16_units("\n".join(pieces)), [(start, max(start, end)) for start, end in moved]


def split_into_words(text: str) -> list[str]:
    """Split a text into words, also in scripts without spaces."""
    if _WITHOUT_SPACES.search(text) is None:
        return split_words(text)
    units, finder = to_utf16_units(text), QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Word, text)
    boundaries = [0]
    while (boundary := finder.toNextBoundary()) > 0:
        boundaries.append(boundary)
    return [from_utf16_units(units[start:end]) for start, end in pairwise(boundaries)]


def _word_count(text: str) -> int:
    return sum(part[0].isalnum() for part in split_into_words(text))


def _utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _changes(spans: Sequence[Span]) -> Iterator[Change]:
    left = right = 0
    open_left = open_right = None
    for span in spans:
        length = _utf16_length(span.text)
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


CHUNK: Final = 8_000
"""Number of characters that are inserted at once, which takes a few milliseconds."""


class ChangeHighlighter(QSyntaxHighlighter):
    """Highlights changed words by color, and with a line: struck through if removed, underlined if added."""

    def __init__(self, document: QTextDocument, *, is_left: bool) -> None:
        super().__init__(document)
        self._is_left = is_left
        self._ranges: list[Range] = []
        self._starts: list[int] = []
        self._look = QTextCharFormat()
        self.apply_theme()

    def mark(self, ranges: list[Range]) -> None:
        """Highlight these ranges of the text that is inserted next."""
        self._ranges = ranges
        self._starts = [start for start, _ in ranges]

    def apply_theme(self) -> None:
        """Apply the colors of the theme."""
        theme, look = style().theme, QTextCharFormat()
        look.setForeground(QColor(theme.bad if self._is_left else theme.good))
        look.setBackground(QColor(theme.bad_soft if self._is_left else theme.good_soft))
        look.setFontStrikeOut(self._is_left)
        look.setFontUnderline(not self._is_left)
        self._look = look

    def highlightBlock(self, text: str) -> None:  # Qt's name
        """Highlight the ranges within a line."""
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
    """The pane of one side.

    Signals:
        filled: The whole text was inserted.
        moved: The user has scrolled; the position of the first visible character.
    """

    filled = Signal()
    moved = Signal(int)

    def __init__(self, name: str, *, is_left: bool) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._marks = ChangeHighlighter(self.document(), is_left=is_left)
        self._shown: tuple[str, list[Range]] = ("", [])
        self._pending = ""
        self._is_following = False
        self._current: Range | None = None
        self._is_awaited = False  # whether the current change has still to be inserted
        self._filling = QTimer(self, interval=0)
        self._filling.timeout.connect(self._put_in)
        self.verticalScrollBar().valueChanged.connect(self._note_scroll)
        style().changed.connect(self._apply_theme)

    @property
    def is_filled(self) -> bool:
        """Whether the whole text was inserted."""
        return not self._pending

    def show_text(self, text: str, ranges: list[Range]) -> None:
        """Show a text from its start with highlighted ranges."""
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
        """Scroll to a change and put the cursor at its start, as soon as it was inserted."""
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

    def scroll_to_position(self, place: int) -> None:
        """Scroll so that this position is the first visible one, without a signal."""
        block = self.document().findBlock(place)
        if not block.isValid():
            block = self.document().lastBlock()
        line = block.layout().lineForTextPosition(place - block.position()) if block.isValid() else None
        within = line.lineNumber() if line is not None and line.isValid() else 0
        self._is_following = True
        self.verticalScrollBar().setValue(block.firstLineNumber() + within)
        self._is_following = False

    def _put_in(self) -> None:
        piece, self._pending = self._pending[:CHUNK], self._pending[CHUNK:]
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
        """Draw the current change in the selection color."""
        self._current = place
        mark_matches(self, [] if place is None or place[0] == place[1] else [place], 0)

    def _apply_theme(self) -> None:
        self._marks.apply_theme()
        if len(self._shown[0]) > CHUNK:  # rehighlighting all of it takes too long
            current = self._current
            self.show_text(*self._shown)
            if current is not None:
                self.go_to(current)
            return
        self._show_current(self._current)
        self._marks.rehighlight()
