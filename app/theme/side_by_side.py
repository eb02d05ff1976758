"""Two groups of controls in a row, which stand below each other where there is too little room for that."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QWidget

from app.theme.tokens import UNIT


class SideBySide(QWidget):
    """The two groups: the first on the left, the second on the right or below.

    Args:
        first: Controls, from left to right.
        second: The same.
    """

    def __init__(self, first: Sequence[QWidget], second: Sequence[QWidget], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._groups = [_row(first), _row(second)]
        self._both = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._both.setContentsMargins(0, 0, 0, 0)
        self._both.setSpacing(2 * UNIT)
        self._both.addLayout(self._groups[0])
        self._both.addStretch(1)
        self._both.addLayout(self._groups[1])

    @property
    def is_folded(self) -> bool:
        """Whether they stand below each other."""
        return self._both.direction() == QBoxLayout.Direction.TopToBottom

    def minimumSizeHint(self) -> QSize:  # noqa: D102 - Qt's own
        widest = max(group.minimumSize().width() for group in self._groups)
        return QSize(widest, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102 - Qt's own
        super().resizeEvent(event)
        needed = sum(group.minimumSize().width() for group in self._groups) + 2 * 2 * UNIT
        direction = QBoxLayout.Direction.LeftToRight if self.width() >= needed else QBoxLayout.Direction.TopToBottom
        if direction != self._both.direction():
            self._both.setDirection(direction)
            # Below each other, neither is drawn out to the width of the other.
            side = Qt.AlignmentFlag.AlignLeft if self.is_folded else Qt.AlignmentFlag(0)
            for group in self._groups:
                self._both.setAlignment(group, side)
            self.updateGeometry()


def _row(widgets: Sequence[QWidget]) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(2 * UNIT)
    for widget in widgets:
        row.addWidget(widget)
    return row
