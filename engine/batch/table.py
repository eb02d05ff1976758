"""Tables that people have: CSV and JSON lines. Reading one executes nothing and knows no workflow."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.document.wording import shown
from engine.errors import EngineError
from engine.values import MAX_NESTING, Value, nesting, value_of_json

MAX_BYTES: Final = 200_000_000
"""The largest table that is read."""

_DELIMITERS: Final = (",", ";", "\t")
_REMEDY: Final = "Save it as CSV with a line of column names, or as JSON lines: an object a line."


class TableError(EngineError):
    """A table that cannot be read, or does not fit the workflow."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read.

    Attributes:
        name: What to call it in messages.
        columns: The names of its columns, in order.
        rows: A value for each column that the row has.
        is_text: Whether all values are texts, as in CSV, so that a number has still to be read out of its text.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, Value], ...]
    is_text: bool


def read_table(path: Path) -> Table:
    """Read a table: `.jsonl` and `.ndjson` as JSON lines, anything else as CSV (comma, semicolon or tab).

    Raises:
        TableError: There is no such file, or it is no table.
    """
    name = shown(path.name)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TableError(f"{name}: The table has more than {MAX_BYTES // 1_000_000} MB.", "Divide it.")
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = shown(getattr(error, "strerror", None) or error)
        raise TableError(f"{name}: The table cannot be opened: {reason}.", "Check the path.") from None
    table = parse_table(content, name, is_json=is_json_lines(path))
    if not table.rows:
        raise TableError(f"{name}: The table has no rows.", _REMEDY)
    return table


def parse_table(content: bytes, name: str, *, is_json: bool) -> Table:
    """Read what stands in the file of a table; it may have no rows.

    Raises:
        TableError: It is no table.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{name}: The table is no UTF-8 text.", "Save it as UTF-8.") from None
    return _json_lines(text, name) if is_json else _csv(text, name)


def is_json_lines(path: Path) -> bool:
    """Whether a file of that name holds JSON lines."""
    return path.suffix.casefold() in {".jsonl", ".ndjson"}


def _csv(text: str, name: str) -> Table:
    head = text.split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=head.count)
    # A cell may be as long as the file; the module's own limit holds for the whole process and is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_BYTES))
    try:
        lines = [
            (cells, reader.line_num)
            for reader in [csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)]
            for cells in reader
            if cells
        ]
    except csv.Error as error:
        raise TableError(f"{name}: The table is no CSV: {shown(error)}.", _REMEDY) from None
    if not lines:
        raise TableError(f"{name}: The table is empty.", _REMEDY)
    columns = tuple(cell.strip() for cell in lines[0][0])
    _check_columns(columns, name)
    rows: list[dict[str, Value]] = []
    for cells, line in lines[1:]:
        if len(cells) != len(columns):
            raise TableError(
                f"{name}, line {line}: The row has {len(cells)} cells, and there are {len(columns)} columns.", _REMEDY
            )
        rows.append(dict(zip(columns, cells, strict=True)))
    return Table(name, columns, tuple(rows), is_text=True)


def _check_columns(columns: tuple[str, ...], name: str) -> None:
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise TableError(f'{name}: Two columns are called "{shown(twice, 60)}".', "Give each column a name of its own.")
    if "" in columns:
        raise TableError(f"{name}: A column has no name.", "Give each column a name in the first line.")


def _json_lines(text: str, name: str) -> Table:
    rows: list[dict[str, Value]] = []
    columns: dict[str, None] = {}
    # Only a line feed ends a line: a text in JSON may hold any other character that looks like an end.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = value_of_json(line)
        except ValueError:
            raise TableError(f"{name}, line {number}: The line is no JSON.", _REMEDY) from None
        if not isinstance(row, dict) or nesting(row) > MAX_NESTING:
            raise TableError(f"{name}, line {number}: The line is no JSON object that can be read.", _REMEDY)
        rows.append(row)
        columns.update(dict.fromkeys(row))
    return Table(name, tuple(columns), tuple(rows), is_text=False)
