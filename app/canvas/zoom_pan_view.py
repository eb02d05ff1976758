"""Zoom, pan, background and drops on top of NodeGraphQt's viewer.

The view knows items but no document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QMimeData, QPoint, QPointF, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QPainter,
    QPixmap,
    QResizeEvent,
    QTransform,
)
from PySide6.QtWidgets import QGraphicsItem, QGraphicsScene, QGraphicsView, QWidget

from app.canvas.annotations import MAX_COORDINATE
from app.canvas.canvas_style import canvas_style
from app.canvas.edge_item import EdgeItem, LiveEdgeItem
from app.canvas.nodegraphqt_imports import NodeViewer
from app.palette.entries import NODE_MIME, TEMPLATE_MIME
from app.theme.style import style
from app.theme.tokens import UNIT

MARGIN: Final = 6.0 * UNIT
"""Margin around a fitted rectangle in screen pixels."""


@dataclass(frozen=True, slots=True)
class ViewportFrame:
    """Zoom and centre of a view.

    Attributes:
        factor: Screen pixels per scene unit.
        centre: Scene position in the centre of the view.
    """

    factor: float
    centre: QPointF


def fit_frame(rect: QRectF, view: QRectF, overlays: Sequence[QRectF], largest: float) -> ViewportFrame:
    """Fit a scene rectangle into the view, as large as possible beside the overlays.

    Args:
        rect: The scene rectangle, not empty.
        view: The view in pixels, with its upper left corner at the origin.
        overlays: Widgets over the lower corners of the view, in pixels.
        largest: Maximum factor.
    """
    whole = _in_area(rect, view, view, largest)
    seen = _seen(rect, view, whole)
    if not any(cover.intersects(seen) for cover in overlays):
        return whole
    top = min(cover.top() for cover in overlays)
    left = max((cover.right() for cover in overlays if cover.center().x() < view.center().x()), default=view.left())
    right = min((cover.left() for cover in overlays if cover.center().x() >= view.center().x()), default=view.right())
    above = QRectF(view.left(), view.top(), view.width(), top - view.top())
    between = QRectF(left, view.top(), right - left, view.height())
    frames = [_in_area(rect, area, view, largest) for area in (above, between) if _has_room(area)]
    return max(frames, key=lambda frame: frame.factor, default=whole)


def start_frame(rect: QRectF, start: QPointF, view: QRectF, overlays: Sequence[QRectF], factor: float) -> ViewportFrame:
    """Show the start of a scene rectangle that is too large to fit.

    Args:
        rect: The scene rectangle.
        start: Position to start reading at.
        view: The view in pixels, with its upper left corner at the origin.
        overlays: Widgets over the lower corners of the view, in pixels.
        factor: Screen pixels per scene unit.
    """
    bottom = min((cover.top() for cover in overlays), default=view.bottom())
    free = QRectF(view.left(), view.top(), view.width(), bottom - view.top()).adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
    across, down = free.width() / factor, free.height() / factor
    left = rect.left() if rect.width() > across else rect.center().x() - across / 2
    if rect.height() > down:
        top = min(max(start.y() - down / 2, rect.top()), rect.bottom() - down)
    else:
        top = rect.center().y() - down / 2
    shift = view.center() - free.topLeft()
    return ViewportFrame(factor, QPointF(left, top) + shift / factor)


def _in_area(rect: QRectF, area: QRectF, view: QRectF, largest: float) -> ViewportFrame:
    free = area.adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
    factor = min(max(free.width(), 1.0) / rect.width(), max(free.height(), 1.0) / rect.height(), largest)
    return ViewportFrame(factor, rect.center() + (view.center() - area.center()) / factor)


def _seen(rect: QRectF, view: QRectF, frame: ViewportFrame) -> QRectF:
    """Return a scene rectangle in view coordinates, including items that stand out."""
    corner = view.center() + (rect.topLeft() - frame.centre) * frame.factor
    half = MARGIN / 2
    return QRectF(corner, rect.size() * frame.factor).adjusted(-half, -half, half, half)


def _has_room(area: QRectF) -> bool:
    return area.width() > 4 * MARGIN and area.height() > 4 * MARGIN


SMALLEST: Final = 0.02
LARGEST: Final = 3.0
GRID: Final = 24
MOST: Final = MAX_COORDINATE + 10_000.0
"""How far the view scrolls in each direction: the farthest card and a margin."""

ROOM: Final = 2_000.0
"""Margin around the document in which items are indexed."""


class _NullSearchWidget:
    """Replacement for the base class's search box."""

    def isVisible(self) -> bool:
        return False


