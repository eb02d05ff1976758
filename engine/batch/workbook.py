"""Excel and OpenDocument workbooks: read a sheet as a table, and write a sheet of results.

Nothing in a workbook is executed: a formula has the value that the spreadsheet program saved.
"""

from __future__ import annotations

import datetime
import functools
import io
import posixpath
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from engine.batch.table import Table, TableError, table_of_grid
from engine.text_sanitizing import shown
from engine.values import Value, to_text

WORKBOOK_SUFFIXES: Final = frozenset({".xlsx", ".xlsm", ".xls", ".ods"})
MAX_CELL_CHARS: Final = 32_767
"""Maximum length of a text in an Excel cell."""
MAX_ROWS: Final = 1_048_576
TRUNCATION_MARK: Final = "… [cut: a cell holds 32,767 characters]"

_ZIP_MARK: Final = b"PK\x03\x04"
_OLE_MARK: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_MAX_UNPACKED_BYTES: Final = 1_000_000_000
_MAX_CELLS: Final = 20_000_000
_CHUNK_BYTES: Final = 1 << 20
_MAX_TAG_BYTES: Final = 1 << 12
_CELL_NAME: Final = re.compile(rb'<(?:\w+:)?c\s[^>]*?\br="([A-Z]{1,3})([0-9]{1,7})"')
_ERROR_CELL: Final = re.compile(
    rb'<(?:\w+:)?c\s(?=[^>]*\bt="e")[^>]*?\br="([A-Z]{1,3})([0-9]{1,7})"[^>]*>(?:(?!</(?:\w+:)?c>).)*?'
    rb"<(?:\w+:)?v>([^<]{1,40})</",
    re.DOTALL,
)
_RELATION: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_LARGEST_EXACT: Final = 2**53
_FIRST_INEXACT: Final = 10**15
"""Excel stores 15 digits of a number; a longer integer is written as text."""
_INVALID_CHARACTERS: Final = re.compile("[\ufffe\uffff]")


def is_workbook(path: Path, content: bytes) -> bool:
    """Whether a file is a workbook by its content; a text file with the suffix `.xls` is not."""
    if content.startswith((_ZIP_MARK, _OLE_MARK)):
        return True
    return path.suffix.casefold() in WORKBOOK_SUFFIXES and content.lstrip()[:1] in {b"", b"<"}


def read_workbook(content: bytes, name: str, sheet: str | None = None) -> Table:
    """Read a sheet of a workbook.

    Numbers stay numbers; those without a fraction become integers. Dates and times become ISO texts, durations
    `26:30:00`. A cell that shows an error has its text, such as `#N/A`.

    Args:
        content: The content of the file.
        name: The file's name for messages.
        sheet: The name of the sheet; None for the first visible one that has rows.

    Raises:
        TableError: The file is protected, damaged or too large, or the sheet does not exist.
    """
    if content.startswith(_OLE_MARK) and _ENCRYPTED in content:
        raise _protected(name)
    import python_calamine as calamine

    try:
        _check_size(content, name)
        with calamine.CalamineWorkbook.from_filelike(io.BytesIO(content)) as book:
            visible = [
                item.name
                for item in book.sheets_metadata
                if item.visible is calamine.SheetVisibleEnum.Visible and item.typ is calamine.SheetTypeEnum.WorkSheet
            ]
            chosen = _chosen_sheets(sheet, visible, book.sheet_names, name)
            for wanted in chosen:
                errors = _errors_in(content, wanted, name)
                grid = book.get_sheet_by_name(wanted).to_python(skip_empty_area=False)
                if wanted == chosen[-1] or sum(any(cell != "" for cell in row) for row in grid) > 1:
                    table = table_of_grid(name, _cells(grid, errors))
                    return replace(table, sheet=wanted, sheets=tuple(visible))
    except calamine.PasswordError:
        raise _protected(name) from None
    except (calamine.CalamineError, zipfile.BadZipFile, ElementTree.ParseError, KeyError, OSError, ValueError):
        pass
    except BaseException as error:  # a panic of the library, which is written in Rust, is not an Exception
        if type(error).__name__ != "PanicException":
            raise
    raise TableError(
        f"{name}: The workbook cannot be read: it is damaged or of an unknown kind.",
        "Open it in a spreadsheet program and save it as .xlsx.",
    )


def _chosen_sheets(sheet: str | None, visible: list[str], names: list[str], name: str) -> list[str]:
    if sheet is not None:
        found = [item for item in names if item.casefold() == sheet.strip().casefold()]
        if not found:
            listed = ", ".join(f'"{shown(item, 40)}"' for item in visible)
            raise TableError(f'{name}: There is no sheet "{shown(sheet, 60)}".', f"The workbook has: {listed}.")
        return found[:1]
    if not visible:
        raise TableError(f"{name}: The workbook has no visible sheet with cells.", "Name the sheet, or unhide it.")
    return visible


def _cells(grid: Sequence[Sequence[Any]], errors: dict[tuple[int, int], str]) -> Iterator[tuple[int, list[Value]]]:
    for row, cells in enumerate(grid):
        values = [_value(cell) for cell in cells]
        for column in range(len(values)):
            if (row, column) in errors:
                values[column] = errors[row, column]
        yield row + 1, values


def _value(cell: Any) -> Value:
    match cell:
        case float() if cell.is_integer() and abs(cell) < _LARGEST_EXACT:
            return int(cell)
        case datetime.datetime() | datetime.date() | datetime.time():
            return cell.isoformat()
        case datetime.timedelta():
            seconds = abs(cell) // datetime.timedelta(seconds=1)
            sign = "-" if cell < datetime.timedelta(0) else ""
            return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        case _:
            return cell


# The library does not report cell errors, and runs out of memory on huge sheets, so the file itself is read for both.


