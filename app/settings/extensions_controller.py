"""Load the user's MCP servers and plugins when the program starts, and change them in the settings.

Slow work (reading the file, loading a plugin, starting a server) runs in the engine's thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, Signal

from app.engine_thread import EngineThread
from engine.errors import EngineError
from engine.extensions import (
    Extensions,
    InstalledPlugin,
    activate_extensions,
    enable_plugin,
    extensions_path,
    installed_plugins,
    listings_path,
    read_extensions,
    refresh_server,
    withdraw_server,
    write_extensions,
)
from engine.safe_file_io import is_file
from engine.tools.mcp_settings import VARIABLES, McpServer
from engine.tools.mcp_tools import read_listings


@dataclass(frozen=True, slots=True)
class InstalledExtensions:
    """The servers and plugins that are set up or installed.

    Attributes:
        extensions: The content of the extensions file.
        plugins: The installed plugins.
        tools: Number of tools of each server whose tools have been listed.
        remarks: What could not be loaded and why, in sentences.
    """

    extensions: Extensions = field(default_factory=Extensions)
    plugins: tuple[InstalledPlugin, ...] = ()
    tools: dict[str, int] = field(default_factory=dict[str, int])
    remarks: tuple[str, ...] = ()


class ExtensionsController(QObject):
    """Manages the user's MCP servers and plugins.

    Signals:
        changed: Something was added or removed.

    Attributes:
        added: The current servers and plugins.
        path: The extensions file.
    """

    changed = Signal()

    def __init__(self, engine: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self.path = extensions_path()
        self.added = InstalledExtensions()

    def load(self, then: Callable[[], object]) -> None:
        """Load the servers and plugins of the extensions file, then call `then`. Without a file, call it at once."""
        if not is_file(self.path):
            then()
            return

        def done() -> None:
            self.changed.emit()
            then()

        self._do(_load(self.path), lambda _error: done(), done)

    def refresh(self, failed: Callable[[EngineError], object]) -> None:
        """Reload the lists of servers and plugins. Starts no server and loads no plugin."""
        self._do(_read(self.path, self.added.remarks), failed)

    def put_server(
        self, name: str, server: McpServer, secrets: Mapping[str, str], failed: Callable[[EngineError], object]
    ) -> None:
        """Add or change a server, list its tools, and store `secrets` in the keyring, by variable."""
        self._do(_put_server(self.path, name, server, secrets), failed)

    def remove_server(self, name: str, failed: Callable[[EngineError], object]) -> None:
        """Remove a server."""
        self._do(_remove_server(self.path, name), failed)

    def list_tools(self, name: str, failed: Callable[[EngineError], object]) -> None:
        """Start a server and list its tools."""
        self._do(_list_tools(self.path, name), failed)

    def set_plugin(self, name: str, failed: Callable[[EngineError], object], *, enabled: bool) -> None:
        """Enable and load a plugin, or disable it from the next start on."""
        self._do(_set_plugin(self.path, name, enabled=enabled), failed)

    def _do(
        self,
        work: Coroutine[Any, Any, InstalledExtensions],
        failed: Callable[[EngineError], object],
        then: Callable[[], object] | None = None,
    ) -> None:
        def finish(added: InstalledExtensions) -> None:
            self.added = added
            (then or self.changed.emit)()

        self._engine.ask(self, work, finish, failed)


async def _load(path: Path) -> InstalledExtensions:
    try:
        errors = await asyncio.to_thread(lambda: activate_extensions(read_extensions(path), path))
        remarks = [str(error) for error in errors]
    except EngineError as error:
        return InstalledExtensions(plugins=tuple(await asyncio.to_thread(installed_plugins)), remarks=(str(error),))
    return await _read(path, tuple(remarks))


async def _read(path: Path, remarks: tuple[str, ...] = ()) -> InstalledExtensions:
    def read() -> InstalledExtensions:
        extensions = read_extensions(path)
        listings = read_listings(listings_path(path))
        known = {
            name: len(listings[name].tools)
            for name, server in extensions.servers.items()
            if name in listings and listings[name].fingerprint == server.fingerprint
        }
        return InstalledExtensions(extensions, tuple(installed_plugins()), known, remarks)

    return await asyncio.to_thread(read)


async def _put_server(path: Path, name: str, server: McpServer, secrets: Mapping[str, str]) -> InstalledExtensions:
    for variable, value in secrets.items():
        VARIABLES.set_for_session(variable, value)
    # Before the server is stored, so that the form stays open if the server cannot be reached.
    listing = await refresh_server(name, server, listings_path(path))
    await _change(path, lambda now: now.model_copy(update={"servers": {**now.servers, name: server}}))
    not_stored = await asyncio.to_thread(lambda: [name for name in secrets if not VARIABLES.store(name, secrets[name])])
    without = f"This computer has no keyring. Stored for this session only: {', '.join(not_stored)}."
    return await _read(path, (*listing.left_out, *([without] if not_stored else ())))


async def _remove_server(path: Path, name: str) -> InstalledExtensions:
    def without(now: Extensions) -> Extensions:
        servers = {other: server for other, server in now.servers.items() if other != name}
        return now.model_copy(update={"servers": servers})

    await _change(path, without)
    withdraw_server(name)
    return await _read(path)


async def _list_tools(path: Path, name: str) -> InstalledExtensions:
    extensions = await asyncio.to_thread(read_extensions, path)
    listing = await refresh_server(name, extensions.servers[name], listings_path(path))
    return await _read(path, listing.left_out)


async def _set_plugin(path: Path, name: str, *, enabled: bool) -> InstalledExtensions:
    def changed(now: Extensions) -> Extensions:
        plugins = (*(other for other in now.plugins if other != name), *((name,) if enabled else ()))
        return now.model_copy(update={"plugins": plugins})

    if enabled:
        await asyncio.to_thread(enable_plugin, name)
    await _change(path, changed)
    return await _read(path)


_CHANGING: Final = threading.Lock()


async def _change(path: Path, change: Callable[[Extensions], Extensions]) -> None:
    """Apply a change to the current content of the extensions file, which may differ from what was read earlier."""

    def work() -> None:
        with _CHANGING:
            write_extensions(path, change(read_extensions(path)))

    await asyncio.to_thread(work)
