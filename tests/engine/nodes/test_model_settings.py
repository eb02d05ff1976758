"""Valid and invalid model settings of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from engine import validate
from tests.engine.semantics.documents import around, entry, flow, llm, result


def problems(config: dict[str, Any]) -> list[tuple[str, str | None, str]]:
    workflow = flow(entry(), llm("ask", **config), result(), edges="text -> ask -> out")
    return [(found.code, found.field, found.message) for found in validate(workflow)]


@pytest.mark.parametrize(
    "name",
    ["messages", "model", "stream", "api_base", "base_url", "extra_headers", "temperature", "max_tokens", "apiBase"],
)
def test_extra_parameters_cannot_set_what_the_program_sets(name: str) -> None:
    ((code, field, message),) = problems({"extra_parameters": {"top_k": 4, name: 1}})

    assert (code, field) == ("bad-config", "extra_parameters")
    assert f'"{name}"' in message


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_output_tokens": 9},
        {"n_predict": 9},
        {"best_of": 5},
        {"options": {"num_predict": 9}},
        {"generationConfig": {"maxOutputTokens": 9}},
        {"nested": [{"candidate_count": 4}]},
    ],
)
def test_extra_parameters_cannot_set_length_or_number_of_replies(parameters: dict[str, Any]) -> None:
    ((code, field, _),) = problems({"extra_parameters": parameters})

    assert (code, field) == ("bad-config", "extra_parameters")


@pytest.mark.parametrize(
    "parameters",
    [
        {"api_key": "x"},
        {"apiKey": "x"},
        {"nested": {"list": [{"Authorization": "Bearer abc"}]}},
        {"x-api-key": "abc"},
        {"password": "abc"},
        {"client_secret": "abc"},
        {"access_token": "abc"},
        {"innocent": "sk-proj-0123456789abcdef0123"},
        {"innocent": ["gsk_0123456789abcdef0123"]},
        {"innocent": "Bearer abcdef"},
    ],
)
def test_extra_parameters_cannot_contain_secrets(parameters: dict[str, Any]) -> None:
    ((code, field, message),) = problems({"extra_parameters": parameters})

    assert code == "secret-in-document"
    assert (field or "").startswith("extra_parameters.")
    assert "secret" in message
    assert "0123456789" not in message


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1},
        {"prompt_cache_key": "run-1", "max_tool_tokens": 5, "logit_bias": {"50256": -100}},
        {"options": {"num_ctx": 8192, "stop_token_ids": [1, 2]}},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"keywords": ["risk-adjusted-return-2024-final"], "tokenizer": "x"},
    ],
)
def test_other_extra_parameters_are_valid(parameters: dict[str, Any]) -> None:
    assert problems({"extra_parameters": parameters}) == []


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"stop": [""]}, "stop.0"),
        ({"stop": "END"}, "stop"),
        ({"reasoning_effort": "maximal"}, "reasoning_effort"),
        ({"extra_parameters": []}, "extra_parameters"),
        ({"fallback_models": ["a/b", ""]}, "fallback_models.1"),
        ({"fallback_models": "a/b"}, "fallback_models"),
    ],
)
def test_a_wrong_value_is_a_problem_of_its_field(config: dict[str, Any], field: str) -> None:
    ((code, place, _),) = problems(config)

    assert (code, place) == ("bad-config", field)


def test_a_judges_settings_are_checked_as_well() -> None:
    judge = {"criteria": "It is good.", "extra_parameters": {"api_key": "x"}}
    workflow = around(llm("draft"), edges="loop -> draft -> exit", exit_condition="judge", judge=judge)

    assert [(found.code, found.field) for found in validate(workflow)] == [
        ("secret-in-document", "judge.extra_parameters.api_key")
    ]
