"""A run of the history as a document that is looked at and not changed: the graph as it ran, filled piece by piece.

Canvas, inspector and panels follow it like any session. First there is the outline; what happened in an iteration is
read when it is looked at. A run that goes on tells everything anew, its past included, and is live from then on.
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

READ_ONLY: Final = "This is a run as it was. Choose “Open as new document” to change the workflow."


class StoredSession(Session):
    """One run of the history.

    Args:
        engine: The engine's thread.
        access: The way to the history.
        workflow: The document as it runs.
        title: What to call the run.

    Signals:
        filled: What is looked at has been read.
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
        """What to call the run."""
        return self._title

    @property
    def is_read(self) -> bool:
        """Whether all that is looked at has been read."""
        return not self._asked

    def show_run(self, run: StoredRun) -> None:
        """Show a run, as far as it was read; what is looked at is read from now on, and stays so where it is shown."""
        self._stored, self._asked = run, set()
        shown, store, run_id = self.shown, self._access.store, run.summary.run_id
        shown.chosen = shown.chosen if shown.run_id == run_id else {}
        shown.picture, shown.run_id = run.picture, run_id
        if store is not None:
            shown.read_results = partial(read_results, store, run_id, run.picture.loops)
        shown.started.emit()
        self._read_shown()

    def do(self, operation: Operation) -> bool:
        """Nothing changes a run that was."""
        del operation
        self.refused.emit(READ_ONLY)
        return False

    def read_log(self, write: Callable[[Iterable[AnyEvent]], ResultT], told: Callable[[ResultT], object]) -> None:
        """Read all events for the log, long texts cut.

        Args:
            write: Makes of the events, in order, what is shown; in a thread.
            told: Takes that.
        """
        run_id = self.shown.run_id
        self._access.ask(
            lambda store: write(store.events(run_id, preview=PREVIEW)), told, self._refuse, worker=self._worker
        )

    def go_on(self, begin: Callable[[], Run]) -> None:
        """Let the run go on, or begin: it is live from now on.

        Args:
            begin: Starts it, in the engine's thread.
        """
        if self.shown.live is None:
            stored, self._stored = self._stored, None
            live = self.shown.follow(self.structure_now, begin)
            live.refused.connect(lambda _error: self._read_again(stored))

    def read(self, levels: Iterable[str]) -> None:
        """Read those of these levels of the run (`""`, `loop[2]`) that have not been read; a run at work tells them."""
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
        """The run has not gone on: what is looked at is read as before."""
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
