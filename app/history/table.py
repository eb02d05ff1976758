"""The table of iterations: a row each, drawn by hand, so that thousands scroll as smoothly as three."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.history.table_model import NUMBERS, Column, IterationModel
from app.theme.style import icon, style
from app.theme.tokens import FONT_SIZE, FONT_SIZE_SMALL, UNIT
from app.theme.widgets import make_read_only

ROW_HEIGHT: Final = 6 * UNIT
"""In pixels at the usual size of texts."""

_PADDING: Final = 2 * UNIT
_BAR: Final = 3
"""Width of the bar at the left of the chosen row."""
_VERDICT: Final = (88, 280)
"""The least and the most that the verdict takes, in pixels at the usual size of texts."""
_SPARE: Final = {Column.TOKENS: 176, Column.TIME: 176, Column.COST: 176, Column.VERDICT: 40, Column.SIMILAR: 40}
"""What is hidden, in this order, where the result would have less room than so many pixels at the usual size of texts:
the details of an iteration say it too."""
RETURNED: Final = "returned"
_BESIDE_WORD: Final = 56
"""So much room stays for the result beside that word, in pixels at the usual size of texts."""
_SELECTED: Final = QStyle.StateFlag.State_Selected
_LEFT: Final = (Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter).value | Qt.TextFlag.TextSingleLine.value
_RIGHT: Final = (Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter).value | Qt.TextFlag.TextSingleLine.value
_Index = QModelIndex | QPersistentModelIndex


class IterationTable(QTableView):
    """The table.

    Signals:
        chosen: A person chose an iteration; its index.
        latest_wanted: Follow the run again.
        stepped: Look at the iteration so many further on.

    Attributes:
        rows: The iterations.
        hovered: The row that the mouse is on; -1 for none.
    """

    chosen = Signal(int)
    latest_wanted = Signal()
    stepped = Signal(int)

    def __init__(self, model: IterationModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = model
        self._is_showing = False
        self.hovered = -1
        self.setModel(model)
        self.setItemDelegate(_Delegate(self))
        self.setAccessibleName("Iterations")
        self.setProperty("bare", "solid")
        make_read_only(self)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMouseTracking(True)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionsClickable(False)
        header.setMinimumSectionSize(UNIT)
        self.selectionModel().currentRowChanged.connect(self._note_current)
        style().changed.connect(self._restyle)
        self._restyle()

    def show_chosen(self, row: int) -> None:
        """Mark a row and bring it into sight, as if it had been chosen, without telling so."""
        index = self.rows.index(row, 0)
        if index.isValid() and self.currentIndex().row() == row and self.selectionModel().isRowSelected(row):
            return
        self._is_showing = True
        try:
            self.setCurrentIndex(index)
            if index.isValid():
                self.selectRow(row)
                self.scrollTo(index)
        finally:
            self._is_showing = False

    def fit(self) -> None:
        """Give each column the room that it needs; what is empty is hidden, and what finds no room."""
        scale, longest = style().scale, self.rows.longest
        figures = QFontMetrics(style().font())
        heads = QFontMetrics(style().font(FONT_SIZE_SMALL, QFont.Weight.DemiBold))

        def width(column: Column, count: int) -> int:
            heading = heads.horizontalAdvance(self.rows.headerData(column, Qt.Orientation.Horizontal))
            return max(heading, figures.horizontalAdvance("0") * count) + 2 * _PADDING + 2

        widths = {Column.NUMBER: width(Column.NUMBER, len(str(self.rows.rowCount())) + 1)}
        if self.rows.unit != "item":  # items have nothing to do with each other
            widths[Column.SIMILAR] = width(Column.SIMILAR, 6)
        for column in (Column.SCORE, Column.TOKENS, Column.COST, Column.TIME, Column.WARNINGS):
            if longest.get(column):
                widths[column] = width(column, longest[column])
        room = self.viewport().width()
        if longest.get(Column.VERDICT):
            least, most = (round(side * scale) for side in _VERDICT)
            wanted = figures.averageCharWidth() * longest[Column.VERDICT] + 2 * _PADDING
            widths[Column.VERDICT] = min(max(min(wanted, room * 3 // 10), least), most)
        for column, least_result in _SPARE.items():
            if room - sum(widths.values()) < least_result * scale:
                widths.pop(column, None)
        widths[Column.RESULT] = max(room - sum(widths.values()), UNIT)
        for column in Column:
            if self.isColumnHidden(column) is (column in widths):
                self.setColumnHidden(column, column not in widths)
            if column in widths and self.columnWidth(column) != widths[column]:
                self.setColumnWidth(column, widths[column])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the room out anew."""
        super().resizeEvent(event)
        self.fit()
        self.scrollTo(self.currentIndex())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right step as up and down do; Home and End go to the first and the last; Esc follows the run."""
        key = Qt.Key(event.key())
        if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            super().keyPressEvent(event)
        elif key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            self.stepped.emit(-1 if key == Qt.Key.Key_Left else 1)
        elif key in {Qt.Key.Key_Home, Qt.Key.Key_End}:
            self.chosen.emit(0 if key == Qt.Key.Key_Home else self.rows.rowCount() - 1)
        elif key == Qt.Key.Key_Escape:
            self.latest_wanted.emit()
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show which row the mouse is on."""
        super().mouseMoveEvent(event)
        self._hover(self.rowAt(event.position().toPoint().y()))

    def leaveEvent(self, event: QEvent) -> None:
        """It is on none."""
        super().leaveEvent(event)
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self.hovered:
            self.hovered = row
            self.viewport().update()

    def _note_current(self, current: QModelIndex) -> None:
        if not self._is_showing and current.isValid():
            self.chosen.emit(current.row())

    def _restyle(self) -> None:
        self.verticalHeader().setDefaultSectionSize(round(ROW_HEIGHT * style().scale))
        self.fit()


