"""Extensions in the settings: MCP servers and plugins."""

from __future__ import annotations

import os
import shlex
from functools import partial
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QWidget,
)

from app.settings.extensions_controller import ExtensionsController
from app.settings.install_dialog import InstallButton
from app.settings.settings_widgets import (
    add_labeled_row,
    fit_rows,
    labeled_rows,
    line_field,
    password_field,
)
from app.theme.style import set_style_properties, style
from app.theme.widgets import STRETCH, CollapsibleSection, PlainLabel, StatusLabel, hbox, push_button, vbox
from engine.errors import EngineError
from engine.extensions import Extensions
from engine.formatting import format_count
from engine.tools.mcp_settings import McpServer, variable_names


class McpServerForm(QWidget):
    """Form to add an MCP server.

    Signals:
        submitted: The user added a server: its name, an `McpServer`, and the entered secrets by variable.

    Attributes:
        secrets: The field for the value of each secret variable.
    """

    submitted = Signal(str, object, object)

    def __init__(self) -> None:
        super().__init__()
        self.name = line_field("Server name", "files")
        self.where = line_field("Command or URL", "npx -y @modelcontextprotocol/server-filesystem /some/folder")
        self.variables = line_field("Variables", "API_TOKEN=${MY_TOKEN}")
        self.note = StatusLabel()
        self.install = InstallButton(self._add)
        self.add = push_button("Add and list tools", self._add)
        for field in self._fields:
            field.textEdited.connect(self._typed)
            field.returnPressed.connect(self._add)
        for field in (self.where, self.variables):
            field.textChanged.connect(self._update_secret_fields)
        self.secrets: dict[str, QLineEdit] = {}
        self._lay_out()

    @property
    def _fields(self) -> tuple[QLineEdit, ...]:
        return (self.name, self.where, self.variables)

    def say(self, text: str, tone: str = "", fix: str = "") -> None:
        """Show the outcome; `fix` is that of an error."""
        self.add.setEnabled(True)
        self.note.say(text, tone)
        self.install.offer(fix)

    def clear(self) -> None:
        """Clear the form."""
        for field in self._fields:
            field.clear()

    def _lay_out(self) -> None:
        form = self._form = labeled_rows(zip(("Name", "Command or URL", "Variables"), self._fields, strict=True))
        words = (
            "Variables are passed to a command, or sent to a URL as headers. Write ${NAME} for a secret: "
            "its value comes from your environment or the system keyring, never from a file."
        )
        vbox(
            form,
            PlainLabel(words, look="dim small", wrap=True),
            self.note,
            hbox(STRETCH, self.install, self.add, spacing=2),
            spacing=3,
            parent=self,
        )

    def _update_secret_fields(self) -> None:
        names = variable_names(f"{self.where.text()}\n{self.variables.text()}")
        for name in [name for name in self.secrets if name not in names]:
            self._form.removeRow(self.secrets.pop(name))
        for name in names:
            if name not in self.secrets:
                field = self.secrets[name] = password_field(f"Value of {name}")
                field.setPlaceholderText("Stored in the keyring. Leave empty if it is set in your environment.")
                field.returnPressed.connect(self._add)
                add_labeled_row(self._form, name, field)

    def _typed(self) -> None:
        self._show_error(None, "")

    def _show_error(self, where: QLineEdit | None, sentence: str) -> None:
        for field in self._fields:
            set_style_properties(field, invalid=field is where)
        self.note.say(sentence, "bad")
        self.install.offer("")
        if where is not None:
            where.setFocus()

    def _add(self) -> None:
        name = self.name.text().strip()
        where = self.where.text().strip()
        is_address = "://" in where.partition(" ")[0]
        try:
            words = [where] if is_address else split_command(where) or [""]
        except ValueError:
            self._show_error(self.where, "A quotation mark is not closed, or the command ends with a backslash.")
            return
        try:
            variables = _variables(self.variables.text())
        except ValueError:
            self._show_error(self.variables, "Use the form NAME=VALUE, with quotes around values that contain spaces.")
            return
        settings: dict[str, Any] = (
            {"url": where, "headers": variables}
            if is_address
            else {"command": words[0], "args": words[1:], "env": variables}
        )
        try:
            server = Extensions.model_validate({"mcpServers": {name: settings}}).servers[name]
        except ValidationError as error:
            details = error.errors()[0]
            location = details["loc"]
            self._show_error(self.name if len(location) < 2 else self._field_at(location), details["msg"])
            return
        self._show_error(None, "")
        self.add.setEnabled(False)
        self.note.say("Connecting…")
        secrets = {variable: field.text().strip() for variable, field in self.secrets.items()}
        self.submitted.emit(name, server, {variable: value for variable, value in secrets.items() if value})

    def _field_at(self, location: tuple[Any, ...]) -> QLineEdit:
        return self.variables if location[-1] in {"env", "headers"} else self.where


