"""The widths of palette and inspector beside the documents: they grow and shrink with the texts in them."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QSplitter

from app.theme.style import style

WIDTHS: Final = (216, 900, 320)
"""Palette, documents and inspector with texts of the usual size, until a person moves the borders."""

LEAST: Final = 240
"""What larger texts beside them leave the documents, with texts of the usual size: the zoom buttons have room there."""


class SideWidths(QObject):
    """Keeps the widths.

    Args:
        sides: The splitter with palette, documents and inspector.
    """

    def __init__(self, sides: QSplitter) -> None:
        super().__init__(sides)
        self._sides = sides
        self._scale = style().scale
        self._wanted = [float(WIDTHS[0]), float(WIDTHS[2])]
        self._give(sum(WIDTHS))
        sides.splitterMoved.connect(lambda *_: self._remember())
        style().changed.connect(self._follow)

    def _remember(self) -> None:
        """Note what a person wants, as it is with texts of the usual size; of what is not seen Qt says no width."""
        now = self._sides.sizes()[::2]
        self._wanted = [width / self._scale or before for width, before in zip(now, self._wanted, strict=True)]

    def _follow(self) -> None:
        """Give both sides more room, or less, as the texts have grown.

        It goes by what a person wants and not by how wide they are: where the window is too narrow they have had less.
        """
        if style().scale != self._scale:
            self._scale = style().scale
            self._give(sum(self._sides.sizes()))

    def _give(self, room: int) -> None:
        left, right = (width * self._scale for width in self._wanted)
        shown = sum(width for width, place in ((left, 0), (right, 2)) if not self._sides.widget(place).isHidden())
        # In a narrow window both have less, in proportion.
        share = min(1.0, max(0.0, room - LEAST * self._scale) / shown) if shown else 1.0
        left, right = round(left * share), round(right * share)
        self._sides.setSizes([left, max(1, room - round(shown * share)), right])
