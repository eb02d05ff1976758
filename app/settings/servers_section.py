"""The part of the settings for models on one's own servers: those found on this machine, and any other by address."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pydantic import ValidationError
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.engine_thread import EngineThread
from app.settings.local_servers import LocalServer, find_local_servers
from app.settings.model_test import Trial, TrialRow, Work, try_model
from app.settings.preferences import Preferences
from app.settings.preferences_schema import OwnServer
from app.settings.settings_widgets import Note, key_field, push_button, send
from app.theme.style import ThemedIcon, set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import CollapsibleSection, PlainLabel
from engine.errors import EngineError
from engine.formatting import format_count
from engine.models.catalogue import Models
from engine.models.keys import Keys, KeyStoreError
from engine.models.providers import origin_of, provider_named

PREFIX = "openai/"
"""How the names of models begin that are called like OpenAI's."""


class ServerForm(QWidget):
    """Where one server is described, tried and added.

    Signals:
        added: It is to be kept; an `OwnServer`. Its key, if it has one, is kept already.
    """

    added = Signal(object)

    def __init__(self, engine: EngineThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self.address = _line("Address of the server", "http://localhost:8080/v1")
        self.model = _line("Name of the model", "as the server calls it")
        self.key = key_field("Key for this server")
        self.key.setPlaceholderText("only if the server wants one")
        self.note = Note()
        self.add = push_button("Add to the list", self._add)
        self.trial = TrialRow(engine, self._call, "the server above", [self.add])
        for field in (self.address, self.model, self.key):
            field.textEdited.connect(self._typed)
        self._lay_out()

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setHorizontalSpacing(3 * UNIT)
        form.setVerticalSpacing(2 * UNIT)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field in (("Address", self.address), ("Model", self.model), ("Key", self.key)):
            label = PlainLabel(title)
            label.setBuddy(field)
            form.addRow(label, field)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3 * UNIT)
        layout.addLayout(form)
        layout.addWidget(self.note)
        layout.addWidget(self.trial)

    def _typed(self) -> None:
        self.trial.forget()
        self._fault(None, "")

    def _fault(self, where: QLineEdit | None, sentence: str) -> None:
        for field in (self.address, self.model, self.key):
            set_style_properties(field, invalid=field is where)
        self.note.say(sentence, "bad")
        if where is not None:
            where.setFocus()

    def _server(self) -> OwnServer | None:
        """What the form says; None, and said why, where it is no server."""
        name = self.model.text().strip()
        if not name:
            self._fault(self.model, "Write the name of the model, as the server calls it.")
            return None
        try:
            server = OwnServer(model=PREFIX + name, address=self.address.text().strip())
            if self.key.text():
                Keys({}).set(_place(server), self.key.text(), session_only=True)  # is it one at all?
        except ValidationError as error:
            told = error.errors()[0]
            self._fault(self.address if told["loc"][0] == "address" else self.model, told["msg"])
            return None
        except KeyStoreError as error:
            self._fault(self.key, str(error))
            return None
        self._fault(None, "")
        return server

    def _call(self) -> Work | None:
        server = self._server()
        return None if server is None else self._try(server, self.key.text())

    async def _try(self, server: OwnServer, key: str) -> Trial:
        if not key:
            return await try_model(self._engine.models, server.model, server.address)
        keys = Keys()  # of its own: one that is only tried must not come before one that is kept
        keys.set(_place(server), key, session_only=True)
        models = Models(keys)
        try:
            return await try_model(models, server.model, server.address)
        finally:
            await models.close()

    def _add(self) -> None:
        server = self._server()
        if server is None:
            return
        self.add.setEnabled(False)
        work = _keep_key(self._engine.models.keys, server, self.key.text())
        send(self, self._engine, work, lambda words: self._added(server, words), self._refused)

    def _added(self, server: OwnServer, words: str) -> None:
        self.add.setEnabled(True)
        self.trial.forget()
        for field in (self.address, self.model, self.key):
            field.clear()
        self.note.say(f"Added. Documents call it {server.model}. {words}".rstrip(), "good")
        self.added.emit(server)

    def _refused(self, error: EngineError) -> None:
        self.add.setEnabled(True)
        self._fault(self.key, str(error))


async def _keep_key(keys: Keys, server: OwnServer, key: str) -> str:
    """Keep a server's key where it can be kept, and say where; an empty key is none."""
    if not key:
        return ""
    try:
        await asyncio.to_thread(keys.set, _place(server), key)
    except KeyStoreError:
        await asyncio.to_thread(keys.set, _place(server), key, session_only=True)
        return "This machine has no keyring: its key is kept for this session only."
    return "Its key is kept in the system's keyring."


