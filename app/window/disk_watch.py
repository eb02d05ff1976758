"""Notices that another program changed, moved or removed the file of an open document.

The file is read in a thread. While the program itself writes it, nothing is noticed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from app.file_state import FileState
from app.worker import Worker

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
        self._known = FileState()
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
        self._worker.ask(lambda: FileState.of(path), self._learn)
        self._watch()

    def hold(self, is_held: bool) -> None:
        """Notice nothing while the file is written here; afterwards it is looked at, unless `know` was called."""
        if is_held is not self._is_held:
            self._is_held = is_held
            self._look_soon()

    def _learn(self, found: FileState) -> None:
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

    def _judge(self, news: FileState | None) -> None:
        if news is None or not self._may_judge:
            return
        before, self._known = self._known, news
        if news.mark == before.mark:
            return
        if news.mark:
            self.changed.emit()
        else:
            self.gone.emit()
