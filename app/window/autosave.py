"""Keeps the unsaved work of one document on the disk, at most a second or two behind it.

Everything on the disk is done in a thread; the document is frozen data, so the person can go on meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from PySide6.QtCore import QLockFile, QObject, QTimer, Signal

from app.session import Session
from app.worker import Worker, give_way
from engine.document.files import load, save
from engine.document.model import Workflow
from engine.document.problems import DocumentError
from engine.errors import EngineError
from engine.plan.secrets import without_secrets

SUFFIX: Final = ".autosave"
UNSAVED_PREFIX: Final = "unsaved-"
_LOCK: Final = ".lock"


def default_autosave_folder() -> Path:
    """The folder in the user's data folder."""
    import platformdirs

    return platformdirs.user_data_path("loopwright", appauthor=False) / "unsaved"


@dataclass(frozen=True, slots=True)
class RecoveredDocument:
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


class AutosaveFile:
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


def autosave_paths(path: Path | None, folder: Path) -> list[Path]:
    """Where the work on a document may be kept, the best place first.

    Args:
        path: The document's file; None for one that never was saved.
        folder: The user's data folder.
    """
    if path is None:
        return [folder / f"{UNSAVED_PREFIX}{secrets.token_hex(6)}{SUFFIX}"]
    mark = hashlib.sha256(str(path.absolute()).encode(errors="surrogatepass")).hexdigest()[:20]
    return [path.with_name(f".{path.name}{SUFFIX}"), folder / f"{mark}{SUFFIX}"]


def find_recovered(path: Path, folder: Path, saved: Workflow | None) -> RecoveredDocument | None:
    """What a crash left of the work on a saved document, where that differs from what is saved; the latest of it.

    Args:
        path: The document's file.
        folder: The user's data folder.
        saved: What is saved; None where the file is not there any more.
    """
    found = [remains for file in autosave_paths(path, folder) if (remains := _read(file)) and remains.workflow != saved]
    return max(found, key=lambda remains: remains.when, default=None)


def has_autosave(path: Path, folder: Path) -> bool:
    """Whether something lies where the work on a document is kept."""
    return any(file.exists() for file in autosave_paths(path, folder))


def find_unsaved(folder: Path) -> list[RecoveredDocument]:
    """What a crash left of documents that never were saved, the oldest first."""
    for lock in folder.glob(f"{UNSAVED_PREFIX}*{SUFFIX}{_LOCK}"):
        file = lock.with_name(lock.name.removesuffix(_LOCK))
        if not file.exists():
            discard(file)  # a program that was killed before it kept anything, or while it removed what it had kept
    found = [remains for file in sorted(folder.glob(f"{UNSAVED_PREFIX}*{SUFFIX}")) if (remains := _read(file))]
    return sorted(found, key=lambda remains: remains.when)


def discard(file: Path) -> None:
    """Remove work that nobody wants back."""
    place = AutosaveFile(file)
    if place.claim():
        place.clear()


def _read(file: Path) -> RecoveredDocument | None:
    """The work in a file; None where there is none, where it cannot be read, or where a living program has it."""
    try:
        when = datetime.fromtimestamp(file.stat().st_mtime).astimezone()
    except OSError:
        return None
    place = AutosaveFile(file)
    if not place.claim():
        return None
    try:
        return RecoveredDocument(file, load(file), when)
    except DocumentError:
        return None
    finally:
        place.release()


AFTER_MS: Final = 1000
"""From the first change that is not kept yet to the writing; later changes do not put it off."""


class _Keeper:
    """What the thread does; nobody else touches the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.place: AutosaveFile | None = None

    def keep(self, workflow: Workflow, path: Path | None, avoided: Path | None) -> str:
        """Write a document without the secrets in it, and say why where that is not possible."""
        self.place = self.place or self._claimed(path, avoided)
        if self.place is None:
            return f"{self._folder}: No file can be written there."
        try:
            save(without_secrets(workflow), self.place.file, give_way)
        except EngineError as error:
            return error.message
        return ""

    def clear(self) -> None:
        """Remove what is kept."""
        if self.place is not None:
            self.place.clear()
            self.place = None

    def _claimed(self, path: Path | None, avoided: Path | None) -> AutosaveFile | None:
        with contextlib.suppress(OSError):  # then no place in it can be claimed
            self._folder.mkdir(parents=True, exist_ok=True)
        places = (AutosaveFile(file) for file in autosave_paths(path, self._folder) if file != avoided)
        return next((place for place in places if place.claim()), None)


class Autosave(QObject):
    """Follows a session.

    Args:
        session: The document.
        folder: The user's data folder, for what cannot be kept beside the document.

    Signals:
        failed: The work cannot be kept; the text says why. Told once until it works again.
        kept: The work as it was a moment ago is on the disk.
    """

    failed = Signal(str)
    kept = Signal()

    def __init__(self, session: Session, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._keeper = _Keeper(folder)
        self._worker = Worker(self)
        self._kept: Workflow | None = None
        self._settled = 0
        self._has_failed = False
        self._avoided: Path | None = None
        self._path = session.path
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(AFTER_MS)
        self._timer.timeout.connect(self._keep)
        session.changed.connect(self._note_change)
        session.draft.changed.connect(self._note_saved)
        session.saved_state_changed.connect(self._note_saved)
        session.saved.connect(self._follow_file)

    @property
    def file(self) -> Path | None:
        """Where the work is kept now; None where there is none to keep."""
        place = self._keeper.place
        return place.file if place is not None else None

    @property
    def _has_work(self) -> bool:
        """Whether there is something to lose; what is being typed at this moment counts."""
        return self._session.is_modified or self._session.draft.step is not None

    def avoid(self, file: Path) -> None:
        """Leave a file alone: it holds what a crash left, and nobody has decided about it yet."""
        self._avoided = file

    def keep_now(self) -> None:
        """Do not wait any longer: something is going wrong."""
        if self._timer.isActive():
            self._timer.stop()
            self._keep()

    def settle(self) -> None:
        """Drop what is kept, also what is just being written: the document is saved or given up."""
        self._timer.stop()
        self._kept = None
        self._settled += 1
        self._worker.ask(self._keeper.clear)

    def _note_change(self) -> None:
        if self._has_work and not self._timer.isActive():
            self._timer.start()

    def _note_saved(self) -> None:
        if self._has_work:
            self._note_change()  # its file may be gone
        else:
            self.settle()

    def _follow_file(self, path: Path) -> None:
        """What was typed while it was saved elsewhere is kept beside that file from now on."""
        if path != self._path and self._has_work:
            self.settle()
            self._timer.start()
        self._path = path

    def _keep(self) -> None:
        workflow = self._session.draft.added_to(self._session.workflow)
        if not self._has_work or workflow is self._kept:
            return
        if self._worker.is_busy:
            self._timer.start()
            return
        keeper, path, avoided, settled = self._keeper, self._session.path, self._avoided, self._settled
        self._worker.ask(
            lambda: keeper.keep(workflow, path, avoided), lambda fault: self._take_up(workflow, fault, settled)
        )

    def _take_up(self, workflow: Workflow, fault: str, settled: int) -> None:
        if fault:
            if not self._has_failed:
                self.failed.emit(f"Your changes cannot be kept against a crash. {fault} Save the document elsewhere.")
            self._has_failed = True
            return
        self._has_failed = False
        if settled == self._settled:  # else it was saved meanwhile, and is removed by now
            self._kept = workflow
            self.kept.emit()
