"""How a run goes on that is shown here and at work in another window or program: looked at now and then.

That program tells nobody; what it has put into the history is all there is to know.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.history.store_access import StoreAccess
from app.history.store_run import StoredRun, read_outline, waits_elsewhere
from app.worker import Worker
from engine.store.base import RunStatus, RunSummary, Store
from engine.store.fold import OPEN

LOOK_MS: Final = 2000


class Elsewhere(QObject):
    """Looks how such a run stands, as long as its page is seen.

    Args:
        access: The way to the history.
        page: The page.

    Signals:
        changed: It stands otherwise than before; the run as it is now.
    """

    changed = Signal(object)

    def __init__(self, access: StoreAccess, page: QWidget) -> None:
        super().__init__(page)
        self._access, self._page = access, page
        self._worker = Worker(self)
        self._run_id = ""
        self._known: tuple[RunStatus, bool] | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self._look_if_seen)

    def follow(self, summary: RunSummary, *, is_held: bool) -> None:
        """Look after a run, unless it has come to an end.

        Args:
            summary: What is known of it.
            is_held: Whether it waits for the person with another process.
        """
        self._run_id, self._known = summary.run_id, (summary.status, is_held)
        if summary.status in OPEN:
            self._timer.start()
        else:
            self._timer.stop()

    def leave(self) -> None:
        """The run goes on here, and tells everything itself."""
        self._timer.stop()

    def look(self) -> None:
        """Look now."""
        run_id, known = self._run_id, self._known

        def work(store: Store) -> StoredRun | None:
            summary = store.find(run_id)
            return None if (summary.status, waits_elsewhere(store, summary)) == known else read_outline(store, run_id)

        def answered(run: StoredRun | None) -> None:
            if run is not None and self._known == known:
                self.changed.emit(run)

        # A run that cannot be read just now stays as it was shown.
        self._access.ask(work, answered, worker=self._worker)

    def _look_if_seen(self) -> None:
        if self._page.isVisible() and not self._worker.is_busy:
            self.look()
