"""The + beside an output: a click picks the next node, which is added and connected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsSceneHoverEvent,
    QGraphicsSceneMouseEvent,
    QStyleOptionGraphicsItem,
    QWidget,
)

from app.canvas.canvas_style import canvas_style, pen, united, zoom_from_scale, zoom_of_view
from app.canvas.node_item import PORTS_FROM, CanvasPort

DISTANCE: Final = 20.0
"""Distance of the button's center from the port: in the middle of a narrow gap between cards."""

RADIUS: Final = 9.0
REACH: Final = DISTANCE + RADIUS + 4.0
"""Room that the button needs beside a card."""


class AddButtonItem(QGraphicsItem):
    """The buttons of one card, as one item of the canvas.

    Attributes:
        requested: Called with the output whose button was clicked.
        ports: The outputs that have a button.
    """

    requested: Callable[[CanvasPort], object]

    def __init__(self) -> None:
        super().__init__()
        self.requested = lambda _port: None
        self.ports: list[CanvasPort] = []
        self._bounds = QRectF()
        self._hovered: CanvasPort | None = None
        self._pressed: CanvasPort | None = None
        self.setZValue(9)
        self.setAcceptedMouseButtons(Qt.MouseButton.LeftButton)
        self.setAcceptHoverEvents(True)
        self.setToolTip("Add the next node")
        self.setVisible(False)

    def show_for(self, ports: Iterable[CanvasPort]) -> None:
        """Show a button beside each of these outputs."""
        self.ports = list(ports)  # first: what yields them may ask the scene, which would index the old geometry
        self.prepareGeometryChange()
        self._bounds = united(map(button_rect, self.ports))
        self._hovered = self._hovered if self._hovered in self.ports else None
        self.setVisible(bool(self.ports))
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the bounds of all buttons."""
        return self._bounds.adjusted(-1, -1, 1, 1)

    def shape(self) -> QPainterPath:
        """Return the clickable area; none while zoomed out too far to paint the buttons."""
        path = QPainterPath()
        if zoom_of_view(self) >= PORTS_FROM:
            for port in self.ports:
                path.addEllipse(button_rect(port))
        return path

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the buttons."""
        if zoom_from_scale(option.levelOfDetailFromTransform(painter.worldTransform())) < PORTS_FROM:
            return
        theme = canvas_style()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for port in self.ports:
            is_hovered = port is self._hovered
            painter.setPen(pen(theme.color("accent", 255 if is_hovered else 160), 1.5))
            painter.setBrush(theme.color("accent" if is_hovered else "panel"))
            center = _center(port)
            painter.drawEllipse(center, RADIUS, RADIUS)
            painter.setPen(pen(theme.color("panel" if is_hovered else "accent"), 1.8))
            painter.drawLine(center - QPointF(4, 0), center + QPointF(4, 0))
            painter.drawLine(center - QPointF(0, 4), center + QPointF(0, 4))

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Highlight the button under the mouse."""
        self._hovered = self._port_at(event.pos())
        self.update()

    def hoverLeaveEvent(self, _event: QGraphicsSceneHoverEvent) -> None:
        """Remove the highlight."""
        self._hovered = None
        self.update()

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Accept the event, or it would end the selection."""
        self._pressed = self._port_at(event.pos())
        event.accept()

    def mouseReleaseEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Report a click."""
        pressed, self._pressed = self._pressed, None
        if pressed is not None and pressed is self._port_at(event.pos()):
            self.requested(pressed)

    def _port_at(self, position: QPointF) -> CanvasPort | None:
        return next((port for port in self.ports if button_rect(port).contains(position)), None)


def _center(port: CanvasPort) -> QPointF:
    return port.middle + QPointF(DISTANCE, 0)


def button_rect(port: CanvasPort) -> QRectF:
    """Return where the button of an output is."""
    center = _center(port)
    return QRectF(center.x() - RADIUS, center.y() - RADIUS, 2 * RADIUS, 2 * RADIUS)
