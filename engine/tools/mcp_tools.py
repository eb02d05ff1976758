"""Tools of MCP servers, as last listed: stored in a file, so that documents are checked without a server.

A list is valid only for the settings with which it was read. It is fetched when a person asks for it, never because a
document was opened. A tool's JSON Schema becomes a pydantic model of its parameters. A schema that cannot be used is
reported. The server alone checks the inner structure of values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from engine.errors import Fix
from engine.formatting import format_json
from engine.safe_file_io import read_text_file, replace_file
from engine.tools.mcp_settings import McpServer
from engine.tools.tool import AnyTool, Consent, Text, Tool, ToolContext, ToolError
from engine.values import Value, as_list, encodable_text, map_texts, nesting

if TYPE_CHECKING:
    from engine.tools.mcp_connection import McpConnection

_TYPES: Final[Mapping[str, Any]] = {
    "string": Text,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}
_PORT_NAME: Final = re.compile(r"[A-Za-z_$@-][A-Za-z0-9_$@-]{0,59}")
_MAX_PARAMETERS: Final = 100
_MAX_HELP_LENGTH: Final = 500
_MAX_REFERENCE_DEPTH: Final = 10
_MAX_SCHEMA_DEPTH: Final = 100
_MAX_SCHEMA_BYTES: Final = 50_000
_MAX_FILE_BYTES: Final = 20_000_000


class UnusableSchemaError(Exception):
    """A schema that cannot be turned into parameters; the text says why, as half a sentence."""


class ServedParameters(BaseModel):
    """The base of the parameters of a server's tools.

    Attributes:
        served_schema: The server's own schema, with the properties named like the fields.
        served_names: The server's name of each field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    served_schema: ClassVar[dict[str, Any]] = {}
    served_names: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_options: Any) -> dict[str, Any]:
        """The server's own schema, which says more than the fields do."""
        return deepcopy(cls.served_schema)

    def arguments(self) -> dict[str, Any]:
        """The arguments that were set, by the server's names. The others are left to the server."""
        return {
            self.served_names[name]: map_texts(getattr(self, name), encodable_text) for name in self.model_fields_set
        }


def parameters_of(schema: Mapping[str, Any]) -> type[ServedParameters]:
    """Make a model of parameters from a JSON Schema.

    Raises:
        UnusableSchemaError: The schema cannot be used.
    """
    if nesting(dict(schema)) > _MAX_SCHEMA_DEPTH:
        raise UnusableSchemaError("the schema of its parameters is nested too deeply")
    given: Any = schema.get("properties") or {}
    if not isinstance(given, dict):
        raise UnusableSchemaError("its parameters are not an object")
    required = {name for name in as_list(schema.get("required")) if isinstance(name, str)}
    properties: dict[str, Any] = {}
    names: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for name, value in cast("dict[str, Any]", given).items():
        field = _field_name(name, properties)
        if field is None or len(fields) >= _MAX_PARAMETERS:
            if name in required:
                raise UnusableSchemaError(f"no port can have the name of its parameter {name[:60]!r}")
            continue
        declared = _declaration(value, schema)
        kind = declared.get("type")
        properties[field], names[field] = declared, name
        type_ = _TYPES.get(kind, Any) if isinstance(kind, str) else Any
        fields[field] = (type_, _field(field, declared, is_required=name in required))
    own = {key: value for key, value in schema.items() if key in {"$defs", "definitions", "description"}}
    own |= {"type": "object", "properties": properties, "additionalProperties": False}
    own["required"] = [field for field, name in names.items() if name in required]
    made = create_model("ServedArguments", __base__=ServedParameters, **fields)
    made.served_schema, made.served_names = own, names
    return made


def _field_name(name: str, taken: Mapping[str, Any]) -> str | None:
    """The name of a parameter's field: the same, except for names that pydantic reserves."""
    field = name.lstrip("_")
    if hasattr(BaseModel, field) or field in ServedParameters.__dict__:
        field = f"{field}_"
    return field if _PORT_NAME.fullmatch(field) and field not in taken else None