def _place(server: OwnServer) -> str:
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
    """A model in the list; the address is None where the program knows it by itself."""

    model: str
    address: str | None

    @property
    def words(self) -> str:
        place = self.address or f"{provider_named(self.model.partition('/')[0]).title}, on this machine"
        return f"{self.model}   ·   {place}"


class ServersSection(QWidget):
    """The list of these models, what can be done with the chosen one, and a form for another."""

    def __init__(self, preferences: Preferences, engine: EngineThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._engine = engine
        self._served: list[_Served] = []
        self.look = push_button("Look for local servers", self._look)
        ThemedIcon(self.look, "mdi6.magnify")
        self.found = Note()
        self.list = QListWidget()
        self.list.setAccessibleName("Models on your own servers")
        self.list.setUniformItemSizes(True)
        self.list.itemSelectionChanged.connect(self._choose)
        self.use = push_button("Use as default", self._use)
        self.remove = push_button("Remove", self._remove)
        self.trial = TrialRow(engine, self._call, "the model chosen above", [self.use, self.remove])
        self.form = ServerForm(engine)
        self.form.added.connect(self._add)
        self.fold = CollapsibleSection("Add a server by its address", self.form)
        self._lay_out()
        preferences.changed.connect(self._follow)
        style().changed.connect(self._size)
        self._fill()

    @property
    def chosen(self) -> _Served | None:
        """The model that is chosen in the list."""
        index = self.list.currentRow()
        return self._served[index] if 0 <= index < len(self._served) else None

    def _lay_out(self) -> None:
        ask = QHBoxLayout()
        ask.setSpacing(3 * UNIT)
        ask.addWidget(self.look, 0, Qt.AlignmentFlag.AlignTop)
        ask.addWidget(self.found, 1)
        ask.addStretch(0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3 * UNIT)
        layout.addLayout(ask)
        layout.addWidget(self.list)
        layout.addWidget(self.trial)
        layout.addWidget(self.fold)

    def _look(self) -> None:
        self.look.setEnabled(False)
        self.found.say("Asking the usual places on this machine…")
        send(self, self._engine, find_local_servers(), self._show_found, self._show_failure)

    def _show_found(self, servers: list[LocalServer]) -> None:
        self.look.setEnabled(True)
        models = tuple(model for server in servers for model in server.models)
        head = f"Found {format_count(len(models), 'model')}." if models else "Found no model."
        absent = ", ".join(server.title for server in servers if not server.is_running)
        problems = [server.problem for server in servers if server.problem and server.is_running]
        self.found.say(" ".join([head, *problems, *([f"Not running: {absent}."] if absent else [])]))
        self._preferences.set(local_models=models)

    def _show_failure(self, error: EngineError) -> None:
        self.look.setEnabled(True)
        self.found.say(str(error), "bad")

    def _follow(self, names: frozenset[str]) -> None:
        if names & {"servers", "local_models"}:
            self._fill()

    def _fill(self) -> None:
        choices, chosen = self._preferences.choices, self.chosen
        own = [_Served(server.model, server.address) for server in choices.servers]
        self._served = [*own, *(_Served(model, None) for model in choices.local_models)]
        self.list.clear()
        for served in self._served:
            self.list.addItem(QListWidgetItem(served.words))
        self.list.setVisible(bool(self._served))
        self.trial.setVisible(bool(self._served))
        if self._served:
            self.list.setCurrentRow(self._served.index(chosen) if chosen in self._served else 0)
        self._size()

    def _size(self) -> None:
        height = round(ROW_HEIGHT * style().scale)
        for index in range(self.list.count()):
            self.list.item(index).setSizeHint(QSize(0, height))
        self.list.setFixedHeight(height * min(max(self.list.count(), 1), ROWS_SHOWN) + 2 * UNIT)

    def _choose(self) -> None:
        self.trial.forget()
        self.remove.setVisible(self.chosen is not None and self.chosen.address is not None)

    def _add(self, server: OwnServer) -> None:
        others = tuple(other for other in self._preferences.choices.servers if other.model != server.model)
        self._preferences.set(servers=(server, *others))
        self.list.setCurrentRow(0)

    def _remove(self) -> None:
        gone = self.chosen
        assert gone is not None
        servers = self._preferences.choices.servers
        self._preferences.set(servers=tuple(server for server in servers if server.model != gone.model))

    def _use(self) -> None:
        assert self.chosen is not None
        self._preferences.set(default_model=self.chosen.model)

    def _call(self) -> Work | None:
        assert self.chosen is not None
        return try_model(self._engine.models, self.chosen.model, self.chosen.address)
