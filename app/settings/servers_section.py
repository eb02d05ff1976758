"""Servers section of the settings: models on local servers, and on OpenAI-compatible servers by address.

Servers on this computer (Ollama, LM Studio and llama.cpp) are searched only while the user allows it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pydantic import ValidationError
from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.engine_thread import EngineThread
from app.settings.preferences import Preferences
from app.settings.settings_widgets import (
    ModelTestCall,
    ModelTestResult,
    ModelTestRow,
    disable_fixed,
    fit_rows,
    labeled_rows,
    line_field,
    password_field,
    run_model_test,
)
from app.theme.style import ThemedIcon, set_style_properties, style
from app.theme.widgets import STRETCH, CollapsibleSection, PlainLabel, StatusLabel, Switch, hbox, push_button, vbox
from engine.errors import EngineError
from engine.formatting import format_count
from engine.models.catalog import Models
from engine.models.keys import Keys, KeyStoreError
from engine.models.local_servers import LocalServer, find_local_servers, local_server_title
from engine.models.providers import origin_of
from engine.settings import CustomServer

PREFIX = "openai/"
"""Prefix of the names of models with an OpenAI-compatible API."""


class ServerForm(QWidget):
    """Form to test and add a server.

    Signals:
        added: The user added a `CustomServer`; its API key, if any, is already stored.
    """

    added = Signal(object)

    def __init__(self, engine: EngineThread) -> None:
        super().__init__()
        self._engine = engine
        self.address = line_field("Server address", "http://localhost:8080/v1")
        self.model = line_field("Model name", "Name used by the server")
        self.key = password_field("API key for this server")
        self.key.setPlaceholderText("Only if required")
        self.note = StatusLabel()
        self.add = push_button("Add", self._add)
        self.model_test = ModelTestRow(engine, self._call, "this server", [self.add])
        for field in (self.address, self.model, self.key):
            field.textEdited.connect(self._typed)
        self._lay_out()

    def _lay_out(self) -> None:
        form = labeled_rows((("Address", self.address), ("Model", self.model), ("API key", self.key)))
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
        self._engine.ask(self, work, lambda note: self._add_finished(server, note), self._add_failed)

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


ROWS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class _Served:
    """A model in the list; the address is None for models of local servers."""

    model: str
    address: str | None

    @property
    def label(self) -> str:
        server = self.address or f"{local_server_title(self.model)} on this computer"
        return f"{self.model}   ·   {server}"


class ServersSection(QWidget):
    """List of models on servers, actions for the selected one, and a form to add a server."""

    def __init__(self, preferences: Preferences, engine: EngineThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._engine = engine
        self._served: list[_Served] = []
        self.consent = Switch("Look for models on this computer")
        self.consent.toggled.connect(self._allow_search)
        self.find_servers = push_button("Search again", self._find_servers)
        ThemedIcon(self.find_servers, "mdi6.magnify")
        self.found = StatusLabel()
        self.list = QListWidget()
        self.list.setAccessibleName("Models on custom servers")
        self.list.setUniformItemSizes(True)
        self.list.itemSelectionChanged.connect(self._choose)
        self.use = push_button("Use as default", self._use)
        self.remove = push_button("Remove", self._remove)
        self.model_test = ModelTestRow(engine, self._call, "selected model", [self.use, self.remove])
        self.form = ServerForm(engine)
        self.form.added.connect(self._add)
        self.fold = CollapsibleSection("Add a server", self.form)
        self._lay_out()
        preferences.changed.connect(self._follow)
        style().changed.connect(self._size)
        disable_fixed(preferences, "search_local_servers", self.consent)
        disable_fixed(preferences, "default_model", self.use)
        disable_fixed(preferences, "servers", self.remove, self.fold)
        self._fill()
        self._show_consent()

    @property
    def chosen(self) -> _Served | None:
        """The selected model, or None."""
        index = self.list.currentRow()
        return self._served[index] if 0 <= index < len(self._served) else None

    def _lay_out(self) -> None:
        text = "Asks Ollama, LM Studio and llama.cpp for their models when a list of models opens. Sends nothing else."
        consent = vbox(
            hbox(self.consent, STRETCH, self.find_servers, spacing=3),
            PlainLabel(text, look="dim small", wrap=True),
            self.found,
            spacing=1,
        )
        vbox(consent, self.list, self.model_test, self.fold, spacing=3, parent=self)

    def _allow_search(self, is_allowed: bool) -> None:
        self._preferences.set(search_local_servers=is_allowed)
        if is_allowed:
            self._find_servers()
        else:
            self.found.say("")

    def _find_servers(self) -> None:
        self.find_servers.setEnabled(False)
        self.found.say("Searching this computer…")
        self._engine.ask(self, find_local_servers(), self._show_found, self._show_failure)

    def _show_found(self, servers: list[LocalServer]) -> None:
        self.find_servers.setEnabled(True)
        if not self._preferences.values.search_local_servers:  # withdrawn meanwhile
            return
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
        if "search_local_servers" in names:
            self._show_consent()

    def _show_consent(self) -> None:
        is_allowed = self._preferences.values.search_local_servers
        with QSignalBlocker(self.consent):
            self.consent.setChecked(is_allowed)
        self.find_servers.setVisible(is_allowed)

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
        fit_rows(self.list, ROWS_SHOWN)

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
