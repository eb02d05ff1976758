"""What differs between two texts, as two panes show it: which places of each are marked, and what belongs together.

No Qt here, but places count as Qt's text documents count them: in units of UTF-16, lines ending in one newline.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.inspector.text_widgets import from_units, to_units
from engine.compare.alignment import Check
from engine.compare.words import Kind, Span, differences

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
        return "The texts are the same." if comparison.left or comparison.right else "Both are empty."
    places = "1 place differs" if count == 1 else f"{count:,} places differ"
    return f"{places}: {_counted(comparison.words_left)} gone, {_counted(comparison.words_right)} new."


def _broken(text: str, ranges: list[Range]) -> tuple[str, list[Range]]:
    """Break the lines that are too long, and move the places of the text accordingly."""
    if all(len(line) <= _LONGEST_LINE for line in text.split("\n")):
        return text, ranges
    units = to_units(text)
    breaks: list[int] = []
    start = 0
    for line in units.split("\n"):
        for at in range(start + _LONGEST_LINE, start + len(line), _LONGEST_LINE):
            is_half = "\udc00" <= units[at] <= "\udfff"  # the second half of a character that Qt counts twice
            breaks.append(at + is_half)
        start += len(line) + 1
    pieces = (units[begin:end] for begin, end in zip([0, *breaks], [*breaks, len(units)], strict=True))
    moved = [(start + bisect_right(breaks, start), end + bisect_left(breaks, end)) for start, end in ranges]
    return from_units("\n".join(pieces)), [(start, max(start, end)) for start, end in moved]


def _counted(words: int) -> str:
    return f"{words:,} word{'' if words == 1 else 's'}"


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
