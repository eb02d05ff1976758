"""The chart over the table: a point an iteration. A click chooses, the mouse shows values, keys step.

It is painted by hand: a plotting library takes half a second to import and 80 MB on the disk, for a few lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.history.plot import Plot
from app.history.series import SERIES, Figures, Kind
from app.theme.style import style
from app.theme.widgets import plain_tool_tip

_HEIGHTS: Final = (56, 88, 144)
"""The least, the usual and the greatest height, in pixels at the usual size of texts."""


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
        self._known: tuple[object, ...] = ()
        self._plot = Plot(figures, self.shown, 0, None, QSizeF(self.size()))
        self._drawing = QPixmap()
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

    def readout(self, index: int, between: str = " · ") -> str:
        """The figures of an iteration in words, with that between them."""
        if not 0 <= index < len(self._figures):
            return ""
        figures = [
            f"{SERIES[kind].title.lower()} {self._figures.words(kind, index)}"
            for kind in self.shown
            if self._figures.words(kind, index)
        ]
        return between.join([f"{self._figures.unit.capitalize()} {index + 1}", *figures])

    @property
    def focus_index(self) -> int:
        """The iteration that the mouse is on, else the one that is looked at."""
        return self._hovered if self._hovered >= 0 else self._index

    @property
    def nothing(self) -> str:
        """What is said where there is nothing to draw."""
        if not self.shown:
            return "Choose above what is drawn."
        count = len(self._figures)
        if self.shown == [Kind.SIMILARITY] and count == 1:
            return "One iteration: there is nothing yet to compare it with."
        return "Being worked out…" if count else f"No {self._figures.unit} has ended yet."

    def place_of(self, index: int) -> float:
        """Where an iteration is, in pixels from the left."""
        return self._current().place_of(index)

    def sizeHint(self) -> QSize:
        """Wide, and as high as it usually is."""
        return QSize(320, round(_HEIGHTS[1] * style().scale))

    def minimumSizeHint(self) -> QSize:
        """High enough to tell up from down."""
        return QSize(120, round(_HEIGHTS[0] * style().scale))

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
        nearest = self._current().nearest(event.position().x())
        if event.button() is Qt.MouseButton.LeftButton and nearest >= 0:
            self.chosen.emit(nearest)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show the figures of the nearest; choose while dragging."""
        nearest = self._current().nearest(event.position().x())
        self._hover(nearest)
        QToolTip.showText(event.globalPosition().toPoint(), plain_tool_tip(self.readout(nearest, "\n")), self)
        if event.buttons() & Qt.MouseButton.LeftButton and nearest >= 0:
            self.chosen.emit(nearest)

    def leaveEvent(self, event: QEvent) -> None:
        """Show those of the chosen one again."""
        super().leaveEvent(event)
        self._hover(-1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw axes and lines, and on them the iterations that are looked at and that the mouse is on."""
        plot = self._current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.drawPixmap(0, 0, self._drawing)
        if not plot.is_empty:
            for index, colour in ((self._index, style().theme.accent), (self._hovered, style().theme.outline)):
                if 0 <= index < self._count:
                    plot.draw_mark(painter, index, colour)
        if self.hasFocus():
            painter.setPen(QPen(QColor(style().theme.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.end()

    def _current(self) -> Plot:
        """The plot, made and drawn anew only where something of it is another: that takes longer than a step may."""
        look = (style().theme.name, style().scale, self.size(), self.devicePixelRatioF())
        figures = (self._figures.version, len(self._figures), self._count, self._threshold, tuple(self.shown))
        if self._known != (*look, *figures):
            self._known = (*look, *figures)
            self._plot = Plot(self._figures, self.shown, self._count, self._threshold, QSizeF(self.size()))
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
