"""Writing one document to its file, in a thread, in the order asked for; where it waits, the last state wins.

What another program has put into the file since it was read or written here is not written over unasked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.file_watcher import FileFingerprint
from app.worker import Worker, give_way
from engine.document.files import save
from engine.document.model import Workflow
from engine.errors import EngineError


@dataclass(slots=True)
class SaveRequest:
    """A document that is to be written to a file.

    Attributes:
        workflow: The document.
        state: Which of the history's states it is.
        path: The file.
        then: What to do once it is written.
    """

    workflow: Workflow
    state: int
    path: Path
    then: list[Callable[[], object]]


class FileChangedError(EngineError):
    """The file holds what another program has put there."""


class _Writer:
    """What the thread does; nobody else touches the file."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._known = FileFingerprint()

    def know(self, path: Path, state: FileFingerprint | None = None) -> None:
        """What is in a file may be replaced: a state of before, or whatever is there now."""
        self._path, self._known = path, state or FileFingerprint.of(path)

    def write(self, workflow: Workflow, path: Path) -> None:
        """Write a document, unless the file holds something else than what is known here.

        Raises:
            FileChangedError: It does; nothing was written.
            EngineError: It cannot be written.
        """
        if path == self._path:
            found = self._known.since(path)
            if found is not None and found.mark not in {"", self._known.mark}:
                raise FileChangedError(f"{path.name}: Another program has changed the file.")
        save(workflow, path, give_way)
        self.know(path)


class DocumentSaver(QObject):
    """Writes what is wished.

    Signals:
        written: A wish is fulfilled.
        failed: A wish could not be fulfilled; the text says why and what to do.
        withheld: A wish was not fulfilled, because another program has changed the file.
        changed: There is something to write, or one thing less.
    """

    written = Signal(object)
    failed = Signal(str)
    withheld = Signal(object)
    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._worker = Worker(self)
        self._writer = _Writer()
        self._wishes: deque[SaveRequest] = deque()
        self._at_end: list[Callable[[], object]] = []

    @property
    def is_under_way(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._wishes)

    @property
    def destination(self) -> Path | None:
        """The file that is written last of all; None where nothing is still to be written."""
        return self._wishes[-1].path if self._wishes else None

    def ask(self, wish: SaveRequest) -> None:
        """Write it after what was asked for before."""
        if len(self._wishes) > 1 and self._wishes[-1].path == wish.path:  # not begun yet, and out of date
            wish.then = self._wishes.pop().then + wish.then
        self._wishes.append(wish)
        if len(self._wishes) == 1:
            self._begin()
        self.changed.emit()

    def know(self, path: Path, state: FileFingerprint | None = None) -> None:
        """What is in a file may be replaced from now on.

        Args:
            path: The file.
            state: What was in it when it was read; None for whatever is in it now.
        """
        self._worker.ask(partial(self._writer.know, path, state))

    def when_over(self, act: Callable[[], object]) -> None:
        """Do something once nothing is left to write, whether that has succeeded or not."""
        if self._wishes:
            self._at_end.append(act)
        else:
            act()

    def _begin(self) -> None:
        wish = self._wishes[0]
        self._worker.ask(partial(self._writer.write, wish.workflow, wish.path), self._succeed, self._fail)

    def _succeed(self, _: None) -> None:
        wish = self._wishes[0]
        self.written.emit(wish)
        self._go_on(wish.then)

    def _fail(self, error: EngineError) -> None:
        if isinstance(error, FileChangedError):
            self.withheld.emit(self._wishes[0])
        else:
            self.failed.emit(str(error))
        self._go_on([])

    def _go_on(self, acts: list[Callable[[], object]]) -> None:
        self._wishes.popleft()
        if self._wishes:
            self._begin()
        else:
            acts, self._at_end = [*acts, *self._at_end], []
        self.changed.emit()
        for act in acts:
            act()
