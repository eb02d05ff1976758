"""Node items: one lightweight item per card, cached by Qt, with its ports; and a level-of-detail item for all cards.

A port item is only the clickable area; the card paints its ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsSceneHoverEvent,
    QGraphicsSceneMouseEvent,
    QStyle,
    QStyleOptionGraphicsItem,
    QWidget,
)

from app.canvas.canvas_style import Sides, canvas_style, fonts, icon_path, pen, united, zoom_from_scale, zoom_of_view
from app.canvas.node_card import (
    DETAILS_FROM,
    EXPAND_WIDTH,
    ICON,
    MARGIN,
    RADIUS,
    ROW,
    SIDE,
    CardViewModel,
    PortViewModel,
    card_geometry,
    card_text,
)
from app.canvas.node_status_item import NodeStatusItem
from app.canvas.nodegraphqt_imports import INPUT, OUTPUT, AbstractNodeItem, PortItem
from app.theme.style import elide
from app.theme.widgets import plain_tool_tip
from engine.nodes.spec import Category

REACH: Final = 12.0
"""Radius of the clickable area."""

_NO_CONTENTS: Final = QGraphicsItem.GraphicsItemFlag.ItemHasNoContents
_BOUNDS: Final = QRectF(-REACH, -REACH, 2 * REACH, 2 * REACH)


class CanvasPort(PortItem):
    """Port of a card.

    Attributes:
        content: The port's content.
        is_disabled: Whether its node is disabled.
    """

    # Change notifications in Python are slow and unused here.
    itemChange = QGraphicsItem.itemChange  # noqa: N815  # pyright: ignore[reportAssignmentType]

    is_disabled = False
    _locked = False
    _hovered = False
    _multi_connection = True  # `connection_rules` decide what a port accepts

    def __init__(self, content: PortViewModel, port_type: str, parent: QGraphicsItem) -> None:
        QGraphicsItem.__init__(self, parent)  # the base class's own __init__ takes four times as long
        self.setFlag(_NO_CONTENTS)
        self.setAcceptHoverEvents(True)
        self._pipes = []
        self._name = content.name
        self._port_type = port_type
        self.content = content

    @property
    def is_input(self) -> bool:
        """Whether this is an input."""
        return self._port_type == INPUT

    @property
    def node_id(self) -> str:
        """Id of the port's node, which a collapsed loop may hide."""
        if self.content.node:
            return self.content.node
        card = self.parentItem()
        assert isinstance(card, AbstractNodeItem)
        return card.id

    @property
    def end(self) -> str:
        """The port as written in edges: `node.port`."""
        return f"{self.node_id}.{self._name}"

    @property
    def description(self) -> str:
        """Name, type and help of the port."""
        kind = "unknown port" if not self.content.known else f"{self.content.type}"
        many = ", accepts several edges" if self.content.many and self.is_input else ""
        return f"{self._name}: {kind}{many}\n{self.content.help}".rstrip()

    @property
    def middle(self) -> QPointF:
        """Center in scene coordinates."""
        return self.scenePos()

    def boundingRect(self) -> QRectF:
        """Return the clickable area."""
        return _BOUNDS

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Accept the event, or the card would be dragged; the viewer draws the edge."""
        event.accept()

    def hoverEnterEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Highlight the port."""
        self._hovered = True
        self.parentItem().update()
        event.accept()

    def hoverLeaveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Remove the highlight."""
        self._hovered = False
        self.parentItem().update()
        event.accept()


HIGHLIGHT_RADIUS: Final = 9.0


class PortHighlightItem(QGraphicsItem):
    """Rings around all matching ports, as one item.

    Attributes:
        positions: Centers of the highlighted ports.
    """

    def __init__(self) -> None:
        super().__init__()
        self.positions: list[QPointF] = []
        self._bounds = QRectF()
        self.setZValue(10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setVisible(False)

    def show_ports(self, ports: Iterable[CanvasPort]) -> None:
        """Highlight these ports."""
        self.prepareGeometryChange()
        self.positions = [port.middle for port in ports]
        self._bounds = united(QRectF(at.x() - 12, at.y() - 12, 24, 24) for at in self.positions)
        self.setVisible(bool(self.positions))

    def boundingRect(self) -> QRectF:
        """Return the bounds of all rings."""
        return self._bounds

    def shape(self) -> QPainterPath:
        """Return an empty shape: the mouse reaches the ports."""
        return QPainterPath()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the rings."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(canvas_style().color("accent"), 2.0))
        painter.setBrush(canvas_style().color("accent", 60))
        for position in self.positions:
            painter.drawEllipse(position, HIGHLIGHT_RADIUS, HIGHLIGHT_RADIUS)


SHADOW_FROM: Final = 0.5
"""Below this zoom, cards have no shadow."""

PORTS_FROM: Final = 0.4
"""Below this zoom, ports are not painted."""

EDGE: Final = 4.0
LEAST_EDGE: Final = 3.0
"""Minimum width of the colored edge in screen pixels."""

PORT_RADIUS: Final = 5.0
STACK: Final = (8.0, 4.0)
"""How far the cards below that of a collapsed loop stand out."""

SKIPPED: Final = 0.55
UNFIT: Final = 0.35

_FLAGS: Final = QGraphicsItem.GraphicsItemFlag.ItemIsSelectable | QGraphicsItem.GraphicsItemFlag.ItemIsMovable


class NodeItem(AbstractNodeItem):
    """Item of a node.

    Attributes:
        content: The card's content.
        geometry: The card's geometry.
        inputs: Input ports from the top.
        outputs: Output ports from the top.
        status_item: The status item; None until there is a status.
        expand: Called with the node's id when the button of a collapsed loop is clicked.
        followed_pos: The position that edges and regions last followed. Moves emit nothing: Qt would call Python for
            every change of every card.
    """

    expand: Callable[[str], object] = staticmethod(lambda _node_id: None)

    def __init__(self, content: CardViewModel) -> None:
        QGraphicsItem.__init__(self)  # the base class's own __init__ creates unused items
        self.setFlags(_FLAGS)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.setZValue(1)
        self._properties = {"id": content.id, "selected": False, "disabled": not content.enabled, "type_": content.type}
        self.followed_pos = QPointF()
        self.inputs: list[CanvasPort] = []
        self.outputs: list[CanvasPort] = []
        self.status_item: NodeStatusItem | None = None
        self._expand_button: ExpandButtonItem | None = None
        self.problem_text = ""
        self._skipped = self._unfit = False
        self.set_content(content)

    @property
    def card_rect(self) -> QRectF:
        """The card's rectangle in scene coordinates."""
        return QRectF(self.pos(), self._size)

    @property
    def sides(self) -> Sides:
        """The sides of `card_rect`, as plain numbers."""
        x, y = self.x(), self.y()
        return x, y, x + self.geometry.width, y + self.geometry.height

    def set_content(self, content: CardViewModel) -> None:
        """Update the content. Ports that remain keep their items and edges."""
        shape = card_geometry(content)
        self.prepareGeometryChange()
        self.content, self.geometry = content, shape
        self._size, self._bounds, self._outline = _measures(shape.width, shape.height)
        self._width, self._height = shape.width, shape.height
        self._properties["disabled"] = not content.enabled
        self.inputs = self._fitted(self.inputs, content.inputs, INPUT, shape.inputs)
        self.outputs = self._fitted(self.outputs, content.outputs, OUTPUT, shape.outputs)
        self.refresh_tooltip()
        if self.status_item is not None:
            self.status_item.fit(self.geometry, self.content.title)
        if self._expand_button is None and content.collapsed:
            self._expand_button = ExpandButtonItem(self)
        if self._expand_button is not None:
            self._expand_button.setVisible(bool(content.collapsed))
            self._expand_button.setPos(shape.expand.topLeft())
        self.update()

    def dim(self, *, by_run: bool | None = None, by_connection: bool | None = None) -> None:
        """Dim the card because the run skipped the node, or because it does not match the edge being drawn."""
        self._skipped = self._skipped if by_run is None else by_run
        self._unfit = self._unfit if by_connection is None else by_connection
        self.setOpacity(UNFIT if self._unfit else SKIPPED if self._skipped else 1.0)

    def refresh_tooltip(self) -> None:
        """Update the tooltip with elided texts and problems."""
        text = self.description
        if text or self.toolTip():
            self.setToolTip(plain_tool_tip(text))

    @property
    def description(self) -> str:
        """The elided texts of the card, and its problems."""
        content, parts = self.content, list[str]()
        if self.geometry.title != content.title:
            parts.append(content.title)
        if self.geometry.summary != content.summary:
            parts.append(content.summary)
        if self.problem_text:
            parts.append(self.problem_text)
        return "\n".join(parts)

    def port(self, key: str, *, is_input: bool) -> CanvasPort | None:
        """Return a visible port by its key, which is its name unless it belongs to a hidden node, or None."""
        for port in self.inputs if is_input else self.outputs:
            if port.content.key == key:
                return port
        return None

    def boundingRect(self) -> QRectF:
        """Return the card with shadow, ports and badge."""
        return self._bounds

    def shape(self) -> QPainterPath:
        """Return the card's outline."""
        return self._outline

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint card, header and ports; fewer and larger texts when zoomed out."""
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_card(painter, scale, is_selected=is_selected)
        zoom = zoom_from_scale(scale)
        self._paint_header(painter, zoom)
        if zoom >= DETAILS_FROM:
            self._paint_names(painter)
        if zoom >= PORTS_FROM:
            for port, position in self._ports_with_positions():
                paint_port(painter, port, position)

    def _paint_card(self, painter: QPainter, scale: float, *, is_selected: bool) -> None:
        theme, card = canvas_style(), self.geometry.card
        if scale >= SHADOW_FROM:
            for spread, alpha in ((3.0, 10), (2.0, 14), (1.0, 18)):
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.color("#000000", alpha))
                around = card.adjusted(-spread, -spread + 1, spread, spread + 1)
                painter.drawRoundedRect(around, RADIUS + spread, RADIUS + spread)
        if is_selected:
            painter.setPen(pen(theme.color("accent"), 2.0))
            painter.setBrush(theme.color("accent", 40))
            painter.drawRoundedRect(card.adjusted(-3, -3, 3, 3), RADIUS + 3, RADIUS + 3)
        line = Qt.PenStyle.SolidLine if self.content.enabled else Qt.PenStyle.DashLine
        painter.setBrush(theme.color("card"))
        painter.setPen(pen(theme.color("line" if self.content.enabled else "dim"), 1.0, line))
        if self.content.collapsed:
            painter.save()
            painter.setPen(pen(theme.color("accent", 140), 1.0))
            for step in STACK:
                below = card.adjusted(0.5 + 2 * step, 0.5, -0.5 - 2 * step, -0.5 + step)
                painter.drawRoundedRect(below, RADIUS, RADIUS)
            painter.restore()
        painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
        painter.save()
        painter.setClipRect(QRectF(0, 0, max(EDGE, LEAST_EDGE / scale), card.height()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.category(self.content.category, 255 if self.content.enabled else 110))
        painter.drawRoundedRect(card, RADIUS, RADIUS)
        painter.restore()

    def _paint_header(self, painter: QPainter, zoom: float) -> None:
        theme, used, content = canvas_style(), fonts(), self.content
        text_layout = card_text(content.title, self.geometry, zoom)
        painter.save()
        painter.scale(text_layout.scale, text_layout.scale)
        if text_layout.has_icon:
            painter.translate(16, 12)
            painter.fillPath(icon_path(content.icon, ICON), theme.category(content.category))
            painter.translate(-16, -12)
        painter.setFont(used.title)
        painter.setPen(theme.color("text" if content.enabled else "dim"))
        painter.drawText(text_layout.room, Qt.AlignmentFlag.AlignVCenter, "\n".join(text_layout.title))
        if text_layout.has_line:
            painter.setFont(used.small)
            painter.setPen(theme.color("dim"))
            summary = content.summary if content.enabled else f"disabled · {content.summary}"
            room = text_layout.line_rect
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, elide(used.small_metrics, summary, room.width()))
        painter.restore()

    def _ports_with_positions(self) -> Iterator[tuple[CanvasPort, QPointF]]:
        shape = self.geometry
        return zip((*self.inputs, *self.outputs), (*shape.inputs, *shape.outputs), strict=True)

    def _paint_names(self, painter: QPainter) -> None:
        theme, shape = canvas_style(), self.geometry
        painter.setFont(fonts().small)
        for port, position in self._ports_with_positions():
            painter.setPen(theme.color("bad" if not port.content.known else "text" if port.hovered else "dim"))
            text = QRectF(SIDE, position.y() - ROW / 2, shape.width - 2 * SIDE, ROW)
            side = Qt.AlignmentFlag.AlignLeft if port.is_input else Qt.AlignmentFlag.AlignRight
            painter.drawText(text, side | Qt.AlignmentFlag.AlignVCenter, port.name)
        if self.content.folded:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("line"))
            painter.drawRoundedRect(shape.fold, 6, 6)
            painter.setPen(theme.color("dim"))
            painter.drawText(shape.fold, Qt.AlignmentFlag.AlignCenter, f"+{self.content.folded}")

    def _fitted(
        self, before: list[CanvasPort], wanted: tuple[PortViewModel, ...], kind: str, positions: tuple[QPointF, ...]
    ) -> list[CanvasPort]:
        by_key = {port.content.key: port for port in before}
        fitted: list[CanvasPort] = []
        for content, position in zip(wanted, positions, strict=True):
            port = by_key.pop(content.key, None) or CanvasPort(content, kind, self)
            port.content, port.is_disabled = content, not self.content.enabled
            port.setPos(position)
            fitted.append(port)
        for port in by_key.values():
            port.setParentItem(None)  # pyright: ignore[reportArgumentType] - PySide6's stub lacks the None
            if port.scene() is not None:
                port.scene().removeItem(port)
        return fitted


class ExpandButtonItem(QGraphicsItem):
    """The button on the card of a collapsed loop that expands it."""

    def __init__(self, card: NodeItem) -> None:
        super().__init__(card)
        self._hovered = False
        self.setAcceptedMouseButtons(Qt.MouseButton.LeftButton)
        self.setAcceptHoverEvents(True)
        self.setToolTip("Expand")

    def boundingRect(self) -> QRectF:
        """Return the clickable area."""
        return QRectF(0, 0, EXPAND_WIDTH, EXPAND_WIDTH)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the icon, unless the card shows little more than its title."""
        if zoom_from_scale(option.levelOfDetailFromTransform(painter.worldTransform())) < DETAILS_FROM:
            return
        theme = canvas_style()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent", 40))
            painter.drawRoundedRect(self.boundingRect(), 6, 6)
        painter.translate(4, 4)
        painter.fillPath(icon_path("mdi6.arrow-expand", ICON), theme.color("accent" if self._hovered else "dim"))

    def hoverEnterEvent(self, _event: QGraphicsSceneHoverEvent) -> None:
        """Highlight the button."""
        self._hovered = True
        self.update()

    def hoverLeaveEvent(self, _event: QGraphicsSceneHoverEvent) -> None:
        """Remove the highlight."""
        self._hovered = False
        self.update()

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Accept the event, or the card would be dragged; ignore it while the button is not painted."""
        event.setAccepted(zoom_of_view(self) >= DETAILS_FROM)

    def mouseReleaseEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Expand the loop."""
        card = self.parentItem()
        if isinstance(card, NodeItem) and self.boundingRect().contains(event.pos()):
            card.expand(card.content.id)


