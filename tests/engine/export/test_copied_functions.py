"""Functions copied into an exported module agree with the engine: similarity and iteration note."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.exits.similarity import similarity
from engine.export.langgraph_module import export_langgraph
from engine.nodes.context import with_note
from tests.engine.exits.test_similarity import LONG_CASES, long_pairs, small_bounds
from tests.engine.export.kit import module_of
from tests.engine.semantics.documents import around, llm

texts = st.text(alphabet="ab é𝄞", max_size=14)
values: st.SearchStrategy[Any] = texts | st.none() | st.booleans() | st.lists(st.integers(0, 9), max_size=4)


@cache
def exported() -> Any:
    """A module that compares results."""
    workflow = around(llm("draft"), edges="loop -> draft -> exit", exit_condition="stable_output")
    return module_of(export_langgraph(workflow).text)


@given(values, values, st.integers(0, 100))
def test_similarity_agrees_with_the_engine(one: Any, other: Any, hundredths: int) -> None:
    alike, least = similarity(one, other), hundredths / 100

    assert exported().similarity(one, other) == alike
    bounded = exported().similarity(one, other, least)
    assert bounded == alike if alike >= least else bounded < least


@settings(deadline=None)
@given(long_pairs())
def test_similarity_of_long_results_is_never_below_the_engines(pair: tuple[str, str]) -> None:
    exact = exported().similarity(*pair)
    with small_bounds():
        assert similarity(*pair) <= exact


@pytest.mark.parametrize("case", ["the last 15,000 are new, and the first character", "wide characters"])
def test_an_exported_module_compares_long_results_exactly(case: str) -> None:
    assert exported().similarity(*LONG_CASES[case]) == similarity(*LONG_CASES[case])


def test_no_edit_distance_is_copied() -> None:
    text = export_langgraph(around(llm("draft"), edges="loop -> draft -> exit", exit_condition="stable_output")).text
    assert "from Levenshtein import distance" in text
    assert "pip install langgraph litellm python-Levenshtein" in text


def test_the_iteration_note_is_the_engines() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=3, inject_feedback=True)

    module = module_of(export_langgraph(workflow).text)

    prompt = module.with_note("Give a number from 1 to 15.", 2, 3, "5")
    assert prompt == with_note("Give a number from 1 to 15.", 2, 3, "5")
    assert "2 of 3" in prompt
