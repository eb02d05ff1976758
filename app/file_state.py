"""What was in a file when it was looked at, so that a change by another program is seen without a word from the system.

For a thread: a disk may take its time. No Qt here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileState:
    """A file at one moment.

    Attributes:
        stamp: What changes with a file, known without reading it; empty where there is none.
        mark: A mark of what is in it; empty where there is none.
    """

    stamp: tuple[int, ...] = ()
    mark: str = ""

    @classmethod
    def of(cls, path: Path | None) -> FileState:
        """The file as it is now; None as a path stands for a document without a file."""
        return cls(_stamp(path), _mark(path))

    def since(self, path: Path | None) -> FileState | None:
        """The file as it is now; None where it was not touched."""
        return None if _stamp(path) == self.stamp else FileState.of(path)


def _stamp(path: Path | None) -> tuple[int, ...]:
    if path is None:
        return ()
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _mark(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
