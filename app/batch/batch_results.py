"""Results of a batch: table model, table view and summary text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from app.history.run_labels import capitalized
from app.theme.style import style
from app.theme.tokens import UNIT
from app.theme.widgets import make_read_only, plain_tool_tip
from engine.batch.rows import BatchSummary, RowResult
from engine.exits.loop_conditions import format_exit_reason
from engine.formatting import format_count, format_duration, format_money, format_score
from engine.text_sanitizing import one_line
from engine.values import Value, to_text

COLUMNS: Final = (
    "Row",
    "Input",
    "Status",
    "Result",
    "Score",
    "Iterations",
    "Exit reason",
    "Cost",
    "Duration",
    "Warnings",
)
NUMBERS: Final = frozenset({0, 4, 5, 7, 8, 9})
STATE: Final = 2
SCORE: Final = 4
WARNINGS: Final = 9
OPTIONAL: Final = (SCORE, WARNINGS)
"""Columns that are hidden while they are empty."""
_SHOWN: Final = 160
_MAX_TOOL_TIP: Final = 2000
_STATUSES: Final = {"completed": "Done", "failed": "Failed", "cancelled": "Stopped", "interrupted": "Interrupted"}
_Index = QModelIndex | QPersistentModelIndex
_NO_INDEX: Final = QModelIndex()


class BatchResultsModel(QAbstractTableModel):
    """The rows of the input table with their results."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._inputs: Sequence[Mapping[str, Value]] = ()
        # Formatted texts by row, created when they are displayed: tables and values can be large.
        self._input_texts: dict[int, str] = {}
        self._result_texts: dict[int, str] = {}
        self._states: list[str] = []
        self._results: list[RowResult | None] = []
        self._empty: set[int] = set(OPTIONAL)
        style().changed.connect(self._update_style)

    def show_rows(self, inputs: Sequence[Mapping[str, Value]]) -> None:
        """Show rows that have not run yet."""
        self.beginResetModel()
        self._inputs = inputs
        self._input_texts.clear()
        self._result_texts.clear()
        self._states = ["Waiting"] * len(self._inputs)
        self._results = [None] * len(self._inputs)
        self._empty = set(OPTIONAL)
        self.endResetModel()

    def mark_running(self, numbers: Iterable[int]) -> None:
        """Mark rows as running."""
        for number in numbers:
            self._states[number - 1] = "Running"
            self._emit_changed(number)

    def set_results(self, results: Iterable[RowResult]) -> None:
        """Show the results of rows."""
        for result in results:
            status = _STATUSES.get(result.status, result.status)
            self._states[result.row - 1] = "Reused" if result.is_reused else status
            self._results[result.row - 1] = result
            self._result_texts.pop(result.row - 1, None)
            if result.score is not None:
                self._empty.discard(SCORE)
            if result.warnings:
                self._empty.discard(WARNINGS)
            self._emit_changed(result.row)

    def finish(self) -> None:
        """Reset rows that were stopped before their run started, for which there is no result."""
        for row, state in enumerate(self._states):
            if state == "Running":
                self._states[row] = "Waiting"
                self._emit_changed(row + 1)

    def result_at(self, index: _Index) -> RowResult | None:
        """Return the result of a row, or None."""
        return self._results[index.row()] if index.isValid() else None

    @property
    def results(self) -> Iterator[RowResult]:
        """The results of the rows that have ended."""
        return (result for result in self._results if result is not None)

    @property
    def empty_columns(self) -> Collection[int]:
        """The columns that no row has a value for, of those that not every batch has."""
        return self._empty

    def rowCount(self, parent: _Index = _NO_INDEX) -> int:
        """See Qt."""
        return 0 if parent.isValid() else len(self._inputs)

    def columnCount(self, parent: _Index = _NO_INDEX) -> int:
        """See Qt."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """See Qt."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return COLUMNS[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """See Qt."""
        row, column = index.row(), index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.ToolTipRole and (result := self._results[row]) is not None:
            return plain_tool_tip(_tool_tip(result, column)[:_MAX_TOOL_TIP])
        if role == Qt.ItemDataRole.ForegroundRole and column in {STATE, WARNINGS}:
            return QBrush(QColor(self._color(row, column)))
        return None

    def _color(self, row: int, column: int) -> str:
        theme = style().theme
        if column == WARNINGS:
            return theme.warning
        colors = {"Failed": theme.bad, "Done": theme.good, "Running": theme.accent}
        return colors.get(self._states[row], theme.dim)

    def _text(self, row: int, column: int) -> str:
        if column == 0:
            return str(row + 1)
        if column == 1:
            if row not in self._input_texts:
                self._input_texts[row] = _line(self._inputs[row])
            return self._input_texts[row]
        if column == STATE:
            return self._states[row]
        result = self._results[row]
        if result is None:
            return ""
        if row not in self._result_texts:
            self._result_texts[row] = one_line(result.error, _SHOWN) if result.error else _line(result.outputs)
        return (
            self._result_texts[row],
            "" if result.score is None else format_score(result.score),
            str(result.iterations or ""),
            capitalized(format_exit_reason(result.exit_reason)),
            format_money(result.cost_usd),
            format_duration(result.duration_s),
            str(len(result.warnings) or ""),
        )[column - 3]

    def _emit_changed(self, number: int) -> None:
        self.dataChanged.emit(self.index(number - 1, 0), self.index(number - 1, len(COLUMNS) - 1))

    def _update_style(self) -> None:
        if self._inputs:
            self.dataChanged.emit(self.index(0, STATE), self.index(len(self._inputs) - 1, WARNINGS))


def _line(values: Mapping[str, Value]) -> str:
    return one_line(" · ".join(to_text(value) for value in values.values()), _SHOWN)


def _tool_tip(result: RowResult, column: int) -> str:
    if column == WARNINGS and result.warnings:
        return "\n\n".join(result.warnings)
    return result.error or "\n\n".join(f"{name}: {to_text(value)}" for name, value in result.outputs.items())


def _alignment(column: int) -> int:
    side = Qt.AlignmentFlag.AlignRight if column in NUMBERS else Qt.AlignmentFlag.AlignLeft
    return (side | Qt.AlignmentFlag.AlignVCenter).value


_SHARING: Final = frozenset({1, 3, 6})
"""Columns that share the remaining width: inputs, result and exit reason. Others fit their contents."""


class BatchResultsView(QTableView):
    """Read-only table of the results."""

    def __init__(self, model: BatchResultsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        self.setAccessibleName("Rows")
        make_read_only(self)
        header = self.horizontalHeader()
        header.setTextElideMode(Qt.TextElideMode.ElideRight)
        header.setResizeContentsPrecision(0)  # measures only the visible rows
        modes = QHeaderView.ResizeMode
        for column in range(len(COLUMNS)):
            header.setSectionResizeMode(column, modes.Stretch if column in _SHARING else modes.ResizeToContents)
        self._model = model
        model.modelReset.connect(self._hide_empty)
        model.dataChanged.connect(self._hide_empty)
        self._hide_empty()
        style().changed.connect(self._update_style)
        self._update_style()

    def _hide_empty(self) -> None:
        for column in OPTIONAL:
            self.setColumnHidden(column, column in self._model.empty_columns)

    def _update_style(self) -> None:
        self.verticalHeader().setDefaultSectionSize(round(7 * UNIT * style().scale))


def summary_text(summary: BatchSummary) -> str:
    """What a batch came to, in two lines: the counts, and quality against iterations against cost."""
    counts = [f"{summary.completed} of {format_count(summary.rows, 'row')} done"]
    counts += [f"{summary.reused} of them reused"] if summary.reused else []
    counts += [f"{summary.failed} failed"] if summary.failed else []
    spent = " (budget used up)" if summary.is_budget_spent else ""
    counts += [f"{summary.not_run} not run{spent}"] if summary.not_run else []
    counts += [format_count(summary.warnings, "warning")] if summary.warnings else []
    counts += [format_count(summary.tokens, "token")]
    counts += [format_money(None if summary.is_price_unknown else summary.cost_usd)]
    groups = [
        f"{format_count(group.iterations, 'iteration')}: {format_count(group.rows, 'row')}"
        + ("" if group.mean_score is None else f", mean score {format_score(group.mean_score)}")
        + f", {format_money(group.mean_cost_usd)} each"
        for group in summary.by_iterations
        if group.iterations
    ]
    return "\n".join((" · ".join(counts), *groups))
