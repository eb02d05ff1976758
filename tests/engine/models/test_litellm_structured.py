"""How a structured reply is asked for."""

from __future__ import annotations

import pytest

from engine.models.protocol import Message, with_instruction
from engine.models.quirks import SchemaMode, is_strict, response_format
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
def test_a_schema_is_strict_when_all_its_objects_are_closed_and_whole(schema: Value, strict: bool) -> None:
    assert is_strict(schema) is strict


def test_each_form_has_its_response_format() -> None:
    open_schema: dict[str, Value] = {"type": "object"}

    assert response_format(open_schema, SchemaMode.JSON_SCHEMA) == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": open_schema, "strict": False},
    }
    assert response_format(open_schema, SchemaMode.JSON_OBJECT) == {"type": "json_object"}
    assert response_format(open_schema, SchemaMode.INSTRUCTION) is None


def test_the_forms_end_with_plain_words() -> None:
    assert SchemaMode.JSON_SCHEMA.simpler is SchemaMode.JSON_OBJECT
    assert SchemaMode.JSON_OBJECT.simpler is SchemaMode.INSTRUCTION
    assert SchemaMode.INSTRUCTION.simpler is SchemaMode.INSTRUCTION


def test_the_schema_in_words_joins_the_system_message_or_makes_one() -> None:
    user = Message("user", "Go.")

    joined = with_instruction((Message("system", "Be kind."), user), {"type": "object"})
    made = with_instruction((user,), {"type": "object"})

    assert joined[0].text.startswith("Be kind.\n\n")
    assert joined[0].text.endswith('{"type":"object"}')
    assert [message.role for message in made] == ["system", "user"]
    assert joined[1] == made[1] == user
