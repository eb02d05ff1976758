"""Error texts of servers reach the person, through every client of litellm."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest

from engine.models.protocol import ModelErrorKind
from engine.nodes.loop import LoopConfig
from engine.nodes.model_calls import ModelFields
from tests.engine.models.litellm_fixtures import SECRET, MakeModel, failure_of, make_model_fixture
from tests.engine.wire.behaviors import refusing
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

Kind = ModelErrorKind
JSON, HTML, TEXT = "application/json", "text/html", "text/plain"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ["openai", "hosted_vllm", "mistral", "ollama_chat", "anthropic", "cohere"])
@pytest.mark.parametrize(
    ("status", "body", "content_type", "kind", "expected"),
    [
        (400, {"error": "odd text"}, JSON, Kind.BAD_REQUEST, "odd text"),
        (400, {"error": {"message": "odd message"}}, JSON, Kind.BAD_REQUEST, "odd message"),
        (422, {"detail": [{"loc": ["body", "x"], "msg": "odd", "type": "y"}]}, JSON, Kind.BAD_REQUEST, "x: odd"),
        (500, {"detail": "odd detail"}, JSON, Kind.SERVER, "odd detail"),
        (500, {"errors": ["odd", "and even"]}, JSON, Kind.SERVER, "odd; and even"),
        (502, "<html><title>502 Bad Gateway</title><p>x</p></html>", HTML, Kind.SERVER, "502 Bad Gateway"),
        (400, "odd words\nof a proxy", TEXT, Kind.BAD_REQUEST, "odd words of a proxy"),
        (503, "", TEXT, Kind.SERVER, "HTTP 503 Service Unavailable"),
        (413, "", TEXT, Kind.CONTEXT_LENGTH, f"HTTP 413 {HTTPStatus(413).phrase}"),
        (
            500,
            {"error": "the input length exceeds the context length"},
            JSON,
            Kind.CONTEXT_LENGTH,
            "exceeds the context",
        ),
        (402, {"error": {"message": "Insufficient Balance"}}, JSON, Kind.UNAVAILABLE, "Insufficient Balance"),
    ],
)
async def test_message_quotes_the_server(
    wire: WireServer,
    make_model: MakeModel,
    provider: str,
    status: int,
    body: Any,
    content_type: str,
    kind: Kind,
    expected: str,
    stream: bool,
) -> None:
    wire.own["odd"] = refusing(status, body, content_type)
    base = wire.base_url if provider in {"openai", "hosted_vllm", "mistral"} else wire.base_url.removesuffix("/v1")

    error = await failure_of(make_model(f"{provider}/odd", api_base=base), stream=stream)

    assert error.kind is kind
    assert expected in error.message
    assert "<" not in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize("stream", [False, True])
async def test_keys_are_redacted_and_long_messages_truncated(
    wire: WireServer, make_model: MakeModel, stream: bool
) -> None:
    wire.own["odd"] = refusing(400, {"detail": f"Key {SECRET} is odd. " + "very " * 500})

    error = await failure_of(make_model("odd"), stream=stream)

    assert SECRET not in str(error)
    assert len(error.message) < 400
    assert error.message.endswith("….")


async def test_too_long_request_names_the_settings_that_shorten_it(wire: WireServer, make_model: MakeModel) -> None:
    wire.own["odd"] = refusing(413, "")

    error = await failure_of(make_model("odd"))

    fields = [LoopConfig.model_fields["append_window"], LoopConfig.model_fields["memory"]]
    fields.append(ModelFields.model_fields["max_tokens"])
    assert [field.title for field in fields if f"'{field.title}'" not in error.remedy] == []
    assert [name for name in ("append_window", "memory", "max_tokens") if f"`{name}`" not in error.remedy] == []


@pytest.mark.parametrize("stream", [False, True])
async def test_retry_delay_is_read_from_the_body(wire: WireServer, make_model: MakeModel, stream: bool) -> None:
    wire.own["odd"] = refusing(429, {"error": {"message": "Rate limit reached. Please try again in 1.5s."}})

    error = await failure_of(make_model("odd"), stream=stream)

    assert (error.kind, error.retry_after) == (Kind.RATE_LIMIT, 1.5)
