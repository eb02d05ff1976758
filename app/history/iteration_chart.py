"""Chart of the iterations above the table: click to select, hover for values, keys to step.

Painted directly: a plotting library takes half a second to import and 80 MB on disk, for a few lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QIcon,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QToolButton, QToolTip, QWidget

from app.history.similarity_worker import Similarities
from app.runs.run_view_model import NO_LOOP
from app.theme.style import style
from app.theme.tokens import FONT_SIZE_SMALL, UNIT, Theme
from app.theme.widgets import hbox, plain_tool_tip
from engine.events import LoopIterationCompleted
from engine.exits.condition import SeriesSource
from engine.exits.loop_conditions import condition_specs
from engine.formatting import format_count, format_duration, format_money, format_percent, format_score
from engine.nodes.loop import LoopConfig
from engine.nodes.spec import Category
from engine.run_state.state import LoopExecution


class BaseSeries(StrEnum):
    """The series that every loop has. Conditions can add others by name."""

    SIMILARITY = "similarity"
    SCORE = "score"
    COST = "cost"
    TOKENS = "tokens"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Series:
    """One line of the chart.

    Attributes:
        title: Its title.
        color: Returns its color in a theme.
        corners: Corners of its points, which distinguish lines without color; 0 for a circle.
        format: Formats a value.
        value: Returns the value of an iteration, or None.
    """

    title: str
    color: Callable[[Theme], str]
    corners: int
    format: Callable[[float], str]
    value: Callable[[LoopIterationCompleted], float | None]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The value of a series at which the loop stops, and the label of its line."""

    value: float
    label: str


_BASE: Final = {
    BaseSeries.SIMILARITY: Series(
        "Similarity", lambda theme: theme.accent, 0, format_percent, lambda it: it.similarity
    ),
    BaseSeries.SCORE: Series("Score", lambda theme: theme.good, 3, format_score, lambda it: it.score),
    BaseSeries.COST: Series("Cost", lambda theme: theme.warning, 4, format_money, lambda it: it.cost_usd),
    BaseSeries.TOKENS: Series(
        "Tokens",
        lambda theme: theme.category[Category.IO],
        5,
        format_count,
        lambda it: float(it.usage.total_tokens),
    ),
    BaseSeries.TIME: Series(
        "Time", lambda theme: theme.category[Category.TOOLS], 6, format_duration, lambda it: it.duration_s
    ),
}


def all_series() -> dict[str, Series]:
    """Return the series by name: those of every loop, then those of conditions."""
    found: dict[str, Series] = {str(kind): series for kind, series in _BASE.items()}
    for name, spec in condition_specs().items():
        if spec.series is not None and spec.series.source is SeriesSource.TESTED:
            found[name] = Series(
                spec.series.title or spec.label,
                lambda theme: theme.category[Category.LOGIC],
                7,
                spec.series.format,
                lambda it, name=name: _number(it, name),
            )
    return found


def _number(iteration: LoopIterationCompleted, condition: str) -> float | None:
    value = iteration.tested.get(condition)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def thresholds(config: LoopConfig) -> dict[str, Threshold]:
    """Return the values at which a loop stops, by series."""
    found: dict[str, Threshold] = {}
    for condition in config.leaf_conditions:
        series = condition.spec.series
        value = series.threshold(condition.config) if series is not None else None
        if series is not None and value is not None:
            name = condition.spec.name if series.source is SeriesSource.TESTED else str(series.source)
            found.setdefault(name, Threshold(value, f"{series.threshold_label} {series.format(value)}".strip()))
    return found


