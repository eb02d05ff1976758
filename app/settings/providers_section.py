"""Providers section of the settings: API keys and model tests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.engine_thread import EngineThread
from app.settings.key_dialog import KeyDialog
from app.settings.preferences import Preferences
from app.settings.settings_widgets import (
    ModelTestCall,
    ModelTestRow,
    disable_fixed,
    run_model_test,
)
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, PlainLabel, StatusLabel, hbox, make_read_only, plain_tool_tip, push_button, vbox
from app.worker import Worker
from engine.errors import EngineError
from engine.models.catalog import check_model_name
from engine.models.keys import Keys, KeySource
from engine.models.known_models import built_in_model, is_placeholder, known_examples
from engine.models.providers import PROVIDERS

EMBEDDED_MODEL_NOTE = "Built-in demo model (135M): real, but not reliable"


_SOURCES = {
    KeySource.ENVIRONMENT: "Set outside of Loopwright",
    KeySource.SESSION: "This session only",
    KeySource.KEYRING: "System keyring",
    None: "No key",
}


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """One line of the list.

    Attributes:
        name: Name in the keyring and the preferences; empty for the built-in model, which needs no key.
        title: Display name.
        model: An example of its models.
        source: Where its key comes from; None without one.
        problem: What is wrong, in a sentence; empty if nothing is.
    """

    name: str
    title: str
    model: str
    source: KeySource | None = None
    problem: str = ""

    @property
    def key(self) -> str:
        """Source of its key, for display."""
        if not self.name:
            return "No key needed"
        return "Invalid key" if self.problem else _SOURCES[self.source]

    @property
    def has_key(self) -> bool:
        """Whether a key is available or none is needed."""
        return not self.name or (self.source is not None and not self.problem)

    @property
    def removable(self) -> bool:
        """Whether the program can remove the key."""
        return self.source in {KeySource.SESSION, KeySource.KEYRING}


def list_providers(keys: Keys) -> list[ProviderRow]:
    """Return the current list. Accesses the keyring, which may be slow: do not call it in the window's thread."""
    own = built_in_model()
    rows = [ProviderRow("", own.title, own.name, problem=own.how_to_get)]
    for model in known_examples(keys):
        provider = PROVIDERS[model.name.partition("/")[0]]
        if not provider.local:
            source = keys.source(provider.name)
            problem = "" if source is None else model.how_to_get
            rows.append(ProviderRow(provider.name, model.title, model.name, source, problem))
    return rows


ROWS_SHOWN = 7
ROW_HEIGHT = 28
LEAST_WIDTH = 120


