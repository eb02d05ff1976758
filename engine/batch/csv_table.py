"""Tables in CSV: their separator, quotes and encoding as people's programs write them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from engine.batch.table import MAX_BYTES, Table, TableError, table_of_grid
from engine.batch.text_encoding import decode_table
from engine.store.export_csv import is_own_table, value_of_csv_cell
from engine.text_sanitizing import shown

_SEPARATORS: Final = (",", ";", "\t", "|")
_SEPARATOR_LINE: Final = re.compile(r'"?sep=(.)"?[ \t]*\r?\n', re.IGNORECASE)
"""The first line, which names the separator for Excel."""
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"')
_SAMPLE_CHARS: Final = 20_000


def read_csv(content: bytes, name: str, encoding: str | None = None) -> Table:
    """Read a CSV file.

    Args:
        content: The file.
        name: What to call it in messages.
        encoding: Its text encoding; None finds it out.

    Raises:
        TableError: It is no CSV, or no text in a known encoding.
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
    """The separator: one that stands in the line of column names. Where several do, clevercsv says which."""
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
    # Without any, each line is a cell; a separator that cannot stand in a line says so.
    return max(found, key=head.count) if found else "\x1f"


def _records(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line on which it begins. Odd quotes within one line are read as they stand."""
    # A cell may be as long as the file; the module's own limit holds for the whole process and is only ever raised.
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
                    f"{name}, line {begin}: The table is no CSV: {shown(error)}.",
                    "Close each double quote, and write one inside of a quoted cell twice.",
                ) from None
            escape = "\\" if '\\"' in last else None
            cells = next(csv.reader([last], delimiter=separator, escapechar=escape, doublequote=escape is None))
        yield begin, cells
