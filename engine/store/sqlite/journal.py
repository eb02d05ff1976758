"""The log of one run: the runner's side (`SqliteJournal`) and the writer thread's side (`RunWriter`)."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.run_state.reducer import apply
from engine.run_state.state import RunState
from engine.store.codec import KIND_CODES, encode_fields
from engine.store.sqlite.blobs import BlobWriter
from engine.store.sqlite.queries import STATE_COLUMNS, search_text, state_row, to_text
from engine.store.sqlite.schema import SEQ_BITS, run_lost
from engine.store.sqlite.value_encoding import ValueEncoder, to_json
from engine.store.sqlite.writer_thread import Task, WriterThread
from engine.store.store_protocol import StoreError

_LOG: Final = logging.getLogger("loopwright")
_CLOSE: Final = object()
_KNOWN_PATHS: Final = 1_024
_ROW_BYTES: Final = 25
"""Approximate overhead of an event's row."""
_INDEX: Final = re.compile(r"\[[0-9]+\]")
_UPDATE: Final = f"""
    UPDATE runs SET ({STATE_COLUMNS}, size, owner) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    WHERE id = ? AND owner = ?
"""  # noqa: S608 - constants
_UPDATE_START: Final = "UPDATE runs SET started = ? WHERE id = ?"
"""A separate statement because it is needed once: SQLite rewrites the index whenever the column is set."""


class SqliteJournal:
    """Passes the events of one run to the writer thread."""

    def __init__(self, writer: WriterThread, run: RunWriter) -> None:
        self._writer = writer
        self._run = run
        self._is_closed = False

    def watch(self, stored: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        """Set the callbacks for stored events and for failure."""
        self._run.watch(stored, failed)

    def write(self, event: AnyEvent) -> None:
        """Write the next event of the run."""
        self._send(event)

    def close(self) -> None:
        """End the log and release the run."""
        if not self._is_closed:
            self._is_closed = True
            self._send(_CLOSE)

    def _send(self, item: object) -> None:
        try:
            self._writer.put(self._run, item)
        except StoreError as error:
            self._run.failed(error)


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run that this process owns.

    Attributes:
        row: Its row id.
        run_id: Its id.
        state: State after the events so far (`Detail.SUMMARY`).
        size: Bytes that it takes so far.
    """

    row: int
    run_id: str
    state: RunState
    size: int


class RunWriter:
    """Writes the events of one run, its summary and its references to blobs, on the writer thread.

    Args:
        writer: The writer thread.
        opened: The run.
        owner: Token of this process. If the row has another owner, the run was lost.
    """

    def __init__(self, writer: WriterThread, opened: OpenedRun, owner: int) -> None:
        self._writer = writer
        self._run = opened.row
        self._opened = opened
        self._owner = owner
        self._state = self._safe_state = opened.state
        self._size = self._safe_size = opened.size
        self._blobs = BlobWriter(opened.row)
        self._values = ValueEncoder(self._blobs)
        self._paths: dict[str, tuple[int, str]] = {}
        self._on_stored: Callable[[int], None] | None = None
        self._on_failure: Callable[[EngineError], None] | None = None
        self._last: int | None = None
        self._is_closing = self._is_over = False
        writer.run_opened()

    def watch(self, stored: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        """Set the callbacks for stored events and for failure."""
        self._on_stored, self._on_failure = stored, failed

    def store(self, connection: sqlite3.Connection, items: Sequence[Any]) -> None:
        """Write events, inside a transaction.

        Raises:
            StoreError: This process no longer owns the run.
        """
        if self._is_over:
            return
        self._is_closing = items[-1] is _CLOSE
        events: Sequence[AnyEvent] = items[:-1] if self._is_closing else items
        # An earlier attempt may have been rolled back.
        self._state, self._size = self._safe_state.copy_summary(), self._safe_size
        for event in events:
            apply(self._state, event)
            self._last = event.seq
        rows = [self._row(connection, event) for event in events]
        self._size += sum(len(row[-1]) + _ROW_BYTES for row in rows) + self._blobs.take_written()
        self._update(connection)
        connection.executemany("INSERT INTO events (id, kind, path, time, body) VALUES (?, ?, ?, ?, ?)", rows)
        self._blobs.write_uses(connection)

    def committed(self) -> None:
        """Accept the state of the committed transaction and report progress."""
        if self._is_over:
            return
        self._safe_state, self._safe_size = self._state, self._size
        last, self._last = self._last, None
        if last is not None and self._on_stored is not None:
            _notify(self._on_stored, last)
        if self._is_closing:
            self._end()

    def rolled_back(self) -> None:
        """Forget the ids of the transaction that was rolled back."""
        self._values.forget()
        self._paths.clear()
        self._last = None

    def failed(self, error: EngineError) -> None:
        """Stop writing, release the run and report the error."""
        if self._is_over:
            return
        self._end()
        # If that fails too, the run counts as interrupted once this process is gone.
        with suppress(StoreError):
            self._writer.put(Task(self._release), None)
        if self._on_failure is not None:
            _notify(self._on_failure, error)

    def _update(self, connection: sqlite3.Connection) -> None:
        """Write the summary of the run.

        Raises:
            StoreError: This process no longer owns the run.
        """
        owner = None if self._is_closing else self._owner
        values = (*state_row(self._state), self._size, owner, self._run, self._owner)
        if connection.execute(_UPDATE, values).rowcount == 0:
            raise run_lost(self._opened.run_id)
        if self._state.started != self._safe_state.started:
            connection.execute(_UPDATE_START, (self._state.started, self._run))
        if self._state.workflow != self._safe_state.workflow:
            (source,) = connection.execute("SELECT source FROM runs WHERE id = ?", (self._run,)).fetchone()
            search = search_text(self._state.workflow, to_text(source))
            connection.execute("UPDATE runs SET search = ? WHERE id = ?", (search, self._run))

    def _row(self, connection: sqlite3.Connection, event: AnyEvent) -> tuple[int, int, int, float, str]:
        known = self._paths.get(event.path)
        path, node = known or self._path_id(connection, event.path)
        self._values.begin(connection, node)
        body = to_json(encode_fields(event, self._values.put))
        return self._run << SEQ_BITS | event.seq, KIND_CODES[type(event)], path, event.time, body

    def _path_id(self, connection: sqlite3.Connection, path: str) -> tuple[int, str]:
        """Return the id of a path, and the path without iteration indexes."""
        row = connection.execute("SELECT id FROM paths WHERE path = ?", (path,)).fetchone()
        if row is None:
            row = connection.execute("INSERT INTO paths (path) VALUES (?) RETURNING id", (path,)).fetchone()
        if len(self._paths) >= _KNOWN_PATHS:
            self._paths.clear()
        self._paths[path] = int(row[0]), _INDEX.sub("", path)
        return self._paths[path]

    def _release(self, connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE runs SET owner = NULL WHERE id = ? AND owner = ?", (self._run, self._owner))

    def _end(self) -> None:
        self._is_over = True
        self._values.forget()
        self._writer.run_closed()


ArgumentT = TypeVar("ArgumentT")


def _notify(callback: Callable[[ArgumentT], None], argument: ArgumentT) -> None:
    """Call a callback. Its errors must not end the writer thread of all runs."""
    try:
        callback(argument)
    except Exception:
        _LOG.exception("A callback of a stored run has raised an error; the run is still stored.")
