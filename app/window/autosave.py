"""Autosave unsaved work against a crash, and find it again.

A document with a file is autosaved beside it (`.NAME.loop.json.autosave`), any other in the user's data folder. A
running program locks its autosave files, so that the work of a second window is never offered for recovery. Files are
written in a thread, a second or two after a change.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QLockFile, QObject, QTimer, Signal

from app.worker import Worker, yield_to_other_threads
from engine.document.files import load, save
from engine.document.model import Workflow
from engine.document.problems import DocumentError
from engine.errors import EngineError
from engine.safe_file_io import path_exists

if TYPE_CHECKING:
    from app.session import Session

SUFFIX: Final = ".autosave"
UNSAVED_PREFIX: Final = "unsaved-"
_LOCK: Final = ".lock"


def default_autosave_folder() -> Path:
    """Return the folder for autosave files in the user's data folder."""
    import platformdirs

    return platformdirs.user_data_path("loopwright", appauthor=False) / "unsaved"


@dataclass(frozen=True, slots=True)
class RecoveredDocument:
    """Unsaved work that a crash left.

    Attributes:
        file: The autosave file.
        workflow: Its content.
        when: When it was written, in local time.
    """

    file: Path
    workflow: Workflow
    when: datetime

    @property
    def clock(self) -> str:
        """The time of day, with the date if it was not today."""
        today = datetime.now().astimezone().date()
        return self.when.strftime("%H:%M" if self.when.date() == today else "%d %B, %H:%M")


class AutosaveFile:
    """The autosave file of one document, and the lock on it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = QLockFile(f"{file}{_LOCK}")
        self._lock.setStaleLockTime(0)

    def claim(self) -> bool:
        """Lock the file; returns False if another running program has it, or the folder is not writable."""
        if self._lock.isLocked() or self._lock.tryLock(0):
            return True
        # A program killed while it wrote the lock leaves a partial one, which Qt does not recognize as stale. Qt does
        # not remove a lock that a program on this computer still holds.
        return self._is_partial() and self._lock.removeStaleLockFile() and self._lock.tryLock(0)

    def _is_partial(self) -> bool:
        try:
            return not Path(self._lock.fileName()).read_bytes().endswith(b"\n")
        except OSError:
            return False

    def release(self) -> None:
        """Unlock, and leave the file."""
        self._lock.unlock()

    def clear(self) -> None:
        """Delete the file if possible, and unlock."""
        if self._lock.isLocked():
            with contextlib.suppress(OSError):
                self.file.unlink(missing_ok=True)
            self._lock.unlock()


def autosave_paths(path: Path | None, folder: Path) -> list[Path]:
    """Return the paths at which a document may be autosaved, the preferred one first.

    Args:
        path: The document's file; None for one that was never saved.
        folder: The user's data folder.
    """
    if path is None:
        return [folder / f"{UNSAVED_PREFIX}{secrets.token_hex(6)}{SUFFIX}"]
    mark = hashlib.sha256(str(path.absolute()).encode(errors="surrogatepass")).hexdigest()[:20]
    return [path.with_name(f".{path.name}{SUFFIX}"), folder / f"{mark}{SUFFIX}"]


def find_recovered(path: Path, folder: Path, saved: Workflow | None) -> RecoveredDocument | None:
    """Return the latest unsaved work on a document that differs from what is saved; None if there is none.

    Args:
        path: The document's file.
        folder: The user's data folder.
        saved: The saved document; None if the file is gone.
    """
    found = [
        recovered for file in autosave_paths(path, folder) if (recovered := _read(file)) and recovered.workflow != saved
    ]
    return max(found, key=lambda recovered: recovered.when, default=None)


def has_autosave(path: Path, folder: Path) -> bool:
    """Return whether a document has an autosave file."""
    return any(path_exists(file) for file in autosave_paths(path, folder))


def find_unsaved(folder: Path) -> list[RecoveredDocument]:
    """Return the unsaved work on documents without a file, the oldest first."""
    for lock in _files(folder, f"{UNSAVED_PREFIX}*{SUFFIX}{_LOCK}"):
        file = lock.with_name(lock.name.removesuffix(_LOCK))
        if not path_exists(file):
            remove_autosave(file)  # left by a program that was killed before its first autosave, or during the cleanup
    files = _files(folder, f"{UNSAVED_PREFIX}*{SUFFIX}")
    found = [recovered for file in files if (recovered := _read(file))]
    return sorted(found, key=lambda recovered: recovered.when)


def _files(folder: Path, pattern: str) -> list[Path]:
    """Return the files in a folder; none if it cannot be read."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def remove_autosave(file: Path) -> None:
    """Delete an autosave file, unless a running program has it."""
    autosave_file = AutosaveFile(file)
    if autosave_file.claim():
        autosave_file.clear()


