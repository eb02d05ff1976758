"""The file of the history: how it is laid out, made, recognised and brought up to date.

Events lie in one table whose key is made of run and number, so that a run's events lie together and need no further
index. Longer texts, and lists and objects with long JSON, lie in `blobs`, each once; `links` says which blob is told by
which others, `uses` which run names which blobs.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from engine.store.base import StoreError
from engine.store.sqlite.error_mapping import as_store_error, is_busy, is_damaged, is_newer, is_no_history

_File = tuple[int, int]
"""Device and number of a file, whatever name it is opened by."""

opening: Final = threading.Lock()
"""Held from the look at a file to `hold`: one that another thread opens meanwhile would lose its locks by that look."""

_lock: Final = threading.Lock()
_held: Final[Counter[_File]] = Counter()


def hold(path: Path) -> _File:
    """Note that a store of this process has the file open.

    Returns:
        What `release` takes: by then the name may be another file's.
    """
    file = _file(path)
    with _lock:
        _held[file] += 1
    return file


def release(file: _File) -> None:
    """Note that a store has let go of it."""
    with _lock:
        _held[file] -= 1


def is_held(path: Path) -> bool:
    """Whether a store of this process has the file open."""
    if not path.exists():
        return False
    with _lock:
        return _held[_file(path)] > 0


def _file(path: Path) -> _File:
    status = path.stat()
    return status.st_dev, status.st_ino


APPLICATION_ID: Final = 0x4C4F4F50
SEQ_BITS: Final = 40
BUSY_S: Final = 10.0
"""Seconds that another process may hold the file before it is told."""
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
"""Brings a file from one version to the next, inside a transaction."""


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)


def _make_room_for_answers(connection: sqlite3.Connection) -> None:
    """What processes leave for the one that is at work on a run."""
    connection.execute(
        "CREATE TABLE answers (run INTEGER NOT NULL REFERENCES runs, question INTEGER NOT NULL, "
        "path TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run, question)) WITHOUT ROWID"
    )


def _make_room_for_staged_events(connection: sqlite3.Connection) -> None:
    """The latest events of runs, as versions before 4 wrote them first."""
    connection.execute(
        "CREATE TABLE staged (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, path TEXT NOT NULL, "
        "time REAL NOT NULL, body TEXT NOT NULL)"
    )


def _move_staged_events(connection: sqlite3.Connection) -> None:
    """Move what was staged to the other events: the bodies have the same form."""
    connection.execute("INSERT OR IGNORE INTO paths (path) SELECT path FROM staged")
    connection.execute(
        "INSERT INTO events (id, kind, path, time, body) "
        "SELECT staged.id, kind, paths.id, time, body FROM staged JOIN paths ON paths.path = staged.path"
    )
    connection.execute("DROP TABLE staged")


STEPS: Final[tuple[Step, ...]] = (
    _make_tables,
    _make_room_for_answers,
    _make_room_for_staged_events,
    _move_staged_events,
)
"""The steps from an empty file to this version; released steps are never changed, only followed by further ones."""


def connect(path: Path, *, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """A connection to a file that `prepare` has looked at. It may go from thread to thread, one at a time."""
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 4194304")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def prepare(path: Path, *, busy_s: float = BUSY_S, steps: Sequence[Step] = STEPS) -> None:
    """Make the file if it is not there, and bring an older one up to date; anything else is left as it is.

    Raises:
        StoreError: It is no history, damaged, of a newer version, locked or cannot be written.
    """
    try:
        is_new = not is_held(path) and _look_at(path)
        # Not `connect`: nothing is changed before the file is known to be ours.
        with closing(sqlite3.connect(path, timeout=busy_s, isolation_level=None)) as connection:
            _bring_up_to_date(connection, path, steps, is_new=is_new)
            _keep_log(connection, busy_s)
    except (sqlite3.Error, OSError) as error:
        raise as_store_error(error, path) from error


def _look_at(path: Path) -> bool:
    """Whether the file is still to be made.

    Raises:
        StoreError: It is no database, or a part of one.
    """
    if not path.exists():
        if not path.parent.is_dir():
            raise StoreError(f'The folder "{path.parent}" does not exist.', "Make it, or name another place.")
        return True
    start = _start_of(path)
    if not start:
        return True
    if not start.startswith(b"SQLite format 3\0"[: len(start)]):
        raise is_no_history(path)
    page_size = int.from_bytes(start[16:18], "big")
    # The number of pages holds only where the last to write the file also wrote that number.
    pages = int.from_bytes(start[28:32], "big") if start[24:28] == start[92:96] else 0
    # The size is asked last: who was writing meanwhile has taken the log away only once the file was whole.
    if not _has_log(path):
        size = path.stat().st_size
        if len(start) < 100 or size < pages * (65_536 if page_size == 1 else page_size):
            # Space may have been given back since the start was read; then that is another one now.
            if _start_of(path) != start:
                return _look_at(path)
            raise is_damaged(path)
    return False


def _start_of(path: Path) -> bytes:
    """SQLite's header."""
    with path.open("r+b") as file:  # for writing, so that a file which cannot be written is told at once
        return file.read(100)


def _has_log(path: Path) -> bool:
    """Whether SQLite will make the file whole from one beside it: `-wal`, or `-journal` where it was being made."""
    logs = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-journal"))
    return any(_size_of(log) > 0 for log in logs)


def _size_of(log: Path) -> int:
    """Bytes of a file that whoever wrote it may take away at any moment."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def _bring_up_to_date(connection: sqlite3.Connection, path: Path, steps: Sequence[Step], *, is_new: bool) -> None:
    if is_new:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # In one transaction: another process may be making the tables at this moment.
    connection.execute("BEGIN")
    try:
        version = _version(connection, path)
    finally:
        connection.rollback()
    if version > len(steps):
        raise is_newer(path)
    if version < len(steps):
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been faster.
            for step in steps[_version(connection, path) :]:
                step(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(steps)}")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def _keep_log(connection: sqlite3.Connection, busy_s: float) -> None:
    """Have what is written kept in a log beside the file until it is in the file.

    Only once there are tables: so the file itself, and not only the log, says from the start what it is.
    """
    last = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            # Where another process is about the same, SQLite does not wait by itself.
            if not is_busy(error) or time.monotonic() >= last:
                raise
            time.sleep(_AGAIN_S)
        else:
            return


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version; 0 for one without tables. Inside a transaction.

    Raises:
        StoreError: It is some other program's.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables == 0 and application in {0, APPLICATION_ID}:
        return 0
    if application != APPLICATION_ID:
        raise is_no_history(path)
    return int(version)
