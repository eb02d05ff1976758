"""Schema of the history file: create, recognize and migrate it; errors of SQLite and the disk as `StoreError`.

The key of an event combines its run and its number, so the events of a run are adjacent and need no other index. Long
texts, and lists and objects with long JSON, are in `blobs`, each once. `links` lists the bases of delta-encoded blobs,
`uses` the blobs that each run references.

The module also tracks which histories this process has open, because such a file must not be read except through
SQLite: when a process closes any descriptor of a file, POSIX drops all locks that the process has on it, including
those of SQLite's connections. Another process could then take itself for the last user and delete the WAL in use.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

from engine.errors import EngineError, Fix
from engine.store.store_protocol import StoreError, store_closed

ELSEWHERE: Final = "Choose another file."

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}


def not_a_history(path: Path) -> StoreError:
    """Return the error for a file that is not a history."""
    return StoreError(
        f'The file "{path}" is not a Loopwright history. It was left unchanged.', ELSEWHERE, fix=Fix.CHOOSE_HISTORY
    )


def damaged_history(path: Path) -> StoreError:
    """Return the error for a file that can be read only in part or not at all."""
    return StoreError(
        f'The history "{path}" is damaged. It was left unchanged.',
        "Restore a backup, or move the file away to start a new history.",
    )


def unwritable_history(path: Path) -> StoreError:
    """Return the error for a file that cannot be written, or whose folder cannot."""
    return StoreError(
        f'The history "{path}" cannot be written.',
        f"Check the permissions of the file and its folder, and the free space of the disk. {ELSEWHERE}",
        fix=Fix.CHOOSE_HISTORY,
    )


class _UnreadableHereError(StoreError):
    """A history cannot be written, and must be in order to be read."""


def _unreadable_here(path: Path, reason: str) -> StoreError:
    return _UnreadableHereError(
        f'The history "{path}" cannot be read where nothing can be written: {reason}.',
        f"Copy all files whose names begin with {path.name} to a folder that can be written, and choose the copy.",
        fix=Fix.CHOOSE_HISTORY,
    )


def run_lost(run_id: str) -> StoreError:
    """Return the error for a run that this process no longer owns."""
    return StoreError(
        f'The run "{run_id}" is no longer stored by this process: it was deleted, or another process has resumed it.',
        "Look for it in the list of runs.",
        fix=Fix.LIST_RUNS,
    )


def is_busy(error: Exception) -> bool:
    """Return whether another process or connection had locked the file."""
    return isinstance(error, sqlite3.Error) and _kind(error) in _BUSY


def to_store_error(error: Exception, path: Path) -> EngineError:
    """Convert an error of SQLite, the disk or the engine into one with a message and a remedy.

    Args:
        error: The original error.
        path: File of the history.
    """
    if isinstance(error, EngineError):
        return error
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error, path)
    if isinstance(error, OSError):
        reason = error.strerror or "it can't be reached"
        return StoreError(f'The history "{path}" cannot be opened: {reason}.', ELSEWHERE, fix=Fix.CHOOSE_HISTORY)
    if isinstance(error, RecursionError):
        return StoreError("A value is nested too deeply to be stored.", "Flatten it.")
    if isinstance(error, MemoryError):
        return StoreError("There is not enough memory to store the run.", "Close other programs.")
    return StoreError(f"The run cannot be stored: {error}", "Report this error, with the workflow.")


def _of_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    code = _kind(error)
    if code in _DAMAGED:
        return damaged_history(path)
    if isinstance(error, sqlite3.ProgrammingError) and code == 0:
        return store_closed()
    if code in _UNWRITABLE:
        return unwritable_history(path)
    name = f'The history "{path}"'
    if code in _BUSY:
        message = f"{name} is locked by another program.", "Close that program, or try again."
    elif _is_full(error):
        message = f"{name} cannot grow: the disk is full.", "Free some space, or delete old runs."
    elif code == sqlite3.SQLITE_TOOBIG:
        message = "A value is too large to be stored (more than about 1 GB).", "Shorten it."
    else:
        message = f"{name} cannot be read or written: {error}.", f"Check the disk. {ELSEWHERE}"
    return StoreError(*message)


def _is_full(error: sqlite3.Error) -> bool:
    """Return whether the disk is full; SQLite does not say so if only the index of the WAL cannot grow."""
    return _kind(error) == sqlite3.SQLITE_FULL or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE


def _kind(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code (the lowest byte), or 0 for an error of the Python module."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


_File = tuple[int, int]
"""Device and inode of a file."""

open_lock: Final = threading.Lock()
"""Held from the first look at a file until `mark_open`, so no other thread opens it and loses its locks."""

_lock: Final = threading.Lock()
_open_files: Final[Counter[_File]] = Counter()


def mark_open(path: Path) -> _File:
    """Record that a store of this process has the file open.

    Returns:
        The identity of the file for `mark_closed`, when the path may name another file.
    """
    file = _file(path)
    with _lock:
        _open_files[file] += 1
    return file


def mark_closed(file: _File) -> None:
    """Record that a store has closed the file."""
    with _lock:
        _open_files[file] -= 1


def is_open_here(path: Path) -> bool:
    """Return whether a store of this process has the file open."""
    if not path.exists():
        return False
    with _lock:
        return _open_files[_file(path)] > 0


def _file(path: Path) -> _File:
    status = path.stat()
    return status.st_dev, status.st_ino


APPLICATION_ID: Final = 0x4C4F4F50
_MAGIC: Final = b"SQLite format 3\0"
SEQ_BITS: Final = 40
BUSY_S: Final = 10.0
"""Seconds to wait for a lock of another process."""
_AGAIN_S: Final = 0.01

_TABLES: Final = """
CREATE TABLE owners (
    id INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    beat REAL NOT NULL
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    source BLOB NOT NULL,
    search TEXT NOT NULL,
    parent TEXT NOT NULL,
    forked_at TEXT NOT NULL,
    document TEXT NOT NULL,
    options TEXT NOT NULL,
    owner INTEGER,
    pinned INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    workflow BLOB NOT NULL DEFAULT x'',
    state TEXT NOT NULL,
    started REAL NOT NULL,
    updated REAL NOT NULL,
    duration_s REAL,
    iterations INTEGER NOT NULL DEFAULT 0,
    exit_reason BLOB NOT NULL DEFAULT x'',
    tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL,
    models BLOB NOT NULL DEFAULT x'5b5d',
    error BLOB NOT NULL DEFAULT x''
);
CREATE INDEX runs_by_start ON runs (started);
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent <> '';
CREATE TABLE paths (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    path INTEGER NOT NULL,
    time REAL NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    is_packed INTEGER NOT NULL,
    recipe BLOB,
    data BLOB NOT NULL
);
CREATE TABLE links (
    base INTEGER NOT NULL REFERENCES blobs,
    blob INTEGER NOT NULL REFERENCES blobs,
    PRIMARY KEY (base, blob)
) WITHOUT ROWID;
CREATE INDEX links_by_blob ON links (blob);
CREATE TABLE uses (
    run INTEGER NOT NULL REFERENCES runs,
    blob INTEGER NOT NULL REFERENCES blobs,
    PRIMARY KEY (run, blob)
) WITHOUT ROWID;
CREATE INDEX uses_by_blob ON uses (blob);
CREATE TABLE replies (
    key TEXT PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs,
    body TEXT NOT NULL
);
CREATE INDEX replies_by_run ON replies (run);
"""

Step = Callable[[sqlite3.Connection], None]
"""Migrates a file from one version to the next, inside a transaction."""


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)


def _add_answers(connection: sqlite3.Connection) -> None:
    """Add the table of answers that wait for the process that owns a run."""
    connection.execute(
        "CREATE TABLE answers (run INTEGER NOT NULL REFERENCES runs, question INTEGER NOT NULL, "
        "path TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run, question)) WITHOUT ROWID"
    )


def _add_staged_events(connection: sqlite3.Connection) -> None:
    """Add the table in which version 3 wrote the latest events of a run first."""
    connection.execute(
        "CREATE TABLE staged (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, path TEXT NOT NULL, "
        "time REAL NOT NULL, body TEXT NOT NULL)"
    )


def _move_staged_events(connection: sqlite3.Connection) -> None:
    """Move staged events to the other events, whose bodies have the same format."""
    connection.execute("INSERT OR IGNORE INTO paths (path) SELECT path FROM staged")
    connection.execute(
        "INSERT INTO events (id, kind, path, time, body) "
        "SELECT staged.id, kind, paths.id, time, body FROM staged JOIN paths ON paths.path = staged.path"
    )
    connection.execute("DROP TABLE staged")


STEPS: Final[tuple[Step, ...]] = (
    _create_tables,
    _add_answers,
    _add_staged_events,
    _move_staged_events,
)
"""Migrations from an empty file to the current version. Released ones never change."""


_LEAST_INDEX: Final = 32_768
"""Least size of the WAL's index in bytes; SQLite leaves a shorter one where the disk was full."""