def _declaration(value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the schema declares about a parameter; its title and description are texts, if present."""
    if not isinstance(value, dict):
        return {}
    declared = cast("dict[str, Any]", value)
    if not _references_resolve(declared, schema, 0) or not _is_schema(declared, schema):
        declared = {"description": declared.get("description")}
    texts = {key: declared[key] for key in ("title", "description") if isinstance(declared.get(key), str)}
    rest = {key: part for key, part in declared.items() if key not in {"title", "description"}}
    return {**texts, **rest}


def _is_schema(declared: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether it is a JSON Schema that refers only to definitions of its own."""
    import jsonschema_rs

    whole = {key: schema[key] for key in ("$schema", "$defs") if key in schema} | {"properties": {"it": declared}}
    try:
        jsonschema_rs.validator_for(whole, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions())
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _refuse(uri: str) -> Any:
    raise ValueError(uri)


def _references_resolve(declared: Any, schema: Mapping[str, Any], depth: int) -> bool:
    """Whether all references lead to existing definitions, without a cycle."""
    if depth > _MAX_REFERENCE_DEPTH or not isinstance(declared, dict):
        return False
    part = cast("dict[str, Any]", declared)
    if "$ref" in part:
        base, _, name = str(part["$ref"]).rpartition("/")
        definitions = schema.get("$defs")
        found = cast("dict[str, Any]", definitions).get(name) if isinstance(definitions, dict) else None
        return base == "#/$defs" and _references_resolve(found, schema, depth + 1)
    choices = part.get("anyOf", [])
    return isinstance(choices, list) and all(
        _references_resolve(one, schema, depth + 1) for one in cast("list[Any]", choices)[:50]
    )


def _field(name: str, declared: Mapping[str, Any], *, is_required: bool) -> Any:
    title = declared.get("title") or name.replace("_", " ").strip().capitalize()
    default: Any = ... if is_required else declared.get("default")
    return Field(default, title=title[:60], description=declared.get("description", "")[:_MAX_HELP_LENGTH])


class ListedTool(BaseModel):
    """A tool as its server describes it."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1, max_length=128, pattern=r"^[^\s/\x00-\x1f\x7f]+$")
    title: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=8000)
    input_schema: dict[str, Any] = Field(default_factory=dict[str, Any])
    idempotent: bool = False


class Listing(BaseModel):
    """The tools of one server.

    Attributes:
        fingerprint: Of the settings with which the list was read.
        tools: The tools, in the server's order.
        left_out: A sentence for each tool that cannot be used.
    """

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    tools: tuple[ListedTool, ...] = ()
    left_out: tuple[str, ...] = ()


class _File(BaseModel):
    version: int = 1
    servers: dict[str, Listing] = Field(default_factory=dict[str, Listing])


def _connection(name: str, server: McpServer) -> McpConnection:
    try:
        from engine.tools.mcp_connection import McpConnection
    except ImportError as error:
        raise ToolError(
            "Tools of MCP servers need the package mcp, which is not installed.",
            "Install it.",
            fix=Fix.INSTALL.of("mcp"),
        ) from error
    return McpConnection(name, server)


async def ask_server(name: str, server: McpServer) -> Listing:
    """Start or reach a server, and list its tools.

    Raises:
        ToolError: It cannot be reached, or does not answer as it should.
    """
    connection = _connection(name, server)
    try:
        offered = await connection.list_tools()
    finally:
        await connection.close()
    usable: dict[str, ListedTool] = {}
    left_out: list[str] = []
    for tool in offered:
        hints = tool.annotations
        try:
            if len(json.dumps(tool.input_schema, allow_nan=False)) > _MAX_SCHEMA_BYTES:
                raise UnusableSchemaError("the schema of its parameters is too long")
            parameters_of(tool.input_schema)
            listed = ListedTool(
                name=tool.name,
                title=(tool.title or "")[:200],
                description=(tool.description or "")[:8000],
                input_schema=tool.input_schema,
                idempotent=hints is not None and bool(hints.read_only_hint or hints.idempotent_hint),
            )
            if tool.name in usable:
                raise UnusableSchemaError("another tool has the same name")
        except UnusableSchemaError as error:
            left_out.append(f'The tool "{tool.name[:60]}" cannot be used: {error}.')
        except (ValidationError, ValueError, RecursionError):
            left_out.append(f'The tool "{tool.name[:60]}" cannot be used: its description is invalid.')
        else:
            usable[tool.name] = listed
    return Listing(fingerprint=server.fingerprint, tools=tuple(usable.values()), left_out=tuple(left_out))


def read_listings(path: Path) -> dict[str, Listing]:
    """The stored lists by server; empty if the file is missing or invalid, since servers can be asked again."""
    try:
        return _File.model_validate_json(read_text_file(path, _MAX_FILE_BYTES)).servers
    except (OSError, ValueError):
        return {}


def write_listings(path: Path, listings: Mapping[str, Listing]) -> None:
    """Store lists in a file, which is replaced as a whole.

    Raises:
        OSError, ValueError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (format_json(_File(servers=dict(listings)).model_dump(), ascii_only=True) + "\n").encode())


def served_tools(name: str, server: McpServer, listing: Listing) -> Iterable[AnyTool]:
    """The tools of a server, called `SERVER/TOOL`."""
    for listed in listing.tools:
        try:
            parameters = parameters_of(listed.input_schema)
        except UnusableSchemaError:
            continue  # only in a file that somebody edited
        yield _tool(name, server, listed, parameters)


def _tool(name: str, server: McpServer, listed: ListedTool, parameters: type[ServedParameters]) -> AnyTool:
    async def run(given: ServedParameters, context: ToolContext) -> Value:
        key = ("mcp", name, server.fingerprint)
        connection = context.sessions.get(key, lambda: _connection(name, server))
        return await connection.call(listed.name, given.arguments())

    title = listed.title or listed.name.replace("_", " ").capitalize()
    return Tool(
        name=f"{name}/{listed.name}",
        title=f"{title} ({name})",
        help=listed.description.strip() or f"A tool of the MCP server {name}.",
        parameters=parameters,
        output_type="any",
        run=run,
        consent=Consent.CALL,
        idempotent=listed.idempotent,
    )
