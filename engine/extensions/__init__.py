"""The user's extensions: MCP servers and plugins, configured in one file of the user, never in a document.

Opening or validating a document loads no extension. The program activates them once, at its start:

    from engine.extensions import activate_extensions, extensions_path, read_extensions

    path = extensions_path()
    warnings = activate_extensions(read_extensions(path), path)

Names are imported on first use, so importing this package is cheap.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from engine.extensions.activation import (
        activate_extensions,
        listings_path,
        offer_server,
        refresh_server,
        withdraw_server,
    )
    from engine.extensions.extensions_file import Extensions, ExtensionsError, read_extensions, write_extensions
    from engine.extensions.plugins import (
        InstalledPlugin,
        ModelFamily,
        Plugin,
        PluginError,
        enable_plugin,
        installed_plugins,
    )

EXTENSIONS_VARIABLE: Final = "LOOPWRIGHT_EXTENSIONS"
_FILE_NAME: Final = "extensions.json"

_HOMES = {
    "activation": ("activate_extensions", "listings_path", "offer_server", "refresh_server", "withdraw_server"),
    "extensions_file": ("Extensions", "ExtensionsError", "read_extensions", "write_extensions"),
    "plugins": (
        *("InstalledPlugin", "ModelFamily", "Plugin", "PluginError"),
        *("enable_plugin", "installed_plugins"),
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'engine.extensions' has no attribute {name!r}")
    return getattr(importlib.import_module(f"engine.extensions.{_HOME_OF[name]}"), name)


def extensions_path() -> Path:
    """The file of the user's extensions: the one in LOOPWRIGHT_EXTENSIONS, else one in the user's settings folder."""
    named = os.environ.get(EXTENSIONS_VARIABLE, "").strip()
    if named:
        return Path(named)
    import platformdirs

    return platformdirs.user_config_path("loopwright", appauthor=False) / _FILE_NAME
