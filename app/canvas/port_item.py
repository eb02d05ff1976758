"""Port items: clickable areas on a card, which paints the ports, and the highlight of matching ports."""

from __future__ import annotations

from collections.abc import Iterable
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

from app.canvas.canvas_style import canvas_style, pen
from app.canvas.node_card import PortViewModel
from app.canvas.nodegraphqt_imports import INPUT, AbstractNodeItem, PortItem
from app.theme.widgets import plain_tool_tip

REACH: Final = 12.0
"""Radius of the clickable area."""

_NO_CONTENTS: Final = QGraphicsItem.GraphicsItemFlag.ItemHasNoContents
_BOUNDS: Final = QRectF(-REACH, -REACH, 2 * REACH, 2 * REACH)


class CanvasPort(PortItem):
    """Port of a card.

    Attributes:
        content: The port's content.
        is_disabled: Whether its node is disabled.
    """

    # Change notifications in Python are slow and unused here.
    itemChange = QGraphicsItem.itemChange  # noqa: N815  # pyright: ignore[reportAssignmentType]

    is_disabled = False
    _locked = False
    _hovered = False
    _multi_connection = True  # `connection_rules` decide what a port accepts

    def __init__(self, content: PortViewModel, port_type: str, parent: QGraphicsItem) -> None:
        QGraphicsItem.__init__(self, parent)  # the base class's own __init__ takes four times as long
        self.setFlag(_NO_CONTENTS)
        self.setAcceptHoverEvents(True)
        self._pipes = []
        self._name = content.name
        self._port_type = port_type
        self.content = content

    @property
    def is_input(self) -> bool:
        """Whether this is an input."""
        return self._port_type == INPUT

    @property
    def node_id(self) -> str:
        """Id of the port's node."""
        card = self.parentItem()
        assert isinstance(card, AbstractNodeItem)
        return card.id

    @property
    def end(self) -> str:
        """The port as written in edges: `node.port`."""
        return f"{self.node_id}.{self._name}"

    @property
    def middle(self) -> QPointF:
        """Centre in scene coordinates."""
        return self.scenePos()

    def boundingRect(self) -> QRectF:
        """Return the clickable area."""
        return _BOUNDS

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Accept the event, or the card would be dragged; the viewer draws the edge."""
        event.accept()

    def hoverEnterEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Highlight the port and set its tooltip."""
        self._hovered = True
        kind = "unknown port" if not self.content.known else f"{self.content.type}"
        many = ", accepts several edges" if self.content.many and self.is_input else ""
        self.setToolTip(plain_tool_tip(f"{self._name}: {kind}{many}\n{self.content.help}".rstrip()))
        self.parentItem().update()
        event.accept()

    def hoverLeaveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Remove the highlight."""
        self._hovered = False
        self.parentItem().update()
        event.accept()


RADIUS: Final = 9.0


class PortHighlightItem(QGraphicsItem):
    """Rings around all matching ports, as one item."""

    def __init__(self) -> None:
        super().__init__()
        self._places: list[QPointF] = []
        self._bounds = QRectF()
        self.setZValue(10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setVisible(False)

    @property
    def places(self) -> list[QPointF]:
        """Centres of the highlighted ports."""
        return self._places

    def show_ports(self, ports: Iterable[CanvasPort]) -> None:
        """Highlight these ports."""
        self.prepareGeometryChange()
        self._places = [port.middle for port in ports]
        self._bounds = QRectF()
        for place in self._places:
            self._bounds = self._bounds.united(QRectF(place.x() - 12, place.y() - 12, 24, 24))
        self.setVisible(bool(self._places))

    def boundingRect(self) -> QRectF:
        """Return the bounds of all rings."""
        return self._bounds

    def shape(self) -> QPainterPath:
        """Return an empty shape: the mouse reaches the ports."""
        return QPainterPath()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the rings."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(canvas_style().colour("accent"), 2.0))
        painter.setBrush(canvas_style().colour("accent", 60))
        for place in self._places:
            painter.drawEllipse(place, RADIUS, RADIUS)