def _read(file: Path) -> RecoveredDocument | None:
    """Read an autosave file; None if it does not exist, is unreadable, or a running program has it."""
    try:
        when = datetime.fromtimestamp(file.stat().st_mtime).astimezone()
    except OSError:
        return None
    autosave_file = AutosaveFile(file)
    if not autosave_file.claim():
        return None
    try:
        return RecoveredDocument(file, load(file), when)
    except DocumentError:
        return None
    finally:
        autosave_file.release()


AFTER_MS: Final = 1000
"""Delay from the first unsaved change to the autosave; later changes do not postpone it."""


class _Writer:
    """Writes and deletes the autosave file. Used only in the worker thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.file: AutosaveFile | None = None

    def write(self, workflow: Workflow, path: Path | None, avoided: Path | None) -> str:
        """Write a document without its secrets; returns why it failed, empty on success."""
        from engine.plan.secrets import without_secrets

        self.file = self.file or self._claim(path, avoided)
        if self.file is None:
            return f"No file can be written in {self._folder}."
        try:
            save(without_secrets(workflow), self.file.file, yield_to_other_threads)
        except EngineError as error:
            return error.message
        return ""

    def clear(self) -> None:
        """Delete the autosave file."""
        if self.file is not None:
            self.file.clear()
            self.file = None

    def _claim(self, path: Path | None, avoided: Path | None) -> AutosaveFile | None:
        with contextlib.suppress(OSError):  # then claiming a file in it fails
            self._folder.mkdir(parents=True, exist_ok=True)
        files = (AutosaveFile(file) for file in autosave_paths(path, self._folder) if file != avoided)
        return next((file for file in files if file.claim()), None)


class Autosave(QObject):
    """Autosaves one document.

    Args:
        folder: The folder for autosave files that cannot be written beside the document.

    Signals:
        failed: The autosave failed; the text says why. Emitted once until it works again.
        autosaved: The document was autosaved.
    """

    failed = Signal(str)
    autosaved = Signal()

    def __init__(self, session: Session, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._writer = _Writer(folder)
        self._worker = Worker(self)
        self._autosaved: Workflow | None = None
        self._settled = 0
        self._has_failed = False
        self._avoided: Path | None = None
        self._path = session.path
        self._timer = QTimer(self, singleShot=True, interval=AFTER_MS)
        self._timer.timeout.connect(self._keep)
        session.changed.connect(self._note_change)
        session.pending_edit.changed.connect(self._note_saved)
        session.saved_state_changed.connect(self._note_saved)
        session.saved.connect(self._follow_file)

    @property
    def file(self) -> Path | None:
        """The autosave file; None where there is nothing to save."""
        autosave_file = self._writer.file
        return autosave_file.file if autosave_file is not None else None

    @property
    def _has_work(self) -> bool:
        """Whether there is unsaved work, including a pending edit."""
        return self._session.is_modified or self._session.pending_edit.step is not None

    def avoid(self, file: Path) -> None:
        """Do not overwrite a file: it holds recovered work that the user has not decided about."""
        self._avoided = file

    def keep_now(self) -> None:
        """Autosave at once, after an internal error."""
        if self._timer.isActive():
            self._timer.stop()
            self._keep()

    def settle(self) -> None:
        """Delete the autosave, also one that is just being written: the document was saved or discarded."""
        self._timer.stop()
        self._autosaved = None
        self._settled += 1
        self._worker.ask(self._writer.clear)

    def _note_change(self) -> None:
        if self._has_work and not self._timer.isActive():
            self._timer.start()

    def _note_saved(self) -> None:
        if self._has_work:
            self._note_change()  # also after its file has disappeared
        else:
            self.settle()

    def _follow_file(self, path: Path) -> None:
        """Autosave changes made during a Save as beside the new file."""
        if path != self._path and self._has_work:
            self.settle()
            self._timer.start()
        self._path = path

    def _keep(self) -> None:
        workflow = self._session.pending_edit.added_to(self._session.workflow)
        if not self._has_work or workflow is self._autosaved:
            return
        if self._worker.is_busy:
            self._timer.start()
            return
        writer, path, avoided, settled = self._writer, self._session.path, self._avoided, self._settled
        self._worker.ask(
            lambda: writer.write(workflow, path, avoided),
            lambda failure: self._note_written(workflow, failure, settled),
        )

    def _note_written(self, workflow: Workflow, failure: str, settled: int) -> None:
        if failure:
            if not self._has_failed:
                self.failed.emit(f"Autosave does not work: {failure} Save the document in another folder.")
            self._has_failed = True
            return
        self._has_failed = False
        if settled == self._settled:  # otherwise the autosave was deleted meanwhile
            self._autosaved = workflow
            self.autosaved.emit()
