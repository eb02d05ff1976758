"""The chart over the table: a point an iteration. A click chooses, the mouse shows values, keys step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.history.legend import mark
from app.history.series import SERIES, Figures, Kind, Series, scale, ticks
from app.theme.style import style
from app.theme.tokens import FONT_SIZE_SMALL, UNIT
from engine.store.stopping import percent

_HEIGHTS: Final = (56, 88, 144)
"""The least, the usual and the greatest height, in pixels at the usual size of texts."""
_RADIUS: Final = 3.5
_INSET: Final = 2 * UNIT
"""Room between the ends of the axis and the first and the last iteration."""
_POINTS_FROM: Final = 9.0
"""So many pixels lie between two iterations where each has a point; where they are closer there is a line only."""
_TICK_ROOM: Final = 44

_Place = Callable[[int, float], QPointF]


class Chart(QWidget):
    """Draws the figures of one run of a loop.

    Signals:
        chosen: A person chose an iteration; its index.
        hovered: The mouse is on an iteration, or on none (-1).
        stepped: Look at the iteration so many further on.
        latest_wanted: Follow the run again.

    Attributes:
        shown: What is drawn; the first has its axis on the left, the second on the right.
    """

    chosen = Signal(int)
    hovered = Signal(int)
    stepped = Signal(int)
    latest_wanted = Signal()

    def __init__(self, figures: Figures, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._figures = figures
        self.shown: list[Kind] = [Kind.SIMILARITY]
        self._threshold: float | None = None
        self._index = -1
        self._hovered = -1
        self._count = 0
        self.setAccessibleName("Chart of the iterations")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        style().changed.connect(self._restyle)
        self._restyle()

    def show_loop(self, index: int, total: int, threshold: float | None) -> None:
        """Show what the figures are now.

        Args:
            index: The iteration that is looked at.
            total: How many iterations there may be; the axis is that long.
            threshold: A similarity to draw a line at; None for none.
        """
        self._index, self._threshold = index, threshold
        self._count = max(total, len(self._figures))
        self.setAccessibleDescription(self.readout(index))
        self.update()

    def show_kinds(self, kinds: Sequence[Kind]) -> None:
        """Draw other figures."""
        self.shown = list(kinds)
        self.setAccessibleDescription(self.readout(self._index))
        self.update()

    def readout(self, index: int) -> str:
        """The figures of an iteration in words."""
        if not 0 <= index < len(self._figures):
            return ""
        figures = [
            f"{SERIES[kind].title.lower()} {self._figures.words(kind, index)}"
            for kind in self.shown
            if self._figures.words(kind, index)
        ]
        return " · ".join([f"Iteration {index + 1}", *figures])

    @property
    def focus_index(self) -> int:
        """The iteration that the mouse is on, else the one that is looked at."""
        return self._hovered if self._hovered >= 0 else self._index

    def sizeHint(self) -> QSize:
        """Wide, and as high as it usually is."""
        return QSize(320, round(_HEIGHTS[1] * style().scale))

    def minimumSizeHint(self) -> QSize:
        """High enough to tell up from down."""
        return QSize(120, round(_HEIGHTS[0] * style().scale))

    def place_of(self, index: int) -> float:
        """Where an iteration is, in pixels from the left."""
        area = self._area()
        if self._count <= 1:
            return area.center().x()
        return area.left() + _INSET + (area.width() - 2 * _INSET) * index / (self._count - 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right step, Home and End go to the first and the last, Esc follows the run again."""
        key = Qt.Key(event.key())
        if key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            self.stepped.emit(-1 if key == Qt.Key.Key_Left else 1)
        elif key in {Qt.Key.Key_Home, Qt.Key.Key_End} and len(self._figures):
            self.chosen.emit(0 if key == Qt.Key.Key_Home else len(self._figures) - 1)
        elif key == Qt.Key.Key_Escape:
            self.latest_wanted.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the nearest iteration."""
        if event.button() is Qt.MouseButton.LeftButton and len(self._figures):
            self.chosen.emit(self._nearest(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show the figures of the nearest; choose while dragging."""
        nearest = self._nearest(event.position().x())
        self._hover(nearest)
        if event.buttons() & Qt.MouseButton.LeftButton and nearest >= 0:
            self.chosen.emit(nearest)

    def leaveEvent(self, event: QEvent) -> None:
        """Show those of the chosen one again."""
        super().leaveEvent(event)
        self._hover(-1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw axes, lines, and the iteration that is looked at."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(style().font(FONT_SIZE_SMALL))
        theme, area = style().theme, self._area()
        drawn = [kind for kind in self.shown if any(value is not None for value in self._figures.of(kind))]
        painter.setPen(QPen(QColor(theme.line), 1))
        for height in (area.top(), area.center().y(), area.bottom()):
            painter.drawLine(QPointF(area.left(), round(height) + 0.5), QPointF(area.right(), round(height) + 0.5))
        if drawn:
            self._draw_numbers(painter, area)
            self._draw_marks(painter, area)
        else:
            painter.setPen(QColor(theme.dim))
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, self._nothing())
        for place, kind in enumerate(drawn):
            self._draw_series(painter, area, kind, place)
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.end()

    def _restyle(self) -> None:
        self.setMaximumHeight(round(_HEIGHTS[2] * style().scale))
        self.updateGeometry()

    def _nothing(self) -> str:
        if not self.shown:
            return "Choose above what is drawn."
        count = len(self._figures)
        if self.shown == [Kind.SIMILARITY] and count == 1:
            return "One iteration: there is nothing yet to compare it with."
        return "No iteration has ended yet." if not count else "Being worked out…"

    def _draw_numbers(self, painter: QPainter, area: QRectF) -> None:
        painter.setPen(QColor(style().theme.dim))
        room, height = _TICK_ROOM * style().scale, QFontMetricsF(painter.font()).height()
        for number in ticks(self._count, int(area.width() / room)):
            place = QRectF(self.place_of(number - 1) - room / 2, area.bottom() + 2, room, height)
            painter.drawText(place, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, str(number))

    def _draw_marks(self, painter: QPainter, area: QRectF) -> None:
        """A line where the mouse and where the chosen iteration is; a tick below the one that was returned."""
        theme = style().theme
        for index, colour, width in ((self._index, theme.accent, 1.5), (self._hovered, theme.outline, 1.0)):
            if 0 <= index < self._count:
                painter.setPen(QPen(QColor(colour), width))
                x = self.place_of(index)
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        returned = self._figures.loop.returned
        if returned is not None:
            x, bottom = self.place_of(returned), area.bottom()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.good))
            corners = (QPointF(x, bottom - 6), QPointF(x - 4, bottom + 1), QPointF(x + 4, bottom + 1))
            painter.drawPolygon(QPolygonF(corners))

    def _draw_series(self, painter: QPainter, area: QRectF, kind: Kind, place: int) -> None:
        series, values = SERIES[kind], self._figures.of(kind)
        threshold = self._threshold if kind is Kind.SIMILARITY else None
        low, high = scale(kind, values, threshold)
        colour = QColor(series.colour(style().theme))

        def at(index: int, value: float) -> QPointF:
            return QPointF(self.place_of(index), area.bottom() - area.height() * (value - low) / (high - low))

        if threshold is not None:
            self._draw_threshold(painter, area, at(0, threshold).y(), threshold)
        if place < 2:
            self._draw_axis(painter, area, series, (low, high), is_left=place == 0)
        painter.setPen(QPen(colour, 1.75))
        for line in _lines(values, at, area.width()):
            painter.drawPolyline(line)
        painter.setPen(QPen(QColor(style().theme.panel), 1))
        painter.setBrush(colour)
        is_roomy = area.width() / max(self._count - 1, 1) >= _POINTS_FROM * style().scale
        single = sum(value is not None for value in values) == 1
        chosen = {self._index, self._hovered}
        for index, value in enumerate(values) if is_roomy or single else _some(values, chosen):
            if value is not None:
                radius = _RADIUS * style().scale + (1.5 if index in chosen else 0)
                painter.drawPolygon(mark(at(index, value), radius, series.corners))

    def _draw_axis(
        self, painter: QPainter, area: QRectF, series: Series, ends: tuple[float, float], *, is_left: bool
    ) -> None:
        painter.setPen(QColor(style().theme.dim if is_left and len(self.shown) == 1 else series.colour(style().theme)))
        height = QFontMetricsF(painter.font()).height()
        for value, y in zip(ends, (area.bottom(), area.top()), strict=True):
            side = Qt.AlignmentFlag.AlignRight if is_left else Qt.AlignmentFlag.AlignLeft
            left = 0.0 if is_left else area.right() + 2 * UNIT
            width = area.left() - 2 * UNIT if is_left else self.width() - left
            top = min(max(y - height / 2, 0), self.height() - height)
            painter.drawText(
                QRectF(left, top, width, height), side | Qt.AlignmentFlag.AlignVCenter, series.words(value)
            )

    def _draw_threshold(self, painter: QPainter, area: QRectF, y: float, threshold: float) -> None:
        colour = QColor(style().theme.warning)
        painter.setPen(QPen(colour, 1.25, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        height = QFontMetricsF(painter.font()).height()
        is_below = y - height < 0 or y < area.top() + height
        place = QRectF(area.left(), y + 1 if is_below else y - height - 1, area.width() - UNIT, height)
        painter.setPen(colour)
        painter.drawText(place, Qt.AlignmentFlag.AlignRight, f"stable at {percent(threshold)}")

    def _area(self) -> QRectF:
        """Where lines are drawn; the axes lie around it."""
        factor, metrics = style().scale, QFontMetricsF(style().font(FONT_SIZE_SMALL))
        side = metrics.horizontalAdvance("$0.0000") + 3 * UNIT
        right = side if len(self.shown) > 1 else 4.0 * UNIT
        below = metrics.height() + UNIT
        return QRectF(self.rect()).adjusted(side, 2 * UNIT * factor, -right, -below)

    def _nearest(self, x: float) -> int:
        count = len(self._figures)
        if not count:
            return -1
        area = self._area()
        if self._count <= 1:
            return 0
        share = (x - area.left() - _INSET) / (area.width() - 2 * _INSET)
        return min(max(round(share * (self._count - 1)), 0), count - 1)

    def _hover(self, index: int) -> None:
        if index != self._hovered:
            self._hovered = index
            self.hovered.emit(index)
            self.update()


def _some(values: Sequence[float | None], indices: set[int]) -> Iterator[tuple[int, float | None]]:
    return ((index, values[index]) for index in sorted(indices) if 0 <= index < len(values))


def _lines(values: Sequence[float | None], at: _Place, width: float) -> Iterator[QPolygonF]:
    """The lines through the values, broken where there is none; of many in one pixel the least and the greatest."""
    bucket = max(math.ceil(len(values) / max(width, 1)), 1)
    for is_there, run in groupby(enumerate(values), key=lambda item: item[1] is not None):
        if not is_there:
            continue
        known = [(index, value) for index, value in run if value is not None]
        if bucket > 1:
            known = [point for start in range(0, len(known), bucket) for point in _ends(known[start : start + bucket])]
        yield QPolygonF([at(index, value) for index, value in known])


def _ends(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    return sorted({min(points, key=lambda point: point[1]), max(points, key=lambda point: point[1])})
