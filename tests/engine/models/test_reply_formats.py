"""Replies in the formats of Ollama and Anthropic, over a real connection."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from engine.models.keys import Keys
from engine.models.litellm_adapter import LiteLLMModel
from engine.models.protocol import Finish, Message, ModelErrorKind, Reply, Request, ToolCall, ToolDefinition, Usage
from tests.engine.models.litellm_fixtures import MakeModel, failure_of, make_model_fixture
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

LOOK = ToolDefinition("look", "Looks around.", {"type": "object"})
ASKED = Request((Message("user", "What is up?"),), tools=(LOOK,))
STRUCTURED = Request(
    ASKED.messages,
    schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)
both_ways = pytest.mark.parametrize("stream", [False, True])


class Server:
    """A server that replies in one of the formats."""

    def __init__(self, wire: WireServer, make_model: MakeModel) -> None:
        self.wire = wire
        self.make_model = make_model
        self.pieces: list[str] = []

    async def ask(self, kind: str, body_text: str, *, stream: bool, request: Request = ASKED) -> Reply:
        return await self._model(kind, body_text).complete(request, self.pieces.append if stream else None)

    async def failure(self, kind: str, body_text: str, *, stream: bool) -> Any:
        return await failure_of(self._model(kind, body_text), stream=stream)

    def _model(self, kind: str, body_text: str) -> Any:
        self.wire.reply = lambda _body: body_text
        address = self.wire.base_url.removesuffix("/v1") if kind == "anthropic" else self.wire.base_url
        return self.make_model(f"{kind}/verbatim", api_base=address)


@pytest.fixture
def server(wire: WireServer, make_model: MakeModel) -> Server:
    return Server(wire, make_model)


def lines(*bodies: Any) -> str:
    return "".join(f"{json.dumps(body)}\n" for body in bodies)


def events(*bodies: dict[str, Any]) -> str:
    return "".join(f"event: {body.get('type')}\ndata: {json.dumps(body)}\n\n" for body in bodies)


def ollama(message: Any, *, done: Any = True, **more: Any) -> dict[str, Any]:
    return {"model": "llama3.2", "message": message, "done": done, **more}


OLLAMA_END = {"done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2}


@both_ways
async def test_ollama_reply_with_reasoning_and_calls(server: Server, stream: bool) -> None:
    calls = [{"function": {"name": "look", "arguments": {"x": 1}}}, {"function": {"name": "look", "arguments": "{}"}}]
    body_text = {"role": "assistant", "content": "Use <think> here.", "thinking": "Hm.", "tool_calls": calls}
    whole = [ollama(body_text, **OLLAMA_END)]
    pieces = [
        ollama({"content": "", "thinking": "Hm"}, done=False),
        ollama({"content": "Use <think>", "thinking": "."}, done=False),
        ollama({"content": " here.", "tool_calls": calls}, done=False),
        ollama({"content": ""}, **OLLAMA_END),
    ]
    reply = await server.ask("ollama_chat", lines(*(pieces if stream else whole)), stream=stream)

    assert (reply.text, reply.reasoning, reply.finish) == ("Use <think> here.", "Hm.", Finish.TOOL_CALLS)
    assert reply.tool_calls == (ToolCall("call_1", "look", {"x": 1}), ToolCall("call_2", "look", {}))
    assert (reply.usage, reply.model) == (Usage(3, 2), "llama3.2")
    assert "".join(server.pieces) == (reply.text if stream else "")


@both_ways
@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": [{"type": "text", "text": "Hello"}]}, "Hello"),
        ({"content": 42}, "42"),
        ({"content": None}, ""),
        ({}, ""),
        ({"content": "<think>Hm.</think>Hello"}, "Hello"),
        ({"content": "Hello", "tool_calls": [None, {"function": None}, 7]}, "Hello"),
        ("Hello", "Hello"),
    ],
)
async def test_ollama_reply_of_any_type(server: Server, message: Any, text: str, stream: bool) -> None:
    body = ollama(message, done_reason=7, prompt_eval_count="3", eval_count=-1)
    reply = await server.ask("ollama_chat", lines(body), stream=stream)

    assert (reply.text, reply.finish, reply.usage.exact) == (text, Finish.OTHER, False)


@both_ways
@pytest.mark.parametrize("body", [{}, ollama(None), ollama([]), ollama(7), {"done": True}, [], 7, "x", "", None])
async def test_ollama_reply_without_a_message_is_bad(server: Server, body: Any, stream: bool) -> None:
    assert (await server.failure("ollama_chat", lines(body), stream=stream)).kind is ModelErrorKind.BAD_REPLY


def message(*content: Any, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 4}
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": list(content)}
    return {**whole, "stop_reason": "end_turn", "usage": usage, **more}


def streamed(*content: dict[str, Any], **more: Any) -> str:
    """A stream of a message's blocks, each of them in one delta."""
    whole = message(**more)
    bodies: list[dict[str, Any]] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for index, block in enumerate(content):
        kind = block.get("type")
        empty: dict[str, Any] = {**block, "text": "", "thinking": "", "input": {}}
        delta = {
            "text": {"type": "text_delta", "text": block.get("text")},
            "thinking": {"type": "thinking_delta", "thinking": block.get("thinking")},
            "tool_use": {"type": "input_json_delta", "partial_json": json.dumps(block.get("input"))},
        }.get(str(kind), {})
        bodies.append({"type": "content_block_start", "index": index, "content_block": empty})
        bodies.append({"type": "content_block_delta", "index": index, "delta": delta})
        bodies.append({"type": "content_block_stop", "index": index})
    bodies.append({"type": "ping"})
    bodies.append({"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": whole["usage"]})
    return events(*bodies, {"type": "message_stop"})


