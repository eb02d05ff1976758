"""Notices that another program changed, moved or removed the file of an open document."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

SETTLE_MS: Final = 150
"""Programs write in several steps; the file is looked at when they are through."""


class DiskWatch(QObject):
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
        self._stamp = _stamp(path)
        self._known = _mark(path)
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._look_soon)
        self._watcher.directoryChanged.connect(self._look_soon)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
        self._timer.timeout.connect(self._look)
        self._watch()

    def know(self, path: Path | None) -> None:
        """What is in the file now is known here: it was just read or written."""
        if path != self._path:
            watched = self._watcher.files() + self._watcher.directories()
            if watched:
                self._watcher.removePaths(watched)
            self._path = path
        self._stamp = _stamp(path)
        self._known = _mark(path)
        self._watch()

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
        stamp = _stamp(self._path)
        if stamp == self._stamp:  # something else in the folder
            return
        self._stamp = stamp
        mark = _mark(self._path)
        if mark == self._known:
            return
        self._known = mark
        if mark:
            self.changed.emit()
        else:
            self.gone.emit()


def _stamp(path: Path | None) -> tuple[int, ...]:
    """What changes with a file, without reading it."""
    if path is None:
        return ()
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _mark(path: Path | None) -> str:
    """A mark of what is in a file; empty where there is none."""
    if path is None:
        return ""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