def paint_port(painter: QPainter, port: CanvasPort, position: QPointF) -> None:
    """Paint a port: filled if connected, a ring if not, taller if it accepts several edges."""
    theme = canvas_style()
    color = theme.port(port.content.type) if port.content.known else theme.color("bad")
    radius = PORT_RADIUS + (1.5 if port.hovered else 0.0)
    tall = 2.5 if port.content.many and port.is_input else 0.0
    body = QRectF(position.x() - radius, position.y() - radius - tall, 2 * radius, 2 * (radius + tall))
    painter.setPen(pen(theme.color("card"), 4.0))
    painter.setBrush(theme.color("card"))
    painter.drawRoundedRect(body, radius, radius)
    painter.setPen(pen(color, 2.0))
    painter.setBrush(color if port.connected_pipes else theme.color("ground"))
    painter.drawRoundedRect(body.adjusted(1, 1, -1, -1), radius - 1, radius - 1)


class _Measures(NamedTuple):
    """Measures shared by cards of one size."""

    size: QSizeF
    bounds: QRectF
    outline: QPainterPath


@lru_cache(maxsize=256)
def _measures(width: float, height: float) -> _Measures:
    card = QRectF(0, 0, width, height)
    outline = QPainterPath()
    outline.addRoundedRect(card, RADIUS, RADIUS)
    return _Measures(card.size(), card.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN), outline)


