"""The table of a batch: choosing, pasting or dropping it, and how its file is read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QPushButton, QWidget

from app.dialogs import FileDialogs
from app.theme.tokens import UNIT
from app.theme.widgets import ElidedLabel, PlainLabel
from engine.batch.read_table import TABLE_SUFFIXES, read_pasted_table, read_table
from engine.batch.rows import matching_column
from engine.batch.table import Table
from engine.batch.text_encoding import ENCODINGS, EncodingError
from engine.errors import EngineError
from engine.formatting import format_count
from engine.runner.declared import Declared

FILTER: Final = f"Tables ({' '.join(f'*{suffix}' for suffix in TABLE_SUFFIXES)});;All files (*)"
_HINT: Final = "CSV, Excel or JSON lines: a run for each row, inputs in columns. Choose, paste or drop a table."
_WIDEST: Final = 60 * UNIT


class TableField(QWidget):
    """Where the table comes from, and the choices that its file leaves open.

    Signals:
        read_wanted: A table is to be read: a function that reads it, for a thread.
    """

    read_wanted = Signal(object)

    def __init__(self, asker: FileDialogs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._asker = asker
        self._source: Path | str | None = None
        self.label = ElidedLabel(_HINT, self, look="dim")
        self.paste = QPushButton("Paste", self)
        self.paste.setToolTip("Paste rows that were copied in a spreadsheet, with their column names")
        self.paste.clicked.connect(lambda _checked=False: self.paste_table())
        self.choose = QPushButton("Choose table…", self)
        self.choose.clicked.connect(lambda _checked=False: self._ask())
        self.sheet = QComboBox(self)
        self.encoding = QComboBox(self)
        self._choices = {self.sheet: PlainLabel("Sheet", self), self.encoding: PlainLabel("Encoding", self)}
        for button in (self.paste, self.choose):
            button.setAutoDefault(False)
        self._arrange()
        clipboard = QGuiApplication.clipboard()
        clipboard.dataChanged.connect(self._show_possible)
        self._show_possible()

    @property
    def folder(self) -> Path | None:
        """The folder of the file; None without one."""
        return self._source.parent if isinstance(self._source, Path) else None

    def read_file(self, path: Path) -> None:
        """Read the table from a file."""
        self._begin(path)

    def paste_table(self) -> None:
        """Read the table from the clipboard: the file that was copied, or cells as text."""
        data = _clipboard()
        if data is None:
            return
        if files := dropped_files(data):
            self._begin(files[0])
        elif data.text().strip():
            self._begin(data.text())

    def show_table(self, table: Table) -> None:
        """Show what was read, and the choices that there were."""
        how = f" · {table.encoding}" if table.encoding else ""
        self.label.set_full_text(f"{table.name} · {format_count(len(table.rows), 'row')}{how}")
        self.sheet.blockSignals(True)
        self.sheet.clear()
        self.sheet.addItems(list(dict.fromkeys((*table.sheets, table.sheet))))
        self.sheet.setCurrentText(table.sheet)
        self.sheet.blockSignals(False)
        self._offer(self.sheet, is_needed=len(table.sheets) > 1)
        self._offer(self.encoding, is_needed=bool(table.encoding) or self.encoding.currentData() is not None)

    def show_failure(self, error: EngineError) -> None:
        """Show that there is no table, and offer the encodings where the right one was not found."""
        self.label.set_full_text(self._source.name if isinstance(self._source, Path) else _HINT)
        if isinstance(error, EncodingError) and isinstance(self._source, Path):
            self._offer(self.encoding, is_needed=True)

    def _arrange(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2 * UNIT)
        row.addWidget(self.label, 1)
        self.encoding.addItem("Automatic", None)
        for codec, name in ENCODINGS.items():
            self.encoding.addItem(name, codec)
        for box, name in self._choices.items():
            name.setBuddy(box)
            box.setAccessibleName(f"{name.text()} of the table")
            box.setMaximumWidth(_WIDEST)
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
        self._asker.open_text(self, self.read_file, "Choose a table", FILTER)

    def _begin(self, source: Path | str) -> None:
        """Read another table, in which nothing is chosen yet."""
        self._source = source
        self.sheet.clear()
        self.encoding.setCurrentIndex(0)
        for box in self._choices:
            self._offer(box, is_needed=False)
        self._read_again()

    def _read_again(self) -> None:
        if isinstance(self._source, str):
            self.read_wanted.emit(partial(read_pasted_table, self._source))
        elif self._source is not None:
            sheet = self.sheet.currentText() or None
            self.read_wanted.emit(partial(read_table, self._source, sheet=sheet, encoding=self.encoding.currentData()))

    def _show_possible(self) -> None:
        data = _clipboard()
        self.paste.setEnabled(data is not None and (data.hasText() or bool(dropped_files(data))))


def _clipboard() -> QMimeData | None:
    """What is on the clipboard. Some platforms give nothing while it is empty, whatever Qt's types say."""
    return QGuiApplication.clipboard().mimeData()


def dropped_files(data: QMimeData) -> list[Path]:
    """The files of this machine that are dropped or pasted."""
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


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
