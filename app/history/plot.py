"""Drawing the figures of a loop: axes, lines and points in an area. The widget around it is `app.history.chart`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF

from app.history.legend import mark
from app.history.series import SERIES, Figures, Kind, Series, scale, ticks
from app.theme.style import style
from app.theme.tokens import FONT_SIZE_SMALL, UNIT
from engine.store.stopping import percent

_RADIUS: Final = 3.5
_INSET: Final = 2 * UNIT
"""Room between the ends of the axis and the first and the last iteration."""
_POINTS_FROM: Final = 9.0
"""So many pixels lie between two iterations where each has a point; where they are closer there is a line only."""
_TICK_ROOM: Final = 44

_Place = Callable[[int, float], QPointF]


class Plot:
    """One drawing: made for a size, a theme and the figures as they are now.

    Args:
        figures: What is drawn.
        shown: Which of it; the first has its axis on the left, the second on the right.
        count: How many iterations the axis is long.
        threshold: A similarity to draw a line at; None for none.
        size: The room.
    """

    def __init__(
        self, figures: Figures, shown: Sequence[Kind], count: int, threshold: float | None, size: QSizeF
    ) -> None:
        self._figures, self._count, self._threshold = figures, count, threshold
        self._drawn = [kind for kind in shown if any(value is not None for value in figures.of(kind))]
        self._ends = {
            kind: scale(kind, figures.of(kind), threshold if kind is Kind.SIMILARITY else None) for kind in self._drawn
        }
        self._width, self._height = size.width(), size.height()
        self._scale, self._theme, self._font = style().scale, style().theme, style().font(FONT_SIZE_SMALL)
        metrics = QFontMetricsF(self._font)
        self._line = metrics.height()
        side = metrics.horizontalAdvance("$0.0000") + 3 * UNIT
        right = side if len(shown) > 1 else 4.0 * UNIT
        self._has_threshold = threshold is not None and Kind.SIMILARITY in self._drawn
        above = self._line + 2 if self._has_threshold else 2 * UNIT * self._scale  # there its line says what it is
        self.area = QRectF(QPointF(), size).adjusted(side, above, -right, -self._line - UNIT)
        between = self.area.width() - 2 * _INSET
        self._step = between / (count - 1) if count > 1 else 0.0
        self._first = self.area.left() + _INSET if count > 1 else self.area.center().x()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self._drawn

    def place_of(self, index: int) -> float:
        """Where an iteration is, in pixels from the left."""
        return self._first + self._step * index

    def nearest(self, x: float) -> int:
        """The iteration nearest to a place; -1 where none has ended."""
        wanted = round((x - self._first) / self._step) if self._step else 0
        return min(max(wanted, 0), len(self._figures) - 1)

    def draw(self, painter: QPainter, nothing: str) -> None:
        """Draw everything that stays the same whatever is looked at.

        Args:
            painter: Draws.
            nothing: What to say where there is nothing to draw.
        """
        area = self.area
        painter.setFont(self._font)
        painter.setPen(QPen(QColor(self._theme.line), 1))
        for height in (area.top(), area.bottom()) if self.is_empty else (area.top(), area.center().y(), area.bottom()):
            painter.drawLine(QPointF(area.left(), round(height) + 0.5), QPointF(area.right(), round(height) + 0.5))
        if self.is_empty:
            painter.setPen(QColor(self._theme.dim))
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, nothing)
            return
        self._draw_numbers(painter)
        self._draw_returned(painter)
        for place, kind in enumerate(self._drawn):
            self._draw_series(painter, kind, place)

    def draw_mark(self, painter: QPainter, index: int, colour: str) -> None:
        """Draw a line through all figures of an iteration, each with a large point."""
        x = self.place_of(index)
        painter.setPen(QPen(QColor(colour), 1.5))
        painter.drawLine(QPointF(x, self.area.top()), QPointF(x, self.area.bottom()))
        for kind in self._drawn:
            values = self._figures.of(kind)
            value = values[index] if index < len(values) else None
            if value is not None:
                self._draw_point(painter, self._placing(kind)(index, value), SERIES[kind], _RADIUS + 1.5)

    def _placing(self, kind: Kind) -> _Place:
        low, high = self._ends[kind]
        first, step, bottom = self._first, self._step, self.area.bottom()
        factor = self.area.height() / (high - low)
        return lambda index, value: QPointF(first + step * index, bottom - factor * (value - low))

    def _draw_numbers(self, painter: QPainter) -> None:
        painter.setPen(QColor(self._theme.dim))
        room = _TICK_ROOM * self._scale
        for number in ticks(self._count, int(self.area.width() / room)):
            place = QRectF(self.place_of(number - 1) - room / 2, self.area.bottom() + 2, room, self._line)
            painter.drawText(place, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, str(number))

    def _draw_returned(self, painter: QPainter) -> None:
        """A tick on the axis at the iteration that was returned."""
        returned = self._figures.loop.returned
        if returned is not None:
            x, bottom = self.place_of(returned), self.area.bottom()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._theme.good))
            corners = (QPointF(x, bottom - 6), QPointF(x - 4, bottom + 1), QPointF(x + 4, bottom + 1))
            painter.drawPolygon(QPolygonF(corners))

    def _draw_series(self, painter: QPainter, kind: Kind, place: int) -> None:
        series, values, at = SERIES[kind], self._figures.of(kind), self._placing(kind)
        if kind is Kind.SIMILARITY and self._threshold is not None:
            self._draw_threshold(painter, at(0, self._threshold).y(), self._threshold)
        if place < 2:
            self._draw_axis(painter, series, self._ends[kind], is_left=place == 0)
        painter.setPen(QPen(QColor(series.colour(self._theme)), 1.75))
        for line in lines(values, at, self.area.width()):
            painter.drawPolyline(line)
        known = [(index, value) for index, value in enumerate(values) if value is not None]
        if self._step >= _POINTS_FROM * self._scale or len(known) == 1:
            for index, value in known:
                self._draw_point(painter, at(index, value), series, _RADIUS)

    def _draw_point(self, painter: QPainter, centre: QPointF, series: Series, radius: float) -> None:
        painter.setPen(QPen(QColor(self._theme.panel), 1))
        painter.setBrush(QColor(series.colour(self._theme)))
        painter.drawPolygon(mark(centre, radius * self._scale, series.corners))

    def _draw_axis(self, painter: QPainter, series: Series, ends: tuple[float, float], *, is_left: bool) -> None:
        painter.setPen(QColor(self._theme.dim if len(self._drawn) == 1 else series.colour(self._theme)))
        side = Qt.AlignmentFlag.AlignRight if is_left else Qt.AlignmentFlag.AlignLeft
        left = 0.0 if is_left else self.area.right() + 2 * UNIT
        width = self.area.left() - 2 * UNIT if is_left else self._width - left
        for value, y in zip(ends, (self.area.bottom(), self.area.top()), strict=True):
            top = min(max(y - self._line / 2, 0), self._height - self._line)
            place = QRectF(left, top, width, self._line)
            painter.drawText(place, side | Qt.AlignmentFlag.AlignVCenter, series.words(value))

    def _draw_threshold(self, painter: QPainter, y: float, threshold: float) -> None:
        colour, area = QColor(self._theme.warning), self.area
        painter.setPen(QPen(colour, 1.25, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        place = QRectF(area.left(), y - self._line - 1, area.width(), self._line)
        painter.setPen(colour)
        painter.drawText(place, Qt.AlignmentFlag.AlignLeft, f"stable at {percent(threshold)}")


def lines(values: Sequence[float | None], at: _Place, width: float) -> Iterator[QPolygonF]:
    """The lines through the values, broken where there is none; of many in one pixel the least and the greatest."""
    bucket = max(math.ceil(len(values) / max(width, 1)), 1)
    start = 0
    for is_gap, run in groupby(values, key=lambda value: value is None):
        stretch = list(run)
        known = [value for value in stretch if value is not None]
        if not is_gap:
            points = enumerate(known, start) if bucket == 1 else _ends(known, start, bucket)
            yield QPolygonF([at(index, value) for index, value in points])
        start += len(stretch)


def _ends(values: Sequence[float], start: int, bucket: int) -> Iterator[tuple[int, float]]:
    """Of so many values each, the least and the greatest, in their order; the first value has the index `start`."""
    for first in range(0, len(values), bucket):
        part = values[first : first + bucket]
        for place in sorted({part.index(min(part)), part.index(max(part))}):
            yield start + first + place, part[place]
