"""The part of the settings for models on one's own servers: those found on this machine, and any other by address."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.bridge import EngineThread
from app.settings.choices import OwnServer
from app.settings.errands import send
from app.settings.local_servers import LocalServer, find_local_servers
from app.settings.parts import Note, push_button
from app.settings.preferences import Preferences
from app.settings.server_form import ServerForm
from app.settings.trial import try_model
from app.settings.trial_row import TrialRow, Work
from app.theme.icons import ThemedIcon
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import Fold
from engine.errors import EngineError
from engine.models.providers import provider_named

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
        self.fold = Fold("Add a server by its address", self.form)
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
        head = f"Found {len(models)} {'model' if len(models) == 1 else 'models'}." if models else "Found no model."
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
