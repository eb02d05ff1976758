"""Notices that another program changed, moved or removed the file of an open document.

The file is read in a thread. While the program itself writes it, nothing is noticed.
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
    """A file at one moment.

    Attributes:
        stamp: What changes with a file, known without reading it; empty where there is none.
        mark: A mark of what is in it; empty where there is none.
    """

    stamp: tuple[int, ...] = ()
    mark: str = ""

    @classmethod
    def of(cls, path: Path | None) -> FileFingerprint:
        """The file as it is now; None as a path stands for a document without a file."""
        return cls(_stamp(path), _mark(path))

    def since(self, path: Path | None) -> FileFingerprint | None:
        """The file as it is now; None where it was not touched."""
        return None if _stamp(path) == self.stamp else FileFingerprint.of(path)


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


SETTLE_MS: Final = 150
"""Programs write in several steps; the file is looked at when they are through."""


class FileWatcher(QObject):
    """Watches one file.

    Signals:
        changed: The file holds something else than when it was read or written here.
        gone: There is no such file any more.
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
        self._watcher.fileChanged.connect(self._look_soon)
        self._watcher.directoryChanged.connect(self._look_soon)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
        self._timer.timeout.connect(self._look)
        self.know(path)

    def know(self, path: Path | None) -> None:
        """What is in the file now is known here: it was just read or written."""
        if path != self._path:
            watched = self._watcher.files() + self._watcher.directories()
            if watched:
                self._watcher.removePaths(watched)
            self._path = path
        self._learning += 1
        self._worker.ask(lambda: FileFingerprint.of(path), self._learn)
        self._watch()

    def hold(self, is_held: bool) -> None:
        """Notice nothing while the file is written here; afterwards it is looked at, unless `know` was called."""
        if is_held is not self._is_held:
            self._is_held = is_held
            self._look_soon()

    def _learn(self, found: FileFingerprint) -> None:
        self._known = found
        self._learning -= 1

    def _watch(self) -> None:
        if self._path is None:
            return
        # The folder too: most programs put a new file in the old one's place, and then the old one's watch is over.
        wanted = [str(self._path.parent), str(self._path)]
        there = set(self._watcher.files() + self._watcher.directories())
        missing = [place for place in wanted if place not in there and Path(place).exists()]
        if missing:
            self._watcher.addPaths(missing)

    def _look_soon(self) -> None:
        self._timer.start()

    def _look(self) -> None:
        self._watch()
        if self._may_judge:
            path, known = self._path, self._known
            self._worker.ask(lambda: known.since(path), self._judge)

    @property
    def _may_judge(self) -> bool:
        return not self._is_held and not self._learning

    def _judge(self, news: FileFingerprint | None) -> None:
        if news is None or not self._may_judge:
            return
        before, self._known = self._known, news
        if news.mark == before.mark:
            return
        if news.mark:
            self.changed.emit()
        else:
            self.gone.emit()
