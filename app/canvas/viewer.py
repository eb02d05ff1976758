"""The graphics view of a canvas: drawing edges, dragging, context menu and keys.

Selection, dragging and the rubber band are NodeGraphQt's. The view knows items but no document: its signals report
gestures, and others decide what they mean.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QPointF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QGraphicsItem, QGraphicsSceneMouseEvent, QGraphicsView, QWidget

from app.canvas.annotations import AnnotationItem
from app.canvas.edge_item import EdgeItem
from app.canvas.node_item import NodeItem
from app.canvas.nodegraphqt_imports import AbstractNodeItem
from app.canvas.port_item import CanvasPort
from app.canvas.zoom_pan_view import DropView

RejectionReason = Callable[[CanvasPort, CanvasPort], str | None]


class CanvasViewer(DropView):
    """Graphics view of one document.

    Signals:
        connecting: The user draws an edge from this port; None at the end.
        connect_requested: Connect two ports; the third argument is the edge to replace, or None.
        disconnect_requested: Remove this edge.
        dropped_on_empty: An edge was dropped on empty canvas: port and scene position.
        hint_changed: Text beside the mouse; empty for none.
        drag_finished: Items were dropped.
        dragged: Items are being dragged; the item, or None if several.
        context_menu_requested: Context menu at a global and a scene position.
        opened: An item was double-clicked.
    """

    connecting = Signal(object)
    connect_requested = Signal(object, object, object)
    disconnect_requested = Signal(object)
    dropped_on_empty = Signal(object, QPointF)
    hint_changed = Signal(str, QPoint)
    drag_finished = Signal()
    dragged = Signal(object)
    context_menu_requested = Signal(QPoint, QPointF)
    opened = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rejection_reason: RejectionReason = lambda _start, _end: None
        self.key_handler: Callable[[QKeyEvent], bool] = lambda _event: False
        self._pressed_pipe: EdgeItem | None = None
        self._detached_pipe: EdgeItem | None = None
        self._pan_from: QPoint | None = None
        self._pan_button = Qt.MouseButton.NoButton
        self._space = False
        self._is_dragging = False

    # Mouse events

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Start panning, or a gesture of the base class."""
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

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan, draw an edge, or continue a gesture of the base class."""
        place = event.position().toPoint()
        if self._pan_from is not None:
            self._pan(self._pan_from - place)
            self._pan_from = place
            return
        if self._pressed_pipe is not None and self._is_far(place):
            self._detach(self._pressed_pipe, self.mapToScene(self._press_pos))
        is_held = bool(event.buttons() & Qt.MouseButton.LeftButton)
        if is_held and not self._is_dragging and not self._is_far(place) and not self._is_drawing():
            return  # ignore small movements during a click
        super().mouseMoveEvent(event)
        if is_held and not self._is_drawing() and self._is_far(place):
            self._is_dragging = True
            selected = self.selected_nodes()
            self.dragged.emit(selected[0] if len(selected) == 1 else None)

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
        was_band = self._is_band_active and self._rubber_band.isVisible()
        super().mouseReleaseEvent(event)
        self._pressed_pipe = None
        if was_band and self.selected_nodes():
            for pipe in self.selected_pipes():
                pipe.setSelected(False)
        if self._is_dragging:
            self._is_dragging = False
            self.drag_finished.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Report a double click on an item."""
        place = self.mapToScene(event.position().toPoint())
        items = self._items_near(place, AbstractNodeItem, 4, 4)
        if items:
            self.opened.emit(items[0])
        event.accept()

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
            place = _middle(selected[-1])
            self.context_menu_requested.emit(self.viewport().mapToGlobal(self.mapFromScene(place)), place)
        else:
            self.context_menu_requested.emit(event.globalPos(), self.mapToScene(event.pos()))
        event.accept()

    # Keys and focus

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle arrows, Escape and Space; pass all other keys to the window."""
        if event.key() == Qt.Key.Key_Escape and self._LIVE_PIPE.isVisible():
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

    def _is_far(self, place: QPoint) -> bool:
        return (place - self._press_pos).manhattanLength() > 4

    # Drawing edges

    def sceneMousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Start an edge at a port, or remember the edge under the mouse, which a drag detaches."""
        self._pressed_pipe = None
        if event.button() != Qt.MouseButton.LeftButton or self.ALT_state:
            return
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
        place = event.scenePos()
        port = self._port_at(place)
        why = None
        if port is not None and port is not self._start_port:
            why = self.rejection_reason(self._start_port, port)
            place = port.middle
        self._LIVE_PIPE.draw_path(self._start_port, None, place, "bad" if why else "accent")
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
        self._detached_pipe = None
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
        start, end, old = self._start_port, self._port_at(event.scenePos()), self._detached_pipe
        place = event.scenePos()
        fits = end is not None and end is not start and self.rejection_reason(start, end) is None
        self._show_detached_edge()
        self.end_live_connection()
        if end is start or (end is None and old is None and not self._is_far(self.mapFromScene(place))):
            return
        if end is not None:
            if fits:
                self.connect_requested.emit(start, end, old)
        elif old is not None:
            self.disconnect_requested.emit(old)
        else:
            self.dropped_on_empty.emit(start, place)

    def _detach(self, pipe: EdgeItem, place: QPointF) -> None:
        """Detach the nearer end of an edge; the edge is only hidden until the drop."""
        self._pressed_pipe = None
        self._detached_pipe = pipe
        pipe.setVisible(False)
        port = pipe.port_from_pos(place, reverse=True)
        assert isinstance(port, CanvasPort)
        self.start_live_connection(port)

    def _show_detached_edge(self) -> None:
        if self._detached_pipe is not None:
            self._detached_pipe.setVisible(True)

    @property
    def detached_pipe(self) -> EdgeItem | None:
        """The edge whose end is being dragged."""
        return self._detached_pipe

    def _port_at(self, place: QPointF) -> CanvasPort | None:
        ports = [item for item in self.scene().items(place) if isinstance(item, CanvasPort)]
        if not ports:  # a drop on a card connects to its first matching port
            node = next((item for item in self.scene().items(place) if isinstance(item, NodeItem)), None)
            if node is not None and self._start_port is not None and node is not self._start_port.parentItem():
                wanted = node.outputs if self._start_port.is_input else node.inputs
                fitting = [port for port in wanted if self.rejection_reason(self._start_port, port) is None]
                return fitting[0] if fitting else (wanted[0] if wanted else None)
            return None
        return min(ports, key=lambda port: (port.middle - place).manhattanLength())


def _middle(item: QGraphicsItem) -> QPointF:
    """Return a position at which an item is hit."""
    if isinstance(item, EdgeItem):
        return item.path().pointAtPercent(0.5)
    if isinstance(item, AnnotationItem):  # a frame is hit on its title
        return item.mapToScene(item.text_rect.center())
    return item.sceneBoundingRect().center()
