"""The run that a document shows, under way or of the past, and which of its iterations a person looks at.

It knows nothing of how the document is changed and saved: a run keeps to the document as it was when it began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QObject, Signal

from app.engine_thread import EngineThread
from app.live_run import LiveRun
from app.runs.run_view_model import RunViewModel
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.events import AnyEvent
from engine.plan.compiler import compile_structure
from engine.plan.structure import Structure
from engine.runner.options import RunOptions
from engine.runner.run import Run, start
from engine.values import Value

ReadResults = Callable[[str, int, int], Sequence[Value]]
"""Gives results of iterations in full: of the run of a loop at a path, from one index to another, both included."""


class RunViewState(QObject):
    """One run at a time.

    Args:
        engine: The engine's thread.

    Signals:
        started: Another run is shown, and `picture` is new: one that begins (`live`), or one that was before.
        updated: Events came; the set of ids of the nodes that they touched.
        ended: The run is over.
        refused: It could not begin; the text says why and what to do.
        view_changed: Other iterations are looked at.

    Attributes:
        live: The run under way; None before the first and after one has ended.
        picture: What the last run has told; None before the first.
        workflow: The document as that run runs it.
        run_id: That run's id; empty before its first event.
        chosen: By loop id, the iteration that is looked at; a loop that is not in it shows the latest.
        read_results: Reads results where `picture` has only their beginnings; None where it has them. It is called in a
            thread, and may raise `EngineError`.
        last_inputs: What was given to the last run, also to one that could not begin; `last_inputs_of`: to which
            document.
    """

    started = Signal()
    updated = Signal(set)
    ended = Signal()
    refused = Signal(str)
    view_changed = Signal()

    def __init__(self, engine: EngineThread, parent: QObject) -> None:
        super().__init__(parent)
        self._engine = engine
        self.live: LiveRun | None = None
        self.picture: RunViewModel | None = None
        self.workflow: Workflow | None = None
        self.run_id = ""
        self.chosen: dict[str, int] = {}
        self.read_results: ReadResults | None = None
        self.last_inputs: dict[str, Value] = {}
        self.last_inputs_of: Workflow | None = None

    def start(
        self, structure: Structure, inputs: Mapping[str, Value], options: RunOptions, *, paused: bool = False
    ) -> None:
        """Run a document, or get ready to, step by step. One run at a time.

        Args:
            structure: The document, taken apart.
            inputs: Values of its inputs, by name.
            options: How it is to be done, and where it is kept.
            paused: Keeps even the first node from starting until the run is resumed or stepped.
        """
        if self.live is None:
            workflow = structure.workflow
            self.last_inputs, self.last_inputs_of = dict(inputs), workflow
            cap = options.max_iterations_cap

            def begin() -> Run:
                return start(compile_structure(structure, max_iterations_cap=cap), inputs, options)

            self.follow(structure, begin, paused=paused)

    def follow(self, structure: Structure, begin: Callable[[], Run], *, paused: bool = False) -> LiveRun:
        """Show a run that begins; where it cannot, what was shown before is shown again.

        Args:
            structure: The document as it runs, taken apart.
            begin: Starts it, in the engine's thread.
            paused: Keeps even the first node from starting until the run is resumed or stepped.
        """
        self._before = self.picture, self.workflow, self.run_id, self.chosen, self.read_results
        self.picture, self.workflow, self.run_id = RunViewModel(structure.parent), structure.workflow, ""
        self.chosen, self.read_results = {}, None
        self.live = live = LiveRun(self._engine, begin, self, paused=paused)
        live.events.connect(self._take_up_events)
        live.refused.connect(self._give_up)
        live.ended.connect(self._end)
        self.started.emit()
        return live

    def look_at(self, loop_id: str, index: int | None) -> None:
        """Show an iteration of a loop everywhere; None shows the latest again."""
        chosen = {loop: there for loop, there in self.chosen.items() if loop != loop_id}
        if index is not None:
            chosen[loop_id] = index
        if chosen != self.chosen:
            self.chosen = chosen
            self.view_changed.emit()

    def look_at_latest(self) -> None:
        """Follow the run again, in all loops."""
        if self.chosen:
            self.chosen = {}
            self.view_changed.emit()

    def _take_up_events(self, events: list[AnyEvent]) -> None:
        assert self.picture is not None
        self.run_id = events[0].run_id
        touched = {self.picture.apply(event) for event in events}
        self.updated.emit(touched)

    def _give_up(self, error: EngineError) -> None:
        self._forget()
        self.picture = None
        self.refused.emit(str(error))
        self.ended.emit()
        self.picture, self.workflow, self.run_id, self.chosen, self.read_results = self._before
        self.started.emit()

    def _end(self) -> None:
        self._forget()
        self.ended.emit()

    def _forget(self) -> None:
        assert self.live is not None
        self.live.deleteLater()
        self.live = None
