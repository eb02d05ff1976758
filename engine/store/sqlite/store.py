"""`SqliteStore`: the run history in one SQLite file."""

from __future__ import annotations

import dataclasses
import json
import secrets
import sqlite3
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.protocol import Reply
from engine.runner.run_storage import PostedAnswer, RunHead
from engine.store.codec import decode_reply
from engine.store.sqlite import queries, run_mutations
from engine.store.sqlite.blobs import BlobReader
from engine.store.sqlite.journal import OpenedRun, RunWriter, SqliteJournal
from engine.store.sqlite.run_mutations import bytes_in_use, delete_run, free_pages, vacuum_file
from engine.store.sqlite.schema import (
    BUSY_S,
    Access,
    connect,
    damaged_history,
    mark_closed,
    mark_open,
    open_lock,
    prepare,
    to_store_error,
)
from engine.store.sqlite.value_encoding import ValueDecoder
from engine.store.sqlite.writer_thread import Owner, Task, WriterThread, live_owners
from engine.store.store_protocol import (
    ACTIVE,
    EVERY_RUN,
    OPEN,
    RunFilter,
    RunSummary,
    Totals,
    runs_still_running,
    store_closed,
    unique_run_id,
)

_MOST_IDLE: Final = 4


class ConnectionPool:
    """A pool of read-only connections.

    Args:
        path: File of the history.
        busy_s: Seconds to wait for a lock of another process.
        access: How to open it.
    """

    def __init__(self, path: Path, busy_s: float, access: Access) -> None:
        self._path = path
        self._access: Access = access
        self._busy_s = busy_s
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._is_closed = False

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """Borrow a connection.

        Raises:
            StoreError: The store was closed, or a query failed.
        """
        connection = self._take()
        try:
            yield connection
        except (sqlite3.Error, OSError) as error:
            raise to_store_error(error, self._path) from error
        except (ValueError, KeyError, TypeError, IndexError) as error:
            # Everything that was written can be decoded, so the file was changed since.
            raise damaged_history(self._path) from error
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close the idle connections now, and the others when they are returned."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._is_closed:
                raise store_closed()
            if self._idle:
                return self._idle.pop()
        try:
            connection = connect(self._path, busy_s=self._busy_s, access=self._access)
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise to_store_error(error, self._path) from error
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


_MOST_NAMED: Final = 11
_IMPORTED_AT_ONCE: Final = 1_000


