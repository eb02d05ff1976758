"""Tables of a batch: columns, rows, and the place of each cell in its file, whatever the file format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.errors import EngineError
from engine.text_sanitizing import shown
from engine.values import Value, to_text

MAX_BYTES: Final = 200_000_000
"""Maximum size of a table file."""

RESULT_PREFIXES: Final = {"inputs": "input.", "outputs": "output.", "extra": "table."}
"""What precedes the name of an input or output of a results file, and of an extra column whose name is taken."""

TABLE_REMEDY: Final = "Save it as CSV or an Excel workbook with column names in the first row, or as JSON Lines."


class TableError(EngineError):
    """A table that cannot be read, or does not fit the workflow."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: Its name for messages.
        columns: The names of its columns, in order.
        rows: For each row, a value for each column that it has.
        is_text: Whether texts are typed cells (CSV, workbook), from which numbers, booleans and JSON are still to be
            parsed; in JSON Lines a text is a text.
        lines: The line (CSV, JSON Lines) or sheet row of each row in its file, counted from 1.
        faults: Why rows cannot be used, and what to do, by index in `rows`.
        indexes: The index of each column in its file.
        sheet: The sheet that was read; empty unless the table comes from a workbook.
        sheets: The names of the workbook's visible sheets.
        encoding: The text encoding for people, such as "Windows-1252"; empty for UTF-8 and workbooks.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, Value], ...]
    is_text: bool
    lines: tuple[int, ...] = ()
    faults: Mapping[int, str] = field(default_factory=dict[int, str])
    indexes: tuple[int, ...] = ()
    sheet: str = ""
    sheets: tuple[str, ...] = ()
    encoding: str = ""

    def place(self, index: int, column: str | None = None) -> str:
        """The place of a row or a cell in the file: `line 3, column "words"`, `sheet "Data", cell B3`.

        Args:
            index: The row's index in `rows`.
            column: The cell's column; None for the whole row.
        """
        line = self.lines[index] if self.lines else index + 1
        if not self.sheet:
            return f"line {line}" + ("" if column is None else f', column "{shown(column, 60)}"')
        sheet = f'sheet "{shown(self.sheet, 60)}"'
        if column is None:
            return f"{sheet}, row {line}"
        from xlsxwriter.utility import xl_rowcol_to_cell  # pyright: ignore[reportMissingTypeStubs]

        cell = xl_rowcol_to_cell(line - 1, self.indexes[self.columns.index(column)])
        return f'{sheet}, cell {cell} (column "{shown(column, 60)}")'

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about how the table was read, in sentences."""
        notes = [f"Read as {self.encoding}."] if self.encoding else []
        others = [sheet for sheet in self.sheets if sheet != self.sheet]
        if others:
            listed = ", ".join(f'"{shown(sheet, 40)}"' for sheet in others[:5]) + (", …" if len(others) > 5 else "")
            notes.append(f'Read the sheet "{shown(self.sheet, 40)}"; the workbook also has {listed}.')
        return tuple(notes)


def table_of_grid(name: str, grid: Iterable[tuple[int, Sequence[Value]]]) -> Table:
    """Create a table from rows of cells. The first row that is not empty has the column names.

    Empty rows are skipped. An empty column without a name is dropped; another one is named by its place (`column 3`).
    Cells that a short row lacks are missing from its values.

    Args:
        name: The table's name for messages.
        grid: For each row, its line in the file and its cells.

    Raises:
        TableError: There are no rows, or two columns have the same name.
    """
    filled = ((line, cells) for line, cells in grid if any(not is_empty(cell) for cell in cells))
    _, head = next(filled, (0, ()))
    if not head:
        raise TableError(f"{name}: The table is empty.", TABLE_REMEDY)
    names = _column_names(name, head)
    rows: list[dict[str, Value]] = []
    lines: list[int] = []
    faults: dict[int, str] = {}
    used = {index for index, cell in enumerate(head) if not is_empty(cell)}
    for line, cells in filled:
        if any(not is_empty(cell) for cell in cells[len(names) :]):
            faults[len(rows)] = (
                f"The row has {len(cells)} cells, and there are {len(names)} columns. "
                "Put a cell that contains the separator in double quotes."
            )
        used.update(index for index, cell in enumerate(cells[: len(names)]) if not is_empty(cell))
        rows.append(dict(zip(names, cells, strict=False)))
        lines.append(line)
    indexes = sorted(used.intersection(range(len(names))))
    if len(indexes) < len(names):
        columns = {names[index] for index in indexes}
        rows = [{column: cell for column, cell in row.items() if column in columns} for row in rows]
    return Table(
        name,
        tuple(names[index] for index in indexes),
        tuple(rows),
        is_text=True,
        lines=tuple(lines),
        faults=faults,
        indexes=tuple(indexes),
    )


def is_empty(cell: Value) -> bool:
    """Whether a cell has nothing but white space."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _column_names(name: str, head: Sequence[Value]) -> tuple[str, ...]:
    names = [to_text(cell).strip() for cell in head]
    duplicate = next((column for column in names if column and names.count(column) > 1), None)
    if duplicate is not None:
        raise TableError(
            f'{name}: Two columns are called "{shown(duplicate, 60)}".', "Give each column a different name."
        )
    for index, column in enumerate(names):
        if not column:
            names[index] = f"column {index + 1}"
            while names.count(names[index]) > 1:
                names[index] += "'"
    return tuple(names)
