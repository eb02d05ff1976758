"""Servers section of the settings: models on local servers, and on OpenAI-compatible servers by address.

Local servers (Ollama, LM Studio and llama.cpp) are searched only on request, at their default ports or at the addresses
in their environment variables. No user data is sent, and responses are limited in size and time and are not trusted.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic_core import from_json
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFormLayout, QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.engine_thread import EngineThread
from app.settings.preferences import CustomServer, Preferences
from app.settings.settings_widgets import (
    ModelTestCall,
    ModelTestResult,
    ModelTestRow,
    StatusLabel,
    make_button,
    password_field,
    run_in_engine,
    run_model_test,
)
from app.theme.style import ThemedIcon, set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import CollapsibleSection, PlainLabel, hbox, vbox
from engine.errors import EngineError
from engine.formatting import format_count
from engine.models.catalog import Models
from engine.models.keys import Keys, KeyStoreError
from engine.models.providers import AddressError, Provider, origin_of, provider_named

if TYPE_CHECKING:
    import httpx


TIMEOUT_S: Final = 1.5
MAX_BYTES: Final = 2_000_000
MAX_MODELS: Final = 200
_NAME: Final = re.compile(r"[A-Za-z0-9_@~][A-Za-z0-9_.:@+/-]{0,199}")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """Result of querying a server.

    Attributes:
        title: Name of the server.
        address: Its address.
        models: Names of its models, as used in workflows.
        problem: Why it has no models, in a sentence; empty if it has some.
        is_running: Whether a server responded at all.
    """

    title: str
    address: str
    models: tuple[str, ...]
    problem: str = ""
    is_running: bool = True


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of server: prefix of its model names, title, and path of its model list."""

    prefix: str
    title: str
    path: str


_KINDS: Final = (
    _Kind("ollama_chat", "Ollama", "/api/tags"),
    _Kind("lm_studio", "LM Studio", "/models"),
    _Kind("llamafile", "llama.cpp", "/models"),
)


async def find_local_servers(environment: Mapping[str, str] = os.environ) -> list[LocalServer]:
    """Query all kinds of servers concurrently. Takes at most `TIMEOUT_S` and never fails."""
    import httpx

    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S, headers={"Accept-Encoding": "identity"}) as client:
        return list(await asyncio.gather(*(_ask(client, kind, environment) for kind in _KINDS)))


async def _ask(client: httpx.AsyncClient, kind: _Kind, environment: Mapping[str, str]) -> LocalServer:
    import httpx

    address = _address(provider_named(kind.prefix), environment)
    try:
        origin_of(address)
        async with asyncio.timeout(TIMEOUT_S):
            content = await _read(client, address.rstrip("/") + kind.path)
    except AddressError as error:
        return LocalServer(kind.title, address, (), str(error))
    except (httpx.ConnectError, httpx.ConnectTimeout):
        return LocalServer(kind.title, address, (), f"{kind.title} is not running at {address}.", False)
    except (TimeoutError, httpx.TimeoutException):
        return LocalServer(kind.title, address, (), f"{kind.title} at {address} did not respond in time.")
    except (httpx.HTTPError, httpx.InvalidURL):
        return LocalServer(kind.title, address, (), f"The server at {address} is not {kind.title}.")
    names = None if content is None else _names(content)
    if names is None:
        return LocalServer(kind.title, address, (), f"The server at {address} is not {kind.title}.")
    problem = "" if names else f"{kind.title} is running at {address} but has no models."
    return LocalServer(kind.title, address, tuple(f"{kind.prefix}/{name}" for name in names), problem)


def _address(provider: Provider, environment: Mapping[str, str]) -> str:
    chosen = next((environment[name] for name in provider.address_variables if environment.get(name)), None)
    # `localhost` may resolve to two addresses that are tried one after the other.
    return chosen or provider.addresses[0].replace("//localhost", "//127.0.0.1")


async def _read(client: httpx.AsyncClient, address: str) -> bytes | None:
    """Return the body of a successful response of acceptable size, else None."""
    async with client.stream("GET", address) as response:
        if response.status_code != 200:
            return None
        content = b""
        async for piece in response.aiter_raw():
            content += piece
            if len(content) > MAX_BYTES:
                return None
        return content


def _names(content: bytes) -> list[str] | None:
    """Return the model names of a response in the format of Ollama or OpenAI, else None."""
    try:
        parsed: Any = from_json(content)
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    entries, key = (parsed.get("models"), "name") if "data" not in parsed else (parsed["data"], "id")
    if not isinstance(entries, list):
        return None
    named = [str(entry.get(key, "")) for entry in entries if isinstance(entry, dict)]
    return list(dict.fromkeys(filter(None, map(_callable_name, named))))[:MAX_MODELS]


