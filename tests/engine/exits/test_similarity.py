"""Similarity of two results, compared with the simplest Levenshtein distance."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from string import ascii_lowercase
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from engine.exits import similarity as module
from engine.exits.similarity import as_text, bounded_distance, exact_reach, similarity, similarity_from

texts = st.text(alphabet=st.sampled_from("ab c\n.é𝄞\ud800"), max_size=14)
pieces = st.text(alphabet="ab", max_size=6)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(alphabet="ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="ab", max_size=2), inner, max_size=3),
    max_leaves=5,
)


def naive_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(before + (a != b), row[j] + 1, row[j - 1] + 1)
    return row[-1]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("", "", 1.0),
        ("same", "same", 1.0),
        ("", "abc", 0.0),
        ("abc", "xyz", 0.0),
        ("kitten", "sitting", 1 - 3 / 7),
        ("abcd", "abxd", 0.75),
        ("a" * 100, "a" * 100 + "b" * 8, 1 - 8 / 108),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}, 1.0),
        ({"a": 1}, '{"a":1}', 1.0),
        ([1, 2], [1, 3], 1 - 1 / 5),
        (None, None, 1.0),
        (None, "null", 1.0),
        (True, "true", 1.0),
        (5, 5.0, 1 - 2 / 3),
    ],
)
def test_similarity_is_one_minus_distance_divided_by_the_longer_length(one: Any, other: Any, alike: float) -> None:
    assert similarity(one, other) == pytest.approx(alike, abs=1e-12)


def test_a_similarity_in_hundredths_reaches_the_equal_threshold() -> None:
    shares = [similarity("a" * 100, "a" * same + "b" * (100 - same)) for same in range(101)]

    assert shares == [float(f"{same / 100:.2f}") for same in range(101)]


def test_similarity_is_not_the_indel_ratio() -> None:
    assert similarity("a" * 100, "a" * 100 + "b" * 8) == pytest.approx(0.925925, abs=1e-6)


@given(texts, texts)
@example("\ud800", "\udfff")
@example("\ud800", "")
@example("𝄞", "𝄞a")
def test_similarity_is_exact(one: str, other: str) -> None:
    assume(one or other)

    assert similarity(one, other) == pytest.approx(
        1 - naive_distance(one, other) / max(len(one), len(other)), abs=1e-12
    )


@given(texts | values, texts | values)
def test_similarity_is_symmetric_and_one_only_for_equal_texts(one: Any, other: Any) -> None:
    alike = similarity(one, other)

    assert 0.0 <= alike <= 1.0
    assert similarity(other, one) == alike
    assert (alike == 1.0) is (as_text(one) == as_text(other))


@given(pieces, pieces, st.integers(0, 300), st.integers(0, 300))
def test_common_prefixes_and_suffixes_do_not_change_the_distance(one: str, other: str, before: int, after: int) -> None:
    whole = similarity("x" * before + one + "y" * after, "x" * before + other + "y" * after)

    longer = max(len(one), len(other)) + before + after
    assert whole == pytest.approx(1 - naive_distance(one, other) / max(longer, 1), abs=1e-12)


def test_a_change_at_the_end_of_a_long_text_counts() -> None:
    text = "a" * 50_000

    assert similarity(text + "b", text + "c") == pytest.approx(1 - 1 / 50_001, abs=1e-12)
    assert similarity(text + "b", text + "c") < 1.0


def prose(length: int, seed: int, alphabet: str = ascii_lowercase + "  ") -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


def edited(text: str, every: int, sign: str = "#") -> str:
    return "".join(sign if place % every == every // 2 else old for place, old in enumerate(text))


_LONG = prose(25_000, 1)
_WIDE = prose(25_000, 2, "日本語の文章🙂é\u0301 ")
LONG_CASES = {
    "the last 15,000 are new": (_LONG, _LONG[:10_000] + prose(15_000, 3)),
    "the last 15,000 are new, and the first character": (_LONG, "#" + _LONG[1:10_000] + prose(15_000, 3)),
    "the first 15,000 are new": (_LONG, prose(15_000, 3) + _LONG[15_000:]),
    "the middle is new": (_LONG, _LONG[:5_000] + prose(15_000, 3) + _LONG[20_000:]),
    "edits everywhere": (_LONG, edited(_LONG, 50)),
    "many edits everywhere": (_LONG, edited(_LONG, 3)),
    "a paragraph was inserted": (_LONG, "#" + _LONG[:12_000] + prose(4_000, 4) + _LONG[12_000:]),
    "a paragraph was moved": (_LONG, _LONG[6_000:16_000] + _LONG[:6_000] + _LONG[16_000:]),
    "a text that repeats itself": ("one line\n" * 2_700, "one lime\n" * 2_500 + "the end"),
    "wide characters": (_WIDE, edited(_WIDE, 40) + _WIDE[:3_000]),
    "a tail that was added": (_LONG, edited(_LONG, 100) + prose(9_000, 5)),
    "texts of 60,000": (prose(60_000, 6), edited(prose(60_000, 6), 25)),
    "texts of 100,000": (prose(100_000, 7), "#" + edited(prose(100_000, 7), 40)),
}


@pytest.mark.parametrize("case", LONG_CASES)
def test_long_texts_are_compared_exactly_up_to_a_number_of_edits(case: str) -> None:
    one, other = LONG_CASES[case]
    longer = max(len(one), len(other))
    true = Levenshtein.distance(one, other)
    assert true <= exact_reach(longer), "the case is about exact figures"

    assert similarity(one, other) == (longer - true) / longer
    assert similarity(other, one) == (longer - true) / longer


def test_a_mostly_new_text_is_never_nearly_equal() -> None:
    alike = similarity(_LONG, "#" + _LONG[1:10_000] + prose(15_000, 3))

    assert 0.4 < alike < 0.6


@pytest.mark.parametrize("length", [23_000, 100_000, 1_000_000])
def test_long_texts_without_common_parts_are_not_similar(length: int) -> None:
    assert similarity("a" * length, "b" * length) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("is_edited", [True, False])
def test_the_similarity_of_very_long_texts_is_a_lower_bound(is_edited: bool) -> None:
    text = prose(300_000, 9)
    other = edited(text, 100) if is_edited else text[:100_000] + prose(200_000, 8)
    true = 1 - Levenshtein.distance(text, other, score_hint=3_000) / len(text)

    assert true - 0.01 < similarity(text, other) <= true


@contextmanager
def small_bounds() -> Generator[None]:
    """Texts of more than 100 characters count as long: exact up to 10,000 cells, and blocks of 20 characters."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "MAX_CELLS", 10_000)
        patched.setattr(module, "MIN_BLOCK", 20)
        yield


