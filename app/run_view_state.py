"""The run that a document shows, live or stored; and the handle of a run in the engine's thread.

The handle reads events in batches on a timer that runs only during the run: however many events there are, the window's
thread wakes up about sixty times a second.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine_thread import EngineThread
from app.runs.run_view_model import RunViewModel
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.events import AnyEvent
from engine.nodes.context import Answer
from engine.plan.compiler import compile_structure
from engine.plan.structure import Structure
from engine.runner.options import RunOptions
from engine.runner.run import Run, start
from engine.values import Value

DRAIN_MS: Final = 16
BATCH: Final = 128
"""Maximum events per batch, so that the window stays responsive."""


class LiveRun(QObject):
    """Handle, in the window's thread, of a run in the engine's thread.

    Signals:
        events: A batch of events, in order.
        refused: The run could not be started; the error.
        ended: The run has ended, and all its events were emitted.
    """

    events = Signal(list)
    refused = Signal(object)
    ended = Signal()

    def __init__(
        self,
        engine: EngineThread,
        begin: Callable[[], Run],
        parent: QObject | None = None,
        *,
        paused: bool = False,
    ) -> None:
        """Start the run.

        Args:
            engine: The engine's thread.
            begin: Starts or resumes the run, in that thread.
            parent: Its parent.
            paused: Start paused, before the first node.
        """
        super().__init__(parent)
        self._engine = engine
        self._run: Run | None = None
        self._waiting: list[Callable[[Run], object]] = [Run.pause] if paused else []
        self._place = 0
        self._refusal: EngineError | None = None
        self._timer = QTimer(self, interval=DRAIN_MS)
        self._timer.timeout.connect(self._drain)
        engine.submit(self._start(begin))
        self._timer.start()

    def cancel(self) -> None:
        """Cancel the run."""
        self._with_run(Run.cancel)

    def suspend(self) -> None:
        """Suspend the run without an event. It remains in the history and can be resumed."""
        self._with_run(Run.suspend)

    def pause(self) -> None:
        """Pause: running nodes finish, and no others start."""
        self._with_run(Run.pause)

    def resume(self) -> None:
        """Resume after a pause."""
        self._with_run(Run.resume)

    def step_node(self) -> None:
        """Start one node, then pause again."""
        self._with_run(Run.step_node)

    def step_iteration(self) -> None:
        """Continue to the end of the current iteration, then pause again."""
        self._with_run(Run.step_iteration)

    def answer(self, path: str, choice: str, value: Value, comment: str) -> None:
        """Answer a node that waits for input.

        Args:
            path: The node's path in the run.
            choice: One of its choices; empty if it has none.
            value: The edited value, or the answer to a question.
            comment: The user's comment; may be empty.
        """
        self._with_run(lambda run: run.answer(path, Answer(choice, value, comment)))

    def post_note(self, to: str, text: str) -> None:
        """Post a note to a node, by id or path; its next model call receives it."""
        self._with_run(lambda run: run.post_note(to, text))

    async def _start(self, begin: Callable[[], Run]) -> None:
        try:
            self._run = begin()
        except EngineError as error:
            self._refusal = error
            return
        except Exception as error:  # a bug: reported as well, or the window would wait forever
            self._refusal = EngineError(f"The run could not be started ({type(error).__name__}: {error}).")
            raise
        for action in self._waiting:
            self._apply(action)
        self._waiting.clear()

    def _with_run(self, action: Callable[[Run], object]) -> None:
        self._engine.call(lambda: self._apply(action))

    def _apply(self, action: Callable[[Run], object]) -> None:
        """Apply an action in the engine's thread, or later if the run has not started yet."""
        if self._run is None:
            self._waiting.append(action)
        else:
            with contextlib.suppress(EngineError):  # the run has ended or was answered already, as its events show
                action(self._run)

    def _drain(self) -> None:
        if self._refusal is not None:
            self._timer.stop()
            self.refused.emit(self._refusal)
            return
        if self._run is None:
            return
        over = self._run.is_over  # checked before reading, so that no event is missed
        batch: list[AnyEvent] = self._run.events_since(self._place, BATCH)
        self._place += len(batch)
        if batch:
            self.events.emit(batch)
        if over and len(batch) < BATCH:
            self._timer.stop()
            self.ended.emit()


ReadResults = Callable[[str, int, int], Sequence[Value]]
"""Reads full results of iterations: the path of the loop, the first and the last index."""