class _Delegate(QStyledItemDelegate):
    """Draws cells."""

    def __init__(self, table: IterationTable) -> None:
        super().__init__(table)
        self._table = table
        style().changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        theme, scale = style().theme, style().scale
        self._colours = {
            name: QColor(getattr(theme, name)) for name in ("text", "dim", "good", "good_soft", "accent", "warning")
        }
        self._grounds = {name: QColor(getattr(theme, name)) for name in ("selection", "hover", "line")}
        self._font = style().font(FONT_SIZE)
        self._small = style().font(FONT_SIZE_SMALL, QFont.Weight.DemiBold)
        self._metrics, self._small_metrics = QFontMetrics(self._font), QFontMetrics(self._small)
        self._letter = max(self._metrics.horizontalAdvance("i"), 1)
        side = round(12 * scale)
        ratio = self._table.devicePixelRatioF()
        self._check = icon("mdi6.check-bold", theme.good).pixmap(QSize(side, side), ratio)
        self._side, self._scale = side, scale

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Draw one cell. The model is asked without the way through Qt, since this is done for hundreds of cells."""
        row, column, place, rows = index.row(), index.column(), option.rect, self._table.rows
        is_chosen = bool(option.state & _SELECTED)
        if is_chosen or row == self._table.hovered:
            painter.fillRect(place, self._grounds["selection" if is_chosen else "hover"])
        painter.fillRect(place.left(), place.bottom(), place.width(), 1, self._grounds["line"])
        if is_chosen and column == Column.NUMBER:
            painter.fillRect(place.left(), place.top(), _BAR, place.height(), self._colours["accent"])
        inner = place.adjusted(_PADDING, 0, -_PADDING, -1)
        if column == Column.RESULT and rows.is_returned(row):
            inner.setLeft(inner.left() + self._draw_returned(painter, inner))
        text = rows.text(row, column)
        if not text:
            return
        painter.setFont(self._font)
        dim = column == Column.VERDICT or rows.is_under_way(row)
        painter.setPen(self._colours["warning" if column == Column.WARNINGS else "dim" if dim else "text"])
        painter.drawText(inner, _RIGHT if column in NUMBERS else _LEFT, self._fitting(text, inner.width()))

    def _fitting(self, text: str, width: int) -> str:
        """As much of a text as there is room for."""
        most = width // self._letter + 1  # more letters than that have no room, however narrow they are
        if len(text) * self._metrics.maxWidth() <= width:
            return text
        return self._metrics.elidedText(text[:most], Qt.TextElideMode.ElideRight, width)

    def sizeHint(self, _option: QStyleOptionViewItem, _index: _Index) -> QSize:
        """Rows have one height."""
        return QSize(0, round(ROW_HEIGHT * self._scale))

    def _draw_returned(self, painter: QPainter, place: QRect) -> int:
        """Draw the mark of the iteration that was returned, without its word where there is little room.

        Returns:
            The room that it takes.
        """
        word = self._small_metrics.horizontalAdvance(RETURNED)
        height = round(18 * self._scale)
        width = self._side + word + 5 * UNIT
        has_word = place.width() >= width + _BESIDE_WORD * self._scale
        pill = QRectF(place.left(), place.center().y() - height / 2 + 1, width if has_word else height, height)
        inset = 2 * UNIT if has_word else (height - self._side) / 2
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._colours["good_soft"])
        painter.drawRoundedRect(pill, height / 2, height / 2)
        top = pill.center().y() - self._side / 2
        painter.drawPixmap(round(pill.left() + inset), round(top), self._side, self._side, self._check)
        if has_word:
            painter.setFont(self._small)
            painter.setPen(self._colours["good"])
            painter.drawText(pill.adjusted(self._side + 3 * UNIT, 0, -UNIT, 0), _LEFT, RETURNED)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        return round(pill.width()) + 2 * UNIT
