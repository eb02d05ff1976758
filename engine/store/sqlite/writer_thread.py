"""The one thread of a process that writes to the history.

It takes all that is waiting and commits it at once, so that however many runs go on side by side, the disk is asked to
make sure of things as often as it can be and no oftener. What fails is tried again piece by piece, so that one bad
piece spoils no other.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, TypeVar

from engine.errors import EngineError
from engine.store.sqlite.error_mapping import as_store_error, is_busy
from engine.store.sqlite.leases import BEAT_S, Owner
from engine.store.words import closed

_AT_ONCE: Final = 1_000
_TIDY_AFTER: Final = 32
"""Transactions after which the log beside the file is worth being emptied. SQLite itself lets a thousand pages come
together, and then whoever wrote the last of them waits for all."""
_PAUSE_S: Final = 0.003
"""Seconds without anything new after which nobody is taken to wait: a run is at a model call, most likely."""
_T = TypeVar("_T")


class Recipient(Protocol):
    """Something that is written: a run, or a single task. Its methods are called on the writer's thread."""

    def store(self, connection: sqlite3.Connection, items: Sequence[Any]) -> None:
        """Write these items, inside a transaction."""
        ...

    def done(self) -> None:
        """The transaction of what was written last is safe."""
        ...

    def undone(self) -> None:
        """It was taken back."""
        ...

    def failed(self, error: EngineError) -> None:
        """It was taken back, and will not be tried again."""
        ...


class Writer:
    """The thread and what waits for it.

    Args:
        path: The history's file.
        connection: A connection that belongs to the thread from now on.
        owner: This process; its heart beats while it holds runs.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, owner: Owner) -> None:
        self._path = path
        self._connection = connection
        self._owner = owner
        self._queue: SimpleQueue[tuple[Recipient, Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self._held_runs = 0
        self._transactions = 0
        self._thread = threading.Thread(target=self._work, name="loopwright history", daemon=True)
        self._thread.start()

    def put(self, recipient: Recipient, item: Any) -> None:
        """Let a recipient write an item. Returns at once.

        Raises:
            StoreError: The store was closed.
        """
        with self._lock:
            if self._is_closed:
                raise closed()
            self._queue.put((recipient, item))

    def do(self, work: Callable[[sqlite3.Connection], _T], *, in_transaction: bool = True) -> _T:
        """Do something on the thread and wait for it.

        Raises:
            StoreError: It could not be done.
        """
        task = Task(work, in_transaction=in_transaction)
        self.put(task, None)
        return task.future.result()

    def hold(self) -> None:
        """This process is at work on one more run."""
        with self._lock:
            self._held_runs += 1

    def release(self) -> None:
        """It is done with one."""
        with self._lock:
            self._held_runs -= 1

    def close(self) -> None:
        """Write what waits, and end the thread."""
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
                groups = _by_recipient(items)
                if is_alone:
                    for group in groups:
                        self._write_alone(group)
                else:
                    self._write(groups)
        # Where it cannot be said, the runs count as broken off once the process is gone.
        with suppress(sqlite3.Error), transaction(self._connection):
            self._owner.leave(self._connection)
        self._connection.close()

    def _next_batch(self) -> list[tuple[Recipient, Any]] | None:
        """What waits, at least one item or an empty list when the heart should beat; None at the end."""
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
                self._queue.put(None)  # nothing comes after it
                break
            batch.append(item)
        return batch

    def _next_item(self) -> tuple[Recipient, Any] | None:
        """What comes next.

        Raises:
            Empty: Nothing does, and the heart should beat.
        """
        if self._transactions >= _TIDY_AFTER:
            with suppress(Empty):
                return self._queue.get(timeout=_PAUSE_S)
            self._tidy()
        return self._queue.get(timeout=BEAT_S if self._held_runs else None)

    def _tidy(self) -> None:
        """Empty the log beside the file, while nobody waits."""
        self._transactions = 0
        # If this fails, SQLite does it later by itself.
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _write(self, groups: list[tuple[Recipient, list[Any]]]) -> None:
        try:
            with transaction(self._connection):
                if self._held_runs:
                    self._owner.beat(self._connection)
                for recipient, items in groups:
                    recipient.store(self._connection, items)
        except Exception as error:
            self._owner.forget_beat()
            for recipient, _items in groups:
                recipient.undone()
            if len(groups) > 1 and not is_busy(error):
                for group in groups:
                    self._write([group])
            else:
                for recipient, _items in groups:
                    recipient.failed(as_store_error(error, self._path))
        else:
            for recipient, _items in groups:
                recipient.done()

    def _write_alone(self, group: tuple[Recipient, list[Any]]) -> None:
        recipient, items = group
        try:
            recipient.store(self._connection, items)
        except Exception as error:
            recipient.failed(as_store_error(error, self._path))
        else:
            recipient.done()


class Task:
    """A single piece of work whose outcome somebody waits for."""

    def __init__(self, work: Callable[[sqlite3.Connection], Any], *, in_transaction: bool = True) -> None:
        self.future: Future[Any] = Future()
        self.is_alone = not in_transaction
        self._work = work
        self._outcome: Any = None

    def store(self, connection: sqlite3.Connection, items: Sequence[Any]) -> None:
        """Do it."""
        self._outcome = self._work(connection)

    def done(self) -> None:
        """Hand on what came out."""
        self.future.set_result(self._outcome)

    def undone(self) -> None:
        """Nothing is held."""

    def failed(self, error: EngineError) -> None:
        """Hand on what went wrong."""
        self.future.set_exception(error)


def _by_recipient(items: Iterable[tuple[Recipient, Any]]) -> list[tuple[Recipient, list[Any]]]:
    """The items of each recipient together, in the order in which each first came."""
    groups: dict[int, tuple[Recipient, list[Any]]] = {}
    for recipient, item in items:
        groups.setdefault(id(recipient), (recipient, []))[1].append(item)
    return list(groups.values())


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """All that is done inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite itself takes some failed transactions back (a full disk), and then there is none left.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