Access = Literal["", "mode=ro", "immutable=1"]
"""How to open a file: writable, or by a parameter of SQLite's URIs."""


def connect(path: Path, *, busy_s: float = BUSY_S, access: Access = "") -> sqlite3.Connection:
    """Connect to a file that `prepare` has checked. Threads may use the connection one at a time."""
    connection = _connect(path, busy_s, access, check_same_thread=False)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 4194304")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connect(path: Path, busy_s: float, access: Access, *, check_same_thread: bool = True) -> sqlite3.Connection:
    name = f"{path.absolute().as_uri()}?{access}" if access else path
    return sqlite3.connect(
        name, timeout=busy_s, isolation_level=None, check_same_thread=check_same_thread, uri=bool(access)
    )


def prepare(path: Path, *, busy_s: float = BUSY_S, steps: Sequence[Step] = STEPS, for_reading: bool = False) -> Access:
    """Create a missing file and migrate an older one. Any other file is left unchanged.

    Args:
        path: The file.
        busy_s: Seconds to wait for a lock of another process.
        steps: The migrations.
        for_reading: Whether a history that cannot be written is accepted.

    Returns:
        How to open it.

    Raises:
        StoreError: The file is not a history, damaged, of a newer version, locked or not writable.
    """
    try:
        target = Path(os.path.realpath(path))  # SQLite keeps the files of the WAL beside it
        access: Access = "" if _is_writable(target) else _access_without_writing(target)
        is_new = not is_open_here(path) and _must_be_created(path)
        if access and (is_new or not for_reading):
            raise unwritable_history(path)

        def check() -> None:
            # Not `connect`: nothing changes before the file is known to be a history.
            with closing(_connect(path, busy_s, access)) as connection:
                _migrate(connection, path, steps, is_new=is_new, may_write=not access)
                if not access:
                    _enable_wal(connection, busy_s)

        try:
            check()
        except sqlite3.Error as error:
            if access or is_new or not for_reading or not _is_full(error):
                raise
            try:
                access = _access_without_writing(target)  # a full disk has no room for the index of the WAL
                check()
            except (_UnreadableHereError, sqlite3.OperationalError):
                raise error from None
    except (sqlite3.Error, OSError) as error:
        raise to_store_error(error, path) from error
    return access