def _check_size(content: bytes, name: str) -> None:
    if not content.startswith(_ZIP_MARK):
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(item.file_size for item in archive.infolist()) > _MAX_UNPACKED_BYTES:
            raise TableError(f"{name}: The workbook is too large.", "Split it, or save the table as CSV.")


def _errors_in(content: bytes, sheet: str, name: str) -> dict[tuple[int, int], str]:
    """The cells of an .xlsx sheet that show an error, by row and column from 0. Rejects a sheet that is too large."""
    found: dict[tuple[int, int], str] = {}
    part = _part_of_sheet(content, sheet)
    if part is None:
        return found
    last_row = last_column = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(part) as file:
        buffer = b""
        while chunk := file.read(_CHUNK_BYTES):
            buffer = buffer[-_MAX_TAG_BYTES:] + chunk
            names = _CELL_NAME.findall(buffer)
            if names:
                last_row = max(last_row, int(names[-1][1]) - 1)
                last_column = max(last_column, *map(_column, {letters for letters, _ in names}))
            if b't="e"' in buffer:
                for letters, row, text in _ERROR_CELL.findall(buffer):
                    found[int(row) - 1, _column(letters)] = text.decode("utf-8", "replace")
    if (last_row + 1) * (last_column + 1) > _MAX_CELLS:
        from xlsxwriter.utility import xl_rowcol_to_cell  # pyright: ignore[reportMissingTypeStubs]

        raise TableError(
            f'{name}: The sheet "{shown(sheet, 60)}" reaches to cell '
            f"{xl_rowcol_to_cell(last_row, last_column)}, which is too far.",
            "Delete stray cells far from the table, or save the table as CSV.",
        )
    return found


def _column(letters: bytes) -> int:
    """The index of a column. The library that has a function for it takes a tenth of a second to import."""
    return functools.reduce(lambda index, letter: 26 * index + letter - 64, letters, 0) - 1


def _part_of_sheet(content: bytes, sheet: str) -> str | None:
    """The file of a sheet inside of an .xlsx workbook; None for other kinds of workbooks."""
    if not content.startswith(_ZIP_MARK):
        return None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if "xl/workbook.xml" not in archive.namelist():
            return None
        targets = {
            item.get("Id"): item.get("Target", "")
            for item in ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314 - no entities
        }
        for item in ElementTree.fromstring(archive.read("xl/workbook.xml")).iter():  # noqa: S314 - no entities
            if item.tag.endswith("}sheet") and item.get("name") == sheet:
                part = posixpath.normpath(posixpath.join("/xl", targets.get(item.get(_RELATION)) or "")).lstrip("/")
                return part if part in archive.namelist() else None
    return None


def _protected(name: str) -> TableError:
    return TableError(f"{name}: The workbook is protected with a password.", "Save it without a password, or as CSV.")


# Writing


class _Buffer(io.BytesIO):
    """A buffer that stays open: a ZIP file that failed writes to it once more when both are garbage."""

    def close(self) -> None:
        """Do nothing; the memory is freed with the object."""


def write_workbook(lines: Iterable[Sequence[Value]], sheet: str) -> tuple[bytes, int]:
    """Write rows as an .xlsx workbook with one sheet.

    Numbers and booleans keep their type. Texts stay texts: none becomes a formula, a link or a date.

    Args:
        lines: The rows, column names first.
        sheet: The name of the sheet.

    Returns:
        The content of the file, and the number of texts that were too long for a cell and truncated.

    Raises:
        OSError: The temporary files cannot be written.
    """
    import xlsxwriter  # pyright: ignore[reportMissingTypeStubs]
    from xlsxwriter.exceptions import XlsxWriterException  # pyright: ignore[reportMissingTypeStubs]

    cut = 0
    written = _Buffer()
    with tempfile.TemporaryDirectory() as folder:
        book: Any = xlsxwriter.Workbook(written, {"constant_memory": True, "tmpdir": folder})
        page = book.add_worksheet(sheet)
        bold = book.add_format({"bold": True})
        page.freeze_panes(1, 0)
        try:
            for row, cells in enumerate(lines):
                for column, cell in enumerate(cells):
                    cut += _write_cell(page, row, column, cell, bold if row == 0 else None)
            book.close()
        except XlsxWriterException as error:
            raise OSError(str(error)) from error
        finally:
            # It is still open if writing failed, such as on a full disk, and would be closed later with a warning.
            if not page.row_data_fh_closed:
                with suppress(OSError):
                    page.row_data_fh.close()
    return written.getvalue(), cut


def _write_cell(page: Any, row: int, column: int, cell: Value, style: Any) -> bool:
    """Write a cell. Return whether its text was truncated."""
    if isinstance(cell, bool):
        page.write_boolean(row, column, cell, style)
    elif isinstance(cell, float) or (isinstance(cell, int) and abs(cell) < _FIRST_INEXACT):
        page.write_number(row, column, cell, style)
    elif cell is not None and cell != "":
        text, is_truncated = _cell_text(to_text(cell))
        page.write_string(row, column, text, style)
        return is_truncated
    return False


def _cell_text(text: str) -> tuple[str, bool]:
    # XML excludes lone surrogates and two more characters; Excel counts UTF-16 code units.
    text = _INVALID_CHARACTERS.sub("\ufffd", text.encode("utf-8", "backslashreplace").decode())
    if len(text) * 2 <= MAX_CELL_CHARS or len(text.encode("utf-16-le")) // 2 <= MAX_CELL_CHARS:
        return text, False
    head = text.encode("utf-16-le")[: 2 * (MAX_CELL_CHARS - len(TRUNCATION_MARK))].decode("utf-16-le", "ignore")
    return head + TRUNCATION_MARK, True
