"""Structured replies: JSON is found in any text of a model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from engine.nodes.model_calls import UnreadableReplyError, read
from engine.values import Value
from tests.engine.nodes.dialects import dialect
from tests.wording import mentions

ANYTHING: dict[str, Value] = {}
CUT_OFF, NO_JSON = "JSON … not closed", "no JSON"
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
    ("text", "parts"),
    [
        ("", NO_JSON),
        ("I do not know.", NO_JSON),
        ('{"name": "Ada"', CUT_OFF),
        ('```json\n{"name": "Ad', CUT_OFF),
        ('{"name": NaN}', NO_JSON),
        ('{"name": "Ada", "age": 1e999}', NO_JSON),
        ("{name}", NO_JSON),
        ("}{", CUT_OFF),
        ('{"name": 5}', 'name: 5 is not … "string"'),
        ("{}", 'the value: "name" … required'),
        ('"Ada"', 'the value: "Ada" is not … "object"'),
        ("null", 'the value: null is not … "object"'),
        ("[" * 200_000, CUT_OFF),
        ('{"a":' * 500 + "1" + "}" * 500, "more than 200 levels"),
        # More than fits on the stack: 50,000 levels fit on that of Python 3.14.
        ('{"a":' * 200_000 + "1" + "}" * 200_000, NO_JSON),
        ("{" * 1_000_000, CUT_OFF),
        ("```" * 300_000, NO_JSON),
        ("```\n" * 200_000, NO_JSON),
        ('{"a" 1 ' + "/* " * 60_000, CUT_OFF),
        ('{"a": "' + '" ' * 100_000, CUT_OFF),
        ("{" + "a:" * 100_000, CUT_OFF),
    ],
    ids=lambda text: str(text)[:30],
)
def test_a_reply_without_valid_json_is_an_error_with_the_reason(text: str, parts: str) -> None:
    with pytest.raises(UnreadableReplyError) as caught:
        read(text, PERSON)

    assert mentions(str(caught.value), parts), caught.value


def test_an_error_quotes_a_huge_reply_only_in_part() -> None:
    with pytest.raises(UnreadableReplyError) as caught:
        read(json.dumps({"name": ["x" * 1_000_000]}), PERSON)

    assert len(str(caught.value)) < 400


def test_an_invalid_schema_is_reported() -> None:
    with pytest.raises(UnreadableReplyError, match=r"^The JSON Schema .* \"nothing\""):
        read("{}", {"type": "nothing"})


SCENE: dict[str, Value] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer"},
        "weight": {"type": "number"},
        "good": {"type": "boolean"},
        "mood": {"enum": ["bright", "Dark", "so-so"]},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "note": {"type": ["string", "number"]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "word": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
    },
    "$defs": {"part": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'name': 'Ada', 'tags': {'a': None, 'b': True}}", {"name": "Ada", "tags": {"a": None, "b": True}}),
        ('{"name": "Ada\n\tLovelace", // who\n "tags": {},}', {"name": "Ada\n\tLovelace", "tags": {}}),
        ("{“Name”: “Ada “the” L.”}", {"name": "Ada “the” L."}),
        ('{name: "Ada"}', {"name": "Ada"}),
        ('{"name": "see https://x.y/#z // no comment", }', {"name": "see https://x.y/#z // no comment"}),
        ('{"name": "\\u00e9\\ud83d\\ude00",}', {"name": "é😀"}),
        ('{"name": "C:\\dir", }', {"name": "C:\\dir"}),
        ("{'name': '''many\nlines, \"so\"'''}", {"name": 'many\nlines, "so"'}),
        ('```\n{"NAME": "Ada"}\n``` that is {"name": "Ada"}', {"name": "Ada"}),
        ('"{\\"name\\": \\"Ada\\"}"', {"name": "Ada"}),
        ('[{"name": "Ada"}]', {"name": "Ada"}),
    ],
)
def test_json_is_read_from_any_dialect(text: str, value: Value) -> None:
    assert read(text, PERSON) == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ({"count": "8", "weight": "8,5", "good": "Yes"}, {"count": 8, "weight": 8.5, "good": True}),
        ({"Count": "-3", "WEIGHT": "1e3", "Good": "FALSE"}, {"count": -3, "weight": 1000.0, "good": False}),
        ({"mood": "Bright."}, {"mood": "bright"}),
        ({"mood": "SO-SO"}, {"mood": "so-so"}),
        ({"share": "80%"}, {"share": 0.8}),
        ({"note": "8", "title": "8", "word": "8"}, {"note": "8", "title": "8", "word": "8"}),
        ({"maybe": "8"}, {"maybe": 8}),
        ({"maybe": "null"}, {"maybe": None}),
        ({"parts": [{"N": "1"}, {"n": "2"}]}, {"parts": [{"n": 1}, {"n": 2}]}),
        ({"parts": '[{"n": 1}]'}, {"parts": [{"n": 1}]}),
        ({"else": "8", "Title": "x"}, {"else": "8", "title": "x"}),
        ({"title": "x", "Title": "y"}, {"title": "x", "Title": "y"}),
    ],
)
def test_values_that_differ_from_the_schema_only_in_form_are_converted(reply: Value, value: Value) -> None:
    assert read(json.dumps(reply), SCENE) == value


@pytest.mark.parametrize(
    "reply",
    [
        {"count": "8.5"}, {"count": "about 8"}, {"weight": "1,000"}, {"weight": "80%"}, {"weight": "8/10"},
        {"weight": "NaN"}, {"weight": "1e999"}, {"good": "maybe"}, {"good": 1}, {"mood": "brightest"},
        {"share": "120%"}, {"title": 8}, {"parts": "n: 1"}, {"parts": [{"m": 1}]}, {"maybe": "none of them"},
    ],
    ids=str,
)  # fmt: skip
def test_ambiguous_values_are_not_converted(reply: Value) -> None:
    with pytest.raises(UnreadableReplyError):
        read(json.dumps(reply), SCENE)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("Yes.", {"type": "boolean"}, True),
        ("8,5", {"type": "number"}, 8.5),
        ("```\n8\n```", {"type": "integer"}, 8),
        ("Positive!", {"enum": ["positive", "negative"]}, "positive"),
        ('"x"', {"type": "string"}, "x"),
    ],
)
def test_a_reply_can_be_a_plain_value(text: str, schema: dict[str, Value], value: Value) -> None:
    assert read(text, schema) == value


@pytest.mark.parametrize("text", ["Yes and no.", "no, yes", "positive or negative", "the answer is yes", "8 9"])
def test_a_sentence_is_no_plain_value(text: str) -> None:
    plain: list[dict[str, Value]] = [{"type": kind} for kind in ("boolean", "number", "string")]
    plain.append({"enum": ["positive", "negative"]})
    for schema in plain:
        with pytest.raises(UnreadableReplyError):
            read(text, schema)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ada"} {"name": "Bob"}',
        '```json\n{"name": "Ada"}\n```\nI mean {"name": "Bob"}',
        "{'name': 'Ada'} or {\"name\": \"ada\"}",
        '{"name": "Ada", "name": "Bob"}',
        "{'name': 'Ada', 'name': 'Bob'}",
    ],
)
def test_differing_values_are_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read(text, PERSON)


THREE: dict[str, Value] = {
    "type": "object",
    "properties": {"a": {"type": "object", "properties": {"b": {"type": "number"}}}},
    "required": ["a", "c", "d"],
}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[1] {"a": {}, "c": 1} [2]', '"d" is a required property'),
        ('{"a": {}, "c": 1, "d": 2, "a": 3} {"a": {}, "c": 1} {}', '"d" is a required property'),
        ('{"x": 1} then {"a": {"b": "x"}, "c": 1, "d": 1}', "a/b: "),
        ('{"a": 1, "c": 1, "d": 1} and {"a": {"b": []}, "c": 1, "d": 1}', "a/b: "),
        ("[see] {'a': {}, 'd': 1} ```\nnothing\n```", '"c" is a required property'),
    ],
)  # fmt: skip
def test_the_error_is_about_the_best_candidate(text: str, error: str) -> None:
    with pytest.raises(UnreadableReplyError) as caught:
        read(text, THREE)

    assert error in str(caught.value)


objects = st.dictionaries(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
    st.none() | st.integers() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    max_size=4,
)
prose = st.text(st.characters(exclude_characters="{}[]｛｝［］`", codec="utf-8"), max_size=30)


@given(objects, prose, prose)
def test_an_object_is_found_in_any_prose_without_braces(value: dict[str, Any], before: str, after: str) -> None:
    assert read(f"{before}\n{json.dumps(value)}\n{after}", {"type": "object"}) == value


@given(st.data(), objects)
def test_an_object_in_any_dialect_is_read_unchanged_or_refused(data: st.DataObject, value: dict[str, Any]) -> None:
    try:
        assert read(dialect(data.draw, value), {"type": "object"}) == value
    except UnreadableReplyError:
        event("refused")


@given(st.text(max_size=200))
def test_any_text_is_a_value_or_an_error(text: str) -> None:
    try:
        value = read(text, ANYTHING)
    except UnreadableReplyError as error:
        reason = str(error)
    else:
        json.dumps(value, allow_nan=False)
        return

    assert reason.endswith((".", "…"))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r'{"a": "x\ud800"}', "x\ufffd"),
        (r'{"a": "\udc00x"}', "\ufffdx"),
        (r'{"a": "\ud83d\ud83d\ude00"}', "\ufffd\U0001f600"),
        (r'{"a": "\ud83d\ude00"}', "\U0001f600"),
        (r'{"a": "a\u0000b"}', "a\ufffdb"),
        (r'{"a": "a\\u0000b"}', r"a\u0000b"),
        (r'{"a": "a\\\u0000b"}', "a\\\ufffdb"),
        (r"{'a': 'x\uD800',}", "x\ufffd"),
    ],
)
def test_escapes_of_lone_surrogates_and_nul_are_cleaned(written: str, text: str) -> None:
    schema: dict[str, Value] = {"type": "object", "properties": {"a": {"type": "string"}}}

    assert read(f"Here: {written}", schema) == {"a": text}
    assert read(json.dumps(written), schema) == {"a": text}
