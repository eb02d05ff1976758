"""Edge items: Bézier curves between ports, and the dots that move along them during a run."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainterPath
from PySide6.QtWidgets import (
    QGraphicsEllipseItem,
    QGraphicsItem,
    QGraphicsPathItem,
    QGraphicsScene,
    QGraphicsSceneHoverEvent,
)

from app.canvas.canvas_style import canvas_style, pen
from app.canvas.node_item import CanvasPort
from app.canvas.nodegraphqt_imports import INPUT, PipeItem

WIDTH: Final = 2.0
REST_ALPHA: Final = 170
SHORTEST_ARM: Final = 32.0
LONGEST_ARM: Final = 160.0
LEAST_LANE: Final = 96.0
"""Vertical distance from which a backward edge runs in the lane between two rows of cards."""

OUT: Final = 16.0
"""How far such an edge leaves a card before it turns."""

TURN: Final = 12.0

_SELECTABLE: Final = QGraphicsItem.GraphicsItemFlag.ItemIsSelectable
_SOLID: Final = Qt.PenStyle.SolidLine
_DASHED: Final = Qt.PenStyle.DashLine


class EdgeFlow(Enum):
    """What an edge did in the displayed run."""

    NONE = "none"
    CARRIED = "carried"
    DEAD = "dead"


def edge_path(start: QPointF, end: QPointF) -> QPainterPath:
    """Return the path of an edge from an output at `start` to an input at `end`."""
    left, top, right, bottom = start.x(), start.y(), end.x(), end.y()
    across, down = right - left, bottom - top
    if across < 0 and abs(down) >= LEAST_LANE:
        return _round_the_corner(start, end)
    if across >= 0:
        arm = min(max(across / 2, SHORTEST_ARM), LONGEST_ARM)
    else:  # backward: swing out further to stay visible beside the cards
        arm = min(max(-across / 3, 2 * SHORTEST_ARM), 2 * LONGEST_ARM)
    path = QPainterPath(start)
    path.cubicTo(left + arm, top, right - arm, bottom, right, bottom)
    return path


def _round_the_corner(start: QPointF, end: QPointF) -> QPainterPath:
    """Route a backward edge to another row through the lane between the two rows."""
    right, left, lane = start.x() + OUT, end.x() - OUT, (start.y() + end.y()) / 2
    bend = TURN if end.y() > start.y() else -TURN
    path = QPainterPath(start)
    path.lineTo(right - TURN, start.y())
    path.quadTo(right, start.y(), right, start.y() + bend)
    path.lineTo(right, lane - bend)
    path.quadTo(right, lane, right - TURN, lane)
    path.lineTo(left + TURN, lane)
    path.quadTo(left, lane, left, lane + bend)
    path.lineTo(left, end.y() - bend)
    path.quadTo(left, end.y(), left + TURN, end.y())
    path.lineTo(end)
    return path


class EdgeItem(PipeItem):
    """Item of an edge.

    Attributes:
        flow: What the edge did in the displayed run.
    """

    # Painting and change notifications in Python are too slow for thousands of edges.
    paint = QGraphicsPathItem.paint  # pyright: ignore[reportAssignmentType]
    itemChange = QGraphicsPathItem.itemChange  # noqa: N815  # pyright: ignore[reportAssignmentType]

    def __init__(self) -> None:
        QGraphicsPathItem.__init__(self)
        self.setZValue(-1)
        self.setAcceptHoverEvents(True)
        self.setFlag(_SELECTABLE)
        self._input_port: CanvasPort | None = None
        self._output_port: CanvasPort | None = None
        self._active = self._highlight = False
        self.hovered = False
        self.is_target = False
        self.flow = EdgeFlow.NONE

    def join(self, output: CanvasPort, input_: CanvasPort) -> None:
        """Attach the edge to an output and an input."""
        self._output_port, self._input_port = output, input_
        output.add_pipe(self)
        input_.add_pipe(self)

    @property
    def ports(self) -> tuple[CanvasPort, CanvasPort]:
        """Output and input port."""
        assert self._output_port is not None
        assert self._input_port is not None
        return self._output_port, self._input_port

    @property
    def ends(self) -> tuple[str, str]:
        """The ends as in the document: from and to."""
        output, input_ = self.ports
        return output.end, input_.end

    def disabled(self) -> bool:
        """Whether a node at one end is disabled."""
        return any(port.is_disabled for port in self.ports)

    def redraw(self) -> None:
        """Update the path from the ports' positions."""
        output, input_ = self.ports
        self.setPath(edge_path(output.middle, input_.middle))

    def draw_path(self, start_port: Any, end_port: Any = None, cursor_pos: Any = None) -> None:
        """Update the path; called by the base classes."""
        self.redraw()

    def restyle(self) -> None:
        """Set the pen for the current state."""
        output, input_ = self.ports
        look = canvas_style()
        own = look.theme.port[output.content.type]
        known = output.content.known and input_.content.known
        color, alpha, width, line = own if known else "bad", REST_ALPHA, WIDTH, _SOLID if known else _DASHED
        if self.disabled() or self.flow is EdgeFlow.DEAD:
            color, alpha, line = "dim", 120, _DASHED
        elif self.flow is EdgeFlow.CARRIED:
            color, alpha = own, 255
        if self.isSelected() or self.is_target:
            color, alpha, width = "accent", 255, 3.0
        elif self.hovered:
            color, alpha, width = own, 255, 3.0
        self.setPen(look.pen(color, alpha, width, line))

    def set_flow(self, flow: EdgeFlow) -> None:
        """Show what the edge did."""
        if flow is not self.flow:
            self.flow = flow
            self.restyle()

    def set_target(self, is_target: bool) -> None:
        """Highlight the edge as drop target of a dragged node."""
        if is_target is not self.is_target:
            self.is_target = is_target
            self.restyle()

    def reset(self) -> None:
        """Remove highlights; called by the base classes."""
        self.restyle()

    def hoverEnterEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Highlight the edge."""
        self.hovered = True
        self.restyle()
        event.accept()

    def hoverLeaveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Remove the highlight."""
        self.hovered = False
        self.restyle()
        event.accept()


