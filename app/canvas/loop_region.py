"""Loops on the canvas: the tinted region of a loop body and the arrow that carries feedback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QGraphicsScene, QStyleOptionGraphicsItem, QWidget

from app.canvas.canvas_style import canvas_style, fonts, legible_scale, pen, small_width, zoom_from_scale
from app.canvas.loop_region_label import LoopLabelItem
from app.canvas.node_item import NodeItem
from app.session import Session
from app.theme.tokens import FONT_SIZE_SMALL
from engine.document.model import Workflow
from engine.nodes.pairs import ITERATOR

SIDE: Final = 24.0
TOP: Final = 40.0
LANE: Final = 28.0
"""Distance of the arrow below the lowest card."""

BELOW_LANE: Final = 24.0
WORDS_FROM: Final = 0.5
"""Below this zoom, the arrow has no label."""

MAX_ENLARGEMENT: Final = 1.6
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
        words: Label of the feedback arrow.
    """

    def __init__(self, loop_id: str, depth: int) -> None:
        super().__init__()
        self.loop_id = loop_id
        self.depth = depth
        self.rect = QRectF()
        self._arrow = QPainterPath()
        self._head = QPolygonF()
        self.words = ""
        self._words_rect = QRectF()
        self._max_enlargement = 1.0
        self.setZValue(OUTERMOST + depth)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.label = LoopLabelItem(loop_id, self)

    def place(self, content: QRectF, start: NodeItem, end: NodeItem, words: str) -> None:
        """Fit the region around cards and inner regions.

        Args:
            content: Bounding rectangle of the cards, including loop and exit.
            start: The loop's card.
            end: The exit's card.
            words: Label of the feedback arrow.
        """
        rect = content.adjusted(-SIDE, -TOP, SIDE, LANE + BELOW_LANE)
        self.prepareGeometryChange()
        self.rect = rect
        self._bounds = rect.adjusted(-2, -2, 2, 2)
        self.words = words
        lane = content.bottom() + LANE
        from_, to = end.card_rect, start.card_rect
        self._route(QPointF(from_.center().x(), from_.bottom()), QPointF(to.center().x(), to.bottom()), lane)
        self.label.setPos(rect.left() + CORNER, rect.top())
        self.label.take(rect.width() - 2 * CORNER)
        self.update()

    @property
    def arrow(self) -> QPainterPath:
        """Path of the feedback arrow, from the exit to the loop."""
        return self._arrow

    def boundingRect(self) -> QRectF:
        """Return the region with its border."""
        return getattr(self, "_bounds", QRectF())

    def shape(self) -> QPainterPath:
        """Return an empty shape: the mouse passes through."""
        return QPainterPath()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint background and feedback arrow."""
        theme = canvas_style()
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(theme.colour("accent", 110), 1.0))
        painter.setBrush(theme.colour("accent", background_alpha()))
        painter.drawRoundedRect(self.rect, CORNER, CORNER)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(pen(theme.colour("accent", 220), 2.0, Qt.PenStyle.DashLine))
        painter.drawPath(self._arrow)
        if scale < 0.2:
            return
        painter.setPen(pen(theme.colour("accent"), 2.0))
        painter.drawPolyline(self._head)
        zoom = zoom_from_scale(scale)
        if zoom >= WORDS_FROM and not self._words_rect.isNull():
            middle, grown = self._words_rect.center(), legible_scale(FONT_SIZE_SMALL, zoom, self._max_enlargement)
            painter.translate(middle)
            painter.scale(grown, grown)
            painter.translate(-middle)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("ground"))
            painter.drawRoundedRect(self._words_rect, 6, 6)
            painter.setBrush(theme.colour("accent", background_alpha()))
            painter.drawRoundedRect(self._words_rect, 6, 6)
            painter.setFont(fonts().small)
            painter.setPen(theme.colour("accent"))
            painter.drawText(self._words_rect, Qt.AlignmentFlag.AlignCenter, self.words)

    def _route(self, start: QPointF, end: QPointF, lane: float) -> None:
        """Route the arrow from the exit down to its lane and up to the loop."""
        path = QPainterPath(start)
        turn = max(min(CORNER, lane - start.y(), lane - end.y(), abs(start.x() - end.x()) / 2), 0.0)
        way = -1 if end.x() < start.x() else 1
        path.lineTo(start.x(), lane - turn)
        path.quadTo(start.x(), lane, start.x() + way * turn, lane)
        path.lineTo(end.x() - way * turn, lane)
        path.quadTo(end.x(), lane, end.x(), lane - turn)
        path.lineTo(end.x(), end.y() + 4)
        self._arrow = path
        tip = QPointF(end.x(), end.y() + 3)
        self._head = QPolygonF([tip + QPointF(-ARROW, ARROW), tip, tip + QPointF(ARROW, ARROW)])
        width = small_width(self.words) + 16
        room = abs(start.x() - end.x()) - 2 * turn
        middle = QPointF((start.x() + end.x()) / 2, lane)
        fits = room > width
        self._max_enlargement = min(MAX_ENLARGEMENT, max(room / width, 1.0))
        self._words_rect = QRectF(middle.x() - width / 2, middle.y() - 10, width, 20) if fits else QRectF()


_EVERYWHERE: Final = QRectF(-1e6, -1e6, 2e6, 2e6)


class RegionLodItem(QGraphicsItem):
    """Level-of-detail item that paints all regions when zoomed far out, faster than one item each."""

    def __init__(self, regions: Mapping[str, LoopRegionItem]) -> None:
        super().__init__()
        self._regions = regions
        self._is_stale = True
        self._rects: list[QRectF] = []
        self._arrows: list[QPainterPath] = []
        self.setZValue(OUTERMOST)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setVisible(False)

    def set_active(self, active: bool) -> None:
        """Paint instead of the region items, or let them paint again."""
        self.setVisible(active)
        for item in self._regions.values():
            self.show_region(item)
        self.refresh()

    def show_region(self, item: LoopRegionItem) -> None:
        """Let a region item paint itself, or hide its contents while this item is active."""
        item.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, enabled=self.isVisible())
        item.label.setVisible(not self.isVisible())

    def refresh(self) -> None:
        """Update after regions were added, removed or moved."""
        self._is_stale = True
        self.update()

    def boundingRect(self) -> QRectF:
        """Return a huge rectangle: computing the real one takes longer than painting."""
        return _EVERYWHERE

    def shape(self) -> QPainterPath:
        """Return an empty shape: the mouse passes through."""
        return QPainterPath()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint all backgrounds, outer ones first, and all arrows."""
        theme = canvas_style()
        if self._is_stale:
            self._gather()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.setPen(Qt.PenStyle.NoPen)  # the border would be thinner than a pixel
        painter.setBrush(theme.colour("accent", background_alpha()))
        painter.drawRects(self._rects)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(pen(theme.colour("accent", 220), 2.0, Qt.PenStyle.DashLine))
        for arrow in self._arrows:
            painter.drawPath(arrow)

    def _gather(self) -> None:
        self._is_stale = False
        regions = sorted(self._regions.values(), key=lambda region: region.depth)
        self._rects = [region.rect for region in regions]
        self._arrows = [region.arrow for region in regions]


