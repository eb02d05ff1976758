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
    alike = similarity_from(0.0, as_text(first), as_text(second))
    assert alike is not None, "no similarity is less than 0"
    return alike


def similarity_from(least: float, one: str, other: str) -> float | None:
    """The same of two texts, where it is at least so much; None where it is less, which is told much sooner."""
    if one == other:
        return 1.0
    from rapidfuzz.distance import Postfix, Prefix

    longer = max(len(one), len(other))
    most = longer * (1.0 - least) + 1.0  # one more than can be, so that no rounding decides
    if abs(len(one) - len(other)) > most:
        return None
    start = Prefix.similarity(one, other)
    one, other = one[start:], other[start:]
    end = Postfix.similarity(one, other)
    distance = _distance(one[: len(one) - end], other[: len(other) - end], most)
    # One division, so that 93 characters of 100 are just what the threshold 0.93 says; 1.0 - 7 / 100 is a little less.
    alike = max(longer - distance, 0.0) / longer
    return alike if alike >= least else None


def as_text(value: Value) -> str:
    """A value as it is compared."""
    return value if isinstance(value, str) else compact_json(value)


def _distance(one: str, other: str, most: float) -> float:
    """How far they are apart; where it is more than so much, anything that is more too."""
    from Levenshtein import distance

    cut_off = sorted(max(len(text) - COMPARED_LENGTH, 0) for text in (one, other))
    scale, more = 1 + cut_off[0] / COMPARED_LENGTH, cut_off[1] - cut_off[0]
    cutoff = max(int((most - more) / scale) + 1, 0)
    compared = distance(one[:COMPARED_LENGTH], other[:COMPARED_LENGTH], score_cutoff=cutoff)
    return compared * scale + more
