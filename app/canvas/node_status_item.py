"""Run status and problems on a card, in a small item of its own so that animation repaints little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath
from PySide6.QtWidgets import QGraphicsItem, QGraphicsSceneMouseEvent, QStyleOptionGraphicsItem, QWidget

from app.canvas.canvas_style import canvas_style, fonts, icon_path, legible_scale, pen, zoom_from_scale
from app.canvas.node_card import CardGeometry, card_text
from app.theme.style import elide
from app.theme.tokens import FONT_SIZE_SMALL
from engine.run_state.state import NodeState

PILL_HEIGHT: Final = 20.0
MAX_ENLARGEMENT: Final = 1.6
"""Maximum enlargement of the badges when zoomed out."""

GROWS_FROM: Final = 6.0
"""Fixed point of that enlargement below the card's upper edge: badges grow upwards, off the title."""
MARK: Final = 12
SPOT_BELOW: Final = 0.2
"""Below this zoom, the status is a colored stroke."""

SPOT_WIDTH: Final = 80.0
TURN: Final = 24
"""Degrees by which the arc of a running node advances per tick."""

PIN: Final = ("mdi6.pin", "accent", "pinned")
STALE: Final = ("mdi6.history", "dim", "outdated")

_STATUS_STYLES: Final[dict[NodeState, tuple[str, str, str]]] = {
    NodeState.PENDING: ("mdi6.clock-outline", "dim", "waiting"),
    NodeState.RUNNING: ("", "accent", ""),
    NodeState.COMPLETED: ("mdi6.check-bold", "good", ""),
    NodeState.SKIPPED: ("mdi6.debug-step-over", "dim", "skipped"),
    NodeState.CANCELLED: ("mdi6.stop-circle-outline", "dim", "stopped"),
    NodeState.INTERRUPTED: ("mdi6.stop-circle-outline", "dim", "interrupted"),
    NodeState.CACHED: ("mdi6.history", "good", "cached"),
    NodeState.PINNED: PIN,
    NodeState.FAILED: ("mdi6.alert-circle-outline", "bad", "failed"),
    NodeState.WAITING: ("mdi6.account-question-outline", "warning", "waiting for input"),
}


