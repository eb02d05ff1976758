"""Differences between two texts as spans: lines are compared first, then words within the lines that changed.

Paragraphs that were merged or split are therefore matched by their words. The joined spans of one side are its text.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

EXACT_CELLS: Final = 25_000_000
"""Maximum number of pairs that are compared exactly at once: about 5 ms and 3 MB."""

Block = tuple[int, int, int]
"""A run of equal elements: start in the first sequence, start in the second, length."""
Check = Callable[[], None]
"""Called every few milliseconds; an exception ends the comparison."""


def equal_blocks(first: Sequence[Hashable], second: Sequence[Hashable], check: Check = lambda: None) -> list[Block]:
    """Return the equal parts of two sequences in order; none is empty, and neighbors are joined."""
    numbers: dict[Hashable, int] = {}
    one = [numbers.setdefault(element, len(numbers)) for element in first]
    other = [numbers.setdefault(element, len(numbers)) for element in second]
    return _joined(_blocks(one, other, check))


def _blocks(one: list[int], other: list[int], check: Check) -> Iterator[Block]:
    from rapidfuzz.distance import Indel, Postfix, Prefix

    pending = [(0, len(one), 0, len(other))]
    while pending:
        check()
        start, end, other_start, other_end = pending.pop()
        head = Prefix.similarity(one[start:end], other[other_start:other_end])
        if head:
            yield start, other_start, head
            start, other_start = start + head, other_start + head
        tail = Postfix.similarity(one[start:end], other[other_start:other_end])
        if tail:
            end, other_end = end - tail, other_end - tail
            pending.append((end, end + tail, other_end, other_end + tail))
        if start == end or other_start == other_end:
            continue
        if (end - start) * (other_end - other_start) <= EXACT_CELLS:
            for step in Indel.opcodes(one[start:end], other[other_start:other_end]):
                if step.tag == "equal":
                    yield start + step.src_start, other_start + step.dest_start, step.src_end - step.src_start
        else:
            pending += reversed(_split(one, start, end, other, other_start, other_end))


def _split(
    one: list[int], start: int, end: int, other: list[int], other_start: int, other_end: int
) -> list[tuple[int, int, int, int]]:
    """Split two long sequences at their anchors, or without anchors at proportional positions."""
    cuts = _anchors(one, start, end, other, other_start, other_end)
    if not cuts:
        count = 1 + int(((end - start) * (other_end - other_start) / EXACT_CELLS) ** 0.5)
        length, other_length = end - start, other_end - other_start
        cuts = [
            (start + length * number // count, other_start + other_length * number // count)
            for number in range(1, count)
        ]
    starts, ends = [(start, other_start), *cuts], [*cuts, (end, other_end)]
    return [(left[0], right[0], left[1], right[1]) for left, right in zip(starts, ends, strict=True)]


def _anchors(
    one: list[int], start: int, end: int, other: list[int], other_start: int, other_end: int
) -> list[tuple[int, int]]:
    """Return positions of elements that are unique in both, in the same order (patience sorting)."""
    once, other_once = Counter(one[start:end]), Counter(other[other_start:other_end])
    places = {other[place]: place for place in range(other_start, other_end)}
    pairs = [
        (place, places[one[place]])
        for place in range(start, end)
        if once[one[place]] == 1 and other_once[one[place]] == 1
    ]
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        pile = bisect.bisect_left(tops, place)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [place]
        piles[pile : pile + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = piles[-1] if piles else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _joined(blocks: Iterator[Block]) -> list[Block]:
    joined: list[Block] = []
    for start, other_start, length in blocks:
        if joined:
            before = joined[-1]
            if before[0] + before[2] == start and before[1] + before[2] == other_start:
                joined[-1] = (before[0], before[1], before[2] + length)
                continue
        joined.append((start, other_start, length))
    return joined


_WORD: Final = re.compile(r"\w+|\n|[^\S\n]+|[^\w\s]")
"""A word, a newline, other white space, or a single punctuation mark."""

SplitWords = Callable[[str], list[str]]
"""Splits a text into words and what stands between them; joined, these are the text."""


class Kind(StrEnum):
    """Whether a span is in both texts, only in the first, or only in the second."""

    EQUAL = "equal"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text, never empty."""

    kind: Kind
    text: str