class ZoomPanView(NodeViewer):
    """View that zooms and pans.

    Signals:
        view_moved: The visible part changed.
    """

    view_moved = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._remove_unused_parts()
        self._zoom = 1.0
        self._tile = QPixmap()
        self.setFrameShape(QGraphicsView.Shape.NoFrame)
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.MinimalViewportUpdate)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setResizeAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setOptimizationFlags(
            QGraphicsView.OptimizationFlag.DontSavePainterState
            | QGraphicsView.OptimizationFlag.DontAdjustForAntialiasing
        )
        self.setSceneRect(QRectF(-MOST, -MOST, 2 * MOST, 2 * MOST))
        self.setMouseTracking(True)
        self.scene().setSceneRect(QRectF(0, 0, ROOM, ROOM))
        self.apply_zoom()

    def _remove_unused_parts(self) -> None:
        self._search_widget.deleteLater()
        self._search_widget: Any = _NullSearchWidget()
        self._ctx_menu_bar.deleteLater()
        self._ctx_graph_menu.deleteLater()
        self._ctx_node_menu.deleteLater()
        for item in (self._LIVE_PIPE, self._cursor_text):
            self.scene().removeItem(item)
        self._LIVE_PIPE = LiveEdgeItem()
        self.scene().addItem(self._LIVE_PIPE)
        self._cursor_text.setVisible(False)
        self.scene().grid_mode = 0  # pyright: ignore[reportAttributeAccessIssue] # its lines are for a dark ground, and would be in exported pictures
        self.pipe_slicing = False

    @property
    def zoom(self) -> float:
        """Zoom, 1 for 100 %, independent of the text size."""
        return self._zoom

    @property
    def factor(self) -> float:
        """Screen pixels per scene unit."""
        return self._zoom * style().scale

    @property
    def centre(self) -> QPointF:
        """Scene position in the centre of the view."""
        return self.mapToScene(self.viewport().rect()).boundingRect().center()

    def apply_zoom(self) -> None:
        """Apply zoom and text size around the centre."""
        centre = self.centre
        self.setTransform(QTransform.fromScale(self.factor, self.factor))
        self._tile = QPixmap()
        self.center_at(centre)

    def extend_scene_rect(self, rect: QRectF) -> None:
        """Extend the scene rectangle, so that visible items are found fast.

        The scene divides its rectangle evenly. If that were the whole scrollable area, all items would share one cell
        and each frame would scan them all. Items outside are still found, only more slowly.
        """
        if not self.scene().sceneRect().contains(rect):
            self.scene().setSceneRect(rect.adjusted(-ROOM, -ROOM, ROOM, ROOM))

    def set_item_index(self, *, are_most_seen: bool) -> None:
        """Turn the item index off while most items are visible.

        Searching it takes longer than scanning all items then, and moving items would update it on each frame.
        """
        index, scene = QGraphicsScene.ItemIndexMethod, self.scene()
        scene.setItemIndexMethod(index.NoIndex if are_most_seen else index.BspTreeIndex)
        scene.sceneRectChanged.emit(scene.sceneRect())  # a new index does not ask for the scene rectangle

    def center_at(self, centre: QPointF) -> None:
        """Centre the view on a scene position."""
        self.centerOn(centre)
        self.view_moved.emit()

    def zoom_to(self, zoom: float, anchor: QPoint | None = None) -> None:
        """Set the zoom, keeping the position under `anchor` (default: the centre) in place."""
        zoom = min(max(zoom, SMALLEST), LARGEST)
        anchor = anchor if anchor is not None else self.viewport().rect().center()
        before = self.mapToScene(anchor)
        self._zoom = zoom
        self.setTransform(QTransform.fromScale(self.factor, self.factor))
        self._tile = QPixmap()
        shift = self.mapFromScene(before) - anchor
        self._pan(shift)

    def fit_rect(self, rect: QRectF, overlays: Sequence[QRectF] = ()) -> None:
        """Fit a scene rectangle beside the overlays, at most at 100 %."""
        if not rect.isEmpty():
            self._take(self._framed(rect, overlays))

    def fit_zoom(self, rect: QRectF, overlays: Sequence[QRectF] = ()) -> float:
        """Return the zoom that `fit_rect` would use."""
        return max(self._framed(rect, overlays).factor / style().scale, SMALLEST) if not rect.isEmpty() else self._zoom

    def _framed(self, rect: QRectF, overlays: Sequence[QRectF]) -> ViewportFrame:
        return fit_frame(rect, QRectF(self.viewport().rect()), overlays, style().scale)

    def fit_start(self, rect: QRectF, start: QPointF, overlays: Sequence[QRectF], zoom: float) -> None:
        """Show a scene rectangle from its start at a zoom."""
        self._take(start_frame(rect, start, QRectF(self.viewport().rect()), overlays, zoom * style().scale))

    def _take(self, frame: ViewportFrame) -> None:
        self._zoom = max(frame.factor / style().scale, SMALLEST)
        self.setTransform(QTransform.fromScale(self.factor, self.factor))
        self._tile = QPixmap()
        self.center_at(frame.centre)

    def ensure_visible(self, rect: QRectF) -> None:
        """Scroll as little as needed to show a scene rectangle."""
        margin = round(24 * style().scale)
        self.ensureVisible(rect, margin, margin)
        self.view_moved.emit()

    def get_zoom(self) -> float:
        """Return the zoom as the base classes expect it: 0 for 100 %."""
        return self._zoom - 1.0

    def _pan(self, by: QPoint) -> None:
        across, down = self.horizontalScrollBar(), self.verticalScrollBar()
        across.setValue(across.value() + by.x())
        down.setValue(down.value() + by.y())
        self.view_moved.emit()

    def _update_scene(self) -> None:
        """Bypass the base class, which would set another transform."""

    def _items_near(
        self, pos: QPointF, item_type: type | None = None, width: float = 20, height: float = 20
    ) -> list[QGraphicsItem]:
        """Return the items around a position; the base class searches only up and to the left."""
        across, down = width / 4 / self.factor, height / 4 / self.factor
        around = QRectF(pos.x() - across, pos.y() - down, 2 * across, 2 * down)
        return [
            item
            for item in self.scene().items(around)
            if item is not self._LIVE_PIPE
            and item is not self._SLICER_PIPE
            and (item_type is None or isinstance(item, item_type))
        ]

    def edge_at(self, place: QPointF) -> EdgeItem | None:
        """Return the edge at or near a scene position."""
        near = self._items_near(place, EdgeItem, 24, 24)
        return next((item for item in near if isinstance(item, EdgeItem)), None)

    def mouse_position(self) -> QPointF | None:
        """Return the scene position of the mouse, or None if it is elsewhere."""
        return self.mapToScene(self._previous_pos) if self.underMouse() else None

    def call_later(self, call: Callable[[], object]) -> None:
        """Call a function after the current event."""
        QTimer.singleShot(0, self, call)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep zoom and position; the base class would zoom."""
        QGraphicsView.resizeEvent(self, event)
        self.view_moved.emit()

    def drawBackground(self, painter: QPainter, rect: QRectF | QRect) -> None:
        """Paint the background with its dot grid."""
        theme = canvas_style()
        if self._tile.isNull():
            self._tile = _dots(theme.colour("ground"), theme.colour("line"), self.factor)
        painter.save()
        painter.resetTransform()
        origin = self.mapFromScene(QPointF(0, 0))
        painter.setBrushOrigin(origin)
        painter.fillRect(self.mapFromScene(rect).boundingRect().adjusted(-1, -1, 1, 1), QBrush(self._tile))
        painter.restore()

    def update_background(self) -> None:
        """Apply another theme."""
        self._tile = QPixmap()
        self.viewport().update()


def _dots(ground: QColor, dot: QColor, factor: float) -> QPixmap:
    step = GRID * factor
    while step < 14:
        step *= 2
    size = max(round(step), 1)
    tile = QPixmap(size, size)
    tile.fill(ground)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(dot)
    painter.drawEllipse(QPointF(size / 2, size / 2), 1.2, 1.2)
    painter.end()
    return tile


FILES_MIME: Final = "text/uri-list"


class DropView(ZoomPanView):
    """View that accepts drops.

    Signals:
        type_dropped: A node type was dropped: name and scene position.
        template_dropped: The template of this name was dropped.
        files_dropped: Files were dropped.
    """

    type_dropped = Signal(str, QPointF)
    template_dropped = Signal(str)
    files_dropped = Signal(list)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept nodes, templates and files."""
        self._accept(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Accept nodes, templates and files."""
        self._accept(event)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Accept the event; nothing was dropped."""
        event.accept()

    def dropEvent(self, event: QDropEvent) -> None:
        """Report what was dropped."""
        data, place = event.mimeData(), self.mapToScene(event.position().toPoint())
        if data.hasFormat(NODE_MIME):
            self.type_dropped.emit(_text(data, NODE_MIME), place)
        elif data.hasFormat(TEMPLATE_MIME):
            self.template_dropped.emit(_text(data, TEMPLATE_MIME))
        elif data.hasUrls():
            self.files_dropped.emit([Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()])
        self._accept(event)

    def _accept(self, event: QDropEvent) -> None:
        kinds = (NODE_MIME, TEMPLATE_MIME, FILES_MIME)
        if any(event.mimeData().hasFormat(kind) for kind in kinds):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
        else:
            event.ignore()


def _text(data: QMimeData, kind: str) -> str:
    return bytes(data.data(kind).data()).decode("utf-8", "replace").strip()
