"""Dots that travel along edges which have just carried a value."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainterPath
from PySide6.QtWidgets import QGraphicsEllipseItem, QGraphicsScene

from app.canvas.look import look

RADIUS: Final = 4.5
BEATS: Final = 16
"""How many beats a dot is on its way."""

MOST: Final = 40
"""More dots than these at once tell nobody more."""


class Travels:
    """The dots of one canvas."""

    def __init__(self, scene: QGraphicsScene) -> None:
        self._scene = scene
        self._dots: list[tuple[QGraphicsEllipseItem, QPainterPath, int]] = []

    @property
    def is_moving(self) -> bool:
        """Whether there are any."""
        return bool(self._dots)

    def send(self, path: QPainterPath) -> None:
        """Send a dot along a way."""
        if len(self._dots) >= MOST or path.isEmpty():
            return
        dot = QGraphicsEllipseItem(QRectF(-RADIUS, -RADIUS, 2 * RADIUS, 2 * RADIUS))
        dot.setBrush(look().colour("accent"))
        dot.setPen(Qt.PenStyle.NoPen)
        dot.setZValue(0.5)
        dot.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        dot.setPos(path.pointAtPercent(0))
        self._scene.addItem(dot)
        self._dots.append((dot, path, 0))

    def beat(self) -> None:
        """Move all dots on; those that have arrived go."""
        on_their_way: list[tuple[QGraphicsEllipseItem, QPainterPath, int]] = []
        for dot, path, beats in self._dots:
            if beats >= BEATS:
                self._scene.removeItem(dot)
            else:
                dot.setPos(path.pointAtPercent(_eased((beats + 1) / BEATS)))
                on_their_way.append((dot, path, beats + 1))
        self._dots = on_their_way

    def clear(self) -> None:
        """Take all dots off."""
        for dot, _, _ in self._dots:
            self._scene.removeItem(dot)
        self._dots = []


def _eased(share: float) -> float:
    """Slow at both ends."""
    return share * share * (3 - 2 * share)
