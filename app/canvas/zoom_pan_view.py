"""NodeGraphQt's viewer with the program's own way of moving about: zoom, pan and the ground.

It knows items and no document.
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

from app.canvas.annotations import FARTHEST
from app.canvas.canvas_style import canvas_style
from app.canvas.edge_item import EdgeItem, LiveEdgeItem
from app.canvas.nodegraphqt_imports import NodeViewer
from app.theme.style import style
from app.theme.tokens import UNIT

MARGIN: Final = 6.0 * UNIT
"""Pixels of the screen that stay free around what is shown."""


@dataclass(frozen=True, slots=True)
class ViewportFrame:
    """A way to look at the scene.

    Attributes:
        factor: Pixels of the screen for one unit of the scene.
        centre: The place of the scene in the middle of the view.
    """

    factor: float
    centre: QPointF


def fit_frame(rect: QRectF, view: QRectF, overlays: Sequence[QRectF], largest: float) -> ViewportFrame:
    """Look at a part of the scene as a whole, as large as it goes, beside what lies over the view.

    Args:
        rect: The part of the scene; not empty.
        view: The view in pixels, its upper left corner at the origin.
        overlays: What lies over the view in its lower corners, in pixels.
        largest: The greatest factor.
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
    """Look at the start of a part of the scene that does not go into the view as a whole.

    Args:
        rect: The part of the scene.
        start: The place in it where people begin to read.
        view: The view in pixels, its upper left corner at the origin.
        overlays: What lies over the view in its lower corners, in pixels.
        factor: Pixels of the screen for one unit of the scene.
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
    """Where a part of the scene is on the screen, with what stands out of it."""
    corner = view.center() + (rect.topLeft() - frame.centre) * frame.factor
    half = MARGIN / 2
    return QRectF(corner, rect.size() * frame.factor).adjusted(-half, -half, half, half)


def _has_room(area: QRectF) -> bool:
    return area.width() > 4 * MARGIN and area.height() > 4 * MARGIN


SMALLEST: Final = 0.02
LARGEST: Final = 3.0
GRID: Final = 24
MOST: Final = FARTHEST + 10_000.0
"""How far one can look in each direction: to the farthest card, and some room around it."""

ROOM: Final = 2_000.0
"""How far around the document its items are found fast."""


class _NoSearch:
    """In place of the base class's search box, which is not used."""

    def isVisible(self) -> bool:
        return False


