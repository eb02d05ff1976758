"""Conversion of tool names to those that OpenAI-compatible servers accept, and back."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from engine.models.protocol import Message, ToolCall, ToolDefinition
from engine.models.tool_calls import PartialCalls, openai_message, openai_tools, wire_name


@pytest.mark.parametrize(
    ("name", "sent"), [("add", "add"), ("files/read-all", "files_read-all"), ("a.b c/ä", "a_b_c__")]
)
def test_a_name_is_sent_as_servers_take_it_and_read_as_it_was(name: str, sent: str) -> None:
    tools = (ToolDefinition(name, "Does it.", {"type": "object"}),)
    (tool,) = openai_tools(tools) or ()
    assert tool["function"]["name"] == sent
    calls = PartialCalls()
    calls.add([SimpleNamespace(index=0, id="1", function=SimpleNamespace(name=sent, arguments="{}"))])
    assert calls.complete(tools) == (ToolCall("1", name, {}),)
    again = openai_message(Message("assistant", "", tool_calls=(ToolCall("1", name, {}),)))
    assert again["tool_calls"][0]["function"]["name"] == sent


def test_names_that_would_be_sent_alike_stay_apart() -> None:
    names = ("web/search", "web_search", "web.search")
    tools = tuple(ToolDefinition(name, "Searches.", {"type": "object"}) for name in names)

    sent = [tool["function"]["name"] for tool in openai_tools(tools) or ()]

    assert len(set(sent)) == 3
    assert sent[1] == "web_search"
    calls = PartialCalls()
    wanted = [
        SimpleNamespace(index=index, id=str(index), function=SimpleNamespace(name=name, arguments="{}"))
        for index, name in enumerate(sent)
    ]
    calls.add(wanted)
    assert [call.name for call in calls.complete(tools)] == list(names)
    again = openai_message(Message("assistant", "", tool_calls=calls.complete(tools)), tools)
    assert [call["function"]["name"] for call in again["tool_calls"]] == sent


def test_long_names_stay_apart() -> None:
    one, other = (wire_name("server/" + "x" * 100 + end) for end in "ab")
    assert one != other
    assert re.fullmatch(r"[A-Za-z0-9_-]{64}", one)


def piece(index: int | None, call_id: str | None, name: str | None, arguments: str) -> SimpleNamespace:
    """A piece of a call as a server sends it."""
    return SimpleNamespace(index=index, id=call_id, function=SimpleNamespace(name=name, arguments=arguments))


def test_calls_that_a_server_sends_under_one_index_stay_apart() -> None:
    calls = PartialCalls()
    calls.add([piece(0, "a", "add", '{"a"')])
    calls.add([piece(0, None, None, ": 1}")])
    calls.add([piece(0, "b", "look", "{}")])
    assert calls.complete(()) == (ToolCall("a", "add", {"a": 1}), ToolCall("b", "look", {}))


def test_pieces_that_repeat_their_id_or_have_a_new_one_each_are_one_call() -> None:
    calls = PartialCalls()
    for call_id, name, arguments in [("a", "add", '{"a"'), ("a", "add", ": "), ("b", None, "1}")]:
        calls.add([piece(0, call_id, name, arguments)])
    assert calls.complete(()) == (ToolCall("a", "add", {"a": 1}),)


def test_a_call_of_a_tool_that_nobody_openai_tools_keeps_its_name() -> None:
    calls = PartialCalls()
    calls.add([SimpleNamespace(index=0, id="1", function=SimpleNamespace(name="files_read", arguments="{}"))])
    assert calls.complete(()) == (ToolCall("1", "files_read", {}),)
