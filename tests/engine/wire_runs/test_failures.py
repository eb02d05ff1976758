"""Failures of servers as the person sees them: event, message and remedy."""

from __future__ import annotations

import pytest

from engine.events import NodeFailed, NodeRetrying, NodeStreaming, RunFailed
from engine.models.protocol import Usage
from tests.engine.wire.behaviors import BRIEF_RETRY_AFTER_S, PARTIAL_REPLY, PARTIAL_TOKENS, REPLY, RETRY_AFTER_S
from tests.engine.wire.server import WireServer
from tests.engine.wire_runs.run_helpers import asking, deciding, ended, looping, warm_client
from tests.wording import mentions

__all__ = ["warm_client"]

# What the server does, what the message mentions after the server, and what the remedy mentions.
FINAL = [
    ("unauthorized", "key … Incorrect API key provided: Bearer none.", "key"),
    ("forbidden", "not allow … Your country is not supported.", "provider"),
    ("not-found", "'not-found' … The model does not exist.", "model's name"),
    ("quota", "no credit … You exceeded your current quota.", "provider"),
]
PASSING = [
    ("rate-limited", f"{RETRY_AFTER_S} s … Slow down.", "fewer calls"),
    ("server-error", "internal error … Something broke.", "later"),
    ("not-json", "not a model's reply", "address"),
    ("html", "not a model's reply", "address"),
    ("reset", "closed the connection", "network"),
    ("cut", "disconnected", "again"),
]


@pytest.mark.parametrize(("behavior", "message", "remedy"), FINAL + PASSING)
async def test_failure_ends_the_run_with_message_and_remedy(
    wire: WireServer, behavior: str, message: str, remedy: str
) -> None:
    run = await ended(asking(wire, behavior))

    (failed,) = run.of(RunFailed)
    (node,) = run.of(NodeFailed)
    assert mentions(node.error, f"{wire.host} … {message}")
    assert failed.error == f"“Draft” failed: {node.error}"
    assert mentions(failed.remedy, remedy)
    fixes = {"unauthorized": f"add_key:host:{wire.host}"}
    assert node.fix == failed.fix == run.result.fix == fixes.get(behavior, failed.fix)
    assert failed.node == node.path == "draft"
    assert node.remedy == failed.remedy
    assert (run.result.error, run.result.remedy, run.result.outputs) == (failed.error, failed.remedy, {})


@pytest.mark.parametrize("behavior", [row[0] for row in FINAL])
async def test_permanent_failure_is_not_retried(wire: WireServer, behavior: str) -> None:
    run = await ended(asking(wire, behavior, retries=3))

    assert run.of(NodeRetrying) == []
    assert len(wire.requests) == 1


@pytest.mark.parametrize("behavior", ["server-error", "not-json", "html", "reset", "cut", "briefly-limited"])
async def test_temporary_failure_is_retried_until_success(wire: WireServer, behavior: str) -> None:
    wire.turns["plain"] = [behavior, behavior]

    run = await ended(asking(wire, "plain", retries=2))

    retries = run.of(NodeRetrying, "draft")
    assert [retry.attempt for retry in retries] == [1, 2]
    assert all(retry.error.startswith(f"The server at {wire.host} ") for retry in retries)
    assert run.result.outputs == {"out": REPLY}
    assert len(wire.requests) == 3


async def test_failure_ends_the_run_after_the_last_retry(wire: WireServer) -> None:
    run = await ended(asking(wire, "server-error", retries=2))

    assert [retry.attempt for retry in run.of(NodeRetrying)] == [1, 2]
    assert len(wire.requests) == 3
    assert run.result.status == "failed"


async def test_retry_delay_of_the_server_is_respected(wire: WireServer) -> None:
    wire.turns["plain"] = ["briefly-limited"]

    run = await ended(asking(wire, "plain", retries=1))

    (retry,) = run.of(NodeRetrying)
    assert retry.delay_s == BRIEF_RETRY_AFTER_S
    assert run.result.status == "completed"


async def test_interrupted_stream_is_retried_and_charged(wire: WireServer) -> None:
    wire.turns["stream"] = ["cut"]

    run = await ended(asking(wire, "stream", retries=1))

    pieces = run.of(NodeStreaming, "draft")
    restart = [piece.tokens for piece in pieces].index(1, 1)
    assert "".join(piece.text for piece in pieces[:restart]) == PARTIAL_REPLY
    assert "".join(piece.text for piece in pieces[restart:]) == REPLY
    assert run.result.outputs == {"out": REPLY}
    assert run.result.usage.exact is False
    assert run.result.usage.output_tokens == 5 + PARTIAL_TOKENS
    assert run.result.usage.input_tokens > Usage(11, 5).input_tokens


async def test_partial_reply_of_a_failed_run_is_charged(wire: WireServer) -> None:
    run = await ended(asking(wire, "cut"))

    (failed,) = run.of(NodeFailed)
    assert failed.usage == run.result.usage
    assert failed.usage is not None
    assert (failed.usage.exact, failed.usage.output_tokens) == (False, PARTIAL_TOKENS)
    assert run.result.cost_usd is None


async def test_failure_may_be_handled_by_an_error_branch(wire: WireServer) -> None:
    run = await ended(asking(wire, "server-error", on_error="continue", error_value="nothing"))

    assert run.result.status == "completed"
    assert run.result.outputs == {"out": "nothing"}


async def test_router_with_a_failing_model_ends_the_run(wire: WireServer) -> None:
    run = await ended(deciding(wire, "server-error"))

    assert run.result.error.startswith(f"“Router” failed: The server at {wire.host} reported an internal error")
    assert run.result.node == "check"


async def test_failure_in_a_loop_names_the_iteration_and_keeps_earlier_ones(wire: WireServer) -> None:
    wire.turns["server-error"] = ["plain", "plain"]

    run = await ended(looping(wire, "server-error", max_iterations=4))

    loop = run.result.loops["loop"]
    assert run.result.node == "loop[2].draft"
    assert (loop.exit_reason, [iteration.result for iteration in loop.iterations]) == ("error", [REPLY, REPLY])
