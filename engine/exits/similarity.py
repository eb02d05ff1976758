"""Similarity of two results, from 0 to 1.

1 − edit distance / length of the longer, with the Levenshtein distance of unit costs (V. I. Levenshtein, 1966),
computed by python-Levenshtein's bit-parallel algorithm (Hyyrö, 2003). The work of a comparison is bounded, whatever the
texts: see `bounded_distance` for what that means for the figure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.values import Value, compact_json

MAX_CELLS: Final = 500_000_000
"""The most cells of the edit distance table that a comparison works out at a time; it takes tens of milliseconds."""

MIN_BLOCK: Final = 500
"""The shortest blocks, in characters, that long texts are divided into."""

ANCHOR_LENGTH: Final = 24
ANCHOR_TRIES: Final = 8


def similarity(first: Value, second: Value) -> float:
    """How similar two results are: 1.0 for equal ones, 0.0 for texts that share nothing.

    A value that is not text is compared as compact JSON with sorted keys. Two empty texts are equal. The figure is
    never more than the true similarity; where it is not exact, the true one is less than 1 − `exact_reach` / length of
    the longer.
    """
    alike = similarity_from(0.0, as_text(first), as_text(second))
    assert alike is not None, "no similarity is less than 0"
    return alike


def similarity_from(least: float, one: str, other: str) -> float | None:
    """The similarity of two texts, where it is at least `least`; None where it is less, which takes much less time."""
    if one == other:
        return 1.0
    from rapidfuzz.distance import Postfix, Prefix

    longer = max(len(one), len(other))
    most = int(longer * (1.0 - least)) + 1  # one more than can be, so that no rounding decides
    if abs(len(one) - len(other)) > most:
        return None
    start = Prefix.similarity(one, other)
    one, other = one[start:], other[start:]
    end = Postfix.similarity(one, other)
    distance = bounded_distance(one[: len(one) - end], other[: len(other) - end], most, _distance)
    # One division, so that 93 characters of 100 are just what the threshold 0.93 says; 1.0 - 7 / 100 is a little less.
    alike = max(longer - distance, 0) / longer
    return alike if alike >= least else None


def as_text(value: Value) -> str:
    """A value as it is compared."""
    return value if isinstance(value, str) else compact_json(value)


def exact_reach(longer: int) -> int:
    """Up to how many edits are counted exactly where the longer of two texts has so many characters."""
    return MAX_CELLS // max(longer, 1)


def bounded_distance(one: str, other: str, most: int, distance: Callable[[str, str, int], int]) -> int:
    """The edit distance of two texts, by a bounded amount of work; more than `most` where it is more than that.

    Up to `exact_reach` edits it is exact, which is any distance for texts of up to 22,360 characters. Beyond that the
    texts are divided into blocks, each compared with its counterpart, and the distances are added. Editing block by
    block is one way to edit the whole, so the sum is never less than the true distance: a text is never called more
    similar than it is.

    Args:
        one: The one text.
        other: The other.
        most: The largest distance that is of interest.
        distance: Works out a distance exactly, or a number over its last argument where it is more than that.
    """
    longer = max(len(one), len(other))
    reach = exact_reach(longer)
    if min(reach, most) >= longer:
        return distance(one, other, longer)
    found = distance(one, other, min(reach, most))
    if found <= reach or most <= reach:
        return found
    block = max(reach, MIN_BLOCK)
    total, pairs = 0, [(one, other) if (len(one), one) >= (len(other), other) else (other, one)]
    while pairs and total <= most:
        long, short = pairs.pop()
        if not short or len(long) <= block:
            total += distance(long, short, len(long)) if short else len(long)
            continue
        cut, place = split_at(long, short)
        parts = ((long[:cut], short[:place]), (long[cut:], short[place:]))
        pairs += [(a, b) if (len(a), a) >= (len(b), b) else (b, a) for a, b in parts]
    return total


def split_at(long: str, short: str) -> tuple[int, int]:
    """Where to divide two texts: near the middle of the longer one, at words that both have, as near as can be."""
    middle = len(long) // 2
    for attempt in range(ANCHOR_TRIES):
        cut = middle + (-1) ** attempt * (attempt + 1) // 2 * (len(long) // 32)
        anchor, near = long[cut : cut + ANCHOR_LENGTH], cut * len(short) // len(long)
        after, before = short.find(anchor, near), short.rfind(anchor, 0, near + ANCHOR_LENGTH)
        places = [place for place in (after, before) if place >= 0]
        if places:
            return cut, min(places, key=lambda place: abs(place - near))
    return middle, middle * len(short) // len(long)


def _distance(one: str, other: str, most: int) -> int:
    from Levenshtein import distance

    few = min(most, max(len(one), len(other)) // 50)
    found = distance(one, other, score_cutoff=few)  # most often enough, and many times faster than without a limit
    return found if found <= few or few == most else distance(one, other, score_cutoff=most)
