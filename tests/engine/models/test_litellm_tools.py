"""Tools of real models, over a real connection to a server on loopback."""

from __future__ import annotations

import pytest

from engine.models.protocol import Finish, Message, Request, ToolCall, ToolDefinition
from tests.engine.models.litellm_fixtures import MakeModel, make_model_fixture
from tests.engine.wire.behaviors import REPLY
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

ADD = ToolDefinition("add", "Adds two numbers.", {"type": "object", "properties": {"a": {"type": "number"}}})
LOOK = ToolDefinition("look", "Looks around.", {"type": "object"})
QUESTION = Request((Message("user", "What is 15 + 27?"),), tools=(ADD, LOOK))


@pytest.mark.parametrize("stream", [False, True])
async def test_tool_calls_are_parsed_and_invalid_arguments_stay_text(
    wire: WireServer, make_model: MakeModel, stream: bool
) -> None:
    reply = await make_model("tool-calls").complete(QUESTION, (lambda _text: None) if stream else None)

    assert reply.tool_calls == (
        ToolCall("call_a", "add", {"a": 15, "b": 27}),
        ToolCall("call_b", "look", "{broken"),
    )
    assert (reply.text, reply.finish) == ("", Finish.TOOL_CALLS)
    assert [tool["function"]["name"] for tool in wire.requests[0].body["tools"]] == ["add", "look"]
    assert wire.requests[0].body["tools"][0]["function"]["parameters"] == ADD.parameters


@pytest.mark.parametrize("stream", [False, True])
async def test_results_are_sent_with_their_calls(wire: WireServer, make_model: MakeModel, stream: bool) -> None:
    model, on_text = make_model("tool-calls"), (lambda _text: None) if stream else None
    first = await model.complete(QUESTION, on_text)
    first_turn = Message("assistant", first.text, first.tool_calls)
    results = (Message("tool", "42", tool_call_id="call_a"), Message("tool", "no", tool_call_id="call_b"))

    reply = await model.complete(Request((*QUESTION.messages, first_turn, *results), tools=QUESTION.tools), on_text)

    assert (reply.text, reply.tool_calls, reply.finish) == (REPLY, (), Finish.STOP)
    _, assistant, answered, unreadable = wire.requests[1].body["messages"]
    assert [call["id"] for call in assistant["tool_calls"]] == ["call_a", "call_b"]
    assert assistant["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":15,"b":27}'}
    assert answered == {"role": "tool", "tool_call_id": "call_a", "content": "42"}
    assert unreadable["tool_call_id"] == "call_b"


@pytest.mark.parametrize("stream", [False, True])
async def test_tools_are_described_in_the_prompt_after_a_refusal(
    wire: WireServer, make_model: MakeModel, stream: bool
) -> None:
    model, on_text = make_model("no-tools"), (lambda _text: None) if stream else None

    reply = await model.complete(QUESTION, on_text)
    await model.complete(QUESTION, on_text)

    assert reply.tool_calls == (ToolCall("call_1", "add", {"a": 15, "b": 27}),)
    assert reply.finish is Finish.TOOL_CALLS
    assert ["tools" in request.body for request in wire.requests] == [True, False, False]
    assert "add: Adds two numbers." in wire.requests[1].body["messages"][0]["content"]


async def test_without_tools_no_text_is_a_call(make_model: MakeModel) -> None:
    reply = await make_model("no-tools").complete(Request(QUESTION.messages))

    assert reply.tool_calls == ()
