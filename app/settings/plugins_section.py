"""The part of the settings for plugins: those that are installed, and which of them are enabled."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from app.additions import Additions
from app.settings.parts import Note
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.errors import EngineError


class PluginsSection(QWidget):
    """A box for each plugin. Being shown loads none of them."""

    def __init__(self, additions: Additions, parent: QWidget | None = None) -> None:
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
