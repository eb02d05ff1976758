"""A form for an MCP server: its name, how it is started or reached, and which of your variables it is given."""

from __future__ import annotations

import shlex
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.settings.parts import Note, key_field, push_button
from app.theme.style import mark
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.extensions import Extensions
from engine.tools.mcp.settings import McpServer, names_in


class McpForm(QWidget):
    """Where one server is described.

    Signals:
        wanted: It is to be added: its name, an `McpServer`, and the secrets that are given for its variables, by name.

    Attributes:
        secrets: By variable that the settings name, the field for what it stands for.
    """

    wanted = Signal(str, object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = _line("Name of the server", "files")
        self.where = _line("Command or address", "npx -y @modelcontextprotocol/server-filesystem /some/folder")
        self.variables = _line("Variables for the server", "API_TOKEN=${MY_TOKEN}")
        self.note = Note()
        self.add = push_button("Add, and ask for its tools", self._add)
        for field in self._fields:
            field.textEdited.connect(self._typed)
            field.returnPressed.connect(self._add)
        for field in (self.where, self.variables):
            field.textChanged.connect(self._ask_for_secrets)
        self.secrets: dict[str, QLineEdit] = {}
        self._lay_out()

    @property
    def _fields(self) -> tuple[QLineEdit, ...]:
        return (self.name, self.where, self.variables)

    def say(self, sentence: str, tone: str = "") -> None:
        """Say how it went."""
        self.add.setEnabled(True)
        self.note.say(sentence, tone)

    def clear(self) -> None:
        """Make room for another."""
        for field in self._fields:
            field.clear()

    def _lay_out(self) -> None:
        form = self._form = QFormLayout()
        form.setHorizontalSpacing(3 * UNIT)
        form.setVerticalSpacing(2 * UNIT)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field in zip(("Name", "Command or address", "Variables"), self._fields, strict=True):
            label = PlainLabel(title)
            label.setBuddy(field)
            form.addRow(label, field)
        words = (
            "Variables are handed to a command, and sent to an address as headers. Write ${NAME} for a secret: "
            "it is taken from your environment, or kept in the system's keyring, and never in a file."
        )
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.add)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3 * UNIT)
        layout.addLayout(form)
        layout.addWidget(PlainLabel(words, look="dim small", wrap=True))
        layout.addWidget(self.note)
        layout.addLayout(buttons)

    def _ask_for_secrets(self) -> None:
        """A field for each variable that is named, as long as it is."""
        names = names_in(f"{self.where.text()}\n{self.variables.text()}")
        for name in [name for name in self.secrets if name not in names]:
            self._form.removeRow(self.secrets.pop(name))
        for name in names:
            if name not in self.secrets:
                field = self.secrets[name] = key_field(f"What {name} stands for")
                field.setPlaceholderText("kept in the keyring; empty where your environment has it")
                field.returnPressed.connect(self._add)
                label = PlainLabel(name)
                label.setBuddy(field)
                self._form.addRow(label, field)

    def _typed(self) -> None:
        self._fault(None, "")

    def _fault(self, where: QLineEdit | None, sentence: str) -> None:
        for field in self._fields:
            mark(field, invalid=field is where)
        self.note.say(sentence, "bad")
        if where is not None:
            where.setFocus()

    def _add(self) -> None:
        name = self.name.text().strip()
        where = self.where.text().strip()
        is_address = "://" in where.partition(" ")[0]
        try:
            words = [where] if is_address else shlex.split(where) or [""]
        except ValueError:
            self._fault(self.where, "A quotation mark is not closed, or nothing stands behind the last backslash.")
            return
        try:
            variables = _variables(self.variables.text())
        except ValueError:
            self._fault(self.variables, "Write variables as NAME=VALUE, with quotes around a value that has spaces.")
            return
        settings: dict[str, Any] = (
            {"url": where, "headers": variables}
            if is_address
            else {"command": words[0], "args": words[1:], "env": variables}
        )
        try:
            server = Extensions.model_validate({"mcpServers": {name: settings}}).servers[name]
        except ValidationError as error:
            told = error.errors()[0]
            place = told["loc"]
            self._fault(self.name if len(place) < 2 else self._field_of(place), told["msg"])
            return
        self._fault(None, "")
        self.add.setEnabled(False)
        self.note.say("Asking it…")
        given = {variable: field.text().strip() for variable, field in self.secrets.items()}
        self.wanted.emit(name, server, {variable: value for variable, value in given.items() if value})

    def _field_of(self, place: tuple[Any, ...]) -> QLineEdit:
        return self.variables if place[-1] in {"env", "headers"} else self.where


def _variables(text: str) -> dict[str, str]:
    """Variables as they are typed; raises ValueError where they cannot be read."""
    variables: dict[str, str] = {}
    for part in shlex.split(text):
        key, sign, value = part.partition("=")
        if not sign or not key:
            raise ValueError(part)
        variables[key] = value
    return variables


def server_words(name: str, server: McpServer, tools: int | None) -> str:
    """A server in a list."""
    offered = "not asked yet" if tools is None else "1 tool" if tools == 1 else f"{tools} tools"
    return f"{name}   ·   {offered}   ·   {server.summary}"


def _line(name: str, placeholder: str) -> QLineEdit:
    line = QLineEdit()
    line.setAccessibleName(name)
    line.setPlaceholderText(placeholder)
    return line
