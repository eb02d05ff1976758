"""Save one document in a thread, in order; a request that is still waiting is replaced by a newer one.

Changes by another program since the file was last read or written are not overwritten without asking.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.file_watcher import FileFingerprint
from app.worker import Worker, yield_to_other_threads
from engine.document.files import save
from engine.document.model import Workflow
from engine.errors import EngineError


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

    def write(self, workflow: Workflow, path: Path) -> None:
        """Write a document.

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


class DocumentSaver(QObject):
    """Saves what is requested.

    Signals:
        written: A request was done.
        failed: A request failed; the text says why and what to do.
        withheld: A request was not done, because another program has changed the file.
        changed: A request was added or removed.
    """

    written = Signal(object)
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

    def _succeed(self, _: None) -> None:
        request = self._requests[0]
        self.written.emit(request)
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