@both_ways
async def test_anthropic_reply_with_reasoning_and_calls(server: Server, stream: bool) -> None:
    blocks: tuple[dict[str, Any], ...] = (
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Hel"},
        {"type": "text", "text": "lo"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"x": 1}},
        {"type": "tool_use", "id": "a", "name": "look", "input": {}},
    )
    body_text = (
        streamed(*blocks, stop_reason="tool_use") if stream else json.dumps(message(*blocks, stop_reason="tool_use"))
    )
    reply = await server.ask("anthropic", body_text, stream=stream)

    assert (reply.text, reply.reasoning, reply.finish) == ("Hello", "Hm.", Finish.TOOL_CALLS)
    assert reply.tool_calls == (ToolCall("a", "look", {"x": 1}), ToolCall("a_2", "look", {}))
    assert (reply.usage, reply.model) == (Usage(7, 2), "claude")
    assert "".join(server.pieces) == ("Hello" if stream else "")


@both_ways
async def test_structured_reply_as_a_call_becomes_the_text(server: Server, stream: bool) -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "json_tool_call", "input": {"a": 1}}
    body_text = (
        streamed(block, stop_reason="tool_use") if stream else json.dumps(message(block, stop_reason="tool_use"))
    )
    reply = await server.ask("anthropic", body_text, stream=stream, request=STRUCTURED)

    assert (reply.text, reply.tool_calls, reply.finish) == ('{"a":1}', (), Finish.STOP)


@both_ways
async def test_anthropic_refusal_is_a_content_filter(server: Server, stream: bool) -> None:
    blocks: tuple[dict[str, Any], ...] = ({"type": "text", "text": "I"},)
    body_text = (
        streamed(*blocks, stop_reason="refusal") if stream else json.dumps(message(*blocks, stop_reason="refusal"))
    )

    assert (await server.ask("anthropic", body_text, stream=stream)).finish is Finish.CONTENT_FILTER


@both_ways
@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"content": "Hello"}, "Hello"),
        ({"content": []}, ""),
        ({"content": [None, 7, {"type": "text", "text": 42}]}, "42"),
        (
            {"content": [{"type": "text", "text": "Hello"}], "usage": {"input_tokens": "3", "output_tokens": None}},
            "Hello",
        ),
        ({"content": [{"type": "text", "text": "Hello"}], "stop_reason": 7, "model": None, "usage": 7}, "Hello"),
    ],
)
async def test_anthropic_reply_of_any_type(server: Server, more: Any, text: str, stream: bool) -> None:
    body = message(**more)
    body_text = events({"type": "message_start", "message": body}) if stream else json.dumps(body)

    assert (await server.ask("anthropic", body_text, stream=stream)).text == text


@both_ways
@pytest.mark.parametrize("body", [{}, {"type": "message", "content": None}, {"type": "message_start"}, [], 7, None])
async def test_anthropic_reply_without_content_is_bad(server: Server, body: Any, stream: bool) -> None:
    body_text = f"data: {json.dumps(body)}\n\n" if stream else json.dumps(body)

    assert (await server.failure("anthropic", body_text, stream=stream)).kind is ModelErrorKind.BAD_REPLY


@both_ways
@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("ollama_chat", {"error": "model 'x' not found"}, ModelErrorKind.NOT_FOUND),
        ("ollama_chat", {"error": "out of memory"}, ModelErrorKind.SERVER),
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}},
            ModelErrorKind.SERVER,
        ),
        ("anthropic", {"type": "error", "error": {"type": "rate_limit_error"}}, ModelErrorKind.RATE_LIMIT),
    ],
)
async def test_errors_with_a_success_status_are_errors(
    server: Server, kind: str, body: Any, expected: ModelErrorKind, stream: bool
) -> None:
    body_text = events(body) if stream and kind == "anthropic" else lines(body)

    assert (await server.failure(kind, body_text, stream=stream)).kind is expected


async def test_error_in_the_middle_interrupts_the_reply(server: Server) -> None:
    first = ollama({"content": "Half"}, done=False)
    error = await server.failure("ollama_chat", lines(first, {"error": "out of memory"}), stream=True)

    assert (error.kind, error.partial) == (ModelErrorKind.INTERRUPTED, "Half")


def test_anthropic_streams_work_on_every_event_loop(wire: WireServer) -> None:
    body_text = streamed({"type": "text", "text": "Hello"})
    wire.reply = lambda _body: body_text

    async def ask() -> str:
        address = wire.base_url.removesuffix("/v1")
        model = LiteLLMModel("anthropic/verbatim", api_base=address, keys=Keys({}), environment={})
        try:
            return (await model.complete(ASKED, lambda _text: None)).text
        finally:
            await model.close()

    assert [asyncio.run(ask()) for _ in range(3)] == ["Hello"] * 3