_QUIET: Final = frozenset({NodeState.PENDING, NodeState.SKIPPED, NodeState.CANCELLED, NodeState.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class LoopProgress:
    """Progress of a loop or iterator.

    Attributes:
        done: Number of completed iterations or items.
        failed: Number of failed ones.
        total: Maximum number.
    """

    done: int
    failed: int
    total: int


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """Status of a node on its card.

    Attributes:
        state: State in the displayed run; None without a run.
        note: Duration or counter beside the icon.
        line: Text instead of the summary: the end of the stream, or the result.
        bar: Progress of a loop or iterator that has begun.
        errors: Number of errors.
        warnings: Number of warnings.
        is_pinned: Whether the node is pinned in the document.
        is_stale: Whether the node or something before it was edited since the run.
    """

    state: NodeState | None = None
    note: str = ""
    line: str = ""
    bar: LoopProgress | None = None
    errors: int = 0
    warnings: int = 0
    is_pinned: bool = False
    is_stale: bool = False

    @property
    def shows_pin(self) -> bool:
        """Whether the pin has a badge of its own: the state does not say it."""
        return self.is_pinned and self.state is not NodeState.PINNED


class NodeStatusItem(QGraphicsItem):
    """Status item of one card.

    While the node waits for a person, a click on the status asks for the answer.

    Attributes:
        status: The displayed status.
        clicked: Called on that click.
    """

    def __init__(self, card: QGraphicsItem, geometry: CardGeometry, title: str) -> None:
        super().__init__(card)
        self.status = NodeStatus()
        self.clicked: Callable[[], object] = lambda: None
        self._angle = 0
        self.setZValue(3)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.fit(geometry, title)

    @property
    def is_moving(self) -> bool:
        """Whether the item animates."""
        return self.status.state is NodeState.RUNNING

    def set_status(self, state: NodeStatus) -> None:
        """Update the status; repaints only if it differs."""
        if state != self.status:
            self.status = state
            waits = state.state is NodeState.WAITING
            self.setAcceptedMouseButtons(Qt.MouseButton.LeftButton if waits else Qt.MouseButton.NoButton)
            self.setCursor(Qt.CursorShape.PointingHandCursor if waits else Qt.CursorShape.ArrowCursor)
            self.setToolTip("Answer" if waits else "")
            self._measure()
            self.update()

    def tick(self) -> None:
        """Advance the animation by one tick."""
        self._angle = (self._angle - TURN) % 360
        self.update(self._marks)

    def fit(self, geometry: CardGeometry, title: str) -> None:
        """Update the geometry: the card's upper right corner and, with a line, its summary."""
        self._geometry, self._title = geometry, title
        self._measure()

    def _measure(self) -> None:
        self.prepareGeometryChange()
        card = self._geometry
        right = card.width - 8
        width = self._pill_width()
        self._pill = QRectF(right - width, -PILL_HEIGHT / 2, width, PILL_HEIGHT) if width else QRectF()
        badge = self._badge_width()
        left = self._pill.left() - 4 if width else right
        self._badge = QRectF(left - badge, -PILL_HEIGHT / 2, badge, PILL_HEIGHT) if badge else QRectF()
        left = self._badge.left() - 4 if badge else left
        pin = _pill_width(PIN[2]) if self.status.shows_pin else 0.0
        self._pin = QRectF(left - pin, -PILL_HEIGHT / 2, pin, PILL_HEIGHT) if pin else QRectF()
        self._has_line = bool(self.status.line)
        marks = self._pill.united(self._badge).united(self._pin)
        self._total = marks.width()
        top = GROWS_FROM - MAX_ENLARGEMENT * (GROWS_FROM + PILL_HEIGHT / 2)
        grown = QRectF(
            right - MAX_ENLARGEMENT * self._total, top, MAX_ENLARGEMENT * self._total, MAX_ENLARGEMENT * PILL_HEIGHT
        )
        line = card.card if self._has_line or self.status.bar is not None else QRectF()
        self._spot = (
            QRectF(right - SPOT_WIDTH, -PILL_HEIGHT / 2, SPOT_WIDTH, PILL_HEIGHT) if width or badge else QRectF()
        )
        has_marks = not marks.isNull()
        self._marks = grown.united(self._spot).adjusted(-2, -2, 2, 2) if has_marks else QRectF()
        self._bounds = self._marks.united(line)

    def boundingRect(self) -> QRectF:
        """Return the badges and the line."""
        return self._bounds

    def shape(self) -> QPainterPath:
        """Return the status while it can be clicked, else nothing: the mouse reaches the card."""
        path = QPainterPath()
        if self.status.state is NodeState.WAITING:
            path.addRect(self._pill.adjusted(-4, -4, 4, 4))
        return path

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Accept the event, or the release would not arrive."""
        event.accept()

    def mouseReleaseEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Report a click."""
        if self.shape().contains(event.pos()):
            self.clicked()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the badges, or a colored stroke when zoomed far out."""
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        if scale < SPOT_BELOW:
            self._paint_spot(painter)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        zoom = zoom_from_scale(scale)
        if self._has_line:
            self._paint_line(painter, zoom)
        if self.status.bar is not None:
            self._paint_bar(painter, self.status.bar)
        self._grow(painter, zoom)
        if self.status.state is not None:
            icon, color, _ = self._style()
            self._paint_pill(painter, self._pill, canvas_style().color(color), icon, self._text())
        if not self._badge.isNull():
            color = canvas_style().color("bad" if self.status.errors else "warning")
            text = str(self.status.errors or self.status.warnings)
            self._paint_pill(painter, self._badge, color, "mdi6.alert", text)
        if not self._pin.isNull():
            self._paint_pill(painter, self._pin, canvas_style().color(PIN[1]), PIN[0], PIN[2])

    def _grow(self, painter: QPainter, zoom: float) -> None:
        """Enlarge the badges from the card's upper right corner, at most to its width."""
        card = self._geometry
        most = min(MAX_ENLARGEMENT, max((card.width - 16) / max(self._total, 1.0), 1.0))
        grown = legible_scale(FONT_SIZE_SMALL, zoom, most)
        painter.translate(card.width - 8, GROWS_FROM)
        painter.scale(grown, grown)
        painter.translate(8 - card.width, -GROWS_FROM)

    def _paint_spot(self, painter: QPainter) -> None:
        """Paint a stroke along the top in the color of the state."""
        color = "bad" if self.status.errors else "warning" if self.status.warnings else ""
        if self.status.state is not None:
            color = self._style()[1]
        if color:
            painter.fillRect(self._spot, canvas_style().color(color))

    def _style(self) -> tuple[str, str, str]:
        """Return icon, color and word of the state."""
        assert self.status.state is not None
        return STALE if self.status.is_stale else _STATUS_STYLES[self.status.state]

    def _text(self) -> str:
        word = self._style()[2]
        return word if self.status.is_stale else self.status.note or word

    def _pill_width(self) -> float:
        if self.status.state is None:
            return 0.0
        return _pill_width(self._text())

    def _badge_width(self) -> float:
        count = self.status.errors or self.status.warnings
        return _pill_width(str(count)) if count else 0.0

    def _paint_pill(self, painter: QPainter, pill: QRectF, color: QColor, icon: str, text: str) -> None:
        theme = canvas_style()
        tint = QColor(color)
        tint.setAlpha(36)
        edge = QColor(color)
        edge.setAlpha(150)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("card"))
        painter.drawRoundedRect(pill, PILL_HEIGHT / 2, PILL_HEIGHT / 2)
        painter.setPen(pen(edge, 1.0))
        painter.setBrush(tint)
        painter.drawRoundedRect(pill.adjusted(0.5, 0.5, -0.5, -0.5), PILL_HEIGHT / 2, PILL_HEIGHT / 2)
        mark = QPointF(pill.left() + 8, pill.center().y() - MARK / 2)
        if icon:
            painter.save()
            painter.translate(mark)
            painter.fillPath(icon_path(icon, MARK), color)
            painter.restore()
        else:
            ring = QRectF(mark.x() + 1, mark.y() + 1, MARK - 2, MARK - 2)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen(tint, 2.5))
            painter.drawEllipse(ring)
            painter.setPen(pen(color, 2.5))
            painter.drawArc(ring, self._angle * 16, 110 * 16)
        if text:
            painter.setFont(fonts().small_bold)
            quiet = self.status.state in _QUIET and pill is self._pill
            painter.setPen(theme.color("dim" if quiet else "text"))
            rect = pill.adjusted(8 + MARK + 4, 0, 0, 0)
            painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_bar(self, painter: QPainter, bar: LoopProgress) -> None:
        """Paint a progress bar along the lower edge: done, then failed."""
        theme, card = canvas_style(), self._geometry
        rect = QRectF(12, card.height - 8, card.width - 24, 4)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line"))
        painter.drawRoundedRect(rect, 2, 2)
        share = rect.width() / max(bar.total, 1)
        for color, count in (("bad", bar.done + bar.failed), ("accent", bar.done)):
            if count and (color == "accent" or bar.failed):
                painter.setBrush(theme.color(color))
                painter.drawRoundedRect(QRectF(rect.x(), rect.y(), count * share, 4), 2, 2)

    def _paint_line(self, painter: QPainter, zoom: float) -> None:
        theme, used = canvas_style(), fonts()
        text_layout = card_text(self._title, self._geometry, zoom)
        if not text_layout.has_line:
            return
        rect = text_layout.line_rect
        painter.save()
        painter.scale(text_layout.scale, text_layout.scale)
        painter.fillRect(rect, theme.color("card"))
        painter.setFont(used.small)
        state = self.status.state
        color = "accent" if state is NodeState.RUNNING else "bad" if state is NodeState.FAILED else "text"
        painter.setPen(theme.color(color))
        line = self.status.line
        if state is NodeState.RUNNING:  # show the end of a stream
            line = used.small_metrics.elidedText(line, Qt.TextElideMode.ElideLeft, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, elide(used.small_metrics, line, rect.width()))
        painter.restore()


def _pill_width(text: str) -> float:
    width = fonts().bold_metrics.horizontalAdvance(text)
    return 8 + MARK + (4 + width if width else 0) + 8
