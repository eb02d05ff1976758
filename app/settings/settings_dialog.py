"""The settings: models, runs, history, tools, plugins, looks. What is changed counts at once."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QHBoxLayout,
    QListWidget,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.engine_thread import EngineThread
from app.extensions_controller import ExtensionsController
from app.history.store_client import StoreAccess
from app.settings.available_models import model_names
from app.settings.extensions_section import McpSection, PluginsSection
from app.settings.preferences import Preferences, follow_looks
from app.settings.preferences_form import PreferencesForm
from app.settings.preferences_schema import fault
from app.settings.providers_section import EMBEDDED_LINE, ProvidersSection
from app.settings.servers_section import ServersSection
from app.settings.settings_widgets import Note, Section, push_button
from app.theme.style import icon, set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import MessageBar, PlainLabel, ignore_wheel_in_fields
from app.worker import Worker
from engine.errors import EngineError
from engine.formatting import format_bytes, format_count
from engine.models.catalogue import default_model_name
from engine.models.model_names import EMBEDDED_MODEL
from engine.store.base import EVERY_RUN, Store


class ModelBox(QComboBox):
    """A combo box that takes any text and offers the models there are when it is opened.

    Signals:
        opening: The list is about to be shown.
    """

    opening = Signal()

    def showPopup(self) -> None:
        """Let the list be brought up to date first."""
        self.opening.emit()
        super().showPopup()


class DefaultModel(QWidget):
    """The chooser, and what should be known of the model that counts."""

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self.box = ModelBox()
        self.box.setEditable(True)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.box.setAccessibleName("Default model")
        self.box.lineEdit().setAccessibleName("Default model")
        self.box.lineEdit().setPlaceholderText(f"{default_model_name()} (where nothing is chosen)")
        self.box.opening.connect(self._offer)
        self.box.lineEdit().textEdited.connect(self._take_up)
        self.box.lineEdit().editingFinished.connect(self._remember)
        self.box.textActivated.connect(self._choose)
        self.note = Note()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2 * UNIT)
        layout.addWidget(self.box)
        layout.addWidget(self.note)
        preferences.changed.connect(self._follow)
        self._offer()
        self._show()

    def _offer(self) -> None:
        text = self.box.currentText()
        self.box.clear()
        self.box.addItems(model_names(self._preferences))
        self.box.setCurrentIndex(self.box.findText(text))
        self.box.setEditText(text)

    def _take_up(self, text: str) -> None:
        name = text.strip() or None
        problem = fault("default_model", name)
        set_style_properties(self.box, invalid=bool(problem))
        if problem:
            self.note.say(problem, "bad")
        else:
            self._preferences.set(default_model=name)
            self._remark()

    def _choose(self, text: str) -> None:
        self._take_up(text)
        self._remember()

    def _remember(self) -> None:
        """A name that was typed to its end, or chosen, is offered from now on, also when another one counts."""
        name = self._preferences.choices.default_model
        if name is not None and name == self.box.currentText().strip():
            self._preferences.remember_model(name)

    def _follow(self, names: frozenset[str]) -> None:
        if "default_model" in names:
            self._show()

    def _show(self) -> None:
        name = self._preferences.choices.default_model or ""
        if self.box.currentText().strip() != name:
            self.box.setEditText(name)
        set_style_properties(self.box, invalid=False)
        self._remark()

    def _remark(self) -> None:
        name = self._preferences.choices.default_model or default_model_name()
        self.note.say(f"{EMBEDDED_LINE}." if name == EMBEDDED_MODEL else "")


class HistorySpace(QWidget):
    """A line that says how large the history is, and a button.

    Args:
        access: The way to the history.
        preferences: Say how much of it is kept.
    """

    def __init__(self, access: StoreAccess, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._access = access
        self._preferences = preferences
        self._worker = Worker(self)
        self.line = PlainLabel("", wrap=True)
        self.free = push_button("Free space now", self._free)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * UNIT)
        column.addWidget(self.line)
        column.addWidget(self.free, 0, Qt.AlignmentFlag.AlignLeft)
        access.opened.connect(self.refresh)
        access.changed.connect(self.refresh)

    def showEvent(self, event: QShowEvent) -> None:
        """Look how large it is now."""
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Say how large it is."""
        if not self.isVisible():
            return
        asked = self._access.ask(
            lambda store: (store.size(), store.totals(EVERY_RUN).count), self._say, self._fail, worker=self._worker
        )
        self.free.setEnabled(asked)
        if not asked:
            self.line.setText(self._access.failure or "The history is not open.")

    def _free(self) -> None:
        choices = self._preferences
        most_runs, megabytes = choices.keep_runs, choices.keep_megabytes
        most_bytes = None if megabytes is None else megabytes * 1_000_000
        self.free.setEnabled(False)
        self.line.setText("Freeing space…")

        def work(store: Store) -> tuple[int, int]:
            before = store.size()
            gone = store.retain(most_runs=most_runs, most_bytes=most_bytes)
            store.vacuum()
            return gone, before - store.size()

        def done(outcome: tuple[int, int]) -> None:
            gone, won = outcome
            if gone:
                self._access.changed.emit()
            self.free.setEnabled(True)
            runs = "" if not gone else f" {format_count(gone, 'run')} went."
            self.line.setText(f"{format_bytes(max(won, 0))} were freed.{runs}")

        self._access.ask(work, done, self._fail, worker=self._worker)

    def _say(self, found: tuple[int, int]) -> None:
        size, count = found
        self.line.setText(f"{format_count(count, 'run')} take {format_bytes(size)}.")

    def _fail(self, error: EngineError) -> None:
        self.free.setEnabled(True)
        self.line.setText(str(error))


