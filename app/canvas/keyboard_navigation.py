"""Keyboard navigation between cards, frames and notes."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QPointF, QRectF

from app.canvas.annotations import AnnotationItem
from app.canvas.document_view import DocumentView
from app.canvas.node_item import NodeItem
from app.canvas.viewer import CanvasViewer
from app.session import Session


def nearest(places: Sequence[QPointF], start: QPointF, way: tuple[int, int] | None) -> int | None:
    """Return the index of the nearest place in a direction, or None.

    Args:
        places: The candidates.
        start: Where to search from.
        way: Direction as -1, 0 or 1 horizontally and vertically; None for any direction.
    """
    best: tuple[float, int] | None = None
    for position, place in enumerate(places):
        apart = place - start
        distance = apart.manhattanLength()
        if way is not None:
            along, aside = apart.x() * way[0] + apart.y() * way[1], abs(apart.x() * way[1]) + abs(apart.y() * way[0])
            if along <= 0:
                continue
            distance = along + 2 * aside  # prefer items straight ahead
        if best is None or distance < best[0]:
            best = (distance, position)
    return best[1] if best is not None else None


Item = NodeItem | AnnotationItem


class KeyboardNavigation(QObject):
    """Keyboard navigation on one canvas."""

    def __init__(self, session: Session, view: DocumentView, viewer: CanvasViewer) -> None:
        super().__init__(viewer)
        self._session, self._view, self._viewer = session, view, viewer

    def go(self, across: int, down: int) -> None:
        """Select the nearest item in a direction, or the one nearest to the centre if none is selected."""
        start = self._start()
        from_ = _hit(start).center() if start is not None else self._viewer.centre
        items = [item for item in self._items() if item is not start]
        places = [_place(item, from_) for item in items]
        found = nearest(places, from_, (across, down) if start is not None else None)
        if found is not None:
            self.choose(items[found])

    def step(self, by: int) -> None:
        """Select the next (1) or previous (-1) item from left to right, wrapping around.

        Directions alone do not reach every item: others may always be nearer.
        """
        items, start = self._items(), self._start()
        items.sort(key=lambda item: (item.x(), item.y()))
        if items:
            place = items.index(start) + by if start is not None else min(by, 0)
            self.choose(items[place % len(items)])

    def choose(self, item: Item) -> None:
        """Select one item and nothing else."""
        for other in self._selected_annotations():
            other.setSelected(other is item)
        if isinstance(item, NodeItem):
            self._session.select([item.content.id])
        else:
            item.setSelected(True)
            self._session.select([])
        self._viewer.ensure_visible(_hit(item))

    def _items(self) -> list[Item]:
        return [*self._view.nodes.values(), *self._view.annotations.items.values()]

    def _start(self) -> Item | None:
        if self._session.selection:
            return self._view.nodes[self._session.selection[-1]]
        return next(iter(self._selected_annotations()), None)

    def _selected_annotations(self) -> list[AnnotationItem]:
        return [item for item in self._view.annotations.items.values() if item.isSelected()]


def _hit(item: Item) -> QRectF:
    """Return the rectangle of an item; a frame counts as its title, since it surrounds other items."""
    if isinstance(item, NodeItem):
        return item.card_rect
    return item.text_rect.translated(item.pos()) if item.is_frame else item.scene_rect


def _place(item: Item, from_: QPointF) -> QPointF:
    """Return the point of an item that is nearest for navigation; a frame's title may be wide."""
    rect = _hit(item)
    if isinstance(item, NodeItem) or not item.is_frame:
        return rect.center()
    return QPointF(min(max(from_.x(), rect.left()), rect.right()), rect.center().y())
