"""Past runs as read-only documents, loaded piece by piece, their subflows, and a poller for runs of other processes.

Canvas, inspector and panels use them like any session. The outline is loaded first, an iteration when it is displayed.
When the run is resumed, it becomes live and replays all of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.engine_thread import EngineThread
from app.history.run_labels import time_label
from app.history.store_client import StoreClient
from app.run_view_state import RunViewState
from app.runs.run_view_model import RunViewModel, SubflowViewModel, node_of
from app.session import Session
from app.worker import Worker
from engine.document.files import loads
from engine.document.model import Workflow
from engine.document.operations import Operation
from engine.errors import EngineError
from engine.events import AnyEvent, LoopIterationCompleted
from engine.nodes.node_names import node_name
from engine.nodes.node_registry import Registry
from engine.plan.structure import Structure, analyse
from engine.run_state.reducer import reduce_events
from engine.run_state.result import RESULT_EVENTS
from engine.run_state.state import Detail, LoopExecution, NodeExecution, NodeState
from engine.runner.run import Run
from engine.store.partial_runs import last_run
from engine.store.run_sections import level_state
from engine.store.store_protocol import OPEN, RunStatus, RunSummary, Store, level_of
from engine.values import Value

PREVIEW: Final = 200
"""Characters of a text in an outline, as many as a table shows."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a run (`""`, `loop[2]`), completely.

    Attributes:
        name: The level.
        nodes: The executions of its nodes by path.
        iteration: The iteration itself; None for the outermost level, or if it has not completed.
        outputs: The outputs of the run; empty for other levels.
    """

    name: str
    nodes: Mapping[str, NodeExecution]
    iteration: LoopIterationCompleted | None
    outputs: Mapping[str, Value]


@dataclass(slots=True)
class StoredRun:
    """A run as far as it was loaded. Loading takes time, so it belongs in a worker; `add_level` is quick.

    Attributes:
        summary: Its summary.
        structure: Structure of the document as it ran.
        view_model: Its view model, as far as it was loaded.
        levels: The levels that were loaded completely.
        is_owned: Whether it waits for input in another process.
    """

    summary: RunSummary
    structure: Structure
    view_model: RunViewModel
    levels: set[str] = field(default_factory=set[str])
    is_owned: bool = False

    @property
    def workflow(self) -> Workflow:
        """The document as it ran."""
        return self.structure.workflow

    def add_level(self, level: Level) -> None:
        """Add a level to the view model."""
        self.levels.add(level.name)
        self.view_model.nodes.update(level.nodes)
        if level.outputs:
            self.view_model.state.outputs = level.outputs
        if level.iteration is not None:
            loop, index = self.view_model.loops[level.iteration.path], level.iteration.index
            if index < len(loop.iterations):
                loop.iterations[index] = level.iteration
            elif index in loop.ahead:
                loop.ahead[index] = level.iteration


def is_waiting_elsewhere(store: Store, summary: RunSummary) -> bool:
    """Return whether a run waits for input in a live process.

    Raises:
        StoreError: It cannot be read.
    """
    return summary.status is RunStatus.WAITING and store.is_owned(summary.run_id)


def read_outline(store: Store, run_id: str, registry: Registry | None = None) -> StoredRun:
    """Read a run without its nodes.

    Raises:
        StoreError: It cannot be read.
        DocumentError: Its document is invalid.
    """
    summary = store.find(run_id)
    workflow = loads(store.document(run_id), source="The workflow of this run")
    structure = analyse(workflow, registry)
    events = store.events(run_id, kinds=RESULT_EVENTS, preview=PREVIEW)
    view_model = RunViewModel(structure.parent, state=reduce_events(events, run_id, Detail.LOOPS))
    view_model.structure = structure
    run = StoredRun(summary, structure, view_model, is_owned=is_waiting_elsewhere(store, summary))
    view_model.interruption = _interruption(run)
    return run


def read_level(store: Store, run: StoredRun, name: str) -> Level:
    """Read a level completely.

    Args:
        store: The history.
        run: The outline of the run.
        name: The level: `""` for the outermost, `loop[2]`.

    Raises:
        StoreError: It cannot be read.
    """
    state = level_state(store, run.summary, name)
    for node in state.open.values():
        if run.view_model.is_over and node.state is NodeState.RUNNING:
            node.state = NodeState.INTERRUPTED
    return Level(name, state.nodes, _iteration(store, run, name), state.outputs)


def _iteration(store: Store, run: StoredRun, level: str) -> LoopIterationCompleted | None:
    path, _, index = level.removesuffix("]").rpartition("[")
    loop = run.view_model.loops.get(path)
    outlined = loop.iteration(int(index)) if loop is not None else None
    if outlined is None:
        return None
    kinds = {LoopIterationCompleted}
    events = store.events(run.summary.run_id, level=level_of(path), kinds=kinds, after=outlined.seq - 1)
    first = next(iter(events), None)
    return first if isinstance(first, LoopIterationCompleted) else None


def read_results(
    store: Store, run_id: str, loops: Mapping[str, LoopExecution], path: str, first: int, last: int
) -> list[Value]:
    """Read complete results of iterations.

    Args:
        store: The history.
        run_id: The run.
        loops: Its loops by path.
        path: The loop.
        first: The first iteration; it must have completed.
        last: The last iteration.

    Raises:
        StoreError: They cannot be read.
    """
    found: list[Value] = []
    start = loops[path].iteration(first) if path in loops else None
    since = start.seq - 1 if start is not None else -1
    for event in store.events(run_id, level=level_of(path), kinds={LoopIterationCompleted}, after=since):
        if isinstance(event, LoopIterationCompleted) and event.path == path:
            found.append(event.result)
            if event.index >= last:
                break
    return found


def _interruption(run: StoredRun) -> str:
    """Return why a run has not ended and is not running; empty otherwise."""
    if run.summary.status is RunStatus.INTERRUPTED:
        return "The program ended during the run."
    if run.summary.status is RunStatus.WAITING:
        how = "Answer here or in the program that runs it." if run.is_owned else "Resume the run to answer."
        return f"The run is waiting for your answer. {how}"
    return ""


ResultT = TypeVar("ResultT")


class StoredRunLoader(QObject):
    """Shows a stored run in a session, and loads its levels when they are displayed.

    Args:
        shown: The displayed run of the session.
        access: Access to the history.

    Signals:
        filled: Everything that is displayed has been loaded.
        refused: Something cannot be read; the text says why.
    """

    filled = Signal()
    refused = Signal(str)

    def __init__(self, shown: RunViewState, access: StoreClient, parent: QObject) -> None:
        super().__init__(parent)
        self._shown, self._access = shown, access
        self._run: StoredRun | None = None
        self._worker = Worker(self)
        self._asked: set[str] = set()
        shown.view_changed.connect(self.read_shown)

    @property
    def is_read(self) -> bool:
        """Whether everything that is displayed has been loaded."""
        return not self._asked

    def show(self, run: StoredRun) -> None:
        """Show a run as far as it was loaded, and load the rest on demand."""
        self._run, self._asked = run, set()
        shown, access, run_id = self._shown, self._access, run.summary.run_id
        shown.chosen = shown.chosen if shown.run_id == run_id else {}
        shown.view_model, shown.run_id, shown.workflow = run.view_model, run_id, run.workflow
        shown.read_levels = self.read

        def read(path: str, first: int, last: int) -> list[Value]:
            store = access.store  # of now: the history may have been opened again
            return [] if store is None else read_results(store, run_id, run.view_model.loops, path, first, last)

        shown.read_results = read
        shown.started.emit()
        self.read_shown()

    def ask(self, work: Callable[[Store], ResultT], answered: Callable[[ResultT], object]) -> bool:
        """Read something else of the history after the levels that were asked for; return whether it is open."""
        return self._access.ask(work, answered, self._refuse, worker=self._worker)

    def read(self, levels: Iterable[str]) -> None:
        """Load levels of the run (`""`, `loop[2]`) that were not loaded yet; a live run reports them itself."""
        run = self._run
        if run is None or self._shown.view_model is not run.view_model:
            return
        for name in levels:
            if name in run.levels or name in self._asked:
                continue
            if self.ask(lambda store, name=name: read_level(store, run, name), partial(self._add_level, run)):
                self._asked.add(name)

    def read_shown(self) -> None:
        """Load what is displayed."""
        if self._run is not None:
            self.read(self._run.view_model.levels(self._run.structure.bodies, self._shown.chosen))

    def _add_level(self, run: StoredRun, level: Level) -> None:
        if run is not self._run:  # another run is shown, or a newer outline of the same run, whose levels are read too
            return
        self._asked.discard(level.name)
        if self._shown.view_model is not run.view_model:
            return
        run.add_level(level)
        touched = {node_of(path) for path in level.nodes}
        if level.iteration is not None:
            touched.add(node_of(level.iteration.path))
        self._shown.updated.emit(touched)
        if not level.name:
            self._shown.outputs_loaded.emit()
        if not self._asked:
            self.filled.emit()

    def _refuse(self, error: EngineError) -> None:
        self._asked.clear()
        self.refused.emit(str(error))


def recall_last_run(session: Session, access: StoreClient) -> None:
    """Show the last stored run of a document's file, read in a thread, unless the document shows a run already."""
    loader = StoredRunLoader(session.shown, access, session)
    source = str(session.path) if session.path is not None else ""

    def read(store: Store) -> StoredRun | None:
        last = last_run(store, source)
        return read_outline(store, last.run_id, session.registry) if last is not None else None

    def show(run: StoredRun | None) -> None:
        if run is None or session.shown.view_model is not None:
            return
        if session.workflow.nodes_by_id.keys() & run.workflow.nodes_by_id.keys():
            run.view_model.origin = f"Run of {time_label(run.summary.started)}"
            loader.show(run)

    if source:
        loader.ask(read, show)


