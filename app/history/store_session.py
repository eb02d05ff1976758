"""A past run as a read-only document, loaded piece by piece, and a poller for runs of other processes.

Canvas, inspector and panels use it like any session. The outline is loaded first, an iteration when it is displayed.
When the run is resumed, it becomes live and replays all of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.engine_thread import EngineThread
from app.history.store_client import StoreAccess
from app.history.stored_run import PREVIEW, Level, StoredRun, read_level, read_outline, read_results, waits_elsewhere
from app.runs.run_view_model import node_of
from app.session import Session
from app.worker import Worker
from engine.document.model import Workflow
from engine.document.operation import Operation
from engine.errors import EngineError
from engine.events import AnyEvent
from engine.runner.run import Run
from engine.store.base import OPEN, RunStatus, RunSummary, Store

ResultT = TypeVar("ResultT")

READ_ONLY: Final = "This is a past run and read-only. Choose “Open as new document” to edit the workflow."


class StoredSession(Session):
    """Session of a past run.

    Args:
        engine: The engine thread.
        access: Access to the history.
        workflow: The workflow as it ran.
        title: Display name of the run.

    Signals:
        filled: Everything that is displayed has been loaded.
    """

    is_past = True
    filled = Signal()

    def __init__(
        self,
        engine: EngineThread,
        access: StoreAccess,
        workflow: Workflow,
        title: str,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(engine, workflow, parent=parent)
        self.is_trusted = False  # an imported file may hold it
        self.shown.workflow = workflow
        self._access = access
        self._title = title
        self._stored: StoredRun | None = None
        self._worker = Worker(self)
        self._asked: set[str] = set()
        self.shown.view_changed.connect(self._read_shown)

    @property
    def name(self) -> str:
        """Display name of the run."""
        return self._title

    @property
    def is_read(self) -> bool:
        """Whether everything that is displayed has been loaded."""
        return not self._asked

    def show_run(self, run: StoredRun) -> None:
        """Show a run as far as it was loaded, and load the rest on demand."""
        self._stored, self._asked = run, set()
        shown, store, run_id = self.shown, self._access.store, run.summary.run_id
        shown.chosen = shown.chosen if shown.run_id == run_id else {}
        shown.picture, shown.run_id = run.picture, run_id
        if store is not None:
            shown.read_results = partial(read_results, store, run_id, run.picture.loops)
        shown.started.emit()
        self._read_shown()

    def do(self, operation: Operation) -> bool:
        """Refuse every change."""
        del operation
        self.refused.emit(READ_ONLY)
        return False

    def read_log(self, write: Callable[[Iterable[AnyEvent]], ResultT], told: Callable[[ResultT], object]) -> None:
        """Read all events for the log, with long texts truncated.

        Args:
            write: Converts the events to log entries; called in a thread.
            told: Receives the entries.
        """
        run_id = self.shown.run_id
        self._access.ask(
            lambda store: write(store.events(run_id, preview=PREVIEW)), told, self._refuse, worker=self._worker
        )

    def go_on(self, begin: Callable[[], Run]) -> None:
        """Resume or start the run, which is live from now on.

        Args:
            begin: Starts it; called in the engine thread.
        """
        if self.shown.live is None:
            stored, self._stored = self._stored, None
            live = self.shown.follow(self.structure_now, begin)
            live.refused.connect(lambda _error: self._read_again(stored))

    def read(self, levels: Iterable[str]) -> None:
        """Load levels of the run (`""`, `loop[2]`) that were not loaded yet; a live run reports them itself."""
        run = self._stored
        if run is None:
            return
        for name in levels:
            if name not in run.levels and name not in self._asked:
                self._asked.add(name)
                self._access.ask(
                    lambda store, name=name: read_level(store, run, name),
                    self._take_up_level,
                    self._refuse,
                    worker=self._worker,
                )

    def _read_again(self, stored: StoredRun | None) -> None:
        """Load on demand again, because the run could not be resumed."""
        self._stored, self._asked = stored, set()
        self._read_shown()

    def _read_shown(self) -> None:
        if self._stored is not None:
            self.read(self._stored.picture.levels(self._stored.structure.bodies, self.shown.chosen))

    def _take_up_level(self, level: Level) -> None:
        run = self._stored
        self._asked.discard(level.name)
        if run is None:
            return
        run.add_level(level)
        touched = {node_of(path) for path in level.nodes}
        if level.iteration is not None:
            touched.add(node_of(level.iteration.path))
        self.shown.updated.emit(touched)
        if not self._asked:
            self.filled.emit()

    def _refuse(self, error: EngineError) -> None:
        self._asked.clear()
        self.refused.emit(str(error))


LOOK_MS: Final = 2000


class Elsewhere(QObject):
    """Polls the status of a run of another process while its page is visible.

    That process sends no notifications; the stored events are the only source.

    Args:
        access: Access to the history.
        page: The page.

    Signals:
        changed: The status changed; the current summary.
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
        """Poll a run, unless it has ended.

        Args:
            summary: Its last known summary.
            is_held: Whether another process holds it while it waits for input.
        """
        self._run_id, self._known = summary.run_id, (summary.status, is_held)
        if summary.status in OPEN:
            self._timer.start()
        else:
            self._timer.stop()

    def leave(self) -> None:
        """Stop polling, because the run is live here."""
        self._timer.stop()

    def look(self) -> None:
        """Poll now."""
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
