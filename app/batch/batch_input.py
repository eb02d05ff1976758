"""Input of a batch: the table, and the mapping of its columns to the inputs of the workflow."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QGridLayout, QWidget

from app.dialogs import FileDialogs
from app.file_drops import dropped_files
from app.theme.tokens import UNIT
from app.theme.widgets import ElidedLabel, PlainLabel, hbox, push_button
from engine.batch.read_table import TABLE_SUFFIXES, read_pasted_table, read_table
from engine.batch.rows import matching_column
from engine.batch.table import Table
from engine.batch.text_encoding import ENCODINGS, EncodingError
from engine.errors import EngineError
from engine.formatting import format_count
from engine.runner.declared_inputs import DeclaredInput

FILTER: Final = f"Tables ({' '.join(f'*{suffix}' for suffix in TABLE_SUFFIXES)});;All files (*)"
_HINT: Final = "Choose, paste or drop a table (CSV, Excel or JSON Lines). Each row is one run, each column an input."
_MAX_WIDTH: Final = 60 * UNIT


class TableField(QWidget):
    """Field to choose or paste a table, with its sheet and encoding.

    Signals:
        read_requested: A table should be read; a function that reads it, to be called in a thread.
    """

    read_requested = Signal(object)

    def __init__(self, asker: FileDialogs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._asker = asker
        self._source: Path | str | None = None
        self.label = ElidedLabel(_HINT, self, look="dim")
        self.paste = push_button("Paste", self.paste_table, self)
        self.paste.setToolTip("Paste rows copied from a spreadsheet, including the column names")
        self.choose = push_button("Choose table…", self._ask, self)
        self.sheet = QComboBox(self)
        self.encoding = QComboBox(self)
        self._choices = {self.sheet: PlainLabel("Sheet", self), self.encoding: PlainLabel("Encoding", self)}
        self._arrange()
        clipboard = QGuiApplication.clipboard()
        clipboard.dataChanged.connect(self._update_enabled)
        self._update_enabled()

    @property
    def folder(self) -> Path | None:
        """The folder of the file, or None."""
        return self._source.parent if isinstance(self._source, Path) else None

    def paste_table(self) -> None:
        """Read the table from the clipboard: a copied file, or cells as text."""
        data = _clipboard()
        if data is None:
            return
        if files := dropped_files(data):
            self.read(files[0])
        elif data.text().strip():
            self.read(data.text())

    def show_table(self, table: Table) -> None:
        """Show a table with its sheets and encoding."""
        encoding = f" · {table.encoding}" if table.encoding else ""
        self.label.set_full_text(f"{table.name} · {format_count(len(table.rows), 'row')}{encoding}")
        self.sheet.blockSignals(True)
        self.sheet.clear()
        self.sheet.addItems(list(dict.fromkeys((*table.sheets, table.sheet))))
        self.sheet.setCurrentText(table.sheet)
        self.sheet.blockSignals(False)
        self._offer(self.sheet, is_needed=len(table.sheets) > 1)
        self._offer(self.encoding, is_needed=bool(table.encoding) or self.encoding.currentData() is not None)

    def show_failure(self, error: EngineError) -> None:
        """Show that reading failed, and offer the encodings if it was not detected."""
        self.label.set_full_text(self._source.name if isinstance(self._source, Path) else _HINT)
        if isinstance(error, EncodingError) and isinstance(self._source, Path):
            self._offer(self.encoding, is_needed=True)

    def _arrange(self) -> None:
        row = hbox((self.label, 1), spacing=2, parent=self)
        self.encoding.addItem("Automatic", None)
        for codec, name in ENCODINGS.items():
            self.encoding.addItem(name, codec)
        for box, name in self._choices.items():
            name.setBuddy(box)
            box.setAccessibleName(f"{name.text()} of the table")
            box.setMaximumWidth(_MAX_WIDTH)
            box.activated.connect(lambda _index: self._read_again())
            row.addWidget(name)
            row.addWidget(box)
            self._offer(box, is_needed=False)
        row.addWidget(self.paste)
        row.addWidget(self.choose)

    def _offer(self, box: QComboBox, *, is_needed: bool) -> None:
        box.setVisible(is_needed)
        self._choices[box].setVisible(is_needed)

    def _ask(self) -> None:
        self._asker.open_text(self, self.read, "Choose a table", FILTER)

    def read(self, source: Path | str) -> None:
        """Read the table from a file, or from a text with its cells."""
        self._source = source
        self.sheet.clear()
        self.encoding.setCurrentIndex(0)
        for box in self._choices:
            self._offer(box, is_needed=False)
        self._read_again()

    def _read_again(self) -> None:
        if isinstance(self._source, str):
            self.read_requested.emit(partial(read_pasted_table, self._source))
        elif self._source is not None:
            sheet = self.sheet.currentText() or None
            self.read_requested.emit(
                partial(read_table, self._source, sheet=sheet, encoding=self.encoding.currentData())
            )

    def _update_enabled(self) -> None:
        data = _clipboard()
        self.paste.setEnabled(data is not None and (data.hasText() or bool(dropped_files(data))))


def _clipboard() -> QMimeData | None:
    """Return the contents of the clipboard. On some platforms this is None while it is empty."""
    return QGuiApplication.clipboard().mimeData()


_DEFAULT: Final = "Workflow default"
_CHOOSE: Final = "Choose a column"


class ColumnsForm(QWidget):
    """Maps a column to each input of the workflow.

    Signals:
        changed: The mapping changed.
    """

    changed = Signal()

    def __init__(self, declared: list[DeclaredInput], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.boxes: dict[str, QComboBox] = {}
        self._declared = declared
        self._matched: set[str] = set()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(4 * UNIT)
        grid.setVerticalSpacing(2 * UNIT)
        grid.setColumnStretch(1, 1)
        for row, item in enumerate(declared):
            label = PlainLabel(item.name, self)
            box = QComboBox(self)
            box.setAccessibleName(f"Column for {item.name}")
            box.setAccessibleDescription(item.description)
            box.currentIndexChanged.connect(lambda _index: self.changed.emit())
            label.setBuddy(box)
            grid.addWidget(label, row, 0)
            grid.addWidget(box, row, 1)
            self.boxes[item.name] = box
        grid.setRowStretch(len(declared), 1)
        if not declared:
            grid.addWidget(PlainLabel("This workflow has no inputs.", self, look="dim"), 0, 0)
        self.show_table(None)

    def show_table(self, table: Table | None) -> None:
        """Offer the columns of a table and select those with the name of an input."""
        columns = () if table is None else table.columns
        self._matched.clear()
        for item in self._declared:
            box = self.boxes[item.name]
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
        """The height of one row."""
        lines = list(self.boxes.values()) or self.findChildren(PlainLabel)
        return lines[0].sizeHint().height()

    @property
    def columns(self) -> dict[str, str | None]:
        """The selected column by input; None if the default was selected although a matching column exists."""
        chosen = {name: box.currentData() for name, box in self.boxes.items()}
        return {name: column for name, column in chosen.items() if column is not None or name in self._matched}

    @property
    def missing(self) -> list[str]:
        """The inputs with neither a column nor a default."""
        return [item.name for item in self._declared if item.default is None and self.columns.get(item.name) is None]