SIZE: Final = QSize(840, 720)
NAVIGATION_WIDTH: Final = 136
NAVIGATION_ROW: Final = 32
NAVIGATION_SHEET: Final = """
QListWidget { border-radius: 6px; }
QListWidget::item { border-radius: 4px; margin: 2px; padding: 2px 6px; }
"""
"""The list stands alone, and so it has the round corners of a field, and its rows those of a menu's."""

PAGES: Final = {
    "models": ("Models", "mdi6.creation"),
    "runs": ("Runs", "mdi6.play"),
    "history": ("History", "mdi6.history"),
    "tools": ("Tools", "mdi6.toolbox-outline"),
    "plugins": ("Plugins", "mdi6.puzzle-outline"),
    "looks": ("Looks", "mdi6.palette"),
}


class SettingsDialog(QDialog):
    """The dialog; it is not modal, so that a run goes on and the looks are seen while one chooses them.

    Args:
        preferences: What is changed.
        engine: Where models are called and keys looked for.
        history: The way to the history; None where there is none to be told of.
        additions: The MCP servers and plugins of the program; None for its own look at them.
    """

    def __init__(
        self,
        preferences: Preferences,
        engine: EngineThread,
        parent: QWidget | None = None,
        *,
        history: StoreAccess | None = None,
        additions: ExtensionsController | None = None,
    ) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._history = history
        self._additions = additions or ExtensionsController(engine, self)
        self.space: HistorySpace | None = None
        self.mcp: McpSection | None = None
        self.plugins: PluginsSection | None = None
        self._made = {"models"}
        self.setWindowTitle("Settings")
        follow_looks(preferences)
        self.resize((SIZE * style().scale).boundedTo(self.screen().availableSize() * 0.9))
        self.default_model = DefaultModel(preferences)
        self.providers = ProvidersSection(preferences, engine)
        self.servers = ServersSection(preferences, engine)
        self.forms: dict[str, PreferencesForm] = {}
        self.navigation = QListWidget()
        self.navigation.setAccessibleName("Pages of the settings")
        self.navigation.setProperty("bare", True)
        self.pages = QStackedWidget()
        self.pages.addWidget(self._models_page())
        for _ in list(PAGES)[1:]:
            self.pages.addWidget(
                QWidget()
            )  # its page is made when it is first looked at, which keeps the opening short
        self.navigation.addItems([title for title, _ in PAGES.values()])
        self.navigation.currentRowChanged.connect(self._turn_to)
        self.notice = MessageBar(preferences.notice, "warning")
        self.notice.setVisible(bool(preferences.notice))
        preferences.refused.connect(self._refuse)
        self.close_button = push_button("Close", self.close)
        self._lay_out()
        style().changed.connect(self._draw)
        self._draw()
        self.navigation.setCurrentRow(0)

    def show_page(self, name: str) -> None:
        """Open the dialog at a page of `PAGES`, in front of the others."""
        self.navigation.setCurrentRow(list(PAGES).index(name))
        self.show()
        self.raise_()
        self.activateWindow()

    def showEvent(self, event: QShowEvent) -> None:
        """Look for keys: another program may have put some into the keyring meanwhile."""
        super().showEvent(event)
        if not event.spontaneous():
            self.providers.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Whatever was decided is on the disk once the dialog is gone."""
        super().hideEvent(event)
        if not event.spontaneous():
            self._preferences.save()

    def _turn_to(self, index: int) -> None:
        name = list(PAGES)[index]
        if name not in self._made:
            self._made.add(name)
            empty = self.pages.widget(index)
            self.pages.insertWidget(index, _page(PAGES[name][0], *self._parts(name)))
            self.pages.removeWidget(empty)
            empty.deleteLater()
        self.pages.setCurrentIndex(index)

    def _parts(self, name: str) -> list[QWidget]:
        """What a page is made of."""
        if name == "tools":
            self.mcp = McpSection(self._additions)
            words = "Other programs that serve tools. One is started only when a run calls it, or when you ask it."
            return [Section("MCP servers", words, self.mcp)]
        if name == "plugins":
            self.plugins = PluginsSection(self._additions)
            words = "Packages that add nodes, tools, models and more. A plugin is code: enable only what you trust."
            return [Section("Installed plugins", words, self.plugins)]
        self.forms[name] = PreferencesForm(self._preferences, name)
        if name != "history" or self._history is None:
            return [self.forms[name]]
        self.space = HistorySpace(self._history, self._preferences)
        return [self.forms[name], Section("Space on the disk", "What is deleted gives its space back.", self.space)]

    def _models_page(self) -> QWidget:
        return _page(
            "Models",
            Section(
                "Default model",
                "What a model node calls where neither it nor its document names a model.",
                self.default_model,
            ),
            Section(
                "Providers",
                "Keys stay in the system's keyring, or in environment variables. They are never written to a file.",
                self.providers,
            ),
            Section(
                "Your own servers",
                "Ollama, LM Studio and llama.cpp on this machine, or any server that speaks like OpenAI's.",
                self.servers,
            ),
        )

    def _lay_out(self) -> None:
        side = QWidget()
        side.setAutoFillBackground(True)  # in the colour behind everything, which sets it off from the page
        beside = QVBoxLayout(side)
        beside.setContentsMargins(2 * UNIT, 5 * UNIT, 2 * UNIT, 4 * UNIT)
        beside.addWidget(self.navigation)
        beside.addStretch(1)
        bottom = QHBoxLayout()
        bottom.setContentsMargins(6 * UNIT, 3 * UNIT, 6 * UNIT, 4 * UNIT)
        bottom.addWidget(PlainLabel("Changes count at once.", look="dim"))
        bottom.addStretch(1)
        bottom.addWidget(self.close_button)
        content = QVBoxLayout()
        content.setSpacing(0)
        content.addWidget(self.notice)
        content.addWidget(self.pages, 1)
        content.addLayout(bottom)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(side)
        layout.addLayout(content, 1)

    def _draw(self) -> None:
        side = round(16 * style().scale)
        self.navigation.setIconSize(QSize(side, side))
        self.navigation.setFixedWidth(round(NAVIGATION_WIDTH * style().scale))
        height = round(NAVIGATION_ROW * style().scale)
        for index, (_, picture) in enumerate(PAGES.values()):
            self.navigation.item(index).setIcon(icon(picture, style().theme.dim))
            self.navigation.item(index).setSizeHint(QSize(0, height))
        self.navigation.setFixedHeight(height * len(PAGES) + 2)
        self.navigation.setStyleSheet(NAVIGATION_SHEET)

    def _refuse(self, sentence: str) -> None:
        self.notice.say(sentence, "warning")
        self.notice.show()


def _page(title: str, *parts: QWidget) -> QScrollArea:
    inner = QWidget()
    layout = QVBoxLayout(inner)
    layout.setContentsMargins(6 * UNIT, 5 * UNIT, 6 * UNIT, 6 * UNIT)
    layout.setSpacing(8 * UNIT)
    layout.addWidget(PlainLabel(title, look="heading"))
    for part in parts:
        layout.addWidget(part)
    layout.addStretch(1)
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(inner)
    ignore_wheel_in_fields(area)
    return area
