"""A node as a card: one light item that paints the card and its ports, cached by Qt until its content changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath
from PySide6.QtWidgets import QGraphicsItem, QStyle, QStyleOptionGraphicsItem, QWidget

from app.canvas.binding import INPUT, OUTPUT, AbstractNodeItem
from app.canvas.card import ICON, LOWEST_CARD, RADIUS, ROW, SIDE, CardShape, elided, shape_of, two_lines
from app.canvas.facts import CardFacts, PortFacts
from app.canvas.look import fonts, icon_path, look, pen
from app.canvas.port_item import CanvasPort

if TYPE_CHECKING:
    from app.canvas.overlay import StateItem

SMALL_BELOW: Final = 0.5
"""Zoomed out further than this, a card shows its title and little else."""

EDGE: Final = 4.0
LEAST_EDGE: Final = 3.0
"""How wide in pixels of the screen the coloured edge stays when zoomed out."""

PORT_RADIUS: Final = 5.0
SKIPPED: Final = 0.55
UNFIT: Final = 0.35
LEGIBLE: Final = 10.0
"""The size in pixels of the screen that a title keeps when zoomed out."""

Moved = Callable[["NodeItem"], None]


class NodeItem(AbstractNodeItem):
    """The card of a node.

    Attributes:
        facts: What it says.
        shape_: Where what lies on it.
        inputs: Its input ports, from the top.
        outputs: Its output ports, from the top.
        state: What stands on it of a run and of problems; None while there is nothing.
    """

    def __init__(self, facts: CardFacts, moved: Moved) -> None:
        QGraphicsItem.__init__(self)  # the base class's own start-up sets what is not used
        self.setFlags(
            QGraphicsItem.GraphicsItemFlag.ItemIsSelectable
            | QGraphicsItem.GraphicsItemFlag.ItemIsMovable
            | QGraphicsItem.GraphicsItemFlag.ItemSendsGeometryChanges
        )
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.setZValue(1)
        self._properties = {"id": facts.id, "selected": False, "disabled": not facts.enabled, "type_": facts.type}
        self._moved = moved
        self.inputs: list[CanvasPort] = []
        self.outputs: list[CanvasPort] = []
        self.state: StateItem | None = None
        self.problem_text = ""
        self._skipped = self._unfit = False
        self.show_facts(facts)

    @property
    def card_rect(self) -> QRectF:
        """The card in the scene."""
        return self.shape_.card.translated(self.pos())

    def show_facts(self, facts: CardFacts) -> None:
        """Show another content. Ports that are still there stay the same items, with their edges."""
        shape = shape_of(facts)
        self.prepareGeometryChange()
        self.facts, self.shape_ = facts, shape
        self._bounds, self._outline = shape.bounds, _outline(shape)
        self._width, self._height = shape.width, shape.height
        self._properties["disabled"] = not facts.enabled
        self.inputs = self._fitted(self.inputs, facts.inputs, INPUT, shape.inputs)
        self.outputs = self._fitted(self.outputs, facts.outputs, OUTPUT, shape.outputs)
        self.refresh_tooltip()
        if self.state is not None:
            self.state.fit()
        self.update()

    def dim(self, *, by_run: bool | None = None, by_light: bool | None = None) -> None:
        """Stand back: because the run skipped the node, or because it does not fit the edge on the mouse."""
        self._skipped = self._skipped if by_run is None else by_run
        self._unfit = self._unfit if by_light is None else by_light
        self.setOpacity(UNFIT if self._unfit else SKIPPED if self._skipped else 1.0)

    def refresh_tooltip(self) -> None:
        """Say what does not fit on the card, and what is wrong."""
        facts, parts = self.facts, []
        if self.shape_.title != facts.title:
            parts.append(facts.title)
        if self.shape_.summary != facts.summary:
            parts.append(facts.summary)
        if self.problem_text:
            parts.append(self.problem_text)
        self.setToolTip("\n".join(parts))

    def port(self, name: str, *, is_input: bool) -> CanvasPort | None:
        """A port by name; None where it is not shown."""
        ports = self.inputs if is_input else self.outputs
        return next((port for port in ports if port.name == name), None)

    def boundingRect(self) -> QRectF:
        """The card with shadow, ports and badge."""
        return self._bounds

    def shape(self) -> QPainterPath:
        """Where it is hit: on the card."""
        return self._outline

    def itemChange(self, change: QGraphicsItem.GraphicsItemChange, value: Any) -> Any:
        """Tell the view that edges and regions have to follow."""
        if change == QGraphicsItem.GraphicsItemChange.ItemPositionHasChanged:
            self._moved(self)
        return value

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Paint card and ports; only the title when zoomed out."""
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_card(painter, scale, is_selected=is_selected)
        if scale < SMALL_BELOW:
            self._paint_small(painter, scale)
        else:
            self._paint_header(painter)
            self._paint_ports(painter)

    def _paint_card(self, painter: QPainter, scale: float, *, is_selected: bool) -> None:
        theme, card = look(), self.shape_.card
        if scale >= SMALL_BELOW:
            for spread, alpha in ((3.0, 10), (2.0, 14), (1.0, 18)):
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.colour("#000000", alpha))
                around = card.adjusted(-spread, -spread + 1, spread, spread + 1)
                painter.drawRoundedRect(around, RADIUS + spread, RADIUS + spread)
        if is_selected:
            painter.setPen(pen(theme.colour("accent"), 2.0))
            painter.setBrush(theme.colour("accent", 40))
            painter.drawRoundedRect(card.adjusted(-3, -3, 3, 3), RADIUS + 3, RADIUS + 3)
        line = Qt.PenStyle.SolidLine if self.facts.enabled else Qt.PenStyle.DashLine
        painter.setBrush(theme.colour("card"))
        painter.setPen(pen(theme.colour("line" if self.facts.enabled else "dim"), 1.0, line))
        painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
        painter.save()
        painter.setClipRect(QRectF(0, 0, max(EDGE, LEAST_EDGE / scale), card.height()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.category(self.facts.category, 255 if self.facts.enabled else 110))
        painter.drawRoundedRect(card, RADIUS, RADIUS)
        painter.restore()

    def _paint_header(self, painter: QPainter) -> None:
        theme, used, facts, shape = look(), fonts(), self.facts, self.shape_
        painter.save()
        painter.translate(16, 12)
        painter.fillPath(icon_path(facts.icon, ICON), theme.category(facts.category))
        painter.restore()
        painter.setFont(used.title)
        painter.setPen(theme.colour("text" if facts.enabled else "dim"))
        painter.drawText(shape.title_rect, Qt.AlignmentFlag.AlignVCenter, shape.title)
        painter.setFont(used.small)
        painter.setPen(theme.colour("dim"))
        summary = shape.summary if facts.enabled else f"off · {shape.summary}"
        room = shape.summary_rect.width()
        painter.drawText(shape.summary_rect, Qt.AlignmentFlag.AlignVCenter, elided(used.small_metrics, summary, room))

    def _paint_ports(self, painter: QPainter) -> None:
        theme, shape = look(), self.shape_
        painter.setFont(fonts().small)
        for port, place in zip((*self.inputs, *self.outputs), (*shape.inputs, *shape.outputs), strict=True):
            is_input = port.is_input
            painter.setPen(theme.colour("bad" if not port.facts.known else "text" if port.hovered else "dim"))
            text = QRectF(SIDE, place.y() - ROW / 2, shape.width - 2 * SIDE, ROW)
            side = Qt.AlignmentFlag.AlignLeft if is_input else Qt.AlignmentFlag.AlignRight
            painter.drawText(text, side | Qt.AlignmentFlag.AlignVCenter, port.name)
            paint_port(painter, port, place)
        if self.facts.folded:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("line"))
            painter.drawRoundedRect(shape.fold, 6, 6)
            painter.setPen(theme.colour("dim"))
            painter.drawText(shape.fold, Qt.AlignmentFlag.AlignCenter, f"+{self.facts.folded}")

    def _paint_small(self, painter: QPainter, scale: float) -> None:
        theme, shape = look(), self.shape_
        room = shape.card.adjusted(EDGE + 8, 4, -8, -4)
        # A card with more ports is higher, but its title is no larger than those beside it.
        size = min(max(LEGIBLE / scale, fonts().title.pixelSize()), min(room.height(), LOWEST_CARD - 8) / 2.6)
        if size * scale < 5:  # nothing that could be read
            return
        font = QFont(fonts().title)
        font.setPixelSize(round(size))
        painter.setFont(font)
        painter.setPen(theme.colour("text" if self.facts.enabled else "dim"))
        words = "\n".join(two_lines(QFontMetricsF(font), self.facts.title, room.width()))
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, words)

    def _fitted(
        self, there: list[CanvasPort], wanted: tuple[PortFacts, ...], kind: str, places: tuple[QPointF, ...]
    ) -> list[CanvasPort]:
        by_name = {port.name: port for port in there}
        fitted: list[CanvasPort] = []
        for facts, place in zip(wanted, places, strict=True):
            port = by_name.pop(facts.name, None) or CanvasPort(facts, kind, self)
            port.facts = facts
            port.setPos(place)
            fitted.append(port)
        for port in by_name.values():
            port.setParentItem(None)
            if port.scene() is not None:
                port.scene().removeItem(port)
        return fitted


def paint_port(painter: QPainter, port: CanvasPort, place: QPointF) -> None:
    """Paint a port: filled where an edge is, a ring where none is; a port that takes several edges is taller."""
    theme = look()
    colour = theme.port(port.facts.type) if port.facts.known else theme.colour("bad")
    radius = PORT_RADIUS + (1.5 if port.hovered else 0.0)
    tall = 2.5 if port.facts.many and port.is_input else 0.0
    body = QRectF(place.x() - radius, place.y() - radius - tall, 2 * radius, 2 * (radius + tall))
    painter.setPen(pen(theme.colour("card"), 4.0))
    painter.setBrush(theme.colour("card"))
    painter.drawRoundedRect(body, radius, radius)
    painter.setPen(pen(colour, 2.0))
    painter.setBrush(colour if port.connected_pipes else theme.colour("ground"))
    painter.drawRoundedRect(body.adjusted(1, 1, -1, -1), radius - 1, radius - 1)


def _outline(shape: CardShape) -> QPainterPath:
    path = QPainterPath()
    path.addRoundedRect(shape.card, RADIUS, RADIUS)
    return path