class LiveEdgeItem(EdgeItem):
    """The edge that follows the mouse while the user draws one."""

    def __init__(self) -> None:
        super().__init__()
        self.setZValue(20)
        self.setAcceptHoverEvents(False)
        self.setFlag(_SELECTABLE, enabled=False)
        self.setVisible(False)
        self.shift_selected = False

    def draw_path(
        self,
        start_port: CanvasPort,
        end_port: Any = None,
        cursor_pos: QPointF | None = None,
        color: str | None = None,
    ) -> None:
        """Route the edge from a port to the mouse; `color` is a name in the theme."""
        if cursor_pos is None:
            return
        ends = (cursor_pos, start_port.middle) if start_port.port_type == INPUT else (start_port.middle, cursor_pos)
        self.setPath(edge_path(*ends))
        self.setPen(pen(canvas_style().color(color or "accent"), 2.5, Qt.PenStyle.DashLine))

    def draw_index_pointer(self, start_port: CanvasPort, cursor_pos: QPointF, color: str | None = None) -> None:
        """Route the edge; called by the viewer at the start. No pointer is drawn beside the mouse."""
        self.draw_path(start_port, None, cursor_pos, color)

    def reset_path(self) -> None:
        """Clear the path."""
        self.setPath(QPainterPath())


RADIUS: Final = 4.5
TICKS: Final = 16
"""Number of timer ticks for one dot."""

MOST: Final = 40
"""Maximum number of dots at once."""


class EdgeAnimation:
    """The dots that move along the edges of one canvas."""

    def __init__(self, scene: QGraphicsScene) -> None:
        self._scene = scene
        self._dots: list[tuple[QGraphicsEllipseItem, QPainterPath, int]] = []

    @property
    def is_moving(self) -> bool:
        """Whether any dot is moving."""
        return bool(self._dots)

    def start(self, path: QPainterPath) -> None:
        """Start a dot along a path."""
        if len(self._dots) >= MOST or path.isEmpty():
            return
        dot = QGraphicsEllipseItem(QRectF(-RADIUS, -RADIUS, 2 * RADIUS, 2 * RADIUS))
        dot.setBrush(canvas_style().color("accent"))
        dot.setPen(Qt.PenStyle.NoPen)
        dot.setZValue(0.5)
        dot.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        dot.setPos(path.pointAtPercent(0))
        self._scene.addItem(dot)
        self._dots.append((dot, path, 0))

    def advance(self) -> None:
        """Advance all dots by one tick; remove those that have arrived."""
        on_their_way: list[tuple[QGraphicsEllipseItem, QPainterPath, int]] = []
        for dot, path, ticks in self._dots:
            if ticks >= TICKS:
                self._scene.removeItem(dot)
            else:
                dot.setPos(path.pointAtPercent(_eased((ticks + 1) / TICKS)))
                on_their_way.append((dot, path, ticks + 1))
        self._dots = on_their_way

    def clear(self) -> None:
        """Remove all dots."""
        for dot, _, _ in self._dots:
            self._scene.removeItem(dot)
        self._dots = []


def _eased(share: float) -> float:
    """Smoothstep easing."""
    return share * share * (3 - 2 * share)
