"""Similarity of two results, from 0 to 1.

1 − edit distance / length of the longer text, with the Levenshtein distance of unit costs (V. I. Levenshtein, 1966),
computed by python-Levenshtein's bit-parallel algorithm (Hyyrö, 2003). The work of a comparison is bounded;
`bounded_distance` describes the effect on the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.values import Value, compact_json

MAX_CELLS: Final = 500_000_000
"""Maximum number of cells of an edit distance table; they take tens of milliseconds."""

MIN_BLOCK: Final = 500
"""Minimum length in characters of the blocks of long texts."""

ANCHOR_LENGTH: Final = 24
ANCHOR_TRIES: Final = 8


def similarity(first: Value, second: Value) -> float:
    """The similarity of two results: 1.0 for equal ones, 0.0 for texts without common characters.

    Other values are compared as compact JSON with sorted keys. Two empty texts are equal. The result is never more than
    the true similarity; if it is not exact, the true one is less than 1 − `exact_reach` / length of the longer text.
    """
    similarity = similarity_from(0.0, as_text(first), as_text(second))
    assert similarity is not None, "no similarity is less than 0"
    return similarity


def similarity_from(least: float, one: str, other: str) -> float | None:
    """The similarity of two texts if it is at least `least`; else None, which takes much less time."""
    if one == other:
        return 1.0
    from rapidfuzz.distance import Postfix, Prefix

    longer = max(len(one), len(other))
    most = int(longer * (1.0 - least)) + 1  # one more than possible, so that rounding does not decide
    if abs(len(one) - len(other)) > most:
        return None
    start = Prefix.similarity(one, other)
    one, other = one[start:], other[start:]
    end = Postfix.similarity(one, other)
    distance = bounded_distance(one[: len(one) - end], other[: len(other) - end], most, _distance)
    # A single division, so that 93 of 100 characters reach the threshold 0.93; 1.0 - 7 / 100 is slightly less.
    similarity = max(longer - distance, 0) / longer
    return similarity if similarity >= least else None


def as_text(value: Value) -> str:
    """The text of a value for comparisons."""
    return value if isinstance(value, str) else compact_json(value)


def exact_reach(longer: int) -> int:
    """The maximum number of edits that is counted exactly, for a length of the longer text."""
    return MAX_CELLS // max(longer, 1)


def bounded_distance(one: str, other: str, most: int, distance: Callable[[str, str, int], int]) -> int:
    """The edit distance of two texts with bounded work; any number above `most` if it is above that.

    It is exact up to `exact_reach` edits, which is any distance for texts of up to 22,360 characters. Beyond that the
    texts are divided into blocks, and the distances of corresponding blocks are added. The sum is never less than the
    true distance, so texts never count as more similar than they are.

    Args:
        one: A text.
        other: Another text.
        most: The largest distance of interest.
        distance: Computes an exact distance, or any number above its last argument if it is above that.
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
    """Where to divide two texts: near the middle of the longer one, at a passage that both contain."""
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
    found = distance(one, other, score_cutoff=few)  # usually enough, and many times faster than without a limit
    return found if found <= few or few == most else distance(one, other, score_cutoff=most)
