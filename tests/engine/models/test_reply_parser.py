"""Replies in formats that only litellm reads (Gemini, Cohere): the parser takes litellm's own objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine.models.keys import Keys, find_endpoint
from engine.models.litellm_adapter import load_litellm
from engine.models.protocol import Finish, ModelError, ModelErrorKind, Request, ToolCall, Usage
from engine.models.reply_parser import ReplyParser
from tests.engine.models.litellm_fixtures import QUESTION

CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}


def parser_of(pieces: list[str] | None = None, request: Request = QUESTION) -> ReplyParser:
    keys = Keys({"GEMINI_API_KEY": "sk-very-secret-0123456789"})
    place = find_endpoint("gemini/m", None, keys, {})
    return ReplyParser("gemini/m", place, keys, request, None if pieces is None else pieces.append)


async def test_a_whole_reply_of_litellm_is_read() -> None:
    litellm: Any = await load_litellm()
    message = {"role": "assistant", "content": "Hello", "reasoning_content": "Hm.", "tool_calls": [CALL]}
    response = litellm.ModelResponse(
        model="gemini-x",
        choices=[{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    )
    parser = parser_of()
    parser.feed(response)
    reply = parser.end()

    assert (reply.text, reply.reasoning, reply.model) == ("Hello", "Hm.", "gemini-x")
    assert (reply.tool_calls, reply.finish) == ((ToolCall("a", "look", {"x": 1}),), Finish.TOOL_CALLS)
    assert reply.usage == Usage(3, 2)


async def test_a_stream_of_litellm_is_read_piece_by_piece() -> None:
    litellm: Any = await load_litellm()
    pieces: list[str] = []
    parser = parser_of(pieces)
    for delta in ({"content": "<think>Hm.</think>Hel"}, {"content": "lo"}, {}):
        parser.feed(litellm.ModelResponseStream(model="gemini-x", choices=[{"index": 0, "delta": delta}]))
        parser.emit_text()
    reply = parser.end(SimpleNamespace(received_finish_reason="stop", chunks=[]))

    assert (reply.text, reply.reasoning, pieces) == ("Hello", "Hm.", ["Hel", "lo"])
    assert reply.usage == Usage(5, 2, exact=False)  # four characters a token, "Hm." included


async def test_a_stream_whose_end_litellm_made_up_is_no_reply() -> None:
    litellm: Any = await load_litellm()
    parser = parser_of()
    parser.feed(litellm.ModelResponseStream(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]))

    with pytest.raises(ModelError) as caught:
        parser.end(SimpleNamespace(received_finish_reason=None, chunks=[]))
    assert caught.value.kind is ModelErrorKind.BAD_REPLY
