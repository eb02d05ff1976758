"""Tables of a batch: columns, rows, and where each cell stands in its file. Knows no file format and no workflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.errors import EngineError
from engine.text_sanitizing import shown
from engine.values import Value, to_text

MAX_BYTES: Final = 200_000_000
"""The largest table that is read."""

TABLE_REMEDY: Final = "Save it as CSV or an Excel workbook with column names in the first row, or as JSON lines."


class TableError(EngineError):
    """A table that cannot be read, or does not fit the workflow."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read.

    Attributes:
        name: What to call it in messages.
        columns: The names of its columns, in order.
        rows: A value for each column that the row has.
        is_text: Whether texts are cells that a person wrote (CSV, workbook), so that a number, a boolean or JSON has
            still to be parsed; in JSON lines a text is a text.
        lines: The line (CSV, JSON lines) or sheet row of each row in its file, counted from 1.
        faults: Of rows that cannot be used, by index in `rows`: what is wrong and what to do about it.
        letters: The sheet's letter of each column; empty unless the table comes from a workbook.
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
    letters: tuple[str, ...] = ()
    sheet: str = ""
    sheets: tuple[str, ...] = ()
    encoding: str = ""

    def place(self, index: int, column: str | None = None) -> str:
        """Say where a row or one of its cells stands: `line 3, column "words"`, `sheet "Data", cell B3`.

        Args:
            index: The row's index in `rows`.
            column: The cell's column; None for the whole row.
        """
        line = self.lines[index] if self.lines else index + 1
        if not self.letters:
            return f"line {line}" + ("" if column is None else f', column "{shown(column, 60)}"')
        sheet = f'sheet "{shown(self.sheet, 60)}"'
        if column is None:
            return f"{sheet}, row {line}"
        return f'{sheet}, cell {self.letters[self.columns.index(column)]}{line} (column "{shown(column, 60)}")'

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know about how the table was read, in sentences."""
        notes = [f"Read as {self.encoding}."] if self.encoding else []
        others = [sheet for sheet in self.sheets if sheet != self.sheet]
        if others:
            listed = ", ".join(f'"{shown(sheet, 40)}"' for sheet in others[:5]) + (", …" if len(others) > 5 else "")
            notes.append(f'Read the sheet "{shown(self.sheet, 40)}"; the workbook also has {listed}.')
        return tuple(notes)


def table_of_grid(
    name: str,
    grid: Iterable[tuple[int, Sequence[Value]]],
    *,
    letter: Callable[[int], str] | None = None,
) -> Table:
    """Make a table of rows of cells: the first row that is not empty names the columns.

    Rows without any content are skipped. A column without a name is dropped if it is empty, and else called
    `column 3` by its place. Cells that a short row lacks are missing from its values.

    Args:
        name: What to call it in messages.
        grid: Each row's line in the file, and its cells.
        letter: The sheet's letter of a column, by its index; None unless the table comes from a workbook.

    Raises:
        TableError: There is no row at all, or two columns have the same name.
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
    kept = [index for index in range(len(names)) if index in used]
    if len(kept) < len(names):
        columns = {names[index] for index in kept}
        rows = [{column: cell for column, cell in row.items() if column in columns} for row in rows]
    return Table(
        name,
        tuple(names[index] for index in kept),
        tuple(rows),
        is_text=True,
        lines=tuple(lines),
        faults=faults,
        letters=() if letter is None else tuple(letter(index) for index in kept),
    )


def is_empty(cell: Value) -> bool:
    """Whether nothing but white space stands in a cell."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _column_names(name: str, head: Sequence[Value]) -> tuple[str, ...]:
    names = [to_text(cell).strip() for cell in head]
    twice = next((column for column in names if column and names.count(column) > 1), None)
    if twice is not None:
        raise TableError(f'{name}: Two columns are called "{shown(twice, 60)}".', "Give each column a name of its own.")
    for index, column in enumerate(names):
        if not column:
            names[index] = f"column {index + 1}"
            while names.count(names[index]) > 1:
                names[index] += "'"
    return tuple(names)
