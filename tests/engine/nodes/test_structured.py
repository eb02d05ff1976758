"""Finding the JSON in what a model wrote, whatever it wrote around it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.nodes.structured import UnreadableReplyError, read
from engine.values import Value

ANYTHING: dict[str, Value] = {}
PERSON: dict[str, Value] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "object"}},
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"name": "Ada"}', {"name": "Ada"}),
        ('  \n{"name": "Ada"}\n ', {"name": "Ada"}),
        ('```json\n{"name": "Ada"}\n```', {"name": "Ada"}),
        ('```\n{"name": "Ada"}```', {"name": "Ada"}),
        ('```JSON\r\n{"name": "Ada"}\r\n```', {"name": "Ada"}),
        ('Here you are:\n```json\n{"name": "Ada"}\n```\nAnything else?', {"name": "Ada"}),
        ('Sure! {"name": "Ada"} I hope this helps.', {"name": "Ada"}),
        ('{"name": "A{d}a", "tags": {"a": {"b": {}}}}', {"name": "A{d}a", "tags": {"a": {"b": {}}}}),
        ('so: {"name": "```\\n{}\\n```"} ok', {"name": "```\n{}\n```"}),
        ('```json\n{"wrong": 1}\n```\n```json\n{"name": "Ada"}\n```', {"name": "Ada"}),
    ],
)
def test_json_is_found_in_a_reply(text: str, value: Value) -> None:
    assert read(text, PERSON) == value


def test_a_list_is_found_in_a_reply() -> None:
    assert read("The list: [1, 2, 3].", {"type": "array"}) == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("", "there is no JSON in it."),
        ("I do not know.", "there is no JSON in it."),
        ('{"name": "Ada"', "there is no JSON in it."),
        ('```json\n{"name": "Ad', "there is no JSON in it."),
        ("{'name': 'Ada'}", "there is no JSON in it."),
        ('{"name": "Ada"} {"name": "Bob"}', "there is no JSON in it."),
        ('{"name": NaN}', "there is no JSON in it."),
        ('{"name": "Ada", "age": 1e999}', "there is no JSON in it."),
        ("{name}", "there is no JSON in it."),
        ("}{", "there is no JSON in it."),
        ('{"name": 5}', 'name: 5 is not of type "string".'),
        ("{}", 'the value: "name" is a required property.'),
        ('"Ada"', 'the value: "Ada" is not of type "object".'),
        ("null", 'the value: null is not of type "object".'),
        ("[" * 200_000, "there is no JSON in it."),
        ('{"a":' * 5000 + "1" + "}" * 5000, "there is no JSON in it."),
        ("{" * 1_000_000, "there is no JSON in it."),
        ("```" * 300_000, "there is no JSON in it."),
        ("```\n" * 200_000, "there is no JSON in it."),
    ],
    ids=lambda text: str(text)[:30],
)
def test_a_reply_without_fitting_json_says_what_is_wrong(text: str, failure: str) -> None:
    with pytest.raises(UnreadableReplyError) as caught:
        read(text, PERSON)

    assert str(caught.value) == failure


def test_a_failure_never_repeats_a_huge_reply() -> None:
    with pytest.raises(UnreadableReplyError) as caught:
        read(json.dumps({"name": ["x" * 1_000_000]}), PERSON)

    assert len(str(caught.value)) < 400


def test_a_schema_that_cannot_be_used_is_told_as_such() -> None:
    with pytest.raises(UnreadableReplyError, match=r"^The JSON Schema cannot be used: "):
        read("{}", {"type": "nothing"})


objects = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.none() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=20),
    max_size=4,
)
prose = st.text(st.characters(exclude_characters="{}[]`", codec="utf-8"), max_size=30)


@given(objects, prose, prose)
def test_an_object_is_read_through_any_prose_without_braces(value: dict[str, Any], before: str, after: str) -> None:
    assert read(f"{before}\n{json.dumps(value)}\n{after}", {"type": "object"}) == value


@given(st.text(max_size=200))
def test_whatever_a_model_writes_is_a_value_or_a_reason(text: str) -> None:
    try:
        value = read(text, ANYTHING)
    except UnreadableReplyError as error:
        reason = str(error)
    else:
        json.dumps(value, allow_nan=False)
        return

    assert reason.endswith((".", "…"))
