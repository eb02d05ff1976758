"""The menu bar: made of the declared actions, with the canvas's own actions of the document that is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMainWindow, QMenu

from app.theme.widgets import plain_tool_tip
from app.window.actions import MENUS, SLOT


class Menus:
    """The menus of a window.

    Args:
        window: The window.
        actions: The window's actions by name.
        open_recent: Opens a file.
    """

    def __init__(
        self, window: QMainWindow, actions: Mapping[str, QAction], open_recent: Callable[[Path], object]
    ) -> None:
        self._open_recent = open_recent
        self._slots: dict[str, tuple[QMenu, QAction]] = {}
        self._canvas_actions: dict[str, list[QAction]] = {"canvas": [], "canvas_view": []}
        self.recent = QMenu("Open recent", window)
        self.recent.setToolTipsVisible(True)
        bar = window.menuBar()
        self.groups: list[tuple[str, list[QAction]]] = []
        for title, specs in MENUS.items():
            menu = bar.addMenu(title)
            group: list[QAction] = []
            for spec in specs:
                if spec.name == "recent":
                    menu.addMenu(self.recent)
                elif spec.text == SLOT:
                    self._slots[spec.name] = (menu, menu.addSeparator())
                elif spec.name:
                    menu.addAction(actions[spec.name])
                    group.append(actions[spec.name])
                else:
                    menu.addSeparator()
            self.groups.append((title.replace("&", ""), group))

    @property
    def canvas_actions(self) -> list[QAction]:
        """The actions of the canvas that is shown."""
        return [action for there in self._canvas_actions.values() for action in there]

    def show_canvas(self, actions: Mapping[str, QAction]) -> None:
        """Show the actions of another canvas; none where there is none."""
        view = [action for name, action in actions.items() if name.startswith(("zoom", "fit"))]
        edit = [action for action in actions.values() if action not in view]
        for slot, wanted in (("canvas", edit), ("canvas_view", view)):
            menu, before = self._slots[slot]
            for action in self._canvas_actions[slot]:
                menu.removeAction(action)
            for action in wanted:
                menu.insertAction(before, action)
            self._canvas_actions[slot] = wanted

    def show_recent(self, files: Sequence[Path]) -> None:
        """Offer these files."""
        self.recent.clear()
        self.recent.setEnabled(bool(files))
        for file in files:
            # A name may hold an ampersand, which a menu would read as a mark.
            action = self.recent.addAction(file.name.replace("&", "&&"))
            action.setToolTip(plain_tool_tip(str(file)))
            action.triggered.connect(lambda _checked=False, file=file: self._open_recent(file))
