"""Failing items, and timeouts and budgets of iterators."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.events import LoopIterationCompleted, LoopIterationStarted, NodeRetrying
from engine.models.protocol import ModelError, ModelErrorKind
from engine.values import Value
from tests.engine.semantics.documents import for_each, llm
from tests.engine.semantics.kit import Played, begin, finish, play
from tests.engine.semantics.models import DOLLAR_A_TOKEN_OUT, TEN_OUT, Call, FunctionModel, Gate, Said
from tests.engine.semantics.virtual_time import virtually

REFUSED = ModelError(ModelErrorKind.AUTHENTICATION, "The key is wrong.", "Check it.")
BUSY = ModelError(ModelErrorKind.SERVER, "The server is overloaded.", "Wait.")


def asked(**config: Any) -> Any:
    return for_each(llm("ask"), edges="each -> ask -> gather", **config)


def bad_fails(call: Call) -> Said:
    return REFUSED if call.prompt == "bad" else call.prompt.upper()


def items(*values: Value) -> dict[str, Value]:
    return {"items": list(values)}


async def one_of_two_hundred(call: Call) -> Said:
    """Item 50 fails after one second; all others take two."""
    await asyncio.sleep(1 if call.indices == (50,) else 2)
    return REFUSED if call.indices == (50,) else "fine"


def two_hundred(on_item_error: str, ends: str = "completed") -> Played:
    workflow = asked(on_item_error=on_item_error, max_concurrency=200)
    workflow = workflow.model_copy(update={"settings": {"max_concurrency": 200}})
    return virtually(play(workflow, one_of_two_hundred, {"items": list(range(200))}, ends=ends))


def test_on_item_error_fail_stops_the_other_items() -> None:
    played = two_hundred("fail", "failed")

    assert played.result.error == "“LLM” failed: The key is wrong."
    assert played.result.node == "each[50].ask"
    assert played.of(LoopIterationCompleted) == []
    assert played.events[-1].path == ""
    assert played.result.loops["each"].exit_reason == "error"


def test_on_item_error_skip_leaves_the_item_out() -> None:
    played = two_hundred("skip")

    assert played.out == ["fine"] * 199
    assert played.output_of("each", "count") == 200
    assert played.result.warnings == ("each: 1 of 200 items failed.",)


def test_on_item_error_collect_keeps_the_items_place() -> None:
    played = two_hundred("collect")

    assert played.out == ["fine"] * 50 + [None] + ["fine"] * 149
    failure = {"index": 50, "item": 50, "error": "“LLM” failed: The key is wrong."}
    assert played.output_of("each", "failures") == [failure]
    assert played.result.warnings == ("each: 1 of 200 items failed.",)
    record = played.result.loops["each"].iterations[50]
    assert (record.branch, record.reason) == ("failed", "“LLM” failed: The key is wrong.")


async def test_of_several_failing_items_the_first_is_reported() -> None:
    played = await play(asked(), bad_fails, items("bad", "bad"), ends="failed")

    assert played.result.node == "each[0].ask"


async def test_on_error_continue_outputs_the_given_value() -> None:
    one = await play(asked(on_error="continue", error_value="none"), bad_fails, items("x", "bad"))
    several = await play(asked(on_error="continue", error_value=["p", "q"]), bad_fails, items("bad"))

    assert (one.out, several.out) == (["none"], ["p", "q"])


async def test_a_failed_iterator_is_retried_from_its_first_item() -> None:
    seen: list[str] = []

    def second_time(call: Call) -> Said:
        seen.append(call.path)
        return BUSY if seen.count("each[1].ask") == 1 and call.path == "each[1].ask" else call.prompt

    workflow = asked(retries=1, retry_delay_s=0, max_concurrency=1)

    played = await play(workflow, second_time, items("x", "y"))

    assert played.out == ["x", "y"]
    assert seen == ["each[0].ask", "each[1].ask", "each[0].ask", "each[1].ask"]
    assert [event.index for event in played.of(LoopIterationStarted)] == [0, 1, 0, 1]
    assert [event.path for event in played.of(NodeRetrying)] == ["each"]


def test_the_timeout_covers_all_items_together() -> None:
    async def slow(call: Call) -> str:
        await asyncio.sleep(4)
        return call.prompt

    workflow = asked(timeout_s=10.0, max_concurrency=1)

    played = virtually(play(workflow, slow, items("x", "y", "z"), ends="failed"))

    assert "timeout of 10 s" in played.result.error
    assert played.result.loops["each"].exit_reason == "timeout"
    assert played.result.loops["each"].iterations_run == 2


@pytest.mark.parametrize("on_item_error", ["fail", "skip", "collect"])
async def test_a_used_up_budget_ends_the_run_whatever_on_item_error_says(on_item_error: str) -> None:
    workflow = for_each(
        llm("ask", max_tokens=10), edges="each -> ask -> gather", on_item_error=on_item_error, max_concurrency=1
    ).model_copy(update={"settings": {"budget_usd": 25.0}})
    model = FunctionModel("ten", price=DOLLAR_A_TOKEN_OUT, usage=TEN_OUT)

    played = await play(workflow, model, items(*"abcd"), ends="failed")

    assert len(model.calls) == 2
    assert played.result.loops["each"].exit_reason == "budget"
    assert played.result.cost_usd == 20.0


async def test_cancel_stops_every_item_at_once() -> None:
    gate = Gate("each[1].ask")
    run, models = begin(asked(), gate, items("x", "y"))
    await gate.reached.wait()

    run.cancel()

    played = await finish(run, models)
    assert played.result.status == "cancelled"
    assert gate.cancelled
    assert played.result.loops["each"].exit_reason == "cancelled"


async def test_a_paused_run_starts_no_further_item() -> None:
    gate = Gate("each[0].ask")
    run, models = begin(asked(max_concurrency=1), gate, items("x", "y"))
    await gate.reached.wait()
    run.pause()
    gate.open.set()
    for _ in range(100):
        await asyncio.sleep(0)
    assert models.model.paths == ["each[0].ask"]

    run.resume()

    played = await finish(run, models)
    assert played.out == ["each[0].ask", "each[1].ask"]