class RunViewState(QObject):
    """One run at a time.

    Args:
        engine: The engine's thread.

    Signals:
        started: Another run is shown, with a new `view_model`: one that starts (`live`), or an earlier one.
        updated: Events arrived; the ids of the nodes that they changed.
        outputs_loaded: The outputs of the outermost nodes of a stored run were loaded.
        ended: The run has ended.
        refused: It could not be started; the text says why and what to do.
        view_changed: Other iterations were selected.

    Attributes:
        live: The run in progress; None if there is none.
        view_model: The state of the run; None before the first.
        workflow: The workflow of that run.
        run_id: That run's id; empty before its first event.
        chosen: The selected iteration by loop id; other loops show the latest.
        read_results: Reads full results where `view_model` has only previews; None where it has them. It is called in a
            thread, and may raise `EngineError`.
        read_levels: Loads levels of a stored run (`""`, `loop[2]`) that are displayed; None where `view_model` has all.
        last_inputs: The inputs of the last run, even if it could not be started.
        last_inputs_of: The workflow that they were for.
    """

    started = Signal()
    updated = Signal(set)
    outputs_loaded = Signal()
    ended = Signal()
    refused = Signal(str)
    view_changed = Signal()

    def __init__(self, engine: EngineThread, parent: QObject) -> None:
        super().__init__(parent)
        self._engine = engine
        self.live: LiveRun | None = None
        self.view_model: RunViewModel | None = None
        self.workflow: Workflow | None = None
        self.run_id = ""
        self.chosen: dict[str, int] = {}
        self.read_results: ReadResults | None = None
        self.read_levels: Callable[[Iterable[str]], object] | None = None
        self.last_inputs: dict[str, Value] = {}
        self.last_inputs_of: Workflow | None = None

    def start(
        self, structure: Structure, inputs: Mapping[str, Value], options: RunOptions, *, paused: bool = False
    ) -> None:
        """Run a document, unless a run is in progress.

        Args:
            structure: The analyzed document.
            inputs: The inputs by name.
            options: The options of the run.
            paused: Start paused, before the first node.
        """
        if self.live is None:
            workflow = structure.workflow
            self.last_inputs, self.last_inputs_of = dict(inputs), workflow
            cap = options.max_iterations_cap

            def begin() -> Run:
                return start(compile_structure(structure, max_iterations_cap=cap), inputs, options)

            self.follow(structure, begin, paused=paused)

    def follow(self, structure: Structure, begin: Callable[[], Run], *, paused: bool = False) -> LiveRun:
        """Start a run and show it; if it cannot be started, the previous one is shown again.

        Args:
            structure: The analyzed workflow of the run.
            begin: Starts it, in the engine's thread.
            paused: Start paused, before the first node.
        """
        self._before = self.view_model, self.workflow, self.run_id, self.chosen, self.read_results, self.read_levels
        self.view_model, self.workflow, self.run_id = RunViewModel(structure.parent), structure.workflow, ""
        self.view_model.structure = structure
        self.chosen, self.read_results, self.read_levels = {}, None, None
        self.live = live = LiveRun(self._engine, begin, self, paused=paused)
        live.events.connect(self._apply_events)
        live.refused.connect(self._note_refusal)
        live.ended.connect(self._end)
        self.started.emit()
        return live

    def look_at(self, loop_id: str, index: int | None) -> None:
        """Select an iteration of a loop; None selects the latest."""
        chosen = {loop: shown for loop, shown in self.chosen.items() if loop != loop_id}
        if index is not None:
            chosen[loop_id] = index
        if chosen != self.chosen:
            self.chosen = chosen
            self.view_changed.emit()

    def look_at_latest(self) -> None:
        """Select the latest iteration of all loops."""
        if self.chosen:
            self.chosen = {}
            self.view_changed.emit()

    def _apply_events(self, events: list[AnyEvent]) -> None:
        assert self.view_model is not None
        self.run_id = events[0].run_id
        touched = {self.view_model.apply(event) for event in events}
        self.updated.emit(touched)

    def _note_refusal(self, error: EngineError) -> None:
        self._forget()
        self.view_model = None
        self.refused.emit(str(error))
        self.ended.emit()
        self.view_model, self.workflow, self.run_id, self.chosen, self.read_results, self.read_levels = self._before
        self.started.emit()

    def _end(self) -> None:
        self._forget()
        self.ended.emit()

    def _forget(self) -> None:
        assert self.live is not None
        self.live.deleteLater()
        self.live = None
