"""Icons that follow the theme."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QSize
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton

from app.theme.style import icon, style

ICON_SIZE: Final = 16
"""Side of an icon in pixels at the usual size of texts."""


class ThemedIcon(QObject):
    """Keeps the icon of a button or an action in a colour of the theme that is on; a button's grows with the texts.

    It belongs to its target and goes with it.
    """

    def __init__(self, target: QAbstractButton | QAction, name: str, role: str = "text") -> None:
        """Set the icon.

        Args:
            target: What shows it.
            name: Its name in the family, such as `mdi6.play`.
            role: Which colour of `Theme`, by its name.
        """
        super().__init__(target)
        self._target = target
        self._name = name
        self._role = role
        style().changed.connect(self._draw)
        self._draw()

    def show(self, name: str, role: str | None = None) -> None:
        """Show another icon from now on."""
        self._name = name
        self._role = role or self._role
        self._draw()

    def _draw(self) -> None:
        if isinstance(self._target, QAbstractButton):
            side = round(ICON_SIZE * style().scale)
            self._target.setIconSize(QSize(side, side))
        self._target.setIcon(icon(self._name, getattr(style().theme, self._role)))
