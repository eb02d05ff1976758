"""Access of the window to the history, which is opened and queried in threads.

The history may not be open yet, may be unavailable, or may be in a place where nothing can be written. Runs then work
but are not stored, and the window shows that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Signal

from app.timers import call_later
from app.worker import Worker
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.store.store_protocol import Store

ResultT = TypeVar("ResultT")


class StoreClient(QObject):
    """Access to the history.

    Args:
        path: The file; None for the default.
        make: Opens the store; replaced in tests.

    Signals:
        opened: The history is open.
        failed: It cannot be opened, or it is open but cannot be written; the message with the remedy.
        changed: Runs were deleted, pinned or imported, or a run ended.

    Attributes:
        path: The file, or the one to open if none is open; None for the default.
        store: The history; None if it is not open.
        failure: Why nothing can be stored; empty if the history is being opened for the first time or can be written.
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
        self.path = path
        self._make = make
        self._worker = Worker(self)
        self._waiting: list[Callable[[], object]] = []
        self._is_opening = False
        self._attempt = 0

    @property
    def writable(self) -> Store | None:
        """The history if it can be written, else None."""
        return None if self.failure else self.store

    @property
    def is_busy(self) -> bool:
        """Whether requests are pending."""
        return self._worker.is_busy

    def open(self, after_ms: int = 0) -> None:
        """Open the history in a thread, unless it is open and can be written.

        One that is open for reading stays so until the new one is open.

        Args:
            after_ms: Delay in milliseconds.
        """
        if self.writable is None and not self._is_opening:
            self._start_opening(self.path, after_ms)

    def choose(self, path: Path) -> None:
        """Open another file instead of one that cannot be opened or written, or is being opened."""
        if self.writable is None:
            self._start_opening(path)

    def _start_opening(self, path: Path | None, after_ms: int = 0) -> None:
        self._is_opening = True
        if self.store is None:
            self.failure = ""
        self._attempt += 1
        begin = partial(self._begin, self._attempt, path)
        if after_ms:
            call_later(self, begin, after_ms)
        else:
            begin()

    def _begin(self, attempt: int, path: Path | None) -> None:
        if attempt == self._attempt:
            work = partial(_open, self._make, path)
            self._worker.ask(work, partial(self._set_store, attempt, path), partial(self._refuse, attempt))

    def when_settled(self, act: Callable[[], object]) -> None:
        """Call a function once opening has finished or failed; immediately if it is not being opened."""
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
        """Use the history in a thread, and call `answered` or `failed` in the window's thread.

        Args:
            work: Reads or writes.
            answered: Receives the result.
            failed: Receives the error.
            worker: The worker to use; with a widget's own worker nothing is called after the widget was deleted.

        Returns:
            Whether the history is open.
        """
        store = self.store
        if store is None:
            return False
        (worker or self._worker).ask(lambda: work(store), answered, failed)
        return True

    def close(self) -> None:
        """Close the history after all pending requests; `app.worker.wait_for_workers` waits for that."""
        store, self.store = self.store, None
        if store is not None:
            self._worker.ask(store.close)

    def _set_store(self, attempt: int, path: Path | None, opened: tuple[Store, str]) -> None:
        store, failure = opened
        if attempt != self._attempt:  # another file was chosen
            self._worker.ask(store.close)
            return
        self.close()
        self.path, self.store, self.failure = path, store, failure
        self._settle()
        self.opened.emit()
        if failure:
            self.failed.emit(failure)

    def _refuse(self, attempt: int, error: EngineError) -> None:
        if attempt != self._attempt:
            return
        self.failure = str(error)
        self._settle()
        self.failed.emit(self.failure)

    def _settle(self) -> None:
        self._is_opening = False
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            act()


def _open(make: Callable[[Path | None], Store] | None, path: Path | None) -> tuple[Store, str]:
    """Open a history, only for reading if it cannot be written; return why, or an empty text."""
    # Imported in the worker, so that the window appears sooner.
    from engine.store import StoreError, open_store

    try:
        return (make or open_store)(path), ""
    except StoreError as error:
        return open_store(path, for_reading=True), str(error)
