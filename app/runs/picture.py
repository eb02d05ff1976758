"""A picture of one run, as canvas and inspector show it: a fold of its events, with every iteration kept.

No Qt here. Nodes are found by their id and the iterations that the person looks at, since a node of a loop has a
state of its own in each of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from engine.models.base import Usage
from engine.nodes.pairs import PAIR_BY_START
from engine.nodes.spec import ModelCall
from engine.runner.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeAnswered,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeStreaming,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.values import Value

TAIL_LENGTH: Final = 160
_INDEX: Final = re.compile(r"\[\d+\]")
_ITERATIONS: Final = re.compile(r"(?:\w+\[\d+\]\.)*")


def node_of(path: str) -> str:
    """The id of the document's own node at a path: `draft` for `loop[2].draft`, `part` for what lies in a subflow."""
    return steps_of(path)[0]


def steps_of(path: str) -> tuple[str, str]:
    """The document's own node at a path, and where in its subflow: `part`, `loop.draft` for `part.loop[0].draft`."""
    around = _ITERATIONS.match(path)
    node, _, inside = path[around.end() if around is not None else 0 :].partition(".")
    return _INDEX.sub("", node), _INDEX.sub("", inside)


class NodeState(StrEnum):
    """What a node is doing, or has done."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    CACHED = "cached"
    FAILED = "failed"
    ASKING = "asking"


@dataclass(slots=True)
class NodePicture:
    """One execution of a node: in a loop, in one iteration.

    Attributes:
        state: What it is doing.
        inputs: What reached it, by port.
        outputs: What it gave, by live port.
        calls: Its model calls, in full.
        usage: Tokens used.
        cost_usd: US dollars; None where a price is unknown.
        duration_s: Seconds; None while it runs.
        error: What went wrong.
        remedy: What to do about it.
        warnings: What a person should know although it went on.
        text: What has streamed in so far.
        retries: How often it was tried again.
        started: When, in seconds since the epoch.
        output_key: The name in the state under which its output is known from then on; empty for none.
    """

    state: NodeState = NodeState.WAITING
    inputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    outputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    calls: tuple[ModelCall, ...] = ()
    usage: Usage | None = None
    cost_usd: float | None = 0.0
    duration_s: float | None = None
    error: str = ""
    remedy: str = ""
    warnings: tuple[str, ...] = ()
    text: str = ""
    retries: int = 0
    started: float = 0.0
    output_key: str = ""

    @property
    def tail(self) -> str:
        """The last words of its stream."""
        return self.text[-TAIL_LENGTH:]


NOTHING: Final = NodePicture()
"""What a node shows that has not run."""


@dataclass(slots=True)
class LoopPicture:
    """One run of a loop.

    Attributes:
        total: How many iterations there are at the most.
        current: Index of the iteration under way, or of the last; -1 before the first.
        input_preview: The beginning of what that one started from.
        iterations: The iterations that have ended, each at its index: of an iterator's items, which end in any order,
            those before which none is still under way.
        out_of_turn: The other items that have ended, by index.
        cost_usd: US dollars so far; None where a price is unknown.
        exit_reason: Why it stopped; empty while it goes on.
        returned: Index of the iteration whose result it gave.
        converged: Whether something else than count, money or time ended it.
    """

    total: int = 0
    current: int = -1
    input_preview: str = ""
    iterations: list[LoopIterationCompleted] = field(default_factory=list[LoopIterationCompleted])
    out_of_turn: dict[int, LoopIterationCompleted] = field(default_factory=dict[int, LoopIterationCompleted])
    cost_usd: float | None = 0.0
    exit_reason: str = ""
    returned: int | None = None
    converged: bool = False


NO_LOOP: Final = LoopPicture()


class RunPicture:
    """What a run's events add up to.

    Args:
        parents: For each node in a loop's body, the innermost loop around it, in the document as it runs.

    Attributes:
        status: `running`, `paused`, `completed`, `failed` or `cancelled`.
        nodes: Executions by path (`loop[2].draft`).
        loops: Runs of loops by path.
        outputs: Named results.
        usage: Tokens used by nodes that are through.
        cost_usd: US dollars spent by them; None where a price is unknown.
        error: What failed and why; `remedy`: what to do; `failed_path`: the node.
        questions: What waits for a person, by the path of the node that asks, in the order in which they were asked.
        budget: The last budget warning: spent, limit, unit.
        models: Names of the models of this run.
    """

    def __init__(self, parents: Mapping[str, str]) -> None:
        self.parents = parents
        self.status = "running"
        self.nodes: dict[str, NodePicture] = {}
        self.loops: dict[str, LoopPicture] = {}
        self.outputs: Mapping[str, Value] = {}
        self.usage = Usage()
        self.cost_usd: float | None = 0.0
        self.duration_s: float | None = None
        self.started = 0.0
        self.error = ""
        self.remedy = ""
        self.failed_path = ""
        self.questions: dict[str, NodeWaiting] = {}
        self.budget: tuple[float, float, str] | None = None
        self.models: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the run has come to an end."""
        return self.status in {"completed", "failed", "cancelled"}

    def path_of(self, node_id: str, chosen: Mapping[str, int] | None = None) -> str:
        """The path of a node in the chosen iterations (by loop id), the latest where none is chosen."""
        loop = self.parents.get(node_id)
        if loop is None:
            return node_id
        around = self.path_of(loop, chosen)
        return f"{around}[{self._index_at(around, loop, chosen)}].{node_id}"

    def index_of(self, loop_id: str, chosen: Mapping[str, int] | None = None) -> int:
        """Which iteration of a loop is looked at: the chosen one; the latest where none is chosen or it never was."""
        return self._index_at(self.path_of(loop_id, chosen), loop_id, chosen)

    def _index_at(self, path: str, loop_id: str, chosen: Mapping[str, int] | None) -> int:
        latest = max(self.loops.get(path, NO_LOOP).current, 0)
        return min((chosen or {}).get(loop_id, latest), latest)

    def node(self, node_id: str, chosen: Mapping[str, int] | None = None) -> NodePicture:
        """The execution of a node in the chosen iterations."""
        return self.nodes.get(self.path_of(node_id, chosen), NOTHING)

    def loop(self, loop_id: str, chosen: Mapping[str, int] | None = None) -> LoopPicture:
        """The run of a loop in the chosen iterations of the loops around it."""
        return self.loops.get(self.path_of(loop_id, chosen), NO_LOOP)

    def apply(self, event: AnyEvent) -> str:
        """Take up one event; events come in order.

        Returns:
            The id of the node that it touched; empty where it is about the run.
        """
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
        return node_of(event.path)

    def _execution(self, path: str) -> NodePicture:
        return self.nodes.setdefault(path, NodePicture())


