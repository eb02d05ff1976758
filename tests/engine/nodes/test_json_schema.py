from __future__ import annotations

from typing import Any

import pytest

from engine.nodes.json_values import SchemaError, compile_schema
from tests.wording import mentions

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ({"name": "Ada", "age": 36}, []),
        ({"age": 1}, ['the value: "name" … required']),
        ({"name": "Ada", "age": -1}, ["age: -1 … minimum of 0"]),
        (None, ['the value: null is not … "object"']),
    ],
)
def test_schema_errors_name_the_place_in_the_value(value: Any, errors: list[str]) -> None:
    found = compile_schema(PERSON).errors(value)
    assert [mentions(error, parts) for error, parts in zip(found, errors, strict=True)] == [True] * len(errors), found


def test_a_nested_place_is_a_path() -> None:
    schema = {"properties": {"list": {"items": {"type": "string"}}}}

    (error,) = compile_schema(schema).errors({"list": ["a", 5]})
    assert mentions(error, 'list/1: 5 is not … "string"'), error


def test_at_most_twenty_errors_are_reported() -> None:
    assert len(compile_schema({"items": {"type": "string"}}).errors(list(range(1000)))) == 20


def test_a_huge_value_is_truncated_in_errors() -> None:
    (error,) = compile_schema({"type": "integer"}).errors("x" * 1_000_000)

    assert len(error) < 400
    assert error.endswith("….")


def test_a_value_that_cannot_be_checked_is_an_error() -> None:
    (error,) = compile_schema({"type": "string"}).errors("\ud800")

    assert error.startswith("the value cannot be checked")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": 5}, "5 is not valid"),
        ({"type": "strin"}, '"strin"'),
        ({"pattern": "("}, '"(" is not a "regex"'),
        ({"required": "name"}, '"name"'),
        ({"minimum": "a"}, '"a"'),
        ({"$ref": "#/nowhere"}, "/nowhere"),
        ({"properties": {"a": []}}, "[]"),
        ({"pattern": "\ud800"}, "UTF-8"),
        ({"a": {1, 2}}, "not JSON serializable"),
    ],
)
def test_an_invalid_schema_is_refused(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        compile_schema(schema)

    assert mentions(caught.value.message, f"The JSON Schema … : … {says}"), caught.value.message
    assert "\n" not in caught.value.message
    assert "json-schema.org" in caught.value.remedy


@pytest.mark.parametrize(
    ("reference", "place"),
    [
        ("http://models.example/schema", "http://models.example/schema"),
        ("https://models.example/s#/a", "https://models.example/s"),
        ("file:///etc/passwd", "file:///etc/passwd"),
    ],
)
def test_a_reference_outside_the_schema_is_refused_and_not_fetched(
    reference: str, place: str, loopback_only: list[str]
) -> None:
    with pytest.raises(SchemaError) as caught:
        compile_schema({"$ref": reference})

    assert mentions(caught.value.message, f"The JSON Schema … refers to {place}, … outside … not followed")
    assert loopback_only == []


def test_a_reference_inside_the_schema_is_followed() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}}, "additionalProperties": False}

    assert compile_schema(tree).errors({"left": {"left": {}}}) == []
    assert len(compile_schema(tree).errors({"left": {"right": {}}})) == 1


def test_a_recursive_schema_terminates() -> None:
    assert compile_schema({"$ref": "#"}).errors({"a": 1}) == []


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(a|aa)+$", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_catastrophic_pattern_takes_no_time(pattern: str) -> None:
    assert len(compile_schema({"type": "string", "pattern": pattern}).errors("a" * 100_000 + "!")) == 1


@pytest.mark.parametrize("pattern", ["a{1000}{1000}{1000}", "(?=a)b", r"(a)\1"])
def test_a_pattern_that_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(SchemaError):
        compile_schema({"pattern": pattern})


def test_a_schema_is_compiled_once_for_any_order_of_its_keys() -> None:
    assert compile_schema({"type": "object", "minProperties": 1}) is compile_schema(
        {"minProperties": 1, "type": "object"}
    )


def test_a_schema_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100_000):
        schema = {"not": schema}

    with pytest.raises(SchemaError):
        compile_schema(schema)
    while schema:  # taken apart by hand, since freeing it at once overflows the stack of some Pythons
        schema = schema.pop("not")
