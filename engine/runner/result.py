"""What a run came to: a fold of its events."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, Literal

from engine.errors import EngineError
from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    NodeRetrying,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunNotKept,
    RunResumed,
)
from engine.models.base import Usage
from engine.runner.warning_log import WARNING_KINDS, WarningLog
from engine.values import Value


@dataclass(slots=True)
class LoopResult:
    """What one loop came to.

    Attributes:
        iterations_run: How many iterations ended.
        exit_reason: Why it stopped; empty while it has not.
        converged: Whether something else than count, money or time ended it.
        returned: Index of the iteration whose result it gave.
        cost_usd: US dollars; None where a price is unknown.
        warnings: What a person should know although it went on.
        iterations: The iterations that ended, in the order of their indices; an iterator's may end in any other order.
    """

    iterations_run: int = 0
    exit_reason: str = ""
    converged: bool = False
    returned: int | None = None
    cost_usd: float | None = 0.0
    warnings: tuple[str, ...] = ()
    iterations: list[LoopIterationCompleted] = field(default_factory=list[LoopIterationCompleted])

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "iterations_run": self.iterations_run,
            "exit_reason": self.exit_reason,
            "converged": self.converged,
            "returned": self.returned,
            "cost_usd": self.cost_usd,
            "warnings": list(self.warnings),
            "iterations": [_iteration_json(iteration) for iteration in self.iterations],
        }


_NOT_OF_THE_ITERATION = ("type", "run_id", "seq", "time", "path")


def _iteration_json(iteration: LoopIterationCompleted) -> dict[str, Any]:
    return {key: value for key, value in iteration.to_json().items() if key not in _NOT_OF_THE_ITERATION}


@dataclass(slots=True)
class RunResult:
    """What a run came to.

    Attributes:
        run_id: The run.
        status: Whether it came to its end, failed or was stopped; `running` before.
        outputs: Named results; of a run that failed or was stopped, those that had come out before.
        loops: What each loop came to, by its path (`loop`, `outer[1].inner`).
        usage: Tokens used.
        cost_usd: US dollars; None where a price is unknown.
        error: What failed and why; empty where nothing did.
        remedy: What to do about it.
        node: Path of the node that failed.
        duration_s: Seconds.
        warning_log: Collects the warnings.
    """

    run_id: str
    status: Literal["running", "completed", "failed", "cancelled"] = "running"
    outputs: dict[str, Value] = field(default_factory=dict[str, Value])
    loops: dict[str, LoopResult] = field(default_factory=dict[str, LoopResult])
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    error: str = ""
    remedy: str = ""
    node: str = ""
    duration_s: float = 0.0
    warning_log: WarningLog = field(default_factory=WarningLog, repr=False, compare=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the whole run, each with its place (`loop[2].draft: The reply was cut off.`)."""
        return self.warning_log.all

    @property
    def fold(self) -> dict[type[AnyEvent], Callable[[Any], None]]:
        """By event type, how this result takes up an event; events come in order.

        Of a run that has not ended, the warnings of nodes outside of finished iterations are missing.
        """
        return {event_type: partial(handler, self) for event_type, handler in _HANDLERS.items()}

    @property
    def full_fold(self) -> dict[type[AnyEvent], Callable[[Any], None]]:
        """The same with the events of nodes, whose warnings then count at once."""
        return {**dict.fromkeys(WARNING_KINDS, self.warning_log.take), **self.fold}

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "outputs": self.outputs,
            "loops": {path: loop.to_json() for path, loop in self.loops.items()},
            "usage": {
                "input_tokens": self.usage.input_tokens,
                "output_tokens": self.usage.output_tokens,
                "exact": self.usage.exact,
            },
            "cost_usd": self.cost_usd,
            "error": self.error,
            "remedy": self.remedy,
            "node": self.node,
            "duration_s": self.duration_s,
            "warnings": list(self.warnings),
        }


class RunError(EngineError):
    """A run that failed or was stopped; `result` is what it came to all the same."""

    def __init__(self, result: RunResult) -> None:
        super().__init__(result.error or "The run was stopped.", result.remedy)
        self.result = result


def _iteration_started(result: RunResult, event: LoopIterationStarted) -> None:
    result.warning_log.take(event)
    if event.index == 0:  # a loop that is attempted anew starts its history anew
        if event.path in result.loops:
            _take_back(result, f"{event.path}[")
        result.loops[event.path] = LoopResult()


def _node_retrying(result: RunResult, event: NodeRetrying) -> None:
    result.warning_log.take(event)
    if not event.goes_on:
        _take_back(result, f"{event.path}.")  # a subflow that is attempted anew


def _take_back(result: RunResult, inside: str) -> None:
    for path in [path for path in result.loops if path.startswith(inside)]:
        del result.loops[path]


def _iteration_completed(result: RunResult, event: LoopIterationCompleted) -> None:
    result.warning_log.take(event)
    insort(result.loops.setdefault(event.path, LoopResult()).iterations, event, key=attrgetter("index"))


def _loop_completed(result: RunResult, event: LoopCompleted) -> None:
    result.warning_log.take(event)
    loop = result.loops.setdefault(event.path, LoopResult())
    loop.iterations_run = event.iterations_run
    loop.exit_reason = event.exit_reason
    loop.converged = event.converged
    loop.returned = event.returned
    loop.cost_usd = event.cost_usd
    loop.warnings = event.warnings


def _warned(result: RunResult, event: BudgetWarning | RunNotKept) -> None:
    result.warning_log.take(event)


def _ended(result: RunResult, event: RunCompleted | RunFailed | RunCancelled) -> None:
    result.warning_log.take(event)
    result.outputs = event.outputs
    result.usage = event.usage
    result.cost_usd = event.cost_usd
    result.duration_s = event.duration_s
    if isinstance(event, RunCompleted):
        result.status = "completed"
    elif isinstance(event, RunCancelled):
        result.status = "cancelled"
    else:
        result.status = "failed"
        result.error, result.remedy, result.node = event.error, event.remedy, event.node


def _resumed(result: RunResult, _event: RunResumed) -> None:
    result.status, result.error, result.remedy, result.node = "running", "", "", ""


_HANDLERS: dict[type[AnyEvent], Callable[[RunResult, Any], None]] = {
    RunResumed: _resumed,
    NodeRetrying: _node_retrying,
    LoopIterationStarted: _iteration_started,
    LoopIterationCompleted: _iteration_completed,
    LoopCompleted: _loop_completed,
    BudgetWarning: _warned,
    RunNotKept: _warned,
    RunCompleted: _ended,
    RunFailed: _ended,
    RunCancelled: _ended,
}