_WORDS: Final = {
    "replace": "feedback: replace",
    "append": "feedback: append",
    "append_window": "feedback: append last few",
}


class LoopRegions:
    """The loop regions of one document.

    Attributes:
        items: The regions by the loop's id.
        lod_item: The level-of-detail item.
        chosen: Called with loop id and index when an iteration dot is clicked.
    """

    def __init__(self, session: Session, scene: QGraphicsScene, cards: Mapping[str, NodeItem]) -> None:
        self._session, self._scene, self._cards = session, scene, cards
        self.items: dict[str, LoopRegionItem] = {}
        self.lod_item = RegionLodItem(self.items)
        scene.addItem(self.lod_item)
        self.chosen: Callable[[str, int], None] = lambda _loop, _index: None
        self._members: dict[str, tuple[list[str], list[str]]] = {}
        self._parent: dict[str, str] = {}

    def refresh(self, workflow: Workflow) -> None:
        """Update regions from the document's structure."""
        structure = self._session.structure
        bodies = {
            loop: body for loop, body in structure.bodies.items() if loop in self._cards and body.exit in self._cards
        }
        self._parent = {node: loop for node, loop in structure.parent.items() if loop in bodies}
        self._parent |= {body.exit: self._parent[loop] for loop, body in bodies.items() if loop in self._parent}
        for loop in [loop for loop in self.items if loop not in bodies]:
            self._scene.removeItem(self.items.pop(loop))
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

    def depth(self, loop: str) -> int:
        """Return the number of regions around a loop's."""
        seen = [loop]
        while (outer := self._parent.get(seen[-1])) is not None and outer not in seen:
            seen.append(outer)
        return len(seen) - 1

    def _loop_at(self, node_id: str) -> str | None:
        if node_id in self.items:
            return node_id
        loop = self._session.structure.loop_of.get(node_id)
        return loop if loop in self.items else None

    def _add(self, loop: str) -> None:
        item = LoopRegionItem(loop, self.depth(loop))
        item.label.chosen = self._choose
        self.lod_item.show_region(item)
        self._scene.addItem(item)
        self.items[loop] = item

    def _choose(self, loop_id: str, index: int) -> None:
        self.chosen(loop_id, index)

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
            content = QRectF()
            for node in members:
                if node in self._cards:
                    content = content.united(self._cards[node].card_rect)
            for other in inner:
                content = content.united(self.items[other].rect)
            item.depth = self.depth(loop)
            item.place(content, self._cards[loop], self._cards[body.exit], self._words(loop))
        self.lod_item.refresh()

    def _words(self, loop: str) -> str:
        node = self._session.workflow.nodes_by_id.get(loop)
        if node is not None and node.type == ITERATOR.start:
            most = node.config.get("max_concurrency", 0)
            return "for each item" + (f" · {most} at a time" if most else "")
        mode = node.config.get("feedback_mode", "replace") if node is not None else "replace"
        return _WORDS.get(str(mode), "feedback")
