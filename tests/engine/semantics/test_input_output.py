"""Inputs and outputs of a workflow, and conversion of values between ports."""

from __future__ import annotations

from typing import Any

import pytest

from engine import EngineError, RunError, run, start
from tests.engine.semantics.documents import entry, flow, formula, result, rules, transform
from tests.engine.semantics.kit import begin, finish, options, play
from tests.engine.semantics.models import FakeModels, FunctionModel


async def test_a_value_passes_from_input_to_output_unchanged() -> None:
    played = await play(flow(entry(), result(), edges="text -> out"), inputs={"text": "as {{it}} is"})

    assert played.result.outputs == {"out": "as {{it}} is"}


async def test_inputs_and_outputs_are_known_by_name_or_else_by_id() -> None:
    workflow = flow(
        entry("a", name="topic"), entry("b"), result("x", name="essay"), result("y"), edges="a -> x\nb -> y"
    )

    played = await play(workflow, inputs={"topic": "bees", "b": "wasps"})

    assert played.result.outputs == {"essay": "bees", "y": "wasps"}


async def test_a_missing_input_takes_its_default() -> None:
    workflow = flow(
        entry("a", default="usual"),
        entry("b", type="number", default=3),
        result("x"),
        result("y"),
        edges="a -> x\nb -> y",
    )

    assert (await play(workflow, inputs={})).result.outputs == {"x": "usual", "y": 3}
    assert (await play(workflow, inputs={"a": "given"})).result.outputs == {"x": "given", "y": 3}


async def test_a_falsy_default_is_a_default() -> None:
    workflow = flow(
        entry("a", default=""), entry("b", type="number", default=0), result("x"), result("y"), edges="a -> x\nb -> y"
    )

    assert (await play(workflow, inputs={})).result.outputs == {"x": "", "y": 0}


@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ({}, "text"),
        ({"text": "x", "txt": "y"}, "txt"),
        ({"Text": "x"}, "text"),
    ],
)
async def test_missing_and_unknown_inputs_are_refused_by_name(inputs: dict[str, Any], named: str) -> None:
    workflow = flow(entry(), result(), edges="text -> out")

    with pytest.raises(EngineError) as caught:
        start(workflow, inputs, options(FunctionModel("")))

    assert f'"{named}"' in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("number", "many"),
        ("number", [1]),
        ("number", True),
        ("boolean", 1),
        ("boolean", "maybe"),
        ("list", {"a": 1}),
        ("list", "not a list"),
        ("json", "{broken"),
        ("number", float("nan")),
        ("any", {"a": object()}),
    ],
)
async def test_an_input_of_the_wrong_type_is_refused_before_the_run(kind: str, given: Any) -> None:
    workflow = flow(entry("it", type=kind), result(), edges="it -> out")

    with pytest.raises(EngineError) as caught:
        start(workflow, {"it": given}, options(FunctionModel("")))

    assert '"it"' in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "given", "arrives"),
    [
        ("number", "12", 12),
        ("number", 1.5, 1.5),
        ("boolean", "true", True),
        ("boolean", False, False),
        ("list", "[1, 2]", [1, 2]),
        ("list", [], []),
        ("json", '{"a": 1}', {"a": 1}),
        ("json", {"a": [None]}, {"a": [None]}),
        ("text", {"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ("text", "\ud800 alone", "\ud800 alone"),
        ("any", "12", "12"),
    ],
)
async def test_an_input_is_converted_to_its_type(kind: str, given: Any, arrives: Any) -> None:
    workflow = flow(entry("it", type=kind), result(), edges="it -> out")

    assert (await play(workflow, inputs={"it": given})).out == arrives


async def test_text_is_parsed_at_a_json_port_and_json_serialized_at_a_text_port() -> None:
    workflow = flow(
        entry("it", type="json"),
        transform("told", "{{input}}"),
        formula("read", "input"),
        result(),
        edges="it -> told -> read -> out",
    )

    assert (await play(workflow, inputs={"it": {"b": [1], "a": "é"}})).out == '{"a":"é","b":[1]}'


async def test_a_single_live_value_at_a_port_with_several_edges_is_unchanged() -> None:
    workflow = flow(
        entry(),
        rules("pick", {"left": "input == 'seed'", "right": "else"}),
        formula("a", "[input]"),
        formula("b", "[input, input]"),
        result(),
        edges="text -> pick\npick.left -> a -> out\npick.right -> b -> out",
    )

    assert (await play(workflow)).out == ["seed"]


async def test_several_live_texts_at_a_port_are_joined_in_edge_order() -> None:
    parts = [entry(), transform("a", "first"), transform("b", "second"), result()]

    assert (await play(flow(*parts, edges="text -> out\nb -> out\na -> out"))).out == "seed\n\nsecond\n\nfirst"


async def test_several_live_values_that_are_not_all_text_become_a_list_in_edge_order() -> None:
    parts = [entry(), formula("a", "1"), formula("b", "{'k': 2}"), result()]

    assert (await play(flow(*parts, edges="b -> out\ntext -> out\na -> out"))).out == [{"k": 2}, "seed", 1]


async def test_an_output_without_a_live_value_is_no_result() -> None:
    workflow = flow(
        entry(),
        rules("pick", {"left": "true", "right": "else"}),
        result("x"),
        result("y"),
        edges="text -> pick\npick.left -> x\npick.right -> y",
    )

    assert (await play(workflow)).result.outputs == {"x": "seed"}


async def test_a_failed_run_raises_with_its_partial_results() -> None:
    workflow = flow(
        entry(), formula("bad", "input.nothing"), result(), result("early"), edges="text -> bad -> out\ntext -> early"
    )

    with pytest.raises(RunError) as caught:
        await run(workflow, {"text": "seed"}, options(FunctionModel("")))

    assert caught.value.result.status == "failed"
    assert caught.value.result.node == "bad"
    assert caught.value.result.outputs == {"early": "seed"}
    assert caught.value.result.error


async def test_a_model_catalogue_passed_in_stays_open() -> None:
    models = FakeModels(FunctionModel("x"))

    await finish(*begin(flow(entry(), result(), edges="text -> out"), models))

    assert models.closed == 0
