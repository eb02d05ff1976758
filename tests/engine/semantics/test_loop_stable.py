"""The `stable_output` condition: a loop that stops when its result no longer changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.semantics.documents import around, formula, llm
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import by_node


async def _stable(replies: list[str], **config: Any) -> Played:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", exit_condition="stable_output", **config)
    return await play(workflow, by_node(draft=replies))


def _ended(played: Played, iterations: int, reason: str = "stable_output") -> None:
    assert (played.loop.iterations_run, played.loop.exit_reason) == (iterations, reason)
    assert played.loop.converged is (reason == "stable_output")


async def test_a_result_that_is_stable_immediately_stops_after_the_second_iteration() -> None:
    played = await _stable(["same"])

    _ended(played, 2)
    assert played.out == "same"
    assert [record.similarity for record in played.loop.iterations] == [None, 1.0]


async def test_a_single_iteration_is_never_stable() -> None:
    _ended(await _stable(["same"], max_iterations=1), 1, "max_iterations")


async def test_a_result_that_is_never_stable_ends_at_max_iterations() -> None:
    _ended(await _stable(["aaaa", "bbbb", "cccc", "dddd"], max_iterations=4), 4, "max_iterations")


async def test_a_threshold_of_one_means_identical() -> None:
    long = "x" * 9999
    played = await _stable([long + "a", long + "b", long + "b"], stability_threshold=1.0)

    _ended(played, 3)
    assert played.loop.iterations[1].similarity == pytest.approx(0.9999)


async def test_a_threshold_of_zero_is_met_by_any_second_result() -> None:
    played = await _stable(["aaaa", "bbbb"], stability_threshold=0.0)

    _ended(played, 2)
    assert played.loop.iterations[1].similarity == 0.0


async def _of_values(values: list[Any], **config: Any) -> Played:
    body = formula("draft", f"{json.dumps(values)}[loop.index]")
    return await play(around(body, edges="loop -> draft -> exit", max_iterations=len(values), **config))


EMPTY: list[Any] = [None, "", " \n\t", [], {}]


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
@pytest.mark.parametrize(
    "config",
    [
        {"exit_condition": "stable_output", "stability_threshold": 1.0},
        {"exit_condition": "stable_output", "stability_threshold": 0.0},
        {"exit_conditions": [{"condition": "stable_output"}]},
        {"exit_conditions": [{"condition": "oscillation"}]},
        {"exit_conditions": [{"condition": "plateau"}], "score": "1"},
    ],
    ids=lambda config: str(config.get("exit_conditions", config)),
)
async def test_empty_results_never_end_a_loop_as_stable(empty: Any, config: dict[str, Any]) -> None:
    played = await _of_values([empty] * 4, **config)

    _ended(played, 4, "max_iterations")


@pytest.mark.parametrize("value", [0, False, "0", [0], {"a": None}, [""]], ids=repr)
async def test_a_value_that_only_looks_empty_can_be_stable(value: Any) -> None:
    played = await _of_values([value] * 4, exit_condition="stable_output")

    _ended(played, 2)


async def test_a_loop_can_be_stable_after_empty_results() -> None:
    played = await _of_values(["a", "", "", "b", "b"], exit_condition="stable_output")

    _ended(played, 5)
    assert [record.similarity for record in played.loop.iterations] == [None, 0.0, 1.0, 0.0, 1.0]


async def test_an_oscillation_is_detected_across_an_empty_result() -> None:
    played = await _of_values(["a", "", "a", "b"], exit_conditions=[{"condition": "oscillation"}])

    assert (played.loop.iterations_run, played.loop.exit_reason) == (3, "oscillation")


async def test_an_empty_result_is_not_similar_to_text() -> None:
    played = await _of_values(["", "text", "text"], exit_condition="stable_output")

    assert [record.similarity for record in played.loop.iterations] == [None, 0.0, 1.0]


async def test_similarity_is_one_minus_edit_distance_divided_by_the_longer_length() -> None:
    played = await _stable(["kitten", "sitting", "sitting"])

    assert played.loop.iterations[1].similarity == pytest.approx(1 - 3 / 7)


async def test_a_substitution_counts_once_and_not_as_deletion_and_insertion() -> None:
    played = await _stable(["a" * 100, "a" * 100 + "b" * 8, "x"], stability_threshold=0.95, max_iterations=3)

    assert played.loop.iterations[1].similarity == pytest.approx(1 - 8 / 108)
    _ended(played, 3, "max_iterations")


async def test_meeting_the_threshold_exactly_is_enough() -> None:
    played = await _stable(["abcdefghij", "abcdefghiX"], stability_threshold=0.9, max_iterations=2)

    _ended(played, 2)
    assert played.loop.iterations[1].similarity == pytest.approx(0.9)


async def test_patience_requires_that_many_similar_results_in_a_row() -> None:
    played = await _stable(["a", "a", "b", "b", "b", "b"], stability_patience=2, max_iterations=9)

    _ended(played, 5)


async def test_patience_restarts_after_a_change() -> None:
    played = await _stable(["a", "a", "a", "b", "b", "c"], stability_patience=3, max_iterations=6)

    _ended(played, 6, "max_iterations")


async def test_texts_over_ten_thousand_characters_that_differ_only_at_the_end_are_compared_exactly() -> None:
    long = "x" * 20_000
    played = await _stable([long + "a", long + "b", long + "c"], stability_threshold=1.0, max_iterations=3)

    _ended(played, 3, "max_iterations")
    assert played.loop.iterations[1].similarity == pytest.approx(1 - 1 / 20_001)


async def test_a_long_appended_tail_is_never_stable() -> None:
    start = "y" * 12_000
    played = await _stable([start, start + "z" * 12_000], stability_threshold=0.6, max_iterations=2)

    _ended(played, 2, "max_iterations")
    assert played.loop.iterations[1].similarity == pytest.approx(0.5)


@pytest.mark.parametrize("first", ["", "# "], ids=["equal at the start", "different at the start"])
async def test_a_long_result_that_is_mostly_new_is_not_stable(first: str) -> None:
    old, new = "".join(map(str, range(9_000)))[:25_000], "".join(map(str, range(50_000, 54_000)))[:15_000]
    played = await _stable([old, first + old[: 10_000 - len(first)] + new], stability_threshold=0.9, max_iterations=2)

    _ended(played, 2, "max_iterations")
    assert played.loop.iterations[1].similarity < 0.8


async def test_tails_that_differ_in_length_beyond_the_limit_count_as_distance() -> None:
    first, second = "a" + "m" * 10_000 + "p", "b" + "m" * 10_000 + "q" * 20_000
    played = await _stable([first, second], stability_threshold=0.6, max_iterations=2)

    _ended(played, 2, "max_iterations")


async def test_key_order_changes_nothing() -> None:
    workflow = around(
        llm("draft", reply_schema={"type": "object"}),
        edges="loop -> draft -> exit",
        exit_condition="stable_output",
        stability_threshold=1.0,
    )

    played = await play(workflow, by_node(draft=['{"a": 1, "b": [2]}', '{"b": [2], "a": 1}']))

    _ended(played, 2)


async def test_json_is_compared_as_compact_text() -> None:
    workflow = around(
        llm("draft", reply_schema={"type": "object"}),
        edges="loop -> draft -> exit",
        exit_condition="stable_output",
        max_iterations=2,
    )

    played = await play(workflow, by_node(draft=['{"a": 1}', '{"a": 2}']))

    assert played.loop.iterations[1].similarity == pytest.approx(1 - 1 / 7)


async def test_similarity_is_not_computed_unless_needed() -> None:
    played = await play(around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2), "same")

    assert [record.similarity for record in played.loop.iterations] == [None, None]


@pytest.mark.parametrize("field", ["until", "score"])
async def test_similarity_is_recorded_wherever_an_expression_names_it(field: str) -> None:
    texts = {"until": "similarity == 1.0", "score": "similarity == null ? 0.0 : similarity"}
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=3, **{field: texts[field]})

    played = await play(workflow, by_node(draft=["a", "b", "b"]))

    assert [record.similarity for record in played.loop.iterations] == [None, 0.0, 1.0]


async def test_similarity_is_recorded_for_a_judge_whose_criteria_name_it() -> None:
    judge = {"criteria": "Alike: {{similarity}}", "retries": 0}
    workflow = around(
        llm("draft"), edges="loop -> draft -> exit", max_iterations=3, exit_condition="judge", judge=judge
    )
    verdict = '{"reason": "because", "done": false, "score": 1}'

    played = await play(workflow, by_node(draft=["a", "b", "b"], judge=[verdict] * 3))

    assert [record.similarity for record in played.loop.iterations] == [None, 0.0, 1.0]
    sent = [call.request.messages[0].text for call in played.model.calls if call.node == "judge"]
    assert ["Alike: 0.0" in text for text in sent] == [False, True, False]
    assert "Alike: 1.0" in sent[2]


async def test_a_stable_loop_returns_the_later_of_the_two_results() -> None:
    played = await _stable(["abcdefghij" * 10, "abcdefghij" * 9 + "abcdefghiX"])

    _ended(played, 2)
    assert str(played.out).endswith("X")
    assert played.loop.returned == 1
