"""Small diagrams of workflows for the start page.

Nodes are where the document's layout puts them, or auto layout where it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.node_layout import Box, NodePositions
from app.theme.style import UNKNOWN_ICON, icon, style
from app.theme.tokens import Theme

if TYPE_CHECKING:
    from engine.document.model import Workflow
    from engine.nodes.spec import Category

NODE_WIDTH: Final = 220.0
NODE_HEIGHT: Final = 96.0
LEAST_WIDTH: Final = 48.0
GAP: Final = 40.0


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """One node: upper left corner, category and icon."""

    x: float
    y: float
    category: Category | None
    icon: str


@dataclass(frozen=True, slots=True)
class Region:
    """A loop with all its nodes, the loop and its exit included."""

    loop: str
    exit: str
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A diagram. `edges` are unique pairs of node ids; `regions` are sorted by size, largest first."""

    boxes: dict[str, DiagramNode]
    edges: tuple[tuple[str, str], ...]
    regions: tuple[Region, ...]

    @property
    def node_width(self) -> float:
        """Width of all nodes: that of a card, or less if two nodes are close together."""
        boxes = sorted(self.boxes.values(), key=lambda box: box.x)
        apart = (
            right.x - left.x
            for at, left in enumerate(boxes)
            for right in boxes[at + 1 :]
            if abs(right.y - left.y) < NODE_HEIGHT and right.x > left.x
        )
        return max(min(min(apart, default=NODE_WIDTH + GAP) - GAP, NODE_WIDTH), LEAST_WIDTH)


def make_diagram(workflow: Workflow) -> Diagram:
    """Create the diagram of any document."""
    # Imported here to keep the start page fast.
    from engine.nodes.node_registry import builtin_registry
    from engine.plan.structure import analyse

    registry = builtin_registry()
    structure = analyse(workflow, registry)
    size = Box(NODE_WIDTH, NODE_HEIGHT)
    positions = NodePositions().of(
        workflow, structure, workflow.nodes_by_id, lambda: dict.fromkeys(workflow.nodes_by_id, size)
    )
    boxes: dict[str, DiagramNode] = {}
    for node_id, node in workflow.nodes_by_id.items():
        spec = registry.find(node.type)
        x, y = positions[node_id]
        boxes[node_id] = DiagramNode(x, y, spec.category if spec else None, spec.icon if spec else UNKNOWN_ICON)
    regions = [
        Region(body.loop, body.exit, frozenset({body.loop, body.exit, *body.nodes} & boxes.keys()))
        for body in structure.bodies.values()
    ]
    return Diagram(
        boxes,
        tuple(dict.fromkeys((link.source, link.target) for link in structure.links)),
        tuple(sorted(regions, key=lambda region: -len(region.members))),
    )


MARGIN: Final = 16
STRETCH: Final = 2.2
"""Maximum ratio of vertical to horizontal scale, so that long, flat workflows fill the picture."""
MAX_SCALE: Final = 0.34
REGION_MARGIN: Final = 8
OUT: Final = 4.0
"""How far a backward edge leaves a node before it turns."""

RETURN_ROOM: Final = 12
"""Space below a loop's nodes for the feedback arrow."""


class DiagramPicture(QWidget):
    """Widget that shows a diagram; only its background until it has one."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._diagram: Diagram | None = None
        self._pixmap: QPixmap | None = None
        self._pixmap_key: tuple[object, ...] = ()
        self.setAccessibleName(f"Picture of {title}")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Return a wide strip: workflows run from left to right."""
        return QSize(320, 152)

    @property
    def is_empty(self) -> bool:
        """Whether there is no diagram yet."""
        return self._diagram is None

    def set_diagram(self, diagram: Diagram) -> None:
        """Set the diagram."""
        self._diagram = diagram
        self._pixmap = None
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the cached diagram."""
        theme = style().theme
        ratio = self.devicePixelRatioF()
        key = (theme.name, self.size(), ratio)
        if self._pixmap is None or self._pixmap_key != key:
            self._pixmap = draw(self._diagram, theme, self.size(), ratio)
            self._pixmap_key = key
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._pixmap)
        painter.end()


def draw(diagram: Diagram | None, theme: Theme, size: QSize, ratio: float = 1.0) -> QPixmap:
    """Draw a diagram at a size in logical pixels for a device pixel ratio."""
    pixmap = QPixmap(size * ratio)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.ground))
    painter.drawRoundedRect(QRectF(0, 0, size.width(), size.height()), 6, 6)
    if diagram is not None and diagram.boxes:
        rects = node_rects(diagram, size)
        for region in diagram.regions:
            _draw_region(painter, theme, _region_area(region, rects), rects[region.loop], rects[region.exit])
        for source, target in diagram.edges:
            _draw_edge(painter, theme, rects[source], rects[target])
        for node_id, box in diagram.boxes.items():
            _draw_box(painter, theme, rects[node_id], box)
    painter.end()
    return pixmap


def node_rects(diagram: Diagram, size: QSize) -> dict[str, QRectF]:
    """Return the rectangle of each node in a picture of a size, centerd."""
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


def _region_area(region: Region, rects: dict[str, QRectF]) -> QRectF:
    area = QRectF(rects[region.loop])
    for member in region.members:
        area = area.united(rects[member])
    side = min(REGION_MARGIN, rects[region.loop].width() * 0.12)
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
    """Add lines that meet at right angles to a path, with rounded corners."""
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
    # backward to another row: between the two rows
    if end.x() < start.x() and abs(end.y() - start.y()) > source.height():
        right, left, lane = start.x() + OUT, end.x() - OUT, (start.y() + end.y()) / 2
        corners = [(right, start.y()), (right, lane), (left, lane), (left, end.y())]
        _rounded(path, [start, *(QPointF(x, y) for x, y in corners), end], OUT * 0.75)
    else:
        bend = max(abs(end.x() - start.x()) * 0.5, 6.0)
        path.cubicTo(start + QPointF(bend, 0), end - QPointF(bend, 0), end)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.outline), 1.2))
    painter.drawPath(path)


def _draw_box(painter: QPainter, theme: Theme, area: QRectF, box: DiagramNode) -> None:
    color = QColor(theme.category[box.category] if box.category is not None else theme.outline)
    radius = min(4.0, area.height() / 4)
    outline = QPainterPath()
    outline.addRoundedRect(area, radius, radius)
    painter.fillPath(outline, QColor(theme.card))
    painter.save()
    painter.setClipPath(outline)
    painter.fillRect(QRectF(area.left(), area.top(), max(2.0, area.width() * 0.07), area.height()), color)
    painter.restore()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.edge), 1))
    painter.drawPath(outline)
    side = min(area.width() * 0.6, area.height() * 0.7, 20.0)
    if side >= 8:
        mark = QRectF(0, 0, side, side)
        mark.moveCenter(area.center() + QPointF(area.width() * 0.03, 0))
        icon(box.icon, color.name()).paint(painter, mark.toAlignedRect())
