"""The table of iterations. Rows are painted directly, so that thousands scroll smoothly."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
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

from app.history.similarity_worker import Similarities
from app.inspector.result_text import cost
from app.inspector.text_widgets import from_utf16_units
from app.runs.loop_status import warning_label
from app.runs.run_view_model import NO_LOOP
from app.theme.style import icon, style
from app.theme.tokens import FONT_SIZE, FONT_SIZE_SMALL, UNIT
from app.theme.widgets import make_read_only, plain_tool_tip
from engine.document.model import Workflow
from engine.events import LoopIterationCompleted
from engine.formatting import format_count, format_duration, format_percent, format_score
from engine.models.protocol import Usage
from engine.run_state.state import LoopExecution
from engine.store.codec import json_start
from engine.values import Value

PREVIEW: Final = 200
"""Maximum number of characters of a value in a cell."""


def beginning(value: Value, most: int = PREVIEW) -> str:
    """Return the beginning of a value as one line. Looks at no more of the value than needed."""
    if value is None:
        return ""

    def shortened(item: Value) -> Value:
        return item[: most + 1] if isinstance(item, str) else item

    text = value[: most + 1] if isinstance(value, str) else json_start(value, most + 1, shortened, spaced=True)
    line = from_utf16_units(" ".join(text.split()))
    return f"{line[:most].rstrip()}…" if len(text) > most else line


def token_count(usage: Usage) -> str:
    """Format input and output tokens, with `~` before an estimate; empty without model calls."""
    return format_count(usage.total_tokens, exact=usage.exact) if usage.total_tokens else ""


def verdict(iteration: LoopIterationCompleted) -> str:
    """Return the decision after the iteration and its reason in one line."""
    reason = beginning(iteration.reason) if iteration.reason else ""
    return " · ".join(part for part in (iteration.branch or "", reason) if part)


_ROOT: Final = QModelIndex()
_TOOLTIP_LENGTH: Final = 1000
"""Maximum number of characters of a value in a tooltip."""


class Column(IntEnum):
    """The columns, from left to right."""

    NUMBER = 0
    RESULT = 1
    VERDICT = 2
    SCORE = 3
    SIMILAR = 4
    TOKENS = 5
    COST = 6
    TIME = 7
    WARNINGS = 8


HEADINGS: Final = {
    Column.RESULT: ("Result", "Beginning of the result"),
    Column.VERDICT: ("Verdict", "Decision after the iteration, with its reason"),
    Column.SCORE: ("Score", "Score"),
    Column.SIMILAR: ("Similar", "Similarity to the previous result"),
    Column.TOKENS: ("Tokens", "Input and output tokens"),
    Column.COST: ("Cost", "Cost in US dollars"),
    Column.TIME: ("Time", "Duration of the iteration"),
    Column.WARNINGS: ("Warnings", "Warnings of the iteration and its nodes"),
}
NUMBERS: Final = frozenset({Column.SCORE, Column.SIMILAR, Column.TOKENS, Column.COST, Column.TIME, Column.WARNINGS})
"""Right-aligned columns with numbers."""


class IterationModel(QAbstractTableModel):
    """Table model of the iterations.

    Args:
        similarities: Provides similarities that the run has not recorded.
        parent: Its parent.

    Attributes:
        loop: The displayed loop run.
        unit: `iteration`, or `item` of an iterator.
        workflow: The workflow as it ran, for the titles of its nodes.
        longest: Length of the longest text of the verdict and of each number column; 0 for empty columns.
    """

    def __init__(self, similarities: Similarities, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._similarities = similarities
        self.loop = NO_LOOP
        self.unit = "iteration"
        self.workflow: Workflow | None = None
        self.longest: dict[Column, int] = {}
        self._rows = 0
        self._done = 0
        self._out_of_turn = 0
        self._returned: int | None = None
        self._is_over = False
        self._texts: dict[int, Callable[[LoopIterationCompleted], str]] = {
            Column.NUMBER: lambda iteration: str(iteration.index + 1),
            Column.RESULT: lambda iteration: beginning(iteration.result),
            Column.VERDICT: verdict,
            Column.SCORE: lambda iteration: format_score(iteration.score) if iteration.score is not None else "",
            Column.SIMILAR: self._similar,
            Column.TOKENS: lambda iteration: token_count(iteration.usage),
            Column.COST: cost,
            Column.TIME: lambda iteration: format_duration(iteration.duration_s),
            Column.WARNINGS: lambda iteration: str(len(iteration.warnings) or ""),
        }
        similarities.found.connect(self._note_similarities)

    def show_loop(self, loop: LoopExecution, *, is_over: bool, unit: str = "iteration") -> None:
        """Show a loop run, or update it with new iterations only.

        Args:
            loop: The loop run.
            is_over: Whether the run has ended.
            unit: What a row is called.
        """
        self.unit = unit
        rows, done = max(loop.current + 1, len(loop.iterations)), len(loop.iterations)
        if loop is not self.loop or rows < self._rows:
            self.beginResetModel()
            self.loop, self._rows, self._done, self._is_over = loop, rows, done, is_over
            self._returned = loop.returned
            self.longest = {}
            self._measure(0, done)
            self._out_of_turn = len(loop.ahead)
            self.endResetModel()
            return
        before, was_done, was_returned, was_out = self._rows, self._done, self._returned, self._out_of_turn
        self._out_of_turn = len(loop.ahead)
        self._done, self._returned = done, loop.returned
        self._measure(was_done, done)
        if rows > before:
            self.beginInsertRows(_ROOT, before, rows - 1)
            self._rows = rows
            self.endInsertRows()
        if is_over != self._is_over or done > was_done or self._out_of_turn != was_out:
            self._is_over = is_over
            self._emit_changed(was_done, before - 1)
        if was_returned != loop.returned:
            for row in (was_returned, loop.returned):
                if row is not None:
                    self._emit_changed(row, row)

    def rowCount(self, parent: _Index = _ROOT) -> int:
        """Return the number of started iterations."""
        return 0 if parent.isValid() else self._rows

    def columnCount(self, parent: _Index = _ROOT) -> int:
        """Return the number of columns, hidden ones included."""
        return 0 if parent.isValid() else len(Column)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the headings."""
        if orientation is Qt.Orientation.Vertical:
            return None
        short, full = self.heading(Column(section))
        if role == Qt.ItemDataRole.DisplayRole:
            return short
        if role in {Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}:
            return full
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if Column(section) in NUMBERS else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the content of a cell."""
        row, column = index.row(), Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row, column)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            returned = ", returned" if row == self._returned and column is Column.NUMBER else ""
            return f"{self.heading(column)[1]}: {self.text(row, column) or 'none'}{returned}"
        iteration = self.loop.iteration(row) if role == Qt.ItemDataRole.ToolTipRole else None
        return self._tip(iteration, column) if iteration is not None else None

    def heading(self, column: Column) -> tuple[str, str]:
        """Return the heading of a column, short and full."""
        if column is Column.NUMBER:
            return "#", self.unit.capitalize()
        if column is Column.VERDICT and self.unit == "item":
            return "Outcome", "Outcome of items without a result"
        return HEADINGS[column]

    def is_returned(self, row: int) -> bool:
        """Return whether the result of the iteration is the result of the loop."""
        return row == self._returned

    def is_running(self, row: int) -> bool:
        """Return whether the iteration has not ended."""
        return self.loop.iteration(row) is None

    def text(self, row: int, column: int) -> str:
        """Return the text of a cell."""
        iteration = self.loop.iteration(row)
        if iteration is not None:
            return self._texts[column](iteration)
        if column == Column.NUMBER:
            return str(row + 1)
        if column == Column.RESULT:
            return "Not completed" if self._is_over else "Running…"
        return ""

    def _similar(self, iteration: LoopIterationCompleted) -> str:
        if iteration.index == 0 or self.unit == "item":
            return "–"
        share = self._similarities.of(self.loop, iteration.index)
        return format_percent(share) if share is not None else "…" if self._similarities.is_busy else "?"

    def _tip(self, iteration: LoopIterationCompleted, column: Column) -> str | None:
        if column is Column.RESULT:
            return plain_tool_tip(beginning(iteration.result, _TOOLTIP_LENGTH))
        if column is Column.VERDICT:
            return plain_tool_tip(f"{iteration.branch or ''}\n{(iteration.reason or '')[:_TOOLTIP_LENGTH]}".strip())
        if column is Column.WARNINGS and iteration.warnings:
            labels = (warning_label(warning, self.workflow) for warning in iteration.warnings)
            return plain_tool_tip("\n".join(labels)[:_TOOLTIP_LENGTH])
        return None

    def _measure(self, first: int, end: int) -> None:
        """Update the longest texts. Of tokens and times only the largest is formatted."""
        new = [*self.loop.iterations[first:end], *self.loop.ahead.values()]
        if not new:
            return
        by_size = sorted((iteration.usage for iteration in new), key=lambda usage: usage.total_tokens)
        for column, texts in (
            (Column.VERDICT, map(verdict, {(it.branch, it.reason): it for it in new}.values())),
            (Column.SCORE, (self._texts[Column.SCORE](it) for it in new if it.score is not None)),
            (Column.TOKENS, map(token_count, {usage.exact: usage for usage in by_size}.values())),
            (Column.COST, map(cost, {(it.cost_usd, it.usage.total_tokens > 0): it for it in new}.values())),
            (Column.TIME, (format_duration(max(it.duration_s for it in new)),)),
            (Column.WARNINGS, (str(max(len(it.warnings) for it in new) or ""),)),
        ):
            self.longest[column] = max(self.longest.get(column, 0), *map(len, texts), 0)

    def _note_similarities(self, first: int, last: int) -> None:
        self._emit_changed(first, min(last, self._rows - 1), Column.SIMILAR, Column.SIMILAR)

    def _emit_changed(
        self, first: int, last: int, left: Column = Column.NUMBER, right: Column = Column.WARNINGS
    ) -> None:
        if first <= last:
            self.dataChanged.emit(self.index(first, left), self.index(last, right))


ROW_HEIGHT: Final = 6 * UNIT
"""Height in pixels at the default text size."""

_PADDING: Final = 2 * UNIT
_BAR: Final = 3
"""Width of the bar at the left of the selected row."""
_VERDICT: Final = (88, 280)
"""Minimum and maximum width of the verdict in pixels at the default text size."""
_HIDE_BELOW: Final = {Column.TOKENS: 176, Column.TIME: 176, Column.COST: 176, Column.VERDICT: 40, Column.SIMILAR: 40}
"""Columns that are hidden in this order if the result would be narrower than this at the default text size. The
iteration details show them too.
"""
RETURNED: Final = "returned"
_BESIDE_RETURNED: Final = 56
"""Width that remains for the result beside that word, in pixels at the default text size."""
_SELECTED: Final = QStyle.StateFlag.State_Selected
_LEFT: Final = (Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter).value | Qt.TextFlag.TextSingleLine.value
_RIGHT: Final = (Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter).value | Qt.TextFlag.TextSingleLine.value
_Index = QModelIndex | QPersistentModelIndex


class IterationTable(QTableView):
    """The table.

    Signals:
        chosen: The user selected an iteration; its index.
        latest_wanted: The user wants to follow the run again.
        stepped: The user wants to go this many iterations further.

    Attributes:
        rows: The model.
        hovered: The row below the mouse; -1 for none.
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
        header.setProperty("narrow", True)  # as wide as the delegate's padding
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionsClickable(False)
        header.setMinimumSectionSize(UNIT)
        self.selectionModel().currentRowChanged.connect(self._note_current)
        style().changed.connect(self._restyle)
        self._restyle()

    def show_chosen(self, row: int) -> None:
        """Select a row and scroll to it, without a signal."""
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
        """Set the column widths; hide empty columns and those without room."""
        scale, longest = style().scale, self.rows.longest
        figures = QFontMetrics(style().font())
        heads = QFontMetrics(style().font(FONT_SIZE_SMALL, QFont.Weight.DemiBold))

        def width(column: Column, count: int) -> int:
            heading = heads.horizontalAdvance(str(self.rows.headerData(column, Qt.Orientation.Horizontal)))
            return max(heading, figures.horizontalAdvance("0") * count) + 2 * _PADDING + 2

        widths = {Column.NUMBER: width(Column.NUMBER, len(str(self.rows.rowCount())) + 1)}
        if self.rows.unit != "item":  # items are independent of each other
            widths[Column.SIMILAR] = width(Column.SIMILAR, 6)
        for column in (Column.SCORE, Column.TOKENS, Column.COST, Column.TIME, Column.WARNINGS):
            if longest.get(column):
                widths[column] = width(column, longest[column])
        room = self.viewport().width()
        if longest.get(Column.VERDICT):
            least, most = (round(side * scale) for side in _VERDICT)
            wanted = figures.averageCharWidth() * longest[Column.VERDICT] + 2 * _PADDING
            widths[Column.VERDICT] = min(max(min(wanted, room * 3 // 10), least), most)
        for column, least_result in _HIDE_BELOW.items():
            if room - sum(widths.values()) < least_result * scale:
                widths.pop(column, None)
        widths[Column.RESULT] = max(room - sum(widths.values()), UNIT)
        for column in Column:
            if self.isColumnHidden(column) is (column in widths):
                self.setColumnHidden(column, column not in widths)
            if column in widths and self.columnWidth(column) != widths[column]:
                self.setColumnWidth(column, widths[column])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Update the column widths."""
        super().resizeEvent(event)
        self.fit()
        self.scrollTo(self.currentIndex())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle Left and Right (step), Home and End (first and last) and Esc (follow the run)."""
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
        """Highlight the row below the mouse."""
        super().mouseMoveEvent(event)
        self._hover(self.rowAt(event.position().toPoint().y()))

    def leaveEvent(self, event: QEvent) -> None:
        """Remove the highlight."""
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
        """Paint a cell. Calls the model directly rather than through Qt, because this happens for hundreds of cells."""
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
        dim = column == Column.VERDICT or rows.is_running(row)
        painter.setPen(self._colours["warning" if column == Column.WARNINGS else "dim" if dim else "text"])
        painter.drawText(inner, _RIGHT if column in NUMBERS else _LEFT, self._fitting(text, inner.width()))

    def _fitting(self, text: str, width: int) -> str:
        most = width // self._letter + 1  # no more letters than that fit, however narrow they are
        if len(text) * self._metrics.maxWidth() <= width:
            return text
        return self._metrics.elidedText(text[:most], Qt.TextElideMode.ElideRight, width)

    def sizeHint(self, _option: QStyleOptionViewItem, _index: _Index) -> QSize:
        """Return the same height for all rows."""
        return QSize(0, round(ROW_HEIGHT * self._scale))

    def _draw_returned(self, painter: QPainter, place: QRect) -> int:
        """Draw the marker of the returned iteration, without its text if there is little room.

        Returns:
            Its width.
        """
        word = self._small_metrics.horizontalAdvance(RETURNED)
        height = round(18 * self._scale)
        width = self._side + word + 5 * UNIT
        has_word = place.width() >= width + _BESIDE_RETURNED * self._scale
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
