"""What an exported module carries with it does what the engine does: how alike results are, the iteration's note."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.exits.similarity import similarity
from engine.export import carried_loops
from engine.export.langgraph_module import export_langgraph
from tests.engine.exits.test_similarity import LONG_CASES, long_pairs, small_bounds
from tests.engine.export.kit import module_of
from tests.engine.semantics.documents import around, llm

texts = st.text(alphabet="ab é𝄞", max_size=14)
values: st.SearchStrategy[Any] = texts | st.none() | st.booleans() | st.lists(st.integers(0, 9), max_size=4)


@given(values, values, st.integers(0, 100))
def test_results_are_as_alike_as_the_engine_finds_them(one: Any, other: Any, hundredths: int) -> None:
    alike, least = similarity(one, other), hundredths / 100

    assert carried_loops.similarity(one, other) == alike
    bounded = carried_loops.similarity(one, other, least)
    assert bounded == alike if alike >= least else bounded < least


@settings(deadline=None)
@given(long_pairs(), st.integers(0, 100))
def test_long_results_are_as_alike_as_the_engine_finds_them(pair: tuple[str, str], hundredths: int) -> None:
    with small_bounds():
        alike, least = similarity(*pair), hundredths / 100

        assert carried_loops.similarity(*pair) == alike
        bounded = carried_loops.similarity(*pair, least)
        assert bounded == alike if alike >= least else bounded < least


@pytest.mark.parametrize("case", ["the last 15,000 are new, and the first character", "wide characters"])
def test_an_exported_module_compares_long_results_exactly(case: str) -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", exit_condition="stable_output")

    module = module_of(export_langgraph(workflow).text)

    assert module.similarity(*LONG_CASES[case]) == similarity(*LONG_CASES[case])


def test_a_bound_ends_no_comparison_whose_texts_draw_near_again_further_on() -> None:
    text = "".join(chr(ord("a") + place * place % 23) for place in range(100))
    first, second = f"{text}z", f"y{text}"

    assert carried_loops.similarity(first, second, 0.95) == pytest.approx(99 / 101)
    assert carried_loops.similarity(first, second, 0.95) == similarity(first, second)


def test_the_note_about_the_iteration_is_the_engines_own() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=3, inject_feedback=True)

    module = module_of(export_langgraph(workflow).text)

    said = module.with_note("Give a number from 1 to 15.", 2, 3, "5")
    assert said.endswith("This is iteration 2 of 3. The iteration before gave:\n5\n\nImprove on it.")
