"""Window state that survives a restart: geometry, panels, and the files that were open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QByteArray
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMainWindow, QSplitter

from app.window.autosave import has_autosave
from app.window.bottom_panel import BottomPanel, BottomPanelHeight

if TYPE_CHECKING:
    from app.history.iterations_panel import IterationsPanel
    from app.settings.preferences import Preferences

DEFAULT_SIZE: Final = (1440, 900)


class WindowState:
    """Saves and restores the state of one window in the preferences.

    Args:
        preferences: The user's settings, in which the state is stored.
        window: The window.
        sides: The splitter between palette, documents and inspector.
        actions: The window's actions by name.
        panel: The bottom panel.
        heights: The heights of the bottom panel.
    """

    def __init__(
        self,
        preferences: Preferences,
        window: QMainWindow,
        sides: QSplitter,
        actions: Mapping[str, QAction],
        panel: BottomPanel,
        heights: BottomPanelHeight,
    ) -> None:
        self._preferences = preferences
        self._window = window
        self._sides = sides
        self._actions = actions
        self._panel = panel
        self._heights = heights
        self._iterations: dict[str, Any] = {}

    def save(self, open_paths: Iterable[Path | None]) -> None:
        """Write the state to disk at once, so that it survives a crash."""
        state = {
            "open": [str(path) for path in dict.fromkeys(open_paths) if path is not None],
            "sides": _to_text(self._sides.saveState()),
            "palette": self._actions["show_palette"].isChecked(),
            "inspector": self._actions["show_inspector"].isChecked(),
            "drawer": self._panel.open_panel,
            "drawer_heights": self._heights.chosen,
            "iterations": self._iterations,
        }
        geometry = _to_text(self._window.saveGeometry())
        self._preferences.set(window_state=json.dumps(state), window_geometry=geometry)
        self._preferences.save()

    def restore(self) -> None:
        """Apply the stored state to a new window."""
        self._window.resize(*DEFAULT_SIZE)
        stored = _stored(self._preferences)
        if self._preferences.window_geometry:
            self._window.restoreGeometry(_from_text(self._preferences.window_geometry))
        if isinstance(stored.get("sides"), str):
            self._sides.restoreState(_from_text(stored["sides"]))
        for name in ("palette", "inspector"):
            self._actions[f"show_{name}"].setChecked(stored.get(name) is not False)
        self._heights.restore(stored.get("drawer_heights"))
        layout = stored.get("iterations")
        self._iterations = layout if isinstance(layout, dict) else {}
        if stored.get("drawer") in list(self._panel.buttons):  # a list: the stored value may not be hashable
            self._panel.unfold(stored["drawer"])

    def share_layout(self, panel: IterationsPanel, panels: Callable[[], Iterable[IterationsPanel]]) -> None:
        """Keep the layout of an Iterations panel the same as that of all other documents.

        Args:
            panel: The panel of a document that was opened.
            panels: Returns the panels of all open documents.
        """

        def apply_to_others() -> None:
            self._iterations = panel.layout_state()
            for other in panels():
                if other is not panel:
                    other.restore_layout(self._iterations)

        panel.restore_layout(self._iterations)
        panel.layout_changed.connect(apply_to_others)


def open_files(preferences: Preferences, data_folder: Path) -> list[Path]:
    """Return the files that were open last and still exist, or have unsaved work left by a crash.

    Args:
        preferences: The user's settings, in which they are stored.
        data_folder: The folder of autosave files that cannot be written beside their document.
    """
    names = _stored(preferences).get("open")
    found = [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [path for path in found if path.exists() or has_autosave(path, data_folder)]


def _stored(preferences: Preferences) -> dict[str, Any]:
    try:
        stored = json.loads(preferences.window_state or "{}")
    except ValueError:
        return {}
    return stored if isinstance(stored, dict) else {}


def _to_text(state: QByteArray) -> str:
    return bytes(state.toBase64().data()).decode("ascii")


def _from_text(text: str) -> QByteArray:
    return QByteArray.fromBase64(QByteArray(text.encode("ascii", "replace")))
