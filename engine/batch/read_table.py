"""Read a table from a file: CSV, an Excel workbook or JSON Lines. Reading executes nothing.

Separator, quotes and encoding of CSV files are detected.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from engine.batch.table import MAX_BYTES, RESULT_PREFIXES, TABLE_REMEDY, Table, TableError, table_of_grid
from engine.batch.text_encoding import decode_table
from engine.batch.workbook import is_workbook, read_workbook
from engine.errors import reason_of
from engine.safe_file_io import decode_text, read_ordinary_file
from engine.store.export_csv import RESULT_MARKS, is_own_table, value_of_csv_cell
from engine.text_sanitizing import shown
from engine.values import MAX_NESTING, Value, as_object, nesting, value_of_json

_SEPARATORS: Final = (",", ";", "\t", "|")
_SEPARATOR_LINE: Final = re.compile(r'"?sep=(.)"?[ \t]*\r?\n', re.IGNORECASE)
"""The first line, which names the separator for Excel."""
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"')
_SAMPLE_CHARS: Final = 20_000


def read_csv(content: bytes, name: str, encoding: str | None = None) -> Table:
    """Read a CSV file.

    Args:
        content: The content of the file.
        name: The file's name for messages.
        encoding: Its text encoding; None to detect it.

    Raises:
        TableError: The file is not CSV, or its encoding is unknown.
    """
    text, read_as = decode_table(content, name, encoding)
    marked = _SEPARATOR_LINE.match(text)
    separator = marked[1] if marked else _separator(text)
    records = list(_records(text, separator, name))[1 if marked else 0 :]
    head = next((cells for _, cells in records if any(cells)), list[str]())
    if is_own_table([cell.strip() for cell in head]):
        records = [(line, [value_of_csv_cell(cell) for cell in cells]) for line, cells in records]
    return replace(table_of_grid(name, records), encoding=read_as)


def _separator(text: str) -> str:
    """Detect the separator: the one in the line of column names; if there are several, clevercsv decides."""
    sample = text[:_SAMPLE_CHARS]
    if len(text) > _SAMPLE_CHARS:
        sample = sample[: sample.rfind("\n") + 1] or sample
    head = next((line for line in _QUOTED.sub("", sample).splitlines() if line.strip()), "")
    if is_own_table(head.split(",")):
        return ","
    found = [separator for separator in _SEPARATORS if separator in head]
    if len(found) > 1:
        from clevercsv.detect import Detector

        dialect = Detector().detect(sample, delimiters=found)
        if dialect is not None and dialect.delimiter in found:
            return dialect.delimiter
    # Without any, each line is one cell, so the separator is a character that no line has.
    return max(found, key=head.count) if found else "\x1f"


def _records(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with its first line. Unbalanced quotes within one line are read as text."""
    # A cell may be as long as the file. The limit is global to the process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_BYTES))
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            last = lines[reader.line_num - 1]
            if reader.line_num != begin or last.count('"') % 2:
                raise TableError(
                    f"{name}, line {begin}: The table is not valid CSV: {shown(error)}.",
                    "Close each double quote, and double it inside of a quoted cell.",
                ) from None
            escape = "\\" if '\\"' in last else None
            cells = next(csv.reader([last], delimiter=separator, escapechar=escape, doublequote=escape is None))
        yield begin, cells


TABLE_SUFFIXES: Final = (".csv", ".tsv", ".tab", ".txt", ".xlsx", ".xlsm", ".xls", ".ods", ".jsonl", ".ndjson")
"""The suffixes of tables. Any other file is read as CSV."""


def read_table(path: Path, *, sheet: str | None = None, encoding: str | None = None) -> Table:
    """Read a table: `.jsonl` and `.ndjson` as JSON Lines, a workbook by its content, any other file as CSV.

    Args:
        path: The file.
        sheet: The sheet of a workbook; None for the first one with rows.
        encoding: The encoding of a text file; None to detect it.

    Raises:
        TableError: The file does not exist, or is not a table.
    """
    name = shown(path.name)
    try:
        content = read_ordinary_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        raise TableError(f"{name}: The table cannot be opened: {shown(reason_of(error))}.", "Check the path.") from None
    return _with_rows(parse_table(content, path, sheet=sheet, encoding=encoding))


