"""The part of the settings for MCP servers: those there are, what can be done with one, and a form for another."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.extensions_controller import ExtensionsController
from app.settings.settings_widgets import Note, key_field, push_button
from app.theme.style import set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import CollapsibleSection, PlainLabel
from engine.errors import EngineError
from engine.extensions import Extensions
from engine.formatting import format_count
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
            set_style_properties(field, invalid=field is where)
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
    offered = "not asked yet" if tools is None else format_count(tools, "tool")
    return f"{name}   ·   {offered}   ·   {server.summary}"


def _line(name: str, placeholder: str) -> QLineEdit:
    line = QLineEdit()
    line.setAccessibleName(name)
    line.setPlaceholderText(placeholder)
    return line


ROWS_SHOWN = 5
ROW_HEIGHT = 28


class McpSection(QWidget):
    """The servers. Being shown starts none of them."""

    def __init__(self, additions: ExtensionsController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._additions = additions
        self._names: list[str] = []
        self._adding = ""
        self.list = QListWidget()
        self.list.setAccessibleName("MCP servers")
        self.list.setUniformItemSizes(True)
        self.note = Note()
        self.ask = push_button("Ask for its tools", self._ask)
        self.remove = push_button("Remove", self._remove)
        self.form = McpForm()
        self.form.wanted.connect(self._add)
        self.fold = CollapsibleSection("Add a server", self.form)
        self._lay_out()
        additions.changed.connect(self._fill)
        style().changed.connect(self._size)
        self._fill()
        self._additions.look(self._refuse)

    @property
    def chosen(self) -> str:
        """The name of the server that is chosen in the list; empty where there is none."""
        index = self.list.currentRow()
        return self._names[index] if 0 <= index < len(self._names) else ""

    def _lay_out(self) -> None:
        self._buttons = QWidget()
        buttons = QHBoxLayout(self._buttons)
        buttons.setContentsMargins(0, 0, 0, 0)
        buttons.setSpacing(2 * UNIT)
        buttons.addWidget(self.ask)
        buttons.addWidget(self.remove)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3 * UNIT)
        layout.addWidget(self.list)
        layout.addWidget(self._buttons)
        layout.addWidget(self.note)
        layout.addWidget(self.fold)

    def _fill(self) -> None:
        added, chosen = self._additions.added, self._adding or self.chosen
        servers = added.extensions.servers
        self._names = list(servers)
        self.list.clear()
        for name, server in servers.items():
            self.list.addItem(QListWidgetItem(server_words(name, server, added.tools.get(name))))
        for widget in (self.list, self._buttons):
            widget.setVisible(bool(servers))
        if servers:
            self.list.setCurrentRow(self._names.index(chosen) if chosen in servers else 0)
        self._busy(on=False)
        self.note.say(" ".join(added.remarks), "warning")
        if self._adding in servers:
            self.form.clear()
            self.form.say(f"Added. Its tools are in the palette, as {self._adding}/….", "good")
            self._adding = ""
        self._size()

    def _size(self) -> None:
        height = round(ROW_HEIGHT * style().scale)
        for index in range(self.list.count()):
            self.list.item(index).setSizeHint(QSize(0, height))
        self.list.setFixedHeight(height * min(max(self.list.count(), 1), ROWS_SHOWN) + 2 * UNIT)

    def _busy(self, *, on: bool) -> None:
        self.ask.setEnabled(not on)
        self.remove.setEnabled(not on)

    def _add(self, name: str, server: McpServer, secrets: dict[str, str]) -> None:
        self._adding = name
        self._additions.put_server(name, server, secrets, self._refuse_new)

    def _refuse_new(self, error: EngineError) -> None:
        self._adding = ""
        self.form.say(str(error), "bad")

    def _ask(self) -> None:
        self._busy(on=True)
        self.note.say(f"Asking {self.chosen}…")
        self._additions.ask_server(self.chosen, self._refuse)

    def _remove(self) -> None:
        self._busy(on=True)
        self._additions.remove_server(self.chosen, self._refuse)

    def _refuse(self, error: EngineError) -> None:
        self._busy(on=False)
        self.note.say(str(error), "bad")


class PluginsSection(QWidget):
    """A box for each plugin. Being shown loads none of them."""

    def __init__(self, additions: ExtensionsController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._additions = additions
        self.boxes: dict[str, QCheckBox] = {}
        self.nothing = PlainLabel("No plugin is installed.", look="dim", wrap=True)
        self.note = Note()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(2 * UNIT)
        self._layout.addWidget(self.nothing)
        self._layout.addWidget(self.note)
        additions.changed.connect(self._fill)
        self._fill()
        additions.look(self._refuse)

    def _fill(self) -> None:
        added = self._additions.added
        for plugin in added.plugins:
            if plugin.name not in self.boxes:
                self.boxes[plugin.name] = self._make(plugin.name, plugin.package)
            box = self.boxes[plugin.name]
            box.setChecked(plugin.name in added.extensions.plugins)
            box.setEnabled(True)
        self.nothing.setVisible(not self.boxes)
        loaded = {plugin.name for plugin in added.plugins if plugin.is_enabled}
        left = sorted(loaded - set(added.extensions.plugins))
        words = f"{', '.join(left)} will be gone after the next start of the program." if left else ""
        self.note.say(words)

    def _make(self, name: str, package: str) -> QCheckBox:
        box = QCheckBox(f"{name}   ·   {package}".replace("&", "&&"), self)
        box.setAccessibleName(f"Plugin {name}")
        box.clicked.connect(lambda on: self._set(name, enabled=on))
        self._layout.insertWidget(len(self.boxes), box)
        return box

    def _set(self, name: str, *, enabled: bool) -> None:
        self.boxes[name].setEnabled(False)
        self._additions.set_plugin(name, partial(self._refuse_one, name), enabled=enabled)

    def _refuse_one(self, name: str, error: EngineError) -> None:
        box = self.boxes[name]
        box.setEnabled(True)
        box.setChecked(not box.isChecked())
        self._refuse(error)

    def _refuse(self, error: EngineError) -> None:
        self.note.say(str(error), "bad")
