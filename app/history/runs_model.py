"""The runs of the history as a table that grows while one scrolls, forks under the runs that they were forked from.

It fetches nothing itself: it is given pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Final

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor, QIcon

from app.history.run_labels import (
    STATUS_ICONS,
    STATUS_WORDS,
    branch_words,
    capital,
    fork_words,
    moment,
    name_of,
)
from app.runs.run_status import model_label
from app.theme.style import icon, style
from engine.exits.loop_conditions import format_exit_reason
from engine.formatting import format_count, format_duration, format_money
from engine.store.store_protocol import RunFilter, RunStatus, RunSummary, Store, StoreError, Totals

COLUMNS: Final = ("Started", "Workflow", "Status", "Iterations", "Exit reason", "Cost", "Tokens", "Duration", "Model")
STATUS_COLUMN: Final = 2
NUMBERS: Final = frozenset({3, 5, 6, 7})
SUMMARY_ROLE: Final = Qt.ItemDataRole.UserRole
_Index = QModelIndex | QPersistentModelIndex
_NO_INDEX: Final = QModelIndex()


@dataclass(slots=True, eq=False)
class Row:
    """One run in the table, with its forks below it."""

    summary: RunSummary
    parent: Row | None = None
    at: int = 0
    children: list[Row] = field(default_factory=list["Row"])


@dataclass(frozen=True, slots=True)
class Page:
    """Some runs, the newest first.

    Attributes:
        runs: The runs.
        ancestors: The runs, not among them, that they were forked from, and those before these; by id.
        is_last: Whether there are no more.
    """

    runs: Sequence[RunSummary]
    ancestors: dict[str, RunSummary]
    is_last: bool


class RunsModel(QAbstractItemModel):
    """The table.

    Attributes:
        has_more: Whether there are runs that it was not given yet.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []
        self._by_id: dict[str, Row] = {}
        self.has_more = False
        self._fetched = 0
        style().changed.connect(self._redraw)

    @property
    def fetched(self) -> int:
        """How many runs were given in pages, those that were ancestors only not counted."""
        return self._fetched

    def summaries(self) -> Iterator[RunSummary]:
        """All runs that are there."""
        return (row.summary for row in self._by_id.values())

    def summary(self, run_id: str) -> RunSummary | None:
        """The run of that id; None where it is not there."""
        row = self._by_id.get(run_id)
        return row.summary if row is not None else None

    def index_of(self, run_id: str) -> QModelIndex:
        """Where a run stands; no valid index where it is not there."""
        row = self._by_id.get(run_id)
        return self._index(row) if row is not None else QModelIndex()

    def show(self, page: Page) -> None:
        """Show these runs and no others."""
        self.beginResetModel()
        self._rows, self._by_id, self._fetched = [], {}, 0
        for row in self._made(page):
            self._take_in(row)
        self._note(page)
        self.endResetModel()

    def append(self, page: Page) -> None:
        """Add more runs at the end; forks of runs that are there go to these."""
        first = len(self._rows)
        new: list[Row] = []
        unannounced: set[Row] = set()
        for row in self._made(page):
            if row.parent is None:
                new.append(row)
                unannounced.add(row)
            elif row.parent in unannounced:
                self._take_in(row)
                unannounced.add(row)
            else:
                place = len(row.parent.children)
                self.beginInsertRows(self._index(row.parent), place, place)
                self._take_in(row)
                self.endInsertRows()
        if new:
            self.beginInsertRows(QModelIndex(), first, first + len(new) - 1)
            for row in new:
                self._take_in(row)
            self.endInsertRows()
        self._note(page)

    def update(self, runs: Iterable[RunSummary]) -> bool:
        """Show what has changed of runs that are there; false where there is one among them that is not."""
        for summary in runs:
            row = self._by_id.get(summary.run_id)
            if row is None:
                return False
            if row.summary != summary:
                row.summary = summary
                first = self._index(row)
                self.dataChanged.emit(first, first.siblingAtColumn(len(COLUMNS) - 1))
        return True

    def _note(self, page: Page) -> None:
        self._fetched += len(page.runs)
        self.has_more = not page.is_last

    def _made(self, page: Page) -> Iterator[Row]:
        """The rows of runs that are not there yet, each after the one that it stands under."""
        for summary in page.runs:
            line = {summary.run_id: summary}
            above = page.ancestors.get(summary.parent)
            # A run that was taken in from a file may call one of its own forks its parent.
            while above is not None and above.run_id not in self._by_id and above.run_id not in line:
                line[above.run_id] = above
                above = page.ancestors.get(above.parent)
            for one in reversed(line.values()):
                if one.run_id not in self._by_id:
                    row = Row(one, self._by_id.get(one.parent))
                    self._by_id[one.run_id] = row
                    yield row

    def _take_in(self, row: Row) -> None:
        siblings = self._siblings(row.parent)
        row.at = len(siblings)
        siblings.append(row)

    def _siblings(self, parent: Row | None) -> list[Row]:
        return self._rows if parent is None else parent.children

    def _index(self, row: Row) -> QModelIndex:
        return self.createIndex(row.at, 0, row)

    def _redraw(self) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._rows) - 1, len(COLUMNS) - 1))

    def rowCount(self, parent: _Index = _NO_INDEX) -> int:  # noqa: D102 - Qt's own, as are all below
        if not parent.isValid():
            return len(self._rows)
        return len(parent.internalPointer().children) if parent.column() == 0 else 0

    def columnCount(self, parent: _Index = _NO_INDEX) -> int:  # noqa: D102
        del parent
        return len(COLUMNS)

    def index(self, row: int, column: int, parent: _Index = _NO_INDEX) -> QModelIndex:  # noqa: D102
        siblings = parent.internalPointer().children if parent.isValid() else self._rows
        return self.createIndex(row, column, siblings[row]) if 0 <= row < len(siblings) else QModelIndex()

    def parent(self, index: _Index) -> QModelIndex:  # type: ignore[override]  # noqa: D102
        above = index.internalPointer().parent if index.isValid() else None
        return self._index(above) if above is not None else QModelIndex()

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> object:  # noqa: D102
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def data(self, index: _Index, role: int = 0) -> object:  # noqa: D102
        row: Row = index.internalPointer()
        summary, column = row.summary, index.column()
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}:
            return branch_words(summary) if column == 1 and row.parent is not None else cell(summary, column)
        if role == SUMMARY_ROLE:
            return summary
        look = _LOOKS.get(role)
        return look(summary, column) if look is not None else None