def _is_writable(path: Path) -> bool:
    """Return whether the file, and beside it those of the WAL, can be written; true for a missing file."""
    return not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _access_without_writing(path: Path) -> Access:
    """Return how to read a file that cannot be written, or whose folder cannot.

    SQLite reads the WAL if its index is there; without both, the file is complete and nobody can be writing to it.

    Raises:
        StoreError: There is a WAL without its index, which SQLite would have to create.
    """
    wal, index = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))
    if wal.exists() and _file_size(index) >= _LEAST_INDEX:
        return "mode=ro"
    if _file_size(wal) > 0:
        raise _unreadable_here(path, "its latest changes are in a file of their own")
    return "immutable=1"


def _must_be_created(path: Path) -> bool:
    """Return whether the file has no content yet.

    Raises:
        StoreError: It is not a database, or a truncated one.
    """
    if not path.exists():
        if not path.parent.is_dir():
            raise StoreError(f'The folder "{path.parent}" does not exist.', "Create it, or choose another file.")
        return True
    start = _header(path)
    if not start:
        return True
    if not start.startswith(_MAGIC[: len(start)]):
        raise not_a_history(path)
    page_size = int.from_bytes(start[16:18], "big")
    # The page count is valid only if the last writer updated it.
    pages = int.from_bytes(start[28:32], "big") if start[24:28] == start[92:96] else 0
    # Check the size last: a concurrent writer removes its journal only once the file is complete.
    if not _has_journal(path):
        size = path.stat().st_size
        if len(start) < 100 or size < pages * (65_536 if page_size == 1 else page_size):
            # The file may have shrunk since the header was read; then the header has changed.
            if _header(path) != start:
                return _must_be_created(path)
            raise damaged_history(path)
    return False


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100)


def is_history(path: Path) -> bool:
    """Return whether a file is a history by its header, without opening it; an empty file becomes one.

    Raises:
        OSError: It cannot be read.
    """
    start = _header(path)
    return not start or (start.startswith(_MAGIC) and int.from_bytes(start[68:72], "big") == APPLICATION_ID)


def _has_journal(path: Path) -> bool:
    """Return whether SQLite will complete the file from a `-wal` or `-journal` file."""
    logs = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-journal"))
    return any(_file_size(log) > 0 for log in logs)


def _file_size(log: Path) -> int:
    """Return the size of a file that its writer may delete at any moment."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def _migrate(
    connection: sqlite3.Connection, path: Path, steps: Sequence[Step], *, is_new: bool, may_write: bool
) -> None:
    if is_new:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # In a transaction, because another process may be creating the tables.
    connection.execute("BEGIN")
    try:
        version = _version(connection, path)
    finally:
        connection.rollback()
    if version > len(steps):
        raise StoreError(
            f'The history "{path}" was written by a newer version of Loopwright. It was left unchanged.',
            f"Install that version. {ELSEWHERE}",
            fix=Fix.CHOOSE_HISTORY,
        )
    if version < len(steps):
        if not may_write:
            raise _unreadable_here(path, "it is of an older version, and is converted when it is opened")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated it meanwhile.
            for step in steps[_version(connection, path) :]:
                step(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(steps)}")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def _enable_wal(connection: sqlite3.Connection, busy_s: float) -> None:
    """Enable write-ahead logging.

    Only once the tables exist, so the file itself and not only the WAL identifies it as a history.
    """
    last = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            # SQLite does not wait for another process that does the same.
            if not is_busy(error) or time.monotonic() >= last:
                raise
            time.sleep(_AGAIN_S)
        else:
            return


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the file, 0 if it has no tables. Call inside a transaction.

    Raises:
        StoreError: The file belongs to another program.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables == 0 and application in {0, APPLICATION_ID}:
        return 0
    if application != APPLICATION_ID:
        raise not_a_history(path)
    return int(version)
