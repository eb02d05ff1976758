"""The part of the settings where one sees which providers can be called, gives them keys and tries their models."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.engine_thread import EngineThread
from app.settings.available_models import is_placeholder
from app.settings.model_test import TrialRow, Work, try_model
from app.settings.preferences import Preferences
from app.settings.settings_widgets import Note, key_field, push_button, send
from app.theme.style import icon, set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, make_read_only, plain_tool_tip
from engine.errors import EngineError
from engine.models.catalogue import KnownModel, known_models
from engine.models.keys import Keys, KeySource
from engine.models.model_names import EMBEDDED_MODEL, check_model_name
from engine.models.providers import PROVIDERS

EMBEDDED_LINE = "Built-in demo model (135M): real, but not reliable"


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """One line of the list.

    Attributes:
        name: How keyring and settings call the provider; empty for the built-in model, which needs no key.
        title: What people call it.
        model: A model of it, as an example.
        key: Where its key comes from, in words.
        has_key: Whether it can be called as far as keys go.
        removable: Whether the key is the program's to forget.
        variable: The environment variable that has its key now; empty where none does.
        problem: What is wrong, in a sentence; empty where nothing is.
    """

    name: str
    title: str
    model: str
    key: str
    has_key: bool
    removable: bool = False
    variable: str = ""
    problem: str = ""


def look_up(keys: Keys, environment: Mapping[str, str] = os.environ) -> list[ProviderRow]:
    """The list as it is now. Asks the keyring, which may take a while: not on the window's thread."""
    rows = []
    for model in known_models(keys):
        provider = PROVIDERS.get(model.name.partition("/")[0])
        if model.name == EMBEDDED_MODEL:
            rows.append(ProviderRow("", model.title, model.name, "Needs no key", True, problem=model.how_to_get))
        elif provider is not None and not provider.local and model.available is not None:
            rows.append(_row(model, provider.name, provider.key_variables, keys, environment))
    return rows


def _row(
    model: KnownModel, name: str, variables: tuple[str, ...], keys: Keys, environment: Mapping[str, str]
) -> ProviderRow:
    variable = next((variable for variable in variables if environment.get(variable, "").strip()), "")
    try:
        source = keys.source(name)
        keys.get(name)
    except EngineError as error:
        words = f"{variable} cannot be used" if variable else "Cannot be used"
        return ProviderRow(name, model.title, model.name, words, False, not variable, variable, str(error))
    words = {
        KeySource.ENVIRONMENT: f"From {variable}",
        KeySource.SESSION: "For this session only",
        KeySource.KEYRING: "In the system keyring",
        None: "No key",
    }[source]
    removable = source in {KeySource.SESSION, KeySource.KEYRING}
    return ProviderRow(name, model.title, model.name, words, source is not None, removable, variable)


WIDTH = 460