class ZoomPanView(NodeViewer):
    """A view that zooms and pans.

    Signals:
        view_moved: Another part is seen, or larger.
    """

    view_moved = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._drop_what_is_not_used()
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

    def _drop_what_is_not_used(self) -> None:
        self._search_widget.deleteLater()
        self._search_widget: Any = _NoSearch()
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
        """How large things are seen; 1 is 100 %, whatever the size of texts."""
        return self._zoom

    @property
    def factor(self) -> float:
        """Pixels of the screen for one unit of the scene."""
        return self._zoom * style().scale

    @property
    def centre(self) -> QPointF:
        """What is seen in the middle."""
        return self.mapToScene(self.viewport().rect()).boundingRect().center()

    def apply_zoom(self) -> None:
        """Take up zoom and size of texts, with the middle where it is."""
        centre = self.centre
        self.setTransform(QTransform.fromScale(self.factor, self.factor))
        self._tile = QPixmap()
        self.center_at(centre)

    def extend_scene_rect(self, rect: QRectF) -> None:
        """Say where the items are, so that those that are seen are found fast.

        The scene divides its rectangle evenly into fields. In one as large as all that can be looked at, the items of
        any document would lie in one field, and each frame would go through all of them. Items that lie elsewhere are
        found too, only not as fast.
        """
        if not self.scene().sceneRect().contains(rect):
            self.scene().setSceneRect(rect.adjusted(-ROOM, -ROOM, ROOM, ROOM))

    def set_item_index(self, *, are_most_seen: bool) -> None:
        """Say whether most items are seen at once: then it takes longer to find out which than to go through all.

        Where they are is not kept up then, which items that move would pay for at each frame.
        """
        index, scene = QGraphicsScene.ItemIndexMethod, self.scene()
        scene.setItemIndexMethod(index.NoIndex if are_most_seen else index.BspTreeIndex)
        scene.sceneRectChanged.emit(scene.sceneRect())  # a new index does not ask what it is to divide

    def center_at(self, centre: QPointF) -> None:
        """Bring a place of the scene to the middle."""
        self.centerOn(centre)
        self.view_moved.emit()

    def zoom_to(self, zoom: float, anchor: QPoint | None = None) -> None:
        """Zoom, with the place under `anchor` (the middle, where none is given) staying where it is."""
        zoom = min(max(zoom, SMALLEST), LARGEST)
        anchor = anchor if anchor is not None else self.viewport().rect().center()
        before = self.mapToScene(anchor)
        self._zoom = zoom
        self.setTransform(QTransform.fromScale(self.factor, self.factor))
        self._tile = QPixmap()
        shift = self.mapFromScene(before) - anchor
        self._pan(shift)

    def fit_rect(self, rect: QRectF, overlays: Sequence[QRectF] = ()) -> None:
        """Show a part of the scene as a whole beside what lies over the view, no larger than at 100 %."""
        if not rect.isEmpty():
            self._take(self._framed(rect, overlays))

    def fit_zoom(self, rect: QRectF, overlays: Sequence[QRectF] = ()) -> float:
        """The zoom at which `fit_rect` would show a part of the scene."""
        return max(self._framed(rect, overlays).factor / style().scale, SMALLEST) if not rect.isEmpty() else self._zoom

    def _framed(self, rect: QRectF, overlays: Sequence[QRectF]) -> ViewportFrame:
        return fit_frame(rect, QRectF(self.viewport().rect()), overlays, style().scale)

    def fit_start(self, rect: QRectF, start: QPointF, overlays: Sequence[QRectF], zoom: float) -> None:
        """Show a part of the scene from the place where people begin to read, at a zoom."""
        self._take(start_frame(rect, start, QRectF(self.viewport().rect()), overlays, zoom * style().scale))

    def _take(self, frame: ViewportFrame) -> None:
        self._zoom = max(frame.factor / style().scale, SMALLEST)
        self.setTransform(QTransform.fromScale(self.factor, self.factor))
        self._tile = QPixmap()
        self.center_at(frame.centre)

    def ensure_visible(self, rect: QRectF) -> None:
        """Bring a part of the scene into view, moving no more than is needed."""
        margin = round(24 * style().scale)
        self.ensureVisible(rect, margin, margin)
        self.view_moved.emit()

    def get_zoom(self) -> float:
        """What the base classes ask for: the zoom with 0 for 100 %."""
        return self._zoom - 1.0

    def _pan(self, by: QPoint) -> None:
        across, down = self.horizontalScrollBar(), self.verticalScrollBar()
        across.setValue(across.value() + by.x())
        down.setValue(down.value() + by.y())
        self.view_moved.emit()

    def _update_scene(self) -> None:
        """The base class would set another transform; the one here follows zoom and scroll bars."""

    def _items_near(
        self, pos: QPointF, item_type: type | None = None, width: float = 20, height: float = 20
    ) -> list[QGraphicsItem]:
        """Items around a place; the base class looks to its upper left only, and in units of the scene."""
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
        """The edge under or near a place of the scene."""
        near = self._items_near(place, EdgeItem, 24, 24)
        return next((item for item in near if isinstance(item, EdgeItem)), None)

    def mouse_position(self) -> QPointF | None:
        """The place of the scene under the mouse; None where the mouse is elsewhere."""
        return self.mapToScene(self._previous_pos) if self.underMouse() else None

    def call_later(self, call: Callable[[], object]) -> None:
        """Call something when the present event is over."""
        QTimer.singleShot(0, self, call)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep what is seen; the base class would zoom."""
        QGraphicsView.resizeEvent(self, event)
        self.view_moved.emit()

    def drawBackground(self, painter: QPainter, rect: QRectF | QRect) -> None:
        """The ground with its grid of dots."""
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
        """Take up another theme."""
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


NODE_MIME: Final = "application/x-loopwright-node"
TEMPLATE_MIME: Final = "application/x-loopwright-template"
FILES_MIME: Final = "text/uri-list"


class DropView(ZoomPanView):
    """A view that takes drops.

    Signals:
        type_dropped: A node type was dropped: its name and the place in the scene.
        template_dropped: A template was dropped: its name.
        files_dropped: Files were dropped.
    """

    type_dropped = Signal(str, QPointF)
    template_dropped = Signal(str)
    files_dropped = Signal(list)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take nodes, templates and files."""
        self._accept(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Take nodes, templates and files."""
        self._accept(event)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Nothing was dropped."""
        event.accept()

    def dropEvent(self, event: QDropEvent) -> None:
        """Hand on what was dropped."""
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