def _callable_name(name: str) -> str:
    """Return the name to call the model by; llama.cpp may report a file path, but accepts any name."""
    short = re.split(r"[/\\]", name)[-1] if name.startswith(("/", ".")) or "\\" in name else name
    return short if _NAME.fullmatch(short) else ""


PREFIX = "openai/"
"""Prefix of the names of models with an OpenAI-compatible API."""


class ServerForm(QWidget):
    """Form to test and add a server.

    Signals:
        added: The user added a `CustomServer`; its API key, if any, is already stored.
    """

    added = Signal(object)

    def __init__(self, engine: EngineThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self.address = _line("Server address", "http://localhost:8080/v1")
        self.model = _line("Model name", "Name used by the server")
        self.key = password_field("API key for this server")
        self.key.setPlaceholderText("Only if required")
        self.note = StatusLabel()
        self.add = make_button("Add", self._add)
        self.model_test = ModelTestRow(engine, self._call, "this server", [self.add])
        for field in (self.address, self.model, self.key):
            field.textEdited.connect(self._typed)
        self._lay_out()

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setHorizontalSpacing(3 * UNIT)
        form.setVerticalSpacing(2 * UNIT)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field in (("Address", self.address), ("Model", self.model), ("API key", self.key)):
            label = PlainLabel(title)
            label.setBuddy(field)
            form.addRow(label, field)
        vbox(form, self.note, self.model_test, spacing=3, parent=self)

    def _typed(self) -> None:
        self.model_test.reset()
        self._show_error(None, "")

    def _show_error(self, where: QLineEdit | None, sentence: str) -> None:
        for field in (self.address, self.model, self.key):
            set_style_properties(field, invalid=field is where)
        self.note.say(sentence, "bad")
        if where is not None:
            where.setFocus()

    def _server(self) -> CustomServer | None:
        """Return the entered server, or None after showing an error."""
        name = self.model.text().strip()
        if not name:
            self._show_error(self.model, "Enter the name of the model.")
            return None
        try:
            server = CustomServer(model=PREFIX + name, address=self.address.text().strip())
            if self.key.text():
                Keys({}).set(_key_name(server), self.key.text(), session_only=True)  # validates the key
        except ValidationError as error:
            details = error.errors()[0]
            self._show_error(self.address if details["loc"][0] == "address" else self.model, details["msg"])
            return None
        except KeyStoreError as error:
            self._show_error(self.key, str(error))
            return None
        self._show_error(None, "")
        return server

    def _call(self) -> ModelTestCall | None:
        server = self._server()
        return None if server is None else self._try(server, self.key.text())

    async def _try(self, server: CustomServer, key: str) -> ModelTestResult:
        if not key:
            return await run_model_test(self._engine.models, server.model, server.address)
        keys = Keys()  # a separate store: a key that is only tested must not replace a stored one
        keys.set(_key_name(server), key, session_only=True)
        models = Models(keys)
        try:
            return await run_model_test(models, server.model, server.address)
        finally:
            await models.close()

    def _add(self) -> None:
        server = self._server()
        if server is None:
            return
        self.add.setEnabled(False)
        work = _store_key(self._engine.models.keys, server, self.key.text())
        run_in_engine(self, self._engine, work, lambda note: self._add_finished(server, note), self._add_failed)

    def _add_finished(self, server: CustomServer, note: str) -> None:
        self.add.setEnabled(True)
        self.model_test.reset()
        for field in (self.address, self.model, self.key):
            field.clear()
        self.note.say(f"Added as {server.model}. {note}".rstrip(), "good")
        self.added.emit(server)

    def _add_failed(self, error: EngineError) -> None:
        self.add.setEnabled(True)
        self._show_error(self.key, str(error))


async def _store_key(keys: Keys, server: CustomServer, key: str) -> str:
    """Store the API key of a server, if any, and return a note on where it is stored."""
    if not key:
        return ""
    try:
        await asyncio.to_thread(keys.set, _key_name(server), key)
    except KeyStoreError:
        await asyncio.to_thread(keys.set, _key_name(server), key, session_only=True)
        return "There is no keyring on this computer, so the key is stored for this session only."
    return "The key is stored in the system keyring."


def _key_name(server: CustomServer) -> str:
    return f"host:{origin_of(server.address).name}"


def _line(name: str, placeholder: str) -> QLineEdit:
    line = QLineEdit()
    line.setAccessibleName(name)
    line.setPlaceholderText(placeholder)
    return line


ROWS_SHOWN = 4
ROW_HEIGHT = 28


@dataclass(frozen=True, slots=True)
class _Served:
    """A model in the list; the address is None for models of local servers."""

    model: str
    address: str | None

    @property
    def label(self) -> str:
        server = self.address or f"{provider_named(self.model.partition('/')[0]).title} on this computer"
        return f"{self.model}   ·   {server}"


class ServersSection(QWidget):
    """List of models on servers, actions for the selected one, and a form to add a server."""

    def __init__(self, preferences: Preferences, engine: EngineThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._engine = engine
        self._served: list[_Served] = []
        self.find_servers = make_button("Find local servers", self._find_servers)
        ThemedIcon(self.find_servers, "mdi6.magnify")
        self.found = StatusLabel()
        self.list = QListWidget()
        self.list.setAccessibleName("Models on custom servers")
        self.list.setUniformItemSizes(True)
        self.list.itemSelectionChanged.connect(self._choose)
        self.use = make_button("Use as default", self._use)
        self.remove = make_button("Remove", self._remove)
        self.model_test = ModelTestRow(engine, self._call, "selected model", [self.use, self.remove])
        self.form = ServerForm(engine)
        self.form.added.connect(self._add)
        self.fold = CollapsibleSection("Add a server", self.form)
        self._lay_out()
        preferences.changed.connect(self._follow)
        style().changed.connect(self._size)
        self._fill()

    @property
    def chosen(self) -> _Served | None:
        """The selected model, or None."""
        index = self.list.currentRow()
        return self._served[index] if 0 <= index < len(self._served) else None

    def _lay_out(self) -> None:
        ask = hbox((self.find_servers, Qt.AlignmentFlag.AlignTop), (self.found, 1), spacing=3)
        ask.addStretch(0)
        vbox(ask, self.list, self.model_test, self.fold, spacing=3, parent=self)

    def _find_servers(self) -> None:
        self.find_servers.setEnabled(False)
        self.found.say("Searching this computer…")
        run_in_engine(self, self._engine, find_local_servers(), self._show_found, self._show_failure)

    def _show_found(self, servers: list[LocalServer]) -> None:
        self.find_servers.setEnabled(True)
        models = tuple(model for server in servers for model in server.models)
        head = f"Found {format_count(len(models), 'model')}." if models else "No models found."
        absent = ", ".join(server.title for server in servers if not server.is_running)
        problems = [server.problem for server in servers if server.problem and server.is_running]
        self.found.say(" ".join([head, *problems, *([f"Not running: {absent}."] if absent else [])]))
        self._preferences.set(local_models=models)

    def _show_failure(self, error: EngineError) -> None:
        self.find_servers.setEnabled(True)
        self.found.say(str(error), "bad")

    def _follow(self, names: frozenset[str]) -> None:
        if names & {"servers", "local_models"}:
            self._fill()

    def _fill(self) -> None:
        values, chosen = self._preferences.values, self.chosen
        own = [_Served(server.model, server.address) for server in values.servers]
        self._served = [*own, *(_Served(model, None) for model in values.local_models)]
        self.list.clear()
        for served in self._served:
            self.list.addItem(QListWidgetItem(served.label))
        self.list.setVisible(bool(self._served))
        self.model_test.setVisible(bool(self._served))
        if self._served:
            self.list.setCurrentRow(self._served.index(chosen) if chosen in self._served else 0)
        self._size()

    def _size(self) -> None:
        height = round(ROW_HEIGHT * style().scale)
        for index in range(self.list.count()):
            self.list.item(index).setSizeHint(QSize(0, height))
        self.list.setFixedHeight(height * min(max(self.list.count(), 1), ROWS_SHOWN) + 2 * UNIT)

    def _choose(self) -> None:
        self.model_test.reset()
        self.remove.setVisible(self.chosen is not None and self.chosen.address is not None)

    def _add(self, server: CustomServer) -> None:
        others = tuple(other for other in self._preferences.values.servers if other.model != server.model)
        self._preferences.set(servers=(server, *others))
        self.list.setCurrentRow(0)

    def _remove(self) -> None:
        removed = self.chosen
        assert removed is not None
        servers = self._preferences.values.servers
        self._preferences.set(servers=tuple(server for server in servers if server.model != removed.model))

    def _use(self) -> None:
        assert self.chosen is not None
        self._preferences.set(default_model=self.chosen.model)

    def _call(self) -> ModelTestCall | None:
        assert self.chosen is not None
        return run_model_test(self._engine.models, self.chosen.model, self.chosen.address)
