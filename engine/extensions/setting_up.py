"""Adding to the program what a person has set up, once, when it starts."""

from __future__ import annotations

from pathlib import Path

from engine.errors import EngineError
from engine.extensions.file import Extensions
from engine.extensions.plugins import enable_plugin
from engine.extensions.servers import listings_path, offer_server
from engine.tools.mcp.listing import read_listings


def set_up(extensions: Extensions, path: Path) -> list[str]:
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
