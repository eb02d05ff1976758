"""Calls that end early: by the node's timeout, or because a person stops the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine import Run, start
from engine.events import (
    AnyEvent,
    LoopCompleted,
    NodeFailed,
    NodeRetrying,
    NodeStreaming,
    RunCancelled,
    RunFailed,
)
from tests.engine.wire.behaviors import PARTIAL_REPLY, PARTIAL_TOKENS, REPLY, RETRY_AFTER_S
from tests.engine.wire.server import WireServer
from tests.engine.wire_runs.run_helpers import asking, deciding, ended, looping, warm_client

__all__ = ["warm_client"]

LIMIT_S = 0.5


@pytest.mark.parametrize("behavior", ["silent", "stalled", "drip"])
async def test_endless_reply_hits_the_timeout(wire: WireServer, behavior: str) -> None:
    run = await ended(asking(wire, behavior, timeout_s=LIMIT_S))

    (failed,) = run.of(RunFailed)
    assert failed.error == "“Draft” failed: It exceeded its timeout of 0.5 s."
    assert "'Timeout (seconds)'" in failed.remedy
    await wire.call_abandoned()


async def test_call_that_timed_out_is_retried(wire: WireServer) -> None:
    wire.turns["plain"] = ["silent"]

    run = await ended(asking(wire, "plain", timeout_s=LIMIT_S, retries=1))

    assert [retry.attempt for retry in run.of(NodeRetrying)] == [1]
    assert run.result.outputs == {"out": REPLY}
    await wire.call_abandoned()


async def test_partial_reply_before_the_timeout_is_charged(wire: WireServer) -> None:
    run = await ended(asking(wire, "stalled", timeout_s=LIMIT_S))

    (failed,) = run.of(NodeFailed)
    assert [piece.text for piece in run.of(NodeStreaming)] == [PARTIAL_REPLY]
    assert failed.usage == run.result.usage
    assert failed.usage is not None
    assert (failed.usage.output_tokens, failed.usage.exact) == (PARTIAL_TOKENS, False)


def _stop_at(kind: type[AnyEvent]) -> Callable[[Run, AnyEvent], None]:
    def act(run: Run, event: AnyEvent) -> None:
        if isinstance(event, kind):
            run.cancel()

    return act


@pytest.mark.parametrize("behavior", ["stalled", "drip"])
async def test_stopping_a_run_during_a_call_closes_the_connection(wire: WireServer, behavior: str) -> None:
    run = await ended(asking(wire, behavior, retries=2), meanwhile=_stop_at(NodeStreaming))

    assert isinstance(run.events[-1], RunCancelled)
    assert (run.result.status, run.result.outputs, run.result.error) == ("cancelled", {}, "")
    assert run.of(NodeRetrying) == []
    assert run.result.usage.exact is False
    await wire.call_abandoned()
    assert len(wire.requests) == 1


async def test_stopping_a_run_before_the_first_text_closes_the_connection(wire: WireServer) -> None:
    run = start(deciding(wire, "silent"), {"text": "x"})
    await wire.request_arrived()

    run.cancel()

    assert (await run.result()).status == "cancelled"
    await wire.call_abandoned()


async def test_stopping_a_run_in_a_loop_keeps_finished_iterations(wire: WireServer) -> None:
    wire.turns["stalled"] = ["plain", "plain"]
    seen: list[NodeStreaming] = []

    def stop_in_third_turn(run: Run, event: AnyEvent) -> None:
        if isinstance(event, NodeStreaming) and event.path == "loop[2].draft":
            seen.append(event)
            run.cancel()

    run = await ended(looping(wire, "stalled", max_iterations=5), meanwhile=stop_in_third_turn)

    (loop,) = run.of(LoopCompleted)
    assert len(seen) == 1
    assert (loop.exit_reason, loop.iterations_run) == ("cancelled", 2)
    assert [iteration.result for iteration in run.result.loops["loop"].iterations] == [REPLY, REPLY]
    await wire.call_abandoned()


async def test_stopping_a_run_ends_a_retry_delay(wire: WireServer) -> None:
    run = await ended(asking(wire, "rate-limited", retries=5), meanwhile=_stop_at(NodeRetrying))

    (retry,) = run.of(NodeRetrying)
    assert retry.delay_s == RETRY_AFTER_S
    assert run.result.status == "cancelled"
    assert len(wire.requests) == 1
