"""Connections for reading: made when needed, used by one at a time, kept for the next."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from engine.store.sqlite.faults import as_store_error, is_damaged
from engine.store.sqlite.schema import connect
from engine.store.words import closed

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
