"""Successful replies: streamed, structured in every supported form, and their usage."""

from __future__ import annotations

import json

import pytest

from engine.events import LoopIterationCompleted, NodeCompleted, NodeStreaming
from engine.models.protocol import Usage
from tests.engine.wire.behaviors import HUGE_REPLY_CHARACTERS, PARTIAL_REPLY, REPLY, Body
from tests.engine.wire.server import WireServer
from tests.engine.wire_runs.run_helpers import GIVEN, asking, deciding, ended, looping, warm_client

__all__ = ["warm_client"]

SCHEMA = {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]}


def _last_message(body: Body) -> str:
    return str(body["messages"][-1]["content"])


async def test_streamed_pieces_add_up_to_the_output(wire: WireServer) -> None:
    run = await ended(asking(wire, "stream"))

    pieces = run.of(NodeStreaming, "draft")
    assert len(pieces) > 1
    assert "".join(piece.text for piece in pieces) == REPLY
    assert [piece.tokens for piece in pieces] == list(range(1, len(pieces) + 1))
    assert run.result.outputs == {"out": REPLY}
    assert _last_message(wire.requests[0].body) == f"Write about {GIVEN}."


async def test_usage_is_the_servers_and_an_unknown_price_is_unknown(wire: WireServer) -> None:
    run = await ended(asking(wire, "plain"))

    (completed,) = run.of(NodeCompleted, "draft")
    assert (completed.usage, completed.cost_usd) == (Usage(11, 5), None)
    assert (run.result.usage, run.result.cost_usd) == (Usage(11, 5), None)
    assert [call.reply.text for call in completed.calls] == [REPLY]


async def test_missing_usage_is_reported_as_an_estimate(wire: WireServer) -> None:
    run = await ended(asking(wire, "no-usage"))

    assert run.result.usage.exact is False
    assert run.result.usage.output_tokens > 0


async def test_reply_truncated_by_max_tokens_is_reported(wire: WireServer) -> None:
    run = await ended(asking(wire, "truncated"))

    (completed,) = run.of(NodeCompleted, "draft")
    assert run.result.outputs == {"out": PARTIAL_REPLY}
    assert "cut off" in completed.warnings[0]


async def test_reply_of_five_million_characters_is_complete(wire: WireServer) -> None:
    run = await ended(asking(wire, "huge"))

    assert run.result.outputs == {"out": "x" * HUGE_REPLY_CHARACTERS}


@pytest.mark.parametrize("behavior", ["structured", "no-schema", "no-response-format"])
async def test_structured_reply_works_with_every_kind_of_server(wire: WireServer, behavior: str) -> None:
    run = await ended(asking(wire, behavior, reply_schema=SCHEMA))

    assert run.result.outputs == {"out": {"branch": "done", "reason": "nothing is missing"}}


async def test_invalid_structured_reply_is_requested_again(wire: WireServer) -> None:
    wire.reply = lambda _body: "No idea." if len(wire.requests) == 1 else '{"branch": "b"}'

    run = await ended(asking(wire, "plain", reply_schema=SCHEMA))

    (completed,) = run.of(NodeCompleted, "draft")
    assert run.result.outputs == {"out": {"branch": "b"}}
    assert run.result.usage == Usage(22, 10)
    assert len(completed.calls) == 2
    assert "asked once more" in completed.warnings[0]


@pytest.mark.parametrize("behavior", ["structured", "no-schema", "no-response-format"])
async def test_router_works_with_every_kind_of_server(wire: WireServer, behavior: str) -> None:
    run = await ended(deciding(wire, behavior))

    (completed,) = run.of(NodeCompleted, "check")
    assert completed.outputs == {"done": GIVEN, "reason": "nothing is missing"}
    assert run.result.outputs == {"done": GIVEN}


async def test_unreadable_verdict_means_continue(wire: WireServer) -> None:
    wire.reply = lambda _body: "It is hardly done."

    run = await ended(deciding(wire, "plain"))

    (completed,) = run.of(NodeCompleted, "check")
    assert run.result.outputs == {"more": GIVEN}
    assert len(wire.requests) == 2
    assert 'counts as "continue"' in completed.warnings[-1]


async def test_each_iteration_gets_the_previous_output(wire: WireServer) -> None:
    wire.reply = lambda body: f"({_last_message(body).removeprefix('Better: ')})"

    run = await ended(looping(wire, "stream", max_iterations=3))

    assert run.result.outputs == {"out": f"((({GIVEN})))"}
    for index, iteration in enumerate(run.of(LoopIterationCompleted)):
        streamed = "".join(piece.text for piece in run.of(NodeStreaming, f"loop[{index}].draft"))
        assert streamed == iteration.result
        assert iteration.usage == Usage(11, 5)


async def test_loop_runs_until_the_model_is_done(wire: WireServer) -> None:
    def reply(body: Body) -> str:
        if "Better:" in _last_message(body):
            return f"{_last_message(body).removeprefix('Better: ')}!"
        return json.dumps({"branch": "done" if "!!!" in _last_message(body) else "continue", "reason": "I count"})

    wire.reply = reply
    run = await ended(looping(wire, "stream", "plain", exit_condition="evaluator", max_iterations=9))

    loop = run.result.loops["loop"]
    assert (loop.exit_reason, loop.iterations_run, loop.converged) == ("evaluator_done", 3, True)
    assert [iteration.branch for iteration in loop.iterations] == ["continue", "continue", "done"]
    assert run.result.outputs == {"out": f"{GIVEN}!!!"}