def split_words(text: str) -> list[str]:
    """Split a text into words at spaces and punctuation marks."""
    return _WORD.findall(text)


def differences(first: str, second: str, check: Check = lambda: None, split: SplitWords = split_words) -> list[Span]:
    """Compare two texts word by word.

    Args:
        first: The first text.
        second: The second text.
        check: Called every few milliseconds; an exception ends the comparison.
        split: Splits lines into words.

    Returns:
        The spans of both texts in order, deletions before insertions. No two neighbors have the same kind.
    """
    spans = list(_merged(_spans(first, second, check, split)))
    spans = list(_merged(_join_changes(spans, lambda number: spans[number].text.isspace())))
    return list(_merged(_join_changes(spans, lambda number: _is_coincidence(spans, number))))


def _spans(first: str, second: str, check: Check, split: SplitWords) -> Iterator[Span]:
    lines, other_lines = _lines(first), _lines(second)
    # Blank lines are equal everywhere. As anchors, they would pair unrelated paragraphs once two were merged or split.
    for changed, other_changed, equal in _changes(lines, other_lines, check, lambda text: not text.isspace()):
        yield from _word_spans(changed, other_changed, check, split)
        if equal:
            yield Span(Kind.EQUAL, equal)


def _word_spans(first: str, second: str, check: Check, split: SplitWords) -> Iterator[Span]:
    if first and second:
        for changed, other_changed, equal in _changes(split(first), split(second), check):
            yield from _changed(changed, other_changed)
            if equal:
                yield Span(Kind.EQUAL, equal)
    else:
        yield from _changed(first, second)


def _changed(first: str, second: str) -> Iterator[Span]:
    if first:
        yield Span(Kind.DELETE, first)
    if second:
        yield Span(Kind.INSERT, second)


def _lines(text: str) -> list[str]:
    # Not `splitlines`, which splits at characters that no editor shows as line ends.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _changes(
    first: list[str], second: list[str], check: Check, is_anchor: Callable[[str], bool] = lambda _text: True
) -> Iterator[tuple[str, str, str]]:
    """Yield the differing texts of both sides before each equal part, and the equal part; the last one may be empty.

    Equal parts that are no anchors count as differing.
    """
    place, other_place = 0, 0
    for start, other_start, length in (*equal_blocks(first, second, check), (len(first), len(second), 0)):
        check()
        equal = "".join(first[start : start + length])
        if equal and not is_anchor(equal):
            continue
        yield "".join(first[place:start]), "".join(second[other_place:other_start]), equal
        place, other_place = start + length, other_start + length


def _join_changes(spans: list[Span], joins: Callable[[int], bool]) -> Iterator[Span]:
    """Count an equal part of a line between two changes as changed where `joins` says so for its number."""
    for number, span in enumerate(spans):
        between = 0 < number < len(spans) - 1 and span.kind is Kind.EQUAL and "\n" not in span.text
        if between and joins(number):
            yield Span(Kind.DELETE, span.text)
            yield Span(Kind.INSERT, span.text)
        else:
            yield span


def _is_coincidence(spans: list[Span], number: int) -> bool:
    """Return whether an equal span is small between two changes, as in a sentence that was replaced."""
    around = (spans[max(number - 2, 0) : number], spans[number + 1 : number + 3])
    changes = (max(_weight(span) for span in side if span.kind is not Kind.EQUAL) for side in around)
    return 2 * _weight(spans[number]) < min(changes)


def _weight(span: Span) -> int:
    """The number of letters and digits of a span."""
    return sum(map(str.isalnum, span.text))


def _merged(spans: Iterator[Span]) -> Iterator[Span]:
    """Join neighbors of one kind, with deletions before insertions between two equal parts."""
    deleted: list[str] = []
    inserted: list[str] = []
    equal: list[str] = []
    for span in spans:
        if span.kind is Kind.EQUAL:
            yield from _changed("".join(deleted), "".join(inserted))
            deleted, inserted = [], []
            equal.append(span.text)
            continue
        if equal:
            yield Span(Kind.EQUAL, "".join(equal))
            equal = []
        (deleted if span.kind is Kind.DELETE else inserted).append(span.text)
    if equal:
        yield Span(Kind.EQUAL, "".join(equal))
    yield from _changed("".join(deleted), "".join(inserted))