_CELLS: Final[tuple[Callable[[RunSummary], str], ...]] = (
    lambda run: capital(moment(run.started)),
    lambda run: " · ".join(part for part in (name_of(run), fork_words(run)) if part),
    lambda run: STATUS_WORDS[run.status],
    lambda run: format_count(run.iterations) if run.iterations else "–",
    lambda run: run.error or capital(format_exit_reason(run.exit_reason)) or "–",
    lambda run: format_money(run.cost_usd),
    lambda run: format_count(run.tokens),
    lambda run: format_duration(run.duration_s) if run.duration_s is not None else "–",
    lambda run: ", ".join(model_label(name) for name in run.models),
)


def cell(summary: RunSummary, column: int) -> str:
    """What a cell says of a run."""
    return " ".join(_CELLS[column](summary).split())


def _tip(summary: RunSummary, column: int) -> str:
    from app.theme.widgets import plain_tool_tip

    full = {0: f"Run {summary.run_id}", 1: summary.source, 8: ", ".join(summary.models)}
    return plain_tool_tip(full.get(column) or cell(summary, column))


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def _decoration(summary: RunSummary, column: int) -> object:
    if column == STATUS_COLUMN:
        name, role = STATUS_ICONS[summary.status]
        return _icon(name, getattr(style().theme, role))
    if column == 1 and summary.pinned:
        return _icon("mdi6.pin", style().theme.accent)
    return None


@cache
def _icon(name: str, colour: str) -> QIcon:
    """An icon that is made once: a table asks for one with each row that it draws."""
    return icon(name, colour)


def _colour(summary: RunSummary, column: int) -> object:
    if column != STATUS_COLUMN:
        return None
    return QBrush(QColor(getattr(style().theme, STATUS_ICONS[summary.status][1])))


_LOOKS: Final[dict[int, Callable[[RunSummary, int], object]]] = {
    Qt.ItemDataRole.ToolTipRole: _tip,
    Qt.ItemDataRole.TextAlignmentRole: lambda _run, column: _alignment(column),
    Qt.ItemDataRole.DecorationRole: _decoration,
    Qt.ItemDataRole.ForegroundRole: _colour,
}


PAGE: Final = 200


class Since(Enum):
    """How far back runs are shown: any, or from so many days before today on."""

    ANY = None
    TODAY = 0
    WEEK = 6
    MONTH = 29


@dataclass(frozen=True, slots=True)
class Wish:
    """Which runs are to be seen.

    Attributes:
        text: Part of the workflow's name or file.
        statuses: Their states; empty for any.
        since: How far back.
        pinned: Only pinned ones.
    """

    text: str = ""
    statuses: frozenset[RunStatus] = frozenset()
    since: Since = Since.ANY
    pinned: bool = False

    @property
    def is_all(self) -> bool:
        """Whether all runs are meant."""
        return self == Wish()

    def filter(self, now: float | None = None) -> RunFilter:
        """The filter of the store."""
        since = None
        if self.since.value is not None:
            today = datetime.fromtimestamp(time.time() if now is None else now).astimezone()
            midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
            since = (midnight - timedelta(days=self.since.value)).timestamp()
        return RunFilter(workflow=self.text, statuses=self.statuses, since=since, pinned=self.pinned)


@dataclass(frozen=True, slots=True)
class News:
    """How the list stands now: its first runs, and what all come to."""

    runs: list[RunSummary]
    totals: Totals


def read_page(store: Store, wish: Wish, offset: int, known: Collection[str], size: int = PAGE) -> Page:
    """Read some runs.

    Args:
        store: The history.
        wish: Which ones.
        offset: How many to leave out, the newest first.
        known: Ids of runs that are in the list already.
        size: How many.

    Raises:
        StoreError: They cannot be read.
    """
    runs = store.runs(wish.filter(), limit=size, offset=offset)
    # Where only some runs are shown, those that do not fit stay away: a fork then stands by itself.
    ancestors = _ancestors(store, runs, known) if wish.is_all else {}
    return Page(runs, ancestors, len(runs) < size)


def read_news(store: Store, wish: Wish, size: int = PAGE) -> News:
    """Read what may have changed.

    Raises:
        StoreError: It cannot be read.
    """
    which = wish.filter()
    return News(store.runs(which, limit=size), store.totals(which))


def _ancestors(store: Store, runs: list[RunSummary], known: Collection[str]) -> dict[str, RunSummary]:
    there = {run.run_id: run for run in runs}
    found: dict[str, RunSummary] = {}
    for run in runs:
        parent = run.parent
        while parent and parent not in known and parent not in found:
            try:
                above = there.get(parent) or store.find(parent)
            except StoreError:  # it was deleted: its forks stand by themselves
                break
            found[parent] = above
            parent = above.parent
    return found
