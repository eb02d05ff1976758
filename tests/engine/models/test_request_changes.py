"""A server that refuses a setting, a role or a format is asked again without it; what worked is remembered."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.models.protocol import Message, ModelErrorKind, Request, ToolDefinition
from tests.engine.models.litellm_fixtures import QUESTION, MakeModel, failure_of, make_model_fixture
from tests.engine.wire.behaviors import REPLY, Body, picky, refusing
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

TOOL = ToolDefinition("look", "Looks.", {"type": "object", "properties": {}})
TALK = (*QUESTION.messages, Message("user", "And what is down?"))


def has(name: str) -> Callable[[Body], bool]:
    return lambda body: name in body


def has_role(role: str) -> Callable[[Body], bool]:
    return lambda body: any(message["role"] == role for message in body["messages"])


def neighbors(body: Body) -> bool:
    roles = [message["role"] for message in body["messages"]]
    return any(first == second for first, second in itertools.pairwise(roles))


def extra(name: str) -> Body:
    """The error of pydantic for an unknown field (vLLM, Mistral, Azure)."""
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}


SETTINGS: list[tuple[str, dict[str, Any], Callable[[Body], bool], int, Any, str]] = [
    # name, request, refused member, status and message of the server, what the warning names
    ("seed", {"seed": 1}, has("seed"), 422, extra("seed"), "Seed"),
    ("seed", {"seed": 1}, has("seed"), 400, "Unrecognized request argument supplied: seed", "Seed"),
    ("top_p", {"top_p": 0.5}, has("top_p"), 400, "Unsupported parameter: 'top_p' is not supported.", "Top P"),
    (
        "temperature",
        {"temperature": 0.3},
        has("temperature"),
        400,
        "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) is supported.",
        "Temperature",
    ),
    (
        "temperature",
        {"temperature": 0.3},
        has("temperature"),
        400,
        "`temperature` is deprecated for this model.",
        "Temp",
    ),
    (
        "temperature",
        {"temperature": 0.3},
        has("temperature"),
        400,
        "invalid temperature: only 1 is allowed for this model",
        "Temperature",
    ),
    (
        "temperature",
        {"temperature": 0.3, "reasoning_effort": "low"},
        has("temperature"),
        400,
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
        "Temperature",
    ),
    (
        "top_p",
        {"top_p": 0.5, "reasoning_effort": "low"},
        has("top_p"),
        400,
        "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.",
        "Top P",
    ),
    ("stop", {"stop": ("END",)}, has("stop"), 400, "Unsupported parameter: 'stop' is not supported here.", "Stop"),
    (
        "reasoning_effort",
        {"reasoning_effort": "low"},
        has("reasoning_effort"),
        400,
        {"error": {"message": "Unknown", "param": "reasoning_effort", "code": "unsupported_parameter"}},
        "Reasoning effort",
    ),
    (
        "max_completion_tokens",
        {"max_tokens": 9},
        has("max_tokens"),
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "max_completion_tokens",
    ),
    ("max_completion_tokens", {"max_tokens": 9}, has("max_tokens"), 422, extra("max_tokens"), "max_completion_tokens"),
    (
        "system role",
        {},
        has_role("system"),
        400,
        {"object": "error", "message": "System role not supported", "type": "BadRequestError", "code": 400},
        "system message",
    ),
    ("system role", {}, has_role("system"), 500, "jinja2.TemplateError: System role not supported", "system message"),
    ("system role", {}, has_role("system"), 400, "Developer instruction is not enabled for models/gemma", "system"),
    (
        "system role",
        {},
        has_role("system"),
        400,
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "system message",
    ),
    (
        "roles",
        {"messages": TALK},
        neighbors,
        400,
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        "same role",
    ),
    ("tools", {"tools": (TOOL,)}, has("tools"), 400, "registry.ollama.ai/library/x does not support tools", "tools"),
    ("tools", {"tools": (TOOL,)}, has("tools"), 400, "Function calling is not enabled for models/gemma-3", "tools"),
    ("tools", {"tools": (TOOL,)}, has("tools"), 500, "tools param requires --jinja flag", "tools"),
    ("tools", {"tools": (TOOL,)}, has("tools"), 404, "No endpoints found that support tool use.", "tools"),
    (
        "tools",
        {"tools": (TOOL,)},
        has("tools"),
        400,
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools",
    ),
    (
        "response_format",
        {"schema": {"type": "object"}},
        has("response_format"),
        400,
        "This response_format type is unavailable now",
        "JSON",
    ),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "settings", "refuses", "status", "words", "named"), SETTINGS)
async def test_refused_setting_is_omitted_or_replaced(
    wire: WireServer,
    make_model: MakeModel,
    name: str,
    settings: dict[str, Any],
    refuses: Callable[[Body], bool],
    status: int,
    words: Any,
    named: str,
    stream: bool,
) -> None:
    wire.own["odd"] = picky(lambda body: words if refuses(body) else None, status)
    model, request = make_model("odd"), replace(QUESTION, **settings)
    on_text = (lambda _text: None) if stream else None

    first = await model.complete(request, on_text)
    needed = len(wire.requests)
    second = await model.complete(request, on_text)

    assert first.text == second.text == REPLY
    assert not refuses(wire.requests[-1].body)
    assert len(wire.requests) == needed + 1, "what worked is remembered"
    assert len(first.warnings) == 1, name
    assert named in first.warnings[0]
    assert wire.host in first.warnings[0]
    sent = "".join(message["content"] for message in wire.requests[-1].body["messages"])
    assert "Be short." in sent
    assert "What is up?" in sent


async def test_accepted_settings_are_sent(wire: WireServer, make_model: MakeModel) -> None:
    request = replace(
        QUESTION,
        temperature=0.3,
        top_p=0.5,
        stop=("END", "\n"),
        seed=4,
        reasoning_effort="low",
        max_tokens=9,
        extra_parameters={"top_k": 40, "nested": {"a": [1]}},
    )

    reply = await make_model("plain").complete(request)

    body = wire.requests[0].body
    assert {name: body[name] for name in ("temperature", "top_p", "stop", "seed", "max_tokens")} == {
        "temperature": 0.3,
        "top_p": 0.5,
        "stop": ["END", "\n"],
        "seed": 4,
        "max_tokens": 9,
    }
    assert (body["reasoning_effort"], body["top_k"], body["nested"]) == ("low", 40, {"a": [1]})
    assert reply.warnings == ()


@pytest.mark.parametrize("name", ["openai/o3", "openai/gpt-5"])
async def test_setting_refused_by_litellm_is_omitted_too(wire: WireServer, make_model: MakeModel, name: str) -> None:
    wire.own[name.partition("/")[2]] = picky(lambda body: "no temperature" if "temperature" in body else None)

    reply = await make_model(name).complete(replace(QUESTION, temperature=0.3))

    assert (reply.text, len(wire.requests)) == (REPLY, 1)
    assert "Temperature" in reply.warnings[0]


async def test_server_may_expect_the_older_name_of_the_limit(wire: WireServer, make_model: MakeModel) -> None:
    refused = "Unrecognized request argument supplied: max_completion_tokens"
    wire.own["o3-mini"] = picky(lambda body: refused if "max_completion_tokens" in body else None)

    await make_model("openai/o3-mini").complete(replace(QUESTION, max_tokens=9))

    assert [request.body.get("max_tokens") for request in wire.requests] == [None, 9]


async def test_one_of_two_exclusive_settings_stays(wire: WireServer, make_model: MakeModel) -> None:
    words = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    wire.own["odd"] = picky(lambda body: words if {"temperature", "top_p"} <= set(body) else None)

    reply = await make_model("odd").complete(replace(QUESTION, temperature=0.3, top_p=0.5))

    assert wire.requests[-1].body["temperature"] == 0.3
    assert ["Top P" in warning for warning in reply.warnings] == [True]


async def test_several_refusals_in_a_row_are_handled(wire: WireServer, make_model: MakeModel) -> None:
    def refusal(body: Body) -> str | None:
        names = ("stream_options", "seed", "top_p", "stop", "response_format", "tools")
        named = next((name for name in names if name in body), None)
        if named is None and has_role("system")(body):
            return "System role not supported"
        return f"{named} is not supported" if named else None

    wire.own["odd"] = picky(refusal)
    request = replace(QUESTION, seed=1, top_p=0.5, stop=("x",), schema={"type": "object"}, tools=(TOOL,))

    reply = await make_model("odd").complete(request, lambda _text: None)

    assert reply.text == REPLY
    assert len(reply.warnings) == 7
    assert len(wire.requests) == 9  # JSON Schema, JSON object, words: one more


@pytest.mark.parametrize("stream", [False, True])
async def test_refused_token_counts_of_streams_are_estimated(
    wire: WireServer, make_model: MakeModel, stream: bool
) -> None:
    wire.own["odd"] = picky(lambda body: extra("stream_options") if "stream_options" in body else None, 422)

    reply = await make_model("odd").complete(QUESTION, (lambda _text: None) if stream else None)

    assert reply.usage.exact is not stream
    assert len(reply.warnings) == stream


async def test_server_without_streaming_sends_whole_replies(wire: WireServer, make_model: MakeModel) -> None:
    words = "Unsupported value: 'stream' does not support true with this model."
    wire.own["odd"] = picky(lambda body: words if body.get("stream") else None)
    pieces: list[str] = []

    reply = await make_model("odd").complete(QUESTION, pieces.append)

    assert (reply.text, pieces) == (REPLY, [REPLY])
    assert "does not stream" in reply.warnings[0]


@pytest.mark.parametrize("stream", [False, True])
async def test_server_that_refuses_everything_is_given_up(
    wire: WireServer, make_model: MakeModel, stream: bool
) -> None:
    everything = (
        "Not supported: stream, stream_options, max_tokens, max_completion_tokens, seed, top_p, stop, thinking, "
    )
    everything += "temperature, tools, response_format, json_schema, system role; roles must alternate."
    wire.own["odd"] = refusing(400, {"error": {"message": everything}})
    request = Request(TALK, 0.3, 9, {"type": "object"}, 1, "", (TOOL,), 0.5, ("x",), "low")

    error = await failure_of(make_model("odd"), request, stream=stream)

    assert error.kind is ModelErrorKind.BAD_REQUEST
    assert "Not supported: stream" in error.message
    assert len(wire.requests) == (14 if stream else 12)


@pytest.mark.parametrize(
    "words",
    [
        "temperature must be between 0 and 1",
        "seed is too large",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "stop: at most 4 sequences",
        "Something else is not supported",
    ],
)
async def test_invalid_value_stays_a_bad_request(wire: WireServer, make_model: MakeModel, words: str) -> None:
    wire.own["odd"] = refusing(400, {"error": {"message": words}})
    request = replace(QUESTION, temperature=1.5, seed=1, max_tokens=100_000, stop=("a",))

    error = await failure_of(make_model("odd"), request)

    assert (error.kind, len(wire.requests)) == (ModelErrorKind.BAD_REQUEST, 1)
    assert words in error.message


async def test_unsuccessful_changes_are_not_remembered(wire: WireServer, make_model: MakeModel) -> None:
    model = make_model("odd")
    wire.own["odd"] = refusing(400, {"error": {"message": "seed is not supported"}})
    await failure_of(model, replace(QUESTION, seed=1))
    wire.own["odd"] = picky(lambda _body: None)

    reply = await model.complete(replace(QUESTION, seed=1))

    assert wire.requests[-1].body["seed"] == 1
    assert reply.warnings == ()


async def test_concurrent_calls_adapt_independently(wire: WireServer, make_model: MakeModel) -> None:
    wire.own["odd"] = picky(lambda body: "seed is not supported" if "seed" in body else None)
    model, request = make_model("odd"), replace(QUESTION, seed=1)

    replies = await asyncio.gather(*(model.complete(request) for _ in range(4)))

    assert [len(reply.warnings) for reply in replies] == [1] * 4
    count = len(wire.requests)
    await model.complete(request)
    assert len(wire.requests) == count + 1


async def test_failure_after_the_first_text_causes_no_change(make_model: MakeModel) -> None:
    error = await failure_of(make_model("error-in-stream"), replace(QUESTION, seed=1), stream=True)

    assert error.kind is ModelErrorKind.INTERRUPTED


async def test_ollama_options_are_merged_with_settings(wire: WireServer, make_model: MakeModel) -> None:
    reply = {"model": "odd", "message": {"role": "assistant", "content": "hi"}, "done": True, "done_reason": "stop"}
    wire.own["odd"] = lambda exchange: exchange.send_json(200, reply)
    request = replace(QUESTION, temperature=0.3, max_tokens=9, extra_parameters={"options": {"num_ctx": 8192}})
    model = make_model("ollama_chat/odd", api_base=wire.base_url.removesuffix("/v1"))

    await model.complete(request)

    assert wire.requests[0].body["options"] == {"temperature": 0.3, "num_predict": 9, "num_ctx": 8192}


async def test_anthropic_accepts_only_its_own_parameters(wire: WireServer, make_model: MakeModel) -> None:
    content = [{"type": "text", "text": "hi"}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    reply = {"id": "m", "type": "message", "role": "assistant", "model": "odd", "content": content, "usage": usage}
    wire.own["odd"] = lambda exchange: exchange.send_json(200, {**reply, "stop_reason": "end_turn"})
    model = make_model("anthropic/odd", api_base=wire.base_url.removesuffix("/v1"))

    await model.complete(replace(QUESTION, extra_parameters={"top_k": 4}))
    error = await failure_of(model, replace(QUESTION, extra_parameters={"mock_response": "x"}))

    assert wire.requests[0].body["top_k"] == 4
    assert (error.kind, len(wire.requests)) == (ModelErrorKind.BAD_REQUEST, 1)
    assert "mock_response" in error.message
