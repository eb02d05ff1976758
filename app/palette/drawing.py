"""How the palette's rows look, and the picture that goes with the pointer when one is dragged."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap
from PySide6.QtWidgets import QAbstractScrollArea, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.palette.model import PaletteModel
from app.palette.rows import Row, RowKind
from app.theme.elided_text import elide_two_lines
from app.theme.style import icon, style
from app.theme.tokens import FONT_SIZE_SMALL, UNIT

CARD = QSize(220, 48)
"""Size of a dragged card at the usual size of texts."""


class RowDelegate(QStyledItemDelegate):
    """Draws headers as small words and everything else as icon, name and at most two lines of help."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """One line for a header; for the rest, the name and as many lines as the help takes."""
        row = _row(index)
        if row.kind is RowKind.HEADER:
            return QSize(0, QFontMetrics(_small()).height() + 4 * UNIT)
        room = (
            option.widget.viewport().width() if isinstance(option.widget, QAbstractScrollArea) else option.rect.width()
        )
        return QSize(0, _height(row.help, room, style().scale))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw one row."""
        row = _row(index)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if row.kind is RowKind.HEADER:
            _paint_header(painter, option.rect, row)
        else:
            _paint_row(painter, option, row)
        painter.restore()


def help_lines(row: Row, width: int) -> list[str]:
    """The help of a row as it fits a width: on one line or two, the second cut where it is too long."""
    return list(_lines(row.help, width, style().scale))


# Measured once: at each letter that is typed into the filter all rows are laid out anew, and servers may have hundreds.
@lru_cache(maxsize=8_192)
def _lines(text: str, width: int, _scale: float) -> tuple[str, ...]:
    return tuple(elide_two_lines(QFontMetricsF(_small()), text, width)) if text else ()


@lru_cache(maxsize=8_192)
def _height(text: str, room: int, scale: float) -> int:
    lines = len(_lines(text, _words_width(room), scale))
    return QFontMetrics(style().font()).height() + lines * QFontMetrics(_small()).height() + 2 * UNIT + UNIT


def drag_picture(row: Row, ratio: float) -> QPixmap:
    """A card as the canvas shows it, for a screen with that many dots a pixel."""
    theme = style().theme
    size = QSize(round(CARD.width() * style().scale), round(CARD.height() * style().scale))
    pixmap = QPixmap(size * ratio)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    area = QRectF(0.5, 0.5, size.width() - 1, size.height() - 1)
    outline = QPainterPath()
    outline.addRoundedRect(area, 8, 8)
    painter.fillPath(outline, QColor(theme.card))
    painter.setClipPath(outline)
    painter.fillRect(QRectF(0, 0, UNIT, size.height()), QColor(_colour(row)))
    painter.setClipping(False)
    painter.setPen(QPen(QColor(theme.edge), 1))
    painter.drawPath(outline)
    side = round(20 * style().scale)
    place = QRect(4 * UNIT, (size.height() - side) // 2, side, side)
    icon(row.icon, _colour(row)).paint(painter, place)
    font = style().font(weight=QFont.Weight.DemiBold)
    painter.setFont(font)
    painter.setPen(QColor(theme.text))
    words = QRect(place.right() + 3 * UNIT, 0, size.width() - place.right() - 5 * UNIT, size.height())
    title = QFontMetrics(font).elidedText(row.title, Qt.TextElideMode.ElideRight, words.width())
    painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, title)
    painter.end()
    return pixmap


def _row(index: QModelIndex | QPersistentModelIndex) -> Row:
    model = index.model()
    assert isinstance(model, PaletteModel)
    row = model.row_at(index)
    assert row is not None
    return row


def _small(weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    return style().font(FONT_SIZE_SMALL, weight)


def _colour(row: Row) -> str:
    theme = style().theme
    return theme.category[row.category] if row.category is not None else theme.dim


def _icon_side() -> int:
    return round(20 * style().scale)


def _words_width(row_width: int) -> int:
    """The room for words beside the icon."""
    return row_width - 2 * UNIT - _icon_side() - 3 * UNIT - UNIT


def _paint_header(painter: QPainter, area: QRect, row: Row) -> None:
    painter.setFont(_small(QFont.Weight.DemiBold))
    painter.setPen(QColor(style().theme.dim))
    painter.drawText(area.adjusted(2 * UNIT, 0, 0, -UNIT), Qt.AlignmentFlag.AlignBottom, row.title)


def _paint_row(painter: QPainter, option: QStyleOptionViewItem, row: Row) -> None:
    theme = style().theme
    area = QRect(option.rect)
    is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)
    if is_chosen or option.state & QStyle.StateFlag.State_MouseOver:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.selection if is_chosen else theme.hover))
        painter.drawRoundedRect(area, 6, 6)
    if is_chosen and option.state & QStyle.StateFlag.State_HasFocus:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(theme.accent), 2))
        painter.drawRoundedRect(QRectF(area).adjusted(1, 1, -1, -1), 6, 6)
    side = _icon_side()
    name, small = style().font(), _small()
    width = _words_width(area.width())
    left = area.right() - UNIT - width
    lines = [(row.title, name, theme.text), *((line, small, theme.dim) for line in help_lines(row, width))]
    top = area.top() + (area.height() - sum(QFontMetrics(font).height() for _text, font, _colour in lines)) // 2
    place = QRect(area.left() + 2 * UNIT, top + (QFontMetrics(name).height() - side) // 2, side, side)
    icon(row.icon, _colour(row)).paint(painter, place)
    for text, font, colour in lines:
        metrics = QFontMetrics(font)
        painter.setFont(font)
        painter.setPen(QColor(colour))
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QRect(left, top, width, metrics.height()), Qt.AlignmentFlag.AlignVCenter, shown)
        top += metrics.height()
