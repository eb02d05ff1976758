"""Which answers to a question are valid."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EngineError
from engine.nodes.context import Answer
from engine.runner.human_input import Question, check_answer, value_of_text

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
    "required": ["path"],
}
_CHOICES = ("approve", "reject")


def _question(value: Any, schema: dict[str, Any] | None = None) -> Question:
    return Question("check", "approval", value, _CHOICES, schema)


@pytest.mark.parametrize(
    ("value", "fitting", "misfits"),
    [
        ("text", ["other", ""], [1, True, ["x"], {"a": 1}]),
        (3, [4, 0.5, -1], ["3", True, [3], {}]),
        (0.5, [1, 2.5], ["0.5", False]),
        (True, [False], [0, 1, "true", []]),
        (["a"], [[], [{"b": 1}]], ["a", {"0": "a"}, 1]),
        ({"a": 1}, [{}, {"b": [2]}], ['{"a": 2}', ["x"], 1, False]),
        (None, ["x", 1, [1], {"a": 1}], []),
    ],
)
def test_an_edited_value_must_have_the_same_type(value: Any, fitting: list[Any], misfits: list[Any]) -> None:
    asked = _question(value)
    for edited in (value, None, *fitting):
        check_answer(asked, Answer("approve", edited))
    for edited in misfits:
        for choice in _CHOICES:
            with pytest.raises(EngineError, match='"check" does not fit: it is'):
                check_answer(asked, Answer(choice, edited))


@pytest.mark.parametrize(
    "edited", [["x"], "x", {}, {"path": 1}, {"path": "a", "lines": "many"}, {"lines": 2}, {"path": None}]
)
def test_edited_arguments_must_follow_the_schema_of_the_tool(edited: Any) -> None:
    asked = _question({"path": "a"}, _SCHEMA)
    with pytest.raises(EngineError, match="does not fit"):
        check_answer(asked, Answer("approve", edited))
    check_answer(asked, Answer("reject", edited))  # the call is not made
    check_answer(asked, Answer("approve", {"path": "b", "lines": 3}))


def test_earlier_schema_violations_do_not_invalidate_an_answer() -> None:
    asked = _question({"path": "a", "lines": "3"}, _SCHEMA)  # which the tool may well take
    check_answer(asked, Answer("approve", {"path": "b", "lines": "3"}))
    with pytest.raises(EngineError):
        check_answer(asked, Answer("approve", {"lines": "3"}))


@pytest.mark.parametrize("schema", [{"$ref": "http://elsewhere/schema"}, {"type": "nothing"}, {"type": 3}])
def test_an_unusable_schema_refuses_only_other_types(schema: dict[str, Any]) -> None:
    asked = _question({"path": "a"}, schema)
    check_answer(asked, Answer("approve", {"any": 1}))
    with pytest.raises(EngineError):
        check_answer(asked, Answer("approve", [1]))


@pytest.mark.parametrize(
    ("value", "text", "read"),
    [
        ("a", '["x"]', '["x"]'),
        (None, "null", "null"),
        ({"a": 1}, '{"a": 2}', {"a": 2}),
        ([1], "[2]", [2]),
        (1, "2.5", 2.5),
        (True, "false", False),
    ],
)
def test_a_text_is_parsed_for_the_value_in_question(value: Any, text: str, read: Any) -> None:
    assert value_of_text(_question(value), text) == read


@pytest.mark.parametrize("text", ["null", "", "{", "yes", "NaN", " null "])
@pytest.mark.parametrize("value", [{"a": 1}, [1], 1, False])
def test_null_and_invalid_json_are_refused(value: Any, text: str) -> None:
    with pytest.raises(EngineError, match="does not fit"):
        value_of_text(_question(value), text)
