"""Save the file of an open document in a thread, and watch files for changes by other programs.

Changes by another program since the file was last read or written are not overwritten without asking.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from app.worker import Worker, yield_to_other_threads
from engine.document.files import save
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.safe_file_io import path_exists


@dataclass(frozen=True, slots=True)
class FileFingerprint:
    """The state of a file at one moment, to detect changes.

    Attributes:
        stamp: Modification time, size and inode; empty if there is no file.
        digest: A hash of the content; empty if there is no file.
    """

    stamp: tuple[int, ...] = ()
    digest: str = ""

    @classmethod
    def of(cls, path: Path) -> FileFingerprint:
        """Read the fingerprint of a file."""
        return cls(_stamp(path), _digest(path))

    def since(self, path: Path) -> FileFingerprint | None:
        """Read the fingerprint again; None if the stamp has not changed."""
        return None if _stamp(path) == self.stamp else FileFingerprint.of(path)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


SETTLE_MS: Final = 150
"""Delay before the file is read: programs write in several steps."""


class FileWatcher(QObject):
    """Watches one file.

    Signals:
        changed: The content differs from what was last read or written here.
        gone: The file was moved or deleted.
    """

    changed = Signal()
    gone = Signal()

    def __init__(self, path: Path | None, fingerprint: FileFingerprint | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._known = FileFingerprint()
        self._learning = 0
        self._is_held = False
        self._worker = Worker(self)
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._schedule_check)
        self._watcher.directoryChanged.connect(self._schedule_check)
        self._timer = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._timer.timeout.connect(self._check)
        if path is not None:
            self.know(path, fingerprint)

    def know(self, path: Path, fingerprint: FileFingerprint | None) -> None:
        """Take a content as known, and report later changes.

        Args:
            path: The file.
            fingerprint: The file when it was read or written; None for its present content.
        """
        if path != self._path:
            watched = self._watcher.files() + self._watcher.directories()
            if watched:
                self._watcher.removePaths(watched)
            self._path = path
        self._learning += 1
        self._worker.ask(lambda: fingerprint or FileFingerprint.of(path), self._learn)
        self._watch(path)

    def hold(self, is_held: bool) -> None:
        """Ignore changes while the program writes the file; afterwards it is read, unless `know` was called."""
        if is_held is not self._is_held:
            self._is_held = is_held
            self._schedule_check()

    def _learn(self, found: FileFingerprint) -> None:
        self._known = found
        self._learning -= 1
        self._schedule_check()  # it may have changed before it was watched

    def _watch(self, path: Path) -> None:
        # The folder too: most programs replace the file by a new one, which ends the watch of the old one.
        watched = {*self._watcher.files(), *self._watcher.directories()}
        missing = [str(each) for each in (path.parent, path) if str(each) not in watched and path_exists(each)]
        if missing:
            self._watcher.addPaths(missing)

    def _schedule_check(self) -> None:
        self._timer.start()

    def _check(self) -> None:
        path, known = self._path, self._known
        if path is None:
            return
        self._watch(path)
        if self._can_compare:
            self._worker.ask(lambda: known.since(path), self._compare)

    @property
    def _can_compare(self) -> bool:
        return not self._is_held and not self._learning

    def _compare(self, now: FileFingerprint | None) -> None:
        if now is None or not self._can_compare:
            return
        before, self._known = self._known, now
        if now.digest == before.digest:
            return
        if now.digest:
            self.changed.emit()
        else:
            self.gone.emit()


@dataclass(slots=True)
class SaveRequest:
    """A document to save.

    Attributes:
        workflow: The document.
        state: Its state in the undo stack.
        path: The file.
        then: Called on success.
    """

    workflow: Workflow
    state: int
    path: Path
    then: list[Callable[[], object]]


class FileChangedError(EngineError):
    """Another program has changed the file."""


class _Writer:
    """Writes the file. Used only in the worker thread."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._known = FileFingerprint()

    def know(self, path: Path, state: FileFingerprint | None = None) -> None:
        """Allow overwriting a file that has that fingerprint, or its current one."""
        self._path, self._known = path, state or FileFingerprint.of(path)

    def write(self, workflow: Workflow, path: Path) -> FileFingerprint:
        """Write a document, and return the fingerprint of its file.

        Raises:
            FileChangedError: Another program has changed the file; nothing was written.
            EngineError: The file cannot be written.
        """
        if path == self._path:
            found = self._known.since(path)
            if found is not None and found.digest not in {"", self._known.digest}:
                raise FileChangedError(f"{path.name}: Another program has changed the file.")
        save(workflow, path, yield_to_other_threads)
        self.know(path)
        return self._known


class DocumentSaver(QObject):
    """Saves what is requested.

    Signals:
        written: A request was done; the fingerprint of its file.
        failed: A request failed; the text says why and what to do.
        withheld: A request was not done, because another program has changed the file.
        changed: A request was added or removed.
    """

    written = Signal(object, object)
    failed = Signal(str)
    withheld = Signal(object)
    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._worker = Worker(self)
        self._writer = _Writer()
        self._requests: deque[SaveRequest] = deque()
        self._at_end: list[Callable[[], object]] = []

    @property
    def is_saving(self) -> bool:
        """Whether a request is waiting or in progress."""
        return bool(self._requests)

    @property
    def destination(self) -> Path | None:
        """The file of the last request; None if there is none."""
        return self._requests[-1].path if self._requests else None

    def ask(self, request: SaveRequest) -> None:
        """Add a request after the earlier ones."""
        if len(self._requests) > 1 and self._requests[-1].path == request.path:  # not started, and superseded
            request.then = self._requests.pop().then + request.then
        self._requests.append(request)
        if len(self._requests) == 1:
            self._begin()
        self.changed.emit()

    def know(self, path: Path, state: FileFingerprint | None = None) -> None:
        """Allow the next save to overwrite a file.

        Args:
            path: The file.
            state: Its fingerprint when it was read; None to overwrite whatever it contains now.
        """
        self._worker.ask(partial(self._writer.know, path, state))

    def when_over(self, act: Callable[[], object]) -> None:
        """Call a function once no request is left, whether they succeeded or not."""
        if self._requests:
            self._at_end.append(act)
        else:
            act()

    def _begin(self) -> None:
        request = self._requests[0]
        self._worker.ask(partial(self._writer.write, request.workflow, request.path), self._succeed, self._fail)

    def _succeed(self, fingerprint: FileFingerprint) -> None:
        request = self._requests[0]
        self.written.emit(request, fingerprint)
        self._finish(request.then)

    def _fail(self, error: EngineError) -> None:
        if isinstance(error, FileChangedError):
            self.withheld.emit(self._requests[0])
        else:
            self.failed.emit(str(error))
        self._finish([])

    def _finish(self, acts: list[Callable[[], object]]) -> None:
        self._requests.popleft()
        if self._requests:
            self._begin()
        else:
            acts, self._at_end = [*acts, *self._at_end], []
        self.changed.emit()
        for act in acts:
            act()
