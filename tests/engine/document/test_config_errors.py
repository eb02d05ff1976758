"""Errors of a config in plain words, independent of pydantic."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from engine.document.model import Settings
from engine.document.problems import config_errors
from engine.nodes.node_registry import builtin_registry
from engine.tools.registry import builtin_tools
from tests.wording import mentions

LLM = builtin_registry().find("llm")
MODELS: list[type[BaseModel]] = [
    *(spec.config for spec in builtin_registry()),
    Settings,
    *(tool.parameters for tool in builtin_tools().values()),
]
WRONG_VALUES: list[Any] = [
    None,
    True,
    -1,
    0.5,
    10**30,
    1e300,
    float("inf"),
    float("nan"),
    "",
    "x" * 10_000,
    "\ud800",
    "two\nlines",
    [],
    [1],
    [None],
    [{}],
    [{"name": "Big"}],
    [{"name": "a", "when": 5}],
    [{"name": "a"}] * 30,
    {},
    {"a": 1},
    {"two\nlines": {"input_usd_per_million": 1}},
    {"a": {"input_usd_per_million": 1, "output_usd_per_million": -1, "x": 1}},
]


def faults(model: type[BaseModel], config: dict[str, Any]) -> list[tuple[str, str, str]]:
    try:
        model.model_validate(config)
    except ValidationError as error:
        return list(config_errors(model, error))
    return []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_config_error_has_a_plain_message(model: type[BaseModel]) -> None:
    met = [fault for name in model.model_fields for value in WRONG_VALUES for fault in faults(model, {name: value})]

    assert met
    for place, message, remedy in met:
        assert "which does not fit" not in message, message
        assert remedy != "Correct it."
        assert message.endswith(".")
        assert remedy.endswith(".")
        assert f"{place}{message}{remedy}".isprintable()
        assert len(message) < 250


@pytest.mark.parametrize(
    ("node_type", "config", "expected"),
    [
        ("llm", {"prompt": 5}, ("prompt", '"Prompt" … 5 … a text', "a text")),
        ("llm", {"prompt": None}, ("prompt", '"Prompt" … null … a text', "a text")),
        ("llm", {"retries": "2"}, ("retries", '"Retries" … "2" … a whole number', "a whole number")),
        ("llm", {"retries": 1.5}, ("retries", '"Retries" … 1.5 … a whole number', "a whole number")),
        ("llm", {"retries": True}, ("retries", '"Retries" … true … a whole number', "a whole number")),
        ("llm", {"retries": 21}, ("retries", '"Retries" … 21 … 20 or less', "20 or less")),
        ("llm", {"retries": -1}, ("retries", '"Retries" … -1 … 0 or more', "0 or more")),
        (
            "llm",
            {"temperature": 2.5},
            ("temperature", '"Temperature" … 2.5 … 2 or less', "2 or less"),
        ),
        (
            "llm",
            {"timeout_s": 0},
            ("timeout_s", '"Timeout (seconds)" … 0 … 0', "0"),
        ),
        ("llm", {"system": []}, ("system", '"System prompt" … a list … a text', "a text")),
        (
            "llm",
            {"reply_schema": "{}"},
            ("reply_schema", '"Structured reply" … "{}" … an object', "an object"),
        ),
        (
            "llm",
            {"on_error": "retry"},
            (
                "on_error",
                '"On error" … "retry" … fail, continue or branch',
                "fail, continue or branch",
            ),
        ),
        (
            "input",
            {"type": "string"},
            (
                "type",
                '"Type" … "string" … any, text, json, number, boolean or list',
                "any, text, json, number, boolean or list",
            ),
        ),
        ("input", {"name": "x" * 101}, ("name", '"Name" … 100 characters', "Shorten")),
        (
            "router",
            {"branches": []},
            ("branches", '"Branches" … fewer … 1', "Add"),
        ),
        ("router", {"branches": [{}]}, ("branches.0.name", '"Branches" (0.name) … missing', "Add")),
        ("router", {"branches": ["a"]}, ("branches.0", '"Branches" (0) … "a" … an object', "an object")),
        (
            "router",
            {"branches": [{"name": "a"}, {"name": "B c"}]},
            (
                "branches.1.name",
                '"Branches" (1.name) … "B c" … digits',
                "digits",
            ),
        ),
        (
            "input",
            {"name": "a\ud800"},
            ("name", '"Name" … surrogate', "Remove"),
        ),
        (
            "loop",
            {"inject_feedback": "yes"},
            (
                "inject_feedback",
                '"Include iteration info" … "yes" … true or false',
                "true or false",
            ),
        ),
    ],
)
def test_config_error_says_actual_expected_and_remedy(
    node_type: str, config: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    spec = builtin_registry().find(node_type)
    assert spec is not None

    ((field, message, remedy),) = faults(spec.config, config)
    assert field == expected[0]
    assert mentions(message, expected[1])
    assert mentions(remedy, expected[2])


def test_all_errors_of_a_config_are_reported() -> None:
    assert LLM is not None

    places = [place for place, _, _ in faults(LLM.config, {"prompt": 1, "retries": "x", "temperature": 9})]

    assert sorted(places) == ["prompt", "retries", "temperature"]


class _Untitled(BaseModel):
    size: frozenset[int] = frozenset()


def test_unknown_kinds_of_errors_and_fields_have_messages() -> None:
    assert faults(_Untitled, {"size": 5}) == [("size", '"size" is 5, which does not fit.', "Correct it.")]
    with pytest.raises(ValidationError) as caught:
        _Untitled.model_validate(5)
    assert list(config_errors(_Untitled, caught.value)) == [("", "It is 5, not an object.", "Use an object.")]
