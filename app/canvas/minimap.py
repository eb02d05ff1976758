"""Minimap: the whole document with the visible part marked."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

from app.canvas.canvas_style import canvas_style, pen
from app.canvas.document_view import DocumentView
from app.canvas.viewer import CanvasViewer
from app.theme.style import style
from engine.nodes.spec import Category

SIZE: Final = QSize(160, 96)
PADDING: Final = 8.0
REDRAW_DELAY_MS: Final = 100
LEAST: Final = 3.0
"""Minimum size of a card in pixels."""

STEP: Final = 48


class Minimap(QWidget):
    """Minimap; click, drag or arrow keys scroll the canvas. Hidden while everything is visible.

    Attributes:
        has_room: Whether the canvas is large enough for it.
    """

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
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REDRAW_DELAY_MS)
        self._timer.timeout.connect(self.redraw)
        view.items_changed.connect(self._later)
        viewer.view_moved.connect(self._follow)
        style().changed.connect(self._restyle)
        self._restyle()

    def redraw(self) -> None:
        """Redraw the document."""
        self._picture = QPixmap()
        self._shown = self._view.content_rect
        self.update_visibility()
        self.update()

    def update_visibility(self) -> None:
        """Show the minimap if there is room and the document exceeds the view; keep it while in use."""
        seen = self._viewer.mapToScene(self._viewer.viewport().rect()).boundingRect()
        tells = bool(self._view.nodes) and not seen.contains(self._shown)
        in_use = not self.isHidden() and (self.hasFocus() or self.underMouse())
        self.setVisible(self.has_room and (tells or in_use))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the document and a frame around the visible part."""
        if self._picture.isNull():
            self._draw()
        theme = canvas_style()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.drawPixmap(0, 0, self._picture)
        seen = self._viewer.mapToScene(self._viewer.viewport().rect()).boundingRect()
        frame = QRectF(self._to_map(seen.topLeft()), self._to_map(seen.bottomRight()))
        inside = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        painter.setPen(pen(theme.colour("accent"), 1.5))
        painter.setBrush(theme.colour("accent", 24))
        painter.drawRoundedRect(frame.intersected(inside), 3, 3)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen(theme.colour("accent"), 2.0))
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
            self._viewer.center_at(self._viewer.centre + QPointF(*step) / self._viewer.factor)

    def _follow(self) -> None:
        self.update_visibility()
        self.update()

    def _later(self) -> None:
        """Redraw after a pause: during a drag, items change too often."""
        self._timer.start()

    def _restyle(self) -> None:
        self.setFixedSize(SIZE * style().scale)
        self.redraw()

    @property
    def _scale(self) -> float:
        across = (self.width() - 2 * PADDING) / max(self._shown.width(), 1.0)
        down = (self.height() - 2 * PADDING) / max(self._shown.height(), 1.0)
        return min(across, down)

    def _to_map(self, place: QPointF) -> QPointF:
        middle = QPointF(self.width() / 2, self.height() / 2)
        return middle + (place - self._shown.center()) * self._scale

    def _to_scene(self, place: QPointF) -> QPointF:
        middle = QPointF(self.width() / 2, self.height() / 2)
        return self._shown.center() + (place - middle) / self._scale

    def _draw(self) -> None:
        theme = canvas_style()
        ratio = self.devicePixelRatioF()
        self._picture = QPixmap(self.size() * ratio)
        self._picture.setDevicePixelRatio(ratio)
        self._picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(self._picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(theme.colour("edge"), 1.0))
        painter.setBrush(theme.colour("panel"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        painter.setPen(Qt.PenStyle.NoPen)
        middle, scale = self._shown.center(), self._scale
        painter.translate(self.width() / 2, self.height() / 2)
        painter.scale(scale, scale)
        painter.translate(-middle)
        painter.setBrush(theme.colour("accent", 30))
        painter.drawRects([region.rect for region in self._view.regions.items.values()])
        least = LEAST / scale
        for category, rects in self._rects().items():
            painter.setBrush(theme.category(category))
            sizes = ((rect.x(), rect.y(), rect.width(), rect.height()) for rect in rects)
            painter.drawRects([QRectF(x, y, max(wide, least), max(high, least)) for x, y, wide, high in sizes])
        painter.end()

    def _rects(self) -> dict[Category | None, list[QRectF]]:
        """Return the cards by colour, so that each colour is painted with one call."""
        rects: dict[Category | None, list[QRectF]] = {}
        for item in self._view.nodes.values():
            rects.setdefault(item.content.category, []).append(item.card_rect)
        return rects
