"""Prices of calls."""

from __future__ import annotations

from types import ModuleType

import pytest

from engine.models.keys import Keys, find_endpoint
from engine.models.litellm_adapter import load_litellm, local_price
from engine.models.protocol import LongPrice, Price, Usage
from engine.models.reply_parser import ReplyParser
from tests.engine.models.litellm_fixtures import QUESTION
from tests.engine.models.test_reply_shapes import completion, message

FREE = Price(0.0, 0.0)


def price(litellm: ModuleType, name: str, api_base: str | None = None, **environment: str) -> Price | None:
    return local_price(litellm.model_cost, name, api_base, environment)


@pytest.fixture
async def litellm() -> ModuleType:
    return await load_litellm()


@pytest.mark.parametrize(
    ("name", "api_base"),
    [
        ("openai/gpt-4o-mini", None),
        ("openai/gpt-4o-mini", "https://api.openai.com/v1"),
        ("anthropic/claude-sonnet-4-5", None),
        ("gemini/gemini-2.5-flash", None),
    ],
)
def test_a_model_of_the_list_has_its_price(litellm: ModuleType, name: str, api_base: str | None) -> None:
    found = price(litellm, name, api_base)

    assert found is not None
    assert 0 < found.input_usd_per_token < found.output_usd_per_token < 0.001
    assert found.cost_usd(Usage(1_000_000, 0)) == pytest.approx(found.input_usd_per_token * 1_000_000)


def test_a_call_of_many_tokens_costs_what_the_list_says_for_long_ones(litellm: ModuleType) -> None:
    found = price(litellm, "gemini/gemini-2.5-pro")

    assert found is not None
    entry = litellm.model_cost["gemini/gemini-2.5-pro"]
    read, written = entry["input_cost_per_token"], entry["output_cost_per_token"]
    assert found.cost_usd(Usage(200_000, 1000)) == pytest.approx(200_000 * read + 1000 * written)
    read = entry["input_cost_per_token_above_200k_tokens"]
    written = entry["output_cost_per_token_above_200k_tokens"]
    assert found.cost_usd(Usage(200_001, 1000)) == pytest.approx(200_001 * read + 1000 * written)


def test_prices_of_long_calls_are_taken_in_their_order_and_those_of_other_kinds_are_not() -> None:
    entry = {
        "litellm_provider": "openai",
        "input_cost_per_token": 1.0,
        "output_cost_per_token": 2.0,
        "output_cost_per_token_above_200k_tokens": 5.0,
        "input_cost_per_token_above_32k_tokens": 3.0,
        "input_cost_per_token_above_128k_tokens_priority": 9.0,
        "input_cost_per_request": 0.5,
    }
    assert local_price({"openai/x": entry}, "openai/x", None, {}) == Price(
        1.0, 2.0, 0.5, (LongPrice(32_000, 3.0, 2.0), LongPrice(200_000, 3.0, 5.0))
    )


@pytest.mark.parametrize("name", ["openai/no-such-model", "nobody/gpt-4o-mini", "openai/claude-sonnet-4-5", "gpt-4o"])
def test_an_unknown_model_has_none(litellm: ModuleType, name: str) -> None:
    assert price(litellm, name) is None


def test_a_model_at_another_address_has_none_whatever_its_name(litellm: ModuleType) -> None:
    assert price(litellm, "openai/gpt-4o-mini", "http://localhost:8080/v1") is None
    assert price(litellm, "openai/gpt-4o-mini", "no address") is None
    assert price(litellm, "openai/gpt-4o-mini", OPENAI_API_BASE="http://localhost:4000") is None


def test_a_local_model_is_free_but_not_that_of_ollamas_own_service(litellm: ModuleType) -> None:
    assert price(litellm, "ollama_chat/llama3.2") == FREE
    assert price(litellm, "lm_studio/qwen", "http://192.168.1.2:1234/v1") == FREE
    assert price(litellm, "ollama/llama3.2", "https://ollama.com") is None


def test_an_entry_without_both_prices_gives_none() -> None:
    litellm = ModuleType("litellm")
    litellm.model_cost = {"x": {"litellm_provider": "openai", "input_cost_per_token": 1.0}}  # type: ignore[attr-defined]

    assert price(litellm, "openai/x") is None


def test_the_cost_is_taken_from_the_one_provider_that_gives_it() -> None:
    def cost(prefix: str, reported: object) -> float | None:
        name = f"{prefix}/x/y"
        keys = Keys({"OPENAI_API_KEY": "sk-1", "OPENROUTER_API_KEY": "sk-2"}, with_keyring=False)
        parser = ReplyParser(name, find_endpoint(name, None, keys, {}), keys, QUESTION)
        parser.feed_openai(completion(message(), usage={"cost": reported}))
        return parser.end().cost_usd

    assert cost("openrouter", 0.25) == 0.25
    assert cost("openai", 0.25) is None
    assert [cost("openrouter", odd) for odd in (None, True, "1", -1, 1e10, float("nan"))] == [None] * 6
