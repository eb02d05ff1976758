"""Each quirk, against a server that behaves like that; a quirk without a scenario fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from engine.models.protocol import Finish, Message, ModelError, ModelErrorKind, Reply, Request, ToolDefinition
from engine.models.quirks import QUIRKS, Change
from tests.engine.models.litellm_fixtures import QUESTION, MakeModel, make_model_fixture
from tests.engine.models.test_reply_shapes import completion, message
from tests.engine.wire.behaviors import REPLY, Behavior, Body, picky, refusing
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

Kind = ModelErrorKind
ALL = list(itertools.chain(*QUIRKS.values()))
TOOL = ToolDefinition("look", "Looks.", {"type": "object", "properties": {}})
Outcome = Reply | ModelError


@dataclass(frozen=True)
class Scenario:
    """A server, a request, and the check of the outcome."""

    server: Behavior
    holds: Callable[[Outcome], bool]
    request: Request = QUESTION
    stream: bool = False


def refused(words: Any, refuses: Callable[[Body], bool], named: str, status: int = 400, **settings: Any) -> Scenario:
    """A server that refuses part of a request: it gets the rest, and the reply carries a warning."""
    stream = settings.pop("stream", False)

    def holds(outcome: Outcome) -> bool:
        return isinstance(outcome, Reply) and outcome.text == REPLY and [named in w for w in outcome.warnings] == [True]

    server = picky(lambda body: words if refuses(body) else None, status)
    return Scenario(server, holds, replace(QUESTION, **settings), stream)


def without(name: str, named: str, **settings: Any) -> Scenario:
    return refused(f"Unsupported parameter: '{name}' is not supported.", lambda body: name in body, named, **settings)


def failing(status: int, body: Any, kind: Kind, *expected: str, content_type: str = "application/json") -> Scenario:
    def holds(outcome: Outcome) -> bool:
        return (
            isinstance(outcome, ModelError) and outcome.kind is kind and all(word in str(outcome) for word in expected)
        )

    return Scenario(refusing(status, body, content_type), holds)


def waiting(seconds: float, body: Any) -> Scenario:
    return Scenario(
        refusing(429, body),
        lambda outcome: isinstance(outcome, ModelError) and outcome.retryable and outcome.retry_after == seconds,
    )


def replying(message: Any, *holds: Callable[[Reply], bool], stream: bool = False, **more: Any) -> Scenario:
    is_call = isinstance(message, dict) and message.keys() & {"tool_calls", "function_call"}
    request = replace(QUESTION, tools=(TOOL,)) if is_call else QUESTION
    body = completion(message, **more)
    return Scenario(
        refusing(200, body),
        lambda outcome: isinstance(outcome, Reply) and all(check(outcome) for check in holds),
        request,
        stream,
    )


def text_is(text: str) -> Callable[[Reply], bool]:
    return lambda reply: reply.text == text


def alternates(body: Body) -> bool:
    roles = [message["role"] for message in body["messages"]]
    return "user,user" not in ",".join(roles)


CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": {"at": 1}}}
TALK = (*QUESTION.messages, Message("user", "And then?"))
ONLY_OBJECT = "'response_format.type' must be 'json_object' or 'text'"

SCENARIOS: dict[str, Scenario] = {
    "no_system_role": refused(
        "System role not supported", lambda body: body["messages"][0]["role"] == "system", "system message"
    ),
    "joined_roles": refused(
        "Conversation roles must alternate user/assistant/user/assistant/...",
        lambda body: not alternates(body),
        "same role",
        messages=TALK,
    ),
    "max_completion_tokens": refused(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        lambda body: "max_tokens" in body,
        "max_completion_tokens",
        max_tokens=9,
    ),
    "max_tokens": refused(
        "Unrecognized request argument supplied: max_completion_tokens",
        lambda body: "max_tokens" not in body or "max_completion_tokens" in body,
        "expects `max_tokens`",
        max_tokens=9,
    ),
    "no_stream_options": without("stream_options", "streamed reply", stream=True),
    "no_stream": refused(
        "'stream' does not support true with this model.", lambda body: bool(body.get("stream")), "stream", stream=True
    ),
    "no_seed": without("seed", "Seed", seed=1),
    "no_top_p": without("top_p", "Top P", top_p=0.5),
    "no_stop": without("stop", "Stop sequences", stop=("x",)),
    "no_temperature": without("temperature", "Temperature", temperature=0.3),
    "no_reasoning_effort": without("reasoning_effort", "Reasoning effort", reasoning_effort="low"),
    "tools_in_words": without("tools", "tools", tools=(TOOL,)),
    "json_object": refused(
        ONLY_OBJECT,
        lambda body: body.get("response_format", {}).get("type") == "json_schema",
        "JSON Schema",
        schema={"type": "object"},
    ),
    "schema_in_words": without("response_format", "JSON reply", schema={"type": "object"}),
    "error_text": failing(400, {"error": "odd text"}, Kind.BAD_REQUEST, "odd text"),
    "error_message": failing(500, [{"error": {"message": "odd message"}}], Kind.SERVER, "odd message"),
    "error_detail": failing(
        422, {"detail": [{"loc": ["body", "n"], "msg": "is odd"}]}, Kind.BAD_REQUEST, "n: is odd", "refused"
    ),
    "error_plain_message": failing(400, {"errors": [{"message": "one"}, "two"]}, Kind.BAD_REQUEST, "one; two"),
    "error_behind_gateway": failing(
        502,
        {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error": {"message": "Too hot"}}'}}},
        Kind.SERVER,
        "Provider returned error",
        "Too hot",
    ),
    "error_page": failing(
        502,
        "<html><title>502 Bad Gateway</title><p>nginx</p></html>",
        Kind.SERVER,
        ": 502 Bad",
        content_type="text/html",
    ),
    "error_in_success": failing(200, {"error": {"message": "Slow down", "code": 429}}, Kind.RATE_LIMIT, "Slow down"),
    "context_length_anywhere": failing(
        500, {"error": {"message": "Context size has been exceeded."}}, Kind.CONTEXT_LENGTH, "append_window"
    ),
    "tokens_per_minute": failing(
        429, {"error": {"message": "Request too large for x on tokens per min (TPM): Limit 9"}}, Kind.CONTEXT_LENGTH
    ),
    "quota_that_passes": waiting(
        37.5, {"error": {"message": "You exceeded your current quota. Please retry in 37.5s."}}
    ),
    "no_credit_in_any_status": failing(
        400, {"error": {"message": "Your credit balance is too low"}}, Kind.UNAVAILABLE, "no credit left"
    ),
    "wrong_key_in_bad_request": failing(
        400, {"error": {"message": "API key not valid. Please pass a valid API key."}}, Kind.AUTHENTICATION
    ),
    "unknown_model_in_bad_request": failing(400, {"error": {"message": "Model Not Exist"}}, Kind.NOT_FOUND, "Exist"),
    "wait_in_body": waiting(1.5, {"error": {"message": "Rate limit reached. Please try again in 1.5s."}}),
    "content_parts": replying(
        message([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]), text_is("Hello")
    ),
    "think_tags": replying(
        message("<think>Hm.</think>Hello"), text_is("Hello"), lambda reply: reply.reasoning.strip() == "Hm."
    ),
    "reasoning_field": replying(
        message(reasoning_content="Hm."), text_is("Hello"), lambda reply: reply.reasoning == "Hm."
    ),
    "no_finish_reason": replying(message(), text_is("Hello"), lambda reply: reply.finish is Finish.STOP, finish=None),
    "finish_spelling": replying(message(), lambda reply: reply.finish is Finish.LENGTH, finish="MAX_TOKENS"),
    "odd_usage": replying(
        message(), lambda reply: not reply.usage.exact, usage={"prompt_tokens": "many", "completion_tokens": None}
    ),
    "refusal": replying(
        message(None, refusal="I will not."), text_is(""), lambda reply: reply.refusal == "I will not."
    ),
    "tool_arguments": replying(
        message(None, tool_calls=[CALL]), lambda reply: reply.tool_calls[0].arguments == {"at": 1}
    ),
    "function_call": replying(
        message(None, function_call={"name": "look", "arguments": '{"at": 1}'}),
        lambda reply: reply.tool_calls[0].arguments == {"at": 1},
    ),
    "whole_reply_to_stream": replying(message(), text_is("Hello"), stream=True),
}
MODELS = {"max_tokens": "openai/o3-mini"}
"""Models for the quirks that depend on the name of the model."""


@pytest.mark.parametrize("quirk", ALL, ids=lambda quirk: quirk.id)
async def test_quirk_is_handled(wire: WireServer, make_model: MakeModel, quirk: Any) -> None:
    scenario = SCENARIOS[quirk.id]
    name = MODELS.get(quirk.id, "openai/odd")
    wire.own[name.partition("/")[2]] = scenario.server

    outcome: Outcome
    try:
        outcome = await make_model(name).complete(scenario.request, (lambda _text: None) if scenario.stream else None)
    except ModelError as error:
        outcome = error

    assert scenario.holds(outcome), outcome


def test_quirks_are_unique_and_cover_every_change() -> None:
    ids = [quirk.id for quirk in ALL]

    assert len(ids) == len(set(ids))
    assert {change.value for change in Change} == {quirk.id for quirk in QUIRKS["request"]}
    assert set(SCENARIOS) == set(ids)
