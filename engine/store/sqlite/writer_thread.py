"""The thread of a store that writes to the history file, and the leases of processes on their runs.

The thread commits everything that is queued in one transaction (group commit), so parallel runs share the cost of
syncing to disk. If that fails, each run's items are tried alone, so one bad value does not affect the others.

A process that writes runs has a row with its process id, host and a heartbeat. It is alive while the heartbeat is
recent and, on the same host, while the process exists.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, TypeVar

from engine.errors import EngineError
from engine.store.sqlite.schema import is_busy, to_store_error
from engine.store.store_protocol import store_closed

BEAT_S: Final = 5.0
"""Seconds between heartbeats."""
STALE_S: Final = 30.0
"""Seconds without a heartbeat after which a process counts as dead."""
_EXPIRED_S: Final = 7 * 86_400.0


class Owner:
    """The lease of one open store of this process.

    Attributes:
        token: Random id in the file. Two stores in one process are two owners.
    """

    def __init__(self) -> None:
        self.token = secrets.randbits(62)
        self._last_beat = 0.0

    def beat(self, connection: sqlite3.Connection) -> None:
        """Write a heartbeat if one is due. Call inside a transaction."""
        now = time.time()
        if not 0 <= now - self._last_beat < BEAT_S:  # it is due, or the clock was set back
            connection.execute("DELETE FROM owners WHERE beat < ?", (now - _EXPIRED_S,))
            connection.execute(
                "INSERT INTO owners (id, host, pid, beat) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET beat = excluded.beat",
                (self.token, socket.gethostname(), os.getpid(), now),
            )
            self._last_beat = now

    def forget_beat(self) -> None:
        """Forget the last heartbeat, whose transaction may have been rolled back."""
        self._last_beat = 0.0

    def leave(self, connection: sqlite3.Connection) -> None:
        """Release all runs of this process. Call inside a transaction."""
        connection.execute("UPDATE runs SET owner = NULL WHERE owner = ?", (self.token,))
        connection.execute("DELETE FROM owners WHERE id = ?", (self.token,))


def live_owners(connection: sqlite3.Connection) -> list[int]:
    """Return the tokens of the owners that are alive."""
    now, here = time.time(), socket.gethostname()
    rows = connection.execute("SELECT id, host, pid, beat FROM owners").fetchall()
    return [
        token for token, host, pid, beat in rows if abs(now - beat) < STALE_S and (host != here or _has_process(pid))
    ]


def _has_process(pid: int) -> bool:
    """Return whether the process exists. On Windows always true, because checking with a signal could kill it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of another user
    return True


_AT_ONCE: Final = 1_000
_CHECKPOINT_AFTER: Final = 32
"""Transactions after which the WAL is checkpointed in a pause. SQLite's automatic checkpoint waits for a thousand pages
and then delays the writer."""
_PAUSE_S: Final = 0.003
"""Seconds without new items after which no run is likely to wait for the disk."""
_T = TypeVar("_T")


class WriteTarget(Protocol):
    """A run or a task that writes. Its methods are called on the writer thread."""

    def store(self, connection: sqlite3.Connection, items: Sequence[Any]) -> None:
        """Write items, inside a transaction."""
        ...

    def committed(self) -> None:
        """Handle the commit of the last items."""
        ...

    def rolled_back(self) -> None:
        """Handle the rollback of the last items."""
        ...

    def failed(self, error: EngineError) -> None:
        """Handle a rollback after which the items are not tried again."""
        ...


