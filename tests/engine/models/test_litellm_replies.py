"""Replies of real models, over a real connection to a server on loopback."""

from __future__ import annotations

import dataclasses
import json

import pytest

from engine.models.protocol import Finish, Message, Request, Usage
from tests.engine.models.litellm_fixtures import QUESTION, SECRET, MakeModel, make_model_fixture
from tests.engine.wire.behaviors import HUGE_REPLY_CHARACTERS, PARTIAL_REPLY, REPLY, STRUCTURED_REPLY
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

SCHEMA = {
    "type": "object",
    "properties": {"branch": {"type": "string"}, "reason": {"type": "string"}},
    "required": ["branch", "reason"],
    "additionalProperties": False,
}
STRUCTURED = Request((Message("user", "Where to?"),), schema=SCHEMA)  # type: ignore[arg-type]


async def test_plain_call_returns_text_finish_usage_and_model(wire: WireServer, make_model: MakeModel) -> None:
    reply = await make_model("plain").complete(QUESTION)

    assert (reply.text, reply.finish, reply.model) == (REPLY, Finish.STOP, "plain")
    assert reply.usage == Usage(11, 5, exact=True)
    assert reply.cost_usd is None
    assert wire.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert wire.requests[0].body["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "What is up?"},
    ]


async def test_stream_emits_pieces_and_returns_the_whole_text(wire: WireServer, make_model: MakeModel) -> None:
    pieces: list[str] = []

    reply = await make_model("stream").complete(QUESTION, pieces.append)

    assert len(pieces) > 1
    assert "".join(pieces) == reply.text == REPLY
    assert (reply.finish, reply.usage) == (Finish.STOP, Usage(11, 5, exact=True))
    assert wire.requests[0].body["stream_options"] == {"include_usage": True}


async def test_only_given_sampling_parameters_are_sent(wire: WireServer, make_model: MakeModel) -> None:
    model = make_model("plain")

    await model.complete(QUESTION)
    await model.complete(dataclasses.replace(QUESTION, temperature=0.5, max_tokens=7, seed=3))

    assert not {"temperature", "max_tokens", "seed", "response_format"} & set(wire.requests[0].body)
    assert {name: wire.requests[1].body[name] for name in ("temperature", "max_tokens", "seed")} == {
        "temperature": 0.5,
        "max_tokens": 7,
        "seed": 3,
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_missing_usage_is_an_estimate(make_model: MakeModel, stream: bool) -> None:
    reply = await make_model("no-usage").complete(QUESTION, (lambda _text: None) if stream else None)

    # "Be short.What is up?" and REPLY have 20 characters each: four to a token.
    assert (reply.text, reply.usage) == (REPLY, Usage(5, 5, exact=False))


@pytest.mark.parametrize("stream", [False, True])
async def test_reply_truncated_by_max_tokens_has_finish_length(make_model: MakeModel, stream: bool) -> None:
    reply = await make_model("truncated").complete(QUESTION, (lambda _text: None) if stream else None)

    assert (reply.text, reply.finish) == (PARTIAL_REPLY, Finish.LENGTH)


@pytest.mark.parametrize("stream", [False, True])
async def test_huge_reply_arrives_whole(make_model: MakeModel, stream: bool) -> None:
    reply = await make_model("huge").complete(QUESTION, (lambda _text: None) if stream else None)

    assert len(reply.text) == HUGE_REPLY_CHARACTERS
    assert set(reply.text) == {"x"}


@pytest.mark.parametrize("stream", [False, True])
async def test_schema_is_sent_as_strict(wire: WireServer, make_model: MakeModel, stream: bool) -> None:
    reply = await make_model("structured").complete(STRUCTURED, (lambda _text: None) if stream else None)

    assert json.loads(reply.text) == json.loads(STRUCTURED_REPLY)
    assert wire.requests[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
    }
    assert wire.requests[0].body["messages"] == [{"role": "user", "content": "Where to?"}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("behavior", "forms"),
    [
        ("no-schema", ["json_schema", "json_object", "json_object"]),
        ("no-response-format", ["json_schema", "json_object", None, None]),
    ],
)
async def test_simpler_schema_form_is_used_and_remembered(
    wire: WireServer, make_model: MakeModel, behavior: str, forms: list[str | None], stream: bool
) -> None:
    model = make_model(behavior)
    on_text = (lambda _text: None) if stream else None

    first = await model.complete(STRUCTURED, on_text)
    second = await model.complete(STRUCTURED, on_text)

    assert first.text == second.text == STRUCTURED_REPLY
    assert [request.body.get("response_format", {}).get("type") for request in wire.requests] == forms
    instruction = wire.requests[-1].body["messages"][0]
    assert instruction["role"] == "system"
    assert '"required":["branch","reason"]' in instruction["content"]


async def test_other_models_keep_working_when_one_is_closed(make_model: MakeModel) -> None:
    first, second = make_model("plain"), make_model("plain")
    await first.complete(QUESTION)
    await second.complete(QUESTION)

    await first.close()

    assert (await second.complete(QUESTION)).text == REPLY


def test_repr_and_note_show_no_key(make_model: MakeModel) -> None:
    model = make_model("plain", api_base="http://localhost:1/v1")

    assert repr(model) == "LiteLLMModel('openai/plain', api_base='http://localhost:1/v1')"
    assert (model.name, model.note) == ("openai/plain", "")