class SqliteStore:
    """The history in a file.

    Args:
        path: The file, created if missing.
        busy_s: Seconds to wait for a lock of another process.
        for_reading: Whether a file that cannot be written is accepted; writing to it raises `StoreError`.

    Raises:
        StoreError: The file can't be opened.
    """

    def __init__(self, path: Path, *, busy_s: float = BUSY_S, for_reading: bool = False) -> None:
        self._path = path
        with open_lock:
            access = prepare(path, busy_s=busy_s, for_reading=for_reading)
            try:
                connection = connect(path, busy_s=busy_s, access=access)
            except sqlite3.Error as error:
                raise to_store_error(error, path) from error
            self._open_file: tuple[int, int] | None = mark_open(path)
        self._owner = Owner()
        self._readers = ConnectionPool(path, busy_s, access)
        self._writer = WriterThread(path, connection, self._owner)

    def begin(self, head: RunHead) -> SqliteJournal:
        """Start storing a run. Waits for the disk."""
        return self._journal(lambda connection: run_mutations.begin_run(connection, self._owner, head))

    def reopen(self, run_id: str) -> SqliteJournal:
        """Continue storing a run. Waits for the disk."""
        return self._journal(lambda connection: run_mutations.reopen_run(connection, self._owner, run_id))

    def _journal(self, open_run: Callable[[sqlite3.Connection], OpenedRun]) -> SqliteJournal:
        return SqliteJournal(self._writer, RunWriter(self._writer, self._writer.do(open_run), self._owner.token))

    def runs(self, which: RunFilter = EVERY_RUN, *, limit: int = 100, offset: int = 0) -> list[RunSummary]:
        """Return runs, newest first."""
        with self._readers.reading() as connection:
            return queries.find_runs(connection, which, limit, offset)

    def totals(self, which: RunFilter = EVERY_RUN) -> Totals:
        """Return the totals of runs."""
        with self._readers.reading() as connection:
            return queries.sum_runs(connection, which)

    def find(self, prefix: str) -> RunSummary:
        """Return the run whose id has that prefix."""
        with self._readers.reading() as connection:
            run_id = unique_run_id(prefix, queries.ids_with_prefix(connection, prefix, _MOST_NAMED))
            return queries.summary_of(connection, run_id)

    def is_owned(self, run_id: str) -> bool:
        """Return whether a live process owns the run."""
        with self._readers.reading() as connection:
            return queries.column_of(connection, run_id, "owner") in live_owners(connection)

    def children(self, run_id: str) -> list[RunSummary]:
        """Return the forks of a run, oldest first."""
        with self._readers.reading() as connection:
            return queries.find_runs(connection, RunFilter(parent=run_id), -1, 0)[::-1]

    def document(self, run_id: str) -> str:
        """Return the workflow document of a run."""
        with self._readers.reading() as connection:
            stored = json.loads(queries.column_of(connection, run_id, "document"))
            return ValueDecoder(BlobReader(connection)).get(stored)

    def options(self, run_id: str) -> dict[str, Any]:
        """Return the options of a run."""
        with self._readers.reading() as connection:
            return json.loads(queries.column_of(connection, run_id, "options"))

    def events(
        self,
        run_id: str,
        *,
        level: str | None = None,
        kinds: Collection[type[AnyEvent]] | None = None,
        after: int = -1,
        preview: int | None = None,
    ) -> Iterator[AnyEvent]:
        """Iterate over the events of a run in order, reading them lazily."""
        with self._readers.reading() as connection:
            queries.column_of(connection, run_id, "id")  # raises for an unknown run now, not on iteration
        return self._read_events(run_id, level, kinds, after, preview)

    def _read_events(
        self,
        run_id: str,
        level: str | None,
        kinds: Collection[type[AnyEvent]] | None,
        after: int,
        preview: int | None,
    ) -> Iterator[AnyEvent]:
        with self._readers.reading() as connection:
            yield from queries.read_events(connection, run_id, level=level, kinds=kinds, after=after, preview=preview)

    def import_run(self, head: RunHead, events: Iterable[AnyEvent]) -> str:
        """Import an exported run, completely or not at all."""
        self._writer.do(run_mutations.delete_leftovers)
        imported = f"{queries.IMPORTING}{secrets.token_hex(6)}"
        journal = self.begin(dataclasses.replace(head, run_id=imported))
        failures: list[EngineError] = []
        journal.watch(lambda _seq: None, failures.append)
        try:
            rest = iter(events)
            while batch := list(islice(rest, _IMPORTED_AT_ONCE)):
                for event in batch:
                    journal.write(event)
                self._wait()
                if failures:
                    raise failures[0]
            run_id = self._writer.do(lambda connection: run_mutations.publish_import(connection, imported, head.run_id))
        except BaseException:
            journal.close()
            self._writer.do(lambda connection: delete_run(connection, queries.column_of(connection, imported, "id")))
            raise
        journal.close()
        self._wait()  # the run is released before its id is returned
        return run_id

    def _wait(self) -> None:
        """Wait until everything that was queued before is stored, or has failed."""
        self._writer.do(lambda _connection: None)

    def pending_answers(self, run_id: str) -> list[PostedAnswer]:
        """Return the pending answers of other processes for a run."""
        with self._readers.reading() as connection:
            return run_mutations.read_answers(connection, run_id)

    def post_answer(self, run_id: str, posted: PostedAnswer) -> None:
        """Post an answer for the process that owns a run. Waits for the disk."""
        self._writer.do(lambda connection: run_mutations.post_answer(connection, run_id, posted))

    def withdraw_answer(self, run_id: str, question: int) -> None:
        """Remove a pending answer."""
        self._writer.do(lambda connection: run_mutations.remove_answer(connection, run_id, question))

    def pin(self, run_id: str, *, pinned: bool) -> None:
        """Protect a run from retention, or stop protecting it."""
        self._writer.do(lambda connection: run_mutations.pin_run(connection, run_id, pinned=pinned))

    def set_source(self, run_ids: Collection[str], source: str) -> None:
        """Set the workflow file of runs whose document had none; it was saved after they started."""
        self._writer.do(lambda connection: run_mutations.set_source(connection, run_ids, source))

    def delete(self, run_ids: Collection[str]) -> None:
        """Delete runs and return their space to the disk."""
        with self._readers.reading() as connection:
            summaries = [queries.summary_of(connection, run_id) for run_id in run_ids]
        busy = [summary.run_id for summary in summaries if summary.status in ACTIVE]
        if busy:
            raise runs_still_running(busy)
        self._delete(run_ids)

    def _delete(self, run_ids: Iterable[str]) -> None:
        # One transaction per run, so running runs are not blocked for long.
        for run_id in dict.fromkeys(run_ids):
            self._writer.do(lambda connection, run_id=run_id: run_mutations.delete_if_stopped(connection, run_id))
        self._writer.do(run_mutations.delete_leftovers)
        self._writer.do(free_pages, in_transaction=False)

    def retain(self, *, most_runs: int | None, most_bytes: int | None) -> int:
        """Delete the oldest runs that are neither pinned nor running until both limits hold. Return their number."""
        deleted = 0
        with self._readers.reading() as connection:
            summaries = queries.find_runs(connection, EVERY_RUN, -1, 0)
        oldest = [summary for summary in reversed(summaries) if not summary.pinned and summary.status not in OPEN]
        if most_runs is not None and len(summaries) > most_runs:
            too_many = oldest[: len(summaries) - most_runs]
            self._delete(summary.run_id for summary in too_many)
            deleted += len(too_many)
        while most_bytes is not None and deleted < len(oldest) and (excess := self._bytes_in_use() - most_bytes) > 0:
            first = deleted
            while deleted < len(oldest) and excess > 0:
                excess -= max(oldest[deleted].size, 1)
                deleted += 1
            self._delete(summary.run_id for summary in oldest[first:deleted])
        return deleted

    def _bytes_in_use(self) -> int:
        with self._readers.reading() as connection:
            return bytes_in_use(connection)

    def vacuum(self) -> int:
        """Return all free space to the disk. Return the bytes gained."""
        before = self.size()
        self._writer.do(run_mutations.delete_leftovers)
        self._writer.do(vacuum_file, in_transaction=False)
        return max(before - self.size(), 0)

    def size(self) -> int:
        """Return the bytes on disk, including the WAL files."""
        files = (self._path.with_name(self._path.name + end) for end in ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files if file.exists())

    def cached_reply(self, key: str) -> Reply | None:
        """Return the cached reply for a key, or None."""
        with self._readers.reading() as connection:
            row = queries.reply_of(connection, key)
            return None if row is None else decode_reply(json.loads(row), ValueDecoder(BlobReader(connection)).get)

    def cache_reply(self, key: str, run_id: str, reply: Reply) -> None:
        """Cache a reply for other runs while its run is stored. Returns at once."""
        self._writer.put(Task(lambda connection: run_mutations.cache_reply(connection, key, run_id, reply)), None)

    def close(self) -> None:
        """Write what is pending and close the file."""
        self._writer.close()
        self._readers.close()
        opened, self._open_file = self._open_file, None
        if opened is not None:
            mark_closed(opened)
