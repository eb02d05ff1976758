"""Valid replies of servers, mutated at random: the outcome is always a valid `Reply` or a `ModelError`.

20,000 changed replies are read where they enter: by the hook in a real httpx client, with a transport that answers from
memory. 1,500 more go over a real connection to a server on loopback, through the adapter and litellm. A small part of
both runs with the ordinary tests.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from engine.models.keys import Keys, find_endpoint, host_variable
from engine.models.protocol import Finish, ModelError, Reply, Request, ToolCall, ToolDefinition, Usage
from engine.models.reply_hook import feed_replies_to, on_response
from engine.models.reply_parser import ReplyParser
from engine.models.server_errors import translate
from engine.values import compact_json
from tests.engine.models.litellm_fixtures import QUESTION, SECRET, MakeModel, make_model_fixture
from tests.engine.wire.server import WireServer

__all__ = ["make_model_fixture"]

SEED = 20_251_129
LOOK = ToolDefinition("look", "Looks around.", {"type": "object"})
ASKED = Request(QUESTION.messages, tools=(LOOK,))
UNCLEAN = re.compile("[\x00\ud800-\udfff]")
DEEP: Any = json.loads("[" * 60 + "]" * 60)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 1.5, 1e999, float("nan"), 10**30, 10**400, "", "7", "stop", "error", "text"),
    *("\ud83d", "a\0b", "<think>", "</think>\n", "<|channel|>", SECRET, f"x{SECRET[:9]}", "{broken", '"{}"', "[DONE]"),
    *([], {}, [None], [[]], {"a": [1]}, ["a", {"text": "b"}], {"type": "text"}, {"error": "no"}, DEEP),
)
EVENT_ENDS = ("\n", "\n\n", "\r\n\r\n")
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "cost": 0.5}


def _chunk(delta: Any, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def _openai(message: dict[str, Any], finish: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE}


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Hello"}]
ANTHROPIC = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "tool_use",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"x": 1}},
    ],
    "usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1},
}


@dataclass(frozen=True)
class Sample:
    """A valid reply: the kind of model, whether it is streamed, and its bodies."""

    kind: str
    stream: bool
    bodies: list[Any]


SAMPLES = (
    Sample("openai", False, [_openai({"content": "<think>Hm.</think>Hello", "refusal": None}, "stop")]),
    Sample("openai", False, [_openai({"content": PARTS, "reasoning_content": "Hm."}, "length")]),
    Sample("openai", False, [_openai({"content": None, "tool_calls": [CALL, {**CALL, "id": "b"}]}, "tool_calls")]),
    Sample(
        "openai",
        True,
        [
            _chunk({"role": "assistant", "content": ""}),
            _chunk({"reasoning": "Hm."}),
            *(_chunk({"content": piece}) for piece in ("<thi", "nk>Hm.", "</think>", "Hel", "lo")),
            _chunk({"refusal": "No."}),
            _chunk({"tool_calls": [CALL]}),
            _chunk({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}),
            _chunk({}, "tool_calls"),
            {"choices": [], "usage": USAGE},
        ],
    ),
    Sample(
        "ollama_chat",
        False,
        [
            {
                "model": "l",
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": 3,
                "eval_count": 2,
                "message": {"role": "assistant", "content": "Hello", "thinking": "Hm.", "tool_calls": [CALL]},
            }
        ],
    ),
    Sample(
        "ollama_chat",
        True,
        [
            {"model": "l", "message": {"content": "", "thinking": "Hm."}, "done": False},
            {"model": "l", "message": {"content": "Hello"}, "done": False},
            {"model": "l", "message": {"content": "", "tool_calls": [CALL]}, "done": False},
            {"model": "l", "message": {"content": ""}, "done": True, "done_reason": "stop", "eval_count": 2},
        ],
    ),
    Sample("anthropic", False, [ANTHROPIC]),
    Sample(
        "anthropic",
        True,
        [
            {"type": "message_start", "message": {**ANTHROPIC, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "a", "name": "look"},
            },
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ],
    ),
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value with each of its keys."""
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield value, key
            yield from _places(value[key])


def changed(sample: Sample, dice: random.Random) -> bytes:
    """A mutation of a valid reply."""
    bodies = copy.deepcopy(sample.bodies)
    for _ in range(dice.randint(1, 4)):
        places = list(_places(bodies))
        if not places:
            break
        container, key = dice.choice(places)
        change = dice.randrange(6)
        if change == 0:
            del container[key]
        elif change == 1:
            container[key] = [container[key]]
        elif change == 2:
            container[key] = copy.deepcopy(dice.choice(dice.choice(places)[:1])) if dice.random() < 0.1 else {}
        elif change == 3 and isinstance(container, dict):
            container[dice.choice(["error", "type", "content", "text", "delta", "message"])] = container[key]
        else:
            container[key] = copy.deepcopy(dice.choice(ODD))
    if sample.stream and dice.random() < 0.3:
        dice.shuffle(bodies)
    return _framed(sample, bodies, dice)


def _framed(sample: Sample, bodies: list[Any], dice: random.Random) -> bytes:
    if not sample.stream:
        text = json.dumps(bodies[0] if bodies else None, indent=dice.choice([None, 2]))
    elif sample.kind == "ollama_chat":
        text = "".join(f"{json.dumps(body)}\n" for body in bodies)
    else:
        end = dice.choice(["", "data: [DONE]\n\n"])
        text = "".join(f"data: {json.dumps(body)}" + dice.choice(EVENT_ENDS) for body in bodies) + end
    data = text.encode()
    if dice.random() < 0.15:
        data = data[: dice.randrange(len(data) + 1)]
    if data and dice.random() < 0.1:
        place = dice.randrange(len(data))
        data = data[:place] + bytes([dice.randrange(256)]) + data[place + 1 :]
    return data