class KeyDialog(QDialog):
    """Asks for one provider's key.

    Signals:
        kept: There is a key now; a sentence that says where it is kept.
    """

    kept = Signal(str)

    def __init__(self, engine: EngineThread, provider: ProviderRow, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._provider = provider
        self.setWindowTitle(f"Key for {provider.title}")
        self.setMinimumWidth(round(WIDTH * style().scale))
        self.field = key_field(f"Key for {provider.title}")
        self.words = PlainLabel("It is kept in the system's keyring, never in a file.", look="dim", wrap=True)
        self.fault = Note()
        self.keep = push_button("Keep", lambda: self._keep(session_only=False), primary=True)
        self.keep_for_session = push_button("Keep for this session only", lambda: self._keep(session_only=True))
        self.keep_for_session.hide()
        self.cancel = push_button("Cancel", self.reject)
        self.field.textChanged.connect(self._typed)
        self.keep.setDefault(True)
        self.finished.connect(self.field.clear)
        self._lay_out()
        self._typed()

    def _lay_out(self) -> None:
        title = PlainLabel(f"Key for {self._provider.title}", look="title")
        title.setBuddy(self.field)
        buttons = QHBoxLayout()
        buttons.setSpacing(2 * UNIT)
        buttons.addStretch(1)
        for button in (self.cancel, self.keep_for_session, self.keep):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6 * UNIT, 5 * UNIT, 6 * UNIT, 5 * UNIT)
        layout.setSpacing(3 * UNIT)
        layout.addWidget(title)
        layout.addWidget(self.field)
        layout.addWidget(self.words)
        if self._provider.variable:
            comes_first = f"{self._provider.variable} is set and comes first; unset it to use the key from here."
            layout.addWidget(PlainLabel(comes_first, look="dim", wrap=True))
        layout.addWidget(self.fault)
        layout.addSpacing(UNIT)
        layout.addLayout(buttons)

    def _typed(self) -> None:
        self.keep.setEnabled(bool(self.field.text().strip()))
        self.keep_for_session.setEnabled(self.keep.isEnabled())
        self._say("")

    def _say(self, sentence: str) -> None:
        self.fault.say(sentence, "bad")
        set_style_properties(self.field, invalid=bool(sentence))
        self._grow()

    def _keep(self, *, session_only: bool) -> None:
        key, keys = self.field.text(), self._engine.models.keys
        try:
            Keys({}).set(self._provider.name, key, session_only=True)  # is it one at all?
        except EngineError as error:
            self._say(str(error))
            return
        self._wait("Asking the keyring… It may ask you to unlock it.")
        place = "is kept for this session only" if session_only else "is kept in the system's keyring"
        send(
            self,
            self._engine,
            asyncio.to_thread(keys.set, self._provider.name, key, session_only=session_only),
            lambda _: self._kept(f"The key for {self._provider.title} {place}."),
            self._failed,
        )

    def _kept(self, sentence: str) -> None:
        self.kept.emit(sentence)
        self.accept()

    def _failed(self, error: EngineError) -> None:
        self._wait("")
        self._say(str(error))
        self.keep_for_session.show()
        self.keep_for_session.setFocus()

    def _wait(self, words: str) -> None:
        for widget in (self.field, self.keep, self.keep_for_session):
            widget.setEnabled(not words)
        self.words.setText(words or "Without a keyring the key can be kept until the program ends.")
        self._grow()

    def _grow(self) -> None:
        """Make room for what is said now."""
        layout = self.layout()
        layout.activate()
        self.resize(self.width(), max(self.height(), layout.totalHeightForWidth(self.width())))


ROWS_SHOWN = 7
ROW_HEIGHT = 28
LEAST_WIDTH = 120
ITEM_INDENT = 11
"""Where the texts of a table's cells begin, so that the titles begin there too."""


