"""What the wheel means over a page that scrolls: it moves the page, and never a value that it passes over.

A field that has the keyboard takes the wheel as usual: somebody is at work in it.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QScrollArea, QSlider

_KINDS = (QAbstractSpinBox, QComboBox, QSlider)


def scroll_past_fields(area: QScrollArea) -> None:
    """Have the wheel scroll a page wherever it is turned; for the fields that the page has by now."""
    keeper = _Keeper(area)
    for kind in _KINDS:
        for field in area.widget().findChildren(kind):
            field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel alone shall not move the keyboard here
            field.installEventFilter(keeper)


class _Keeper(QObject):
    """Watches fields."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # Qt's name
        """Hand the wheel on to the page."""
        if event.type() == QEvent.Type.Wheel and isinstance(watched, _KINDS) and not watched.hasFocus():
            event.ignore()
            return True
        return False
