"""Which column of a table each input of a workflow takes its values from."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QGridLayout, QWidget

from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.batch.rows import matching_column
from engine.batch.table import Table
from engine.runner.declared import Declared

_DEFAULT: Final = "Workflow default"
_CHOOSE: Final = "Choose a column"


class ColumnsForm(QWidget):
    """A choice for each input.

    Signals:
        changed: Another column was chosen.
    """

    changed = Signal()

    def __init__(self, declared: list[Declared], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.choices: dict[str, QComboBox] = {}
        self._declared = declared
        self._matched: set[str] = set()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(4 * UNIT)
        grid.setVerticalSpacing(2 * UNIT)
        grid.setColumnStretch(1, 1)
        for place, item in enumerate(declared):
            label = PlainLabel(item.name, self)
            box = QComboBox(self)
            box.setAccessibleName(f"Column for {item.name}")
            box.setAccessibleDescription(item.description)
            box.currentIndexChanged.connect(lambda _index: self.changed.emit())
            label.setBuddy(box)
            grid.addWidget(label, place, 0)
            grid.addWidget(box, place, 1)
            self.choices[item.name] = box
        grid.setRowStretch(len(declared), 1)
        if not declared:
            grid.addWidget(PlainLabel("This workflow has no inputs.", self, look="dim"), 0, 0)
        self.show_table(None)

    def show_table(self, table: Table | None) -> None:
        """Offer the columns of a table; where one has an input's name, it is chosen."""
        columns = () if table is None else table.columns
        self._matched.clear()
        for item in self._declared:
            box = self.choices[item.name]
            box.blockSignals(True)
            box.clear()
            box.addItem(_CHOOSE if item.default is None else _DEFAULT, None)
            for column in columns:
                box.addItem(column, column)
            wanted = matching_column(item.name, columns)
            if wanted is not None:
                self._matched.add(item.name)
            box.setCurrentIndex(columns.index(wanted) + 1 if wanted is not None else 0)
            box.setEnabled(table is not None)
            box.blockSignals(False)
        self.changed.emit()

    @property
    def line_height(self) -> int:
        """The height of one input's line."""
        lines = list(self.choices.values()) or self.findChildren(PlainLabel)
        return lines[0].sizeHint().height()

    @property
    def columns(self) -> dict[str, str | None]:
        """By input, the column chosen for it; None: its default is chosen although a column has its name."""
        chosen = {name: box.currentData() for name, box in self.choices.items()}
        return {name: column for name, column in chosen.items() if column is not None or name in self._matched}

    @property
    def missing(self) -> list[str]:
        """The inputs that have neither a column nor a value of their own."""
        return [item.name for item in self._declared if item.default is None and self.columns.get(item.name) is None]
