"""Label of a loop region: title, and during a run the iterations as dots and their cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsSceneHoverEvent,
    QGraphicsSceneMouseEvent,
    QStyleOptionGraphicsItem,
    QWidget,
)

from app.canvas.canvas_style import MIN_TEXT_PIXELS, canvas_style, fonts, icon_path, legible_scale, pen, zoom_from_scale
from app.theme.elided_text import elide
from app.theme.tokens import FONT_SIZE_SMALL

HEIGHT: Final = 24.0
DOT: Final = 5.0
STEP: Final = 16.0
SMALL_BELOW: Final = 0.45
"""Below this zoom, the label shows the title only."""

LARGEST: Final = 34.0
MAX_ENLARGEMENT: Final = 2.0
"""Maximum enlargement of the label when zoomed out; more would cover cards."""

MAX_DOTS: Final = 12
"""Maximum number of dots; loops with more iterations show those around the selected one."""


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
        is_live: Whether the loop is running.
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
    is_live: bool = False
    unit: str = "iteration"
    ended_ahead: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()

    def words(self, index: int) -> str:
        """Return the tooltip of a dot."""
        return f"{self.unit.capitalize()} {index + 1}{', failed' if index in self.failed else ''}"


class LoopLabelItem(QGraphicsItem):
    """The label; a click on a dot shows its iteration.

    Attributes:
        chosen: Called with loop id and index of a clicked dot.
        content: The content.
        icon: Name of its icon.
    """

    chosen: Callable[[str, int], None]

    def __init__(self, loop_id: str, region: QGraphicsItem) -> None:
        super().__init__(region)
        self.loop_id = loop_id
        self.content = LoopViewModel("")
        self.icon = "mdi6.autorenew"
        self.chosen = lambda _loop, _index: None
        self._room = 0.0
        self._width = 0.0
        self._title = ""
        self._hovered = -1
        self.setZValue(3)
        self.setAcceptHoverEvents(True)
        self.setAcceptedMouseButtons(Qt.MouseButton.LeftButton)

    def set_content(self, content: LoopViewModel) -> None:
        """Update the content; repaints only if it differs."""
        if content != self.content:
            self.content = content
            self._fit()
            self.update()

    def take(self, room: float) -> None:
        """Take the width that the content needs, at most `room`."""
        if room != self._room:
            self._room = room
            self._fit()

    def _fit(self) -> None:
        self.prepareGeometryChange()
        used, content = fonts(), self.content
        rest = 32 + self._counter_width + self._dots_width + self._cost_width + 8
        self._title = elide(used.bold_metrics, content.title, max(self._room - rest, 48))
        self._width = used.bold_metrics.horizontalAdvance(self._title) + rest

    def boundingRect(self) -> QRectF:
        """Return the label's rectangle."""
        above = MAX_ENLARGEMENT * HEIGHT / 2 + 1
        return QRectF(-1, -above, max(self._width, self._room) + 2, above + LARGEST + 8)

    def shape(self) -> QPainterPath:
        """Return the clickable area: the visible dots."""
        path, grown = QPainterPath(), self._growth(self._zoom)
        for index in self.dots() if self._zoom >= SMALL_BELOW else ():
            left = (self.dot(index).x() - STEP / 2) * grown
            path.addRect(QRectF(left, -HEIGHT / 2 * grown, STEP * grown, HEIGHT * grown))
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
        """Return the centre of a dot at 100 %."""
        left = 28 + fonts().bold_metrics.horizontalAdvance(self._title) + self._counter_width + 8
        return QPointF(left + (index - self.dots().start + 0.5) * STEP, 0)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the label."""
        theme, used, content = canvas_style(), fonts(), self.content
        zoom = zoom_from_scale(option.levelOfDetailFromTransform(painter.worldTransform()))
        if zoom < SMALL_BELOW:
            self._paint_small(painter, zoom)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.scale(self._growth(zoom), self._growth(zoom))
        body = QRectF(0, -HEIGHT / 2, self._width, HEIGHT)
        painter.setPen(pen(theme.colour("accent", 140), 1.0))
        painter.setBrush(theme.colour("panel"))
        painter.drawRoundedRect(body, 8, 8)
        painter.save()
        painter.translate(8, -7)
        painter.fillPath(icon_path(self.icon, 14), theme.colour("accent"))
        painter.restore()
        painter.setFont(used.small_bold)
        painter.setPen(theme.colour("accent"))
        words = self._title + (f" · {content.counter}" if content.counter else "")
        painter.drawText(body.adjusted(28, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, words)
        for index in self.dots():
            self._paint_dot(painter, index)
        if content.cost:
            painter.setFont(used.small)
            painter.setPen(theme.colour("dim"))
            right = body.adjusted(0, 0, -12, 0)
            painter.drawText(right, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, content.cost)

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Show the iteration of the dot under the mouse, if it has begun."""
        index = self._index_at(event.pos())
        if 0 <= index <= self.content.current:
            self.chosen(self.loop_id, index)
        event.accept()

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """Show the dot's tooltip."""
        self._hovered = self._index_at(event.pos())
        self.setToolTip(self.content.words(self._hovered) if self._hovered >= 0 else "")
        self.update()

    def hoverLeaveEvent(self, _event: QGraphicsSceneHoverEvent) -> None:
        """Remove the highlight."""
        self._hovered = -1
        self.update()

    @property
    def _zoom(self) -> float:
        """Zoom of the view."""
        views = self.scene().views() if self.scene() is not None else []
        return zoom_from_scale(views[0].transform().m11()) if views else 1.0

    def _growth(self, zoom: float) -> float:
        """Return the enlargement that keeps the label legible and within its region."""
        most = min(MAX_ENLARGEMENT, self._room / self._width) if self._width else 1.0
        return legible_scale(FONT_SIZE_SMALL, zoom, max(most, 1.0)) if zoom >= SMALL_BELOW else 1.0

    @property
    def _counter_width(self) -> float:
        return fonts().bold_metrics.horizontalAdvance(f" · {self.content.counter}") if self.content.counter else 0.0

    @property
    def _dots_width(self) -> float:
        return len(self.dots()) * STEP + 8 if self.content.total else 0.0

    @property
    def _cost_width(self) -> float:
        return fonts().small_metrics.horizontalAdvance(self.content.cost) + 8 if self.content.cost else 0.0

    def _index_at(self, place: QPointF) -> int:
        across = place.x() / self._growth(self._zoom)
        return next((index for index in self.dots() if abs(self.dot(index).x() - across) <= STEP / 2), -1)

    def _paint_small(self, painter: QPainter, zoom: float) -> None:
        size = min(MIN_TEXT_PIXELS / zoom, LARGEST)
        if size * zoom < 6:  # illegible
            return
        font = QFont(fonts().small_bold)
        font.setPixelSize(round(size))
        metrics, height, inset = QFontMetricsF(font), size * 1.25, size / 3
        words = self.content.title + (
            f" · {self.content.current + 1} / {self.content.total}" if self.content.total else ""
        )
        words = elide(metrics, words, self._room - 2 * inset)
        # On the upper edge: inside, the status of the first cards would cover it.
        body = QRectF(0, -height / 2, metrics.horizontalAdvance(words) + 2 * inset, height)
        theme = canvas_style()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen(theme.colour("accent", 140), 1.0))
        painter.setBrush(theme.colour("panel"))
        painter.drawRoundedRect(body, height / 4, height / 4)
        painter.setFont(font)
        painter.setPen(theme.colour("accent"))
        painter.drawText(body, Qt.AlignmentFlag.AlignCenter, words)

    def _paint_dot(self, painter: QPainter, index: int) -> None:
        """Paint a dot: filled if completed, a cross if failed, a ring if running, small if pending."""
        theme, content, middle = canvas_style(), self.content, self.dot(index)
        radius = DOT if index != self._hovered or index > content.current else DOT + 1
        painter.setPen(Qt.PenStyle.NoPen)
        if index in content.failed:
            painter.setPen(pen(theme.colour("bad"), 2.0))
            for way in (QPointF(3.5, 3.5), QPointF(3.5, -3.5)):
                painter.drawLine(middle - way, middle + way)
        elif index < content.done or index in content.ended_ahead:
            painter.setBrush(theme.colour("good" if index == content.returned else "accent"))
            painter.drawEllipse(middle, radius - 0.5, radius - 0.5)
        elif index == content.current or (content.unit == "item" and index < content.current):
            painter.setBrush(theme.colour("accent", 70))
            painter.setPen(pen(theme.colour("accent"), 1.5))
            painter.drawEllipse(middle, radius - 1, radius - 1)
        else:
            painter.setBrush(theme.colour("dim", 120))
            painter.drawEllipse(middle, 2.5, 2.5)
        if index == content.shown:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen(theme.colour("text"), 1.5))
            painter.drawEllipse(middle, radius + 2, radius + 2)
