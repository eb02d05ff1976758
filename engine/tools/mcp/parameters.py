"""From the JSON Schema of a served tool's arguments to what every tool has: a pydantic model of parameters.

A server's schema is data of others: whatever it says, this neither fails nor hangs. What it says about the inside of a
value only the server checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar, Final, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from engine.tools.parameters import Text, whole_characters
from engine.values import nesting

_TYPES: Final[Mapping[str, Any]] = {
    "string": Text,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}
_CAN_BE_A_PORT: Final = re.compile(r"[A-Za-z_$@-][A-Za-z0-9_$@-]{0,59}")
_MOST_PARAMETERS: Final = 100
_LONGEST_HELP: Final = 500
_DEEPEST_REFERENCE: Final = 10
_DEEPEST_SCHEMA: Final = 100


class UnusableSchemaError(Exception):
    """A schema of which no parameters can be made; the text says why, as half a sentence."""


class ServedParameters(BaseModel):
    """The base of the parameters of served tools.

    Attributes:
        served_schema: The server's own schema, with the properties called as the fields are.
        served_names: How the server calls each field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    served_schema: ClassVar[dict[str, Any]] = {}
    served_names: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_options: Any) -> dict[str, Any]:
        """The schema as the server gave it, which says more than the fields do."""
        return deepcopy(cls.served_schema)

    def arguments(self) -> dict[str, Any]:
        """What was given, called as the server calls it. What was not given is left to the server."""
        return {self.served_names[name]: whole_characters(getattr(self, name)) for name in self.model_fields_set}


def parameters_of(schema: Mapping[str, Any]) -> type[ServedParameters]:
    """Make the model.

    Raises:
        UnusableSchemaError: No parameters can be made of it.
    """
    if nesting(dict(schema)) > _DEEPEST_SCHEMA:
        raise UnusableSchemaError("the schema of its parameters is nested too deeply")
    given: Any = schema.get("properties") or {}
    if not isinstance(given, dict):
        raise UnusableSchemaError("its parameters are no object")
    listed = schema.get("required")
    required = {name for name in cast("list[Any]", listed) if isinstance(name, str)} if isinstance(listed, list) else ()
    properties: dict[str, Any] = {}
    names: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for name, value in cast("dict[str, Any]", given).items():
        field = _field_name(name, properties)
        if field is None or len(fields) >= _MOST_PARAMETERS:
            if name in required:
                raise UnusableSchemaError(f"no port can have the name of its parameter {name[:60]!r}")
            continue
        declared = _plain(value, schema)
        properties[field], names[field] = declared, name
        fields[field] = (_type_of(declared), _field(field, declared, is_required=name in required))
    own = {key: value for key, value in schema.items() if key in {"$defs", "definitions", "description"}}
    own |= {"type": "object", "properties": properties, "additionalProperties": False}
    own["required"] = [field for field, name in names.items() if name in required]
    made = create_model("ServedArguments", __base__=ServedParameters, **fields)
    made.served_schema, made.served_names = own, names
    return made


def _field_name(name: str, taken: Mapping[str, Any]) -> str | None:
    """How the field is called: as the parameter, but for the names that pydantic keeps for itself."""
    field = name.lstrip("_")
    if hasattr(BaseModel, field) or field in ServedParameters.__dict__:
        field = f"{field}_"
    return field if _CAN_BE_A_PORT.fullmatch(field) and field not in taken else None


def _plain(value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the schema says about a parameter, such that whoever reads it finds texts where texts belong."""
    if not isinstance(value, dict):
        return {}
    declared = cast("dict[str, Any]", value)
    if not _ends(declared, schema, 0) or not _is_schema(declared, schema):
        declared = {"description": declared.get("description")}
    texts = {key: declared[key] for key in ("title", "description") if isinstance(declared.get(key), str)}
    rest = {key: part for key, part in declared.items() if key not in {"title", "description"}}
    return {**texts, **rest}


def _is_schema(declared: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether it is a JSON Schema whose references are all to definitions of its own."""
    import jsonschema_rs

    whole = {key: schema[key] for key in ("$schema", "$defs") if key in schema} | {"properties": {"it": declared}}
    try:
        jsonschema_rs.validator_for(whole, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions())
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _refuse(uri: str) -> Any:
    raise ValueError(uri)


def _ends(declared: Any, schema: Mapping[str, Any], depth: int) -> bool:
    """Whether following its references comes to an end, at definitions that are there."""
    if depth > _DEEPEST_REFERENCE or not isinstance(declared, dict):
        return False
    part = cast("dict[str, Any]", declared)
    if "$ref" in part:
        home, _, name = str(part["$ref"]).rpartition("/")
        definitions = schema.get("$defs")
        found = cast("dict[str, Any]", definitions).get(name) if isinstance(definitions, dict) else None
        return home == "#/$defs" and _ends(found, schema, depth + 1)
    choices = part.get("anyOf", [])
    return isinstance(choices, list) and all(_ends(one, schema, depth + 1) for one in cast("list[Any]", choices)[:50])


def _type_of(declared: Mapping[str, Any]) -> Any:
    kind = declared.get("type")
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def _field(name: str, declared: Mapping[str, Any], *, is_required: bool) -> Any:
    title = declared.get("title") or name.replace("_", " ").strip().capitalize()
    default: Any = ... if is_required else declared.get("default")
    return Field(default, title=title[:60], description=declared.get("description", "")[:_LONGEST_HELP])
