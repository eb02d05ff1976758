"""The table of a batch's rows on the screen: read and chosen from, never written in."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from app.batch.results_model import COLUMNS, ResultsModel
from app.theme.plain_table import make_plain
from app.theme.style import style
from app.theme.tokens import UNIT

_SHARING: Final = frozenset({1, 3, 6})
"""The columns that share what is left: inputs, result and reason. The others are as wide as what they say."""


class ResultsView(QTableView):
    """The table."""

    def __init__(self, model: ResultsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        self.setAccessibleName("Rows")
        make_plain(self)
        header = self.horizontalHeader()
        header.setTextElideMode(Qt.TextElideMode.ElideRight)
        header.setResizeContentsPrecision(0)  # by the rows in sight: a table may have a hundred thousand
        modes = QHeaderView.ResizeMode
        for column in range(len(COLUMNS)):
            header.setSectionResizeMode(column, modes.Stretch if column in _SHARING else modes.ResizeToContents)
        style().changed.connect(self._dress)
        self._dress()

    def _dress(self) -> None:
        """Take on the size of texts."""
        self.verticalHeader().setDefaultSectionSize(round(7 * UNIT * style().scale))
