"""Replies that arrive: streamed, structured in every form that servers know, and what is told about them."""

from __future__ import annotations

import json

import pytest

from engine.events import LoopIterationCompleted, NodeCompleted, NodeStreaming
from engine.models.protocol import Usage
from tests.engine.wire.behaviours import HUGE_REPLY_CHARACTERS, PARTIAL_REPLY, REPLY, Body
from tests.engine.wire.server import WireServer
from tests.engine.wire_runs.kit import GIVEN, asking, deciding, ended, looping, warm_client

__all__ = ["warm_client"]

SCHEMA = {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]}


def _last_message(body: Body) -> str:
    return str(body["messages"][-1]["content"])


async def test_the_pieces_of_a_stream_add_up_to_the_output(wire: WireServer) -> None:
    run = await ended(asking(wire, "stream"))

    pieces = run.of(NodeStreaming, "draft")
    assert len(pieces) > 1
    assert "".join(piece.text for piece in pieces) == REPLY
    assert [piece.tokens for piece in pieces] == list(range(1, len(pieces) + 1))
    assert run.result.outputs == {"out": REPLY}
    assert _last_message(wire.requests[0].body) == f"Write about {GIVEN}."


async def test_tokens_are_the_servers_and_the_price_of_an_unknown_model_is_unknown(wire: WireServer) -> None:
    run = await ended(asking(wire, "plain"))

    (completed,) = run.of(NodeCompleted, "draft")
    assert (completed.usage, completed.cost_usd) == (Usage(11, 5), None)
    assert (run.result.usage, run.result.cost_usd) == (Usage(11, 5), None)
    assert [call.reply.text for call in completed.calls] == [REPLY]


async def test_tokens_that_the_server_did_not_count_are_called_an_estimate(wire: WireServer) -> None:
    run = await ended(asking(wire, "no-usage"))

    assert run.result.usage.exact is False
    assert run.result.usage.output_tokens > 0


async def test_a_reply_that_was_cut_at_the_most_tokens_says_so(wire: WireServer) -> None:
    run = await ended(asking(wire, "truncated"))

    (completed,) = run.of(NodeCompleted, "draft")
    assert run.result.outputs == {"out": PARTIAL_REPLY}
    assert "cut off" in completed.warnings[0]


async def test_a_reply_of_five_million_characters_comes_out_whole(wire: WireServer) -> None:
    run = await ended(asking(wire, "huge"))

    assert run.result.outputs == {"out": "x" * HUGE_REPLY_CHARACTERS}


@pytest.mark.parametrize("behaviour", ["structured", "no-schema", "no-response-format"])
async def test_a_structured_reply_comes_out_as_json_from_every_kind_of_server(wire: WireServer, behaviour: str) -> None:
    run = await ended(asking(wire, behaviour, reply_schema=SCHEMA))

    assert run.result.outputs == {"out": {"branch": "done", "reason": "nothing is missing"}}


async def test_a_structured_reply_that_does_not_fit_is_asked_for_once_more(wire: WireServer) -> None:
    wire.reply = lambda _body: "No idea." if len(wire.requests) == 1 else '{"branch": "b"}'

    run = await ended(asking(wire, "plain", reply_schema=SCHEMA))

    (completed,) = run.of(NodeCompleted, "draft")
    assert run.result.outputs == {"out": {"branch": "b"}}
    assert run.result.usage == Usage(22, 10)
    assert len(completed.calls) == 2
    assert "asked once more" in completed.warnings[0]


@pytest.mark.parametrize("behaviour", ["structured", "no-schema", "no-response-format"])
async def test_a_router_reads_its_verdict_from_every_kind_of_server(wire: WireServer, behaviour: str) -> None:
    run = await ended(deciding(wire, behaviour))

    (completed,) = run.of(NodeCompleted, "check")
    assert completed.outputs == {"done": GIVEN, "reason": "nothing is missing"}
    assert run.result.outputs == {"done": GIVEN}


async def test_a_verdict_that_cannot_be_read_counts_as_continue(wire: WireServer) -> None:
    wire.reply = lambda _body: "It is hardly done."

    run = await ended(deciding(wire, "plain"))

    (completed,) = run.of(NodeCompleted, "check")
    assert run.result.outputs == {"more": GIVEN}
    assert len(wire.requests) == 2
    assert 'counts as "continue"' in completed.warnings[-1]


async def test_each_turn_of_a_loop_asks_with_what_the_turn_before_gave(wire: WireServer) -> None:
    wire.reply = lambda body: f"({_last_message(body).removeprefix('Better: ')})"

    run = await ended(looping(wire, "stream", max_iterations=3))

    assert run.result.outputs == {"out": f"((({GIVEN})))"}
    for index, iteration in enumerate(run.of(LoopIterationCompleted)):
        streamed = "".join(piece.text for piece in run.of(NodeStreaming, f"loop[{index}].draft"))
        assert streamed == iteration.result
        assert iteration.usage == Usage(11, 5)


async def test_a_loop_turns_until_the_model_says_that_it_is_done(wire: WireServer) -> None:
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
