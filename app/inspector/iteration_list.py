"""The iterations of a loop in short, a line each; choosing one shows it everywhere."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget

from app.inspector.editors.base import name_widget
from app.inspector.result_parts import first_words, iteration_line
from app.runs.executions import LoopPicture
from app.theme.tokens import UNIT
from app.theme.widgets import plain_tool_tip

_MOST_ROWS = 8


class IterationList(QListView):
    """A line for each iteration that has ended.

    Signals:
        chosen: A person chose an iteration; its index.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        name_widget(self, "Iterations", "Choose one to look at it everywhere.")
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setUniformItemSizes(True)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._model = QStandardItemModel(self)
        self.setModel(self._model)
        self._path = ""
        self._returned: int | None = None
        self.selectionModel().currentChanged.connect(self._current_changed)

    @property
    def lines(self) -> list[str]:
        """What the list shows."""
        return [self._model.index(row, 0).data() for row in range(self._model.rowCount())]

    def show_loop(self, path: str, loop: LoopPicture, chosen: int | None) -> None:
        """Show a run of a loop; what is there already stays, so that only new iterations cost something."""
        with QSignalBlocker(self.selectionModel()):
            if path != self._path or self._model.rowCount() > len(loop.iterations):
                self._model.clear()
                self._path, self._returned = path, None
            if self._returned != loop.returned:
                self._returned = loop.returned
                self._write(loop, 0)
            self._write(loop, self._model.rowCount())
            self._choose(chosen)
        self.viewport().update()
        rows = min(max(self._model.rowCount(), 1), _MOST_ROWS)
        self.setFixedHeight(rows * max(self.sizeHintForRow(0), 20) + 2 * UNIT + 2)

    def _write(self, loop: LoopPicture, first: int) -> None:
        for iteration in loop.iterations[first:]:
            line = iteration_line(iteration, is_returned=iteration.index == loop.returned)
            item = self._model.item(iteration.index) or QStandardItem()
            item.setText(line)
            item.setToolTip(plain_tool_tip(first_words(iteration.reason or iteration.result)))
            if item.row() < 0:
                self._model.appendRow(item)

    def _choose(self, chosen: int | None) -> None:
        index = self._model.index(chosen, 0) if chosen is not None else QModelIndex()
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect if index.isValid() else flags.Clear)
        if index.isValid():
            self.scrollTo(index)

    def _current_changed(self, current: QModelIndex) -> None:
        if current.isValid():
            self.chosen.emit(current.row())
