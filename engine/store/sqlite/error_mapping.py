"""What SQLite and the disk say, told to people."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from engine.errors import EngineError
from engine.store.base import StoreError
from engine.store.words import closed

ELSEWHERE: Final = "Name another place with --store, or with the environment variable LOOPWRIGHT_STORE."

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}


def is_no_history(path: Path) -> StoreError:
    """Some other file."""
    return StoreError(f'The file "{path}" is not a history of Loopwright; it was left as it is.', ELSEWHERE)


def is_damaged(path: Path) -> StoreError:
    """A file that cannot be read any more, or only in part."""
    return StoreError(
        f'The history "{path}" is damaged; it was left as it is.',
        "Put a copy of it back from before, or move it away to begin a new one.",
    )


def is_newer(path: Path) -> StoreError:
    """A file of a later version of the program."""
    return StoreError(
        f'The history "{path}" was written by a newer version of Loopwright; it was left as it is.',
        "Install that version, or name another place with --store.",
    )


def was_taken(run_id: str) -> StoreError:
    """A run that is no longer this process's."""
    return StoreError(
        f'The run "{run_id}" is no longer kept from here: another process has gone on with it, or it was deleted.',
        "'loopwright runs' shows what is kept.",
    )


def is_busy(error: Exception) -> bool:
    """Whether another process or connection was in the way."""
    return isinstance(error, sqlite3.Error) and _kind(error) in _BUSY


def as_store_error(error: Exception, path: Path) -> EngineError:
    """What is told of an error of SQLite, the disk or the engine itself.

    Args:
        error: The error.
        path: The history's file.
    """
    if isinstance(error, EngineError):
        return error
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error, path)
    if isinstance(error, OSError):
        reason = error.strerror or "it cannot be reached"
        return StoreError(f'The history "{path}" cannot be opened: {reason}.', ELSEWHERE)
    if isinstance(error, RecursionError):
        return StoreError("A value holds too many lists or objects inside each other to be kept.", "Keep less of it.")
    if isinstance(error, MemoryError):
        return StoreError("There is not enough memory to keep what the run gave.", "Close other programs.")
    return StoreError(f"What the run gave cannot be kept: {error}", "Report this, with the document.")


def _of_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    code = _kind(error)
    if code in _DAMAGED:
        return is_damaged(path)
    if isinstance(error, sqlite3.ProgrammingError) and code == 0:
        return closed()
    name = f'The history "{path}"'
    if code in _BUSY:
        told = f"{name} is held by another program.", "Close that program, or try again."
    elif code == sqlite3.SQLITE_FULL or _says_no_room(error):
        told = f"{name} cannot grow: the disk is full.", "Free some space, or delete old runs."
    elif code == sqlite3.SQLITE_TOOBIG:
        told = "A value is too large to be kept (more than about 1 GB).", "Keep less of it."
    elif code in _UNWRITABLE:
        told = f"{name} cannot be written.", f"Check the rights on it. {ELSEWHERE}"
    else:
        told = f"{name} cannot be read or written: {error}.", f"Check the disk. {ELSEWHERE}"
    return StoreError(*told)


def _says_no_room(error: sqlite3.Error) -> bool:
    """Whether the file beside the history cannot grow: SQLite does not hand on why, and it is the disk that is full."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE


def _kind(error: sqlite3.Error) -> int:
    """SQLite's code: its lowest byte is the kind of error, the others say more. 0 for one of Python's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
