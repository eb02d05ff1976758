"""Request parameters for structured replies: JSON Schema, JSON mode, or an instruction in the prompt."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from engine.models.base import Message
from engine.values import Value, compact_json


class SchemaMode(Enum):
    """The forms, the strictest first."""

    JSON_SCHEMA = auto()
    JSON_OBJECT = auto()
    INSTRUCTION = auto()

    @property
    def simpler(self) -> SchemaMode:
        """The next form to try where a server does not know this one; after the plainest comes itself."""
        return SchemaMode.JSON_OBJECT if self is SchemaMode.JSON_SCHEMA else SchemaMode.INSTRUCTION


def response_format(schema: dict[str, Value], mode: SchemaMode) -> dict[str, Any] | None:
    """The request's `response_format`; None where the form has none."""
    if mode is SchemaMode.JSON_SCHEMA:
        form = {"name": "reply", "schema": schema, "strict": is_strict(schema)}
        return {"type": "json_schema", "json_schema": form}
    return {"type": "json_object"} if mode is SchemaMode.JSON_OBJECT else None


def is_strict(schema: Value) -> bool:
    """Whether OpenAI takes the schema as a strict one: every object in it is closed and requires all its properties."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or isinstance(properties, dict):
        required = schema.get("required")
        named = set(properties) if isinstance(properties, dict) else set[str]()
        closed = schema.get("additionalProperties") is False
        if not closed or not isinstance(required, list) or {str(name) for name in required} != named:
            return False
    return all(is_strict(part) for part in schema.values())


def with_instruction(messages: tuple[Message, ...], schema: dict[str, Value]) -> tuple[Message, ...]:
    """The messages with the schema in words, at the end of the system message or as one of its own."""
    words = (
        "Answer with one JSON value that follows this JSON Schema, and with nothing else, no fences:\n"
        f"{compact_json(schema)}"
    )
    if messages and messages[0].role == "system":
        return (Message("system", f"{messages[0].text}\n\n{words}"), *messages[1:])
    return (Message("system", words), *messages)