class WriterThread:
    """The writer thread and its queue.

    Args:
        path: File of the history.
        connection: Connection that the thread takes over.
        owner: Lease of this process, renewed while it owns runs.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, owner: Owner) -> None:
        self._path = path
        self._connection = connection
        self._owner = owner
        self._queue: SimpleQueue[tuple[WriteTarget, Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self._open_runs = 0
        self._transactions = 0
        self._thread = threading.Thread(target=self._work, name="loopwright history", daemon=True)
        self._thread.start()

    def put(self, target: WriteTarget, item: Any) -> None:
        """Queue an item for a target. Returns at once.

        Raises:
            StoreError: The store was closed.
        """
        with self._lock:
            if self._is_closed:
                raise store_closed()
            self._queue.put((target, item))

    def do(self, work: Callable[[sqlite3.Connection], _T], *, in_transaction: bool = True) -> _T:
        """Call a function on the thread and return its result.

        Raises:
            StoreError: It failed, or the store was closed.
        """
        task = Task(work, in_transaction=in_transaction)
        self.put(task, None)
        return task.future.result()

    def run_opened(self) -> None:
        """Count a run that this process owns from now on."""
        with self._lock:
            self._open_runs += 1

    def run_closed(self) -> None:
        """Count a run that this process no longer owns."""
        with self._lock:
            self._open_runs -= 1

    def close(self) -> None:
        """Write what is queued and end the thread."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._transactions += 1
            for is_alone, items in groupby(batch, lambda item: isinstance(item[0], Task) and item[0].is_alone):
                groups = _by_target(items)
                if is_alone:
                    for group in groups:
                        self._write_alone(group)
                else:
                    self._write(groups)
        # If that fails, the runs count as interrupted once the process is gone.
        with suppress(sqlite3.Error), transaction(self._connection):
            self._owner.leave(self._connection)
        self._connection.close()

    def _next_batch(self) -> list[tuple[WriteTarget, Any]] | None:
        """Return the queued items (or an empty task when a heartbeat is due), or None at the end."""
        try:
            first = self._next_item()
        except Empty:
            return [(Task(lambda _connection: None), None)]
        if first is None:
            return None
        batch = [first]
        while len(batch) < _AT_ONCE and not self._queue.empty():
            item = self._queue.get()
            if item is None:
                self._queue.put(None)  # it is the last item
                break
            batch.append(item)
        return batch

    def _next_item(self) -> tuple[WriteTarget, Any] | None:
        """Return the next queued item.

        Raises:
            Empty: A heartbeat is due.
        """
        if self._transactions >= _CHECKPOINT_AFTER:
            with suppress(Empty):
                return self._queue.get(timeout=_PAUSE_S)
            self._checkpoint()
        return self._queue.get(timeout=BEAT_S if self._open_runs else None)

    def _checkpoint(self) -> None:
        self._transactions = 0
        # If this fails, SQLite checkpoints later by itself.
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _write(self, groups: list[tuple[WriteTarget, list[Any]]]) -> None:
        try:
            with transaction(self._connection):
                if self._open_runs:
                    self._owner.beat(self._connection)
                for target, items in groups:
                    target.store(self._connection, items)
        except Exception as error:
            self._owner.forget_beat()
            for target, _items in groups:
                target.rolled_back()
            if len(groups) > 1 and not is_busy(error):
                for group in groups:
                    self._write([group])
            else:
                for target, _items in groups:
                    target.failed(to_store_error(error, self._path))
        else:
            for target, _items in groups:
                target.committed()

    def _write_alone(self, group: tuple[WriteTarget, list[Any]]) -> None:
        target, items = group
        try:
            target.store(self._connection, items)
        except Exception as error:
            target.failed(to_store_error(error, self._path))
        else:
            target.committed()


class Task:
    """A function call with a future for its result."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any], *, in_transaction: bool = True) -> None:
        self.future: Future[Any] = Future()
        self.is_alone = not in_transaction
        self._work = work
        self._result: Any = None

    def store(self, connection: sqlite3.Connection, items: Sequence[Any]) -> None:
        """Call the function."""
        self._result = self._work(connection)

    def committed(self) -> None:
        """Set the result."""
        self.future.set_result(self._result)

    def rolled_back(self) -> None:
        """Nothing to forget."""

    def failed(self, error: EngineError) -> None:
        """Set the exception."""
        self.future.set_exception(error)


def _by_target(items: Iterable[tuple[WriteTarget, Any]]) -> list[tuple[WriteTarget, list[Any]]]:
    """Group items by target, in the order of their first items."""
    groups: dict[int, tuple[WriteTarget, list[Any]]] = {}
    for target, item in items:
        groups.setdefault(id(target), (target, []))[1].append(item)
    return list(groups.values())


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """Run the block in a transaction, rolled back on an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls some failed transactions back itself, for example when the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
