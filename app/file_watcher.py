"""Watch the file of an open document for changes by other programs.

The file is read in a thread. Changes are ignored while the program itself writes it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from app.worker import Worker


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
    def of(cls, path: Path | None) -> FileFingerprint:
        """Read the fingerprint of a file; None stands for a document without a file."""
        return cls(_stamp(path), _digest(path))

    def since(self, path: Path | None) -> FileFingerprint | None:
        """Read the fingerprint again; None if the stamp has not changed."""
        return None if _stamp(path) == self.stamp else FileFingerprint.of(path)


def _stamp(path: Path | None) -> tuple[int, ...]:
    if path is None:
        return ()
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _digest(path: Path | None) -> str:
    if path is None:
        return ""
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

    def __init__(self, path: Path | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._known = FileFingerprint()
        self._learning = 0
        self._is_held = False
        self._worker = Worker(self)
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._schedule_check)
        self._watcher.directoryChanged.connect(self._schedule_check)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
        self._timer.timeout.connect(self._check)
        self.know(path)

    def know(self, path: Path | None) -> None:
        """Take the present content as known: it was just read or written."""
        if path != self._path:
            watched = self._watcher.files() + self._watcher.directories()
            if watched:
                self._watcher.removePaths(watched)
            self._path = path
        self._learning += 1
        self._worker.ask(lambda: FileFingerprint.of(path), self._learn)
        self._watch()

    def hold(self, is_held: bool) -> None:
        """Ignore changes while the program writes the file; afterwards it is read, unless `know` was called."""
        if is_held is not self._is_held:
            self._is_held = is_held
            self._schedule_check()

    def _learn(self, found: FileFingerprint) -> None:
        self._known = found
        self._learning -= 1

    def _watch(self) -> None:
        if self._path is None:
            return
        # The folder too: most programs replace the file by a new one, which ends the watch of the old one.
        wanted = [str(self._path.parent), str(self._path)]
        there = set(self._watcher.files() + self._watcher.directories())
        missing = [place for place in wanted if place not in there and Path(place).exists()]
        if missing:
            self._watcher.addPaths(missing)

    def _schedule_check(self) -> None:
        self._timer.start()

    def _check(self) -> None:
        self._watch()
        if self._can_compare:
            path, known = self._path, self._known
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
