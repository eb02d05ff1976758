"""Each quirk in docs/providers.md, against a server that behaves like that; one without a scenario fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.models.protocol import Finish, Message, ModelError, ModelErrorKind, Reply, Request, ToolDefinition
from engine.models.quirks import Change
from tests.engine.models.litellm_fixtures import QUESTION, MakeModel, make_model_fixture
from tests.engine.models.test_reply_shapes import completion, message
from tests.engine.wire.behaviors import REPLY, Behavior, Body, picky, refusing
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

Kind = ModelErrorKind
DOCS = Path(__file__).parents[3] / "docs"
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

SCENARIOS: dict[str, Scenario] = {  # by what the server does, as in the page
    "Refuses system messages.": refused(
        "System role not supported", lambda body: body["messages"][0]["role"] == "system", "system message"
    ),
    "Requires user and assistant messages to alternate.": refused(
        "Conversation roles must alternate user/assistant/user/assistant/...",
        lambda body: not alternates(body),
        "same role",
        messages=TALK,
    ),
    "Refuses `max_tokens` and expects `max_completion_tokens`.": refused(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        lambda body: "max_tokens" in body,
        "max_completion_tokens",
        max_tokens=9,
    ),
    "Refuses `max_completion_tokens` and expects `max_tokens`.": refused(
        "Unrecognized request argument supplied: max_completion_tokens",
        lambda body: "max_tokens" not in body or "max_completion_tokens" in body,
        "expects `max_tokens`",
        max_tokens=9,
    ),
    "Refuses `stream_options`.": without("stream_options", "streamed reply", stream=True),
    "Refuses to stream.": refused(
        "'stream' does not support true with this model.", lambda body: bool(body.get("stream")), "stream", stream=True
    ),
    "Refuses `seed`.": without("seed", "Seed", seed=1),
    "Refuses `top_p`, or `top_p` together with `temperature`.": without("top_p", "Top P", top_p=0.5),
    "Refuses `stop`.": without("stop", "Stop sequences", stop=("x",)),
    "Accepts only its default `temperature`.": without("temperature", "Temperature", temperature=0.3),
    "Refuses `reasoning_effort`.": without("reasoning_effort", "Reasoning effort", reasoning_effort="low"),
    "Refuses tools.": without("tools", "tools", tools=(TOOL,)),
    "Refuses a JSON Schema, but supports JSON mode.": refused(
        ONLY_OBJECT,
        lambda body: body.get("response_format", {}).get("type") == "json_schema",
        "JSON Schema",
        schema={"type": "object"},
    ),
    "Refuses `response_format`.": without("response_format", "JSON reply", schema={"type": "object"}),
    'Sends `{"error": "text"}`.': failing(400, {"error": "odd text"}, Kind.BAD_REQUEST, "odd text"),
    'Sends `{"error": {"message": …}}`, or a list of these.': failing(
        500, [{"error": {"message": "odd message"}}], Kind.SERVER, "odd message"
    ),
    'Sends `{"detail": …}`: a text, or one object for each wrong field.': failing(
        422, {"detail": [{"loc": ["body", "n"], "msg": "is odd"}]}, Kind.BAD_REQUEST, "n: is odd", "refused"
    ),
    'Sends `{"message": …}` or `{"errors": […]}`.': failing(
        400, {"errors": [{"message": "one"}, "two"]}, Kind.BAD_REQUEST, "one; two"
    ),
    "Wraps the real error in another one.": failing(
        502,
        {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error": {"message": "Too hot"}}'}}},
        Kind.SERVER,
        "Provider returned error",
        "Too hot",
    ),
    "Sends a web page or plain text.": failing(
        502,
        "<html><title>502 Bad Gateway</title><p>nginx</p></html>",
        Kind.SERVER,
        ": 502 Bad",
        content_type="text/html",
    ),
    "Sends an error with the status 200, or in the middle of a stream.": failing(
        200, {"error": {"message": "Slow down", "code": 429}}, Kind.RATE_LIMIT, "Slow down"
    ),
    "Reports a request that is too long with any status.": failing(
        500, {"error": {"message": "Context size has been exceeded."}}, Kind.CONTEXT_LENGTH, "append_window"
    ),
    "Reports a request that exceeds its limit of tokens per minute as a rate limit.": failing(
        429, {"error": {"message": "Request too large for x on tokens per min (TPM): Limit 9"}}, Kind.CONTEXT_LENGTH
    ),
    "Uses the same words for a limit per minute and for an account without credit.": waiting(
        37.5, {"error": {"message": "You exceeded your current quota. Please retry in 37.5s."}}
    ),
    "Reports an account without credit as 400, 402, 403 or 429.": failing(
        400, {"error": {"message": "Your credit balance is too low"}}, Kind.UNAVAILABLE, "no credit left"
    ),
    "Reports a wrong key as 400.": failing(
        400, {"error": {"message": "API key not valid. Please pass a valid API key."}}, Kind.AUTHENTICATION
    ),
    "Reports an unknown or retired model as 400 or 500.": failing(
        400, {"error": {"message": "Model Not Exist"}}, Kind.NOT_FOUND, "Exist"
    ),
    "Says in the error text how long to wait.": waiting(
        1.5, {"error": {"message": "Rate limit reached. Please try again in 1.5s."}}
    ),
    "Sends the text as a list of parts.": replying(
        message([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]), text_is("Hello")
    ),
    "Puts the model's reasoning into the text, between `<think>` tags.": replying(
        message("<think>Hm.</think>Hello"), text_is("Hello"), lambda reply: reply.reasoning.strip() == "Hm."
    ),
    "Has a separate field for reasoning: `reasoning_content`, `reasoning`, `thinking`.": replying(
        message(reasoning_content="Hm."), text_is("Hello"), lambda reply: reply.reasoning == "Hm."
    ),
    "Reports no finish reason.": replying(
        message(), text_is("Hello"), lambda reply: reply.finish is Finish.STOP, finish=None
    ),
    "Uses other values for the finish reason: `max_tokens`, `eos`, `SAFETY`.": replying(
        message(), lambda reply: reply.finish is Finish.LENGTH, finish="MAX_TOKENS"
    ),
    "Reports no token counts, or reports them as text or null.": replying(
        message(), lambda reply: not reply.usage.exact, usage={"prompt_tokens": "many", "completion_tokens": None}
    ),
    "Puts a refusal into a separate field, without text.": replying(
        message(None, refusal="I will not."), text_is(""), lambda reply: reply.refusal == "I will not."
    ),
    "Sends the arguments of a tool call as an object instead of a text.": replying(
        message(None, tool_calls=[CALL]), lambda reply: reply.tool_calls[0].arguments == {"at": 1}
    ),
    "Sends the old `function_call` instead of `tool_calls`.": replying(
        message(None, function_call={"name": "look", "arguments": '{"at": 1}'}),
        lambda reply: reply.tool_calls[0].arguments == {"at": 1},
    ),
    "Sends a whole reply although a stream was requested.": replying(message(), text_is("Hello"), stream=True),
}
MODELS = {"Refuses `max_completion_tokens` and expects `max_tokens`.": "openai/o3-mini"}
"""Models for the quirks that depend on the name of the model."""


@pytest.mark.parametrize("quirk", SCENARIOS)
async def test_quirk_is_handled(wire: WireServer, make_model: MakeModel, quirk: str) -> None:
    scenario = SCENARIOS[quirk]
    name = MODELS.get(quirk, "openai/odd")
    wire.own[name.partition("/")[2]] = scenario.server

    outcome: Outcome
    try:
        outcome = await make_model(name).complete(scenario.request, (lambda _text: None) if scenario.stream else None)
    except ModelError as error:
        outcome = error

    assert scenario.holds(outcome), outcome


def test_each_row_of_the_page_has_a_scenario_and_each_change_a_row() -> None:
    page = (DOCS / "providers.md").read_text("utf-8")
    row = re.compile(r"^\| ([A-Z].*?\.) \|", re.MULTILINE)

    assert sorted(row.findall(page)) == sorted(SCENARIOS)
    assert len(row.findall(page.partition("## Errors")[0])) == len(Change)
