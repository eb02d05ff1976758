"""How alike two results are, held against the plainest Levenshtein distance there is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from engine.exits.similarity import COMPARED_LENGTH, as_text, similarity, similarity_from

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
def test_similarity_is_one_minus_the_distance_by_the_longer_length(one: Any, other: Any, alike: float) -> None:
    assert similarity(one, other) == pytest.approx(alike, abs=1e-12)


def test_a_share_in_hundredths_reaches_the_threshold_that_is_written_like_it() -> None:
    shares = [similarity("a" * 100, "a" * same + "b" * (100 - same)) for same in range(101)]

    assert shares == [float(f"{same / 100:.2f}") for same in range(101)]


def test_it_is_no_indel_ratio() -> None:
    assert similarity("a" * 100, "a" * 100 + "b" * 8) == pytest.approx(0.925925, abs=1e-6)


@given(texts, texts)
@example("\ud800", "\udfff")
@example("\ud800", "")
@example("𝄞", "𝄞a")
def test_it_is_exact(one: str, other: str) -> None:
    assume(one or other)

    assert similarity(one, other) == pytest.approx(
        1 - naive_distance(one, other) / max(len(one), len(other)), abs=1e-12
    )


@given(texts | values, texts | values)
def test_it_is_symmetric_lies_between_nothing_and_one_and_is_one_for_equal_texts_alone(one: Any, other: Any) -> None:
    alike = similarity(one, other)

    assert 0.0 <= alike <= 1.0
    assert similarity(other, one) == alike
    assert (alike == 1.0) is (as_text(one) == as_text(other))


@given(pieces, pieces, st.integers(0, 300), st.integers(0, 300))
def test_what_both_share_at_their_ends_changes_no_distance(one: str, other: str, before: int, after: int) -> None:
    whole = similarity("x" * before + one + "y" * after, "x" * before + other + "y" * after)

    longer = max(len(one), len(other)) + before + after
    assert whole == pytest.approx(1 - naive_distance(one, other) / max(longer, 1), abs=1e-12)


def test_ten_thousand_characters_are_compared_exactly() -> None:
    one = "ab" * (COMPARED_LENGTH // 2)
    other = "ba" * (COMPARED_LENGTH // 2)

    assert similarity(one, other) == pytest.approx(1 - 2 / COMPARED_LENGTH, abs=1e-12)


def test_a_change_at_the_end_of_a_long_text_is_seen() -> None:
    text = "a" * 50_000

    assert similarity(text + "b", text + "c") == pytest.approx(1 - 1 / 50_001, abs=1e-12)
    assert similarity(text + "b", text + "c") < 1.0


@pytest.mark.parametrize("tail", [1, 100, 10_000, 90_000])
def test_a_tail_that_one_text_has_more_counts_whole(tail: int) -> None:
    """Half of what is compared differs, from the first character to the last of both."""
    one, other = "xa" * 10_000, "ya" * 10_000 + "z" * tail

    assert similarity(one, other) == pytest.approx(1 - (10_000 + tail) / (20_000 + tail), abs=1e-12)


@pytest.mark.parametrize("length", [20_000, 100_000, 1_000_000])
def test_long_texts_that_share_nothing_are_never_called_alike(length: int) -> None:
    """Only the first 10,000 characters are compared, and yet the rest is not taken for equal."""
    assert similarity("a" * length, "b" * length) == pytest.approx(0.0, abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 12_000), st.integers(0, 12_000), st.text(alphabet="ab", min_size=1, max_size=3))
def test_long_texts_are_never_called_equal_that_are_not(head: int, tail: int, change: str) -> None:
    one = "a" * head + "m" + "b" * tail
    other = "a" * head + change + "b" * tail

    assert 0.0 <= similarity(one, other) < 1.0
    assert similarity(one, other) == similarity(other, one)


@given(texts, texts, st.integers(0, 100))
def test_with_a_least_it_is_the_same_from_there_on_and_nothing_below(one: str, other: str, hundredths: int) -> None:
    alike, least = similarity(one, other), hundredths / 100

    assert similarity_from(least, one, other) == (alike if alike >= least else None)
    assert similarity_from(alike, one, other) == alike


@settings(deadline=None, max_examples=40)
@given(st.integers(9_990, 10_300), st.integers(9_990, 10_300), st.integers(0, 10_000), st.sampled_from([0.0, 0.001]))
def test_with_a_least_texts_beyond_what_is_compared_are_the_same_too(
    one_length: int, other_length: int, alike_to: int, below: float
) -> None:
    one = "x" + "ab" * (one_length // 2)
    other = "y" + "ab" * (min(alike_to, other_length) // 2) + "c" * max(other_length - alike_to, 0)
    alike = similarity(one, other)

    assert similarity_from(alike - below, one, other) == alike
    assert similarity_from(alike + 0.001, one, other) is None