class ChartData:
    """The values of all series of one loop run. Each iteration is read once.

    Args:
        similarities: Provides similarities that the run has not recorded.

    Attributes:
        series: The series by name.
        loop: The loop run.
        unit: `iteration`, or `item` of an iterator.
        version: Changes whenever the chart must be redrawn.
    """

    def __init__(self, similarities: Similarities) -> None:
        self._similarities = similarities
        self.loop = NO_LOOP
        self.unit = "iteration"
        self.version = 0
        self._returned: int | None = None
        self.series = all_series()
        self._values: dict[str, list[float | None]] = {name: [] for name in self.series}

    def __len__(self) -> int:
        return len(self._values[BaseSeries.TIME])

    def of(self, kind: str) -> Sequence[float | None]:
        """Return the values of a series, one for each iteration."""
        return self._values[kind]

    def has(self, kind: str) -> bool:
        """Return whether a series has anything to draw. Without model calls, a loop has no tokens and costs."""
        if kind in {BaseSeries.COST, BaseSeries.TOKENS}:
            return any(self._values[BaseSeries.TOKENS]) or any(self._values[BaseSeries.COST])
        if kind == BaseSeries.SIMILARITY:
            return self.unit != "item"
        return kind == BaseSeries.TIME or any(value is not None for value in self._values[kind])

    def take(self, loop: LoopExecution, unit: str = "iteration") -> None:
        """Read new iterations."""
        self.unit = unit
        known = len(self)
        if loop is not self.loop or known > len(loop.iterations):
            self.loop, known = loop, 0
            self.version += 1
            self.series = all_series()
            self._values = {name: [] for name in self.series}
        if loop.returned != self._returned:
            self._returned = loop.returned
            self.version += 1
        new = loop.iterations[known:]
        for name, series in self.series.items():
            self._values[name].extend(map(series.value, new))
        if known < len(self):
            self.take_similarities(known, len(self) - 1)

    def take_similarities(self, first: int, last: int) -> None:
        """Update similarities that have been computed."""
        self.version += 1
        for index in range(first, min(last, len(self) - 1) + 1):
            self._values[BaseSeries.SIMILARITY][index] = self._similarities.of(self.loop, index)

    def words(self, kind: str, index: int) -> str:
        """Format a value; empty if there is none."""
        value = self._values[kind][index] if 0 <= index < len(self) else None
        return self.series[kind].format(value) if value is not None else ""


def scale(series: Series, values: Sequence[float | None], threshold: float | None = None) -> tuple[float, float]:
    """Return minimum and maximum of the axis: round numbers around all values.

    Args:
        series: The series.
        values: Its values.
        threshold: A threshold that is drawn too.
    """
    known = [value for value in values if value is not None]
    if series.format is format_percent:
        least = min([*known, threshold if threshold is not None else 1.0])
        return (0.9 if least >= 0.92 else 0.5 if least >= 0.55 else 0.0), 1.0
    least, greatest = min([0.0, *known]), max([0.0, *known])
    return (-_round_up(-least) if least < 0 else 0.0), _round_up(greatest) or (0.0 if least < 0 else 1.0)


def _round_up(value: float) -> float:
    """Round up to 1, 2, 2.5 or 5 times a power of ten."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((factor * power for factor in (1, 2, 2.5, 5) if value <= factor * power * (1 + 1e-9)), 10 * power)


def ticks(count: int, most: int) -> list[int]:
    """Return the iteration numbers below the axis.

    Args:
        count: Number of the last iteration.
        most: Maximum number of ticks.
    """
    if count <= max(most, 1):
        return list(range(1, count + 1))
    steps = (factor * 10**power for power in range(10) for factor in (1, 2, 5))
    step = next(step for step in steps if count <= step * max(most, 1))
    return [1, *(number for number in range(step, count + 1, step) if number - 1 > step / 2)]


class Legend(QWidget):
    """Buttons that select the series.

    Signals:
        changed: The selection changed.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: dict[str, QToolButton] = {}
        row = hbox(spacing=1, parent=self)
        self._series = all_series()
        for kind, series in self._series.items():
            button = QToolButton(self)
            button.setText(series.title)
            button.setAccessibleName(f"Show {series.title.lower()}")
            button.setToolTip(f"Show {series.title.lower()} in the chart")
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setProperty("small", True)
            button.setCheckable(True)
            button.setChecked(kind == BaseSeries.SIMILARITY)
            button.clicked.connect(lambda _checked=False: self.changed.emit())
            row.addWidget(button)
            self.buttons[kind] = button
        style().changed.connect(self._draw)
        self._draw()

    @property
    def chosen(self) -> list[str]:
        """The selected series."""
        return [kind for kind, button in self.buttons.items() if button.isChecked() and not button.isHidden()]

    def choose(self, kinds: list[str]) -> None:
        """Select series."""
        for kind, button in self.buttons.items():
            button.setChecked(kind in kinds)

    def offer(self, figures: ChartData) -> None:
        """Show the buttons of series that have values."""
        for kind, button in self.buttons.items():
            if button.isHidden() is figures.has(kind):
                button.setVisible(figures.has(kind))

    def _draw(self) -> None:
        for kind, button in self.buttons.items():
            side = round(12 * style().scale)
            button.setIconSize(QSize(side + 4, side))
            button.setIcon(_sample(self._series[kind], side, self.devicePixelRatioF()))


