"""What the wheel means over a page that scrolls: it moves the page, and never a value that it passes over.

A field that has the keyboard takes the wheel as usual: somebody is at work in it.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QScrollArea, QSlider, QWidget

_KINDS = (QAbstractSpinBox, QComboBox, QSlider)


def scroll_past_fields(area: QScrollArea) -> None:
    """Have the wheel scroll a page wherever it is turned; for the fields that the page has by now."""
    for kind in _KINDS:
        for field in area.widget().findChildren(kind):
            scroll_past(field)


def scroll_past(widget: QWidget) -> None:
    """Have the wheel scroll the page around a widget, should it be a field whose value the wheel would change."""
    if isinstance(widget, _KINDS):
        widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel alone shall not move the keyboard here
        widget.installEventFilter(_Keeper(widget))


class _Keeper(QObject):
    """Watches a field."""

    def __init__(self, field: QWidget) -> None:
        super().__init__(field)
        self._field = field

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:  # Qt's name
        """Hand the wheel on to the page."""
        if event.type() == QEvent.Type.Wheel and not self._field.hasFocus():
            event.ignore()
            return True
        return False
