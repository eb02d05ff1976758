"""The run that a document shows, live or stored, and the selected iterations."""

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
"""Reads full results of iterations: the path of the loop, the first and the last index."""


class RunViewState(QObject):
    """One run at a time.

    Args:
        engine: The engine's thread.

    Signals:
        started: Another run is shown, with a new `picture`: one that starts (`live`), or an earlier one.
        updated: Events arrived; the ids of the nodes that they changed.
        ended: The run has ended.
        refused: It could not be started; the text says why and what to do.
        view_changed: Other iterations were selected.

    Attributes:
        live: The run in progress; None if there is none.
        picture: The state of the run; None before the first.
        workflow: The workflow of that run.
        run_id: That run's id; empty before its first event.
        chosen: The selected iteration by loop id; other loops show the latest.
        read_results: Reads full results where `picture` has only previews; None where it has them. It is called in a
            thread, and may raise `EngineError`.
        last_inputs: The inputs of the last run, even if it could not be started.
        last_inputs_of: The workflow that they were for.
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
        """Run a document, unless a run is in progress.

        Args:
            structure: The analysed document.
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
            structure: The analysed workflow of the run.
            begin: Starts it, in the engine's thread.
            paused: Start paused, before the first node.
        """
        self._before = self.picture, self.workflow, self.run_id, self.chosen, self.read_results
        self.picture, self.workflow, self.run_id = RunViewModel(structure.parent), structure.workflow, ""
        self.chosen, self.read_results = {}, None
        self.live = live = LiveRun(self._engine, begin, self, paused=paused)
        live.events.connect(self._apply_events)
        live.refused.connect(self._note_refusal)
        live.ended.connect(self._end)
        self.started.emit()
        return live

    def look_at(self, loop_id: str, index: int | None) -> None:
        """Select an iteration of a loop; None selects the latest."""
        chosen = {loop: there for loop, there in self.chosen.items() if loop != loop_id}
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
        assert self.picture is not None
        self.run_id = events[0].run_id
        touched = {self.picture.apply(event) for event in events}
        self.updated.emit(touched)

    def _note_refusal(self, error: EngineError) -> None:
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
