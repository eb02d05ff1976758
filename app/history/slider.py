"""A slider with a dot for each iteration of a loop: done, under way, to come, and the one that is looked at."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSlider, QWidget

from app.runs.executions import LoopPicture
from app.theme.style import style
from app.theme.tokens import UNIT

_RADIUS: Final = 5.0
_DOTS_FROM: Final = 4.0
"""So many pixels lie between two iterations where each has a dot; where they are closer there is only the line."""


class IterationSlider(QSlider):
    """Chooses an iteration.

    Signals:
        chosen: The index of the iteration to look at.
        latest_wanted: Follow the run again.
    """

    chosen = Signal(int)
    latest_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setAccessibleName("Iteration")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._loop = LoopPicture()
        self._total = 0
        self.actionTriggered.connect(lambda _action: self.chosen.emit(self.sliderPosition()))

    def show_loop(self, loop: LoopPicture, index: int, unit: str = "iteration") -> None:
        """Show a loop, with one of its iterations, or items, looked at."""
        self._loop = loop
        self._total = max(loop.total, loop.current + 1)
        was_blocked = self.blockSignals(True)
        self.setRange(0, max(loop.current, 0))
        self.setValue(max(index, 0))
        self.blockSignals(was_blocked)
        self.setAccessibleName(unit.capitalize())
        self.setAccessibleDescription(f"{unit.capitalize()} {index + 1} of {self._total}")
        self.update()

    def sizeHint(self) -> QSize:
        """Wide enough for some dots."""
        return QSize(240, round(28 * style().scale))

    def minimumSizeHint(self) -> QSize:
        """Room to hit one."""
        return QSize(120, round(28 * style().scale))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the nearest iteration that has begun."""
        if event.button() is Qt.MouseButton.LeftButton:
            self._choose_at(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Choose while dragging."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._choose_at(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Nothing more happens."""
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The keys of every slider, and Esc for the latest."""
        if event.key() == Qt.Key.Key_Escape:
            self.latest_wanted.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the line, the dots and the ring."""
        theme = style().theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = self.height() / 2
        begun = self._loop.current + 1
        painter.setPen(QPen(QColor(theme.edge), 2))
        painter.drawLine(QPointF(self._x(0), middle), QPointF(self._x(max(self._total - 1, 0)), middle))
        painter.setPen(QPen(QColor(theme.accent), 2))
        if begun > 1:
            painter.drawLine(QPointF(self._x(0), middle), QPointF(self._x(begun - 1), middle))
        radius = min(_RADIUS * style().scale, max(self._step() / 2 - 1, 1.5))
        for index in range(self._total) if self._step() >= _DOTS_FROM else _only(self._loop.returned):
            done = self._loop.ended(index) is not None
            colour = theme.accent if index < begun else theme.edge
            painter.setPen(QPen(QColor(colour), 1.5))
            painter.setBrush(QColor(colour if done else theme.panel))
            painter.drawEllipse(QPointF(self._x(index), middle), radius, radius)
            if index == self._loop.returned:
                painter.setPen(QPen(QColor(theme.good), 2))
                painter.drawLine(
                    QPointF(self._x(index) - 4, self.height() - 2), QPointF(self._x(index) + 4, self.height() - 2)
                )
        if begun:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text if self.hasFocus() else theme.accent), 2))
            ring = _RADIUS * style().scale + 3
            painter.drawEllipse(QRectF(self._x(self.value()) - ring, middle - ring, 2 * ring, 2 * ring))
        painter.end()

    def _margin(self) -> float:
        return _RADIUS * style().scale + UNIT

    def _step(self) -> float:
        return (self.width() - 2 * self._margin()) / max(self._total - 1, 1)

    def _x(self, index: int) -> float:
        if self._total <= 1:
            return self._margin()
        # Few dots stand together, many share all the room.
        step = min(self._step(), 48 * style().scale)
        return self._margin() + index * step

    def _choose_at(self, x: float) -> None:
        if self._loop.current < 0:
            return
        step = max(self._x(1) - self._x(0), 0.1)
        nearest = round((x - self._x(0)) / step)
        self.chosen.emit(min(max(nearest, 0), self._loop.current))


def _only(index: int | None) -> tuple[int, ...]:
    return () if index is None else (index,)
