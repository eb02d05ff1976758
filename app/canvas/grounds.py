"""All loop regions painted by one item, for when so many are seen that nothing on them could be read.

It knows where regions lie and which way their arrows go, and no document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.canvas.look import look, pen
from app.canvas.region_item import OUTERMOST, ground_alpha

if TYPE_CHECKING:
    from app.canvas.region_item import RegionItem

_EVERYWHERE: Final = QRectF(-1e6, -1e6, 2e6, 2e6)


class GroundsItem(QGraphicsItem):
    """The regions: a hundred of them in less than a frame, where each by itself would take longer."""

    def __init__(self, regions: Mapping[str, RegionItem]) -> None:
        super().__init__()
        self._regions = regions
        self._is_stale = True
        self._rects: list[QRectF] = []
        self._arrows: list[QPainterPath] = []
        self.setZValue(OUTERMOST)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setVisible(False)

    def show_regions(self, *, are_far: bool) -> None:
        """Take the place of the regions, or give it back."""
        self.setVisible(are_far)
        for item in self._regions.values():
            self.show_region(item)
        self.refresh()

    def show_region(self, item: RegionItem) -> None:
        """Let one region be painted here or by itself, as the others are."""
        item.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, enabled=self.isVisible())
        item.label.setVisible(not self.isVisible())

    def refresh(self) -> None:
        """Take up regions that came, went or lie elsewhere."""
        self._is_stale = True
        self.update()

    def boundingRect(self) -> QRectF:
        """Everywhere: to work out where the regions are takes longer than to paint them."""
        return _EVERYWHERE

    def shape(self) -> QPainterPath:
        """Nothing: a region is ground, and the mouse goes through it."""
        return QPainterPath()

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Paint all grounds, the outer ones first, and the ways back."""
        theme = look()
        if self._is_stale:
            self._gather()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.setPen(Qt.PenStyle.NoPen)  # their edge would be thinner than could be seen
        painter.setBrush(theme.colour("accent", ground_alpha()))
        painter.drawRects(self._rects)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(pen(theme.colour("accent", 220), 2.0, Qt.PenStyle.DashLine))
        for arrow in self._arrows:
            painter.drawPath(arrow)

    def _gather(self) -> None:
        self._is_stale = False
        regions = sorted(self._regions.values(), key=lambda region: region.depth)
        self._rects = [region.rect for region in regions]
        self._arrows = [region.arrow for region in regions]
