"""The widths of palette and inspector beside the documents: they grow and shrink with the texts in them."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QSplitter

from app.theme.style import style

WIDTHS: Final = (216, 900, 320)
"""Palette, documents and inspector with texts of the usual size, until a person moves the borders."""


class SideWidths(QObject):
    """Keeps the widths.

    Args:
        sides: The splitter with palette, documents and inspector.
    """

    def __init__(self, sides: QSplitter) -> None:
        super().__init__(sides)
        self._sides = sides
        self._scale = style().scale
        left, middle, right = WIDTHS
        self._widths = [round(left * self._scale), middle, round(right * self._scale)]
        sides.setSizes(self._widths)
        sides.splitterMoved.connect(lambda *_: self._remember())
        style().changed.connect(self._follow)

    def _remember(self) -> None:
        """Note the widths; of what is not seen Qt says none, and the last one counts."""
        self._widths = [now or before for now, before in zip(self._sides.sizes(), self._widths, strict=True)]

    def _follow(self) -> None:
        """Give both sides more room, or less, as the texts have grown."""
        factor, self._scale = style().scale / self._scale, style().scale
        if factor == 1:
            return
        seen = self._sides.sizes()
        self._remember()
        left, _, right = self._widths
        self._widths[0], self._widths[2] = round(left * factor), round(right * factor)
        shown = [width for width, now in zip(self._widths[::2], seen[::2], strict=True) if now]
        self._widths[1] = max(1, sum(seen) - sum(shown))
        self._sides.setSizes(self._widths)