def _run_started(picture: RunPicture, event: RunStarted) -> None:
    picture.started = event.time
    picture.models = event.models


def _started(picture: RunPicture, event: NodeStarted) -> None:
    picture.nodes[event.path] = NodePicture(NodeState.RUNNING, inputs=event.inputs, started=event.time)


def _streaming(picture: RunPicture, event: NodeStreaming) -> None:
    execution = picture.nodes[event.path]
    execution.text += event.text


def _waiting(picture: RunPicture, event: NodeWaiting) -> None:
    picture.nodes[event.path].state = NodeState.ASKING
    picture.questions[event.path] = event


def _answered(picture: RunPicture, event: NodeAnswered) -> None:
    picture.nodes[event.path].state = NodeState.RUNNING
    _no_longer_asked(picture, event.path)


def _no_longer_asked(picture: RunPicture, path: str) -> None:
    """Take back the question of a node, or those in a loop that is over."""
    for asked in [asked for asked in picture.questions if asked == path or asked.startswith(f"{path}[")]:
        del picture.questions[asked]
        if asked != path:
            picture.nodes[asked].state = NodeState.SKIPPED


def _retrying(picture: RunPicture, event: NodeRetrying) -> None:
    execution = picture.nodes[event.path]
    execution.state = NodeState.RUNNING
    execution.retries, execution.text, execution.error = event.attempt, "", event.error
    _no_longer_asked(picture, event.path)


def _completed(picture: RunPicture, event: NodeCompleted) -> None:
    execution = picture.nodes[event.path]
    execution.state = NodeState.CACHED if event.cached else NodeState.DONE
    execution.outputs = event.outputs
    execution.calls = event.calls
    execution.warnings = event.warnings
    execution.error = event.error
    execution.output_key = event.output_key
    _spent(picture, execution, event, counts=event.node_type not in PAIR_BY_START)


