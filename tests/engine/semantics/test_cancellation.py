"""Cancelling runs, timeouts of loops, and delays between iterations."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from engine import RunError, run
from engine.events import (
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
)
from engine.models.protocol import ModelError, ModelErrorKind
from tests.engine.semantics.documents import around, entry, flow, leave, llm, loop, result, transform
from tests.engine.semantics.kit import begin, finish, options, play, settle
from tests.engine.semantics.models import Call, FunctionModel, Gate
from tests.engine.semantics.virtual_time import virtually

_ROW = flow(
    entry(), llm("a"), llm("b"), llm("c"), result(), result("early"), edges="text -> a -> b -> c -> out\na -> early"
)
_BOTH = flow(entry(), llm("a"), llm("b"), result(), edges="text -> a -> out\ntext -> b -> out")


async def test_cancel_stops_the_call_in_flight_and_keeps_finished_results() -> None:
    gate = Gate("b")
    started, models = begin(_ROW, gate)
    await gate.reached.wait()

    started.cancel()
    played = await finish(started, models)

    assert played.result.status == "cancelled"
    assert gate.cancelled
    assert played.model.paths == ["a", "b"]
    assert played.result.outputs == {"early": "a"}
    assert played.result.usage.total_tokens == 15
    assert {"text", "a", "early"} <= played.ran


async def test_cancel_in_a_loop_keeps_finished_iterations() -> None:
    gate = Gate("loop[2].draft")
    started, models = begin(around(llm("draft"), edges="loop -> draft -> exit"), gate)
    await gate.reached.wait()

    started.cancel()
    played = await finish(started, models)

    assert played.result.status == "cancelled"
    assert gate.cancelled
    assert played.results == ["loop[0].draft", "loop[1].draft"]
    assert played.loop.exit_reason == "cancelled"
    assert played.loop.converged is False
    assert "out" not in played.result.outputs


async def test_cancel_stops_every_call_in_flight() -> None:
    cancelled: set[str] = set()
    both = asyncio.Barrier(3)

    async def answer(call: Call) -> str:
        try:
            await both.wait()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.add(call.node)
            raise
        return ""

    started, models = begin(_BOTH, answer)
    await both.wait()

    started.cancel()
    await finish(started, models)

    assert cancelled == {"a", "b"}


async def test_a_run_can_be_cancelled_before_it_starts_and_repeatedly() -> None:
    started, models = begin(_ROW, "x")

    started.cancel()
    started.cancel()
    played = await finish(started, models)

    assert played.result.status == "cancelled"
    assert played.model.calls == []


async def test_cancelling_an_ended_run_changes_nothing() -> None:
    started, models = begin(_ROW, "x")
    await started.result()

    started.cancel()
    started.pause()
    played = await finish(started, models)

    assert played.result.status == "completed"


async def test_a_cancelled_run_raises_with_its_result() -> None:
    gate = Gate("b")
    task = asyncio.create_task(run(_ROW, {"text": "seed"}, options(FunctionModel(gate))))
    await gate.reached.wait()

    task.cancel()
    with pytest.raises((RunError, asyncio.CancelledError)):
        await task

    assert gate.cancelled


def test_delay_is_waited_between_iterations_only() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=3, delay_s=60.0)

    async def main() -> tuple[list[float], float]:
        played = await play(workflow, "x")
        return [call.time for call in played.model.calls], asyncio.get_running_loop().time()

    times, end = virtually(main())

    assert times == pytest.approx([0.0, 60.0, 120.0])
    assert end == pytest.approx(120.0)


async def test_cancel_ends_the_delay_between_iterations() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=3, delay_s=3600.0)
    started, models = begin(workflow, "x")
    async with asyncio.timeout(30):
        async for event in started.events():
            if isinstance(event, LoopIterationCompleted):
                break
    await settle()

    started.cancel()
    played = await finish(started, models)

    assert played.result.status == "cancelled"
    assert len(played.of(LoopIterationStarted)) == 1
    assert played.of(LoopCompleted)[0].exit_reason == "cancelled"


async def _slow(call: Call) -> str:
    await asyncio.sleep(10.0)
    return f"draft {call.iteration}"


def test_a_loop_timeout_cancels_the_call_in_flight() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=9, timeout_s=25.0)

    async def main() -> float:
        started, models = begin(workflow, _slow)
        played = await finish(started, models)
        assert played.loop.exit_reason == "timeout"
        assert played.loop.converged is False
        assert played.results == ["draft 0", "draft 1"]
        assert played.model.paths == ["loop[0].draft", "loop[1].draft", "loop[2].draft"]
        return asyncio.get_running_loop().time()

    assert virtually(main()) == pytest.approx(25.0)


def test_a_loop_that_ends_in_time_is_unaffected_by_its_timeout() -> None:
    workflow = around(llm("draft"), edges="loop -> draft -> exit", max_iterations=2, timeout_s=25.0)

    played = virtually(play(workflow, _slow))

    assert played.loop.exit_reason == "max_iterations"


def test_the_timeout_of_an_inner_loop_starts_over_in_every_outer_iteration() -> None:
    workflow = flow(
        entry(),
        loop("outer", max_iterations=3),
        loop("inner", max_iterations=2, timeout_s=25.0),
        llm("draft"),
        leave("inner_exit", "inner"),
        transform("after"),
        leave("outer_exit", "outer"),
        result(),
        edges="text -> outer -> inner -> draft -> inner_exit -> after -> outer_exit -> out",
    )

    played = virtually(play(workflow, _slow))

    assert {played.result.loops[f"outer[{index}].inner"].exit_reason for index in range(3)} == {"max_iterations"}


async def test_cancel_reaches_a_node_that_waits_for_a_concurrency_slot() -> None:
    gate = Gate("a")
    edges = "text -> a -> out\ntext -> b -> out\ntext -> c -> out"
    workflow = flow(entry(), llm("a"), llm("b"), llm("c"), result(), edges=edges, settings={"max_concurrency": 1})
    started, models = begin(workflow, gate)
    await gate.reached.wait()
    await settle()

    started.cancel()
    played = await finish(started, models)

    assert played.result.status == "cancelled"
    assert played.model.paths == ["a"]


class _CleansUp:
    """Replies that never arrive; when cancelled, the node `b` has to clean up first."""

    def __init__(self) -> None:
        self.begun = asyncio.Barrier(3)
        self.clearing, self.may_end = asyncio.Event(), asyncio.Event()
        self.has_ended = False

    async def __call__(self, call: Call) -> Exception:
        await self.begun.wait()
        if call.node == "a" and self.a_fails:
            return ModelError(ModelErrorKind.NOT_FOUND, "Gone.", "Find it.")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if call.node == "b":
                self.clearing.set()
                await self.may_end.wait()
                self.has_ended = True
            raise
        raise AssertionError

    a_fails = False


@pytest.mark.parametrize("a_fails", [False, True])
async def test_a_second_cancel_leaves_nodes_the_time_to_clean_up(a_fails: bool) -> None:
    answer = _CleansUp()
    answer.a_fails = a_fails
    started, models = begin(_BOTH, answer)
    await answer.begun.wait()
    if not a_fails:
        started.cancel()
    await answer.clearing.wait()

    started.cancel()
    await settle()
    was_over = started.is_over
    answer.may_end.set()
    played = await finish(started, models)

    assert not was_over
    assert answer.has_ended
    assert played.result.status == "cancelled"


async def test_a_run_is_cancelled_although_a_node_ignores_it() -> None:
    reached = asyncio.Event()

    async def answer(call: Call) -> str:
        if call.node == "a":
            reached.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        return call.node

    started, models = begin(_ROW, answer)
    await reached.wait()

    started.cancel()
    played = await finish(started, models)

    assert played.result.status == "cancelled"
    assert played.model.paths == ["a"]


async def test_a_call_that_turns_cancellation_into_an_error_is_not_retried() -> None:
    reached = asyncio.Event()

    async def answer(_call: Call) -> Exception:
        reached.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return ModelError(ModelErrorKind.CONNECTION, "The connection is gone.", "Try again.")

    workflow = flow(entry(), llm("a", retries=3, retry_delay_s=0.0), result(), edges="text -> a -> out")
    started, models = begin(workflow, answer)
    await reached.wait()

    started.cancel()
    played = await finish(started, models)

    assert played.result.status == "cancelled"
    assert played.model.paths == ["a"]
