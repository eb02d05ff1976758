"""The texts of a run that can be compared: of every iteration its result, its feedback and what each node did in it.

No Qt here. A source may read a store, and then belongs into a worker, one thing after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.history.run_labels import full_title_of, place_words
from app.history.stored_run import StoredRun, read_level, read_outline
from app.inspector.result_text import value_text
from app.runs.loop_status import unit_of
from app.runs.run_view_model import RunViewModel, node_of
from engine.events import LoopIterationCompleted, RunCancelled, RunCompleted, RunFailed
from engine.nodes.pairs import PAIR_BY_END, PAIR_BY_START
from engine.plan.structure import Structure
from engine.run_state.state import NodeExecution, NodeState
from engine.store.base import Store
from engine.values import Value

RESULT: Final = "result"
FEEDBACK: Final = "feedback"
INPUT: Final = "input"
PROMPT: Final = "prompt"
OUTPUT: Final = "output"

_OF_ITERATION: Final = ((RESULT, "Result"), (FEEDBACK, "Feedback"), (INPUT, "Input"))
_PAIRED: Final = frozenset({*PAIR_BY_START, *PAIR_BY_END})
_OF_ITEM: Final = ((RESULT, "Result"), (INPUT, "Item"))


@dataclass(frozen=True, slots=True)
class What:
    """What of a place is looked at.

    Attributes:
        node: A node's id; empty for the iteration, or the run, itself.
        part: `result`, `feedback`, `input`; of a node `output`, `prompt`, `input`.
        title: For people: `Result`, `Draft · prompt`.
    """

    node: str
    part: str
    title: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same in another place or run."""
        return self.node, self.part


class Source:
    """One run whose texts are compared.

    Args:
        run_id: The run; empty for one that is not kept.
        title: What people call it.
        structure: The document as it ran, taken apart.
        picture: What it told.
        fill: Sees to it that the picture has a level of the run in full.
    """

    def __init__(
        self, run_id: str, title: str, structure: Structure, picture: RunViewModel, fill: Callable[[str], None]
    ) -> None:
        self.run_id = run_id
        self.title = title
        self._structure = structure
        self._picture = picture
        self._fill = fill

    @property
    def is_final(self) -> bool:
        """Whether nothing can come to the run any more; one that failed or was stopped may go on."""
        return self._picture.status == "completed"

    def places(self) -> list[tuple[str, str]]:
        """The iterations, each with its words, those of outer loops first; then the run as a whole (`""`)."""
        found = [
            (f"{path}[{index}]", place_words(f"{path}[{index}]").replace("iteration", self._unit(node_of(path))))
            for path, loop in self._picture.loops.items()
            for index in range(loop.current + 1)
        ]
        several = len({path for path in self._picture.loops if "." not in path}) > 1
        if several:  # then the number alone does not tell which loop it was
            found = [(place, f"{place.partition('[')[0]}: {words}") for place, words in found]
        return [*((place, words[:1].upper() + words[1:]) for place, words in found), ("", "Whole run")]

    def offers(self, place: str) -> list[What]:
        """What there is to look at in a place."""
        loop = place.rpartition("[")[0].rpartition(".")[2]
        parts = (_OF_ITEM if self._unit(loop) == "item" else _OF_ITERATION) if place else ((RESULT, "Results"),)
        offers = [What("", part, title) for part, title in parts]
        for node in self._structure.workflow.nodes:
            if self._structure.parent.get(node.id, "") != loop or node.type in _PAIRED:
                continue
            name = node.title or node.id
            resolved = self._structure.resolution.nodes.get(node.id)
            calls_model = resolved is not None and resolved.spec.model(resolved.config) is not None
            parts = (OUTPUT, PROMPT, INPUT) if calls_model else (OUTPUT, INPUT)
            offers += [What(node.id, part, f"{name} · {part}") for part in parts]
        return offers

    def text(self, place: str, what: What) -> str:
        """The text itself; empty where there is none.

        Raises:
            EngineError: It cannot be read.
        """
        self._fill(place)
        if what.node:
            path = f"{place}.{what.node}" if place else what.node
            return _of_node(self._picture.nodes.get(path, NodeExecution()), what.part)
        if not place:
            return _by_name(dict(self._picture.outputs))
        iteration = self._iteration(place)
        if iteration is None:
            return ""
        return _written({RESULT: iteration.result, FEEDBACK: iteration.feedback, INPUT: iteration.input}[what.part])

    def _unit(self, loop_id: str) -> str:
        return unit_of(self._structure.workflow, loop_id)

    def _iteration(self, place: str) -> LoopIterationCompleted | None:
        loop, _, index = place.removesuffix("]").rpartition("[")
        there = self._picture.loops.get(loop)
        return there.iteration(int(index)) if there is not None else None


def stored_source(store: Store, run_id: str) -> Source:
    """The texts of a run of the store.

    Raises:
        EngineError: It cannot be read.
    """
    run = read_outline(store, run_id)
    _read_outputs(store, run)

    def fill(level: str) -> None:
        if level not in run.levels:
            run.add_level(read_level(store, run, level))

    return Source(run_id, full_title_of(run.summary), run.structure, run.picture, fill)


def live_source(title: str, structure: Structure, picture: RunViewModel) -> Source:
    """The texts of a run that is shown and not kept."""
    return Source("", title, structure, picture, lambda _level: None)


def _read_outputs(store: Store, run: StoredRun) -> None:
    """The outline has only the beginnings of what came out."""
    for event in store.events(run.summary.run_id, kinds={RunCompleted, RunFailed, RunCancelled}):
        run.picture.apply(event)


def _of_node(execution: NodeExecution, part: str) -> str:
    if part == PROMPT:
        return "\n\n".join(
            f"{message.role}:\n{message.text}" for call in execution.calls for message in call.request.messages
        )
    if part == INPUT:
        return _by_name(dict(execution.inputs))
    outputs = {name: value for name, value in execution.outputs.items() if name != "usage"}
    return _by_name(outputs) or ("" if execution.state is NodeState.SKIPPED else execution.error)


def _by_name(values: dict[str, Value]) -> str:
    """Values by name: one alone as it is, several with their names."""
    if len(values) == 1:
        return _written(next(iter(values.values())))
    return "\n\n".join(f"{name}:\n{_written(value)}" for name, value in values.items())


def _written(value: Value) -> str:
    return "" if value is None else value_text(value)
