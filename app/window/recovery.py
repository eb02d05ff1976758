"""Where unsaved work is kept against a crash, and how it is found again.

A document that has a file is kept beside it (`.NAME.loop.json.autosave`), any other in the user's data folder. Whoever
writes such a file holds a lock beside it while the program lives, so that the work of a second window is never taken
for the remains of a crash. No widgets here.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from PySide6.QtCore import QLockFile

from engine.document.files import load
from engine.document.model import Workflow
from engine.document.problems import DocumentError

SUFFIX: Final = ".autosave"
UNSAVED_PREFIX: Final = "unsaved-"
_LOCK: Final = ".lock"


def usual_folder() -> Path:
    """The folder in the user's data folder."""
    import platformdirs

    return platformdirs.user_data_path("loopwright", appauthor=False) / "unsaved"


@dataclass(frozen=True, slots=True)
class Recovered:
    """Work that a crash left behind.

    Attributes:
        file: Where it was kept.
        workflow: The document as it was last kept.
        when: When that was, in local time.
    """

    file: Path
    workflow: Workflow
    when: datetime

    @property
    def clock(self) -> str:
        """When, in words: the time of day, and the date where it was not today."""
        today = datetime.now().astimezone().date()
        return self.when.strftime("%H:%M" if self.when.date() == today else "%d %B, %H:%M")


class Place:
    """The file that keeps the unsaved work of one document, and the lock on it.

    Args:
        file: The file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = QLockFile(f"{file}{_LOCK}")
        self._lock.setStaleLockTime(0)

    def claim(self) -> bool:
        """Lock it for this program; false where another program that lives has it, or the folder takes no file."""
        if self._lock.isLocked() or self._lock.tryLock(0):
            return True
        # Who was killed while writing the lock leaves a part of it, which Qt never takes for a dead program's. It
        # removes none that a program of this machine still holds.
        return self._is_partial() and self._lock.removeStaleLockFile() and self._lock.tryLock(0)

    def _is_partial(self) -> bool:
        """Whether the lock is there, but not to its last line."""
        try:
            return not Path(self._lock.fileName()).read_bytes().endswith(b"\n")
        except OSError:
            return False

    def release(self) -> None:
        """Give the lock back and leave the file."""
        self._lock.unlock()

    def clear(self) -> None:
        """Remove the file and give the lock back; a file that cannot be removed stays."""
        if self._lock.isLocked():
            with contextlib.suppress(OSError):
                self.file.unlink(missing_ok=True)
            self._lock.unlock()


def places_of(path: Path | None, folder: Path) -> list[Path]:
    """Where the work on a document may be kept, the best place first.

    Args:
        path: The document's file; None for one that never was saved.
        folder: The user's data folder.
    """
    if path is None:
        return [folder / f"{UNSAVED_PREFIX}{secrets.token_hex(6)}{SUFFIX}"]
    mark = hashlib.sha256(str(path.absolute()).encode(errors="surrogatepass")).hexdigest()[:20]
    return [path.with_name(f".{path.name}{SUFFIX}"), folder / f"{mark}{SUFFIX}"]


def recovered_of(path: Path, folder: Path, saved: Workflow | None) -> Recovered | None:
    """What a crash left of the work on a saved document, where that differs from what is saved; the latest of it.

    Args:
        path: The document's file.
        folder: The user's data folder.
        saved: What is saved; None where the file is not there any more.
    """
    found = [remains for file in places_of(path, folder) if (remains := _read(file)) and remains.workflow != saved]
    return max(found, key=lambda remains: remains.when, default=None)


def has_remains(path: Path, folder: Path) -> bool:
    """Whether something lies where the work on a document is kept."""
    return any(file.exists() for file in places_of(path, folder))


def recovered_unsaved(folder: Path) -> list[Recovered]:
    """What a crash left of documents that never were saved, the oldest first."""
    for lock in folder.glob(f"{UNSAVED_PREFIX}*{SUFFIX}{_LOCK}"):
        file = lock.with_name(lock.name.removesuffix(_LOCK))
        if not file.exists():
            discard(file)  # a program that was killed before it kept anything, or while it removed what it had kept
    found = [remains for file in sorted(folder.glob(f"{UNSAVED_PREFIX}*{SUFFIX}")) if (remains := _read(file))]
    return sorted(found, key=lambda remains: remains.when)


def discard(file: Path) -> None:
    """Remove work that nobody wants back."""
    place = Place(file)
    if place.claim():
        place.clear()


def _read(file: Path) -> Recovered | None:
    """The work in a file; None where there is none, where it cannot be read, or where a living program has it."""
    try:
        when = datetime.fromtimestamp(file.stat().st_mtime).astimezone()
    except OSError:
        return None
    place = Place(file)
    if not place.claim():
        return None
    try:
        return Recovered(file, load(file), when)
    except DocumentError:
        return None
    finally:
        place.release()