def _failed(picture: RunPicture, event: NodeFailed) -> None:
    execution = picture.nodes[event.path]
    execution.state = NodeState.FAILED
    execution.calls = event.calls
    execution.error, execution.remedy = event.error, event.remedy
    _spent(picture, execution, event, counts=event.node_type not in PAIR_BY_START)


def _spent(picture: RunPicture, execution: NodePicture, event: NodeCompleted | NodeFailed, *, counts: bool) -> None:
    _no_longer_asked(picture, event.path)
    execution.usage, execution.cost_usd, execution.duration_s = event.usage, event.cost_usd, event.duration_s
    if not counts:  # what a loop spent was spent by the nodes in it
        return
    if event.usage is not None:
        picture.usage += event.usage
    known = picture.cost_usd is not None and event.cost_usd is not None
    picture.cost_usd = picture.cost_usd + event.cost_usd if known else None  # pyright: ignore[reportOptionalOperand] - both known


def _skipped(picture: RunPicture, event: NodeSkipped) -> None:
    picture.nodes[event.path] = NodePicture(NodeState.SKIPPED, warnings=(event.reason,))


def _iteration_started(picture: RunPicture, event: LoopIterationStarted) -> None:
    if event.index == 0:
        _take_back(picture, event.path)
        picture.loops[event.path] = LoopPicture()
    loop = picture.loops[event.path]
    loop.current, loop.total, loop.input_preview = event.index, event.total, event.input_preview


def _take_back(picture: RunPicture, path: str) -> None:
    """Forget what a loop did before it began anew."""
    if path in picture.loops:
        for told in (picture.nodes, picture.loops, picture.questions):
            for inner in [inner for inner in told if inner.startswith(f"{path}[")]:
                del told[inner]


def _iteration_completed(picture: RunPicture, event: LoopIterationCompleted) -> None:
    loop = picture.loops[event.path]
    loop.out_of_turn[event.index] = event
    while (following := loop.out_of_turn.pop(len(loop.iterations), None)) is not None:
        loop.iterations.append(following)
    known = loop.cost_usd is not None and event.cost_usd is not None
    loop.cost_usd = loop.cost_usd + event.cost_usd if known else None  # pyright: ignore[reportOptionalOperand] - both known


def _loop_completed(picture: RunPicture, event: LoopCompleted) -> None:
    loop = picture.loops.setdefault(event.path, LoopPicture())
    loop.exit_reason, loop.returned, loop.converged = event.exit_reason, event.returned, event.converged


def _budget(picture: RunPicture, event: BudgetWarning) -> None:
    picture.budget = (event.spent, event.limit, event.unit)


def _paused(picture: RunPicture, _event: RunPaused) -> None:
    picture.status = "paused"


def _resumed(picture: RunPicture, _event: RunResumed) -> None:
    picture.status = "running"


def _run_ended(picture: RunPicture, event: RunCompleted | RunFailed | RunCancelled) -> None:
    picture.status = event.type.rpartition(".")[2]
    picture.outputs = event.outputs
    picture.usage, picture.cost_usd, picture.duration_s = event.usage, event.cost_usd, event.duration_s
    if isinstance(event, RunFailed):
        picture.error, picture.remedy, picture.failed_path = event.error, event.remedy, event.node
    picture.questions.clear()
    for execution in picture.nodes.values():  # cancelled in mid-work, a node tells no end of its own
        if execution.state in {NodeState.RUNNING, NodeState.ASKING}:
            execution.state = NodeState.SKIPPED


_HANDLERS: dict[type[AnyEvent], Any] = {
    RunStarted: _run_started,
    NodeStarted: _started,
    NodeStreaming: _streaming,
    NodeWaiting: _waiting,
    NodeAnswered: _answered,
    NodeRetrying: _retrying,
    NodeCompleted: _completed,
    NodeFailed: _failed,
    NodeSkipped: _skipped,
    LoopIterationStarted: _iteration_started,
    LoopIterationCompleted: _iteration_completed,
    LoopCompleted: _loop_completed,
    BudgetWarning: _budget,
    RunPaused: _paused,
    RunResumed: _resumed,
    RunCompleted: _run_ended,
    RunFailed: _run_ended,
    RunCancelled: _run_ended,
}
