"""How high the drawer is: each panel as a person left it, at first as it needs."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QSplitter

from app.theme.style import style
from app.window.drawer import Drawer

USUAL_HEIGHT: Final = 220
HEIGHTS: Final = {"iterations": 360, "runs": 300}
"""How high panels are opened first that need another than the usual height, in pixels at the usual size of texts."""


class DrawerRoom(QObject):
    """Shares the room between the documents and the drawer below them.

    Args:
        splitter: Has both.
        drawer: The drawer.

    Attributes:
        chosen: The heights that a person gave to panels, by name.
    """

    def __init__(self, splitter: QSplitter, drawer: Drawer) -> None:
        super().__init__(splitter)
        self._splitter, self._drawer = splitter, drawer
        self.chosen: dict[str, int] = {}
        splitter.splitterMoved.connect(self._note)
        drawer.unfolded.connect(self._give)

    def restore(self, chosen: object) -> None:
        """Take heights of an earlier time; what cannot be understood is left out."""
        if isinstance(chosen, dict):
            self.chosen = {str(name): height for name, height in chosen.items() if type(height) is int}

    def _note(self) -> None:
        if self._drawer.open_panel:
            self.chosen[self._drawer.open_panel] = self._splitter.sizes()[1]

    def _give(self, name: str) -> None:
        total = sum(self._splitter.sizes())
        if not name:  # a splitter does not give the room back by itself
            row = self._drawer.maximumHeight()
            self._splitter.setSizes([total - row, row])
            return
        first = min(round(HEIGHTS.get(name, USUAL_HEIGHT) * style().scale), total // 2)
        wanted = min(self.chosen.get(name, first), total)
        self._splitter.setSizes([total - wanted, wanted])
