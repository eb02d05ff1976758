"""The result of a run, as `run` and `Run.result` return it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from engine.errors import EngineError
from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeRetrying,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunNotKept,
    RunPaused,
    RunResumed,
    RunStarted,
)
from engine.models.protocol import Usage
from engine.nodes.spec import ITERATOR
from engine.run_state.state import LoopExecution, NodeExecution, RunState
from engine.values import Value

if TYPE_CHECKING:
    from engine.plan.structure import Structure

Status = Literal["running", "completed", "failed", "cancelled"]

RESULT_EVENTS: Final[frozenset[type[AnyEvent]]] = frozenset(
    {
        RunStarted,
        LoopStarted,
        LoopIterationStarted,
        LoopIterationCompleted,
        LoopCompleted,
        NodeRetrying,
        BudgetWarning,
        RunNotKept,
        RunPaused,
        RunResumed,
        RunCompleted,
        RunFailed,
        RunCancelled,
    }
)
"""The types of events that are enough for the result of a run that has ended."""

_EVENT_FIELDS = ("type", "run_id", "seq", "time", "path")


def _fields_of(result: LoopResult | RunResult) -> dict[str, Any]:
    return {field.name: getattr(result, field.name) for field in fields(result)}


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The result of a loop.

    Attributes:
        iterations_run: How many iterations completed.
        exit_reason: The exit reason; empty before its end.
        converged: Whether something other than the count, money or time ended it.
        returned: Index of the iteration whose result is the output.
        cost_usd: US dollars; None where a price is unknown.
        warnings: Its own warnings.
        iterations: The completed iterations, in the order of their indices.
    """

    iterations_run: int = 0
    exit_reason: str = ""
    converged: bool = False
    returned: int | None = None
    cost_usd: float | None = 0.0
    warnings: tuple[str, ...] = ()
    # A notebook shows a result in a line, and asyncio creates such a line, of megabytes otherwise, whenever a run ends.
    iterations: list[LoopIterationCompleted] = field(default_factory=list[LoopIterationCompleted], repr=False)

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            **_fields_of(self),
            "warnings": list(self.warnings),
            "iterations": [_iteration_json(iteration) for iteration in self.iterations],
        }


def _iteration_json(iteration: LoopIterationCompleted) -> dict[str, Any]:
    return {key: value for key, value in iteration.to_json().items() if key not in _EVENT_FIELDS}


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    Attributes:
        run_id: The run.
        status: How it ended; `running` before.
        outputs: Named results; of a failed or cancelled run, those that were ready.
        loops: The result of each loop, by its path (`loop`, `outer[1].inner`).
        usage: Tokens used.
        cost_usd: US dollars; None where a price is unknown.
        error: What failed and why; empty where nothing did.
        remedy: What to do about it.
        fix: What the program offers for it, as in `EngineError`.
        node: Path of the node that failed.
        duration_s: Seconds.
        warnings: The warnings of the whole run, each with its place (`loop[2].draft: The reply was cut off.`).
    """

    run_id: str
    status: Status = "running"
    outputs: dict[str, Value] = field(default_factory=dict[str, Value])
    loops: dict[str, LoopResult] = field(default_factory=dict[str, LoopResult])
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    error: str = ""
    remedy: str = ""
    fix: str = ""
    node: str = ""
    duration_s: float = 0.0
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            **_fields_of(self),
            "loops": {path: loop.to_json() for path, loop in self.loops.items()},
            "usage": asdict(self.usage),
            "warnings": list(self.warnings),
        }


class RunError(EngineError):
    """A run failed or was cancelled; `result` is what there is of it."""

    def __init__(self, result: RunResult) -> None:
        super().__init__(result.error or "The run was stopped.", result.remedy, fix=result.fix)
        self.result = result


def result_of(state: RunState) -> RunResult:
    """The result of a run in this state (`Detail.LOOPS` or more)."""
    return RunResult(
        state.run_id,
        cast("Status", state.phase.value) if state.is_over else "running",
        dict(state.outputs),
        {path: loop_result(loop) for path, loop in state.loops.items()},
        state.usage,
        state.cost_usd,
        state.error,
        state.remedy,
        state.fix,
        state.failed_node,
        state.duration_s or 0.0,
        state.warnings.all,
    )


def part_node(state: RunState, structure: Structure) -> NodeExecution | None:
    """The node that a partial run is about, as it ran; None for other runs, and if it did not run.

    A node in a loop stands for the loop.

    Args:
        state: The state with the nodes of the outermost level.
        structure: The workflow as it ran.
    """
    if state.part is None:
        return None
    from engine.plan.dependencies import outermost  # slow, and few runs need it

    node = outermost(structure, state.part.node)
    body = structure.bodies.get(node)
    if body is not None and body.kind is ITERATOR:
        node = body.exit
    return state.nodes.get(node)


def part_outputs(state: RunState, structure: Structure) -> Mapping[str, Value]:
    """The outputs, by port, of the node that a partial run is about; empty for other runs. See `part_node`."""
    ran = part_node(state, structure)
    return ran.outputs if ran is not None else {}


def main_outputs(outputs: Mapping[str, Value]) -> Mapping[str, Value]:
    """The outputs of a node that people look at first: the port `output` alone if it has one."""
    return {"output": outputs["output"]} if "output" in outputs else outputs


def run_outputs(state: RunState, structure: Structure) -> Mapping[str, Value]:
    """The named results of a run; of a partial run without any, the main outputs of its node."""
    return state.outputs or main_outputs(part_outputs(state, structure))


def loop_result(loop: LoopExecution) -> LoopResult:
    """The result of a loop in this state."""
    return LoopResult(
        loop.iterations_run if loop.exit_reason else loop.completed,
        loop.exit_reason,
        loop.converged,
        loop.returned,
        loop.cost_usd,
        loop.warnings,
        list(loop.all_iterations),
    )
