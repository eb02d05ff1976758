"""The results file of a batch: a line is written as each row ends, and the table's order is restored at the end.

The file's suffix selects CSV, JSON Lines or an .xlsx workbook. When a batch resumes, columns are matched by name, so a
spreadsheet program may have saved the file in between. An incomplete last line, after a power failure, is ignored.

A workbook cannot be written row by row, so its rows are first written as JSON Lines beside it (`NAME.xlsx.jsonl`). That
file is read when the batch resumes, and removed once the workbook is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, cast

from engine.batch.read_table import is_json_lines, parse_table
from engine.batch.rows import BatchRow, RowResult
from engine.batch.table import RESULT_PREFIXES, TableError
from engine.batch.workbook import MAX_ROWS, WORKBOOK_SUFFIXES, write_workbook
from engine.errors import EngineError, reason_of
from engine.formatting import format_count
from engine.safe_file_io import DISK_FULL, replace_file
from engine.store.export_csv import BYTE_ORDER_MARK, RESULT_MARKS, csv_line
from engine.text_sanitizing import shown
from engine.values import Value, as_object, to_text

_FIGURES: Final = (
    "warning_count",
    "warnings",
    "score",
    "iterations",
    "exit_reason",
    "tokens",
    "cost_usd",
    "duration_s",
    "error",
    "run_id",
)
_NUMBERS: Final = frozenset({"row", "score", "iterations", "tokens", "cost_usd", "duration_s", "warning_count"})
_INPUT, _OUTPUT, _EXTRA = RESULT_PREFIXES.values()

_Record = dict[str, Any]
"""A row as a JSON object: row, status, extra, inputs, outputs, figures, batch, key."""


class ResultsFile:
    """The results file of a batch.

    Args:
        path: The file.
        batch: The id of the batch.
        inputs: The names of the workflow's inputs.
        outputs: The names of the workflow's outputs.
        extra: The table's columns that are not inputs.
    """

    def __init__(
        self, path: Path, batch: str, inputs: Sequence[str], outputs: Sequence[str], extra: Sequence[str] = ()
    ) -> None:
        self._path = path
        self._batch = batch
        self._is_json = is_json_lines(path)
        self._is_workbook = path.suffix.casefold() == ".xlsx"
        self._journal = path.with_name(f"{path.name}.jsonl") if self._is_workbook else path
        values = [*(f"{_INPUT}{name}" for name in inputs), *(f"{_OUTPUT}{name}" for name in outputs)]
        self._own = frozenset({"row", "status", *values, *_FIGURES, *RESULT_MARKS})
        self._extra = _name_extra_columns(extra, self._own)
        self._columns = ("row", "status", *self._extra.values(), *values, *_FIGURES, *RESULT_MARKS)
        self._records: dict[str, _Record] = {}
        self._file: IO[str] | None = None

    def open(self) -> dict[str, RowResult]:
        """Read the results of earlier starts, and open the file for more.

        Returns:
            The rows that are completed, by key.

        Raises:
            TableError: The file has other content, or cannot be written.
        """
        if not self._is_workbook and self._path.suffix.casefold() in WORKBOOK_SUFFIXES:
            raise TableError(
                f"{shown(self._path.name)}: Results are not written to {self._path.suffix} files.",
                "Choose a file that ends in .xlsx, .csv or .jsonl.",
            )
        self._read(self._path)
        if self._is_workbook:
            self._read(self._journal)
            with self._reporting_errors():
                replace_file(self._journal, "".join(map(_json_line, self._records.values())).encode())
        self._rewrite(self._records.values())
        with self._reporting_errors():
            self._file = self._journal.open("a", encoding="utf-8", errors="backslashreplace", newline="")
        return {key: _result(record) for key, record in self._records.items() if record["status"] == "completed"}

    def write(self, result: RowResult) -> None:
        """Write the result of a row.

        Raises:
            TableError: The file cannot be written.
        """
        assert self._file is not None, "open() comes first"
        names = ("row", "status", "extra", "inputs", "outputs", *_FIGURES)
        record = {**{name: getattr(result, name) for name in names}, "batch": self._batch, "key": result.key}
        self._records[result.key] = record
        line = _json_line(record) if self._is_json or self._is_workbook else csv_line(self._cells(record))
        with self._reporting_errors():
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())

    def move(self, row: BatchRow) -> None:
        """Update the place and the extra cells of a completed row."""
        self._records[row.key] |= {"row": row.number, "extra": row.extra}

    def close(self, order: Iterable[str]) -> tuple[str, ...]:
        """Write the rows in the order of the table, and close the file.

        Args:
            order: The keys of the table's rows. Rows that are no longer in the table stay at the end, unless they
                never ran.

        Returns:
            What a user should know about the file, in sentences.

        Raises:
            TableError: The file cannot be written, and is unchanged.
        """
        if self._file is None:
            return ()
        with suppress(OSError):  # closing repeats a failed write; the whole file is written again below
            self._file.close()
        self._file = None
        keys = {key: True for key in order if key in self._records}
        others = [key for key, record in self._records.items() if key not in keys and record.get("run_id")]
        notes = self._rewrite([self._records[key] for key in (*keys, *others)])
        if self._is_workbook:
            with suppress(OSError):  # if it stays, it is read again with the workbook, and has the same rows
                self._journal.unlink(missing_ok=True)
        return notes

    def _rewrite(self, records: Iterable[_Record]) -> tuple[str, ...]:
        truncated, name = 0, shown(self._path.name)
        if self._is_workbook:
            rows = list(records)
            if len(rows) >= MAX_ROWS:
                raise TableError(
                    f"{name}: A sheet can have at most {format_count(MAX_ROWS, 'row')}.", "Use a CSV file instead."
                )
            with self._reporting_errors():
                content, truncated = write_workbook([self._columns, *map(self._cells, rows)], "Results")
        elif self._is_json:
            content = "".join(map(_json_line, records)).encode()
        else:
            lines = "".join(map(csv_line, [self._columns, *map(self._cells, records)]))
            content = (BYTE_ORDER_MARK + lines).encode("utf-8", "backslashreplace")
        with self._reporting_errors():
            replace_file(self._path, content)
        if not truncated:
            return ()
        texts = format_count(truncated, "text was", "texts were")
        note = f"{name}: {texts} too long for an Excel cell and truncated."
        return (f"{note} The history has the whole texts, as have CSV and .jsonl files.",)

    def _read(self, path: Path) -> None:
        with self._reporting_errors():
            content = path.read_bytes() if path.exists() else b""
        if is_json_lines(path):
            content = content[: content.rfind(b"\n") + 1]
        elif not self._is_workbook:
            content = _whole_csv(content)
        if not content:
            return
        try:
            table = parse_table(content, path)
        except EngineError:
            raise self._conflict("is not a results file of a batch") from None
        if not set(RESULT_MARKS) <= set(table.columns):
            raise self._conflict("is not a results file of a batch")
        for row in table.rows:
            if row.get("batch") != self._batch:
                raise self._conflict("has the results of another batch (workflow, model or name)")
            record = self._record_of_cells(row) if table.is_text else row
            self._records[str(row.get("key"))] = record

    def _record_of_cells(self, row: dict[str, Value]) -> _Record:
        named = {column: name for name, column in self._extra.items()}
        record: _Record = {"extra": {}, "inputs": {}, "outputs": {}}
        for column, cell in row.items():
            if column in named:  # first, because the name may begin like those below
                record["extra"][named[column]] = cell
            elif column.startswith(_INPUT):
                record["inputs"][column.removeprefix(_INPUT)] = cell
            elif column.startswith(_OUTPUT):
                record["outputs"][column.removeprefix(_OUTPUT)] = cell
            elif column in self._own:
                record[column] = _number(cell) if column in _NUMBERS else cell
            else:
                record["extra"][column] = cell
        return record

    def _cells(self, record: _Record) -> list[Value]:
        cells = dict(record)
        for part, prefix in (("inputs", _INPUT), ("outputs", _OUTPUT)):
            cells |= {f"{prefix}{name}": value for name, value in as_object(record.get(part)).items()}
        cells["warnings"] = "\n".join(_texts(record.get("warnings")))
        extra = as_object(record.get("extra"))
        cells |= {column: extra.get(name) for name, column in self._extra.items()}
        return [cells.get(column) for column in self._columns]

    def _conflict(self, reason: str) -> TableError:
        return TableError(f"{shown(self._path.name)}: The file exists and {reason}.", "Choose another results file.")

    @contextmanager
    def _reporting_errors(self) -> Generator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            has_journal = self._is_workbook and self._records
            journal = f" The rows so far are in {shown(self._journal.name)}." if has_journal else ""
            is_full = getattr(error, "errno", None) in DISK_FULL
            raise TableError(
                f"{shown(self._path.name)}: The results cannot be written: {shown(reason_of(error))}.{journal}",
                f"{'Free some space' if is_full else 'Close the file in other programs'}, or choose another file.",
            ) from error


def _name_extra_columns(extra: Sequence[str], own: frozenset[str]) -> dict[str, str]:
    """The name of each extra column in the results: its own, after `table.` if that name is taken."""
    named: dict[str, str] = {}
    for name in extra:
        column = name
        while column in own or column in named.values():
            column = f"{_EXTRA}{column}"
        named[name] = column
    return named


def _result(record: _Record) -> RowResult:
    return RowResult(
        row=int(_number(record.get("row")) or 0),
        key=str(record["key"]),
        run_id=to_text(record.get("run_id")),
        status="completed",
        inputs=as_object(record.get("inputs")),
        outputs=as_object(record.get("outputs")),
        score=_number(record.get("score")),
        iterations=int(_number(record.get("iterations")) or 0),
        exit_reason=to_text(record.get("exit_reason")),
        tokens=int(_number(record.get("tokens")) or 0),
        cost_usd=_number(record.get("cost_usd")),
        duration_s=_number(record.get("duration_s")) or 0.0,
        warnings=_texts(record.get("warnings")),
        is_reused=True,
        extra=as_object(record.get("extra")),
    )


def _texts(value: Any) -> tuple[str, ...]:
    """A list of texts, or the lines of a cell."""
    if isinstance(value, str):
        return tuple(value.splitlines())
    return tuple(map(str, cast("list[Any]", value))) if isinstance(value, (list, tuple)) else ()


def _number(cell: Any) -> float | None:
    """The number in a cell; integers stay integers, so that they are written unchanged."""
    try:
        return int(str(cell))
    except ValueError:
        with suppress(ValueError):
            return float(str(cell))
        return None


def _json_line(record: _Record) -> str:
    return json.dumps(record, ensure_ascii=True, allow_nan=False) + "\n"


def _whole_csv(content: bytes) -> bytes:
    """The content up to the last line end outside of quotes."""
    end = position = quotes = 0
    for line in content.split(b"\n")[:-1]:
        position += len(line) + 1
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            end = position
    return content[:end]
