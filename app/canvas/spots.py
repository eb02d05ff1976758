"""All cards as spots of colour, painted by one item, for when so many are seen that none could be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.canvas.look import look
from engine.nodes.spec import Category

if TYPE_CHECKING:
    from app.canvas.grounds import GroundsItem
    from app.canvas.node_item import NodeItem

BELOW: Final = 0.2
"""Zoomed out further than this, cards are spots."""

EDGE: Final = 3.0
"""How wide the coloured edge of a spot is, in pixels of the screen."""

RING: Final = 2.5
"""How far what is selected stands out, in pixels of the screen."""

_EVERYWHERE: Final = QRectF(-1e6, -1e6, 2e6, 2e6)
_Kind = tuple[Category | None, bool]


class SpotsItem(QGraphicsItem):
    """The spots: a thousand of them in less than a frame, where each card by itself would take longer.

    What Qt is handed to paint is kept from frame to frame: to make it anew takes longer than to paint it.
    """

    def __init__(self, nodes: Mapping[str, NodeItem], grounds: GroundsItem) -> None:
        super().__init__()
        self._nodes, self._grounds = nodes, grounds
        self._is_stale = True
        self._spots: dict[NodeItem, tuple[QRectF, QLineF]] = {}
        self._cards: list[QRectF] = []
        self._chosen: list[QRectF] = []
        self._edges: dict[_Kind, list[QLineF]] = {}
        self.setZValue(0.9)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setVisible(False)

    def show_cards(self, *, are_spots: bool) -> None:
        """Take the place of the cards and their regions, or give it back."""
        self.setVisible(are_spots)
        for item in self._nodes.values():
            self.show_card(item, is_spot=are_spots)
        self._grounds.show_regions(are_far=are_spots)
        self.refresh()

    @staticmethod
    def show_card(item: NodeItem, *, is_spot: bool) -> None:
        """Let one card be painted here, or by itself."""
        item.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, enabled=is_spot)

    def refresh(self) -> None:
        """Take up cards that came, went, changed or were selected; those that went are let go at once."""
        self._is_stale = True
        self._spots = {}
        self.update()

    def follow(self, moved: Iterable[NodeItem]) -> None:
        """Take up cards that moved and are otherwise the same."""
        if self._is_stale or not self.isVisible():
            self._is_stale = True
            return
        for item in moved:
            if item in self._spots:
                rect, edge = self._spots[item]  # the same objects are in the lists that are painted
                rect.moveTo(item.pos())
                edge.translate(rect.topLeft() - edge.p1())
        self.update()

    def boundingRect(self) -> QRectF:
        """Everywhere: to work out where the cards are takes longer than to paint them."""
        return _EVERYWHERE

    def shape(self) -> QPainterPath:
        """Nothing: the mouse meets the cards."""
        return QPainterPath()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Paint all spots."""
        theme, scale = look(), option.levelOfDetailFromTransform(painter.worldTransform())
        if self._is_stale:
            self._gather()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        ratio = painter.device().devicePixelRatioF()  # a pen that is as wide at every zoom counts the device's pixels
        painter.setPen(_stroke(theme.colour("accent"), 2 * RING * ratio))
        painter.drawRects(self._chosen)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("card"))
        painter.drawRects(self._cards)
        painter.translate(EDGE / scale / 2, 0)
        for (category, enabled), edges in self._edges.items():
            painter.setPen(_stroke(theme.category(category, 255 if enabled else 110), EDGE * ratio))
            painter.drawLines(edges)

    def _gather(self) -> None:
        self._is_stale = False
        self._cards, self._chosen, self._edges = [], [], {}
        for item in self._nodes.values():
            rect = item.card_rect
            edge = QLineF(rect.topLeft(), rect.bottomLeft())
            self._spots[item] = (rect, edge)
            self._cards.append(rect)
            if item.isSelected():
                self._chosen.append(rect)
            self._edges.setdefault((item.facts.category, item.facts.enabled), []).append(edge)


def _stroke(colour: QColor, width: float) -> QPen:
    """A pen as wide at every zoom."""
    made = QPen(colour, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap, Qt.PenJoinStyle.MiterJoin)
    made.setCosmetic(True)
    return made