def check(reply: Reply, pieces: list[str], *, stream: bool) -> None:
    """Check that a reply has the declared types and only storable characters."""
    texts = (reply.text, reply.model, reply.reasoning, reply.refusal)
    assert all(isinstance(text, str) and not UNCLEAN.search(text) for text in (*texts, *pieces))  # pyright: ignore[reportUnnecessaryIsInstance]
    assert isinstance(reply.finish, Finish)
    assert isinstance(reply.usage, Usage)
    assert type(reply.usage.input_tokens) is type(reply.usage.output_tokens) is int
    assert min(reply.usage.input_tokens, reply.usage.output_tokens) >= 0
    assert reply.cost_usd is None or 0 <= reply.cost_usd < 1e10
    ids = [call.id for call in reply.tool_calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    for call in reply.tool_calls:
        assert type(call) is ToolCall
        assert isinstance(call.arguments, (dict, str))
        assert not UNCLEAN.search(call.id + call.name + compact_json(call.arguments))
    assert SECRET not in repr(reply) + "".join(pieces)
    assert not stream or "".join(pieces).endswith(reply.text)


ADDRESSES = {
    "openai": "http://localhost:1/v1/chat/completions",
    "ollama_chat": "http://localhost:1/api/chat",
    "anthropic": "http://localhost:1/v1/messages",
}


class _Chunks(httpx.AsyncByteStream):
    """A body in chunks of random size, which may be cut off."""

    def __init__(self, data: bytes, dice: random.Random) -> None:
        self._data = data
        self._dice = dice

    async def __aiter__(self) -> AsyncIterator[bytes]:
        start = 0
        while start < len(self._data):
            size = self._dice.choice([1, 7, 100, 10_000])
            yield self._data[start : start + size]
            start += size
            if self._dice.random() < 0.001:
                raise httpx.RemoteProtocolError("broke off")


async def _read_here(sample: Sample, data: bytes, dice: random.Random, keys: Keys) -> bool:
    """Parse a reply with the hook and the parser only; return whether it was valid."""
    place = find_endpoint("openai/m", "http://localhost:1/v1", keys, {})
    pieces: list[str] = []
    parser = ReplyParser("openrouter/m", place, keys, ASKED, pieces.append)
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, stream=_Chunks(data, dice)))
    try:
        async with httpx.AsyncClient(transport=transport, event_hooks={"response": [on_response]}) as client:
            with feed_replies_to(parser):
                answer = await client.post(ADDRESSES[sample.kind], json={"model": "m", "stream": sample.stream})
        assert answer.text
        reply = parser.end()
        parser.emit_text()
    except ModelError:
        return False
    except httpx.RemoteProtocolError:
        return False
    except Exception as error:
        assert error is parser.failure  # noqa: PT017 - anything else is a bug
        failure = translate(error, "m", place, keys, parser.partial)
        assert SECRET not in f"{failure} {failure.partial}"
        return False
    check(reply, pieces, stream=sample.stream)
    return True


@pytest.fixture
def keys() -> Keys:
    keys = Keys({"OPENAI_API_KEY": SECRET})
    keys.get("openai")
    return keys


@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.slow)])
async def test_mutated_replies_yield_only_replies_and_model_errors(keys: Keys, count: int) -> None:
    dice = random.Random(SEED)
    good = 0
    for number in range(count):
        sample = SAMPLES[number % len(SAMPLES)]
        good += await _read_here(sample, changed(sample, dice), dice, keys)

    assert 0.3 * count < good < 0.95 * count  # both kinds of ends are reached


@pytest.mark.parametrize("count", [24, pytest.param(1_500, marks=pytest.mark.slow)])
async def test_mutated_replies_over_http_yield_only_replies_and_model_errors(
    wire: WireServer, make_model: MakeModel, count: int
) -> None:
    dice = random.Random(SEED + 1)
    for number in range(count):
        sample = SAMPLES[number % len(SAMPLES)]
        data = changed(sample, dice).decode("utf-8", "surrogateescape")
        wire.reply = lambda _body, said=data: said
        address = wire.base_url.removesuffix("/v1") if sample.kind == "anthropic" else wire.base_url
        behavior = "verbatim-cut" if dice.random() < 0.1 else "verbatim"
        key = {host_variable(wire.host): SECRET}  # it is sent to each kind of server
        model = make_model(f"{sample.kind}/{behavior}", api_base=address, **key)
        pieces: list[str] = []
        try:
            reply = await model.complete(ASKED, pieces.append if sample.stream else None)
        except ModelError as error:
            shown = f"{error} {error.partial}"
        else:
            shown = repr(reply)
            check(reply, pieces, stream=sample.stream)
        assert SECRET not in shown
        assert not UNCLEAN.search(shown)


@pytest.mark.parametrize("sample", SAMPLES)
async def test_unmutated_replies_are_valid(keys: Keys, sample: Sample) -> None:
    dice = random.Random(1)

    assert await _read_here(sample, _framed(sample, sample.bodies, _Steady()), dice, keys)


class _Steady(random.Random):
    """A random source that never cuts and never mutates."""

    def random(self) -> float:
        return 0.9
