"""The part of the settings where one sees which providers can be called, gives them keys and tries their models."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.bridge import EngineThread
from app.settings.errands import send
from app.settings.key_dialog import KeyDialog
from app.settings.models_list import is_placeholder
from app.settings.parts import Note, push_button
from app.settings.preferences import Preferences
from app.settings.providers import EMBEDDED_LINE, ProviderRow, look_up
from app.settings.trial import try_model
from app.settings.trial_row import TrialRow, Work
from app.theme.plain_table import make_plain
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, plain_tool_tip
from engine.errors import EngineError
from engine.models.model_names import check_model_name

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
    make_plain(table)
    header = table.horizontalHeader()
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
    header.setMinimumSectionSize(LEAST_WIDTH)
    header.setStyleSheet(f"QHeaderView::section {{ padding-left: {ITEM_INDENT}px; }}")
    header.setAccessibleName("Columns of the list of providers")
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    return table
