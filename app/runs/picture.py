"""A picture of one run, as canvas and inspector show it: a fold of its events, each iteration kept. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.runs.executions import Executions, LoopPicture, NodePicture, NodeState, node_of
from engine.events import (
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
    NodeToolCalled,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.models.base import Usage
from engine.nodes.pairs import PAIR_BY_START
from engine.runner.warning_log import WarningLog
from engine.values import Value


class RunPicture(Executions):
    """What a run's events add up to.

    Args:
        parents: For each node in a loop's body, the innermost loop around it, in the document as it runs.
        around: What stands before the paths of the document's own nodes.

    Attributes:
        status: `running`, `paused`, `completed`, `failed`, `cancelled`, or `interrupted` where its process is gone.
        outputs: Named results.
        usage: Tokens used by nodes that are through.
        cost_usd: US dollars spent by them; None where a price is unknown.
        error: What failed and why; `remedy`: what to do; `failed_path`: the node.
        questions: What waits for a person, by the path of the node that asks, in the order in which they were asked.
        at_work: The paths of the nodes that have begun and not ended, in the order in which they began.
        budget: The last budget warning: spent, limit, unit.
        models: Names of the models of this run.
    """

    def __init__(self, parents: Mapping[str, str], around: str = "") -> None:
        super().__init__(parents, around)
        self.status = "running"
        self.outputs: Mapping[str, Value] = {}
        self.usage = Usage()
        self.cost_usd: float | None = 0.0
        self.duration_s: float | None = None
        self.started = 0.0
        self.error = ""
        self.remedy = ""
        self.failed_path = ""
        self.questions: dict[str, NodeWaiting] = {}
        self.at_work: dict[str, None] = {}
        self.budget: tuple[float, float, str] | None = None
        self.models: tuple[str, ...] = ()
        self.warnings = WarningLog()

    @property
    def is_over(self) -> bool:
        """Whether the run has come to an end."""
        return self.status in {"completed", "failed", "cancelled", "interrupted"}

    def apply(self, event: AnyEvent) -> str:
        """Take up one event; events come in order.

        Returns:
            The id of the node that it touched; empty where it is about the run.
        """
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
        self.warnings.take(event)
        return node_of(event.path)


def _run_started(picture: RunPicture, event: RunStarted) -> None:
    picture.started = event.time
    picture.models = event.models


def _started(picture: RunPicture, event: NodeStarted) -> None:
    picture.nodes[event.path] = NodePicture(NodeState.RUNNING, inputs=event.inputs, started=event.time)
    picture.at_work[event.path] = None


def _streaming(picture: RunPicture, event: NodeStreaming) -> None:
    execution = picture.nodes[event.path]
    execution.text += event.text


def _waiting(picture: RunPicture, event: NodeWaiting) -> None:
    picture.nodes[event.path].state = NodeState.ASKING
    picture.questions[event.path] = event


def _answered(picture: RunPicture, event: NodeAnswered) -> None:
    picture.nodes[event.path].state = NodeState.RUNNING
    picture.questions.pop(event.path, None)


def _stopped_in(picture: RunPicture, *around: str) -> None:
    """What is still at work inside something that is over was stopped in mid-work, and tells no end of its own."""
    for path in [path for path in picture.at_work if path.startswith(around)]:
        picture.nodes[path].state = NodeState.STOPPED
        picture.questions.pop(path, None)
        del picture.at_work[path]


def _retrying(picture: RunPicture, event: NodeRetrying) -> None:
    execution = picture.nodes[event.path]
    execution.state = NodeState.RUNNING
    execution.retries, execution.text, execution.error = event.attempt, "", event.error
    if not event.goes_on:
        execution.tool_calls = ()
    picture.questions.pop(event.path, None)
    _stopped_in(picture, f"{event.path}[")
    _forget(picture, f"{event.path}.")  # a subflow begins anew


def _tool_called(picture: RunPicture, event: NodeToolCalled) -> None:
    execution = picture.nodes[event.path]
    execution.tool_calls = (*execution.tool_calls, event)
    execution.text = ""  # what is said from now on is said knowing what the tool gave


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
    execution.calls, execution.warnings = event.calls, event.warnings
    execution.error, execution.remedy = event.error, event.remedy
    _spent(picture, execution, event, counts=event.node_type not in PAIR_BY_START)


def _spent(picture: RunPicture, execution: NodePicture, event: NodeCompleted | NodeFailed, *, counts: bool) -> None:
    picture.questions.pop(event.path, None)
    picture.at_work.pop(event.path, None)
    _stopped_in(picture, f"{event.path}[", f"{event.path}.")
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
        if event.path in picture.loops:
            _forget(picture, f"{event.path}[")
        picture.loops[event.path] = LoopPicture()
    loop = picture.loops[event.path]
    loop.current, loop.total, loop.input_preview = event.index, event.total, event.input_preview


def _forget(picture: RunPicture, around: str) -> None:
    """Forget what lies inside a loop or a subflow that begins anew."""
    for told in (picture.nodes, picture.loops, picture.questions, picture.at_work):
        for inner in [inner for inner in told if inner.startswith(around)]:
            del told[inner]


def _iteration_completed(picture: RunPicture, event: LoopIterationCompleted) -> None:
    _stopped_in(picture, f"{event.path}[{event.index}].")
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
    _stopped_in(picture, "")


_HANDLERS: dict[type[AnyEvent], Any] = {
    RunStarted: _run_started,
    NodeStarted: _started,
    NodeStreaming: _streaming,
    NodeWaiting: _waiting,
    NodeAnswered: _answered,
    NodeToolCalled: _tool_called,
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
