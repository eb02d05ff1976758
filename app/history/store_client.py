"""The history as the window holds it: opened in a thread, and asked in threads.

It may not be there: not yet, or not at all. Then runs go on and are not kept, and the window says so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

from app.worker import Worker
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.store.base import Store

ResultT = TypeVar("ResultT")


class StoreAccess(QObject):
    """The way of the window to the history.

    Args:
        path: The file; None for the usual one.
        make: Opens the store; what opens the program's own unless given.

    Signals:
        opened: The history is there.
        failed: It cannot be opened; the text says why and what to do.
        changed: Runs were deleted, pinned or taken in, or one has ended.

    Attributes:
        store: The history; None before it is opened, and where it cannot be.
        failure: Why it cannot be opened; empty where it can.
    """

    opened = Signal()
    failed = Signal(str)
    changed = Signal()

    def __init__(
        self,
        path: Path | None = None,
        parent: QObject | None = None,
        *,
        make: Callable[[Path | None], Store] | None = None,
    ) -> None:
        super().__init__(parent)
        self.store: Store | None = None
        self.failure = ""
        self._path = path
        self._make = make or _open
        self._worker = Worker(self)
        self._waiting: list[Callable[[], object]] = []
        self._is_opening = False

    @property
    def is_busy(self) -> bool:
        """Whether something that was asked of it is still to be done."""
        return self._worker.is_busy

    def open(self, after_ms: int = 0) -> None:
        """Begin to open it, in a thread.

        Args:
            after_ms: When the thread is to begin, in milliseconds from now; what waits for the history waits as well.
        """
        if self.store is not None or self._is_opening:
            return
        self._is_opening, self.failure = True, ""
        if after_ms:
            QTimer.singleShot(after_ms, self, self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        self._worker.ask(lambda: self._make(self._path), self._take_up, self._refuse)

    def when_settled(self, act: Callable[[], object]) -> None:
        """Do something once it is known whether there is a history: at once, unless it is being opened."""
        if self._is_opening:
            self._waiting.append(act)
        else:
            act()

    def ask(
        self,
        work: Callable[[Store], ResultT],
        answered: Callable[[ResultT], object] = lambda _result: None,
        failed: Callable[[EngineError], object] = lambda _error: None,
        *,
        worker: Worker | None = None,
    ) -> bool:
        """Ask the history something in a thread, and call `answered` or `failed` in the window's.

        Args:
            work: Reads or writes.
            answered: Takes the result.
            failed: Takes the reason why there is none.
            worker: Does the work; where that is the asker's own, nobody is called once the asker is gone.

        Returns:
            Whether there is a history to ask.
        """
        store = self.store
        if store is None:
            return False
        (worker or self._worker).ask(lambda: work(store), answered, failed)
        return True

    def close(self) -> None:
        """Let go of the history, after what was asked of it before; `app.worker.wait_for_workers` waits for that."""
        store, self.store = self.store, None
        if store is not None:
            self._worker.ask(store.close)

    def _take_up(self, store: Store) -> None:
        self.store = store
        self._settle()
        self.opened.emit()

    def _refuse(self, error: EngineError) -> None:
        self.failure = str(error)
        self._settle()
        self.failed.emit(self.failure)

    def _settle(self) -> None:
        self._is_opening = False
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            act()


def _open(path: Path | None) -> Store:
    # Imported in the worker: the first window is up before.
    from engine.store import open_store

    return open_store(path)
