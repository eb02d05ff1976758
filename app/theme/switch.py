"""A check box that looks like a switch."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QStyle, QStyleOptionButton

from app.theme.style import style
from app.theme.tokens import UNIT


class Switch(QCheckBox):
    """A check box that looks like a switch: for what holds at once, without an OK."""

    def sizeHint(self) -> QSize:
        """The track and the text beside it."""
        track = self._track()
        metrics: QFontMetrics = self.fontMetrics()
        text = 2 * UNIT + metrics.horizontalAdvance(self.text()) if self.text() else 0
        return QSize(track.width() + text + UNIT, max(track.height(), metrics.height()) + UNIT)

    def minimumSizeHint(self) -> QSize:
        """The same: half a switch is none."""
        return self.sizeHint()

    def hitButton(self, position: QPoint) -> bool:
        """All of it can be pressed."""
        return self.rect().contains(position)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the track, the knob on the side that tells the state, the ring of the keyboard, and the text."""
        theme = style().theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        size = self._track()
        track = QRectF(2, (self.height() - size.height()) / 2, size.width(), size.height())
        on = self.isChecked()
        ground, border = (theme.accent, theme.accent) if on else (theme.field, theme.outline)
        if not self.isEnabled():
            ground, border = (theme.hover, theme.faint)
        painter.setPen(QPen(QColor(border), 1.5))
        painter.setBrush(QColor(ground))
        painter.drawRoundedRect(track, track.height() / 2, track.height() / 2)
        inset = track.height() * 0.2
        knob = QRectF(0, 0, track.height() - 2 * inset, track.height() - 2 * inset)
        knob.moveTop(track.top() + inset)
        knob.moveLeft(track.right() - inset - knob.width() if on else track.left() + inset)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor((theme.on_accent if on else theme.outline) if self.isEnabled() else theme.faint))
        painter.drawEllipse(knob)
        option = QStyleOptionButton()
        self.initStyleOption(option)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 2))
            painter.drawRoundedRect(track.adjusted(-1, -1, 1, 1), track.height() / 2, track.height() / 2)
        if self.text():
            painter.setPen(QColor(theme.text if self.isEnabled() else theme.faint))
            place = self.rect().adjusted(size.width() + 2 * UNIT + 2, 0, 0, 0)
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextShowMnemonic, self.text())
        painter.end()

    def _track(self) -> QSize:
        height = round(18 * style().scale)
        return QSize(round(height * 1.8), height)