class _ReadOnlySession(Session):
    """Session whose document cannot be changed."""

    is_past = True
    refusal = ""
    """What to say when the user tries."""

    def __init__(self, engine: EngineThread, workflow: Workflow, title: str, registry: Registry | None = None) -> None:
        super().__init__(engine, workflow, registry=registry)
        self.shown.workflow = workflow
        self._title = title

    @property
    def name(self) -> str:
        """Display name of the run or subflow."""
        return self._title

    def do(self, operation: Operation) -> bool:
        """Refuse every change."""
        del operation
        self.refused.emit(self.refusal)
        return False


READ_ONLY: Final = "This is a past run and read-only. Choose “Open as new document” to edit the workflow."


class StoredSession(_ReadOnlySession):
    """Session of a past run.

    Args:
        engine: The engine thread.
        access: Access to the history.
        workflow: The workflow as it ran.
        title: Display name of the run.

    Attributes:
        loader: Shows the run as far as it was loaded, and loads the rest on demand.
    """

    refusal = READ_ONLY

    def __init__(self, engine: EngineThread, access: StoreClient, workflow: Workflow, title: str) -> None:
        super().__init__(engine, workflow, title)
        self.is_trusted = False  # it may be imported
        self.loader = StoredRunLoader(self.shown, access, self)
        self.loader.refused.connect(self.refused)

    def read_log(self, write: Callable[[Iterable[AnyEvent]], ResultT], told: Callable[[ResultT], object]) -> None:
        """Read all events for the log, with long texts truncated.

        Args:
            write: Converts the events to log entries; called in a thread.
            told: Receives the entries.
        """
        run_id = self.shown.run_id
        self.loader.ask(lambda store: write(store.events(run_id, preview=PREVIEW)), told)

    def go_live(self, begin: Callable[[], Run]) -> None:
        """Resume or start the run, which is live from now on.

        Args:
            begin: Starts it; called in the engine thread.
        """
        if self.shown.live is None:
            live = self.shown.follow(self.structure_now, begin)
            live.refused.connect(lambda _error: self.loader.read_shown())


