"""JSON Schema for nodes: compiled once, with patterns that cannot hang and references that reach nothing outside.

Checking is `jsonschema_rs`'s; it is imported on first use.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.values import Value

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_MOST_ERRORS = 20


class SchemaError(EngineError):
    """A JSON Schema that cannot be used."""


class Schema:
    """A compiled JSON Schema."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def errors(self, value: Value) -> list[str]:
        """What is wrong with a value, a sentence each, at most 20; empty where it fits."""
        return [sentence for _, sentence in self.faults(value)]

    def faults(self, value: Value) -> list[tuple[int, str]]:
        """The same errors, each with the depth at which it lies."""
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


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def compile_schema(schema: dict[str, Any]) -> Schema:
    """Compile a JSON Schema.

    Raises:
        SchemaError: It is no valid schema, or refers to something outside itself.
    """
    try:
        return _compiled(json.dumps(schema, sort_keys=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(
            f"The JSON Schema cannot be used: {_short(_reason(error))}.",
            "See json-schema.org for what a schema may say.",
        ) from error


def _reason(error: Exception) -> str:
    """The first line of what is wrong, without what the library says around an error of ours."""
    return str(error).partition("\n")[0].rpartition("ValueError: ")[2].rstrip(".")


@lru_cache(maxsize=64)
def _compiled(schema: str) -> Schema:
    import jsonschema_rs

    # Patterns without backtracking: a schema or a model's text must not be able to hang the program.
    return Schema(
        jsonschema_rs.validator_for(
            json.loads(schema), retriever=_refuse_reference, pattern_options=jsonschema_rs.RegexOptions()
        )
    )


def _refuse_reference(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}, and references outside the schema are not followed")
