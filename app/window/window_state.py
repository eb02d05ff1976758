"""What of the window is the same at the next start: its size, its panels, the files that were open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QByteArray

from app.window.autosave import has_autosave

if TYPE_CHECKING:
    from app.history.iterations_panel import IterationsPanel
    from app.settings.preferences import Preferences
    from app.window.main_window import MainWindow

SIZE = (1440, 900)


def remember(window: MainWindow) -> None:
    """Note it in the settings at once, so that it is there also after a crash."""
    paths = [document.session.path for document in window.tabs.documents]
    state = {
        "open": [str(path) for path in dict.fromkeys((*paths, *window.documents.to_come)) if path is not None],
        "sides": _to_text(window.sides.saveState()),
        "palette": window.actions_by_name["show_palette"].isChecked(),
        "inspector": window.actions_by_name["show_inspector"].isChecked(),
        "drawer": window.drawer.open_panel,
        "drawer_heights": window.drawer_room.chosen,
        "iterations": window.iterations_layout,
    }
    window.preferences.set(window_state=json.dumps(state), window_geometry=_to_text(window.saveGeometry()))
    window.preferences.save()


def restore(window: MainWindow) -> None:
    """Give a new window the size and the panels that it had."""
    window.resize(*SIZE)
    stored = _stored(window.preferences)
    if window.preferences.window_geometry:
        window.restoreGeometry(_from_text(window.preferences.window_geometry))
    if isinstance(stored.get("sides"), str):
        window.sides.restoreState(_from_text(stored["sides"]))
    for name in ("palette", "inspector"):
        window.actions_by_name[f"show_{name}"].setChecked(stored.get(name) is not False)
    window.drawer_room.restore(stored.get("drawer_heights"))
    layout = stored.get("iterations")
    window.iterations_layout = layout if isinstance(layout, dict) else {}
    if stored.get("drawer") in list(window.drawer.buttons):  # whatever stands there, also what has no hash
        window.drawer.unfold(stored["drawer"])


def share_layout(window: MainWindow, panel: IterationsPanel) -> None:
    """Have the Iterations panels of all documents arranged alike, as a person arranged one of them last."""

    def take() -> None:
        window.iterations_layout = panel.layout_state()
        for document in window.documents.all:
            if document.iterations is not panel:
                document.iterations.restore_layout(window.iterations_layout)

    panel.restore_layout(window.iterations_layout)
    panel.layout_changed.connect(take)


def open_files(preferences: Preferences, data_folder: Path) -> list[Path]:
    """The files that were open and still exist, or of which a crash left unsaved work.

    Args:
        preferences: Where it was noted.
        data_folder: Where unsaved work is kept that cannot be kept beside its file.
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
    """A state of Qt's as a text for the settings."""
    return bytes(state.toBase64().data()).decode("ascii")


def _from_text(text: str) -> QByteArray:
    """The state that `_to_text` wrote."""
    return QByteArray.fromBase64(QByteArray(text.encode("ascii", "replace")))