def mark(center: QPointF, radius: float, corners: int) -> QPolygonF:
    """Return the marker of a value: a circle, or a polygon with a corner at the top."""
    count = corners or 16
    steps = [2 * math.pi * corner / count - math.pi / 2 for corner in range(count)]
    return QPolygonF([center + QPointF(math.cos(step) * radius, math.sin(step) * radius) for step in steps])


def _sample(series: Series, side: int, ratio: float) -> QIcon:
    """Draw a piece of the line with a marker."""
    pixmap = QPixmap(QSize(side + 4, side) * ratio)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    color = QColor(series.color(style().theme))
    painter.setPen(QPen(color, 1.5))
    painter.drawLine(QPointF(0, side / 2), QPointF(side + 4, side / 2))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawPolygon(mark(QPointF(side / 2 + 2, side / 2), side / 3, series.corners))
    painter.end()
    return QIcon(pixmap)


_RADIUS: Final = 3.5
_INSET: Final = 2 * UNIT
"""Space between the ends of the axis and the first and last iteration."""
_POINTS_FROM: Final = 9.0
"""Minimum distance of two iterations in pixels for markers; otherwise only the line is drawn."""
_TICK_ROOM: Final = 44

_Place = Callable[[int, float], QPointF]


class Plot:
    """A drawing of the chart for a size, theme and data.

    Args:
        figures: The data.
        shown: Names of the series; the first has its axis on the left, the second on the right.
        count: Number of iterations on the axis.
        thresholds: The values at which the loop stops, by series.
        size: Size of the drawing.
    """

    def __init__(
        self,
        figures: ChartData,
        shown: Sequence[str],
        count: int,
        thresholds: Mapping[str, Threshold],
        size: QSizeF,
    ) -> None:
        self._figures, self._count, self._thresholds = figures, count, thresholds
        self._drawn = [kind for kind in shown if any(value is not None for value in figures.of(kind))]
        self._ends = {
            kind: scale(figures.series[kind], figures.of(kind), thresholds[kind].value if kind in thresholds else None)
            for kind in self._drawn
        }
        self._width, self._height = size.width(), size.height()
        self._scale, self._theme, self._font = style().scale, style().theme, style().font(FONT_SIZE_SMALL)
        metrics = QFontMetricsF(self._font)
        self._line = metrics.height()
        side = metrics.horizontalAdvance("$0.0000") + 3 * UNIT
        right = side if len(shown) > 1 else 4.0 * UNIT
        self._has_threshold = any(kind in thresholds for kind in self._drawn)
        above = self._line + 2 if self._has_threshold else 2 * UNIT * self._scale  # room for the label of the line
        self.area = QRectF(QPointF(), size).adjusted(side, above, -right, -self._line - UNIT)
        between = self.area.width() - 2 * _INSET
        self._step = between / (count - 1) if count > 1 else 0.0
        self._first = self.area.left() + _INSET if count > 1 else self.area.center().x()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self._drawn

    def place_of(self, index: int) -> float:
        """Return the x position of an iteration in pixels."""
        return self._first + self._step * index

    def nearest(self, x: float) -> int:
        """Return the iteration nearest to an x position; -1 if there is none."""
        wanted = round((x - self._first) / self._step) if self._step else 0
        return min(max(wanted, 0), len(self._figures) - 1)

    def draw(self, painter: QPainter, nothing: str) -> None:
        """Draw everything that does not depend on the selected iteration.

        Args:
            painter: The painter.
            nothing: Text to show if there is nothing to draw.
        """
        area = self.area
        painter.setFont(self._font)
        painter.setPen(QPen(QColor(self._theme.line), 1))
        for height in (area.top(), area.bottom()) if self.is_empty else (area.top(), area.center().y(), area.bottom()):
            painter.drawLine(QPointF(area.left(), round(height) + 0.5), QPointF(area.right(), round(height) + 0.5))
        if self.is_empty:
            painter.setPen(QColor(self._theme.dim))
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, nothing)
            return
        self._draw_numbers(painter)
        self._draw_returned(painter)
        for place, kind in enumerate(self._drawn):
            self._draw_series(painter, kind, place)

    def draw_mark(self, painter: QPainter, index: int, color: str) -> None:
        """Draw a line through an iteration with large markers."""
        x = self.place_of(index)
        painter.setPen(QPen(QColor(color), 1.5))
        painter.drawLine(QPointF(x, self.area.top()), QPointF(x, self.area.bottom()))
        for kind in self._drawn:
            values = self._figures.of(kind)
            value = values[index] if index < len(values) else None
            if value is not None:
                self._draw_point(painter, self._placing(kind)(index, value), self._figures.series[kind], _RADIUS + 1.5)

    def _placing(self, kind: str) -> _Place:
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
        returned = self._figures.loop.returned
        if returned is not None:
            x, bottom = self.place_of(returned), self.area.bottom()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._theme.good))
            corners = (QPointF(x, bottom - 6), QPointF(x - 4, bottom + 1), QPointF(x + 4, bottom + 1))
            painter.drawPolygon(QPolygonF(corners))

    def _draw_series(self, painter: QPainter, kind: str, place: int) -> None:
        series, values, at = self._figures.series[kind], self._figures.of(kind), self._placing(kind)
        if kind in self._thresholds:
            threshold = self._thresholds[kind]
            self._draw_threshold(painter, at(0, threshold.value).y(), threshold.label)
        if place < 2:
            self._draw_axis(painter, series, self._ends[kind], is_left=place == 0)
        painter.setPen(QPen(QColor(series.color(self._theme)), 1.75))
        for line in lines(values, at, self.area.width()):
            painter.drawPolyline(line)
        known = [(index, value) for index, value in enumerate(values) if value is not None]
        if self._step >= _POINTS_FROM * self._scale or len(known) == 1:
            for index, value in known:
                self._draw_point(painter, at(index, value), series, _RADIUS)

    def _draw_point(self, painter: QPainter, center: QPointF, series: Series, radius: float) -> None:
        painter.setPen(QPen(QColor(self._theme.panel), 1))
        painter.setBrush(QColor(series.color(self._theme)))
        painter.drawPolygon(mark(center, radius * self._scale, series.corners))

    def _draw_axis(self, painter: QPainter, series: Series, ends: tuple[float, float], *, is_left: bool) -> None:
        painter.setPen(QColor(self._theme.dim if len(self._drawn) == 1 else series.color(self._theme)))
        side = Qt.AlignmentFlag.AlignRight if is_left else Qt.AlignmentFlag.AlignLeft
        left = 0.0 if is_left else self.area.right() + 2 * UNIT
        width = self.area.left() - 2 * UNIT if is_left else self._width - left
        for value, y in zip(ends, (self.area.bottom(), self.area.top()), strict=True):
            top = min(max(y - self._line / 2, 0), self._height - self._line)
            place = QRectF(left, top, width, self._line)
            painter.drawText(place, side | Qt.AlignmentFlag.AlignVCenter, series.format(value))

    def _draw_threshold(self, painter: QPainter, y: float, label: str) -> None:
        color, area = QColor(self._theme.warning), self.area
        painter.setPen(QPen(color, 1.25, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        place = QRectF(area.left(), y - self._line - 1, area.width(), self._line)
        painter.setPen(color)
        painter.drawText(place, Qt.AlignmentFlag.AlignLeft, label)


def lines(values: Sequence[float | None], at: _Place, width: float) -> Iterator[QPolygonF]:
    """Yield lines through the values, interrupted at gaps; of many values in a pixel only minimum and maximum."""
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
    """Yield index and value of minimum and maximum of each bucket in order; `start` is the index of the first value."""
    for first in range(0, len(values), bucket):
        part = values[first : first + bucket]
        for place in sorted({part.index(min(part)), part.index(max(part))}):
            yield start + first + place, part[place]


_HEIGHTS: Final = (56, 88, 144)
"""Minimum, preferred and maximum height in pixels at the default text size."""


class Chart(QWidget):
    """Shows the chart of one loop run.

    Signals:
        chosen: The user selected an iteration; its index.
        hovered: The mouse is on an iteration, or on none (-1).
        stepped: The user wants to go this many iterations further.
        latest_wanted: The user wants to follow the run again.

    Attributes:
        shown: Names of the displayed series; the first has its axis on the left, the second on the right.
    """

    chosen = Signal(int)
    hovered = Signal(int)
    stepped = Signal(int)
    latest_wanted = Signal()

    def __init__(self, figures: ChartData, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._figures = figures
        self.shown: list[str] = [BaseSeries.SIMILARITY]
        self._thresholds: dict[str, Threshold] = {}
        self._index = -1
        self._hovered = -1
        self._count = 0
        self._known: tuple[object, ...] = ()
        self._plot = Plot(figures, self.shown, 0, {}, QSizeF(self.size()))
        self._drawing = QPixmap()
        self.setAccessibleName("Iteration chart")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        style().changed.connect(self._restyle)
        self._restyle()

    def show_loop(self, index: int, total: int, thresholds: dict[str, Threshold]) -> None:
        """Show the current data.

        Args:
            index: The selected iteration.
            total: Maximum number of iterations, which is the length of the axis.
            thresholds: The values at which the loop stops, by series.
        """
        self._index, self._thresholds = index, thresholds
        self._count = max(total, len(self._figures))
        self.setAccessibleDescription(self.readout(index))
        self.update()

    def show_kinds(self, kinds: Sequence[str]) -> None:
        """Show other series."""
        self.shown = list(kinds)
        self.setAccessibleDescription(self.readout(self._index))
        self.update()

    def readout(self, index: int, between: str = " · ") -> str:
        """Return the values of an iteration as text, separated by `between`."""
        if not 0 <= index < len(self._figures):
            return ""
        figures = [
            f"{self._figures.series[kind].title.lower()} {self._figures.words(kind, index)}"
            for kind in self.shown
            if self._figures.words(kind, index)
        ]
        return between.join([f"{self._figures.unit.capitalize()} {index + 1}", *figures])

    @property
    def focus_index(self) -> int:
        """The iteration below the mouse, or the selected one."""
        return self._hovered if self._hovered >= 0 else self._index

    @property
    def nothing(self) -> str:
        """Text to show if there is nothing to draw."""
        if not self.shown:
            return "Choose what to show above."
        count = len(self._figures)
        if self.shown == [BaseSeries.SIMILARITY] and count == 1:
            return "There is only one iteration, so there is no similarity yet."
        return "Calculating…" if count else f"No completed {self._figures.unit}s yet."

    def sizeHint(self) -> QSize:
        """Return a wide size with the preferred height."""
        return QSize(320, round(_HEIGHTS[1] * style().scale))

    def minimumSizeHint(self) -> QSize:
        """Return a size at which differences are still visible."""
        return QSize(120, round(_HEIGHTS[0] * style().scale))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle Left and Right (step), Home and End (first and last) and Esc (follow the run)."""
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
        """Select the nearest iteration."""
        nearest = self._current().nearest(event.position().x())
        if event.button() is Qt.MouseButton.LeftButton and nearest >= 0:
            self.chosen.emit(nearest)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show the values of the nearest iteration; select it while dragging."""
        nearest = self._current().nearest(event.position().x())
        self._hover(nearest)
        QToolTip.showText(event.globalPosition().toPoint(), plain_tool_tip(self.readout(nearest, "\n")), self)
        if event.buttons() & Qt.MouseButton.LeftButton and nearest >= 0:
            self.chosen.emit(nearest)

    def leaveEvent(self, event: QEvent) -> None:
        """Show the values of the selected iteration again."""
        super().leaveEvent(event)
        self._hover(-1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the plot, the selected iteration and the one below the mouse."""
        plot = self._current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.drawPixmap(0, 0, self._drawing)
        if not plot.is_empty:
            for index, color in ((self._index, style().theme.accent), (self._hovered, style().theme.outline)):
                if 0 <= index < self._count:
                    plot.draw_mark(painter, index, color)
        if self.hasFocus():
            painter.setPen(QPen(QColor(style().theme.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.end()

    def _current(self) -> Plot:
        """Return the plot, rebuilt only if its data has changed, because that takes longer than a frame."""
        look = (style().theme.name, style().scale, self.size(), self.devicePixelRatioF())
        figures = (
            self._figures.version,
            len(self._figures),
            self._count,
            tuple(self._thresholds.items()),
            tuple(self.shown),
        )
        if self._known != (*look, *figures):
            self._known = (*look, *figures)
            self._plot = Plot(self._figures, self.shown, self._count, self._thresholds, QSizeF(self.size()))
            self._drawing = QPixmap(self.size() * self.devicePixelRatioF())
            self._drawing.setDevicePixelRatio(self.devicePixelRatioF())
            self._drawing.fill(Qt.GlobalColor.transparent)
            painter = QPainter(self._drawing)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._plot.draw(painter, self.nothing)
            painter.end()
        return self._plot

    def _restyle(self) -> None:
        self.setMaximumHeight(round(_HEIGHTS[2] * style().scale))
        self.updateGeometry()

    def _hover(self, index: int) -> None:
        if index != self._hovered:
            self._hovered = index
            self.hovered.emit(index)
            self.update()
