"""Which histories this process has open: they are not read past SQLite.

On closing any file, POSIX takes away all locks that the process has on it, those of its other connections too. The next
process to close that history would think itself the last one, and would delete the log that is still in use here.
"""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Final

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
