"""The tools of a person's MCP servers: offered from what is kept of each server, and asked for anew when wanted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from engine.errors import EngineError
from engine.extensions.extensions_file import Extensions, ExtensionsError
from engine.extensions.plugins import enable_plugin
from engine.tools.mcp_settings import McpServer
from engine.tools.mcp_tools import Listing, ask_server, read_listings, served_tools, write_listings
from engine.tools.registry import set_tools

LISTINGS_NAME: Final = "mcp-tools.json"


def listings_path(extensions: Path) -> Path:
    """Where what servers offer is kept: beside the file of the extensions."""
    return extensions.with_name(LISTINGS_NAME)


def offer_server(name: str, server: McpServer, listing: Listing | None) -> str:
    """Offer a server's tools to documents, as far as they are known.

    Returns:
        What there is to say about it, in one sentence; empty where nothing is.

    Raises:
        ToolError: One of them has the name of another tool.
    """
    if listing is None or listing.fingerprint != server.fingerprint:
        set_tools(_owner(name), ())
        return (
            f'What the MCP server "{name}" offers is not known yet. '
            f"Ask it under Settings › Tools, or with: loopwright tools --refresh {name}."
        )
    set_tools(_owner(name), served_tools(name, server, listing))
    return ""


def withdraw_server(name: str) -> None:
    """Offer nothing of a server any more."""
    set_tools(_owner(name), ())


async def refresh_server(name: str, server: McpServer, path: Path) -> Listing:
    """Ask a server what it offers, keep that, and offer it.

    Args:
        name: What people call it.
        server: How it is reached.
        path: Where what servers offer is kept.

    Raises:
        ToolError: It cannot be reached, or does not answer as it should.
        ExtensionsError: What it said cannot be kept.
    """
    listing = await ask_server(name, server)
    try:
        await asyncio.to_thread(_keep, path, name, listing)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExtensionsError(f"{path} cannot be written: {reason}.", "Look at the folder.") from error
    offer_server(name, server, listing)
    return listing


def _keep(path: Path, name: str, listing: Listing) -> None:
    write_listings(path, {**read_listings(path), name: listing})


def _owner(name: str) -> str:
    return f"the MCP server {name}"


def activate_extensions(extensions: Extensions, path: Path) -> list[str]:
    """Offer the tools of the servers, and load the plugins that are enabled. No server is started.

    Args:
        extensions: What is to be added.
        path: The file that it comes from; what servers offer is kept beside it.

    Returns:
        What could not be added and why, a sentence each. The rest is added all the same.
    """
    remarks: list[str] = []
    listings = read_listings(listings_path(path)) if extensions.servers else {}
    for name, server in extensions.servers.items():
        try:
            remarks.append(offer_server(name, server, listings.get(name)))
        except EngineError as error:
            remarks.append(str(error))
    for plugin in extensions.plugins:
        try:
            enable_plugin(plugin)
        except EngineError as error:
            remarks.append(str(error))
    return [remark for remark in remarks if remark]
