"""The list of runs: its queries and its Qt model.

All that was forked from a run, directly or not, is one level below it, newest first, and so are its partial runs: each
partial run reuses the outputs of the one before, so that a level for each would soon leave no space.

The model grows while the user scrolls. It does not read the history itself; it is given pages.
"""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor, QIcon

from app.history.run_labels import (
    NO_TITLES,
    STATUS_ICONS,
    STATUS_LABELS,
    NodeTitles,
    branch_label,
    capitalized,
    fork_label,
    stored_titles,
    time_label,
    workflow_name,
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
    """A run in the list. One that is not below another has all forks and partial runs that lead to it as children.

    The titles are those of nodes that its label may name.
    """

    summary: RunSummary
    parent: Row | None = None
    titles: NodeTitles = field(default_factory=dict[str, str])
    at: int = 0
    children: list[Row] = field(default_factory=list["Row"])


@dataclass(frozen=True, slots=True)
class Page:
    """Some runs, newest first.

    Attributes:
        runs: The runs.
        ancestors: Their direct and indirect parents that are not among them, by id.
        is_last: Whether there are no more runs.
        titles: The titles of nodes that the labels of forks and partial runs may name, by run.
    """

    runs: Sequence[RunSummary]
    ancestors: dict[str, RunSummary]
    is_last: bool
    titles: Mapping[str, NodeTitles] = field(default_factory=dict[str, NodeTitles])


class RunsModel(QAbstractItemModel):
    """Tree model of the runs.

    Attributes:
        has_more: Whether there are runs that were not loaded yet.
        fetched: Number of runs from pages, without ancestors.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []
        self._by_id: dict[str, Row] = {}
        self.has_more = False
        self.fetched = 0
        style().changed.connect(self._redraw)

    def summaries(self) -> Iterator[RunSummary]:
        """Return all loaded runs."""
        return (row.summary for row in self._by_id.values())

    def index_of(self, run_id: str) -> QModelIndex:
        """Return the index of a run; invalid if it is not loaded."""
        row = self._by_id.get(run_id)
        return self._index(row) if row is not None else QModelIndex()

    def show(self, page: Page) -> None:
        """Show these runs only."""
        self.beginResetModel()
        self._rows, self._by_id, self.fetched = [], {}, 0
        for row in self._new_rows(page):
            self._add(row)
        self._note(page)
        self.endResetModel()

    def append(self, page: Page) -> None:
        """Add runs at the end, forks below their parents."""
        first = len(self._rows)
        new: list[Row] = []
        unannounced: set[Row] = set()
        for row in self._new_rows(page):
            if row.parent is None:
                new.append(row)
                unannounced.add(row)
            elif row.parent in unannounced:
                self._add(row)
                unannounced.add(row)
            else:
                place = self._place(row)
                self.beginInsertRows(self._index(row.parent), place, place)
                self._add(row)
                self.endInsertRows()
        if new:
            self.beginInsertRows(QModelIndex(), first, first + len(new) - 1)
            for row in new:
                self._add(row)
            self.endInsertRows()
        self._note(page)

    def update(self, runs: Iterable[RunSummary]) -> bool:
        """Update loaded runs; return False if one of them is not loaded."""
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
        self.fetched += len(page.runs)
        self.has_more = not page.is_last

    def _new_rows(self, page: Page) -> Iterator[Row]:
        """Create the rows of new runs, parents first."""
        for summary in page.runs:
            line = {summary.run_id: summary}
            above = page.ancestors.get(summary.parent)
            # An imported run may have one of its own forks as its parent.
            while above is not None and above.run_id not in self._by_id and above.run_id not in line:
                line[above.run_id] = above
                above = page.ancestors.get(above.parent)
            for one in reversed(line.values()):
                if one.run_id not in self._by_id:
                    above = self._by_id.get(one.parent)
                    parent = above.parent or above if above is not None else None
                    row = Row(one, parent, page.titles.get(one.run_id, NO_TITLES))
                    self._by_id[one.run_id] = row
                    yield row

    def _add(self, row: Row) -> None:
        siblings, place = self._rows if row.parent is None else row.parent.children, self._place(row)
        siblings.insert(place, row)
        for at in range(place, len(siblings)):
            siblings[at].at = at

    def _place(self, row: Row) -> int:
        """Where a row is added: at the end, or below another run after all newer ones."""
        if row.parent is None:
            return len(self._rows)
        return bisect(row.parent.children, -row.summary.started, key=lambda other: -other.summary.started)

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
            return _text(row, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return _tip(row, column)
        if role == SUMMARY_ROLE:
            return summary
        look = _LOOKS.get(role)
        return look(summary, column) if look is not None else None


_CELLS: Final[tuple[Callable[[RunSummary, NodeTitles], str], ...]] = (
    lambda run, _: capitalized(time_label(run.started)),
    lambda run, titles: " · ".join(part for part in (workflow_name(run), fork_label(run, titles)) if part),
    lambda run, _: STATUS_LABELS[run.status],
    lambda run, _: format_count(run.iterations) if run.iterations else "–",
    lambda run, _: run.error or capitalized(format_exit_reason(run.exit_reason)) or "–",
    lambda run, _: format_money(run.cost_usd),
    lambda run, _: format_count(run.tokens),
    lambda run, _: format_duration(run.duration_s) if run.duration_s is not None else "–",
    lambda run, _: ", ".join(model_label(name) for name in run.models),
)


def _text(row: Row, column: int) -> str:
    if column == 1 and row.parent is not None:
        return branch_label(row.summary, row.parent.summary.run_id, row.titles)
    return " ".join(_CELLS[column](row.summary, row.titles).split())


def _tip(row: Row, column: int) -> str:
    from app.theme.widgets import plain_tool_tip

    summary, text = row.summary, _text(row, column)
    full = {0: f"Run {summary.run_id}", 1: f"{text}\n{summary.source}".rstrip(), 8: ", ".join(summary.models)}
    return plain_tool_tip(full.get(column) or text)


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
def _icon(name: str, color: str) -> QIcon:
    """Return a cached icon, because tables request one for every painted row."""
    return icon(name, color)


def _colour(summary: RunSummary, column: int) -> object:
    if column != STATUS_COLUMN:
        return None
    return QBrush(QColor(getattr(style().theme, STATUS_ICONS[summary.status][1])))


_LOOKS: Final[dict[int, Callable[[RunSummary, int], object]]] = {
    Qt.ItemDataRole.TextAlignmentRole: lambda _run, column: _alignment(column),
    Qt.ItemDataRole.DecorationRole: _decoration,
    Qt.ItemDataRole.ForegroundRole: _colour,
}


PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class RunListFilter:
    """Filter of the list.

    Attributes:
        text: Part of the workflow's name or file.
        statuses: Their statuses; empty for any.
        since: From this many days before today; None for any time.
        pinned: Only pinned runs.
    """

    text: str = ""
    statuses: frozenset[RunStatus] = frozenset()
    since: int | None = None
    pinned: bool = False

    @property
    def is_all(self) -> bool:
        """Whether it matches all runs."""
        return self == RunListFilter()

    def filter(self, now: float | None = None) -> RunFilter:
        """Return the filter for the store."""
        since = None
        if self.since is not None:
            today = datetime.fromtimestamp(time.time() if now is None else now).astimezone()
            midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
            since = (midnight - timedelta(days=self.since)).timestamp()
        return RunFilter(workflow=self.text, statuses=self.statuses, since=since, pinned=self.pinned)


def read_page(store: Store, list_filter: RunListFilter, offset: int, known: Collection[str], size: int = PAGE) -> Page:
    """Read a page of runs.

    Args:
        store: The history.
        list_filter: The filter.
        offset: Number of newest runs to skip.
        known: Ids of runs that are already loaded.
        size: Size of the page.

    Raises:
        StoreError: They cannot be read.
    """
    runs = store.runs(list_filter.filter(), limit=size, offset=offset)
    # A filtered list contains only matching runs, so forks are not below their parents.
    ancestors = _ancestors(store, runs, known) if list_filter.is_all else {}
    titles = {run.run_id: stored_titles(store, run) for run in (*runs, *ancestors.values())}
    return Page(runs, ancestors, len(runs) < size, titles)


def read_update(store: Store, list_filter: RunListFilter) -> tuple[list[RunSummary], Totals]:
    """Read what may have changed: the first runs of the list, and the totals of all.

    Raises:
        StoreError: It cannot be read.
    """
    which = list_filter.filter()
    return store.runs(which, limit=PAGE), store.totals(which)


def _ancestors(store: Store, runs: list[RunSummary], known: Collection[str]) -> dict[str, RunSummary]:
    there = {run.run_id: run for run in runs}
    found: dict[str, RunSummary] = {}
    for run in runs:
        parent = run.parent
        while parent and parent not in known and parent not in found:
            try:
                above = there.get(parent) or store.find(parent)
            except StoreError:  # deleted, so its forks have no parent
                break
            found[parent] = above
            parent = above.parent
    return found
