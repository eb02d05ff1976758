"""What a person adds to the program: MCP servers and plugins. Kept in one file of theirs, never in a document.

Opening or checking a document loads none of it. Whoever starts the program does, once:

    from engine.extensions import extensions_path, read_extensions, set_up

    path = extensions_path()
    remarks = set_up(read_extensions(path), path)

Names are loaded on first use, so that importing this costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.extensions.file import Extensions, ExtensionsError, read_extensions, write_extensions
    from engine.extensions.place import extensions_path
    from engine.extensions.plugin import ExitConditionType, ModelFamily, Plugin, PluginError
    from engine.extensions.plugins import InstalledPlugin, enable_plugin, installed_plugins
    from engine.extensions.servers import listings_path, offer_server, refresh_server, withdraw_server
    from engine.extensions.setting_up import set_up

_HOMES = {
    "file": ("Extensions", "ExtensionsError", "read_extensions", "write_extensions"),
    "place": ("extensions_path",),
    "plugin": ("ExitConditionType", "ModelFamily", "Plugin", "PluginError"),
    "plugins": ("InstalledPlugin", "enable_plugin", "installed_plugins"),
    "servers": ("listings_path", "offer_server", "refresh_server", "withdraw_server"),
    "setting_up": ("set_up",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ExitConditionType",
    "Extensions",
    "ExtensionsError",
    "InstalledPlugin",
    "ModelFamily",
    "Plugin",
    "PluginError",
    "enable_plugin",
    "extensions_path",
    "installed_plugins",
    "listings_path",
    "offer_server",
    "read_extensions",
    "refresh_server",
    "set_up",
    "withdraw_server",
    "write_extensions",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'engine.extensions' has no attribute {name!r}")
    return getattr(importlib.import_module(f"engine.extensions.{_HOME_OF[name]}"), name)
