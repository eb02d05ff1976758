"""Where one run is kept while it goes: the runner's side (`SqliteJournal`) and the writing thread's (`RunWriter`)."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.store.base import StoreError
from engine.store.codec import KIND_CODES, encode_fields
from engine.store.fold import RunFold
from engine.store.sqlite.blobs import BlobWriter
from engine.store.sqlite.error_mapping import was_taken
from engine.store.sqlite.rows import FOLD_COLUMNS, fold_row, search_text
from engine.store.sqlite.schema import SEQ_BITS
from engine.store.sqlite.value_encoding import SkeletonWriter, to_json
from engine.store.sqlite.writer_thread import Task, Writer

_LOG: Final = logging.getLogger("loopwright")
_CLOSE: Final = object()
_KNOWN_PATHS: Final = 1_024
_ROW_BYTES: Final = 25
"""What an event's row costs beside its body, about."""
_INDEX: Final = re.compile(r"\[[0-9]+\]")
_UPDATE: Final = f"""
    UPDATE runs SET ({FOLD_COLUMNS}, search, size, owner) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    WHERE id = ? AND owner = ?
"""  # noqa: S608 - constants
_UPDATE_START: Final = "UPDATE runs SET started = ? WHERE id = ?"
"""By itself, as it happens but once: SQLite writes the index anew whenever the column is named, changed or not."""


class SqliteJournal:
    """Where one run is kept. Everything is handed on to the writing thread."""

    def __init__(self, writer: Writer, run: RunWriter) -> None:
        self._writer = writer
        self._run = run
        self._is_closed = False

    def watch(self, kept: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        """Name who is told of progress."""
        self._run.watch(kept, failed)

    def write(self, event: AnyEvent) -> None:
        """Take the run's next event."""
        self._hand_on(event)

    def close(self) -> None:
        """Say that nothing more comes, and that this process has done with the run."""
        if not self._is_closed:
            self._is_closed = True
            self._hand_on(_CLOSE)

    def _hand_on(self, item: object) -> None:
        try:
            self._writer.put(self._run, item)
        except StoreError as error:
            self._run.failed(error)


class RunWriter:
    """Writes one run's events, what they come to, and which blobs they name.

    Args:
        writer: The thread that it is called on.
        run: The run's number in the file.
        run_id: The run.
        source: The file that its document came from.
        owner: This process; the run is no longer ours when the file names another.
        fold: What the events so far come to.
        size: Bytes that the run takes so far.
    """

    def __init__(
        self,
        writer: Writer,
        run: int,
        run_id: str,
        source: str,
        owner: int,
        fold: RunFold,
        size: int,
    ) -> None:
        self._writer = writer
        self._run = run
        self._run_id = run_id
        self._source = source
        self._owner = owner
        self._fold = self._safe_fold = fold
        self._size = self._safe_size = size
        self._blobs = BlobWriter(run)
        self._values = SkeletonWriter(self._blobs)
        self._paths: dict[str, tuple[int, str]] = {}
        self._kept: Callable[[int], None] | None = None
        self._on_failure: Callable[[EngineError], None] | None = None
        self._last: int | None = None
        self._is_closing = self._is_over = False
        writer.hold()

    def watch(self, kept: Callable[[int], None], failed: Callable[[EngineError], None]) -> None:
        """Name who is told of progress."""
        self._kept, self._on_failure = kept, failed

    def store(self, connection: sqlite3.Connection, items: Sequence[Any]) -> None:
        """Write events.

        Raises:
            StoreError: The run is no longer this process's.
        """
        if self._is_over:
            return
        self._is_closing = items[-1] is _CLOSE
        events: Sequence[AnyEvent] = items[:-1] if self._is_closing else items
        # An earlier attempt may have been rolled back.
        self._fold, self._size = self._safe_fold.copy(), self._safe_size
        for event in events:
            self._fold.take(event)
            self._last = event.seq
        rows = [self._row(connection, event) for event in events]
        self._size += sum(len(row[-1]) + _ROW_BYTES for row in rows) + self._blobs.take_written()
        self._update(connection)
        connection.executemany("INSERT INTO events (id, kind, path, time, body) VALUES (?, ?, ?, ?, ?)", rows)
        self._blobs.write_uses(connection)

    def done(self) -> None:
        """What was written is safe."""
        if self._is_over:
            return
        self._safe_fold, self._safe_size = self._fold, self._size
        last, self._last = self._last, None
        if last is not None and self._kept is not None:
            _tell(self._kept, last)
        if self._is_closing:
            self._end()

    def undone(self) -> None:
        """What was written was taken back."""
        self._values.forget()
        self._paths.clear()
        self._last = None

    def failed(self, error: EngineError) -> None:
        """Nothing more is written."""
        if self._is_over:
            return
        self._end()
        # Where even that cannot be written, the run counts as broken off once this process is gone.
        with suppress(StoreError):
            self._writer.put(Task(self._let_go), None)
        if self._on_failure is not None:
            _tell(self._on_failure, error)

    def _update(self, connection: sqlite3.Connection) -> None:
        """Write what the events come to.

        Raises:
            StoreError: The run is no longer this process's.
        """
        search = search_text(self._fold.workflow, self._source)
        owner = None if self._is_closing else self._owner
        values = (*fold_row(self._fold), search, self._size, owner, self._run, self._owner)
        if connection.execute(_UPDATE, values).rowcount == 0:
            raise was_taken(self._run_id)
        if self._fold.started != self._safe_fold.started:
            connection.execute(_UPDATE_START, (self._fold.started, self._run))

    def _row(self, connection: sqlite3.Connection, event: AnyEvent) -> tuple[int, int, int, float, str]:
        known = self._paths.get(event.path)
        path, node = known or self._note_path(connection, event.path)
        self._values.begin(connection, node)
        body = to_json(encode_fields(event, self._values.put))
        return self._run << SEQ_BITS | event.seq, KIND_CODES[type(event)], path, event.time, body

    def _note_path(self, connection: sqlite3.Connection, path: str) -> tuple[int, str]:
        """The number of a path, and the node of whichever iteration that it names."""
        row = connection.execute("SELECT id FROM paths WHERE path = ?", (path,)).fetchone()
        if row is None:
            row = connection.execute("INSERT INTO paths (path) VALUES (?) RETURNING id", (path,)).fetchone()
        if len(self._paths) >= _KNOWN_PATHS:
            self._paths.clear()
        self._paths[path] = int(row[0]), _INDEX.sub("", path)
        return self._paths[path]

    def _let_go(self, connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE runs SET owner = NULL WHERE id = ? AND owner = ?", (self._run, self._owner))

    def _end(self) -> None:
        self._is_over = True
        self._values.forget()
        self._writer.release()


ArgumentT = TypeVar("ArgumentT")


def _tell(follower: Callable[[ArgumentT], None], argument: ArgumentT) -> None:
    """Tell whoever follows the run; what that raises must not end the thread on which all runs are written."""
    try:
        follower(argument)
    except Exception:
        _LOG.exception("Whoever follows a run that is kept has raised; the run is kept all the same.")