def read_piped_table(content: bytes, *, sheet: str | None = None, encoding: str | None = None) -> Table:
    """Read a table that has no file name: JSON Lines if it begins with `{`, a workbook by its content, else CSV.

    Raises:
        TableError: The content is not a table.
    """
    if not content.strip():
        raise TableError("Standard input is empty.", "Pipe a table to it, with column names in the first row.")
    is_lines = decode_text(content[:200], errors="replace").lstrip().startswith("{")
    path = Path("table.jsonl" if is_lines else "table.csv")
    return _with_rows(parse_table(content, path, "standard input", sheet=sheet, encoding=encoding))


def read_pasted_table(text: str) -> Table:
    """Read cells that were copied from a spreadsheet, or CSV.

    Raises:
        TableError: The text is not a table.
    """
    return _with_rows(read_csv(text.encode("utf-8", "replace"), "Pasted table", "utf-8"))


def _with_rows(table: Table) -> Table:
    if not table.is_text and {"inputs", *RESULT_MARKS} <= set(table.columns):
        rows = tuple(map(_result_columns, table.rows))
        return replace(table, rows=rows, columns=tuple(dict.fromkeys(column for row in rows for column in row)))
    if table.rows:
        return table
    if table.sheet:
        raise TableError(
            f'{table.name}: The sheet "{shown(table.sheet, 60)}" has no rows below the first one.',
            "Put column names in the first row, or choose another sheet.",
        )
    raise TableError(f"{table.name}: The table has no rows.", TABLE_REMEDY)


def _result_columns(row: Mapping[str, Value]) -> dict[str, Value]:
    """The columns that a line of a results file has in other formats."""
    columns = dict(row)
    for part, prefix in RESULT_PREFIXES.items():
        for name, value in as_object(columns.pop(part, None)).items():
            column = name if part == "extra" else f"{prefix}{name}"
            while column in columns:
                column = f"{RESULT_PREFIXES['extra']}{column}"
            columns[column] = value
    return columns


def parse_table(
    content: bytes, path: Path, name: str = "", *, sheet: str | None = None, encoding: str | None = None
) -> Table:
    """Parse the content of a table file, which may have no rows.

    Args:
        content: The content.
        path: The file; its suffix selects the format.
        name: Its name for messages; empty for that of the file.
        sheet: The sheet of a workbook; None for the first one with rows.
        encoding: The encoding of a text file; None to detect it.

    Raises:
        TableError: The content is not a table.
    """
    name = name or shown(path.name)
    if is_workbook(path, content):
        return read_workbook(content, name, sheet)
    if sheet is not None:
        raise TableError(f"{name}: Only a workbook has sheets.", "Leave the sheet out.")
    if is_json_lines(path):
        return _json_lines(content, name, encoding)
    return read_csv(content, name, encoding)


def is_json_lines(path: Path) -> bool:
    """Whether a file of that name has JSON Lines."""
    return path.suffix.casefold() in {".jsonl", ".ndjson"}


def _json_lines(content: bytes, name: str, encoding: str | None) -> Table:
    text, read_as = decode_table(content, name, encoding)
    rows: list[dict[str, Value]] = []
    lines: list[int] = []
    faults: dict[int, str] = {}
    columns: dict[str, None] = {}
    # Only a line feed ends a line: a JSON text may contain other characters that look like a line end.
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
            faults[len(rows)] = "The line is not a valid JSON object. Write one object per line."
            row = {}
        rows.append(row)
        lines.append(number)
    if len(faults) == len(rows) and faults:
        raise TableError(f"{name}, line {lines[0]}: {faults[0]}", TABLE_REMEDY)
    return Table(name, tuple(columns), tuple(rows), is_text=False, lines=tuple(lines), faults=faults, encoding=read_as)
