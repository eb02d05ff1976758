"""The exit condition `oscillation`, compared with an exact search of the earlier results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.exits import oscillation
from engine.exits.condition import EndedIteration
from engine.exits.oscillation import COMPARED, COMPARED_IN_FULL, Oscillation, repeats_earlier
from engine.exits.similarity import similarity
from engine.values import is_empty

results = st.lists(
    st.text(alphabet="abc", max_size=12) | st.lists(st.integers(0, 3), max_size=3) | st.none(), max_size=40
)


def ended(index: int, result: Any) -> EndedIteration:
    return EndedIteration(index, result, None, None, {})


@given(results, st.integers(0, 100))
@example(["aaaa", *(["b" * number for number in range(1, 20)]), "aaab"], 75)
def test_oscillation_finds_results_similar_to_the_latest_or_equal_to_any(values: list[Any], hundredths: int) -> None:
    condition, threshold = Oscillation(hundredths / 100), hundredths / 100

    for index, value in enumerate(values):
        iteration = ended(index, value)
        condition.observe(iteration)
        before = [earlier for earlier in values[: max(index - 1, 0)] if not is_empty(earlier)]
        before = [] if is_empty(value) else before
        is_repeated = any(similarity(earlier, value) == 1.0 for earlier in before)
        alike = [similarity(earlier, value) for earlier in before[-COMPARED:]]
        closest = 1.0 if is_repeated else max(alike, default=None)
        is_oscillation = closest is not None and closest >= threshold
        assert condition.reason(iteration) == ("oscillation" if is_oscillation else None)
        latest = max(alike[-COMPARED_IN_FULL:], default=None)
        assert condition.tested(iteration) == (closest if is_oscillation else latest)
        earlier = [one for one in values[: max(index - 1, 0)] if not is_empty(one)]
        if not is_empty(value):
            exported = repeats_earlier(earlier, value, threshold, lambda one, other, _least: similarity(one, other))
            assert exported is is_oscillation


@pytest.mark.parametrize(("length", "in_full"), [(50, 8), (10_000, 8), (15_000, 3), (20_000, 2), (100_000, 1)])
def test_a_result_is_compared_with_a_bounded_number_of_earlier_ones(
    monkeypatch: pytest.MonkeyPatch, length: int, in_full: int
) -> None:
    asked: list[float] = []
    compare = oscillation.similarity_from

    def noted(least: float, one: str, other: str) -> float | None:
        asked.append(least)
        return compare(least, one, other)

    condition = Oscillation(0.9)
    for index in range(30):
        condition.observe(ended(index, chr(0x4E00 + index) * 50))
    monkeypatch.setattr(oscillation, "similarity_from", noted)

    condition.observe(ended(30, "something else".ljust(length, ".")))

    assert len(asked) == COMPARED
    assert all(least < 0.9 for least in asked[:in_full])
    assert asked[in_full:] == [0.9] * (COMPARED - in_full)


def test_an_equal_result_needs_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = Oscillation(0.9)
    for index in range(10):
        condition.observe(ended(index, f"number {index}"))
    monkeypatch.delattr(oscillation, "similarity_from")
    last = ended(10, "number 4")

    condition.observe(last)

    assert condition.tested(last) == 1.0
