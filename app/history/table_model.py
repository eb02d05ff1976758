"""The iterations of one run of a loop as rows of a table. Cells are made when they are drawn, and kept nowhere."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.history.similarities import Similarities
from app.history.words import beginning, cost, token_count, verdict
from app.runs.executions import NO_LOOP, LoopPicture
from app.theme.widgets import plain_tool_tip
from engine.events import LoopIterationCompleted
from engine.runner.words import seconds
from engine.store.stopping import percent
from engine.values import short_number

_Index = QModelIndex | QPersistentModelIndex
_ROOT: Final = QModelIndex()
_LONG: Final = 1000
"""The most characters of a value in a tool tip."""


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
    Column.RESULT: ("Result", "First words of the result"),
    Column.VERDICT: ("Verdict", "What was decided after it, and why"),
    Column.SCORE: ("Score", "Score"),
    Column.SIMILAR: ("Similar", "How much of the result is as in the iteration before"),
    Column.TOKENS: ("Tokens", "Tokens used, in and out"),
    Column.COST: ("Cost", "US dollars spent"),
    Column.TIME: ("Time", "How long it took"),
    Column.WARNINGS: ("Warnings", "Warnings of it and of everything in it"),
}
NUMBERS: Final = frozenset({Column.SCORE, Column.SIMILAR, Column.TOKENS, Column.COST, Column.TIME, Column.WARNINGS})
"""Columns of figures, set to the right."""


class IterationModel(QAbstractTableModel):
    """The rows.

    Args:
        similarities: Knows those that the run has not recorded.
        parent: Its parent.

    Attributes:
        loop: The run of a loop that is shown.
        unit: What one row is called: `iteration`, or `item` of an iterator.
        longest: The number of characters of the longest text of each column of figures, and of the verdict; 0 where
            all of its cells are empty.
    """

    def __init__(self, similarities: Similarities, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._similarities = similarities
        self.loop = NO_LOOP
        self.unit = "iteration"
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
            Column.SCORE: lambda iteration: short_number(iteration.score) if iteration.score is not None else "",
            Column.SIMILAR: self._similar,
            Column.TOKENS: lambda iteration: token_count(iteration.usage),
            Column.COST: cost,
            Column.TIME: lambda iteration: seconds(iteration.duration_s),
            Column.WARNINGS: lambda iteration: str(len(iteration.warnings) or ""),
        }
        similarities.found.connect(self._note_similarities)

    def show_loop(self, loop: LoopPicture, *, is_over: bool, unit: str = "iteration") -> None:
        """Show a run of a loop, or what has come to it; rows that are there already cost nothing.

        Args:
            loop: The run of the loop.
            is_over: Whether nothing more can come to it.
            unit: What one row is called.
        """
        self.unit = unit
        rows, done = max(loop.current + 1, len(loop.iterations)), len(loop.iterations)
        if loop is not self.loop or rows < self._rows:
            self.beginResetModel()
            self.loop, self._rows, self._done, self._is_over = loop, rows, done, is_over
            self._returned = loop.returned
            self.longest = {}
            self._measure(0, done)
            self._out_of_turn = len(loop.out_of_turn)
            self.endResetModel()
            return
        before, was_done, was_returned, was_out = self._rows, self._done, self._returned, self._out_of_turn
        self._out_of_turn = len(loop.out_of_turn)
        self._done, self._returned = done, loop.returned
        self._measure(was_done, done)
        if rows > before:
            self.beginInsertRows(_ROOT, before, rows - 1)
            self._rows = rows
            self.endInsertRows()
        if is_over != self._is_over or done > was_done or self._out_of_turn != was_out:
            self._is_over = is_over
            self._tell(was_done, before - 1)
        if was_returned != loop.returned:
            for row in (was_returned, loop.returned):
                if row is not None:
                    self._tell(row, row)

    def rowCount(self, parent: _Index = _ROOT) -> int:
        """One for each iteration that has begun."""
        return 0 if parent.isValid() else self._rows

    def columnCount(self, parent: _Index = _ROOT) -> int:
        """All of them, whether they are shown or not."""
        return 0 if parent.isValid() else len(Column)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """The headings."""
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
        """What a cell shows."""
        row, column = index.row(), Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row, column)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            returned = ", returned" if row == self._returned and column is Column.NUMBER else ""
            return f"{self.heading(column)[1]}: {self.text(row, column) or 'none'}{returned}"
        iteration = self.loop.ended(row) if role == Qt.ItemDataRole.ToolTipRole else None
        return self._tip(iteration, column) if iteration is not None else None

    def heading(self, column: Column) -> tuple[str, str]:
        """What stands over a column, and what it is in full."""
        if column is Column.NUMBER:
            return "#", self.unit.capitalize()
        if column is Column.VERDICT and self.unit == "item":
            return "Outcome", "What became of it, where it has no result"
        return HEADINGS[column]

    def is_returned(self, row: int) -> bool:
        """Whether that iteration's result is the loop's."""
        return row == self._returned

    def is_under_way(self, row: int) -> bool:
        """Whether it has not ended."""
        return self.loop.ended(row) is None

    def text(self, row: int, column: int) -> str:
        """The text of a cell."""
        iteration = self.loop.ended(row)
        if iteration is not None:
            return self._texts[column](iteration)
        if column == Column.NUMBER:
            return str(row + 1)
        if column == Column.RESULT:
            return "Not finished" if self._is_over else "Under way…"
        return ""

    def _similar(self, iteration: LoopIterationCompleted) -> str:
        if iteration.index == 0 or self.unit == "item":
            return "–"
        share = self._similarities.of(self.loop, iteration.index)
        return percent(share) if share is not None else "…" if self._similarities.is_busy else "?"

    def _tip(self, iteration: LoopIterationCompleted, column: Column) -> str | None:
        if column is Column.RESULT:
            return plain_tool_tip(beginning(iteration.result, _LONG))
        if column is Column.VERDICT:
            return plain_tool_tip(f"{iteration.branch or ''}\n{(iteration.reason or '')[:_LONG]}".strip())
        if column is Column.WARNINGS and iteration.warnings:
            return plain_tool_tip("\n".join(iteration.warnings)[:_LONG])
        return None

    def _measure(self, first: int, end: int) -> None:
        """Note the longest texts of some iterations. Of tokens and times only the largest is written out."""
        new = [*self.loop.iterations[first:end], *self.loop.out_of_turn.values()]
        if not new:
            return
        by_size = sorted((iteration.usage for iteration in new), key=lambda usage: usage.total_tokens)
        for column, texts in (
            (Column.VERDICT, map(verdict, {(it.branch, it.reason): it for it in new}.values())),
            (Column.SCORE, (self._texts[Column.SCORE](it) for it in new if it.score is not None)),
            (Column.TOKENS, map(token_count, {usage.exact: usage for usage in by_size}.values())),
            (Column.COST, map(cost, {(it.cost_usd, it.usage.total_tokens > 0): it for it in new}.values())),
            (Column.TIME, (seconds(max(it.duration_s for it in new)),)),
            (Column.WARNINGS, (str(max(len(it.warnings) for it in new) or ""),)),
        ):
            self.longest[column] = max(self.longest.get(column, 0), *map(len, texts), 0)

    def _note_similarities(self, first: int, last: int) -> None:
        self._tell(first, min(last, self._rows - 1), Column.SIMILAR, Column.SIMILAR)

    def _tell(self, first: int, last: int, left: Column = Column.NUMBER, right: Column = Column.WARNINGS) -> None:
        if first <= last:
            self.dataChanged.emit(self.index(first, left), self.index(last, right))