@st.composite
def long_pairs(draw: st.DrawFn) -> tuple[str, str]:
    """A text of some hundred characters, and an edited copy."""
    alphabet = draw(st.sampled_from(["ab", "abcdefghij \n", "日本語🙂e\u0301 ", ascii_lowercase]))
    text = prose(draw(st.integers(0, 600)), draw(st.integers(0, 9)), alphabet)
    if draw(st.booleans()):
        text = text[:40] * (len(text) // 40)
    other = text
    for _ in range(draw(st.integers(0, 4))):
        start, end = sorted((draw(st.integers(0, len(other))), draw(st.integers(0, len(other)))))
        piece = other[start:end]
        new = prose(draw(st.integers(0, 200)), draw(st.integers(10, 19)), alphabet)
        kind = draw(st.sampled_from(["replace", "insert", "delete", "move", "repeat", "edit"]))
        other = {
            "replace": other[:start] + new + other[end:],
            "insert": other[:start] + new + other[start:],
            "delete": other[:start] + other[end:],
            "move": piece + other[:start] + other[end:],
            "repeat": other[:end] + piece + other[end:],
            "edit": other[:start] + edited(piece, 7) + other[end:],
        }[kind]
    return text, other


@settings(deadline=None)
@given(long_pairs())
def test_beyond_the_exact_reach_similarity_is_a_lower_bound(
    pair: tuple[str, str],
) -> None:
    one, other = pair
    longer = max(len(one), len(other), 1)
    true = Levenshtein.distance(one, other)
    with small_bounds():
        found, reach = similarity(one, other), exact_reach(longer)
        assert similarity(other, one) == found

    assert 0.0 <= found <= (longer - true) / longer
    assert found == (longer - true) / longer or true > reach
    assert (found == 1.0) is (one == other)


@settings(deadline=None)
@given(long_pairs())
def test_the_work_of_a_comparison_is_bounded(pair: tuple[str, str]) -> None:
    cells = 0

    def counted(one: str, other: str, most: int) -> int:
        nonlocal cells
        cells += max(len(one), len(other)) * min(most, len(one), len(other))
        return Levenshtein.distance(one, other, score_cutoff=most)

    longer = max(map(len, pair))
    with small_bounds():
        bounded_distance(*pair, longer, counted)

    assert cells <= 10_000 + 2 * longer * max(10_000 // max(longer, 1), 20)


@settings(deadline=None)
@given(long_pairs(), st.integers(0, 100))
def test_similarity_from_agrees_for_long_texts(pair: tuple[str, str], hundredths: int) -> None:
    with small_bounds():
        alike, least = similarity(*pair), hundredths / 100

        assert similarity_from(least, *pair) == (alike if alike >= least else None)
        assert similarity_from(alike, *pair) == alike


@given(texts, texts, st.integers(0, 100))
def test_similarity_from_agrees_above_the_minimum_and_is_none_below(one: str, other: str, hundredths: int) -> None:
    alike, least = similarity(one, other), hundredths / 100

    assert similarity_from(least, one, other) == (alike if alike >= least else None)
    assert similarity_from(alike, one, other) == alike
