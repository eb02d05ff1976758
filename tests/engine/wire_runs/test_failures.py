"""Failures of servers as the person sees them: event, message and remedy."""

from __future__ import annotations

import pytest

from engine.events import NodeFailed, NodeRetrying, NodeStreaming, RunFailed
from engine.models.protocol import Usage
from tests.engine.wire.behaviors import BRIEF_RETRY_AFTER_S, PARTIAL_REPLY, PARTIAL_TOKENS, REPLY, RETRY_AFTER_S
from tests.engine.wire.server import WireServer
from tests.engine.wire_runs.run_helpers import asking, deciding, ended, looping, warm_client

__all__ = ["warm_client"]

# What the server does, what is wrong, what to do about it.
FINAL = [
    (
        "unauthorized",
        "requires a key, and there is none for it: Incorrect API key provided: Bearer none.",
        "Add a valid key.",
    ),
    (
        "forbidden",
        "does not allow this: Your country is not supported.",
        "Ask the provider what the account may do, or choose another model.",
    ),
    (
        "not-found",
        "does not know the model 'not-found': The model does not exist.",
        "Check the model's name and the server's address, or choose another model.",
    ),
    (
        "quota",
        "reports that the account has no credit left: You exceeded your current quota.",
        "Top it up with the provider, or choose another model.",
    ),
]
PASSING = [
    (
        "rate-limited",
        f"accepts no more requests at the moment and asks to wait {RETRY_AFTER_S} s: Slow down.",
        "Wait a little, run fewer calls at the same time, or raise the limit with the provider.",
    ),
    (
        "server-error",
        "reported an internal error: Something broke.",
        "Try again later, or choose another model.",
    ),
    (
        "not-json",
        "sent a response that is not a model's reply.",
        "Check that the address is that of a model server, and try again.",
    ),
    (
        "html",
        "sent a response that is not a model's reply.",
        "Check that the address is that of a model server, and try again.",
    ),
    (
        "reset",
        "closed the connection before it responded.",
        "Check the network, and that the server runs at the address given.",
    ),
    (
        "cut",
        "disconnected in the middle of its reply.",
        "Try again; if it happens again, check the network, or choose another model.",
    ),
]


@pytest.mark.parametrize(("behavior", "sentence", "remedy"), FINAL + PASSING)
async def test_failure_ends_the_run_with_message_and_remedy(
    wire: WireServer, behavior: str, sentence: str, remedy: str
) -> None:
    run = await ended(asking(wire, behavior))

    (failed,) = run.of(RunFailed)
    (node,) = run.of(NodeFailed)
    assert failed.error == f"“Draft” failed: The server at {wire.host} {sentence}"
    assert failed.remedy == remedy
    fixes = {"Add a valid key.": f"add_key:host:{wire.host}"}
    assert node.fix == failed.fix == run.result.fix == fixes.get(remedy, failed.fix)
    assert failed.node == node.path == "draft"
    assert (node.error, node.remedy) == (f"The server at {wire.host} {sentence}", failed.remedy)
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

    assert run.result.error.startswith(f"“check” failed: The server at {wire.host} reported an internal error")
    assert run.result.node == "check"


async def test_failure_in_a_loop_names_the_iteration_and_keeps_earlier_ones(wire: WireServer) -> None:
    wire.turns["server-error"] = ["plain", "plain"]

    run = await ended(looping(wire, "server-error", max_iterations=4))

    loop = run.result.loops["loop"]
    assert run.result.node == "loop[2].draft"
    assert (loop.exit_reason, [iteration.result for iteration in loop.iterations]) == ("error", [REPLY, REPLY])
