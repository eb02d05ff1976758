"""The history in one SQLite file: the `Store` that the program uses."""

from __future__ import annotations

import dataclasses
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

from engine.errors import EngineError
from engine.events import AnyEvent
from engine.models.base import Reply
from engine.runner.journal import LeftAnswer, RunHead
from engine.store.base import EVERY_RUN, RunFilter, RunSummary, Totals
from engine.store.codec import decode_reply
from engine.store.fold import OPEN, UNDER_WAY
from engine.store.sqlite import queries, run_mutations
from engine.store.sqlite.blobs import BlobReader
from engine.store.sqlite.error_mapping import as_store_error, is_damaged
from engine.store.sqlite.journal import SqliteJournal
from engine.store.sqlite.leases import Owner
from engine.store.sqlite.run_mutations import bytes_in_use, delete_run, give_space_back, rewrite
from engine.store.sqlite.schema import BUSY_S, connect, hold, opening, prepare, release
from engine.store.sqlite.value_encoding import SkeletonReader
from engine.store.sqlite.writer_thread import Task, Writer
from engine.store.words import chosen, closed, still_under_way

_MOST_IDLE: Final = 4


class Readers:
    """The connections of one store.

    Args:
        path: The history's file.
        busy_s: Seconds that another process may hold it before that is told.
    """

    def __init__(self, path: Path, busy_s: float) -> None:
        self._path = path
        self._busy_s = busy_s
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._is_closed = False

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection that nobody else uses meanwhile.

        Raises:
            StoreError: The store was closed, or what is done inside cannot be done.
        """
        connection = self._take()
        try:
            yield connection
        except (sqlite3.Error, OSError) as error:
            raise as_store_error(error, self._path) from error
        except (ValueError, KeyError, TypeError, IndexError) as error:
            # Whatever was written can be read; what cannot was changed since.
            raise is_damaged(self._path) from error
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close those that nobody uses; the others when they come back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._is_closed:
                raise closed()
            if self._idle:
                return self._idle.pop()
        try:
            connection = connect(self._path, busy_s=self._busy_s)
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise as_store_error(error, self._path) from error
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
    """A history in a file.

    Args:
        path: The file; made if it is not there.
        busy_s: Seconds that another process may hold the file before that is told.

    Raises:
        StoreError: It cannot be opened.
    """

    def __init__(self, path: Path, *, busy_s: float = BUSY_S) -> None:
        self._path = path
        with opening:
            prepare(path, busy_s=busy_s)
            try:
                connection = connect(path, busy_s=busy_s)
            except sqlite3.Error as error:
                raise as_store_error(error, path) from error
            self._held: tuple[int, int] | None = hold(path)
        self._owner = Owner()
        self._readers = Readers(path, busy_s)
        self._writer = Writer(path, connection, self._owner)

    def begin(self, head: RunHead) -> SqliteJournal:
        """Begin to keep a run. Waits for the disk."""
        now = time.time()
        begun = self._writer.do(lambda connection: run_mutations.begin(connection, self._owner, head, now))
        return SqliteJournal(self._writer, begun.writer(self._writer, self._owner.token))

    def reopen(self, run_id: str) -> SqliteJournal:
        """Go on keeping a run. Waits for the disk."""
        begun = self._writer.do(lambda connection: run_mutations.reopen(connection, self._owner, run_id))
        return SqliteJournal(self._writer, begun.writer(self._writer, self._owner.token))

    def runs(self, which: RunFilter = EVERY_RUN, *, limit: int = 100, offset: int = 0) -> list[RunSummary]:
        """Runs, the newest first."""
        with self._readers.reading() as connection:
            return queries.find_runs(connection, which, limit, offset)

    def totals(self, which: RunFilter = EVERY_RUN) -> Totals:
        """What those runs come to."""
        with self._readers.reading() as connection:
            return queries.sum_runs(connection, which)

    def find(self, prefix: str) -> RunSummary:
        """The one run whose id begins so."""
        with self._readers.reading() as connection:
            run_id = chosen(prefix, queries.ids_that_begin_with(connection, prefix, _MOST_NAMED))
            return queries.summary_of(connection, run_id)

    def is_held(self, run_id: str) -> bool:
        """Whether a process is at work on a run, or waits with it for a person."""
        with self._readers.reading() as connection:
            return queries.is_held(connection, run_id)

    def children(self, run_id: str) -> list[RunSummary]:
        """The runs that were forked from a run, the oldest first."""
        with self._readers.reading() as connection:
            return queries.find_runs(connection, RunFilter(parent=run_id), -1, 0)[::-1]

    def document(self, run_id: str) -> str:
        """The document as the run ran it."""
        with self._readers.reading() as connection:
            stored, _options = queries.head_of(connection, run_id)
            return SkeletonReader(BlobReader(connection)).get(json.loads(stored))

    def options(self, run_id: str) -> dict[str, Any]:
        """How the run was to be done."""
        with self._readers.reading() as connection:
            return json.loads(queries.head_of(connection, run_id)[1])

    def events(
        self,
        run_id: str,
        *,
        level: str | None = None,
        kinds: Collection[type[AnyEvent]] | None = None,
        after: int = -1,
        preview: int | None = None,
    ) -> Iterator[AnyEvent]:
        """A run's events, in order, read as they are asked for."""
        with self._readers.reading() as connection:
            queries.number_of(connection, run_id)  # that there is none is told now
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
        """Take in a run that was exported, as it was: all of it, or nothing."""
        self._writer.do(run_mutations.delete_remains)
        imported = f"{queries.IMPORTING}{secrets.token_hex(6)}"
        journal = self.begin(dataclasses.replace(head, run_id=imported))
        progress = _Progress()
        journal.watch(progress.kept, progress.failed)
        try:
            rest = iter(events)
            while batch := list(islice(rest, _IMPORTED_AT_ONCE)):
                for event in batch:
                    journal.write(event)
                progress.wait_for(batch[-1].seq)
            run_id = self._writer.do(
                lambda connection: run_mutations.import_is_whole(connection, imported, head.run_id)
            )
        except BaseException:
            journal.close()
            self._writer.do(lambda connection: delete_run(connection, queries.number_of(connection, imported)))
            raise
        journal.close()
        self._writer.do(lambda _connection: None)  # it is let go of before its id is told
        return run_id

    def left_answers(self, run_id: str) -> list[LeftAnswer]:
        """The answers that other processes have left for a run."""
        with self._readers.reading() as connection:
            return run_mutations.read(connection, run_id)

    def leave_answer(self, run_id: str, left: LeftAnswer) -> None:
        """Leave an answer for the process that is at work on a run. Waits for the disk."""
        self._writer.do(lambda connection: run_mutations.leave(connection, run_id, left))

    def take_answer_back(self, run_id: str, question: int) -> None:
        """Take away what was left for a question."""
        self._writer.do(lambda connection: run_mutations.take_back(connection, run_id, question))

    def pin(self, run_id: str, *, pinned: bool) -> None:
        """Keep a run from retention, or no longer."""
        self._writer.do(lambda connection: run_mutations.pin(connection, run_id, pinned=pinned))

    def delete(self, run_ids: Collection[str]) -> None:
        """Delete runs and give the space that only they took back to the disk."""
        with self._readers.reading() as connection:
            summaries = [queries.summary_of(connection, run_id) for run_id in run_ids]
        busy = [summary.run_id for summary in summaries if summary.status in UNDER_WAY]
        if busy:
            raise still_under_way(busy)
        self._delete(run_ids)

    def _delete(self, run_ids: Iterable[str]) -> None:
        # A transaction a run: runs under way are not held up for long.
        for run_id in dict.fromkeys(run_ids):
            self._writer.do(lambda connection, run_id=run_id: run_mutations.delete(connection, run_id))
        self._writer.do(run_mutations.delete_remains)
        self._writer.do(give_space_back, in_transaction=False)

    def retain(self, *, most_runs: int | None, most_bytes: int | None) -> int:
        """Delete the oldest runs that are neither pinned nor under way until both limits hold; how many were."""
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
        """Give all free space back to the disk; bytes won."""
        before = self.size()
        self._writer.do(run_mutations.delete_remains)
        self._writer.do(rewrite, in_transaction=False)
        return max(before - self.size(), 0)

    def size(self) -> int:
        """Bytes on disk, with what lies in the files beside it."""
        files = (self._path.with_name(self._path.name + end) for end in ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files if file.exists())

    def cached(self, key: str) -> Reply | None:
        """The reply kept under that key."""
        with self._readers.reading() as connection:
            row = queries.reply_of(connection, key)
            return None if row is None else decode_reply(json.loads(row), SkeletonReader(BlobReader(connection)).get)

    def keep_reply(self, key: str, run_id: str, reply: Reply) -> None:
        """Keep a reply for other runs, as long as its run is kept. Returns at once."""
        self._writer.put(Task(lambda connection: run_mutations.keep_reply(connection, key, run_id, reply)), None)

    def close(self) -> None:
        """Write what is still to be written, and let go of the file."""
        self._writer.close()
        self._readers.close()
        held, self._held = self._held, None
        if held is not None:
            release(held)


class _Progress:
    """How far a journal is, for whoever waits for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._last = -1
        self._error: EngineError | None = None

    def kept(self, seq: int) -> None:
        with self._changed:
            self._last = seq
            self._changed.notify_all()

    def failed(self, error: EngineError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def wait_for(self, seq: int) -> None:
        """Wait until that event is safe.

        Raises:
            EngineError: It will not be.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or self._last >= seq)
            if self._error is not None:
                raise self._error
