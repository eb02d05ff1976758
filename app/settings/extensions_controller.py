"""The MCP servers and plugins of a person in the window: taken up when the program starts, changed in the settings.

All that takes its time (reading the file, loading a plugin, asking a server) is done in the engine's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from engine.tools.mcp_settings import VARIABLES, McpServer
from engine.tools.mcp_tools import read_listings


@dataclass(frozen=True, slots=True)
class InstalledExtensions:
    """What is added to the program.

    Attributes:
        extensions: The file's content.
        plugins: The plugins that are installed.
        tools: How many tools each server offers; none for one that has not been asked.
        remarks: What could not be added and why, a sentence each.
    """

    extensions: Extensions = field(default_factory=Extensions)
    plugins: tuple[InstalledPlugin, ...] = ()
    tools: dict[str, int] = field(default_factory=dict[str, int])
    remarks: tuple[str, ...] = ()


class ExtensionsController(QObject):
    """What a person has added, and the ways to change it.

    Signals:
        changed: Something was added, or is there no more.

    Attributes:
        added: What is added now.
    """

    changed = Signal()

    def __init__(self, engine: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._path = extensions_path()
        self.added = InstalledExtensions()

    @property
    def path(self) -> Path:
        """The file in which it stands."""
        return self._path

    def begin(self, then: Callable[[], object]) -> None:
        """Take up what the file says, and go on; at once where there is no file."""
        if not self._path.is_file():
            then()
            return

        def done() -> None:
            self.changed.emit()
            then()

        self._do(_begin(self._path), lambda _error: done(), done)

    def look(self, failed: Callable[[EngineError], object]) -> None:
        """Look anew at what is installed and set up; nothing is loaded or asked."""
        self._do(_look(self._path, self.added.remarks), failed)

    def put_server(
        self, name: str, server: McpServer, secrets: Mapping[str, str], failed: Callable[[EngineError], object]
    ) -> None:
        """Add a server or change it, and ask it what it offers; `secrets` are kept in the keyring, by variable."""
        self._do(_put_server(self._path, name, server, secrets), failed)

    def remove_server(self, name: str, failed: Callable[[EngineError], object]) -> None:
        """Take a server away."""
        self._do(_remove_server(self._path, name), failed)

    def ask_server(self, name: str, failed: Callable[[EngineError], object]) -> None:
        """Ask a server what it offers; that starts it."""
        self._do(_ask_server(self._path, name), failed)

    def set_plugin(self, name: str, failed: Callable[[EngineError], object], *, enabled: bool) -> None:
        """Enable a plugin, which loads it, or leave it out from the next start on."""
        self._do(_set_plugin(self._path, name, enabled=enabled), failed)

    def _do(
        self,
        work: Coroutine[Any, Any, InstalledExtensions],
        failed: Callable[[EngineError], object],
        then: Callable[[], object] | None = None,
    ) -> None:
        def answered(added: InstalledExtensions) -> None:
            self.added = added
            (then or self.changed.emit)()

        self._engine.ask(work, answered, failed)


async def _begin(path: Path) -> InstalledExtensions:
    try:
        remarks = await asyncio.to_thread(lambda: activate_extensions(read_extensions(path), path))
    except EngineError as error:
        return InstalledExtensions(plugins=tuple(await asyncio.to_thread(installed_plugins)), remarks=(str(error),))
    return await _look(path, tuple(remarks))


async def _look(path: Path, remarks: tuple[str, ...]) -> InstalledExtensions:
    def look() -> InstalledExtensions:
        extensions = read_extensions(path)
        listings = read_listings(listings_path(path))
        known = {
            name: len(listings[name].tools)
            for name, server in extensions.servers.items()
            if name in listings and listings[name].fingerprint == server.fingerprint
        }
        return InstalledExtensions(extensions, tuple(installed_plugins()), known, remarks)

    return await asyncio.to_thread(look)


async def _put_server(path: Path, name: str, server: McpServer, secrets: Mapping[str, str]) -> InstalledExtensions:
    extensions = await asyncio.to_thread(read_extensions, path)
    for variable, value in secrets.items():
        VARIABLES.set_for_session(variable, value)
    # Asked before it is kept: one that cannot be reached is told while its form still stands there.
    listing = await refresh_server(name, server, listings_path(path))
    servers = {**extensions.servers, name: server}
    await asyncio.to_thread(write_extensions, path, extensions.model_copy(update={"servers": servers}))
    unkept = await asyncio.to_thread(lambda: [name for name in secrets if not VARIABLES.store(name, secrets[name])])
    without = f"This machine has no keyring: {', '.join(unkept)} stands for its secret for this session only."
    return await _look(path, (*listing.left_out, *([without] if unkept else ())))


async def _remove_server(path: Path, name: str) -> InstalledExtensions:
    extensions = await asyncio.to_thread(read_extensions, path)
    servers = {other: server for other, server in extensions.servers.items() if other != name}
    await asyncio.to_thread(write_extensions, path, extensions.model_copy(update={"servers": servers}))
    withdraw_server(name)
    return await _look(path, ())


async def _ask_server(path: Path, name: str) -> InstalledExtensions:
    extensions = await asyncio.to_thread(read_extensions, path)
    listing = await refresh_server(name, extensions.servers[name], listings_path(path))
    return await _look(path, listing.left_out)


async def _set_plugin(path: Path, name: str, *, enabled: bool) -> InstalledExtensions:
    extensions = await asyncio.to_thread(read_extensions, path)
    if enabled:
        await asyncio.to_thread(enable_plugin, name)
    plugins = (*(other for other in extensions.plugins if other != name), *((name,) if enabled else ()))
    await asyncio.to_thread(write_extensions, path, extensions.model_copy(update={"plugins": plugins}))
    return await _look(path, ())
