"""The settings: models, runs, history, tools, plugins, looks. What is changed counts at once."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QListWidget,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.additions import Additions
from app.bridge import EngineThread
from app.history.store_access import StoreAccess
from app.settings.default_model import DefaultModel
from app.settings.form import PreferencesForm
from app.settings.history_space import HistorySpace
from app.settings.looks import follow_looks
from app.settings.mcp_section import McpSection
from app.settings.parts import Section, push_button
from app.settings.plugins_section import PluginsSection
from app.settings.preferences import Preferences
from app.settings.providers_section import ProvidersSection
from app.settings.servers_section import ServersSection
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.wheel import scroll_past_fields
from app.theme.widgets import HintBar, PlainLabel

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
        additions: Additions | None = None,
    ) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._history = history
        self._additions = additions or Additions(engine, self)
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
        self.notice = HintBar(preferences.notice, "warning")
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
    scroll_past_fields(area)
    return area