POLL_MS: Final = 2000


class ExternalRunPoller(QObject):
    """Polls the status of a run of another process while its page is visible.

    That process sends no notifications; the stored events are the only source.

    Args:
        access: Access to the history.
        page: The page.

    Signals:
        changed: The status changed; the current summary.
    """

    changed = Signal(object)

    def __init__(self, access: StoreClient, page: QWidget) -> None:
        super().__init__(page)
        self._access, self._page = access, page
        self._worker = Worker(self)
        self._run_id = ""
        self._known: tuple[RunStatus, bool] | None = None
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._poll_if_visible)

    def start(self, summary: RunSummary, *, is_owned: bool) -> None:
        """Poll a run, unless it has ended.

        Args:
            summary: Its last known summary.
            is_owned: Whether another process owns it while it waits for input.
        """
        self._run_id, self._known = summary.run_id, (summary.status, is_owned)
        if summary.status in OPEN:
            self._timer.start()
        else:
            self._timer.stop()

    def stop(self) -> None:
        """Stop polling, because the run is live here."""
        self._timer.stop()

    def poll(self) -> None:
        """Poll now."""
        run_id, known = self._run_id, self._known

        def work(store: Store) -> StoredRun | None:
            summary = store.find(run_id)
            return (
                None if (summary.status, is_waiting_elsewhere(store, summary)) == known else read_outline(store, run_id)
            )

        def answered(run: StoredRun | None) -> None:
            if run is not None and self._known == known:
                self.changed.emit(run)

        # if the run cannot be read, keep the last status
        self._access.ask(work, answered, worker=self._worker)

    def _poll_if_visible(self) -> None:
        if self._page.isVisible() and not self._worker.is_busy:
            self.poll()


