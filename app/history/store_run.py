"""A run of the store as the window shows it, read piece by piece: first its outline, then what is looked at.

No Qt here. Reading takes its time and belongs into a worker; taking up what was read is quick, and belongs to whoever
shows the picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.runs.executions import NodePicture, NodeState
from app.runs.picture import RunPicture
from engine.document.files import loads
from engine.document.model import Workflow
from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.nodes.registry import Registry
from engine.plan.structure import Structure, analyse
from engine.store.base import RunStatus, RunSummary, Store
from engine.store.words import level_of

PREVIEW: Final = 200
"""How much of a text an outline has: what a table shows of it."""

OUTLINE: Final[frozenset[type[AnyEvent]]] = frozenset(
    {
        RunStarted,
        LoopIterationStarted,
        LoopIterationCompleted,
        LoopCompleted,
        BudgetWarning,
        RunPaused,
        RunResumed,
        RunCompleted,
        RunFailed,
        RunCancelled,
    }
)
_INDEX: Final = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Level:
    """What was read of one level of a run (`""`, `loop[2]`).

    Attributes:
        name: The level.
        nodes: The executions of its nodes, by path.
        iteration: The iteration itself, in full; None for the outermost level and one that has not ended.
    """

    name: str
    nodes: Mapping[str, NodePicture]
    iteration: LoopIterationCompleted | None


@dataclass(slots=True)
class StoredRun:
    """A run that was read from a store.

    Attributes:
        summary: What lists say of it.
        structure: The document as it ran, taken apart.
        picture: What it told, as far as it was read.
        begun: For each loop, by path, the number of the event with which it began last: what stands before it under
            that path has been taken back.
        numbers: For each iteration that ended, by loop path and index, the number of the event that says so.
        levels: The levels that were read in full.
        is_held: Whether it waits for a person with another process.
    """

    summary: RunSummary
    structure: Structure
    picture: RunPicture
    begun: dict[str, int] = field(default_factory=dict[str, int])
    numbers: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    levels: set[str] = field(default_factory=set[str])
    is_held: bool = False

    @property
    def workflow(self) -> Workflow:
        """The document as it ran."""
        return self.structure.workflow

    def take_up(self, level: Level) -> None:
        """Put what was read of a level into the picture."""
        self.levels.add(level.name)
        self.picture.nodes.update(level.nodes)
        if level.iteration is not None:
            loop, index = self.picture.loops[level.iteration.path], level.iteration.index
            if index < len(loop.iterations):
                loop.iterations[index] = level.iteration
            elif index in loop.out_of_turn:
                loop.out_of_turn[index] = level.iteration


def waits_elsewhere(store: Store, summary: RunSummary) -> bool:
    """Whether a run waits for a person with a process that is there.

    Raises:
        StoreError: It cannot be read.
    """
    return summary.status is RunStatus.WAITING and store.is_held(summary.run_id)


def read_outline(store: Store, run_id: str, registry: Registry | None = None) -> StoredRun:
    """Read what a run was and how it went, without its nodes.

    Raises:
        StoreError: It cannot be read.
        DocumentError: Its document cannot be read.
    """
    summary = store.find(run_id)
    workflow = loads(store.document(run_id), source="The document of that run")
    structure = analyse(workflow, registry)
    run = StoredRun(summary, structure, RunPicture(structure.parent), is_held=waits_elsewhere(store, summary))
    for event in store.events(run_id, kinds=OUTLINE, preview=PREVIEW):
        run.picture.apply(event)
        if isinstance(event, LoopIterationStarted) and event.index == 0:
            run.begun[event.path] = event.seq
        elif isinstance(event, LoopIterationCompleted):
            run.numbers[event.path, event.index] = event.seq
    _note_status(run)
    return run


def read_level(store: Store, run: StoredRun, name: str) -> Level:
    """Read all that happened on a level, in full.

    Args:
        store: Where it is kept.
        run: Its outline.
        name: The level: `""` for the outermost, `loop[2]`.

    Raises:
        StoreError: It cannot be read.
    """
    run_id, since = run.summary.run_id, _since(run.begun, name)
    part = RunPicture(run.picture.parents)
    for event in store.events(run_id, level=name, after=since):
        if type(event) not in OUTLINE:
            part.apply(event)
    if run.picture.is_over:
        _settle(part.nodes)
    return Level(name, part.nodes, _iteration(store, run, name))


def _since(begun: Mapping[str, int], level: str) -> int:
    """The number of the last event that took back what stands before it on a level; -1 where none did."""
    loops = (level[: match.start()] for match in _INDEX.finditer(level))
    return max((begun.get(loop, -1) for loop in loops), default=-1)


def _iteration(store: Store, run: StoredRun, level: str) -> LoopIterationCompleted | None:
    loop, _, index = level.removesuffix("]").rpartition("[")
    number = run.numbers.get((loop, int(index))) if loop else None
    if number is None:
        return None
    found: Iterator[AnyEvent] = store.events(
        run.summary.run_id, level=level_of(loop), kinds={LoopIterationCompleted}, after=number - 1
    )
    first = next(iter(found), None)
    return first if isinstance(first, LoopIterationCompleted) else None


def _settle(nodes: dict[str, NodePicture]) -> None:
    """What had not come to its end when the run ended was stopped."""
    for execution in nodes.values():
        if execution.state is NodeState.RUNNING:
            execution.state = NodeState.STOPPED


def _note_status(run: StoredRun) -> None:
    """A run whose process is gone has told no end."""
    if run.summary.status is RunStatus.INTERRUPTED and not run.picture.is_over:
        run.picture.status = "interrupted"
        run.picture.error = run.picture.error or "The program ended while it was at work."
    elif run.summary.status is RunStatus.WAITING:
        run.picture.status = "interrupted"
        how = "Answer it where it is at work, or here." if run.is_held else "Resume it to be asked."
        run.picture.error = f"It waits for your answer. {how}"
