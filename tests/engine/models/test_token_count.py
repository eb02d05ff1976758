"""Tokens counted with the model's own tokenizer, in Chinese and JSON too."""

from __future__ import annotations

import json
import socket

import pytest

from engine.models.keys import Keys
from engine.models.litellm_adapter import LiteLLMModel
from engine.models.protocol import Message, Request, ToolCall, estimated_usage
from engine.models.token_count import token_counter
from engine.runner.budget import estimate, request_texts, request_tokens

CHINESE = "请把下面这段文字改写得更简洁，并指出其中的三个主要论点。春天来了，万物复苏。" * 20
JSON = json.dumps([{"a": [1, 2, 3], "b": {"c": "d", "e": None}}] * 50)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a tokenizer was downloaded")

    monkeypatch.setattr(socket, "create_connection", refuse)


def asking(text: str) -> Request:
    return Request((Message("user", text),), max_tokens=10)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("openai/gpt-4o-mini", 600),
        ("openai/gpt-4.1", 600),
        ("openai/o3", 600),
        ("openrouter/openai/gpt-4o", 600),
        ("openai/gpt-4-turbo", 780),
        ("openai/gpt-3.5-turbo", 780),
        ("deepseek/deepseek-chat", 440),
    ],
)
def test_chinese_is_counted_by_the_tokenizer_of_the_model(model: str, tokens: int) -> None:
    count = token_counter(model)
    assert count is not None
    assert count(CHINESE) == tokens
    assert count("<|endoftext|>") > 0


@pytest.mark.parametrize("model", ["openai/gpt-4o", "deepseek/deepseek-chat"])
def test_lone_surrogate_is_counted(model: str) -> None:
    count = token_counter(model)
    assert count is not None
    assert count("a\ud800b") >= count("ab")


@pytest.mark.parametrize("model", ["openai/my-server", "anthropic/claude-haiku-4-5", "ollama_chat/llama3", "gpt-4o"])
def test_other_tokenizers_are_unknown(model: str) -> None:
    assert token_counter(model) is None


def test_budget_reserves_what_json_really_needs() -> None:
    count = token_counter("openai/gpt-4o")
    assert count is not None
    true = count(JSON)
    assert request_tokens(asking(JSON)) < true, "three bytes a token are too few"
    assert request_texts(asking(JSON)) == [JSON]
    assert request_tokens(asking(JSON), true) == true + 16
    assert estimate(asking(JSON), None, true).tokens == true + 16 + 10


async def test_model_counts_with_its_tokenizer() -> None:
    model = LiteLLMModel("openai/gpt-4o", keys=Keys({}))
    assert await model.count_tokens(["Hello world", CHINESE]) == 2 + 600


@pytest.mark.parametrize("name", ["anthropic/claude-haiku-4-5", "ollama_chat/llama3"])
async def test_tokens_of_an_unknown_tokenizer_are_rather_too_many(name: str) -> None:
    usual = token_counter("openai/gpt-4-turbo")
    assert usual is not None
    count = LiteLLMModel(name, keys=Keys({})).count_tokens
    english = "The quick brown fox jumps over the lazy dog. " * 50

    assert await count([JSON]) == usual(JSON) > len(JSON) // 3
    assert await count([CHINESE, english]) == 780 + len(english) // 3
    assert await count(["a\ud800"]) == 2


def test_estimate_without_a_tokenizer_is_near_the_truth_in_chinese() -> None:
    usage = estimated_usage(asking(CHINESE), CHINESE)
    assert 0.7 < usage.input_tokens / 780 < 1.1
    assert usage.input_tokens == usage.output_tokens
    assert not usage.exact


def test_estimate_with_a_tokenizer_counts_calls_tools_and_schema() -> None:
    request = Request((Message("user", "ab"),), schema={"type": "object"})
    usage = estimated_usage(request, "abc", "d", tool_calls=(ToolCall("1", "look", {}),), count=len)
    assert (usage.input_tokens, usage.output_tokens) == (2 + len('{"type":"object"}'), 4 + len("look{}"))
