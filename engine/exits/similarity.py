"""How alike two results are, from 0 to 1.

1 − edit distance / length of the longer, with the Levenshtein distance of unit costs (V. I. Levenshtein, 1966),
computed by python-Levenshtein's bit-parallel algorithm (Hyyrö, 2003). It is bounded so that a comparison stays a
matter of milliseconds.
"""

from __future__ import annotations

from engine.values import Value, compact_json

COMPARED_LENGTH = 10_000
"""The most characters of each text that are compared once what they share at both ends is set aside."""


def similarity(first: Value, second: Value) -> float:
    """How alike two results are: 1.0 for equal ones, 0.0 for texts that share nothing.

    A value that is no text is compared as compact JSON with sorted keys. What both texts share at their start and
    end is set aside, which changes no distance. Of what is left, 10,000 characters each are compared; what is cut
    off beyond them is taken to differ as much as what was compared, and what one text has more counts whole. So
    neither long texts that have little in common nor texts that differ only in a long tail are called alike. Up to
    10,000 characters the figure is exact. Two empty texts are equal.
    """
    one, other = _as_text(first), _as_text(second)
    if one == other:
        return 1.0
    from rapidfuzz.distance import Postfix, Prefix

    longer = max(len(one), len(other))
    start = Prefix.similarity(one, other)
    one, other = one[start:], other[start:]
    end = Postfix.similarity(one, other)
    distance = _distance(one[: len(one) - end], other[: len(other) - end])
    # One division, so that 93 characters of 100 are just what the threshold 0.93 says; 1.0 - 7 / 100 is a little less.
    return (longer - distance) / longer


def _distance(one: str, other: str) -> float:
    from Levenshtein import distance

    compared = distance(one[:COMPARED_LENGTH], other[:COMPARED_LENGTH])
    cut_off = sorted(max(len(text) - COMPARED_LENGTH, 0) for text in (one, other))
    return compared * (1 + cut_off[0] / COMPARED_LENGTH) + cut_off[1] - cut_off[0]


def _as_text(value: Value) -> str:
    return value if isinstance(value, str) else compact_json(value)
