"""The `aggregator` node: one value from the results of all items."""

from __future__ import annotations

from typing import Any

import pytest

from engine.values import Value
from tests.engine.semantics.documents import each, entry, flow, for_each, formula, gather, off, result, transform
from tests.engine.semantics.kit import play

SAME = (formula("a", "input"),)
EDGES = "each -> a -> gather"
_VOTES: list[Value] = ["no", "yes", "yes ", "no", " yes"]


@pytest.mark.parametrize(
    ("gathered", "given", "out"),
    [
        ({}, ["x", 1, {"k": 2}], ["x", 1, {"k": 2}]),
        ({"mode": "join"}, ["x", "y"], "x\n\ny"),
        ({"mode": "join", "separator": ", "}, ["x", 1, {"k": 2}], 'x, 1, {"k":2}'),
        ({"mode": "join"}, [], ""),
        ({"mode": "first"}, ["x", "y"], "x"),
        ({"mode": "first"}, [None, "y"], "y"),
        ({"mode": "first"}, [], None),
        ({"mode": "vote"}, _VOTES, "yes"),
        ({"mode": "vote"}, ["b", "a"], "b"),
        ({"mode": "vote"}, [{"k": 1, "j": 2}, 1, {"j": 2, "k": 1}], {"k": 1, "j": 2}),
        ({"mode": "vote"}, [], None),
        ({"mode": "expression", "expression": "results.filter(r, r > 1)"}, [1, 2, 3], [2, 3]),
        ({"mode": "expression", "expression": "size(items) + size(failures)"}, [1, 2, 3], 3),
    ],
)
async def test_results_are_aggregated(gathered: dict[str, Any], given: list[Value], out: Value) -> None:
    assert (await play(for_each(*SAME, edges=EDGES, gathered=gathered), inputs={"items": given})).out == out


async def test_an_expression_sees_items_results_and_failures_side_by_side() -> None:
    body = (formula("a", "10 / input"),)
    gathered = {"mode": "expression", "expression": "[items, results, failures[0].index]"}
    workflow = for_each(*body, edges=EDGES, gathered=gathered, on_item_error="collect")

    assert (await play(workflow, inputs={"items": [5, 0, 2]})).out == [[5, 0, 2], [2, None, 5], 1]


async def test_an_expression_error_fails_the_aggregator() -> None:
    gathered = {"mode": "expression", "expression": "results[9]"}

    failed = await play(for_each(*SAME, edges=EDGES, gathered=gathered), inputs={"items": [1]}, ends="failed")
    passed = await play(
        for_each(*SAME, edges=EDGES, gathered={**gathered, "on_error": "continue", "error_value": "none"}),
        inputs={"items": [1]},
    )

    assert failed.result.node == "gather"
    assert passed.out == "none"


async def test_the_output_can_be_named_in_the_state() -> None:
    parts = (entry("items", type="json"), each(), *SAME, gather(mode="join", output_key="all"), result())
    after = transform("after", "{{input}} = {{state.all}}")
    workflow = flow(*parts, after, edges=f"items -> {EDGES} -> after -> out")

    assert (await play(workflow, inputs={"items": ["x", "y"]})).out == "x\n\ny = x\n\ny"


async def test_a_disabled_aggregator_outputs_the_list() -> None:
    parts = (entry("items", type="json"), each(), *SAME, off(gather(mode="join")), result())

    assert (await play(flow(*parts, edges=f"items -> {EDGES} -> out"), inputs={"items": [1, 2]})).out == [1, 2]
