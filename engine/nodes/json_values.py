"""JSON values of nodes: parsing of text, conversion to a port's type, and checks against a JSON Schema.

Text and JSON are converted to each other if nothing is lost; else that is an error. Patterns in schemas cannot hang,
and references lead to nothing outside. `jsonschema_rs` does the checks; it is imported on first use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from engine.document.problems import FieldProblem, faults
from engine.errors import EngineError
from engine.nodes.spec import PortType
from engine.values import Value, to_text, value_of_json

if TYPE_CHECKING:
    from jsonschema_rs import Validator


def parse_json(text: str) -> Value:
    """Parse JSON from a model, a person or another node, with the rules of documents.

    Raises:
        ValueError: It is not JSON, holds a number that is not finite, or is nested too deeply.
    """
    value = value_of_json(text)
    fault = next(faults(value), None)
    if fault is not None:
        raise ValueError(f"{fault.message[0].lower()}{fault.message[1:].rstrip('.')}")
    return value


_ARTICLE: Final = {
    PortType.NUMBER: "a number",
    PortType.BOOLEAN: "true or false",
    PortType.LIST: "a list",
    PortType.JSON: "JSON",
}

_EXCLUSIVE: Final = (PortType.NUMBER, PortType.BOOLEAN, PortType.LIST)


class ConversionError(EngineError):
    """A value does not fit the port."""


def can_ever_fit(source: PortType, target: PortType) -> bool:
    """Whether any value of the type `source` fits the type `target`."""
    return source is target or source not in _EXCLUSIVE or target not in _EXCLUSIVE


def convert(value: Value, target: PortType) -> Value:
    """Convert a value to a port's type.

    Raises:
        ConversionError: It cannot be converted without loss.
    """
    if target is PortType.ANY or value is None:
        return value
    if target is PortType.TEXT:
        return to_text(value)
    if isinstance(value, str):
        value = _parsed(value, target)
    if _fits(value, target):
        return value
    raise ConversionError(
        f"{_shown(value)} is not {_ARTICLE[target]}.", "Put a Transform between the two nodes that makes it fit."
    )


def fits(value: Value, target: PortType) -> bool:
    """Whether a value has a port's type, without conversion."""
    return isinstance(value, str) if target is PortType.TEXT else _fits(value, target)


def _fits(value: Value, target: PortType) -> bool:
    if target is PortType.NUMBER:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, {PortType.BOOLEAN: bool, PortType.LIST: list}.get(target, object))


def _parsed(text: str, target: PortType) -> Value:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ConversionError(
            f"The text {_shown(text)} is not {_ARTICLE[target]}.",
            "Put a Transform between the two nodes, or ask the model for a structured reply.",
        ) from error


def _shown(value: Value) -> str:
    text = to_text(value)
    return json.dumps(text if len(text) <= 60 else text[:57] + "…", ensure_ascii=False)


_MOST_ERRORS = 20


class SchemaError(EngineError):
    """A JSON Schema is invalid."""


class Schema:
    """A compiled JSON Schema."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def errors(self, value: Value) -> list[str]:
        """The errors of a value as sentences, at most 20; empty if it is valid."""
        return [sentence for _, sentence in self.faults(value)]

    def faults(self, value: Value) -> list[tuple[int, str]]:
        """The same errors, each with its depth in the value."""
        found: list[tuple[int, str]] = []
        try:
            for error in self._validator.iter_errors(value):
                place = [str(step) for step in error.instance_path]
                found.append((len(place), f"{'/'.join(place) or 'the value'}: {_short(error.message)}."))
                if len(found) == _MOST_ERRORS:
                    break
        except ValueError as error:
            return [(0, f"the value cannot be checked ({_short(str(error))}).")]
        return found


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:299] + "…"


def compile_schema(schema: dict[str, Any]) -> Schema:
    """Compile a JSON Schema.

    Raises:
        SchemaError: It is invalid, or refers to something outside itself.
    """
    try:
        return _compiled(json.dumps(schema, sort_keys=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(
            f"The JSON Schema cannot be used: {_short(_reason(error))}.",
            "See json-schema.org for the syntax of schemas.",
        ) from error


def schema_problems(schema: dict[str, Any] | None, field: str) -> Iterator[FieldProblem]:
    """The problem of a setting whose JSON Schema is invalid; None is valid."""
    try:
        if schema is not None:
            compile_schema(schema)
    except SchemaError as error:
        yield FieldProblem("bad-schema", field, error.message, error.remedy)


def _reason(error: Exception) -> str:
    """The first line of an error, without the library's text around an error of ours."""
    return str(error).partition("\n")[0].rpartition("ValueError: ")[2].rstrip(".")


@lru_cache(maxsize=64)
def _compiled(schema: str) -> Schema:
    import jsonschema_rs

    # Patterns without backtracking: neither a schema nor a model's text can hang the program.
    return Schema(
        jsonschema_rs.validator_for(
            json.loads(schema), retriever=_refuse_reference, pattern_options=jsonschema_rs.RegexOptions()
        )
    )


def _refuse_reference(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}, and references outside the schema are not followed")
