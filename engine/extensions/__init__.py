"""The user's extensions: MCP servers and plugins, configured in one file of the user, never in a document.

Opening or validating a document loads no extension. The program activates them once, at its start:

    from engine.extensions import activate_extensions, extensions_path, read_extensions

    path = extensions_path()
    warnings = activate_extensions(read_extensions(path), path)

What is slow to import (plugins, MCP) is imported on first use.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from engine.errors import EngineError, Fix, reason_of
from engine.formatting import format_json
from engine.safe_file_io import read_text_file, replace_file, user_path
from engine.text_sanitizing import shown
from engine.tools.mcp_settings import NAME_PATTERN, McpServer

if TYPE_CHECKING:
    from engine.extensions.plugins import (
        InstalledPlugin,
        ModelFamily,
        Plugin,
        PluginError,
        enable_plugin,
        installed_plugins,
    )
    from engine.tools.mcp_tools import Listing

__all__ = [
    "Extensions",
    "ExtensionsError",
    "InstalledPlugin",
    "ModelFamily",
    "Plugin",
    "PluginError",
    "activate_extensions",
    "enable_plugin",
    "extensions_path",
    "installed_plugins",
    "listings_path",
    "offer_server",
    "read_extensions",
    "refresh_server",
    "withdraw_server",
    "write_extensions",
]

EXTENSIONS_VARIABLE: Final = "LOOPWRIGHT_EXTENSIONS"
_MAX_BYTES: Final = 1_000_000


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'engine.extensions' has no attribute {name!r}")
    from engine.extensions import plugins

    return getattr(plugins, name)


class ExtensionsError(EngineError):
    """The file of extensions cannot be read or written."""


class Extensions(BaseModel):
    """The content of the file of extensions.

    Attributes:
        plugins: Names of the enabled plugins.
        servers: MCP servers by name; `mcpServers` in the file, as in other programs.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    plugins: tuple[str, ...] = ()
    servers: dict[str, McpServer] = Field(default_factory=dict[str, McpServer], alias="mcpServers")

    @field_validator("servers")
    @classmethod
    def _check_names(cls, servers: dict[str, McpServer]) -> dict[str, McpServer]:
        for name in servers:
            if not re.fullmatch(NAME_PATTERN, name):
                sentence = f'A server cannot be called "{shown(name, 40)}": use lowercase letters, digits, - and _.'
                raise PydanticCustomError("refused", "{sentence}", {"sentence": sentence})
        return servers


def extensions_path() -> Path:
    """The file of the user's extensions: the one in LOOPWRIGHT_EXTENSIONS, else one in the user's settings folder."""
    return user_path(EXTENSIONS_VARIABLE, "extensions.json")


def listings_path(extensions: Path) -> Path:
    """The file beside the file of extensions that stores which tools each server offers."""
    return extensions.with_name("mcp-tools.json")


def read_extensions(path: Path) -> Extensions:
    """Read the file of extensions; a missing file has none.

    Raises:
        ExtensionsError: The file cannot be read, or its content is invalid.
    """
    try:
        content = read_text_file(path, _MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return Extensions()
    except (OSError, ValueError) as error:
        raise ExtensionsError(f"{path} cannot be read: {reason_of(error)}.", "Check the file.") from error
    try:
        return Extensions.model_validate_json(content)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in detail["loc"])
        where = f" at {shown(place, 80)}" if place else ""
        message = f"{path} cannot be used{where}: {shown(detail['msg'], 200).rstrip('.')}."
        raise ExtensionsError(message, "Correct the file.") from error


def write_extensions(path: Path, extensions: Extensions) -> None:
    """Write the file of extensions atomically.

    Raises:
        ExtensionsError: The file cannot be written.
    """
    content = extensions.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, (format_json({"version": 1} | content, ascii_only=True) + "\n").encode())
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: Exception) -> ExtensionsError:
    return ExtensionsError(f"{path} cannot be written: {reason_of(error)}.", "Check the folder.")


def activate_extensions(extensions: Extensions, path: Path) -> list[EngineError]:
    """Offer the servers' tools and load the enabled plugins. No server is started.

    Args:
        extensions: The extensions to activate.
        path: The file that lists them.

    Returns:
        An error for each extension that could not be activated; the others are.
    """
    if not (extensions.servers or extensions.plugins):
        return []  # the common case, without the slow imports below
    from engine.extensions.plugins import enable_plugin
    from engine.tools.mcp_tools import read_listings

    warnings: list[EngineError] = []
    listings = read_listings(listings_path(path)) if extensions.servers else {}
    for name, server in extensions.servers.items():
        try:
            offer_server(name, server, listings.get(name))
        except EngineError as error:
            warnings.append(error)
    for plugin in extensions.plugins:
        try:
            enable_plugin(plugin)
        except EngineError as error:
            warnings.append(error)
    return warnings


def offer_server(name: str, server: McpServer, listing: Listing | None) -> None:
    """Offer a server's tools to documents.

    Raises:
        ToolError: The tools are not known yet, or one of them has the name of another tool.
    """
    from engine.tools.mcp_tools import served_tools
    from engine.tools.registry import set_tools
    from engine.tools.tool import ToolError

    if listing is None or listing.fingerprint != server.fingerprint:
        withdraw_server(name)
        raise ToolError(
            f'The tools of the MCP server "{name}" are not known yet.',
            "List its tools.",
            fix=Fix.ASK_SERVER.of(name),
        )
    set_tools(_owner(name), served_tools(name, server, listing))


def withdraw_server(name: str) -> None:
    """Stop offering a server's tools."""
    from engine.tools.registry import set_tools

    set_tools(_owner(name), ())


async def refresh_server(name: str, server: McpServer, path: Path) -> Listing:
    """Ask a server for its tools, store the answer, and offer them.

    Args:
        name: The server's name.
        server: How to reach it.
        path: The file that stores what servers offer.

    Raises:
        ToolError: The server cannot be reached, or answers incorrectly.
        ExtensionsError: The file cannot be written.
    """
    from engine.tools.mcp_tools import ask_server, read_listings, write_listings

    listing = await ask_server(name, server)
    try:
        await asyncio.to_thread(lambda: write_listings(path, {**read_listings(path), name: listing}))
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from error
    offer_server(name, server, listing)
    return listing


def _owner(name: str) -> str:
    return f"the MCP server {name}"
