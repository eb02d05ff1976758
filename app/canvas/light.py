"""What fits lights up while an edge hangs on the mouse, and the rest dims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.canvas.look import look, pen

if TYPE_CHECKING:
    from app.canvas.node_item import NodeItem
    from app.canvas.port_item import CanvasPort

RADIUS: Final = 9.0


class LightItem(QGraphicsItem):
    """The rings around all ports that fit, as one item."""

    def __init__(self) -> None:
        super().__init__()
        self._places: list[QPointF] = []
        self._bounds = QRectF()
        self.setZValue(10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setVisible(False)

    @property
    def places(self) -> list[QPointF]:
        """The middles of the ports that are lit."""
        return self._places

    def show_ports(self, ports: Iterable[CanvasPort]) -> None:
        """Light these ports up."""
        self.prepareGeometryChange()
        self._places = [port.middle for port in ports]
        self._bounds = QRectF()
        for place in self._places:
            self._bounds = self._bounds.united(QRectF(place.x() - 12, place.y() - 12, 24, 24))
        self.setVisible(bool(self._places))

    def boundingRect(self) -> QRectF:
        """All rings."""
        return self._bounds

    def shape(self) -> QPainterPath:
        """Nothing: the mouse meets the ports."""
        return QPainterPath()

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Paint the rings."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(look().colour("accent"), 2.0))
        painter.setBrush(look().colour("accent", 60))
        for place in self._places:
            painter.drawEllipse(place, RADIUS, RADIUS)


def dim_others(nodes: Mapping[str, NodeItem], lit: Iterable[CanvasPort], start: CanvasPort) -> None:
    """Dim the cards with no port that fits."""
    bright = {port.parentItem() for port in lit} | {start.parentItem()}
    for item in nodes.values():
        item.dim(by_light=item not in bright)