class ProvidersSection(QWidget):
    """List of providers, with actions for the selected one.

    Signals:
        refreshed: The list was updated.
    """

    refreshed = Signal()

    def __init__(self, preferences: Preferences, engine: EngineThread, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._engine = engine
        self._worker = Worker(self)
        self._removal_worker = Worker(self)  # of its own: a refresh does not supersede a removal
        self._not_removed: dict[str, str] = {}  # why, by the provider's name, until the next attempt
        self.rows: list[ProviderRow] = []
        self._suggested = ""
        self.key_dialog: KeyDialog | None = None
        self.table = _table()
        self.table.itemSelectionChanged.connect(self._show_chosen)
        self.title = PlainLabel(look="title")
        self.status = StatusLabel(self)
        self.status.say("Checking API keys…")
        self.set_key = push_button("Add key…", self._ask_for_key)
        self.remove_key = push_button("Remove key", self._remove_key)
        self.model = QLineEdit()
        self.model.setAccessibleName("Model to test")
        self.model.textEdited.connect(lambda _text: self.model_test.reset())
        self.use = push_button("Use as default", self._use)
        self.model_test = ModelTestRow(engine, self._call, "this model", [self.use])
        self._lay_out()
        style().changed.connect(self._draw)
        self._draw()
        self._show_chosen()

    @property
    def chosen(self) -> ProviderRow | None:
        """The selected provider, or None."""
        index = self.table.currentRow()
        return self.rows[index] if 0 <= index < len(self.rows) else None

    def refresh(self) -> None:
        """Update the list in the background; only the answer to the last request counts."""
        self._worker.supersede()
        self._worker.ask(partial(list_providers, self._engine.models.keys), self._show, self._failed)

    def _lay_out(self) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(3 * UNIT)
        grid.setVerticalSpacing(2 * UNIT)
        grid.addWidget(PlainLabel("Model", buddy=self.model), 0, 0)
        grid.addWidget(self.model, 0, 1)
        grid.addWidget(self.model_test, 1, 1)
        grid.setColumnStretch(1, 1)
        vbox(
            self.table,
            hbox(self.title, STRETCH, self.set_key, self.remove_key, spacing=2),
            self.status,
            grid,
            spacing=3,
            parent=self,
        )

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
        self.refreshed.emit()

    def _failed(self, error: EngineError) -> None:
        self.status.say(str(error), "bad")

    def _draw(self) -> None:
        """Fill the table with the current theme and text size."""
        theme, scale = style().theme, style().scale
        for index, row in enumerate(self.rows):
            picture = "mdi6.key-variant" if row.has_key and row.name else "mdi6.check" if row.has_key else "mdi6.minus"
            picture, color = ("mdi6.alert-circle-outline", theme.bad) if row.problem else (picture, theme.dim)
            key = QTableWidgetItem(icon(picture, theme.good if row.has_key and not row.problem else color), row.key)
            for column, item in enumerate((QTableWidgetItem(row.title), key)):
                item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
                item.setToolTip(plain_tool_tip(item.text()))
                self.table.setItem(index, column, item)
        self.table.verticalHeader().setDefaultSectionSize(round(ROW_HEIGHT * scale))
        head = self.table.horizontalHeader().sizeHint().height()
        self.table.setFixedHeight(head + round(ROW_HEIGHT * scale) * ROWS_SHOWN + UNIT)

    def _show_chosen(self) -> None:
        row = self.chosen
        for widget in (self.model, self.use, self.model_test.button):
            widget.setEnabled(row is not None)
        disable_fixed(self._preferences, "default_model", self.use)
        self.set_key.setVisible(row is not None and bool(row.name))
        self.remove_key.setVisible(row is not None and bool(row.name))
        if row is None:
            return
        self.title.setText(row.title)
        verb = "Change" if row.removable else "Add"
        self.set_key.setText(f"{verb} key…")
        self.set_key.setAccessibleName(f"{verb} the key for {row.title}")
        self.remove_key.setAccessibleName(f"Remove the key for {row.title}")
        self.remove_key.setEnabled(row.removable)
        self.remove_key.setToolTip(
            "The key was set outside of Loopwright and can only be removed there."
            if row.source is KeySource.ENVIRONMENT
            else ""
        )
        if row.model != self._suggested:  # or else the keys were only checked again, and the user may have typed
            self._suggested = row.model
            self.model.setText(row.model)
            self.model_test.reset()
        problem = self._not_removed.get(row.name) or row.problem
        if problem:
            self.status.say(problem, "bad")
        elif not row.name:
            self.status.say(f"{EMBEDDED_MODEL_NOTE}. It runs on this computer, free of charge.")
        else:
            self.status.say("No key yet." if not row.has_key else f"Key: {row.key[0].lower()}{row.key[1:]}.")

    def _ask_for_key(self) -> None:
        row = self.chosen
        assert row is not None
        self._not_removed.pop(row.name, None)
        if self.key_dialog is not None:
            self.key_dialog.deleteLater()
        self.key_dialog = KeyDialog(self._engine, row.name, self)
        self.key_dialog.key_saved.connect(self.model_test.reset)
        self.key_dialog.key_saved.connect(self.refresh)
        self.key_dialog.open()

    def _remove_key(self) -> None:
        row = self.chosen
        assert row is not None
        self.remove_key.setEnabled(False)
        self._not_removed.pop(row.name, None)
        self.model_test.reset()
        remove = partial(self._engine.models.keys.delete, row.name)
        self._removal_worker.ask(remove, lambda _: self.refresh(), partial(self._remove_failed, row.name))

    def _remove_failed(self, name: str, error: EngineError) -> None:
        self._not_removed[name] = str(error)  # the list may be on its way, and shows the state of the key
        self._show_chosen()
        self._failed(error)

    def _checked_name(self) -> str | None:
        name = self.model.text().strip()
        try:
            check_model_name(name)
        except EngineError as error:
            self.status.say(str(error), "bad")
            return None
        if is_placeholder(name):
            self.status.say("Replace MODEL with the name of a model.", "bad")
            self.model.setFocus()
            return None
        return name

    def _call(self) -> ModelTestCall | None:
        name = self._checked_name()
        return None if name is None else run_model_test(self._engine.models, name)

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
    header.setAccessibleName("Provider columns")
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    return table
