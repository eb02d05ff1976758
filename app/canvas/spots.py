"""All cards as spots of colour, painted by one item, for when so many are seen that none could be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.canvas.look import look
from engine.nodes.spec import Category

if TYPE_CHECKING:
    from app.canvas.node_item import NodeItem

BELOW: Final = 0.2
"""Zoomed out further than this, cards are spots."""

EDGE: Final = 4.0
LEAST_EDGE: Final = 3.0
RING: Final = 2.5
_EVERYWHERE: Final = QRectF(-1e6, -1e6, 2e6, 2e6)


class SpotsItem(QGraphicsItem):
    """The spots: a thousand of them in less than a frame, where each card by itself would take longer."""

    def __init__(self, nodes: Mapping[str, NodeItem]) -> None:
        super().__init__()
        self._nodes = nodes
        self._is_stale = True
        self._rects: dict[tuple[Category | None, bool], dict[NodeItem, QRectF]] = {}
        self.setZValue(0.9)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setVisible(False)

    def show_cards(self, *, are_spots: bool) -> None:
        """Take the place of the cards, or give it back."""
        self.setVisible(are_spots)
        for item in self._nodes.values():
            self.show_card(item, is_spot=are_spots)
        self.refresh()

    @staticmethod
    def show_card(item: NodeItem, *, is_spot: bool) -> None:
        """Let one card be painted here, or by itself."""
        item.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, enabled=is_spot)

    def refresh(self) -> None:
        """Take up cards that came, went, moved or were selected; those that went are let go at once."""
        self._is_stale = True
        self._rects = {}
        self.update()

    def follow(self, moved: Iterable[NodeItem]) -> None:
        """Take up cards that moved and are otherwise the same."""
        if self._is_stale or not self.isVisible():
            self._is_stale = True
            return
        for item in moved:
            self._rects.get(_kind(item), {})[item] = item.card_rect
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
        painter.setPen(Qt.PenStyle.NoPen)
        ring = RING / scale
        painter.setBrush(theme.colour("accent"))
        chosen = [item.card_rect for item in self._nodes.values() if item.isSelected()]
        painter.drawRects([rect.adjusted(-ring, -ring, ring, ring) for rect in chosen])
        painter.setBrush(theme.colour("card"))
        painter.drawRects([rect for rects in self._rects.values() for rect in rects.values()])
        width = max(EDGE, LEAST_EDGE / scale)
        for (category, enabled), rects in self._rects.items():
            painter.setBrush(theme.category(category, 255 if enabled else 110))
            painter.drawRects([QRectF(rect.x(), rect.y(), width, rect.height()) for rect in rects.values()])

    def _gather(self) -> None:
        self._is_stale = False
        for item in self._nodes.values():
            self._rects.setdefault(_kind(item), {})[item] = item.card_rect


def _kind(item: NodeItem) -> tuple[Category | None, bool]:
    return item.facts.category, item.facts.enabled
