"""The graphics view of a canvas: zoom, pan, drops, drawing edges, dragging, context menu and keys.

Selection, dragging and the rubber band are NodeGraphQt's. The view knows items but no document: its signals report
gestures, and others decide what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QPointF, QRect, QRectF, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QContextMenuEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPixmap,
    QResizeEvent,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QGraphicsItem,
    QGraphicsScene,
    QGraphicsSceneMouseEvent,
    QGraphicsView,
    QLineEdit,
    QPlainTextEdit,
    QToolTip,
    QWidget,
)

from app.canvas.add_button_item import REACH, AddButtonItem
from app.canvas.annotations import AnnotationItem
from app.canvas.canvas_style import canvas_style
from app.canvas.edge_item import EdgeItem, LiveEdgeItem
from app.canvas.loop_region import LoopLabelItem
from app.canvas.node_item import PORTS_FROM, CanvasPort, NodeItem
from app.canvas.nodegraphqt_imports import AbstractNodeItem, NodeViewer
from app.file_drops import accept_copy, dropped_files
from app.node_layout import MAX_COORDINATE
from app.palette import NODE_MIME, TEMPLATE_MIME
from app.theme.style import style
from app.theme.widgets import plain_tool_tip

SMALLEST: Final = 0.02
LARGEST: Final = 3.0
GRID: Final = 24
MOST: Final = MAX_COORDINATE + 10_000.0
"""How far the view scrolls in each direction: the farthest card and a margin."""

ROOM: Final = 2_000.0
"""Margin around the document in which items are indexed."""

INDEX_DELAY_MS: Final = 50
"""The index of items changes that long after the zoom: with many items, both would block the window for long."""

BESIDE: Final = 36.0
"""How far right of a card its buttons reach."""


TYPING_MS: Final = 400
"""How long after a text field a key may still be meant for it."""

_DELIBERATE: Final = {
    Qt.FocusReason.MouseFocusReason,
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
}


class TypingGuard(QObject):
    """Notices keys that a person types on although their text field has just closed.

    A field closes on Enter, or because something else is shown. What is typed next would be shortcuts of the canvas.
    """

    def __init__(self, view: QWidget) -> None:
        super().__init__(view)
        self._view = view
        self.focus_reason = Qt.FocusReason.OtherFocusReason
        self._timer = QTimer(self, singleShot=True, interval=TYPING_MS)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._focus_changed)

    @property
    def is_active(self) -> bool:
        """Whether the next key may be meant for the text field."""
        return self._timer.isActive()

    def takes(self, event: QKeyEvent) -> bool:
        """Return whether a key may be meant for the text field; then what follows may be, too."""
        is_text = (event.text().isprintable() and bool(event.text())) or event.key() == Qt.Key.Key_Backspace
        if not self.is_active or not is_text or event.modifiers() & ~Qt.KeyboardModifier.ShiftModifier:
            return False
        self._timer.start()
        return True

    def end(self) -> None:
        """Stop: the person has turned to the canvas."""
        self._timer.stop()

    def _focus_changed(self, old: QWidget | None, new: QWidget | None) -> None:
        if new is self._view and self.focus_reason in _DELIBERATE:
            self.end()
        elif isinstance(old, QLineEdit | QPlainTextEdit | QAbstractSpinBox) or (
            isinstance(old, QComboBox) and old.isEditable()
        ):
            self._timer.start()


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
        self._index_method = self.scene().itemIndexMethod()
        self._index_timer = QTimer(self, singleShot=True, interval=INDEX_DELAY_MS)
        self._index_timer.timeout.connect(self._apply_index_method)
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
    def visible_rect(self) -> QRectF:
        """The visible part of the scene."""
        return self.mapToScene(self.viewport().rect()).boundingRect()

    @property
    def center(self) -> QPointF:
        """Scene position in the center of the view."""
        return self.visible_rect.center()

    def apply_zoom(self) -> None:
        """Apply zoom and text size around the center."""
        center = self.center
        self._set_zoom(self._zoom)
        self.center_at(center)

    def extend_scene_rect(self, rect: QRectF) -> None:
        """Extend the scene rectangle, so that visible items are found fast.

        The scene divides its rectangle evenly. If that were the whole scrollable area, all items would share one cell
        and each frame would scan them all. Items outside are still found, only more slowly.
        """
        if not self.scene().sceneRect().contains(rect):
            self.scene().setSceneRect(rect.adjusted(-ROOM, -ROOM, ROOM, ROOM))

    def set_item_index(self, *, are_most_seen: bool) -> None:
        """Turn the item index off while most items are visible, or on, once the view has settled.

        Searching it takes longer than scanning all items then, and moving items would update it on each frame.
        """
        index = QGraphicsScene.ItemIndexMethod
        self._index_method = index.NoIndex if are_most_seen else index.BspTreeIndex
        self._index_timer.start()

    def _apply_index_method(self) -> None:
        scene = self.scene()
        scene.setItemIndexMethod(self._index_method)
        scene.sceneRectChanged.emit(scene.sceneRect())  # a new index does not ask for the scene rectangle

    def center_at(self, center: QPointF) -> None:
        """Center the view on a scene position."""
        self.centerOn(center)
        self.view_moved.emit()

    def zoom_to(self, zoom: float, anchor: QPoint | None = None) -> None:
        """Set the zoom, keeping the position under `anchor` (default: the center) in position."""
        anchor = anchor if anchor is not None else self.viewport().rect().center()
        before = self.mapToScene(anchor)
        self._set_zoom(min(max(zoom, SMALLEST), LARGEST))
        self._pan(self.mapFromScene(before) - anchor)

    def show_frame(self, factor: float, center: QPointF) -> None:
        """Show a scene position in the center of the view, at a number of screen pixels per scene unit."""
        self._set_zoom(max(factor / style().scale, SMALLEST))
        self.center_at(center)

    def _set_zoom(self, zoom: float) -> None:
        self._zoom = zoom
        self.setTransform(QTransform.fromScale(self.factor, self.factor))
        self._tile = QPixmap()

    def ensure_visible(self, rect: QRectF) -> None:
        """Scroll as little as needed to show a scene rectangle, with the + beside the outputs of a card."""
        margin = round(24 * style().scale)
        self.ensureVisible(rect, max(margin, round(REACH * self.factor)), margin)
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

    def edge_at(self, position: QPointF) -> EdgeItem | None:
        """Return the edge at or near a scene position."""
        near = self._items_near(position, EdgeItem, 24, 24)
        return next((item for item in near if isinstance(item, EdgeItem)), None)

    def card_at(self, position: QPointF) -> NodeItem | None:
        """Return the card at a scene position."""
        return next((item for item in self.scene().items(position) if isinstance(item, NodeItem)), None)

    def has_card_in(self, rect: QRectF) -> bool:
        """Return whether a card is in a rectangle of the scene; False where ports are too small to tell."""
        near = self.scene().items(rect) if self._zoom >= PORTS_FROM else []
        return any(isinstance(item, NodeItem) and item.card_rect.intersects(rect) for item in near)

    def label_at(self, position: QPointF) -> LoopLabelItem | None:
        """Return the label of a loop at the pixel of a scene position, which it may cover only in part."""
        pixel = QRectF(position, QSizeF(1, 1) / self.factor)
        return next((item for item in self.scene().items(pixel) if isinstance(item, LoopLabelItem)), None)

    def mouse_position(self) -> QPointF | None:
        """Return the scene position of the mouse, or None if it is elsewhere."""
        return self.mapToScene(self._previous_pos) if self.underMouse() else None

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep zoom and position; the base class would zoom."""
        QGraphicsView.resizeEvent(self, event)
        self.view_moved.emit()

    def drawBackground(self, painter: QPainter, rect: QRectF | QRect) -> None:
        """Paint the background with its dot grid."""
        theme = canvas_style()
        if self._tile.isNull():
            self._tile = _dots(theme.color("ground"), theme.color("line"), self.factor)
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

