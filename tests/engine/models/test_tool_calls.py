"""Tool calls as text: descriptions for the model, and parsing of its text."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.protocol import Finish, Message, Reply, Request, ToolCall, ToolDefinition
from engine.models.tool_calls import describe_tools, parse_arguments, parse_written_calls

TOOLS = (ToolDefinition("add", "Adds.", {"type": "object"}), ToolDefinition("exit_loop", "Ends the loop.", {}))
ASKED = Request((Message("system", "Be brief."), Message("user", "Add.")), tools=TOOLS)


def calls_in(text: str) -> list[tuple[str, Any]]:
    """Name and arguments of the calls in a text."""
    return [(call.name, call.arguments) for call in parse_written_calls(Reply(text), ASKED).tool_calls]


WRITTEN: list[tuple[str, list[tuple[str, Any]]]] = [
    ('{"tool": "add", "arguments": {"a": 1}}', [("add", {"a": 1})]),
    ('Sure!\n```json\n{"name": "add", "parameters": {"a": 1}}\n```', [("add", {"a": 1})]),
    ('<tool_call>{"name": "add", "arguments": "{\\"a\\": 1}"}</tool_call>', [("add", {"a": 1})]),
    ('{"function": {"name": "add", "arguments": {}}}', [("add", {})]),
    ('{"tool": "add"} and then {"tool": "exit_loop"}', [("add", {}), ("exit_loop", {})]),
    ('{"tool": "no such", "arguments": {}}', [("no such", {})]),
    ('{"tool": "add", "arguments": [1]}', [("add", "[1]")]),
    (" `exit_loop()`. ", [("exit_loop", {})]),
    ("exit_loop", [("exit_loop", {})]),
    ("```\nexit_loop ( )\n```", [("exit_loop", {})]),
    ("I would call exit_loop now.", []),
    ('{"name": "Bob", "age": 3}', []),
    ('{"tool": 3}', []),
    ("{'tool': 'add', 'arguments': {'a': True,}, } // so", [("add", {"a": True})]),
    ("{“name”: “add”, “arguments”: “{'a': 1}”}", [("add", {"a": 1})]),
    ('[{"tool": "add"}, {tool: "exit_loop"}]', [("add", {}), ("exit_loop", {})]),
    ('{"tool": "add", "arguments": {"a": "x\ny"}}', [("add", {"a": "x\ny"})]),
    ('{"tool": "add"} {"tool": "exit_loop", "arguments": {"a": "', [("add", {})]),
    ('{"tool": "add", "arguments": {"nested": {"tool": "exit_loop"}, "a": "', []),
    ('{"tool": "add", "arguments": {"a": }}', []),
    ('{"tool": "add", "arguments": {"a": NaN}}', []),
    ("{" * 5000, []),
    ("", []),
]


@pytest.mark.parametrize(("text", "calls"), WRITTEN)
def test_calls_are_found_in_text(text: str, calls: list[tuple[str, Any]]) -> None:
    assert calls_in(text) == calls


def test_long_white_space_after_a_name_takes_linear_time() -> None:
    started = time.thread_time()
    assert calls_in("exit_loop" + " \n" * 10_000 + "or not") == []
    assert time.thread_time() - started < 1


@given(st.text(alphabet='{}[]":,ad toladrgumens1\\\n', max_size=60))
def test_any_text_can_be_parsed(text: str) -> None:
    assert all(name for name, _ in calls_in('{"tool": "add"} ' + text))


def test_written_call_has_an_id_and_sets_the_finish_reason() -> None:
    reply = parse_written_calls(Reply('{"tool": "add", "arguments": {}}'), ASKED)

    assert (reply.tool_calls, reply.finish) == ((ToolCall("call_1", "add", {}),), Finish.TOOL_CALLS)


def test_truncated_reply_with_calls_keeps_its_finish_reason() -> None:
    reply = parse_written_calls(Reply('{"tool": "add", "arguments": {}} and then {"tool":', Finish.LENGTH), ASKED)

    assert (len(reply.tool_calls), reply.finish) == (1, Finish.LENGTH)


def test_conversation_with_tools_becomes_plain_messages() -> None:
    call = ToolCall("x", "add", {"a": 1})
    conversation = (Message("assistant", "Let me see.", (call,)), Message("tool", "2", tool_call_id="x"))

    described = describe_tools(Request((*ASKED.messages, *conversation), tools=TOOLS))

    assert described.tools == ()
    assert described.messages[0].text.startswith("Be brief.\n\nYou may call tools.")
    assert described.messages[2:] == (
        Message("assistant", 'Let me see.\n{"arguments":{"a":1},"tool":"add"}'),
        Message("user", "Result of add:\n2"),
    )


def test_result_belongs_to_the_latest_call_with_its_id() -> None:
    turns = [(ToolCall("call_1", name, {}), Message("tool", "Done.", tool_call_id="call_1")) for name in ("add", "mul")]
    conversation = [message for call, result in turns for message in (Message("assistant", "", (call,)), result)]

    described = describe_tools(Request((*ASKED.messages, *conversation), tools=TOOLS))

    assert [message.text for message in described.messages[3::2]] == ["Result of add:\nDone.", "Result of mul:\nDone."]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": [1]}', {"a": [1]}),
        ("", {}),
        ("{'a': None, /* so */ b: 'x\ny',}", {"a": None, "b": "x\ny"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": 1', '{"a": 1'),
        ('{"a": }', '{"a": }'),
        ('{"a": 1} {"a": 2}', '{"a": 1} {"a": 2}'),
        ("{'a': 1, 'a': 2}", "{'a': 1, 'a': 2}"),
        ("{broken", "{broken"),
        ("[1]", "[1]"),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1e999}', '{"a": 1e999}'),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments_are_an_object_or_the_original_text(text: str, arguments: Any) -> None:
    assert parse_arguments(text) == arguments
