"""The table of the runs: a tree of fixed rows, with its menu and its keys. What is to be done is told by signals."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import (
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QAction, QContextMenuEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QTreeView, QWidget

from app.history.runs_model import COLUMNS, SUMMARY_ROLE, RunsModel
from app.theme.style import ICON_SIZE, style
from app.theme.tokens import UNIT
from engine.store.base import RunSummary

WIDTHS: Final = (160, 0, 112, 80, 0, 80, 72, 72, 104)
_KEYS: Final = frozenset({Qt.Key.Key_Delete, Qt.Key.Key_Return, Qt.Key.Key_Enter})
LEAST: Final = 120
"""As wide as the columns that share what room there is stay at least, at the usual size of texts."""
FIRST_TO_GO: Final = (8, 7, 6, 3)
"""The columns that a narrow table does without, in this order: model, time, tokens, iterations."""
STRETCHED: Final = frozenset({1, 4})
"""Workflow and why it stopped share what room there is."""


class RunsView(QTreeView):
    """The table.

    Signals:
        opened: A person wants to see that run; its id.
        delete_wanted: The key for deleting was pressed.
        selection_changed: Other runs are selected.
        end_reached: The end of what is there comes into view.
    """

    opened = Signal(str)
    delete_wanted = Signal()
    selection_changed = Signal()
    end_reached = Signal()

    def __init__(self, model: RunsModel, actions: list[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._actions = actions
        self._runs = model
        self.setModel(model)
        self.setAccessibleName("Runs")
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setExpandsOnDoubleClick(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.header().setStretchLastSection(False)
        self.header().setSectionsMovable(False)
        self.header().setHighlightSections(False)
        self.doubleClicked.connect(self._open)
        model.rowsInserted.connect(self._open_new)
        self.verticalScrollBar().valueChanged.connect(lambda _value: self._note_end())
        self.verticalScrollBar().rangeChanged.connect(lambda _least, _most: self._note_end())
        style().changed.connect(self._dress)
        self._dress()

    @property
    def selected(self) -> list[RunSummary]:
        """The selected runs, from top to bottom."""
        rows = sorted(self.selectionModel().selectedRows(), key=lambda index: self.visualRect(index).top())
        return [index.data(SUMMARY_ROLE) for index in rows]

    def select(self, run_ids: list[str]) -> None:
        """Select these runs, as far as they are there."""
        chosen = QItemSelection()
        flags = QItemSelectionModel.SelectionFlag
        for run_id in run_ids:
            index = self._runs.index_of(run_id)
            if index.isValid():
                chosen.select(index, index)
        self.selectionModel().select(chosen, flags.ClearAndSelect | flags.Rows)
        if chosen.indexes():
            self.selectionModel().setCurrentIndex(chosen.indexes()[0], flags.NoUpdate)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        """Tell it."""
        super().selectionChanged(selected, deselected)
        self.selection_changed.emit()

    def event(self, event: QEvent) -> bool:
        """Keep the keys that mean something here from the canvas, which has use for them too."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and event.key() in _KEYS:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens, Delete deletes."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._open(self.currentIndex())
        elif event.key() == Qt.Key.Key_Delete:
            self.delete_wanted.emit()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """What can be done with the selected runs."""
        if not self.selected:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions(self._actions)
        menu.popup(event.globalPos())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A narrow table does without its lesser columns."""
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        scale = style().scale
        room = self.viewport().width() - round((sum(WIDTHS) + len(STRETCHED) * LEAST) * scale)
        for column in FIRST_TO_GO:
            self.setColumnHidden(column, room < 0)
            room += round(WIDTHS[column] * scale) if room < 0 else 0

    def _open(self, index: QModelIndex | QPersistentModelIndex) -> None:
        if index.isValid():
            self.opened.emit(index.data(SUMMARY_ROLE).run_id)

    def _open_new(self, parent: QModelIndex, first: int, last: int) -> None:
        """Forks are seen without a click."""
        if parent.isValid():
            self.expand(parent)
        for row in range(first, last + 1):
            index = self._runs.index(row, 0, parent)
            if self._runs.rowCount(index):
                self.expandRecursively(index)

    def _note_end(self) -> None:
        bar = self.verticalScrollBar()
        if bar.value() >= bar.maximum() - bar.pageStep():
            self.end_reached.emit()

    def _dress(self) -> None:
        for column in range(len(COLUMNS)):
            stretches = column in STRETCHED
            mode = QHeaderView.ResizeMode.Stretch if stretches else QHeaderView.ResizeMode.Interactive
            self.header().setSectionResizeMode(column, mode)
            if not stretches:
                self.header().resizeSection(column, round(WIDTHS[column] * style().scale))
        side = round(ICON_SIZE * style().scale)
        self.setIconSize(QSize(side, side))
        self.setIndentation(5 * UNIT)
        self._fit_columns()
