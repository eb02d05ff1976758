"""A loop as a region: the tinted ground of its body and the dashed arrow from its exit back to its start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.canvas.look import fonts, growth, look, pen, small_width, zoom_of
from app.canvas.region_label import RegionLabel
from app.theme.tokens import FONT_SIZE_SMALL

if TYPE_CHECKING:
    from app.canvas.node_item import NodeItem

SIDE: Final = 24.0
TOP: Final = 40.0
LANE: Final = 28.0
"""How far below the lowest card the arrow runs."""

BELOW_LANE: Final = 24.0
WORDS_FROM: Final = 0.5
"""Zoomed out further than this, nothing is said about the way back."""

MOST_GROWTH: Final = 1.6
"""How much larger than at 100 % those words are when zoomed out."""

CORNER: Final = 16.0
ARROW: Final = 7.0
OUTERMOST: Final = -60.0


def ground_alpha() -> int:
    """How much of the accent colour, of 255, a region's ground takes."""
    return 16 if look().is_light else 20


class RegionItem(QGraphicsItem):
    """The region of one loop.

    Attributes:
        loop_id: The loop.
        depth: How many regions lie around it.
        rect: Where it lies in the scene.
        label: The pill on its upper edge.
        words: What is said about the way back.
    """

    def __init__(self, loop_id: str, depth: int) -> None:
        super().__init__()
        self.loop_id = loop_id
        self.depth = depth
        self.rect = QRectF()
        self._arrow = QPainterPath()
        self._head = QPolygonF()
        self.words = ""
        self._words_rect = QRectF()
        self._most_growth = 1.0
        self.setZValue(OUTERMOST + depth)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.label = RegionLabel(loop_id, self)

    def place(self, content: QRectF, start: NodeItem, end: NodeItem, words: str) -> None:
        """Lie around cards and inner regions.

        Args:
            content: What the region holds, the loop and its exit included.
            start: The loop's card.
            end: The exit's card.
            words: What is said about the way back.
        """
        rect = content.adjusted(-SIDE, -TOP, SIDE, LANE + BELOW_LANE)
        self.prepareGeometryChange()
        self.rect = rect
        self._bounds = rect.adjusted(-2, -2, 2, 2)
        self.words = words
        lane = content.bottom() + LANE
        from_, to = end.card_rect, start.card_rect
        self._route(QPointF(from_.center().x(), from_.bottom()), QPointF(to.center().x(), to.bottom()), lane)
        self.label.setPos(rect.left() + CORNER, rect.top())
        self.label.take(rect.width() - 2 * CORNER)
        self.update()

    @property
    def arrow(self) -> QPainterPath:
        """The way back, from below the exit to below the loop."""
        return self._arrow

    def boundingRect(self) -> QRectF:
        """The region."""
        return getattr(self, "_bounds", QRectF())

    def shape(self) -> QPainterPath:
        """Nothing: a region is ground, and the mouse goes through it."""
        return QPainterPath()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Paint the ground and the way back."""
        theme = look()
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(theme.colour("accent", 110), 1.0))
        painter.setBrush(theme.colour("accent", ground_alpha()))
        painter.drawRoundedRect(self.rect, CORNER, CORNER)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(pen(theme.colour("accent", 220), 2.0, Qt.PenStyle.DashLine))
        painter.drawPath(self._arrow)
        if scale < 0.2:
            return
        painter.setPen(pen(theme.colour("accent"), 2.0))
        painter.drawPolyline(self._head)
        zoom = zoom_of(scale)
        if zoom >= WORDS_FROM and not self._words_rect.isNull():
            middle, grown = self._words_rect.center(), growth(FONT_SIZE_SMALL, zoom, self._most_growth)
            painter.translate(middle)
            painter.scale(grown, grown)
            painter.translate(-middle)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("ground"))
            painter.drawRoundedRect(self._words_rect, 6, 6)
            painter.setBrush(theme.colour("accent", ground_alpha()))
            painter.drawRoundedRect(self._words_rect, 6, 6)
            painter.setFont(fonts().small)
            painter.setPen(theme.colour("accent"))
            painter.drawText(self._words_rect, Qt.AlignmentFlag.AlignCenter, self.words)

    def _route(self, start: QPointF, end: QPointF, lane: float) -> None:
        """From below the exit down to the lane, along it, and up to the loop."""
        path = QPainterPath(start)
        turn = max(min(CORNER, lane - start.y(), lane - end.y(), abs(start.x() - end.x()) / 2), 0.0)
        way = -1 if end.x() < start.x() else 1
        path.lineTo(start.x(), lane - turn)
        path.quadTo(start.x(), lane, start.x() + way * turn, lane)
        path.lineTo(end.x() - way * turn, lane)
        path.quadTo(end.x(), lane, end.x(), lane - turn)
        path.lineTo(end.x(), end.y() + 4)
        self._arrow = path
        tip = QPointF(end.x(), end.y() + 3)
        self._head = QPolygonF([tip + QPointF(-ARROW, ARROW), tip, tip + QPointF(ARROW, ARROW)])
        width = small_width(self.words) + 16
        room = abs(start.x() - end.x()) - 2 * turn
        middle = QPointF((start.x() + end.x()) / 2, lane)
        fits = room > width
        self._most_growth = min(MOST_GROWTH, max(room / width, 1.0))
        self._words_rect = QRectF(middle.x() - width / 2, middle.y() - 10, width, 20) if fits else QRectF()
