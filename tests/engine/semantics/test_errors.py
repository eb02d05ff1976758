"""Failing nodes: retries, timeouts, and 'On error'. Waits are in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from engine.events import NodeCompleted, NodeFailed, NodeRetrying, NodeSkipped
from engine.models.protocol import ModelError, ModelErrorKind, OnText, Price, Reply, Request, Usage
from tests.engine.semantics.documents import Part, around, entry, flow, formula, judge, llm, result, transform
from tests.engine.semantics.kit import play
from tests.engine.semantics.models import Call, FunctionModel, by_node, verdict
from tests.engine.semantics.virtual_time import virtually

_OVERLOADED = ModelError(ModelErrorKind.SERVER, "The server is overloaded.", "Wait a little.")
_WRONG_KEY = ModelError(ModelErrorKind.AUTHENTICATION, "The key is wrong.", "Check the key.")


def _asks(node: Part) -> Any:
    return flow(entry(), node, result(), edges=f"text -> {node.id} -> out")


async def _forever(_call: Call) -> str:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_transient_failure_is_retried() -> None:
    played = await play(
        _asks(llm("draft", retries=2, retry_delay_s=0)), by_node(draft=[_OVERLOADED, _OVERLOADED, "at last"])
    )

    assert played.out == "at last"
    retries = played.of(NodeRetrying, "draft")
    assert len(retries) == 2
    assert retries[1].attempt == retries[0].attempt + 1
    assert {event.delay_s for event in retries} == {0}
    assert "overloaded" in retries[0].error


async def test_a_node_that_fails_more_often_than_its_retries_fails_the_run() -> None:
    played = await play(_asks(llm("draft", retries=2, retry_delay_s=0)), _OVERLOADED, ends="failed")

    assert len(played.model.calls) == 3
    assert played.result.node == "draft"
    assert "overloaded" in played.result.error
    assert played.result.remedy == "Wait a little."
    (failed,) = played.of(NodeFailed, "draft")
    assert failed.remedy == "Wait a little."
    assert failed.error in played.result.error


async def test_a_permanent_failure_is_not_retried() -> None:
    played = await play(_asks(llm("draft", retries=5, retry_delay_s=0)), _WRONG_KEY, ends="failed")

    assert len(played.model.calls) == 1
    assert played.of(NodeRetrying) == []


def test_the_retry_delay_doubles_with_jitter() -> None:
    played = virtually(
        play(_asks(llm("draft", retries=4, retry_delay_s=2.0)), by_node(draft=[_OVERLOADED] * 4 + ["x"]))
    )

    times = [call.time for call in played.model.calls]
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    delays = [event.delay_s for event in played.of(NodeRetrying)]
    assert waits == pytest.approx(delays)
    for number, wait in enumerate(waits):
        assert 2.0 * 2**number * 0.5 <= wait <= 2.0 * 2**number * 1.5


@pytest.mark.parametrize("retry_delay_s", [0.0, 1.0])
def test_the_retry_delay_of_a_provider_is_respected(retry_delay_s: float) -> None:
    limited = ModelError(ModelErrorKind.RATE_LIMIT, "Too many calls.", retry_after=40.0)

    played = virtually(play(_asks(llm("draft", retries=1, retry_delay_s=retry_delay_s)), by_node(draft=[limited, "x"])))

    first, second = played.model.calls
    assert 40.0 <= second.time - first.time < 45.0
    (event,) = played.of(NodeRetrying)
    assert event.delay_s == pytest.approx(second.time - first.time)


def test_a_retry_delay_longer_than_the_providers_is_used() -> None:
    limited = ModelError(ModelErrorKind.RATE_LIMIT, "Too many calls.", retry_after=1.0)

    played = virtually(play(_asks(llm("draft", retries=1, retry_delay_s=100.0)), by_node(draft=[limited, "x"])))

    assert played.of(NodeRetrying)[0].delay_s >= 50.0


def test_an_attempt_that_exceeds_the_timeout_fails_the_node() -> None:
    played = virtually(play(_asks(llm("draft", timeout_s=30.0)), _forever, ends="failed"))

    assert played.result.node == "draft"
    assert "30" in played.result.error
    assert played.result.remedy


def test_every_attempt_has_the_whole_timeout() -> None:
    async def answer(call: Call) -> str:
        if len(calls := times) < 2:
            calls.append(call.time)
            await asyncio.Event().wait()
        await asyncio.sleep(29.0)
        return "in time"

    times: list[float] = []

    played = virtually(play(_asks(llm("draft", timeout_s=30.0, retries=2, retry_delay_s=0)), answer))

    assert played.out == "in time"
    assert [call.time for call in played.model.calls] == pytest.approx([0.0, 30.0, 60.0])


def test_a_timed_out_call_is_cancelled() -> None:
    cancelled: list[str] = []

    async def answer(call: Call) -> str:
        try:
            return await _forever(call)
        except asyncio.CancelledError:
            cancelled.append(call.path)
            raise

    virtually(play(_asks(llm("draft", timeout_s=1.0)), answer, ends="failed"))

    assert cancelled == ["draft"]


async def test_on_error_continue_outputs_the_given_value() -> None:
    played = await play(_asks(llm("draft", on_error="continue", error_value="nothing came")), _WRONG_KEY)

    assert played.out == "nothing came"
    (event,) = played.of(NodeCompleted, "draft")
    assert "key is wrong" in event.error
    assert played.of(NodeFailed) == []


async def test_on_error_continue_applies_after_the_retries() -> None:
    node = llm("draft", on_error="continue", error_value="nothing came", retries=1, retry_delay_s=0)

    assert (await play(_asks(node), by_node(draft=[_OVERLOADED, "came"]))).out == "came"


async def test_on_error_branch_outputs_the_message_at_the_error_port() -> None:
    workflow = flow(
        entry(),
        llm("draft", on_error="branch"),
        result("good"),
        transform("excuse", "sorry: {{input}}"),
        result("bad"),
        edges="text -> draft -> good\ndraft.error -> excuse -> bad",
    )

    failed = await play(workflow, _WRONG_KEY)
    assert list(failed.result.outputs) == ["bad"]
    assert failed.result.outputs["bad"].startswith("sorry: ")  # type: ignore[union-attr]
    assert "key is wrong" in str(failed.result.outputs["bad"])
    assert {event.path for event in failed.of(NodeSkipped)} == {"good"}

    went_well = await play(workflow, "fine")
    assert went_well.result.outputs == {"good": "fine"}
    assert {event.path for event in went_well.of(NodeSkipped)} == {"excuse", "bad"}


async def test_a_failed_router_can_take_the_error_branch() -> None:
    workflow = flow(
        entry(),
        judge(on_error="branch"),
        result("good"),
        result("bad"),
        edges="text -> check\ncheck.done -> good\ncheck.error -> bad",
    )

    assert list((await play(workflow, _WRONG_KEY)).result.outputs) == ["bad"]
    assert list((await play(workflow, verdict("done"))).result.outputs) == ["good"]


async def test_a_failure_ends_the_run_and_cancels_parallel_nodes() -> None:
    cancelled: list[str] = []
    started = asyncio.Event()

    async def answer(call: Call) -> Any:
        if call.node == "bad":
            await started.wait()
            return _WRONG_KEY
        started.set()
        try:
            return await _forever(call)
        except asyncio.CancelledError:
            cancelled.append(call.node)
            raise

    workflow = flow(entry(), llm("bad"), llm("other"), result(), edges="text -> bad -> out\ntext -> other -> out")

    played = await play(workflow, answer, ends="failed")

    assert played.result.node == "bad"
    assert cancelled == ["other"]


async def test_an_expression_error_fails_its_node_with_a_sentence() -> None:
    played = await play(flow(entry(), formula("sum", "input + 1"), result(), edges="text -> sum -> out"), ends="failed")

    assert played.result.node == "sum"
    assert "Traceback" not in played.result.error
    assert played.result.error.count("\n") == 0


async def test_a_bug_in_a_model_fails_the_node_and_the_run() -> None:
    played = await play(_asks(llm("draft")), RuntimeError("boom"), ends="failed")

    assert played.result.node == "draft"
    assert played.result.error


async def test_a_bug_in_a_models_price_fails_the_run() -> None:
    class Broken(FunctionModel):
        async def price(self) -> Price | None:
            raise RuntimeError("boom")

    played = await play(_asks(llm("draft")), Broken("x"), ends="failed")

    assert played.model.calls == []
    assert played.result.error


@pytest.mark.parametrize(("iterations", "ends"), [(499, "completed"), (502, "failed")])
async def test_a_value_nested_too_deeply_fails_with_a_sentence(iterations: int, ends: str) -> None:
    workflow = around(formula("wrap", "[input]"), edges="loop -> wrap -> exit", max_iterations=iterations)

    played = await play(workflow, ends=ends, max_iterations_cap=3000)

    assert ("more than 500" in played.result.error) is (ends == "failed")
    assert bool(played.result.remedy) is (ends == "failed")


async def test_a_partial_reply_is_charged_by_estimate() -> None:
    class Breaking(FunctionModel):
        async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
            assert on_text is not None
            on_text("half a ")
            on_text("reply")
            raise _OVERLOADED

    played = await play(_asks(llm("draft")), Breaking("", price=Price(0.0, 1.0)), ends="failed")

    assert played.result.usage.output_tokens > 0
    assert played.result.usage.exact is False
    assert played.result.cost_usd is not None
    assert played.result.cost_usd > 0


async def test_a_models_own_timeout_is_not_reported_as_the_nodes_timeout() -> None:
    played = await play(_asks(llm("draft", timeout_s=3600)), TimeoutError("the model's own"), ends="failed")

    assert "3600" not in played.result.error


async def test_a_failed_call_is_charged_what_the_model_reports() -> None:
    def failing(_call: Call) -> Exception:
        error = ModelError(ModelErrorKind.BAD_REPLY, "It is no reply.")
        error.usage = Usage(100, 900)  # reasoning, of which nothing is streamed
        return error

    model = FunctionModel(failing, price=Price(0.0, 1.0))
    played = await play(_asks(llm("ask", retries=1, retry_delay_s=0)), model, ends="failed")

    assert played.result.usage == Usage(200, 1800)
    assert played.result.cost_usd == 1800