SUBFLOW_READ_ONLY: Final = "This subflow of a past run is read-only. Choose “Open workflow” to edit its workflow."


class SubflowSession(_ReadOnlySession):
    """Session of a subflow of a displayed run, with its live events, stored levels and selected iterations.

    Args:
        engine: The engine thread.
        outer: The session of the run, or of the subflow that contains this one.
        node_id: The subflow in the document of `outer`.
        workflow: The workflow of the subflow as it ran.

    Attributes:
        outer: The session of the run, or of the subflow that contains this one.
        node_id: The subflow in the document of `outer`.
        is_followed: Whether it still shows the run of `outer`; not if that was restarted without this workflow.
    """

    refusal = SUBFLOW_READ_ONLY

    def __init__(self, engine: EngineThread, outer: Session, node_id: str, workflow: Workflow) -> None:
        assert outer.shown.workflow is not None
        super().__init__(engine, workflow, node_name(outer.shown.workflow, node_id), outer.registry)
        self.outer, self.node_id = outer, node_id
        self.is_followed = True
        self._bind()
        outer.shown.started.connect(self._show_outer_run)
        outer.shown.updated.connect(self._update)
        outer.shown.ended.connect(self._show_all)
        outer.shown.view_changed.connect(self._follow_view)
        self.shown.view_changed.connect(self._read_shown)
        self.analyzed.connect(self._restart)
        self._read_shown()

    def read(self, levels: Iterable[str]) -> None:
        """Load levels of a stored run."""
        if not self.is_followed:
            return
        if isinstance(self.outer, SubflowSession):
            self.outer.read(levels)
        elif self.outer.shown.read_levels is not None:
            self.outer.shown.read_levels(levels)

    def _bind(self) -> None:
        """Show the execution in the iterations that are selected in `outer`."""
        shown, around = self.shown, self.outer.shown
        assert around.view_model is not None
        path = around.view_model.path_of(self.node_id, around.chosen)
        shown.view_model = self._subflow = SubflowViewModel(around.view_model, path, self.structure.parent)
        shown.run_id, shown.read_results, shown.chosen = around.run_id, around.read_results, {}

    def _restart(self) -> None:
        self._bind()
        self.shown.started.emit()
        self._read_shown()

    def _show_outer_run(self) -> None:
        """Show the same subflow in another run of `outer`."""
        if self.outer.shown.view_model is None or subflow_workflow(self.outer, self.node_id) != self.workflow:
            self.is_followed = False
            self.shown.updated.emit(set())
        else:
            self.is_followed = True
            self._restart()

    def _update(self, touched: set[str]) -> None:
        around = self.outer.shown
        if not self.is_followed or around.view_model is None:
            return
        if around.view_model.path_of(self.node_id, around.chosen) != self._subflow.path:
            self._restart()
        elif self.node_id in touched:
            self._show_all()

    def _follow_view(self) -> None:
        if self.is_followed:
            self._update({self.node_id})

    def _show_all(self) -> None:
        if not self.is_followed:
            return
        self.shown.run_id = self.outer.shown.run_id
        self.shown.updated.emit({node.id for node in self.workflow.nodes})
        self._read_shown()

    def _read_shown(self) -> None:
        self.read(self._subflow.levels(self.structure.bodies, self.shown.chosen))


def subflow_workflow(session: Session, node_id: str) -> Workflow | None:
    """Return the workflow of a subflow in the displayed run; None if there is none."""
    ran = session.shown.workflow
    if session.shown.view_model is None or ran is None:
        return None
    structure = session.structure if session.structure.workflow is ran else analyse(ran, session.registry)
    part = structure.subflows.get(node_id)
    return None if part is None else part.workflow
