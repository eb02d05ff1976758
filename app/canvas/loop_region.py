"""Draw a loop: the tinted region of its body, the feedback arrow, and the label on its upper edge.

During a run, the label shows the iterations as dots, and their cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath, QPolygonF
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsScene,
    QGraphicsSceneHoverEvent,
    QGraphicsSceneMouseEvent,
    QStyleOptionGraphicsItem,
    QWidget,
)

from app.canvas.canvas_style import (
    MIN_TEXT_PIXELS,
    canvas_style,
    fonts,
    icon_path,
    legible_scale,
    pen,
    rect_around,
    small_width,
    united,
    zoom_from_scale,
    zoom_of_view,
)
from app.canvas.node_item import LodItem, NodeItem
from app.session import Session
from app.theme.style import elide
from app.theme.tokens import FONT_SIZE_SMALL
from app.timers import call_later
from engine.document.model import Workflow
from engine.nodes.spec import ITERATOR
from engine.plan.loop_bodies import Body

LABEL_HEIGHT: Final = 24.0
BUTTON_WIDTH: Final = 22.0
DOT_RADIUS: Final = 5.0
DOT_STEP: Final = 16.0
LABEL_SMALL_BELOW: Final = 0.45
"""Below this zoom, the label shows the title only."""

LABEL_LARGEST_TEXT: Final = 34.0
LABEL_MAX_ENLARGEMENT: Final = 2.0
"""Maximum enlargement of the label when zoomed out; more would cover cards."""

MAX_DOTS: Final = 12
"""Maximum number of dots; loops with more iterations show those around the selected one."""


Choose = Callable[[str, int], None]
Select = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LoopViewModel:
    """Content of the label.

    Attributes:
        title: Title of the loop.
        counter: `iteration 3 of 5`, or empty before the first run.
        total: Maximum number of iterations.
        done: Number of completed iterations.
        current: Index of the running or last iteration; -1 before the first.
        shown: Index of the displayed iteration.
        returned: Index of the iteration whose result the loop returned; None while it is running.
        cost: Formatted cost.
        unit: `iteration`, or `item` of an iterator.
        ended_ahead: Items that completed before earlier ones.
        failed: Items that failed.
    """

    title: str
    counter: str = ""
    total: int = 0
    done: int = 0
    current: int = -1
    shown: int = -1
    returned: int | None = None
    cost: str = ""
    unit: str = "iteration"
    ended_ahead: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()

    @property
    def short_counter(self) -> str:
        """`3 / 5` for the displayed iteration, or empty."""
        return f"{self.shown + 1} / {self.total}" if self.total else ""

    def dot_tooltip(self, index: int) -> str:
        """Return the tooltip of a dot."""
        return f"{self.unit.capitalize()} {index + 1}{', failed' if index in self.failed else ''}"


class LoopLabelItem(QGraphicsItem):
    """The label; a click on a dot shows its iteration, one on the button at its end collapses the loop.

    Attributes:
        choose: Called with loop id and index of a clicked dot.
        select: Called with the loop id when the label is pressed elsewhere.
        collapse: Called with the loop id when the button is clicked, or the label is double-clicked.
        content: The content.
        icon: Name of its icon.
    """

    def __init__(self, loop_id: str, choose: Choose, select: Select, collapse: Select, region: QGraphicsItem) -> None:
        super().__init__(region)
        self.loop_id = loop_id
        self.content = LoopViewModel("")
        self.icon = "mdi6.autorenew"
        self.choose, self.select, self.collapse = choose, select, collapse
        self._room = 0.0
        self._width = 0.0
        self._title = ""
        self._hovered = -1
        self._is_on_button = self._is_button_pressed = False
        self.setZValue(3)
        self.setAcceptHoverEvents(True)
        self.setAcceptedMouseButtons(Qt.MouseButton.LeftButton)

    def set_content(self, content: LoopViewModel) -> None:
        """Update the content; repaints only if it differs."""
        if content != self.content:
            self.content = content
            if self._room:  # else it has no place yet
                self._fit()
            self.update()

    def set_room(self, room: float) -> None:
        """Set the maximum width."""
        if room != self._room:
            self._room = room
            self._fit()

    def _fit(self) -> None:
        self.prepareGeometryChange()
        used, content = fonts(), self.content
        rest = 32 + self._counter_width + self._dots_width + self._cost_width + BUTTON_WIDTH
        self._title = elide(used.bold_metrics, content.title, max(self._room - rest, 48))
        self._width = used.bold_metrics.horizontalAdvance(self._title) + rest

    def boundingRect(self) -> QRectF:
        """Return the label's rectangle."""
        above = LABEL_MAX_ENLARGEMENT * LABEL_HEIGHT / 2 + 1
        return QRectF(-1, -above, max(self._width, self._room) + 2, above + LABEL_LARGEST_TEXT + 8)

    def shape(self) -> QPainterPath:
        """Return the clickable area."""
        path, grown = QPainterPath(), self._growth(self._zoom)
        path.addRect(QRectF(0, -LABEL_HEIGHT / 2 * grown, min(self._width * grown, self._room), LABEL_HEIGHT * grown))
        return path

    def dots(self) -> range:
        """Return the iterations that have a dot."""
        content = self.content
        total = max(content.total, content.current + 1)
        if total <= MAX_DOTS:
            return range(total)
        middle = content.shown if content.shown >= 0 else max(content.current, 0)
        first = min(max(middle - MAX_DOTS // 2, 0), total - MAX_DOTS)
        return range(first, first + MAX_DOTS)

    def dot(self, index: int) -> QPointF:
        """Return the center of a dot at 100 %."""
        left = 28 + fonts().bold_metrics.horizontalAdvance(self._title) + self._counter_width + 8
        return QPointF(left + (index - self.dots().start + 0.5) * DOT_STEP, 0)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the label."""
        theme, used, content = canvas_style(), fonts(), self.content
        zoom = zoom_from_scale(option.levelOfDetailFromTransform(painter.worldTransform()))
        if zoom < LABEL_SMALL_BELOW:
            self._paint_small(painter, zoom)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.scale(self._growth(zoom), self._growth(zoom))
        body = QRectF(0, -LABEL_HEIGHT / 2, self._width, LABEL_HEIGHT)
        painter.setPen(pen(theme.color("accent", 140), 1.0))
        painter.setBrush(theme.color("panel"))
        painter.drawRoundedRect(body, 8, 8)
        painter.save()
        painter.translate(8, -7)
        painter.fillPath(icon_path(self.icon, 14), theme.color("accent"))
        painter.restore()
        painter.setFont(used.small_bold)
        painter.setPen(theme.color("accent"))
        text = self._title + (f" · {content.counter}" if content.counter else "")
        painter.drawText(body.adjusted(28, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)
        for index in self.dots():
            self._paint_dot(painter, index)
        if content.cost:
            painter.setFont(used.small)
            painter.setPen(theme.color("dim"))
            right = body.adjusted(0, 0, -BUTTON_WIDTH - 4, 0)
            painter.drawText(right, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, content.cost)
        painter.translate(self._width - BUTTON_WIDTH + 4, -7)
        painter.fillPath(icon_path("mdi6.arrow-collapse", 14), theme.color("accent" if self._is_on_button else "dim"))

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Show the iteration of the dot under the mouse, if it has begun; elsewhere, select the whole loop."""
        index = self._index_at(event.pos()) if self._zoom >= LABEL_SMALL_BELOW else -1
        self._is_button_pressed = self._is_at_button(event.pos())
        if index < 0:
            self.select(self.loop_id)
        elif index <= self.content.current:
            self.choose(self.loop_id, index)
        event.accept()

    def mouseReleaseEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Collapse the loop after a click on the button."""
        if self._is_button_pressed and self._is_at_button(event.pos()):
            call_later(self.scene(), partial(self.collapse, self.loop_id))  # this item is removed with its region

    def mouseMoveEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Drag the selected cards."""
        by = event.scenePos() - event.lastScenePos()
        for item in self.scene().selectedItems():
            if isinstance(item, NodeItem):
                item.moveBy(by.x(), by.y())

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Show the dot's tooltip."""
        self._hovered, self._is_on_button = self._index_at(event.pos()), self._is_at_button(event.pos())
        tip = "Collapse" if self._is_on_button else ""
        self.setToolTip(self.content.dot_tooltip(self._hovered) if self._hovered >= 0 else tip)
        self.update()

    def hoverLeaveEvent(self, _event: QGraphicsSceneHoverEvent) -> None:
        """Remove the highlight."""
        self._hovered, self._is_on_button = -1, False
        self.update()

    def _is_at_button(self, position: QPointF) -> bool:
        across = position.x() / self._growth(self._zoom)
        return self._zoom >= LABEL_SMALL_BELOW and self._width - BUTTON_WIDTH <= across <= self._width

    @property
    def _zoom(self) -> float:
        """Zoom of the view."""
        return zoom_of_view(self)

    def _growth(self, zoom: float) -> float:
        """Return the enlargement that keeps the label legible and within its region."""
        most = min(LABEL_MAX_ENLARGEMENT, self._room / self._width) if self._width else 1.0
        return legible_scale(FONT_SIZE_SMALL, zoom, max(most, 1.0)) if zoom >= LABEL_SMALL_BELOW else 1.0

    @property
    def _counter_width(self) -> float:
        return fonts().bold_metrics.horizontalAdvance(f" · {self.content.counter}") if self.content.counter else 0.0

    @property
    def _dots_width(self) -> float:
        return len(self.dots()) * DOT_STEP + 8 if self.content.total else 0.0

    @property
    def _cost_width(self) -> float:
        return fonts().small_metrics.horizontalAdvance(self.content.cost) + 8 if self.content.cost else 0.0

    def _index_at(self, position: QPointF) -> int:
        across = position.x() / self._growth(self._zoom)
        return next((index for index in self.dots() if abs(self.dot(index).x() - across) <= DOT_STEP / 2), -1)

    def _paint_small(self, painter: QPainter, zoom: float) -> None:
        size = min(MIN_TEXT_PIXELS / zoom, LABEL_LARGEST_TEXT)
        if size * zoom < 6:  # illegible
            return
        font = QFont(fonts().small_bold)
        font.setPixelSize(round(size))
        metrics, height, inset = QFontMetricsF(font), size * 1.25, size / 3
        text = " · ".join(filter(None, (self.content.title, self.content.short_counter)))
        text = elide(metrics, text, self._room - 2 * inset)
        # On the upper edge: inside, the status of the first cards would cover it.
        body = QRectF(0, -height / 2, metrics.horizontalAdvance(text) + 2 * inset, height)
        theme = canvas_style()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(theme.color("accent", 140), 1.0))
        painter.setBrush(theme.color("panel"))
        painter.drawRoundedRect(body, height / 4, height / 4)
        painter.setFont(font)
        painter.setPen(theme.color("accent"))
        painter.drawText(body, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_dot(self, painter: QPainter, index: int) -> None:
        """Paint a dot: filled if completed, a cross if failed, a ring if running, small if pending."""
        theme, content, middle = canvas_style(), self.content, self.dot(index)
        radius = DOT_RADIUS if index != self._hovered or index > content.current else DOT_RADIUS + 1
        painter.setPen(Qt.PenStyle.NoPen)
        if index in content.failed:
            painter.setPen(pen(theme.color("bad"), 2.0))
            for diagonal in (QPointF(3.5, 3.5), QPointF(3.5, -3.5)):
                painter.drawLine(middle - diagonal, middle + diagonal)
        elif index < content.done or index in content.ended_ahead:
            painter.setBrush(theme.color("good" if index == content.returned else "accent"))
            painter.drawEllipse(middle, radius - 0.5, radius - 0.5)
        elif index == content.current or (content.unit == "item" and index < content.current):
            painter.setBrush(theme.color("accent", 70))
            painter.setPen(pen(theme.color("accent"), 1.5))
            painter.drawEllipse(middle, radius - 1, radius - 1)
        else:
            painter.setBrush(theme.color("dim", 120))
            painter.drawEllipse(middle, 2.5, 2.5)
        if index == content.shown:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen(theme.color("text"), 1.5))
            painter.drawEllipse(middle, radius + 2, radius + 2)


SIDE: Final = 24.0
TOP: Final = 40.0
LANE: Final = 28.0
"""Distance of the arrow below the lowest card."""

BELOW_LANE: Final = 24.0
ARROW_LABEL_FROM: Final = 0.5
"""Below this zoom, the arrow has no label."""

ARROW_MAX_ENLARGEMENT: Final = 1.6
"""Maximum enlargement of that label when zoomed out."""

CORNER: Final = 16.0
ARROW: Final = 7.0
OUTERMOST: Final = -60.0


def background_alpha() -> int:
    """Return the alpha value of a region's background."""
    return 16 if canvas_style().is_light else 20


class LoopRegionItem(QGraphicsItem):
    """Region of one loop.

    Attributes:
        loop_id: Id of the loop node.
        depth: Number of regions around it.
        rect: The region in scene coordinates.
        label: The label on its upper edge.
        arrow: Path of the feedback arrow, from the exit to the loop.
        arrow_label: Its label.
    """

    def __init__(self, loop_id: str, depth: int, choose: Choose, select: Select, collapse: Select) -> None:
        super().__init__()
        self.loop_id = loop_id
        self.depth = depth
        self.rect = QRectF()
        self.arrow = QPainterPath()
        self.arrow_label = ""
        self._head = QPolygonF()
        self._arrow_label_rect = QRectF()
        self._bounds = QRectF()
        self._max_enlargement = 1.0
        self._is_target = False
        self._placed: tuple[QRectF, QRectF, QRectF, str] | None = None
        self.setZValue(OUTERMOST + depth)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.label = LoopLabelItem(loop_id, choose, select, collapse, self)

    def place(self, content: QRectF, start: NodeItem, end: NodeItem, arrow_label: str) -> None:
        """Fit the region around cards and inner regions.

        Args:
            content: Bounding rectangle of the cards, including loop and exit.
            start: The loop's card.
            end: The exit's card.
            arrow_label: Label of the feedback arrow.
        """
        from_, to = end.card_rect, start.card_rect
        before, self._placed = self._placed, (content, from_, to, arrow_label)
        if before == self._placed:
            return
        self.prepareGeometryChange()
        self.rect = rect = content.adjusted(-SIDE, -TOP, SIDE, LANE + BELOW_LANE)
        self._bounds = rect.adjusted(-2, -2, 2, 2)
        self.arrow_label = arrow_label
        lane = content.bottom() + LANE
        self._route(QPointF(from_.center().x(), from_.bottom()), QPointF(to.center().x(), to.bottom()), lane)
        self.label.setPos(rect.left() + CORNER, rect.top())
        self.label.set_room(rect.width() - 2 * CORNER)
        self.update()

    def set_target(self, target: bool) -> None:
        """Highlight the region while a drop would put a card into its loop."""
        if target is not self._is_target:
            self._is_target = target
            self.update()

    def boundingRect(self) -> QRectF:
        """Return the region with its border."""
        return self._bounds

    def shape(self) -> QPainterPath:
        """Return an empty shape: the mouse passes through."""
        return QPainterPath()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint background and feedback arrow."""
        theme = canvas_style()
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(theme.color("accent", 255 if self._is_target else 110), 2.0 if self._is_target else 1.0))
        painter.setBrush(theme.color("accent", background_alpha() * (2 if self._is_target else 1)))
        painter.drawRoundedRect(self.rect, CORNER, CORNER)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(pen(theme.color("accent", 220), 2.0, Qt.PenStyle.DashLine))
        painter.drawPath(self.arrow)
        if scale < 0.2:
            return
        painter.setPen(pen(theme.color("accent"), 2.0))
        painter.drawPolyline(self._head)
        zoom = zoom_from_scale(scale)
        if zoom >= ARROW_LABEL_FROM and not self._arrow_label_rect.isNull():
            middle, grown = self._arrow_label_rect.center(), legible_scale(FONT_SIZE_SMALL, zoom, self._max_enlargement)
            painter.translate(middle)
            painter.scale(grown, grown)
            painter.translate(-middle)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("ground"))
            painter.drawRoundedRect(self._arrow_label_rect, 6, 6)
            painter.setBrush(theme.color("accent", background_alpha()))
            painter.drawRoundedRect(self._arrow_label_rect, 6, 6)
            painter.setFont(fonts().small)
            painter.setPen(theme.color("accent"))
            painter.drawText(self._arrow_label_rect, Qt.AlignmentFlag.AlignCenter, self.arrow_label)

    def _route(self, start: QPointF, end: QPointF, lane: float) -> None:
        """Route the arrow from the exit down to its lane and up to the loop."""
        path = QPainterPath(start)
        turn = max(min(CORNER, lane - start.y(), lane - end.y(), abs(start.x() - end.x()) / 2), 0.0)
        direction = -1 if end.x() < start.x() else 1
        path.lineTo(start.x(), lane - turn)
        path.quadTo(start.x(), lane, start.x() + direction * turn, lane)
        path.lineTo(end.x() - direction * turn, lane)
        path.quadTo(end.x(), lane, end.x(), lane - turn)
        path.lineTo(end.x(), end.y() + 4)
        self.arrow = path
        tip = QPointF(end.x(), end.y() + 3)
        self._head = QPolygonF([tip + QPointF(-ARROW, ARROW), tip, tip + QPointF(ARROW, ARROW)])
        width = small_width(self.arrow_label) + 16
        room = abs(start.x() - end.x()) - 2 * turn
        self._max_enlargement = min(ARROW_MAX_ENLARGEMENT, max(room / width, 1.0))
        left = (start.x() + end.x() - width) / 2
        self._arrow_label_rect = QRectF(left, lane - 10, width, 20) if room > width else QRectF()


class RegionLodItem(LodItem):
    """Level-of-detail item of all regions."""

    def __init__(self, regions: Mapping[str, LoopRegionItem]) -> None:
        super().__init__(OUTERMOST)
        self._regions = regions
        self._rects: list[QRectF] = []
        self._arrows: list[QPainterPath] = []

    def set_active(self, active: bool) -> None:
        """Paint instead of the region items, or let them paint again."""
        super().set_active(active)
        for item in self._regions.values():
            self.show_region(item)

    def show_region(self, item: LoopRegionItem) -> None:
        """Let a region item paint itself, or hide its contents while this item is active."""
        item.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, enabled=self.isVisible())
        item.label.setVisible(not self.isVisible())

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint all backgrounds, outer ones first, and all arrows."""
        theme = canvas_style()
        if self._is_stale:
            self._gather()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.setPen(Qt.PenStyle.NoPen)  # the border would be thinner than a pixel
        painter.setBrush(theme.color("accent", background_alpha()))
        painter.drawRects(self._rects)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(pen(theme.color("accent", 220), 2.0, Qt.PenStyle.DashLine))
        for arrow in self._arrows:
            painter.drawPath(arrow)

    def _gather(self) -> None:
        self._is_stale = False
        regions = sorted(self._regions.values(), key=lambda region: region.depth)
        self._rects = [region.rect for region in regions]
        self._arrows = [region.arrow for region in regions]


_FEEDBACK_LABELS: Final = {
    "replace": "feedback: replace",
    "append": "feedback: append",
    "append_window": "feedback: append last few",
}


class LoopRegions:
    """The loop regions of one document.

    Attributes:
        items: The regions by the loop's id.
        lod_item: The level-of-detail item.
        collapse_requested: Called with the id of a loop that should be collapsed.
    """

    def __init__(self, session: Session, scene: QGraphicsScene, cards: Mapping[str, NodeItem]) -> None:
        self._session, self._scene, self._cards = session, scene, cards
        self.items: dict[str, LoopRegionItem] = {}
        self.collapse_requested: Select = lambda _loop: None
        self.lod_item = RegionLodItem(self.items)
        scene.addItem(self.lod_item)
        self._members: dict[str, tuple[list[str], list[str]]] = {}
        self._parent: dict[str, str] = {}
        self._left_out: frozenset[str] = frozenset()

    def refresh(self, workflow: Workflow) -> None:
        """Update regions from the document's structure."""
        structure, bodies = self._session.structure, self.remove_stale()
        self._parent = {node: loop for node, loop in structure.parent.items() if loop in bodies}
        self._parent |= {body.exit: self._parent[loop] for loop, body in bodies.items() if loop in self._parent}
        self._members = {loop: ([loop, body.exit], []) for loop, body in bodies.items()}
        for node, loop in self._parent.items():
            if node in self._cards:
                self._members[loop][0].append(node)
            if node in bodies:
                self._members[loop][1].append(node)
        for loop in bodies:
            if loop not in self.items:
                self._add(loop)
            self._label(loop, workflow)
        self._place(bodies)

    def remove_stale(self) -> dict[str, Body]:
        """Remove the regions of loops without cards, and return the bodies of all others."""
        bodies = self._session.structure.bodies
        shown = {loop: body for loop, body in bodies.items() if loop in self._cards and body.exit in self._cards}
        for loop in self.items.keys() - shown.keys():
            self._scene.removeItem(self.items.pop(loop))
        self.lod_item.refresh()
        return shown

    def relabel(self, node_ids: Iterable[str], workflow: Workflow) -> None:
        """Update titles and labels of the loops among these nodes."""
        loops = [node_id for node_id in node_ids if node_id in self.items]
        for loop in loops:
            self._label(loop, workflow)
        self._place(loops)

    def update_moved(self, node_ids: Iterable[str]) -> None:
        """Update the regions around moved nodes."""
        affected: set[str] = set()
        waiting = [loop for node_id in node_ids for loop in (self._loop_at(node_id), self._parent.get(node_id))]
        while waiting:
            loop = waiting.pop()
            if loop is not None and loop not in affected:
                affected.add(loop)
                waiting.append(self._parent.get(loop))
        if affected:
            self._place(affected)

    def leave_out(self, node_ids: frozenset[str]) -> None:
        """Draw regions without these nodes, which are being dragged out of their loop."""
        if node_ids != self._left_out:
            changed = self._left_out | node_ids
            self._left_out = node_ids
            self.update_moved(changed)

    def highlight(self, loop: str | None) -> None:
        """Highlight the region of the loop that a dragged card would become part of."""
        for other, item in self.items.items():
            item.set_target(other == loop)

    def depth(self, loop: str) -> int:
        """Return the number of regions around a loop's."""
        seen = [loop]
        while (outer := self._parent.get(seen[-1])) is not None and outer not in seen:
            seen.append(outer)
        return len(seen) - 1

    def innermost_at(self, position: QPointF) -> str | None:
        """Return the loop whose region contains a position, the innermost of several; None outside of all."""
        around = [loop for loop, item in self.items.items() if item.rect.contains(position)]
        return max(around, key=self.depth, default=None)

    def bottom_at(self, position: QPointF) -> float:
        """Return the lower edge of all regions that contain a position."""
        return max(item.rect.bottom() for item in self.items.values() if item.rect.contains(position))

    def _loop_at(self, node_id: str) -> str | None:
        if node_id in self.items:
            return node_id
        loop = self._session.structure.loop_of.get(node_id)
        return loop if loop in self.items else None

    def _add(self, loop: str) -> None:
        item = LoopRegionItem(loop, self.depth(loop), self._session.shown.look_at, self._select, self._collapse)
        self.lod_item.show_region(item)
        self._scene.addItem(item)
        self.items[loop] = item

    def _collapse(self, loop_id: str) -> None:
        self.collapse_requested(loop_id)

    def _select(self, loop_id: str) -> None:
        """Select a loop with its body and its exit."""
        body = self._session.structure.bodies.get(loop_id)
        if body is not None:
            members = [body.loop, *sorted(body.nodes), body.exit]
            self._session.select([node_id for node_id in members if node_id in self._cards])

    def _label(self, loop: str, workflow: Workflow) -> None:
        node = workflow.nodes_by_id.get(loop)
        item = self.items[loop]
        spec = self._session.registry.find(node.type) if node is not None else None
        if spec is not None:
            item.label.icon = spec.icon
        title = self._cards[loop].content.title if node is not None else loop
        item.label.set_content(replace(item.label.content, title=title))

    def _place(self, loops: Iterable[str]) -> None:
        """Place inner regions before outer ones."""
        structure = self._session.structure
        for loop in sorted(loops, key=self.depth, reverse=True):
            body = structure.bodies.get(loop)
            item = self.items.get(loop)
            if item is None or body is None or loop not in self._cards or body.exit not in self._cards:
                continue
            members, inner = self._members[loop]
            cards = [node for node in members if node in self._cards and node not in self._left_out]
            rects = [self.items[other].rect for other in inner if other in self.items and other not in self._left_out]
            rects.append(rect_around(self._cards[node].sides for node in cards))
            item.depth = self.depth(loop)
            item.place(united(rects), self._cards[loop], self._cards[body.exit], self._arrow_label(loop))
        self.lod_item.refresh()

    def _arrow_label(self, loop: str) -> str:
        node = self._session.workflow.nodes_by_id.get(loop)
        if node is not None and node.type == ITERATOR.start:
            most = node.config.get("max_concurrency", 0)
            return "for each item" + (f" · {most} at a time" if most else "")
        mode = node.config.get("feedback_mode", "replace") if node is not None else "replace"
        return _FEEDBACK_LABELS.get(str(mode), "feedback")
