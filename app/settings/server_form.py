"""A form for a model on any server that speaks like OpenAI's: address, name, and a key if it wants one."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFormLayout, QLineEdit, QVBoxLayout, QWidget

from app.bridge import EngineThread
from app.settings.choices import OwnServer
from app.settings.errands import send
from app.settings.parts import Note, key_field, push_button
from app.settings.trial import Trial, try_model
from app.settings.trial_row import TrialRow, Work
from app.theme.style import mark
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.errors import EngineError
from engine.models.catalogue import Models
from engine.models.keys import Keys, KeyStoreError
from engine.models.providers import origin_of

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
            mark(field, invalid=field is where)
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