def split_command(text: str, *, on_windows: bool = os.name == "nt") -> list[str]:
    """Split a command line into its arguments, as a shell does; on Windows, backslashes separate folders.

    Raises:
        ValueError: A quotation mark is not closed, or the text ends with a backslash that escapes nothing.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    if on_windows:
        lexer.escape = ""
    return list(lexer)


def _variables(text: str) -> dict[str, str]:
    """Parse variables; raises ValueError if the syntax is invalid."""
    variables: dict[str, str] = {}
    for part in split_command(text):
        key, sign, value = part.partition("=")
        if not sign or not key:
            raise ValueError(part)
        variables[key] = value
    return variables


def server_label(name: str, server: McpServer, tools: int | None) -> str:
    """Return the label of a server in the list."""
    offered = "tools not listed yet" if tools is None else format_count(tools, "tool")
    return f"{name}   ·   {offered}   ·   {server.summary}"


ROWS_SHOWN = 5


class McpServersSection(QWidget):
    """List of MCP servers. Showing it starts none of them."""

    def __init__(self, additions: ExtensionsController) -> None:
        super().__init__()
        self._additions = additions
        self._names: list[str] = []
        self._adding = ""
        self.list = QListWidget()
        self.list.setAccessibleName("MCP servers")
        self.list.setUniformItemSizes(True)
        self.note = StatusLabel()
        self.install = InstallButton(self._list_tools)
        self.list_tools = push_button("List tools", self._list_tools)
        self.remove = push_button("Remove", self._remove)
        self.form = McpServerForm()
        self.form.submitted.connect(self._add)
        self.fold = CollapsibleSection("Add a server", self.form)
        self._lay_out()
        additions.changed.connect(self._fill)
        style().changed.connect(self._size)
        self._fill()
        self._additions.refresh(self._refuse)

    @property
    def chosen(self) -> str:
        """Name of the selected server; empty if there is none."""
        index = self.list.currentRow()
        return self._names[index] if 0 <= index < len(self._names) else ""

    def _lay_out(self) -> None:
        self._buttons = QWidget()
        hbox(self.list_tools, self.remove, self.install, STRETCH, spacing=2, parent=self._buttons)
        vbox(self.list, self._buttons, self.note, self.fold, spacing=3, parent=self)

    def _fill(self) -> None:
        added, chosen = self._additions.added, self._adding or self.chosen
        servers = added.extensions.servers
        self._names = list(servers)
        self.list.clear()
        for name, server in servers.items():
            self.list.addItem(QListWidgetItem(server_label(name, server, added.tools.get(name))))
        for widget in (self.list, self._buttons):
            widget.setVisible(bool(servers))
        if servers:
            self.list.setCurrentRow(self._names.index(chosen) if chosen in servers else 0)
        self._set_busy(on=False)
        self.note.say(" ".join(added.remarks), "warning")
        if self._adding in servers:
            self.form.clear()
            self.form.say(f"Added. Its tools are in the palette as {self._adding}/….", "good")
            self._adding = ""
        self._size()

    def _size(self) -> None:
        fit_rows(self.list, ROWS_SHOWN)

    def _set_busy(self, *, on: bool) -> None:
        if on:
            self.install.offer("")
        self.list_tools.setEnabled(not on)
        self.remove.setEnabled(not on)

    def _add(self, name: str, server: McpServer, secrets: dict[str, str]) -> None:
        self._adding = name
        self._additions.put_server(name, server, secrets, self._refuse_new)

    def _refuse_new(self, error: EngineError) -> None:
        self._adding = ""
        self.form.say(str(error), "bad", error.fix)

    def _list_tools(self) -> None:
        self._set_busy(on=True)
        self.note.say(f"Connecting to {self.chosen}…")
        self._additions.list_tools(self.chosen, self._refuse)

    def _remove(self) -> None:
        self._set_busy(on=True)
        self._additions.remove_server(self.chosen, self._refuse)

    def _refuse(self, error: EngineError) -> None:
        self._set_busy(on=False)
        self.note.say(str(error), "bad")
        self.install.offer(error.fix)


class PluginsSection(QWidget):
    """Check boxes to enable plugins. Showing it loads none of them."""

    def __init__(self, additions: ExtensionsController) -> None:
        super().__init__()
        self._additions = additions
        self.boxes: dict[str, QCheckBox] = {}
        self._wanted: dict[str, bool] = {}  # whether to enable the plugins that are being changed
        self.empty = PlainLabel("No plugins installed.", look="dim", wrap=True)
        self.note = StatusLabel()
        self._layout = vbox(self.empty, self.note, spacing=2, parent=self)
        additions.changed.connect(self._fill)
        self._fill()
        additions.refresh(self._refuse)

    def _fill(self) -> None:
        added = self._additions.added
        for plugin in added.plugins:
            if plugin.name not in self.boxes:
                self.boxes[plugin.name] = self._make(plugin.name, plugin.package)
            is_on = plugin.name in added.extensions.plugins
            if self._wanted.get(plugin.name, is_on) is is_on:  # otherwise something else has changed first
                self._wanted.pop(plugin.name, None)
                self.boxes[plugin.name].setChecked(is_on)
                self.boxes[plugin.name].setEnabled(True)
        self.empty.setVisible(not self.boxes)
        loaded = {plugin.name for plugin in added.plugins if plugin.is_enabled}
        left = sorted(loaded - set(added.extensions.plugins))
        self.note.say(f"Restart Loopwright to unload {', '.join(left)}." if left else "")

    def _make(self, name: str, package: str) -> QCheckBox:
        box = QCheckBox(f"{name}   ·   {package}".replace("&", "&&"), self)
        box.setAccessibleName(f"Plugin {name}")
        box.clicked.connect(lambda on: self._set(name, enabled=on))
        self._layout.insertWidget(len(self.boxes), box)
        return box

    def _set(self, name: str, *, enabled: bool) -> None:
        self._wanted[name] = enabled
        self.boxes[name].setEnabled(False)
        self._additions.set_plugin(name, partial(self._refuse_one, name), enabled=enabled)

    def _refuse_one(self, name: str, error: EngineError) -> None:
        box = self.boxes[name]
        box.setEnabled(True)
        box.setChecked(not self._wanted.pop(name))
        self._refuse(error)

    def _refuse(self, error: EngineError) -> None:
        self.note.say(str(error), "bad")