RejectionReason = Callable[[CanvasPort, CanvasPort], str | None]


class CanvasViewer(ZoomPanView):
    """Graphics view of one document.

    Signals:
        pressed: A mouse button was pressed; emitted before that has any effect.
        connecting: The user draws an edge from this port; None at the end.
        connect_requested: Connect two ports; the third argument is the edge to replace, or None.
        disconnect_requested: Remove this edge.
        dropped_on_empty: An edge was dropped on empty canvas: port and scene position.
        hint_changed: Text beside the mouse; empty for none.
        drag_finished: Items were dropped.
        dragged: Items are being dragged; the item, or None if several.
        pointer_dragged: The mouse moved to this position of the view with the left button held; None on release.
        context_menu_requested: Context menu at a global and a scene position.
        opened: An item was double-clicked.
        empty_double_clicked: Empty canvas was double-clicked at this scene position.
        hovered: The mouse moved to this card or beside its outputs, or away from all cards (None).
        type_dropped: A node type was dropped: name and scene position.
        template_dropped: The template of this name was dropped.
        files_dropped: Files were dropped.
    """

    pressed = Signal()
    connecting = Signal(object)
    connect_requested = Signal(object, object, object)
    disconnect_requested = Signal(object)
    dropped_on_empty = Signal(object, QPointF)
    hint_changed = Signal(str, QPoint)
    drag_finished = Signal()
    dragged = Signal(object)
    pointer_dragged = Signal(object)
    context_menu_requested = Signal(QPoint, QPointF)
    opened = Signal(object)
    empty_double_clicked = Signal(QPointF)
    hovered = Signal(object)
    type_dropped = Signal(str, QPointF)
    template_dropped = Signal(str)
    files_dropped = Signal(list)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rejection_reason: RejectionReason = lambda _start, _end: None
        self.tool_tip: Callable[[QPointF], str] = lambda _position: ""
        self.key_handler: Callable[[QKeyEvent], bool] = lambda _event: False
        self.typing_guard = TypingGuard(self)
        self._pressed_pipe: EdgeItem | None = None
        self.detached_pipe: EdgeItem | None = None
        self._pan_from: QPoint | None = None
        self._pan_button = Qt.MouseButton.NoButton
        self._space = False
        self._is_dragging = False
        self._hovered: NodeItem | None = None

    # Mouse events

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Start panning, or a gesture of the base class."""
        self.pressed.emit()
        self.typing_guard.end()
        self._update_modifiers(event.modifiers())
        is_left = event.button() == Qt.MouseButton.LeftButton
        if event.button() == Qt.MouseButton.MiddleButton or (is_left and (self._space or self.ALT_state)):
            self._pan_from, self._pan_button = event.position().toPoint(), event.button()
            self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
            event.accept()
            return
        if event.button() == Qt.MouseButton.RightButton:
            event.accept()  # the context menu event follows; keep the selection
            return
        super().mousePressEvent(event)
        grabber = self.scene().mouseGrabberItem()
        if self._is_drawing() and isinstance(grabber, NodeItem):  # beside a port, easier to hit than it is large
            grabber.ungrabMouse()  # or the card would move with the edge

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan, draw an edge, or continue a gesture of the base class."""
        position = event.position().toPoint()
        if self._pan_from is not None:
            self._pan(self._pan_from - position)
            self._pan_from = position
            return
        if self._pressed_pipe is not None and self._is_far(position):
            self._detach(self._pressed_pipe, self.mapToScene(self._press_pos))
        if not event.buttons():
            self._note_hover(self.mapToScene(position))
        is_held = bool(event.buttons() & Qt.MouseButton.LeftButton)
        if is_held and not self._is_dragging and not self._is_far(position) and not self._is_drawing():
            return  # ignore small movements during a click
        super().mouseMoveEvent(event)
        if is_held:
            self.pointer_dragged.emit(position)
        if is_held and not self._is_drawing() and self._is_far(position):
            self._is_dragging = True
            selected = self.selected_nodes()
            self.dragged.emit(selected[0] if len(selected) == 1 else None)

    def _note_hover(self, position: QPointF) -> None:
        around = QRectF(position.x() - BESIDE, position.y() - 12, BESIDE, 24)
        card = next((item for item in self.scene().items(around) if isinstance(item, NodeItem)), None)
        if card is not self._hovered:
            self._hovered = card
            self.hovered.emit(card)

    def forget_hover(self) -> None:
        """Forget the card under the mouse until the mouse moves: what is shown has changed."""
        if self._hovered is not None:
            self._hovered = None
            self.hovered.emit(None)

    def _is_drawing(self) -> bool:
        """Whether a rubber band or an edge is being drawn."""
        return self._is_band_active or self._LIVE_PIPE.isVisible()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Finish the gesture."""
        if self._pan_from is not None and event.button() == self._pan_button:
            self._pan_from = None
            self.viewport().unsetCursor()
            event.accept()
            return
        if event.button() == Qt.MouseButton.LeftButton:
            self.pointer_dragged.emit(None)
        was_band = self._is_band_active and self._rubber_band.isVisible()
        super().mouseReleaseEvent(event)
        self._pressed_pipe = None
        if was_band and self.selected_nodes():
            for edge in self.selected_pipes():
                edge.setSelected(False)
        if self._is_dragging:
            self._is_dragging = False
            self.drag_finished.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Report a double click on an item."""
        position = self.mapToScene(event.position().toPoint())
        items = self._items_near(position, AbstractNodeItem, 4, 4)
        label = self.label_at(position)
        if label is not None:
            label.collapse(label.loop_id)
        elif items:
            self.opened.emit(items[0])
        elif event.button() == Qt.MouseButton.LeftButton and self.edge_at(position) is None:
            self.empty_double_clicked.emit(position)
        event.accept()

    def viewportEvent(self, event: QEvent) -> bool:
        """Show the tooltip of what is at the mouse, made when it is asked for."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            text = self.tool_tip(self.mapToScene(event.pos()))
            if text:
                QToolTip.showText(event.globalPos(), plain_tool_tip(text), self.viewport())
                return True
        return super().viewportEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom at the mouse; with Shift, scroll horizontally."""
        delta = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._pan(QPoint(-(delta.y() or delta.x()), 0))
        else:
            self.zoom_to(self._zoom * 1.0015 ** (delta.y() or delta.x()), event.position().toPoint())
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Request the context menu at the mouse, or with the keyboard at the selected item."""
        selected = self.scene().selectedItems() if event.reason() == QContextMenuEvent.Reason.Keyboard else []
        if selected:
            self.ensure_visible(selected[-1].sceneBoundingRect())
            position = _hit_position(selected[-1])
            self.context_menu_requested.emit(self.viewport().mapToGlobal(self.mapFromScene(position)), position)
        else:
            self.context_menu_requested.emit(event.globalPos(), self.mapToScene(event.pos()))
        event.accept()

    # Keys and focus

    def event(self, event: QEvent) -> bool:
        """Keep keys from shortcuts that may be meant for a text field."""
        is_override = event.type() == QEvent.Type.ShortcutOverride
        if is_override and isinstance(event, QKeyEvent) and self.typing_guard.takes(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle arrows, Escape and Space; pass all other keys to the window."""
        if self.typing_guard.takes(event):
            event.accept()
        elif event.key() == Qt.Key.Key_Escape and self._LIVE_PIPE.isVisible():
            self.cancel_connection()
        elif event.key() == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._space = True
            self.viewport().setCursor(Qt.CursorShape.OpenHandCursor)
        elif not self.key_handler(event):
            QWidget.keyPressEvent(self, event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        """Stop panning with Space."""
        if event.key() == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._space = False
            self.viewport().unsetCursor()
        QWidget.keyReleaseEvent(self, event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Bypass the base class, which would fill its menu bar."""
        self.typing_guard.focus_reason = event.reason()
        QGraphicsView.focusInEvent(self, event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Reset modifier keys: their release would go to another widget."""
        self.clear_key_state()
        if self._space:
            self._space = False
            self.viewport().unsetCursor()
        QGraphicsView.focusOutEvent(self, event)

    def _update_modifiers(self, modifiers: Qt.KeyboardModifier) -> None:
        """Let Ctrl and Shift both toggle the selection; the base class's own state may be stale."""
        both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        self.SHIFT_state = bool(modifiers & both)
        self.CTRL_state = False
        self.ALT_state = bool(modifiers & Qt.KeyboardModifier.AltModifier)

    @property
    def _press_pos(self) -> QPoint:
        """Where the mouse button was pressed, in viewport coordinates."""
        return self._origin_pos or QPoint()

    @property
    def _is_band_active(self) -> bool:
        """Whether the base class has started a rubber band."""
        return bool(getattr(self._rubber_band, "isActive", False))

    def _is_far(self, position: QPoint) -> bool:
        return (position - self._press_pos).manhattanLength() > 4

    # Drawing edges

    def sceneMousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Start an edge at a port, or remember the edge under the mouse, which a drag detaches."""
        self._pressed_pipe = None
        if event.button() != Qt.MouseButton.LeftButton or self.ALT_state:
            return
        if isinstance(next(iter(self.scene().items(event.scenePos())), None), AddButtonItem):
            return  # the edge below it is not meant
        near = self._items_near(event.scenePos(), None, 8, 8)
        port = next((item for item in near if isinstance(item, CanvasPort)), None)
        if port is not None:
            self.start_live_connection(port)
            event.accept()
            return
        node = next((item for item in near if isinstance(item, AbstractNodeItem)), None)
        if node is not None:
            self._node_positions[node] = node.xy_pos
            return
        self._pressed_pipe = next((item for item in near if isinstance(item, EdgeItem)), None)
        if self._pressed_pipe is not None and not self.SHIFT_state:
            self.scene().clearSelection()
            self._pressed_pipe.setSelected(True)

    def sceneMouseMoveEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Route the edge to the mouse and show whether it may be dropped there."""
        if not self._LIVE_PIPE.isVisible() or self._start_port is None:
            return
        position = event.scenePos()
        port = self._port_at(position)
        why = None
        if port is not None and port is not self._start_port:
            why = self.rejection_reason(self._start_port, port)
            position = port.middle
        self._LIVE_PIPE.draw_path(self._start_port, None, position, "bad" if why else "accent")
        self.hint_changed.emit(why or "", self.mapFromScene(event.scenePos()))

    def start_live_connection(self, selected_port: CanvasPort | None) -> None:
        """Start drawing an edge."""
        if selected_port is None:
            return
        self._start_port = selected_port
        self._LIVE_PIPE.setVisible(True)
        self._LIVE_PIPE.draw_path(selected_port, None, self.mapToScene(self._press_pos))
        self.connecting.emit(selected_port)

    def end_live_connection(self) -> None:
        """Stop drawing an edge."""
        super().end_live_connection()
        self.detached_pipe = None
        self.hint_changed.emit("", QPoint())
        self.connecting.emit(None)

    def cancel_connection(self) -> None:
        """Cancel drawing an edge, whose port may be about to disappear."""
        self._pressed_pipe = None
        if self._LIVE_PIPE.isVisible():
            self._show_detached_edge()
            self.end_live_connection()

    def apply_live_connection(self, event: QGraphicsSceneMouseEvent) -> None:
        """Finish drawing an edge."""
        if not self._LIVE_PIPE.isVisible():
            return
        start, end, old = self._start_port, self._port_at(event.scenePos()), self.detached_pipe
        position = event.scenePos()
        fits = end is not None and end is not start and self.rejection_reason(start, end) is None
        self._show_detached_edge()
        self.end_live_connection()
        if end is start or (end is None and old is None and not self._is_far(self.mapFromScene(position))):
            return
        if end is not None:
            if fits:
                self.connect_requested.emit(start, end, old)
        elif old is not None:
            self.disconnect_requested.emit(old)
        else:
            self.dropped_on_empty.emit(start, position)

    def _detach(self, edge: EdgeItem, position: QPointF) -> None:
        """Detach the nearer end of an edge; the edge is only hidden until the drop."""
        self._pressed_pipe = None
        self.detached_pipe = edge
        edge.setVisible(False)
        port = edge.port_from_pos(position, reverse=True)
        assert isinstance(port, CanvasPort)
        self.start_live_connection(port)

    def _show_detached_edge(self) -> None:
        if self.detached_pipe is not None:
            self.detached_pipe.setVisible(True)

    def _port_at(self, position: QPointF) -> CanvasPort | None:
        ports = [item for item in self.scene().items(position) if isinstance(item, CanvasPort)]
        if not ports:  # a drop on a card connects to its first matching port
            node = next((item for item in self.scene().items(position) if isinstance(item, NodeItem)), None)
            if node is not None and self._start_port is not None and node is not self._start_port.parentItem():
                wanted = node.outputs if self._start_port.is_input else node.inputs
                fitting = [port for port in wanted if self.rejection_reason(self._start_port, port) is None]
                return fitting[0] if fitting else (wanted[0] if wanted else None)
            return None
        return min(ports, key=lambda port: (port.middle - position).manhattanLength())

    # Drops

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
        data, position = event.mimeData(), self.mapToScene(event.position().toPoint())
        if data.hasFormat(NODE_MIME):
            self.type_dropped.emit(_text(data, NODE_MIME), position)
        elif data.hasFormat(TEMPLATE_MIME):
            self.template_dropped.emit(_text(data, TEMPLATE_MIME))
        elif data.hasUrls():
            self.files_dropped.emit(dropped_files(data))
        self._accept(event)

    def _accept(self, event: QDropEvent) -> None:
        kinds = (NODE_MIME, TEMPLATE_MIME, FILES_MIME)
        if any(event.mimeData().hasFormat(kind) for kind in kinds):
            accept_copy(event)
        else:
            event.ignore()


def _hit_position(item: QGraphicsItem) -> QPointF:
    """Return a position at which an item is hit."""
    if isinstance(item, EdgeItem):
        return item.path().pointAtPercent(0.5)
    if isinstance(item, AnnotationItem):  # a frame is hit on its title
        return item.mapToScene(item.text_rect.center())
    return item.sceneBoundingRect().center()


def _text(data: QMimeData, kind: str) -> str:
    return bytes(data.data(kind).data()).decode("utf-8", "replace").strip()
