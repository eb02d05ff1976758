"""What the chart draws: a button a series, in its colour and with the mark of its points."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from app.history.series import SERIES, Figures, Kind, Series
from app.theme.style import style
from app.theme.tokens import UNIT


class Legend(QWidget):
    """The buttons.

    Signals:
        changed: Others are on.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: dict[Kind, QToolButton] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(UNIT)
        for kind, series in SERIES.items():
            button = QToolButton(self)
            button.setText(series.title)
            button.setAccessibleName(f"Draw {series.title.lower()}")
            button.setToolTip(f"Draw {series.title.lower()} in the chart")
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setProperty("small", True)
            button.setCheckable(True)
            button.setChecked(kind is Kind.SIMILARITY)
            button.clicked.connect(lambda _checked=False: self.changed.emit())
            row.addWidget(button)
            self.buttons[kind] = button
        style().changed.connect(self._draw)
        self._draw()

    @property
    def chosen(self) -> list[Kind]:
        """What is to be drawn."""
        return [kind for kind, button in self.buttons.items() if button.isChecked() and not button.isHidden()]

    def choose(self, kinds: list[Kind]) -> None:
        """Have these on."""
        for kind, button in self.buttons.items():
            button.setChecked(kind in kinds)

    def offer(self, figures: Figures) -> None:
        """Offer what there are figures for."""
        for kind, button in self.buttons.items():
            if button.isHidden() is figures.has(kind):
                button.setVisible(figures.has(kind))

    def _draw(self) -> None:
        for kind, button in self.buttons.items():
            side = round(12 * style().scale)
            button.setIconSize(QSize(side + 4, side))
            button.setIcon(_sample(SERIES[kind], side, self.devicePixelRatioF()))


def mark(centre: QPointF, radius: float, corners: int) -> QPolygonF:
    """The mark of one value: a circle, or a figure of so many corners with one of them on top."""
    count = corners or 16
    steps = [2 * math.pi * corner / count - math.pi / 2 for corner in range(count)]
    return QPolygonF([centre + QPointF(math.cos(step) * radius, math.sin(step) * radius) for step in steps])


def _sample(series: Series, side: int, ratio: float) -> QIcon:
    """A piece of the line with a point on it."""
    pixmap = QPixmap(QSize(side + 4, side) * ratio)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    colour = QColor(series.colour(style().theme))
    painter.setPen(QPen(colour, 1.5))
    painter.drawLine(QPointF(0, side / 2), QPointF(side + 4, side / 2))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawPolygon(mark(QPointF(side / 2 + 2, side / 2), side / 3, series.corners))
    painter.end()
    return QIcon(pixmap)
