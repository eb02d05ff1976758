"""Reading a table from a file: CSV, a workbook or JSON lines. Reading one executes nothing and knows no workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.batch.csv_table import read_csv
from engine.batch.table import MAX_BYTES, TABLE_REMEDY, Table, TableError
from engine.batch.text_encoding import decode_table
from engine.batch.workbook import is_workbook, read_workbook
from engine.safe_file_io import read_ordinary_file
from engine.text_sanitizing import shown
from engine.values import MAX_NESTING, Value, nesting, value_of_json

TABLE_SUFFIXES: Final = (".csv", ".tsv", ".tab", ".txt", ".xlsx", ".xlsm", ".xls", ".ods", ".jsonl", ".ndjson")
"""What the names of tables end with. Any other file is read as CSV."""


def read_table(path: Path, *, sheet: str | None = None, encoding: str | None = None) -> Table:
    """Read a table: `.jsonl` and `.ndjson` as JSON lines, a workbook as such, anything else as CSV.

    Args:
        path: The file.
        sheet: The sheet of a workbook; None takes the first one with rows.
        encoding: The encoding of a text file; None finds it out.

    Raises:
        TableError: There is no such file, or it is no table.
    """
    name = shown(path.name)
    try:
        content = read_ordinary_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = shown(getattr(error, "strerror", None) or error)
        raise TableError(f"{name}: The table cannot be opened: {reason}.", "Check the path.") from None
    return _with_rows(parse_table(content, path, sheet=sheet, encoding=encoding))


def read_pasted_table(text: str) -> Table:
    """Read the cells that a spreadsheet puts on the clipboard, or CSV that was copied.

    Raises:
        TableError: It is no table.
    """
    return _with_rows(read_csv(text.encode("utf-8", "replace"), "Pasted table", "utf-8"))


def _with_rows(table: Table) -> Table:
    if table.rows:
        return table
    if table.sheet:
        raise TableError(
            f'{table.name}: The sheet "{shown(table.sheet, 60)}" has no rows below its first.',
            "Put column names in the first row, or choose another sheet.",
        )
    raise TableError(f"{table.name}: The table has no rows.", TABLE_REMEDY)


def parse_table(content: bytes, path: Path, *, sheet: str | None = None, encoding: str | None = None) -> Table:
    """Read the content of a table's file; it may have no rows.

    Args:
        content: The content.
        path: The file, by whose name its kind is known.
        sheet: The sheet of a workbook; None takes the first one with rows.
        encoding: The encoding of a text file; None finds it out.

    Raises:
        TableError: It is no table.
    """
    name = shown(path.name)
    if is_workbook(path, content):
        return read_workbook(content, name, sheet)
    if sheet is not None:
        raise TableError(f"{name}: The table has no sheets; only a workbook has.", "Leave the sheet out.")
    if is_json_lines(path):
        return _json_lines(content, name, encoding)
    return read_csv(content, name, encoding)


def is_json_lines(path: Path) -> bool:
    """Whether a file of that name holds JSON lines."""
    return path.suffix.casefold() in {".jsonl", ".ndjson"}


def _json_lines(content: bytes, name: str, encoding: str | None) -> Table:
    text, read_as = decode_table(content, name, encoding)
    rows: list[dict[str, Value]] = []
    lines: list[int] = []
    faults: dict[int, str] = {}
    columns: dict[str, None] = {}
    # Only a line feed ends a line: a text in JSON may hold any other character that looks like an end.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = value_of_json(line)
        except ValueError:
            row = None
        if isinstance(row, dict) and nesting(row) <= MAX_NESTING:
            columns.update(dict.fromkeys(row))
        else:
            faults[len(rows)] = "The line is no JSON object that can be read. Write one object in each line."
            row = {}
        rows.append(row)
        lines.append(number)
    if len(faults) == len(rows) and faults:
        raise TableError(f"{name}, line {lines[0]}: {faults[0]}", TABLE_REMEDY)
    return Table(name, tuple(columns), tuple(rows), is_text=False, lines=tuple(lines), faults=faults, encoding=read_as)
