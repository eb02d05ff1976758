"""The file in which a batch keeps what its rows came to: a line as each row ends, in the table's order at the end.

It is CSV or JSON lines, by its name. A broken line at its end (the machine went down while it was written) is left out
when the batch goes on. In CSV a text that a spreadsheet would take for a formula has an apostrophe in front.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, cast

from engine.batch.result import RowResult
from engine.batch.table import Table, TableError, is_json_lines, parse_table
from engine.document.wording import shown
from engine.errors import EngineError
from engine.ordinary_file import replace_file
from engine.store.export_csv import FORMULA_STARTS
from engine.values import Value, to_text

_FIGURES: Final = ("score", "iterations", "exit_reason", "tokens", "cost_usd", "duration_s", "error", "run_id")
_NAMES: Final = ("batch", "key")
_ESCAPE: Final = "'"


class ResultsFile:
    """The file of one batch.

    Args:
        path: The file.
        batch: The batch's id.
        inputs: The names of the workflow's inputs.
        outputs: The names of its results.
    """

    def __init__(self, path: Path, batch: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._path = path
        self._batch = batch
        self._is_json = is_json_lines(path)
        self._inputs, self._outputs = tuple(inputs), tuple(outputs)
        self._lines: dict[str, str] = {}
        self._file: IO[str] | None = None

    def open(self) -> dict[str, RowResult]:
        """Take up what is in the file, and make it ready for more.

        Returns:
            The rows that are done, by key.

        Raises:
            TableError: It holds something else, or cannot be written.
        """
        done = self._read()
        self._rewrite(self._lines.values())
        try:
            self._file = self._path.open("a", encoding="utf-8", errors="backslashreplace", newline="")
        except OSError as error:
            raise self._unwritable(error) from error
        return done

    def write(self, result: RowResult) -> None:
        """Keep what a row came to.

        Raises:
            TableError: It cannot be written.
        """
        assert self._file is not None, "it is opened first"
        line = self._json_line(result) if self._is_json else self._csv_line(result)
        self._lines[result.key] = line
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self, order: Iterable[str]) -> None:
        """Put the rows into the table's order and let go of the file.

        Args:
            order: The keys of the table's rows. Rows that are no longer in the table stay, at the end.

        Raises:
            TableError: It cannot be written; what was kept before is still there.
        """
        if self._file is None:
            return
        with suppress(OSError):  # it tries once more to write what `write` could not; the whole file is made anew below
            self._file.close()
        self._file = None
        keys = dict.fromkeys(key for key in (*order, *self._lines) if key in self._lines)
        self._rewrite(self._lines[key] for key in keys)

    def _rewrite(self, lines: Iterable[str]) -> None:
        text = ("" if self._is_json else _csv_text(self._columns)) + "".join(lines)
        try:
            replace_file(self._path, text.encode("utf-8", "backslashreplace"))
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from error

    # Reading what an earlier start of the batch has kept

    def _read(self) -> dict[str, RowResult]:
        try:
            content = self._path.read_bytes() if self._path.exists() else b""
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from error
        content = content[: content.rfind(b"\n") + 1] if self._is_json else _whole_csv(content)
        if not content:
            return {}
        try:
            table = parse_table(content, shown(self._path.name), is_json=self._is_json)
        except EngineError:
            raise self._foreign() from None
        if not set(_NAMES) <= set(table.columns):
            raise self._foreign()
        if not self._is_json and table.columns != self._columns:
            raise self._other_batch()
        done: dict[str, RowResult] = {}
        for row in table.rows:
            if row.get("batch") != self._batch:
                raise self._other_batch()
            key = str(row.get("key"))
            self._lines[key] = _line(row, table)
            if row.get("status") == "completed":
                done[key] = self._result(row, table)
        return done

    def _result(self, row: dict[str, Value], table: Table) -> RowResult:
        def number(name: str) -> float | None:
            try:
                return float(str(row[name]))
            except (KeyError, ValueError):
                return None

        if table.is_text:
            inputs: Any = {name: _unescaped(str(row[f"input.{name}"])) for name in self._inputs}
            outputs: Any = {name: _unescaped(str(row[f"output.{name}"])) for name in self._outputs}
        else:
            inputs, outputs = row.get("inputs"), row.get("outputs")
        return RowResult(
            row=int(number("row") or 0),
            key=str(row["key"]),
            run_id=to_text(row.get("run_id")),
            status="completed",
            inputs=_object(inputs),
            outputs=_object(outputs),
            score=number("score"),
            iterations=int(number("iterations") or 0),
            exit_reason=to_text(row.get("exit_reason")),
            tokens=int(number("tokens") or 0),
            cost_usd=number("cost_usd"),
            duration_s=number("duration_s") or 0.0,
            is_reused=True,
        )

    # Writing

    @property
    def _columns(self) -> tuple[str, ...]:
        given = (f"input.{name}" for name in self._inputs)
        gave = (f"output.{name}" for name in self._outputs)
        return ("row", "status", *given, *gave, *_FIGURES, *_NAMES)

    def _csv_line(self, result: RowResult) -> str:
        given = [_cell(result.inputs.get(name)) for name in self._inputs]
        gave = [_cell(result.outputs.get(name)) for name in self._outputs]
        figures = [_cell(getattr(result, name)) for name in _FIGURES]
        return _csv_text((result.row, result.status, *given, *gave, *figures, self._batch, result.key))

    def _json_line(self, result: RowResult) -> str:
        line: dict[str, Any] = {"row": result.row, "status": result.status}
        line |= {"inputs": result.inputs, "outputs": result.outputs}
        line |= {name: getattr(result, name) for name in _FIGURES}
        return json.dumps({**line, "batch": self._batch, "key": result.key}, ensure_ascii=True, allow_nan=False) + "\n"

    def _foreign(self) -> TableError:
        return TableError(
            f"{shown(self._path.name)}: The file is there already, and holds no results of a batch.",
            "Name another file for the results.",
        )

    def _other_batch(self) -> TableError:
        return TableError(
            f"{shown(self._path.name)}: The file holds the results of another batch (workflow, model or name).",
            "Name another file for the results.",
        )

    def _unwritable(self, error: OSError | ValueError) -> TableError:
        reason = shown(getattr(error, "strerror", None) or error)
        return TableError(f"{shown(self._path.name)}: The results cannot be written: {reason}.", "Name another file.")


def _object(value: Any) -> dict[str, Value]:
    return cast("dict[str, Value]", value) if isinstance(value, dict) else {}


def _line(row: dict[str, Value], table: Table) -> str:
    """A line as it stood in the file."""
    if table.is_text:
        return _csv_text([row[column] for column in table.columns])
    return json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n"


def _whole_csv(content: bytes) -> bytes:
    """The content up to the last end of a line that stands outside of quotes."""
    end = position = quotes = 0
    for line in content.split(b"\n")[:-1]:
        position += len(line) + 1
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            end = position
    return content[:end]


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    text = to_text(value)
    return f"{_ESCAPE}{text}" if text.startswith((*FORMULA_STARTS, _ESCAPE)) else text


def _unescaped(cell: str) -> str:
    return cell.removeprefix(_ESCAPE)


def _csv_text(cells: Iterable[Any]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow(cells)
    return written.getvalue()
