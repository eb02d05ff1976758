"""Descriptions of node types and tools for commands and reference pages: ports, fields, types and limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from engine.nodes.spec import AnySpec, NodeConfig, Port

_LIMITS: Final = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("pattern", "matches {}"),
)


_MAX_REFERENCE_DEPTH: Final = 10

_KINDS: Final = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "object",
    "null": "empty",
}


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """Description of a setting.

    Attributes:
        name: Its key in `config`.
        title: Its label.
        kind: The type of its values, in words: `text or empty`, `one of a, b`.
        limits: The limits of its values, in words; may be empty.
        default: Its default as JSON; empty if a value is required.
        help: Its help text.
    """

    name: str
    title: str
    kind: str
    limits: str
    default: str
    help: str


def default_ports(spec: AnySpec) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """The input and output ports of a node with default settings."""
    config = spec.config()
    return spec.inputs(config), spec.all_outputs(config)


def config_schema(spec: AnySpec) -> dict[str, Any]:
    """The JSON Schema of the type's `config`."""
    return spec.config.model_json_schema()


def port_to_json(port: Port) -> dict[str, Any]:
    """A port as a JSON object."""
    return {
        "name": port.name,
        "type": str(port.type),
        "help": port.help,
        "required": port.required,
        "many": port.many,
        "branch": port.branch,
    }


def port_notes(port: Port) -> str:
    """Notes on a port: whether it is required, and so on."""
    notes = (("required", port.required), ("takes several edges", port.many), ("branch", port.branch))
    return ", ".join(word for word, holds in notes if holds)


def spec_to_json(spec: AnySpec) -> dict[str, Any]:
    """A node type as a JSON object."""
    inputs, outputs = default_ports(spec)
    return {
        "type": spec.type,
        "title": spec.title,
        "category": str(spec.category),
        "help": spec.help,
        "inputs": [port_to_json(port) for port in inputs],
        "outputs": [port_to_json(port) for port in outputs],
        "config_schema": config_schema(spec),
    }


def fields(model: type[BaseModel]) -> list[FieldDescription]:
    """The settings of a node type or the parameters of a tool; settings that all nodes have come last.

    The fields of list entries follow their list (`branches[].name`).
    """
    schema = model.model_json_schema()
    properties = schema.get("properties", {})
    own = {name: field for name, field in properties.items() if name not in NodeConfig.model_fields}
    facts: list[FieldDescription] = []
    for name, field in {**own, **properties}.items():
        declared = model.model_fields[name]
        default = "" if declared.is_required() else _as_json(declared.get_default(call_default_factory=True))
        facts.append(_field(name, field, schema, default))
        facts += _entry_fields(name, field, schema)
    return facts


def _as_json(value: object) -> str:
    return json.dumps(to_jsonable_python(value), ensure_ascii=False)


def _entry_fields(name: str, field: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[FieldDescription]:
    entries = list(_shapes(field.get("items"), schema))
    kinds = [(kind, entry) for entry in entries for kind in _kind_keys(entry)]
    if len(kinds) > 1:
        yield _kind_field(name, [entry for _, entry in kinds], kinds[0][0])
    for entry in entries:
        own = [kind for kind in _kind_keys(entry) if len(kinds) > 1]
        for inner, inner_field in entry.get("properties", {}).items():
            if isinstance(inner_field, dict) and inner not in own:
                declared = cast("dict[str, Any]", inner_field)
                default = _as_json(declared["default"]) if "default" in declared else ""
                fact = _field(f"{name}[].{inner}", declared, schema, default)
                kind = f"{entry['properties'][own[0]]['const']}: " if own else ""
                yield replace(fact, help=f"{kind}{fact.help}")


def _kind_keys(entry: Mapping[str, Any]) -> list[str]:
    """The fields of an entry that have one fixed value, which tells it from entries of other kinds."""
    return [name for name, field in entry.get("properties", {}).items() if isinstance(field, dict) and "const" in field]


def _kind_field(name: str, entries: Sequence[Mapping[str, Any]], key: str) -> FieldDescription:
    """The field that says of which kind an entry is."""
    kinds = {str(entry["properties"][key]["const"]): entry.get("description", "") for entry in entries}
    about = " ".join(f"{kind}: {text}" for kind, text in kinds.items())
    title = str(entries[0]["properties"][key].get("title", key))
    return FieldDescription(f"{name}[].{key}", title, f"one of {', '.join(kinds)}", "", "", about)


def _field(name: str, field: Mapping[str, Any], schema: Mapping[str, Any], default: str) -> FieldDescription:
    shapes = list(_shapes(field, schema))
    limits = [words.format(shape[key]) for shape in shapes for key, words in _LIMITS if key in shape]
    return FieldDescription(
        name,
        field.get("title", name),
        " or ".join(dict.fromkeys(map(_kind, shapes))),
        ", ".join(dict.fromkeys(limits)),
        default,
        field.get("description", ""),
    )


def _shapes(field: Any, schema: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The alternatives of a field's schema, with references resolved.

    The schema may come from an MCP server, so it may be `true`, and references may be circular.
    """
    if not isinstance(field, dict) or depth > _MAX_REFERENCE_DEPTH:
        return
    part = cast("dict[str, Any]", field)
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        yield from _shapes(schema.get("$defs", {}).get(name), schema, depth + 1)
    elif "anyOf" in part or "oneOf" in part:
        for alternative in part.get("anyOf") or part["oneOf"]:
            yield from _shapes(alternative, schema, depth + 1)
    else:
        yield part


def _kind(shape: Mapping[str, Any]) -> str:
    if "enum" in shape:
        return f"one of {', '.join(map(str, shape['enum']))}"
    if "const" in shape:
        return str(shape["const"])
    kinds: Any = shape.get("type", "")
    listed = cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]
    named = [_KINDS.get(str(kind), "any value") for kind in listed]
    return " or ".join(dict.fromkeys(named))
