"""Controls over the view: minimap, zoom buttons, hints, and fitting the document beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from app.canvas.canvas_style import canvas_style, pen, united
from app.canvas.document_view import DocumentView
from app.canvas.node_card import LOWEST_CARD
from app.canvas.node_item import NodeItem
from app.canvas.viewer import CanvasViewer
from app.theme.style import ThemedIcon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.nodes.spec import Category

SIZE: Final = QSize(160, 96)
PADDING: Final = 8.0
REDRAW_DELAY_MS: Final = 100
LEAST: Final = 3.0
"""Minimum size of a card in pixels."""

STEP: Final = 48


class Minimap(QWidget):
    """Minimap; click, drag or arrow keys scroll the canvas. Hidden while everything is visible.

    Signals:
        redrawn: The document, the selection or the visible part has changed, and does not change any more.

    Attributes:
        has_room: Whether the canvas is large enough for it.
    """

    redrawn = Signal()

    def __init__(self, view: DocumentView, viewer: CanvasViewer, parent: QWidget) -> None:
        super().__init__(parent)
        self._view, self._viewer = view, viewer
        self._picture = QPixmap()
        self._shown = QRectF()
        self.has_room = True
        self.setAccessibleName("Minimap")
        self.setAccessibleDescription("Click, drag or use the arrow keys to move the canvas.")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._timer = QTimer(self, singleShot=True, interval=REDRAW_DELAY_MS)
        self._timer.timeout.connect(self.redraw)
        self._settled = QTimer(self, singleShot=True, interval=REDRAW_DELAY_MS)
        self._settled.timeout.connect(self.redrawn)
        view.items_changed.connect(self.redraw_soon)
        viewer.view_moved.connect(self._follow)
        style().changed.connect(self._restyle)
        self._restyle()

    def redraw(self) -> None:
        """Redraw the document."""
        self._picture = QPixmap()
        self._shown = self._view.expected_rect
        self.update_visibility()
        self.update()
        self.redrawn.emit()

    def update_visibility(self) -> None:
        """Show the minimap if there is room and the document exceeds the view; keep it while in use."""
        seen = self._viewer.visible_rect
        is_useful = bool(self._view.workflow.nodes) and not seen.contains(self._shown)
        in_use = not self.isHidden() and (self.hasFocus() or self.underMouse())
        self.setVisible(self.has_room and (is_useful or in_use))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the document and a frame around the visible part."""
        if self._picture.isNull():
            self._draw()
        theme = canvas_style()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.drawPixmap(0, 0, self._picture)
        seen = self._viewer.visible_rect
        frame = QRectF(self._to_map(seen.topLeft()), self._to_map(seen.bottomRight()))
        inside = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        painter.setPen(pen(theme.color("accent"), 1.5))
        painter.setBrush(theme.color("accent", 24))
        painter.drawRoundedRect(frame.intersected(inside), 3, 3)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen(theme.color("accent"), 2.0))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)

    def leaveEvent(self, event: QEvent) -> None:
        """Hide once the mouse has left."""
        super().leaveEvent(event)
        self._timer.start()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Hide once the focus is lost."""
        super().focusOutEvent(event)
        self._timer.start()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Scroll to the position."""
        self._viewer.center_at(self._to_scene(event.position()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Scroll to the position while dragging."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._viewer.center_at(self._to_scene(event.position()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll by a step."""
        steps = {
            Qt.Key.Key_Left: (-STEP, 0),
            Qt.Key.Key_Right: (STEP, 0),
            Qt.Key.Key_Up: (0, -STEP),
            Qt.Key.Key_Down: (0, STEP),
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self._viewer.center_at(self._viewer.center + QPointF(*step) / self._viewer.factor)

    def _follow(self) -> None:
        if not self._timer.isActive():  # the redraw that is due shows or hides it
            self.update_visibility()
        self.update()
        self._settled.start()

    def redraw_soon(self) -> None:
        """Redraw after a pause: during a drag, items change too often."""
        self._timer.start()

    def _restyle(self) -> None:
        size = SIZE * style().scale
        if size == self.size():  # only the colors changed
            self._picture = QPixmap()
            if self.isVisible():
                self._draw()  # now, because the next frame paints the whole window
            self.update()
        else:
            self.setFixedSize(size)
            self.redraw()

    @property
    def _scale(self) -> float:
        across = (self.width() - 2 * PADDING) / max(self._shown.width(), 1.0)
        down = (self.height() - 2 * PADDING) / max(self._shown.height(), 1.0)
        return min(across, down)

    def _to_map(self, position: QPointF) -> QPointF:
        middle = QPointF(self.width() / 2, self.height() / 2)
        return middle + (position - self._shown.center()) * self._scale

    def _to_scene(self, position: QPointF) -> QPointF:
        middle = QPointF(self.width() / 2, self.height() / 2)
        return self._shown.center() + (position - middle) / self._scale

    def _draw(self) -> None:
        theme = canvas_style()
        ratio = self.devicePixelRatioF()
        self._picture = QPixmap(self.size() * ratio)
        self._picture.setDevicePixelRatio(ratio)
        self._picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(self._picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(theme.color("edge"), 1.0))
        painter.setBrush(theme.color("panel"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        painter.setPen(Qt.PenStyle.NoPen)
        middle, scale = self._shown.center(), self._scale
        painter.translate(self.width() / 2, self.height() / 2)
        painter.scale(scale, scale)
        painter.translate(-middle)
        painter.setBrush(theme.color("accent", 30))
        painter.drawRects([region.rect for region in self._view.created_regions.items.values()])
        for category, rects in self._rects(LEAST / scale).items():
            painter.setBrush(theme.category(category))
            painter.drawRects(rects)
        painter.end()

    def _rects(self, least: float) -> dict[Category | None, list[QRectF]]:
        """Return the cards by color, so that each color is painted with one call; none is smaller than that."""
        rects: dict[Category | None, list[QRectF]] = {}
        for item in self._view.created_nodes.values():
            width, height = max(item.geometry.width, least), max(item.geometry.height, least)
            rects.setdefault(item.content.category, []).append(QRectF(item.x(), item.y(), width, height))
        return rects


HINT_WIDTH: Final = 280
HINT_OFFSET: Final = QPoint(16, 20)
FIRST_STEPS: Final = "Double-click to add a node, drag one here, or open a template."


class ZoomControls(QFrame):
    """Buttons for zoom out, 100 %, zoom in and fit."""

    def __init__(self, viewer: CanvasViewer, actions: dict[str, QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self.setProperty("card", True)
        row = QHBoxLayout(self)
        row.setContentsMargins(UNIT, UNIT, UNIT, UNIT)
        row.setSpacing(UNIT)
        self.buttons: dict[str, QToolButton] = {}
        for name, sign in (("zoom_out", "mdi6.minus"), ("zoom_100", ""), ("zoom_in", "mdi6.plus"), ("fit_all", "")):
            button = QToolButton(self)
            action = actions[name]
            button.setAccessibleName(action.toolTip())
            keys = action.shortcut().toString()
            button.setToolTip(f"{action.toolTip()} ({keys})" if keys else action.toolTip())
            button.clicked.connect(action.trigger)
            if sign:
                ThemedIcon(button, sign)
            row.addWidget(button)
            self.buttons[name] = button
        self.buttons["fit_all"].setText("Fit")
        self.percent = self.buttons["zoom_100"]
        viewer.view_moved.connect(self.refresh)
        style().changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Update the displayed zoom."""
        text = f"{round(self._viewer.zoom * 100)}%"
        if text != self.percent.text():
            self.percent.setText(text)
        self.percent.setMinimumWidth(self.fontMetrics().horizontalAdvance("000%") + 6 * UNIT)
        self.adjustSize()


class CursorHint(PlainLabel):
    """Short text beside the mouse, such as why an edge cannot be dropped here."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent, wrap=True)
        self._canvas = parent
        self.setObjectName("canvas_hint")
        self.setProperty("hint", "bad")
        self.setMargin(2 * UNIT)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def show_text(self, text: str, position: QPoint) -> None:
        """Show a text near a position, inside the canvas; an empty text hides it."""
        self.setText(text)
        if not text:
            self.hide()
            return
        self.setFixedWidth(round(HINT_WIDTH * style().scale))
        self.adjustSize()
        room = self._canvas.rect()
        corner = position + HINT_OFFSET
        self.move(min(corner.x(), room.width() - self.width() - 8), min(corner.y(), room.height() - self.height() - 8))
        self.show()
        self.raise_()


class EmptyCanvasHint(PlainLabel):
    """First steps, shown on an empty canvas."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(FIRST_STEPS, parent, look="dim", wrap=True)
        self._canvas = parent
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def center_in_parent(self) -> None:
        """Center in the canvas, on one line if there is room."""
        room = self._canvas.rect()
        one_line = self.fontMetrics().horizontalAdvance(FIRST_STEPS) + 2 * UNIT
        width = max(min(one_line, room.width() - 8 * UNIT), UNIT)
        self.resize(width, self.heightForWidth(width))
        self.move((room.width() - self.width()) // 2, (room.height() - self.height()) // 2)


CORNER: Final = 4 * UNIT
MIN_INITIAL_ZOOM: Final = 0.4
"""Minimum zoom for a new view: titles are legible."""

MARGIN: Final = 6.0 * UNIT
"""Margin around a fitted rectangle in screen pixels."""


class ViewportFrame(NamedTuple):
    """Zoom and center of a view.

    Attributes:
        factor: Screen pixels per scene unit.
        center: Scene position in the center of the view.
    """

    factor: float
    center: QPointF


def fit_frame(rect: QRectF, view: QRectF, overlays: Sequence[QRectF], largest: float) -> ViewportFrame:
    """Fit a scene rectangle into the view, as large as possible beside the overlays.

    Args:
        rect: The scene rectangle, not empty.
        view: The view in pixels, with its upper left corner at the origin.
        overlays: Widgets over the lower corners of the view, in pixels.
        largest: Maximum factor.
    """
    unobstructed = _in_area(rect, view, view, largest)
    visible = _view_rect(rect, view, unobstructed)
    if not any(cover.intersects(visible) for cover in overlays):
        return unobstructed
    frames = [_in_area(rect, area, view, largest) for area in _free_areas(view, overlays)]
    return max(frames, key=lambda frame: frame.factor, default=unobstructed)


def _free_areas(view: QRectF, overlays: Sequence[QRectF]) -> list[QRectF]:
    """Return the areas of a view above its overlays and between them, as far as they are useful."""
    top = min((cover.top() for cover in overlays), default=view.bottom())
    left = max((cover.right() for cover in overlays if cover.center().x() < view.center().x()), default=view.left())
    right = min((cover.left() for cover in overlays if cover.center().x() >= view.center().x()), default=view.right())
    above = QRectF(view.left(), view.top(), view.width(), top - view.top())
    between = QRectF(left, view.top(), right - left, view.height())
    return [area for area in (above, between) if area.width() > 4 * MARGIN and area.height() > 4 * MARGIN]


def start_frame(rect: QRectF, start: QPointF, view: QRectF, overlays: Sequence[QRectF], factor: float) -> ViewportFrame:
    """Show the start of a scene rectangle that is too large to fit, where most of it is beside the overlays.

    Args:
        rect: The scene rectangle.
        start: Position to start reading at.
        view: The view in pixels, with its upper left corner at the origin.
        overlays: Widgets over the lower corners of the view, in pixels.
        factor: Screen pixels per scene unit.
    """
    width, height = rect.width() * factor, rect.height() * factor
    areas = [area.adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN) for area in _free_areas(view, overlays) or [view]]
    free = max(areas, key=lambda area: min(area.width(), width) * min(area.height(), height))
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


def _view_rect(rect: QRectF, view: QRectF, frame: ViewportFrame) -> QRectF:
    """Return a scene rectangle in view coordinates, including items that stand out."""
    corner = view.center() + (rect.topLeft() - frame.center) * frame.factor
    half = MARGIN / 2
    return QRectF(corner, rect.size() * frame.factor).adjusted(-half, -half, half, half)


class FitToView:
    """Fits the document into the view, beside the zoom buttons and the minimap.

    Attributes:
        fit_again: Repeats the last fit.
    """

    def __init__(self, view: DocumentView, viewer: CanvasViewer, controls: ZoomControls, minimap: Minimap) -> None:
        self._view, self._viewer = view, viewer
        self._controls, self._minimap = controls, minimap
        self._fitted: tuple[float, float, float] | None = None
        self._size = QSize()
        self._drag: QRect | None = None  # around the mouse while it drags, in coordinates of the view
        self.fit_again = self.fit_all
        self._is_provisional = False
        view.nodes_created.connect(self._fit_when_complete)
        minimap.redrawn.connect(self._place_minimap)

    def place_overlays(self, size: QSize) -> None:
        """Move zoom buttons and minimap into the lower corners of a canvas of a size."""
        controls, minimap = self._controls, self._minimap
        controls.adjustSize()
        controls.move(CORNER, size.height() - controls.height() - CORNER)
        self._size = size
        self._place_minimap()
        is_wide = size.width() > controls.width() + minimap.width() + 4 * CORNER
        minimap.has_room = is_wide and size.height() > 3 * minimap.height()
        minimap.update_visibility()

    def avoid_pointer(self, position: QPoint | None) -> None:
        """Keep the minimap out of the way of a drag at this position of the view, until the drag ends (None)."""
        reach = QPoint(CORNER, CORNER)
        self._drag = None if position is None else QRect(position - reach, QSize(2 * CORNER, 2 * CORNER))
        if self._drag is None or self._minimap.geometry().intersects(self._drag.translated(self._viewer.pos())):
            self._place_minimap()

    def _place_minimap(self) -> None:
        """Move the minimap to the lower right corner, or to the upper one if the selection or a drag is there."""
        minimap = self._minimap
        if minimap.underMouse() or minimap.hasFocus():
            return
        lower = self._lower_corner
        corners = (lower, QRect(QPoint(lower.x(), CORNER), minimap.size()))
        free = (rect for rect in corners if not self._is_in_use(rect.translated(-self._viewer.pos())))
        minimap.move(next(free, lower).topLeft())

    @property
    def _lower_corner(self) -> QRect:
        """Where the minimap is unless it moves out of the way."""
        width, height = self._minimap.width(), self._minimap.height()
        return QRect(self._size.width() - width - CORNER, self._size.height() - height - CORNER, width, height)

    def _is_in_use(self, area: QRect) -> bool:
        if self._drag is not None and self._drag.intersects(area):
            return True
        part = self._viewer.mapToScene(area).boundingRect()
        scene, mode = self._viewer.scene(), Qt.ItemSelectionMode.IntersectsItemBoundingRect
        return bool(scene.selectedItems()) and any(item.isSelected() for item in scene.items(part, mode))

    def fit_all(self) -> None:
        """Fit the whole document; the minimap is hidden then."""
        self._fit(self._view.expected_rect, has_map=False)
        self._note_fit(self.fit_all)

    def fit_initial_view(self) -> None:
        """Fit the whole document, or its start if it would be illegible."""
        rect = self._view.expected_rect
        if not rect.isEmpty() and self._frame(rect, has_map=False).factor < MIN_INITIAL_ZOOM * style().scale:
            self._fit_start(rect)
        else:
            self.fit_all()
        self._note_fit(self.fit_initial_view)

    def _note_fit(self, again: Callable[[], None]) -> None:
        self._fitted, self.fit_again = self._counter, again
        self._is_provisional = not self._view.is_complete

    def _fit_when_complete(self) -> None:
        """Repeat a fit to estimated sizes once all cards are created."""
        if self._is_provisional and self._view.is_complete and self.is_fitted:
            self.fit_again()

    @property
    def is_fitted(self) -> bool:
        """Whether the document is still fitted: the view was not moved or zoomed since."""
        return self._fitted is not None and self._fitted == self._counter

    @property
    def _counter(self) -> tuple[float, float, float] | None:
        """Zoom and upper left corner of the view; None for an empty document."""
        if not self._view.workflow.nodes:
            return None
        corner = self._viewer.mapToScene(0, 0)
        return (self._viewer.transform().m11(), corner.x(), corner.y())

    def show_rect(self, rect: QRectF) -> None:
        """Bring a rectangle of the scene into view: scroll if it fits at this zoom, else zoom out."""
        visible = self._viewer.visible_rect
        if rect.width() > visible.width() or rect.height() > visible.height():
            self._fit(rect, has_map=self._minimap.has_room)
        elif not visible.contains(rect):
            self._viewer.ensure_visible(rect)

    def show_all(self, rect: QRectF) -> None:
        """Bring the whole document into view, or only a rectangle if the document would be illegible."""
        everything = self._view.expected_rect
        if everything.isEmpty():
            return
        is_legible = self._frame(everything, has_map=False).factor >= MIN_INITIAL_ZOOM * style().scale
        if not is_legible:
            self.show_rect(rect)
        elif not self._viewer.visible_rect.contains(everything):
            self.fit_all()

    def fit_selection(self) -> None:
        """Fit the selection, or the whole document if nothing is selected."""
        self._view.create_all()
        cards = (item.card_rect for item in self._viewer.selected_nodes() if isinstance(item, NodeItem))
        rect = united((*cards, *(item.scene_rect for item in self._view.annotations.selected)))
        if rect.isNull():
            self.fit_all()
        else:
            self._fit(rect, has_map=self._minimap.has_room)

    def _fit(self, rect: QRectF, *, has_map: bool) -> None:
        if not rect.isEmpty():
            self._viewer.show_frame(*self._frame(rect, has_map=has_map))

    def _frame(self, rect: QRectF, *, has_map: bool) -> ViewportFrame:
        return fit_frame(rect, self._viewport, self._overlay_rects(has_map=has_map), style().scale)

    def _fit_start(self, rect: QRectF) -> None:
        middle = (rect.center().x(), rect.center().y())
        x, y = min(self._view.document_positions.values(), default=middle)
        start = QPointF(x, y + LOWEST_CARD / 2)
        overlays = self._overlay_rects(has_map=self._minimap.has_room)
        factor = MIN_INITIAL_ZOOM * style().scale
        self._viewer.show_frame(*start_frame(rect, start, self._viewport, overlays, factor))

    @property
    def _viewport(self) -> QRectF:
        return QRectF(self._viewer.viewport().rect())

    def _overlay_rects(self, *, has_map: bool) -> list[QRectF]:
        """Return the rectangles of the controls in view coordinates."""
        overlays = [self._controls.geometry(), self._lower_corner] if has_map else [self._controls.geometry()]
        return [QRectF(rect).translated(-QPointF(self._viewer.pos())) for rect in overlays]
