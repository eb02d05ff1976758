"""The part of the settings for MCP servers: those there are, what can be done with one, and a form for another."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.additions import Additions
from app.settings.mcp_form import McpForm, server_words
from app.settings.parts import Note, push_button
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import Fold
from engine.errors import EngineError
from engine.tools.mcp.settings import McpServer

ROWS_SHOWN = 5
ROW_HEIGHT = 28


class McpSection(QWidget):
    """The servers. Being shown starts none of them."""

    def __init__(self, additions: Additions, parent: QWidget | None = None) -> None:
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
        self.fold = Fold("Add a server", self.form)
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