class ProvidersSection(QWidget):
    """The list of providers, and below it what can be done with the chosen one.

    Signals:
        looked_up: The list is as things are now.
    """

    looked_up = Signal()

    def __init__(self, preferences: Preferences, engine: EngineThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._engine = engine
        self.rows: list[ProviderRow] = []
        self.key_dialog: KeyDialog | None = None
        self.table = _table()
        self.table.itemSelectionChanged.connect(self._show_chosen)
        self.title = PlainLabel(look="title")
        self.words = Note()
        self.words.say("Looking for keys…")
        self.set_key = push_button("Set key…", self._ask_for_key)
        self.remove_key = push_button("Remove key", self._remove_key)
        self.model = QLineEdit()
        self.model.setAccessibleName("Model to test")
        self.model.textEdited.connect(self._model_edited)
        self.use = push_button("Use as default", self._use)
        self.trial = TrialRow(engine, self._call, "the model above", [self.use])
        self._lay_out()
        style().changed.connect(self._draw)
        self._show_chosen()

    @property
    def chosen(self) -> ProviderRow | None:
        """The provider that is chosen in the list."""
        index = self.table.currentRow()
        return self.rows[index] if 0 <= index < len(self.rows) else None

    def refresh(self) -> None:
        """Look again where there are keys."""
        send(self, self._engine, asyncio.to_thread(look_up, self._engine.models.keys), self._show, self._failed)

    def _lay_out(self) -> None:
        label = PlainLabel("Model")
        label.setBuddy(self.model)
        keys = QHBoxLayout()
        keys.setSpacing(2 * UNIT)
        keys.addWidget(self.title)
        keys.addStretch(1)
        keys.addWidget(self.set_key)
        keys.addWidget(self.remove_key)
        grid = QGridLayout()
        grid.setHorizontalSpacing(3 * UNIT)
        grid.setVerticalSpacing(2 * UNIT)
        grid.addWidget(label, 0, 0)
        grid.addWidget(self.model, 0, 1)
        grid.addWidget(self.trial, 1, 1)
        grid.setColumnStretch(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3 * UNIT)
        layout.addWidget(self.table)
        layout.addLayout(keys)
        layout.addWidget(self.words)
        layout.addLayout(grid)

    def _show(self, rows: list[ProviderRow]) -> None:
        chosen = self.chosen.name if self.chosen is not None else ""
        self.rows = rows
        self.table.blockSignals(True)
        self.table.setRowCount(len(rows))
        self._draw()
        self.table.selectRow(next((index for index, row in enumerate(rows) if row.name == chosen), 0))
        self.table.blockSignals(False)
        self._preferences.set(providers_with_key=tuple(row.name for row in rows if row.name and row.has_key))
        self._show_chosen()
        self.looked_up.emit()

    def _failed(self, error: EngineError) -> None:
        self.words.say(str(error), "bad")

    def _draw(self) -> None:
        """Write the list, in the theme's colours and the size of texts that is on."""
        theme, scale = style().theme, style().scale
        for index, row in enumerate(self.rows):
            picture = "mdi6.key-variant" if row.has_key and row.name else "mdi6.check" if row.has_key else "mdi6.minus"
            picture, colour = ("mdi6.alert-circle-outline", theme.bad) if row.problem else (picture, theme.dim)
            key = QTableWidgetItem(icon(picture, theme.good if row.has_key and not row.problem else colour), row.key)
            for column, item in enumerate((QTableWidgetItem(row.title), key)):
                item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
                item.setToolTip(plain_tool_tip(item.text()))
                self.table.setItem(index, column, item)
        self.table.verticalHeader().setDefaultSectionSize(round(ROW_HEIGHT * scale))
        head = self.table.horizontalHeader().sizeHint().height()
        self.table.setFixedHeight(head + round(ROW_HEIGHT * scale) * ROWS_SHOWN + UNIT)

    def _show_chosen(self) -> None:
        row = self.chosen
        self.trial.forget()
        for widget in (self.model, self.use, self.trial.button):
            widget.setEnabled(row is not None)
        self.set_key.setVisible(row is not None and bool(row.name))
        self.remove_key.setVisible(row is not None and bool(row.name))
        if row is None:
            return
        self.title.setText(row.title)
        self.set_key.setAccessibleName(f"Set the key for {row.title}")
        self.set_key.setText("Change key…" if row.removable else "Set key…")
        self.remove_key.setAccessibleName(f"Remove the key for {row.title}")
        self.remove_key.setEnabled(row.removable)
        self.remove_key.setToolTip(f"It comes from {row.variable} and is not the program's." if row.variable else "")
        self.model.setText(row.model)
        if row.problem:
            self.words.say(row.problem, "bad")
        elif not row.name:
            self.words.say(f"{EMBEDDED_LINE}. It runs on this machine and costs nothing.")
        else:
            self.words.say("No key yet." if not row.has_key else f"Key: {row.key[0].lower()}{row.key[1:]}.")

    def _ask_for_key(self) -> None:
        row = self.chosen
        assert row is not None
        if self.key_dialog is not None:
            self.key_dialog.deleteLater()
        self.key_dialog = KeyDialog(self._engine, row, self)
        self.key_dialog.kept.connect(lambda _sentence: self.refresh())
        self.key_dialog.open()

    def _remove_key(self) -> None:
        row = self.chosen
        assert row is not None
        self.remove_key.setEnabled(False)
        removing = asyncio.to_thread(self._engine.models.keys.delete, row.name)
        send(self, self._engine, removing, lambda _: self.refresh(), self._not_removed)

    def _not_removed(self, error: EngineError) -> None:
        self._show_chosen()
        self._failed(error)

    def _model_edited(self) -> None:
        self.trial.forget()

    def _checked_name(self) -> str | None:
        name = self.model.text().strip()
        try:
            check_model_name(name)
        except EngineError as error:
            self.words.say(str(error), "bad")
            return None
        if is_placeholder(name):
            self.words.say("Write the name of a model in the place of MODEL.", "bad")
            self.model.setFocus()
            return None
        return name

    def _call(self) -> Work | None:
        name = self._checked_name()
        return None if name is None else try_model(self._engine.models, name)

    def _use(self) -> None:
        name = self._checked_name()
        if name is not None:
            self._preferences.set(default_model=name)


def _table() -> QTableWidget:
    table = QTableWidget(0, 2)
    table.setHorizontalHeaderLabels(["Provider", "Key"])
    table.setAccessibleName("Providers")
    make_read_only(table)
    header = table.horizontalHeader()
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
    header.setMinimumSectionSize(LEAST_WIDTH)
    header.setStyleSheet(f"QHeaderView::section {{ padding-left: {ITEM_INDENT}px; }}")
    header.setAccessibleName("Columns of the list of providers")
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    return table