SPOTS_BELOW: Final = 0.2
"""Below this zoom, the level-of-detail item paints all cards."""

SPOT_EDGE: Final = 3.0
"""Width of a card's colored edge in screen pixels when zoomed far out."""

RING: Final = 2.5
"""Width of the selection ring in screen pixels."""

_EVERYWHERE: Final = QRectF(-1e6, -1e6, 2e6, 2e6)
_Kind = tuple[Category | None, bool]


class LodItem(QGraphicsItem):
    """Level-of-detail item that paints many items when zoomed far out, faster than one item each."""

    def __init__(self, z_value: float) -> None:
        super().__init__()
        self._is_stale = True
        self.setZValue(z_value)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setVisible(False)

    def set_active(self, active: bool) -> None:
        """Paint instead of the items, or let them paint again."""
        self.setVisible(active)
        self.refresh()

    def refresh(self) -> None:
        """Update after items were added, removed, moved or changed."""
        self._is_stale = True
        self.update()

    def boundingRect(self) -> QRectF:
        """Return a huge rectangle: computing the real one takes longer than painting."""
        return _EVERYWHERE

    def shape(self) -> QPainterPath:
        """Return an empty shape: the mouse reaches the items."""
        return QPainterPath()


class NodeLodItem(LodItem):
    """Level-of-detail item of all cards.

    The rectangles and lines handed to Qt are reused between frames: creating them takes longer than painting.
    """

    def __init__(self, nodes: Mapping[str, NodeItem]) -> None:
        super().__init__(0.9)
        self._nodes = nodes
        self._spots: dict[NodeItem, tuple[QRectF, QLineF]] = {}
        self._cards: list[QRectF] = []
        self._chosen: list[QRectF] = []
        self._edges: dict[_Kind, list[QLineF]] = {}

    def set_active(self, active: bool) -> None:
        """Paint instead of the node items, or let them paint again."""
        super().set_active(active)
        for item in self._nodes.values():
            self.show_card(item, is_spot=active)

    @staticmethod
    def show_card(item: NodeItem, *, is_spot: bool) -> None:
        """Let a node item paint itself, or hide its contents while this item is active."""
        item.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, enabled=is_spot)

    def refresh(self) -> None:
        """Update after cards were added, removed, changed or selected; releases removed ones at once."""
        self._spots = {}
        super().refresh()

    def add(self, items: Iterable[NodeItem]) -> None:
        """Update after cards that are not selected were added."""
        for item in items if not self._is_stale else ():
            left, top, right, bottom = item.sides
            rect, edge = QRectF(left, top, right - left, bottom - top), QLineF(left, top, left, bottom)
            self._spots[item] = (rect, edge)
            self._cards.append(rect)
            self._edges.setdefault((item.content.category, item.content.enabled), []).append(edge)
        self.update()

    def update_selection(self) -> None:
        """Update after other cards were selected."""
        self._chosen = [rect for item, (rect, _) in self._spots.items() if item.isSelected()]
        self.update()

    def update_moved(self, moved: Iterable[NodeItem]) -> None:
        """Update after cards were moved."""
        if self._is_stale or not self.isVisible():
            self._is_stale = True
            return
        for item in moved:
            if item in self._spots:
                rect, edge = self._spots[item]  # the lists that are painted hold the same objects
                rect.moveTo(item.pos())
                edge.translate(rect.topLeft() - edge.p1())
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint all cards."""
        theme, scale = canvas_style(), option.levelOfDetailFromTransform(painter.worldTransform())
        if self._is_stale:
            self._gather()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        ratio = painter.device().devicePixelRatioF()  # cosmetic pens count device pixels
        painter.setPen(_stroke(theme.color("accent"), 2 * RING * ratio))
        painter.drawRects(self._chosen)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("card"))
        painter.drawRects(self._cards)
        painter.translate(SPOT_EDGE / scale / 2, 0)
        for (category, enabled), edges in self._edges.items():
            painter.setPen(_stroke(theme.category(category, 255 if enabled else 110), SPOT_EDGE * ratio))
            painter.drawLines(edges)

    def _gather(self) -> None:
        self._is_stale = False
        self._cards, self._edges = [], {}
        self.add(self._nodes.values())
        self._chosen = [rect for item, (rect, _) in self._spots.items() if item.isSelected()]


def _stroke(color: QColor, width: float) -> QPen:
    """Create a cosmetic pen, equally wide at every zoom."""
    made = QPen(color, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap, Qt.PenJoinStyle.MiterJoin)
    made.setCosmetic(True)
    return made
