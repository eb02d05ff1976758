"""Draws a diagram of a document small, in the theme's colours, and keeps the drawing until size or theme change."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gallery.diagram import NODE_HEIGHT, Box, Diagram, Region
from app.theme.style import icon, style
from app.theme.tokens import Theme

MARGIN: Final = 16
STRETCH: Final = 2.2
"""How much more height than width a drawing may take, so that a long, flat workflow fills its picture."""
MAX_SCALE: Final = 0.34
REGION_MARGIN: Final = 8
OUT: Final = 4.0
"""How far an edge that leads back to another row goes out of a node before it turns."""

RETURN_ROOM: Final = 12
"""Room under a loop's nodes for the arrow that leads back."""


class DiagramPicture(QWidget):
    """Shows a diagram; nothing but its ground until it has one."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._diagram: Diagram | None = None
        self._kept: QPixmap | None = None
        self._kept_for: tuple[object, ...] = ()
        self.setAccessibleName(f"Picture of {title}")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """A strip that suits workflows, which run from left to right."""
        return QSize(320, 152)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw yet."""
        return self._diagram is None

    def show_diagram(self, diagram: Diagram) -> None:
        """Show another drawing."""
        self._diagram = diagram
        self._kept = None
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Put the drawing on the screen, made anew where it has to be."""
        theme = style().theme
        ratio = self.devicePixelRatioF()
        wanted = (theme.name, self.size(), ratio)
        if self._kept is None or self._kept_for != wanted:
            self._kept = draw(self._diagram, theme, self.size(), ratio)
            self._kept_for = wanted
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._kept)
        painter.end()


def draw(diagram: Diagram | None, theme: Theme, size: QSize, ratio: float = 1.0) -> QPixmap:
    """The drawing of a diagram in a size of logical pixels, for a screen with that many dots a pixel."""
    pixmap = QPixmap(size * ratio)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.ground))
    painter.drawRoundedRect(QRectF(0, 0, size.width(), size.height()), 6, 6)
    if diagram is not None and diagram.boxes:
        places = place(diagram, size)
        for region in diagram.regions:
            _draw_region(painter, theme, _region_area(region, places), places[region.loop], places[region.exit])
        for source, target in diagram.edges:
            _draw_edge(painter, theme, places[source], places[target])
        for node_id, box in diagram.boxes.items():
            _draw_box(painter, theme, places[node_id], box)
    painter.end()
    return pixmap


def place(diagram: Diagram, size: QSize) -> dict[str, QRectF]:
    """Where each node goes in a picture of that size: all of them in it, in the middle."""
    boxes, wide = diagram.boxes.values(), diagram.node_width
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    width = max(box.x for box in boxes) + wide - left
    height = max(box.y for box in boxes) + NODE_HEIGHT - top
    around = MARGIN + (REGION_MARGIN if diagram.regions else 0)
    room_below = RETURN_ROOM if diagram.regions else 0
    across = min((size.width() - 2 * MARGIN) / width, MAX_SCALE)
    down = min((size.height() - 2 * around - room_below) / height, across * STRETCH)
    left_margin = (size.width() - width * across) / 2
    top_margin = (size.height() - room_below - height * down) / 2
    return {
        node_id: QRectF(
            left_margin + (box.x - left) * across,
            top_margin + (box.y - top) * down,
            wide * across,
            NODE_HEIGHT * down,
        )
        for node_id, box in diagram.boxes.items()
    }


def _region_area(region: Region, places: dict[str, QRectF]) -> QRectF:
    area = QRectF(places[region.loop])
    for member in region.members:
        area = area.united(places[member])
    side = min(REGION_MARGIN, places[region.loop].width() * 0.12)
    return area.adjusted(-side, -REGION_MARGIN, side, REGION_MARGIN + RETURN_ROOM)


def _draw_region(painter: QPainter, theme: Theme, area: QRectF, loop: QRectF, exit_: QRectF) -> None:
    tint, border = QColor(theme.accent), QColor(theme.accent)
    tint.setAlphaF(0.10)
    border.setAlphaF(0.55)
    painter.setBrush(tint)
    painter.setPen(QPen(border, 1))
    painter.drawRoundedRect(area, 6, 6)
    base = area.bottom() - RETURN_ROOM * 0.6
    path = QPainterPath(QPointF(exit_.center().x(), exit_.bottom()))
    corners = [QPointF(exit_.center().x(), base), QPointF(loop.center().x(), base)]
    tip = QPointF(loop.center().x(), loop.bottom() + 2)
    _rounded(path, [path.currentPosition(), *corners, tip])
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.accent), 1.4, Qt.PenStyle.DashLine, Qt.PenCapStyle.FlatCap))
    painter.drawPath(path)
    painter.setPen(QPen(QColor(theme.accent), 1.4))
    painter.drawPolyline(QPolygonF([tip + QPointF(-3, 4), tip, tip + QPointF(3, 4)]))


def _rounded(path: QPainterPath, points: list[QPointF], radius: float = 6.0) -> None:
    """Lead a path through points whose lines meet at right angles, with round corners."""
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        room = min(radius, *(abs((b - a).manhattanLength()) / 2 for a, b in pairwise((before, corner, after))))
        path.lineTo(_towards(corner, before, room))
        path.quadTo(corner, _towards(corner, after, room))
    path.lineTo(points[-1])


def _towards(start: QPointF, end: QPointF, distance: float) -> QPointF:
    length = (end - start).manhattanLength()
    return start + (end - start) * (distance / length) if length else start


def _draw_edge(painter: QPainter, theme: Theme, source: QRectF, target: QRectF) -> None:
    start = QPointF(source.right(), source.center().y())
    end = QPointF(target.left(), target.center().y())
    path = QPainterPath(start)
    if end.x() < start.x() and abs(end.y() - start.y()) > source.height():  # back to another row: between the two
        right, left, lane = start.x() + OUT, end.x() - OUT, (start.y() + end.y()) / 2
        corners = [(right, start.y()), (right, lane), (left, lane), (left, end.y())]
        _rounded(path, [start, *(QPointF(x, y) for x, y in corners), end], OUT * 0.75)
    else:
        bend = max(abs(end.x() - start.x()) * 0.5, 6.0)
        path.cubicTo(start + QPointF(bend, 0), end - QPointF(bend, 0), end)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.outline), 1.2))
    painter.drawPath(path)


def _draw_box(painter: QPainter, theme: Theme, area: QRectF, box: Box) -> None:
    colour = QColor(theme.category[box.category] if box.category is not None else theme.outline)
    radius = min(4.0, area.height() / 4)
    outline = QPainterPath()
    outline.addRoundedRect(area, radius, radius)
    painter.fillPath(outline, QColor(theme.card))
    painter.save()
    painter.setClipPath(outline)
    painter.fillRect(QRectF(area.left(), area.top(), max(2.0, area.width() * 0.07), area.height()), colour)
    painter.restore()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.edge), 1))
    painter.drawPath(outline)
    side = min(area.width() * 0.6, area.height() * 0.7, 20.0)
    if side >= 8:
        mark = QRectF(0, 0, side, side)
        mark.moveCenter(area.center() + QPointF(area.width() * 0.03, 0))
        icon(box.icon, colour.name()).paint(painter, mark.toAlignedRect())
