"""The tools that MCP servers offer, as last listed: stored in a file, so that documents are checked without a server.

A list is valid only for the settings with which it was read. It is fetched when a person asks for it, never because a
document was opened. A tool's JSON Schema becomes a pydantic model of its parameters; a schema that cannot be read is
reported, and a value's inner structure is checked by the server alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from engine.formatting import format_json
from engine.safe_file_io import read_text_file, replace_file
from engine.tools.base import AnyTool, Consent, Tool, ToolContext
from engine.tools.mcp.connection import McpConnection
from engine.tools.mcp.settings import McpServer
from engine.tools.parameters import Text, whole_characters
from engine.values import Value, nesting

if TYPE_CHECKING:
    from mcp_types import Tool as OfferedTool

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


_MAX_FILE_BYTES: Final = 20_000_000
_MAX_SCHEMA_BYTES: Final = 50_000


class ListedTool(BaseModel):
    """A tool as its server describes it."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1, max_length=128, pattern=r"^[^\s/\x00-\x1f\x7f]+$")
    title: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=8000)
    input_schema: dict[str, Any] = Field(default_factory=dict[str, Any])
    idempotent: bool = False


class Listing(BaseModel):
    """What one server offers.

    Attributes:
        fingerprint: Of the settings with which it was asked.
        tools: Its tools, in its order.
        left_out: What cannot be offered here, a sentence each.
    """

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    tools: tuple[ListedTool, ...] = ()
    left_out: tuple[str, ...] = ()


class _File(BaseModel):
    version: int = 1
    servers: dict[str, Listing] = Field(default_factory=dict[str, Listing])


async def ask_server(name: str, server: McpServer) -> Listing:
    """Start or reach a server, and ask it what it offers.

    Raises:
        ToolError: It cannot be reached, or does not answer as it should.
    """
    connection = McpConnection(name, server)
    try:
        offered = await connection.offered()
    finally:
        await connection.close()
    kept: dict[str, ListedTool] = {}
    left_out: list[str] = []
    for one in offered:
        try:
            if len(json.dumps(one.input_schema, allow_nan=False)) > _MAX_SCHEMA_BYTES:
                raise UnusableSchemaError("the schema of its parameters is too long")
            parameters_of(one.input_schema)
            title, text = (one.title or "")[:200], (one.description or "")[:8000]
            listed = ListedTool(
                name=one.name,
                title=title,
                description=text,
                input_schema=one.input_schema,
                idempotent=_is_idempotent(one),
            )
            if one.name in kept:
                raise UnusableSchemaError("there are two of that name")
        except UnusableSchemaError as error:
            left_out.append(f'The tool "{one.name[:60]}" cannot be used: {error}.')
        except (ValidationError, ValueError, RecursionError):
            left_out.append(f'The tool "{one.name[:60]}" cannot be used: its description cannot be read.')
        else:
            kept[one.name] = listed
    return Listing(fingerprint=server.fingerprint, tools=tuple(kept.values()), left_out=tuple(left_out))


def _is_idempotent(offered: OfferedTool) -> bool:
    """Whether the server says that a second call does no harm."""
    hints = offered.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


def read_listings(path: Path) -> dict[str, Listing]:
    """What is kept, by server; nothing where there is no file, or none that can be read: it can be asked for again."""
    try:
        return _File.model_validate_json(read_text_file(path, _MAX_FILE_BYTES)).servers
    except (OSError, ValueError):
        return {}


def write_listings(path: Path, listings: Mapping[str, Listing]) -> None:
    """Keep what servers offer: all of it, or the old file stays.

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
            continue  # only a file that somebody has written by hand
        yield _tool(name, server, listed, parameters)


def _tool(name: str, server: McpServer, listed: ListedTool, parameters: type[ServedParameters]) -> AnyTool:
    async def run(given: ServedParameters, context: ToolContext) -> Value:
        key = ("mcp", name, server.fingerprint)
        connection = context.sessions.get(key, lambda: McpConnection(name, server))
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
