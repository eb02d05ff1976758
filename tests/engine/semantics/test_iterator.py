"""The `iterator` node: its body runs for each item, several at a time; results keep the order of the items."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.events import LoopCompleted, LoopIterationCompleted, LoopIterationStarted, NodeStarted
from engine.values import Value
from tests.engine.semantics.documents import (
    each,
    entry,
    flow,
    for_each,
    gather,
    llm,
    off,
    result,
    rules,
    transform,
)
from tests.engine.semantics.kit import Played, play
from tests.engine.semantics.models import Call
from tests.engine.semantics.virtual_time import virtually

STEP = (transform("a", "{{input}}!"),)
THROUGH = "each -> a -> gather"
ASKED = (llm("ask", "{{input}}"),)
ASKING = "each -> ask -> gather"


def items(*values: Value) -> dict[str, Value]:
    return {"items": list(values)}


async def slow(call: Call) -> str:
    """A reply that takes as many seconds as the item says."""
    await asyncio.sleep(float(call.prompt))
    return call.prompt


def most_at_once(played: Played) -> int:
    """The maximum number of items that ran at the same time."""
    now = most = 0
    for event in played.events:
        now += isinstance(event, LoopIterationStarted) - isinstance(event, LoopIterationCompleted)
        most = max(most, now)
    return most


async def test_the_body_runs_for_each_item_and_results_keep_the_item_order() -> None:
    played = await play(for_each(*STEP, edges=THROUGH), inputs=items("x", "y", "z"))

    assert played.out == ["x!", "y!", "z!"]
    assert played.output_of("each[2].a") == "z!"
    assert played.output_of("each", "count") == 3
    assert played.output_of("each", "failures") == []


def test_results_keep_the_item_order_whichever_ends_first() -> None:
    played = virtually(play(for_each(*ASKED, edges=ASKING), slow, items("3", "1", "2")))

    assert [event.index for event in played.of(LoopIterationCompleted)] == [1, 2, 0]
    assert [event.index for event in played.of(LoopIterationStarted)] == [0, 1, 2]
    assert played.out == ["3", "1", "2"]
    assert [record.index for record in played.result.loops["each"].iterations] == [0, 1, 2]


async def test_item_and_index_are_ports_and_template_names() -> None:
    body = (transform("a", "{{index}}={{item.name}} by {{input}}"),)

    played = await play(for_each(*body, edges="each.index -> a -> gather"), inputs=items({"name": "p"}, {"name": "q"}))

    assert played.out == ["0=p by 0", "1=q by 1"]


@pytest.mark.parametrize(("config", "most"), [({"max_concurrency": 1}, 1), ({"max_concurrency": 2}, 2), ({}, 4)])
def test_max_concurrency_limits_the_running_items(config: dict[str, Any], most: int) -> None:
    played = virtually(play(for_each(*ASKED, edges=ASKING, **config), slow, items(*"11111111")))

    assert most_at_once(played) == most
    assert max(call.time for call in played.model.calls) == 8 / most - 1


def test_the_concurrency_of_the_workflow_applies_besides_that_of_the_iterator() -> None:
    workflow = for_each(*ASKED, edges=ASKING, max_concurrency=8)
    workflow = workflow.model_copy(update={"settings": {"max_concurrency": 2}})

    played = virtually(play(workflow, slow, items(*"1111")))

    assert [call.time for call in played.model.calls] == [0, 0, 1, 1]


def test_two_hundred_items_eight_at_a_time_take_twenty_five_rounds() -> None:
    workflow = for_each(*ASKED, edges=ASKING, max_concurrency=8)
    workflow = workflow.model_copy(update={"settings": {"max_concurrency": 8}})

    played = virtually(play(workflow, slow, {"items": ["0.02"] * 200}))

    assert max(call.time for call in played.model.calls) == pytest.approx(24 * 0.02)
    assert played.out == ["0.02"] * 200


async def test_items_can_be_listed_in_the_settings() -> None:
    workflow = flow(
        each(source="list", items=["x", {"k": 1}]), *STEP, gather(), result(), edges=f"{THROUGH}\ngather -> out"
    )

    assert (await play(workflow)).out == ["x!", '{"k":1}!']


async def test_items_can_come_from_an_expression() -> None:
    workflow = for_each(*STEP, edges=THROUGH, source="expression", expression="items.found.filter(i, i > 1)")

    assert (await play(workflow, inputs={"items": {"found": [1, 2, 3]}})).out == ["2!", "3!"]


async def test_a_text_that_contains_a_json_list_is_a_list() -> None:
    assert (await play(for_each(*STEP, edges=THROUGH), inputs={"items": '["x", "y"]'})).out == ["x!", "y!"]


@pytest.mark.parametrize(
    ("config", "given", "says"),
    [
        ({}, {"k": 1}, "is not a list"),
        ({}, None, "not a list: null"),
        ({"source": "expression", "expression": "size(items)"}, ["x"], "not a list: 1"),
        ({"source": "expression", "expression": "items.gone"}, {"k": 1}, "`items` has no `gone`"),
        ({"on_empty": "fail"}, [], "There are no items."),
        ({}, [0] * 10_001, "There are 10,001 items."),
    ],
)
async def test_items_that_are_not_a_list_fail_with_a_sentence(config: dict[str, Any], given: Value, says: str) -> None:
    workflow = for_each(*STEP, edges=THROUGH, **config)

    played = await play(workflow, inputs={"items": given}, ends="failed")

    assert says in played.result.error
    assert played.result.node == "each"
    assert played.result.loops["each"].exit_reason == "error"


async def test_no_items_produce_an_empty_result() -> None:
    played = await play(for_each(*STEP, edges=THROUGH), inputs=items())

    assert played.out == []
    assert played.result.loops["each"].exit_reason == "all_items"
    assert played.of(LoopIterationStarted) == []


async def test_a_false_condition_passes_the_items_through() -> None:
    workflow = for_each(*STEP, edges=THROUGH, condition="size(items) > 2")

    played = await play(workflow, inputs=items("x", "y"))

    assert played.out == ["x", "y"]
    assert played.output_of("each", "count") == 0
    assert played.result.loops["each"].exit_reason == "condition"
    assert (await play(workflow, inputs=items("x", "y", "z"))).out == ["x!", "y!", "z!"]


async def test_a_disabled_iterator_passes_the_items_through() -> None:
    workflow = flow(
        entry("items", type="json"), off(each()), *STEP, gather(), result(), edges=f"items -> {THROUGH}\ngather -> out"
    )

    played = await play(workflow, inputs=items("x", "y"))

    assert played.out == ["x", "y"]
    assert played.result.loops["each"].exit_reason == "disabled"


async def test_an_item_without_a_result_is_left_out() -> None:
    body = (rules("pick", {"keep": "input != 'y'", "drop": "else"}), transform("a", "{{input}}!"))
    workflow = for_each(*body, edges="each -> pick\npick.keep -> a -> gather")

    played = await play(workflow, inputs=items("x", "y", "z"))

    assert played.out == ["x!", "z!"]
    (dropped,) = [record for record in played.result.loops["each"].iterations if record.index == 1]
    assert (dropped.branch, dropped.result) == ("no_result", None)


async def test_values_from_outside_are_the_same_for_every_item() -> None:
    body = (transform("a", "{{input}} {{tone}}"),)
    parts = (entry("items", type="json"), entry("tone"), each(), *body, gather(), result())
    workflow = flow(*parts, edges=f"items -> {THROUGH}\ntone -> a.tone\ngather -> out")

    played = await play(workflow, inputs={**items("x", "y"), "tone": "softly"})

    assert played.out == ["x softly", "y softly"]


async def test_each_item_is_reported_as_an_iteration() -> None:
    played = await play(for_each(*ASKED, edges=ASKING), "yes", items("x", "y"))

    first, second = played.result.loops["each"].iterations
    assert (first.input, first.result, first.feedback, first.branch) == ("x", "yes", None, None)
    assert (second.index, second.usage.total_tokens) == (1, 15)
    (started, _) = played.of(LoopIterationStarted)
    assert (started.total, started.input_preview) == (2, "x")
    (end,) = played.of(LoopCompleted)
    assert (end.iterations_run, end.exit_reason, end.converged, end.returned) == (2, "all_items", True, None)
    assert played.output_of("each", "iterations")[1]["result"] == "yes"  # type: ignore[index, call-overload]


async def test_an_iterator_without_a_live_input_is_skipped_with_the_nodes_after_it() -> None:
    pick = rules("pick", {"left": "false", "right": "else"})
    join = transform("join", "{{input}}")
    parts = (entry("items", type="json"), pick, each(), *STEP, gather(mode="join"), join, result())
    workflow = flow(*parts, edges="items -> pick\npick.left -> each -> a -> gather -> join\npick.right -> join -> out")

    played = await play(workflow, inputs=items("x"))

    assert played.out == '["x"]'
    assert not [event for event in played.of(NodeStarted) if event.path in {"each", "gather"}]
