"""The differences between two texts as spans of words: by lines first, then by words within the lines that changed.

The spans of one side put together give back its text, character by character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engine.compare.alignment import Check, equal_blocks

_WORD: Final = re.compile(r"\w+|\n|[^\S\n]+|[^\w\s]")
"""A word, a newline, other white space, or a single mark."""


class Kind(StrEnum):
    """Where a span stands: in both texts, only in the first, or only in the second."""

    EQUAL = "equal"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text and where it stands. It is never empty."""

    kind: Kind
    text: str


def differences(first: str, second: str, check: Check = lambda: None) -> list[Span]:
    """Compare two texts word by word.

    Args:
        first: The one.
        second: The other.
        check: Called every few milliseconds; what it raises ends the work.

    Returns:
        The spans of both in order, what was deleted before what was inserted in its place. No two neighbours are of one
        kind.
    """
    return list(_merged(_readable(list(_merged(_spans(first, second, check))))))


def of_first(spans: list[Span]) -> list[Span]:
    """The spans that the first text consists of."""
    return [span for span in spans if span.kind is not Kind.INSERT]


def of_second(spans: list[Span]) -> list[Span]:
    """The spans that the second text consists of."""
    return [span for span in spans if span.kind is not Kind.DELETE]


def _spans(first: str, second: str, check: Check) -> Iterator[Span]:
    lines, other_lines = _lines(first), _lines(second)
    for changed, other_changed, equal in _stretches(lines, other_lines, check):
        yield from _word_spans(changed, other_changed, check)
        if equal:
            yield Span(Kind.EQUAL, equal)


def _word_spans(first: str, second: str, check: Check) -> Iterator[Span]:
    if first and second:
        for changed, other_changed, equal in _stretches(_WORD.findall(first), _WORD.findall(second), check):
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
    # Not `splitlines`, which knows a dozen kinds of line ends that no editor shows as one.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _stretches(first: list[str], second: list[str], check: Check) -> Iterator[tuple[str, str, str]]:
    """What differs, on either side, before each part that is equal, and that part; the last one may be empty."""
    place, other_place = 0, 0
    for start, other_start, length in (*equal_blocks(first, second, check), (len(first), len(second), 0)):
        check()
        changed, other_changed = "".join(first[place:start]), "".join(second[other_place:other_start])
        yield changed, other_changed, "".join(first[start : start + length])
        place, other_place = start + length, other_start + length


def _readable(spans: list[Span]) -> Iterator[Span]:
    """White space alone between two changes belongs to them: a sentence that is new is one change, not one a word."""
    for number, span in enumerate(spans):
        between = 0 < number < len(spans) - 1 and span.kind is Kind.EQUAL
        if between and span.text.isspace() and "\n" not in span.text:
            yield Span(Kind.DELETE, span.text)
            yield Span(Kind.INSERT, span.text)
        else:
            yield span


def _merged(spans: Iterator[Span]) -> Iterator[Span]:
    """Neighbours of one kind joined; of what lies between two equal parts, the deleted first, then the inserted."""
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
