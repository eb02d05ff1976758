"""Labels of iterations: cells, facts, explanations, breadcrumb and chart values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF

from app.history.iteration_chart import BaseSeries, Threshold, all_series, lines, scale, thresholds, ticks
from app.history.iteration_table import PREVIEW, beginning, token_count, verdict
from app.history.iterations_panel import Crumb, crumbs
from app.inspector.result_text import cost, iteration_facts
from app.runs.loop_status import condition_values, loop_status
from app.runs.run_view_model import RunViewModel
from engine.models.protocol import Usage
from engine.nodes.loop import LoopConfig
from engine.run_state.state import LoopExecution
from tests.app.history.loop_samples import end, iteration, loop_model, nested_loops, start_iteration
from tests.wording import mentions

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


class Untouched(str):
    """A text of which only the beginning may be read."""

    __slots__ = ()

    def __getitem__(self, place: Any) -> str:
        assert isinstance(place, slice)
        assert place.stop <= PREVIEW + 1, place
        return str.__getitem__(self, place)

    def __iter__(self) -> Any:
        raise AssertionError("all of the text was looked at")

    def split(self, *_: Any) -> Any:
        raise AssertionError("all of the text was looked at")


def test_preview_of_a_long_text_reads_only_its_beginning() -> None:
    assert beginning(Untouched("word " * 200_000)) == f"{('word ' * 40)[:PREVIEW].rstrip()}…"
    assert len(beginning([Untouched("x" * 1_000_000)] * 3)) == PREVIEW + 1


@given(values)
def test_preview_of_a_value_is_its_json(value: Any) -> None:
    if isinstance(value, str):
        whole = value
    elif value is None:
        whole = ""
    else:
        whole = json.dumps(value, ensure_ascii=False)
    shown = beginning(value, 10_000)
    assert shown == " ".join(whole.split()).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@given(values)
def test_cell_is_one_short_line(value: Any) -> None:
    shown = beginning(value)
    assert len(shown) <= PREVIEW + 1
    assert "\n" not in shown


def test_iteration_facts_have_only_known_values() -> None:
    assert iteration_facts(iteration(0), None) == "0.5 s"
    usage = Usage(input_tokens=400, output_tokens=96, exact=True)
    full = iteration(1, branch="continue", reason="vague", score=7.0, usage=usage, cost_usd=0.0041, duration_s=1.9)
    assert iteration_facts(full, 0.784) == "continue · score 7 · 78.4% similar · 496 tokens · $0.0041 · 1.9 s"
    assert verdict(full) == "continue · vague"
    assert token_count(Usage(input_tokens=1000, output_tokens=1, exact=False)) == "~1,001"
    assert (token_count(Usage()), cost(iteration(0))) == ("", "")
    assert cost(iteration(0, usage=usage, cost_usd=0.00001)) == "< $0.0001"
    assert cost(iteration(0, usage=usage, cost_usd=None)) == "$?"


def test_loop_explanation_has_tested_values() -> None:
    config = LoopConfig(stop_when=[{"condition": "stable_output"}, {"condition": "oscillation", "threshold": 0.9}])
    view_model = loop_model("one", "two", total=10, similarity=0.962)
    assert loop_status(view_model.loops["loop"], config) == "Iteration 2 of up to 10."
    end(view_model, "stable_output")
    loop = view_model.loops["loop"]
    assert mentions(loop_status(loop, config), "2 of 10: … 96.2% … (threshold 95%)")
    assert condition_values(loop, 1, config).splitlines()[0] == "Similarity 96.2% ≥ 95%"
    assert thresholds(config) == {
        "similarity": Threshold(0.95, "stable at 95%"),
        "oscillation": Threshold(0.9, "repeats at 90%"),
    }
    assert thresholds(LoopConfig()) == {}


def test_condition_adds_a_series_of_its_values() -> None:
    series = all_series()["oscillation"]
    assert series.value(iteration(2, tested={"oscillation": 0.5})) == 0.5
    assert series.value(iteration(0)) is None
    assert scale(series, [None, 0.5], 0.9) == (0.0, 1.0)


def test_loop_explanation_tells_progress() -> None:
    assert loop_status(LoopExecution(), LoopConfig()) == "No iteration has started yet."
    assert loop_status(LoopExecution(total=4, current=1), LoopConfig()) == "Iteration 2 of up to 4."


def test_loop_explanation_names_another_returned_iteration() -> None:
    view_model = loop_model("one", "two", "three")
    end(view_model, returned=0)
    assert loop_status(view_model.loops["loop"], LoopConfig()).endswith("the result of iteration 1.")


def test_condition_values_end_with_the_complete_reason() -> None:
    loop = loop_model("one", branch="continue", reason="Say\nwhere.").loops["loop"]
    text = condition_values(loop, 0, LoopConfig(stop_when=[{"condition": "evaluator"}]))
    assert text.startswith("The evaluator chose 'continue'")
    assert text.endswith("\n\nSay\nwhere.")


def test_breadcrumb_of_a_nested_loop() -> None:
    workflow = nested_loops()
    view_model = RunViewModel({"inner": "outer", "add": "inner"})
    for index in range(3):
        start_iteration(view_model, index, path="outer")
        start_iteration(view_model, 0, path=f"outer[{index}].inner")
    outside = crumbs(workflow, view_model, {"outer": 1}, "outer")
    assert outside == [Crumb("Outer", "outer", is_here=True), Crumb("Inner", "inner", is_deeper=True)]
    inside = crumbs(workflow, view_model, {"outer": 1}, "inner")
    assert [crumb.text for crumb in inside] == ["Outer", "iteration 2", "Inner"]
    assert inside[1] == Crumb("iteration 2", "outer", 1)
    assert inside[2].is_here
    assert [crumb.text for crumb in crumbs(workflow, view_model, {"outer": 9}, "inner")][1] == "iteration 3"


@pytest.mark.parametrize(
    ("kind", "values", "ends"),
    [
        (BaseSeries.SIMILARITY, [None, 0.2, 0.9], (0.0, 1.0)),
        (BaseSeries.SIMILARITY, [None, 0.6, 0.9], (0.5, 1.0)),
        (BaseSeries.SIMILARITY, [None, 0.99], (0.9, 1.0)),
        (BaseSeries.COST, [0.003, 0.0041, None], (0.0, 0.005)),
        (BaseSeries.COST, [None], (0.0, 1.0)),
        (BaseSeries.TOKENS, [0.0, 0.0], (0.0, 1.0)),
        (BaseSeries.TIME, [0.7], (0.0, 1.0)),
        (BaseSeries.SCORE, [-3.0, 8.0], (-5.0, 10.0)),
        (BaseSeries.SCORE, [-3.0], (-5.0, 0.0)),
    ],
)
def test_axis_has_round_ends_around_all_values(
    kind: BaseSeries, values: list[float | None], ends: tuple[float, float]
) -> None:
    assert scale(all_series()[kind], values) == pytest.approx(ends)


def test_threshold_is_on_the_similarity_axis() -> None:
    assert scale(all_series()[BaseSeries.SIMILARITY], [None, 0.97], 0.3) == (0.0, 1.0)


@given(st.integers(1, 20_000), st.integers(1, 40))
def test_ticks_are_ordered_whole_and_limited(count: int, most: int) -> None:
    numbers = ticks(count, most)
    assert numbers[0] == 1
    assert numbers == sorted(set(numbers))
    assert numbers[-1] <= count
    assert len(numbers) <= most + 1
    assert ticks(3, 10) == [1, 2, 3]
    assert ticks(1000, 10) == [1, *range(100, 1001, 100)]


@pytest.mark.parametrize(
    ("values", "width", "drawn"),
    [
        ([1.0, None, None, 2.0, 3.0], 10, [[(0, 1)], [(3, 2), (4, 3)]]),
        ([None, 1.0], 10, [[(1, 1)]]),
        ([0.0, 1.0, 9.0, -5.0, 2.0, 2.0, 2.0, 2.0], 2, [[(2, 9), (3, -5), (4, 2)]]),
        ([None, 5.0, 1.0, 4.0, 8.0, None, 7.0, 7.0], 2, [[(2, 1), (4, 8)], [(6, 7)]]),
    ],
)
def test_lines_have_gaps_and_minimum_and_maximum_of_each_pixel(
    values: list[float | None], width: int, drawn: list[list[tuple[int, int]]]
) -> None:
    found = [[(point.x(), point.y()) for point in line.toList()] for line in lines(values, QPointF, width)]
    assert found == drawn
