"""Map errors of SQLite and the disk to store errors."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from engine.errors import EngineError
from engine.store.base import StoreError
from engine.store.errors import closed

ELSEWHERE: Final = "Choose another file with --store or the environment variable LOOPWRIGHT_STORE."

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}


def not_a_history(path: Path) -> StoreError:
    """Return the error for a file that is not a history."""
    return StoreError(f'The file "{path}" is not a Loopwright history. It was left unchanged.', ELSEWHERE)


def damaged_history(path: Path) -> StoreError:
    """Return the error for a file that can be read only in part or not at all."""
    return StoreError(
        f'The history "{path}" is damaged. It was left unchanged.',
        "Restore a backup, or move the file away to start a new history.",
    )


def newer_history(path: Path) -> StoreError:
    """Return the error for a file of a newer version."""
    return StoreError(
        f'The history "{path}" was written by a newer version of Loopwright. It was left unchanged.',
        "Install that version, or choose another file with --store.",
    )


def run_lost(run_id: str) -> StoreError:
    """Return the error for a run that this process no longer owns."""
    return StoreError(
        f'The run "{run_id}" is no longer stored by this process: it was deleted, or another process has resumed it.',
        "List the stored runs with 'loopwright runs'.",
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
        return StoreError(f'The history "{path}" cannot be opened: {reason}.', ELSEWHERE)
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
        return closed()
    name = f'The history "{path}"'
    if code in _BUSY:
        message = f"{name} is locked by another program.", "Close that program, or try again."
    elif code == sqlite3.SQLITE_FULL or _says_no_room(error):
        message = f"{name} cannot grow: the disk is full.", "Free some space, or delete old runs."
    elif code == sqlite3.SQLITE_TOOBIG:
        message = "A value is too large to be stored (more than about 1 GB).", "Shorten it."
    elif code in _UNWRITABLE:
        message = f"{name} cannot be written.", f"Check its permissions. {ELSEWHERE}"
    else:
        message = f"{name} cannot be read or written: {error}.", f"Check the disk. {ELSEWHERE}"
    return StoreError(*message)


def _says_no_room(error: sqlite3.Error) -> bool:
    """Return whether the shared-memory file can't grow, which SQLite reports without saying that the disk is full."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE


def _kind(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code (the lowest byte), or 0 for an error of the Python module."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
