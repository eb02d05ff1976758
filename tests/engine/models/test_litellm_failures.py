"""Network and server failures, and their error messages."""

from __future__ import annotations

import socket

import pytest

from engine.models.protocol import ModelErrorKind, Request
from tests.engine.models.litellm_fixtures import QUESTION, SECRET, MakeModel, failure_of, make_model_fixture
from tests.engine.wire.behaviors import PARTIAL_REPLY, RETRY_AFTER_S
from tests.engine.wire.server import WireServer
from tests.wording import mentions

__all__ = ["make_model_fixture"]

Kind = ModelErrorKind
EITHER_WAY = [
    ("unauthorized", Kind.AUTHENTICATION, "HOST refused the key: … Bearer …."),
    ("forbidden", Kind.AUTHENTICATION, "HOST does not allow … : Your country is not supported."),
    ("not-found", Kind.NOT_FOUND, "HOST does not know … 'not-found': The model does not exist."),
    (
        "bad-request",
        Kind.BAD_REQUEST,
        "HOST refused the request: temperature must be at most 2 (Bearer …).",
    ),
    (
        "rate-limited",
        Kind.RATE_LIMIT,
        "HOST … no more requests … 7 s: Slow down.",
    ),
    (
        "quota",
        Kind.UNAVAILABLE,
        "HOST … no credit … : You exceeded your current quota.",
    ),
    (
        "context-length",
        Kind.CONTEXT_LENGTH,
        "request is longer … 'context-length' … HOST … : This model's maximum context length is 8192 tokens.",
    ),
    (
        "content-filter",
        Kind.CONTENT_FILTER,
        "content filter … HOST refused … : The response was filtered due to the prompt",
    ),
    ("server-error", Kind.SERVER, "HOST … internal error: Something broke."),
    ("overloaded", Kind.SERVER, "HOST … internal error: Overloaded."),
    ("html", Kind.BAD_REPLY, "HOST sent … not a model's reply."),
    ("not-json", Kind.BAD_REPLY, "HOST sent … not a model's reply."),
    ("no-choices", Kind.BAD_REPLY, "HOST sent … not a model's reply."),
    ("reset", Kind.CONNECTION, "HOST closed the connection"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("behavior", "kind", "parts"), EITHER_WAY)
async def test_each_failure_has_a_kind_and_a_sentence(
    wire: WireServer, make_model: MakeModel, behavior: str, kind: Kind, parts: str, stream: bool
) -> None:
    error = await failure_of(make_model(behavior), stream=stream)

    assert error.kind == kind
    assert mentions(error.message, parts.replace("HOST", wire.host)), error.message
    assert error.message.endswith(".")
    assert error.remedy.endswith(".")
    assert error.partial == ""
    assert SECRET not in f"{error} {error!r} {error.__cause__!r}"
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert len(wire.requests) == 1


@pytest.mark.parametrize(("behavior", "seconds"), [("rate-limited", RETRY_AFTER_S), ("overloaded", RETRY_AFTER_S)])
@pytest.mark.parametrize("stream", [False, True])
async def test_retry_delay_is_passed_on(make_model: MakeModel, behavior: str, seconds: float, stream: bool) -> None:
    error = await failure_of(make_model(behavior), stream=stream)

    assert error.retry_after == seconds


@pytest.mark.parametrize("behavior", ["cut", "error-in-stream"])
async def test_interrupted_stream_keeps_the_partial_text(make_model: MakeModel, behavior: str) -> None:
    error = await failure_of(make_model(behavior), stream=True)

    assert (error.kind, error.partial) == (Kind.INTERRUPTED, PARTIAL_REPLY)
    ending = ": The worker died." if behavior == "error-in-stream" else "."
    assert error.message.endswith(f" its reply{ending}")


async def test_interrupted_whole_reply_is_a_connection_error(make_model: MakeModel) -> None:
    assert (await failure_of(make_model("cut"))).kind is Kind.CONNECTION


async def test_missing_server_is_a_connection_error(make_model: MakeModel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    model = make_model("plain", api_base=f"http://127.0.0.1:{port}/v1")

    error = await failure_of(model)

    assert error.kind is Kind.CONNECTION
    assert error.message == f"The server at 127.0.0.1:{port} could not be reached."


@pytest.mark.parametrize("stream", [False, True])
async def test_schema_refused_in_every_form_is_a_bad_request(make_model: MakeModel, stream: bool) -> None:
    request = Request(QUESTION.messages, schema={"type": "object"})

    error = await failure_of(make_model("bad-request"), request, stream=stream)

    assert error.kind is Kind.BAD_REQUEST


async def test_unknown_provider_is_not_found(make_model: MakeModel) -> None:
    error = await failure_of(make_model("nobody/gpt"))

    assert error.kind is Kind.NOT_FOUND
    assert mentions(error.message, "nobody does not know … 'gpt'"), error.message


async def test_only_the_server_is_contacted(wire: WireServer, make_model: MakeModel, loopback_only: list[str]) -> None:
    await make_model("plain").complete(QUESTION)
    await make_model("no-usage").complete(QUESTION, lambda _text: None)
    await failure_of(make_model("unauthorized"))
    await make_model("openai/gpt-4o-mini").price()

    assert loopback_only == []
    assert len(wire.requests) == 3
