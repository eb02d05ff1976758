"""What servers offer, as they last said: kept in a file, so that documents can be checked and forms made without them.

A list counts only for the settings with which it was read. It is asked for when a person wants it, never because a
document was opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.formatting import format_json
from engine.safe_file_io import read_text_file, replace_file
from engine.tools.base import AnyTool, Consent, Tool, ToolContext
from engine.tools.mcp.connection import McpConnection
from engine.tools.mcp.parameters import ServedParameters, UnusableSchemaError, parameters_of
from engine.tools.mcp.settings import McpServer
from engine.values import Value

if TYPE_CHECKING:
    from mcp_types import Tool as OfferedTool

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
