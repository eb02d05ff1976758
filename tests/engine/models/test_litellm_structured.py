"""Requests for structured replies."""

from __future__ import annotations

import pytest

from engine.models.protocol import Message, with_instruction
from engine.models.quirks import Change, is_strict, response_format
from engine.values import Value

CLOSED: dict[str, Value] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({"type": "array", "items": CLOSED}, True),
        ({"type": "string"}, True),
        ({"anyOf": [CLOSED, {"type": "null"}]}, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({"type": "object"}, False),
        ({"properties": {"a": {}}}, False),
        ({**CLOSED, "properties": {"a": {"type": "object"}}}, False),
        ({"anyOf": [CLOSED, {"type": "object"}]}, False),
    ],
)
def test_schema_is_strict_if_all_objects_are_closed_and_complete(schema: Value, strict: bool) -> None:
    assert is_strict(schema) is strict


def test_response_format_for_each_form() -> None:
    open_schema: dict[str, Value] = {"type": "object"}

    assert response_format(open_schema, ()) == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": open_schema, "strict": False},
    }
    assert response_format(open_schema, (Change.JSON_OBJECT,)) == {"type": "json_object"}
    assert response_format(open_schema, (Change.SCHEMA_IN_WORDS,)) is None
    assert response_format(open_schema, (Change.JSON_OBJECT, Change.SCHEMA_IN_WORDS)) is None


def test_schema_instruction_joins_or_creates_the_system_message() -> None:
    user = Message("user", "Go.")

    joined = with_instruction((Message("system", "Be kind."), user), {"type": "object"})
    made = with_instruction((user,), {"type": "object"})

    assert joined[0].text.startswith("Be kind.\n\n")
    assert joined[0].text.endswith('{"type":"object"}')
    assert [message.role for message in made] == ["system", "user"]
    assert joined[1] == made[1] == user
