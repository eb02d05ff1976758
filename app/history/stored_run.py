"""A stored run as the window shows it: its outline is read first, then the levels that a person looks at. No Qt here.

Reading takes time and belongs in a worker. `StoredRun.add_level` is quick, and belongs to whoever shows the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.runs.run_view_model import RunViewModel
from engine.document.files import loads
from engine.document.model import Workflow
from engine.events import LoopIterationCompleted
from engine.nodes.registry import Registry
from engine.plan.structure import Structure, analyse
from engine.run_state.reducer import reduce_events
from engine.run_state.result import RESULT_EVENTS
from engine.run_state.state import Detail, LoopExecution, NodeExecution, NodeState
from engine.store.base import RunStatus, RunSummary, Store, level_of
from engine.store.run_sections import level_state
from engine.values import Value

PREVIEW: Final = 200
"""How many characters of a text an outline has: what a table shows of it."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a run (`""`, `loop[2]`), in full.

    Attributes:
        name: The level.
        nodes: The executions of its nodes, by path.
        iteration: The iteration itself; None for the outermost level and for one that has not completed.
    """

    name: str
    nodes: Mapping[str, NodeExecution]
    iteration: LoopIterationCompleted | None


@dataclass(slots=True)
class StoredRun:
    """A run that was read from a store.

    Attributes:
        summary: What lists show of it.
        structure: The structure of the document as it ran.
        picture: Its view model, as far as it was read.
        levels: The levels that were read in full.
        is_held: Whether it waits for a person in another process.
    """

    summary: RunSummary
    structure: Structure
    picture: RunViewModel
    levels: set[str] = field(default_factory=set[str])
    is_held: bool = False

    @property
    def workflow(self) -> Workflow:
        """The document as it ran."""
        return self.structure.workflow

    def add_level(self, level: Level) -> None:
        """Add a level to the view model."""
        self.levels.add(level.name)
        self.picture.nodes.update(level.nodes)
        if level.iteration is not None:
            loop, index = self.picture.loops[level.iteration.path], level.iteration.index
            if index < len(loop.iterations):
                loop.iterations[index] = level.iteration
            elif index in loop.ahead:
                loop.ahead[index] = level.iteration


def waits_elsewhere(store: Store, summary: RunSummary) -> bool:
    """Whether a run waits for a person in a process that is there.

    Raises:
        StoreError: It cannot be read.
    """
    return summary.status is RunStatus.WAITING and store.is_held(summary.run_id)


def read_outline(store: Store, run_id: str, registry: Registry | None = None) -> StoredRun:
    """Read a run without its nodes.

    Raises:
        StoreError: It cannot be read.
        DocumentError: Its document cannot be read.
    """
    summary = store.find(run_id)
    workflow = loads(store.document(run_id), source="The document of that run")
    structure = analyse(workflow, registry)
    events = store.events(run_id, kinds=RESULT_EVENTS, preview=PREVIEW)
    picture = RunViewModel(structure.parent, state=reduce_events(events, run_id, Detail.LOOPS))
    run = StoredRun(summary, structure, picture, is_held=waits_elsewhere(store, summary))
    picture.interruption = _interruption(run)
    return run


def read_level(store: Store, run: StoredRun, name: str) -> Level:
    """Read all that happened on a level, in full.

    Args:
        store: The store.
        run: Its outline.
        name: The level: `""` for the outermost, `loop[2]`.

    Raises:
        StoreError: It cannot be read.
    """
    state = level_state(store, run.summary, name)
    for node in state.open.values():
        if run.picture.is_over and node.state is NodeState.RUNNING:
            node.state = NodeState.INTERRUPTED
    return Level(name, state.nodes, _iteration(store, run, name))


def _iteration(store: Store, run: StoredRun, level: str) -> LoopIterationCompleted | None:
    path, _, index = level.removesuffix("]").rpartition("[")
    loop = run.picture.loops.get(path)
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
    """Read results of iterations in full.

    Args:
        store: The store.
        run_id: The run.
        loops: Its loops, by path.
        path: The loop.
        first: The first iteration; it must have completed.
        last: The last one.

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
    """Why a run has not ended and does not run here; empty for one that has ended or runs."""
    if run.summary.status is RunStatus.INTERRUPTED:
        return "The program ended during the run."
    if run.summary.status is RunStatus.WAITING:
        how = "Answer here or in the program that runs it." if run.is_held else "Resume the run to answer."
        return f"The run is waiting for your answer. {how}"
    return ""
