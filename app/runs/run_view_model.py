"""A run as the window shows it: the state of the run, seen from the iterations that a person has chosen. No Qt here.

A node in a loop has an execution in each iteration, under a path of its own. The view model finds the path of a node
from its id and the chosen iterations. Everything else it selects from the engine's `RunState`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from engine.models.protocol import Usage
from engine.run_state.reducer import apply
from engine.run_state.result import run_outputs
from engine.run_state.state import LoopExecution, NodeExecution, NodeState, RunState, RunStatus

if TYPE_CHECKING:
    from engine.events import AnyEvent, NodeWaiting
    from engine.plan.partial_run import Part
    from engine.plan.structure import Structure
    from engine.values import Value

INTERRUPTED: Final = RunStatus.INTERRUPTED.value
NO_NODE: Final = NodeExecution()
"""The execution of a node that has not run."""
NOT_REACHED: Final = NodeExecution(state=NodeState.CANCELLED)
"""The execution of a node that did not run because the run was stopped."""
NO_LOOP: Final = LoopExecution()
"""The execution of a loop that has not run."""
_INDEX: Final = re.compile(r"\[\d+\]")
_ITERATIONS: Final = re.compile(r"(?:\w+\[\d+\]\.)*")
_STATUS_OF_SUBFLOW: Final = {
    NodeState.COMPLETED: "completed",
    NodeState.CACHED: "completed",
    NodeState.PINNED: "completed",
    NodeState.FAILED: "failed",
    NodeState.SKIPPED: "cancelled",
    NodeState.CANCELLED: "cancelled",
}


def node_of(path: str) -> str:
    """The id of the document's own node at a path: `draft` for `loop[2].draft`, `part` for what is in a subflow."""
    return steps_of(path)[0]


@lru_cache(maxsize=4_096)  # each event of a run, and each look at it, names the same places again
def steps_of(path: str) -> tuple[str, str]:
    """The document's own node at a path, and the rest in its subflow: `part`, `loop.draft` for `part.loop[0].draft`."""
    around = _ITERATIONS.match(path)
    node, _, inside = path[around.end() if around is not None else 0 :].partition(".")
    return _INDEX.sub("", node), _INDEX.sub("", inside)


class RunViewModel:
    """A run, or the run of a subflow within it, as the window shows it.

    Args:
        parents: For each node in a loop's body, the innermost loop around it, in the document that ran.
        prefix: What precedes the paths of the document's own nodes: `part.` for the workflow in a subflow.
        state: The state of the run; None for a new one.

    Attributes:
        interruption: Why a run that has not ended has no process, or none here; empty for any other run.
        structure: The analyzed document as it ran, if known.
        origin: Which earlier run this is, such as `Run of today, 14:03`; empty for one that started here.
    """

    def __init__(self, parents: Mapping[str, str], prefix: str = "", state: RunState | None = None) -> None:
        self.parents = parents
        self.prefix = prefix
        self.state = RunState() if state is None else state
        self.interruption = ""
        self.structure: Structure | None = None
        self.origin = ""
        self._part_nodes: tuple[Part, frozenset[str]] | None = None

    def takes_part(self, node_id: str) -> bool:
        """Whether the run is about a node: all nodes, or those of its part of the workflow."""
        part, structure = self.state.part, self.structure
        if part is None or structure is None or self.prefix or not structure.order:
            return True
        if self._part_nodes is None or self._part_nodes[0] != part:
            # The window shows its bars before it loads the node types.
            from engine.plan.dependencies import everything_in, part_nodes

            self._part_nodes = part, everything_in(structure, part_nodes(structure, part).all)
        return node_id in self._part_nodes[1]

    def apply(self, event: AnyEvent) -> str:
        """Change the state by the next event.

        Returns:
            The id of the node that it is about; empty for the run itself.
        """
        apply(self.state, event)
        return node_of(event.path)

    @property
    def nodes(self) -> dict[str, NodeExecution]:
        """The executions of nodes, by path (`loop[2].draft`)."""
        return self.state.nodes

    @property
    def loops(self) -> dict[str, LoopExecution]:
        """The executions of loops, by path."""
        return self.state.loops

    @property
    def questions(self) -> dict[str, NodeWaiting]:
        """The nodes that wait for a person, by path, the oldest first."""
        return self.state.questions

    @property
    def status(self) -> str:
        """`running`, `paused`, `completed`, `failed`, `cancelled`, or `interrupted` where there is no process."""
        return INTERRUPTED if self.interruption and not self.state.is_over else self.state.phase.value

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.status in {"completed", "failed", "cancelled", INTERRUPTED}

    @property
    def _figures(self) -> RunState | NodeExecution:
        """What has the results, cost and times: the run, or the node of a subflow."""
        return self.state

    @property
    def outputs(self) -> Mapping[str, Value]:
        """Named results; of a partial run without any, the outputs of its node."""
        if self.prefix or self.structure is None:
            return self._figures.outputs
        return run_outputs(self.state, self.structure)

    @property
    def usage(self) -> Usage:
        """Tokens used."""
        return self.state.usage

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None where a price is unknown."""
        return self._figures.cost_usd

    @property
    def duration_s(self) -> float | None:
        """Seconds; None before its end."""
        return self._figures.duration_s

    def running_s(self, now: float) -> float:
        """Seconds that it has been running, without the time between a stop and its resume."""
        return self.state.active_until(now)

    @property
    def error(self) -> str:
        """What failed and why, or what interrupted it."""
        return self._figures.error or self.interruption

    @property
    def remedy(self) -> str:
        """What to do about the error."""
        return self._figures.remedy

    def path_of(self, node_id: str, chosen: Mapping[str, int] | None = None) -> str:
        """The path of a node in the chosen iterations (by loop id), the latest where none is chosen."""
        loop = self.parents.get(node_id)
        if loop is None:
            return f"{self.prefix}{node_id}"
        around = self.path_of(loop, chosen)
        return f"{around}[{self._index_at(around, loop, chosen)}].{node_id}"

    def index_of(self, loop_id: str, chosen: Mapping[str, int] | None = None) -> int:
        """The chosen iteration of a loop; the latest where none is chosen or it never started."""
        return self._index_at(self.path_of(loop_id, chosen), loop_id, chosen)

    def _index_at(self, path: str, loop_id: str, chosen: Mapping[str, int] | None) -> int:
        latest = max(self.loops.get(path, NO_LOOP).current, 0)
        return min((chosen or {}).get(loop_id, latest), latest)

    def node(self, node_id: str, chosen: Mapping[str, int] | None = None) -> NodeExecution:
        """The execution of a node in the chosen iterations."""
        execution = self.nodes.get(self.path_of(node_id, chosen))
        if execution is not None:
            return execution
        is_stopped = self.state.phase is RunStatus.CANCELLED and self.takes_part(node_id)
        return NOT_REACHED if is_stopped else NO_NODE

    def loop(self, loop_id: str, chosen: Mapping[str, int] | None = None) -> LoopExecution:
        """The execution of a loop in the chosen iterations of the loops around it."""
        return self.loops.get(self.path_of(loop_id, chosen), NO_LOOP)

    def levels(self, loops: Iterable[str], chosen: Mapping[str, int] | None = None) -> list[str]:
        """The levels (`""`, `loop[2]`) that are shown in the chosen iterations of these loops, the outermost first."""
        started = (loop for loop in loops if self.loop(loop, chosen).current >= 0)
        own = self.prefix.removesuffix(".")
        return [own, *(f"{self.path_of(loop, chosen)}[{self.index_of(loop, chosen)}]" for loop in started)]


class SubflowViewModel(RunViewModel):
    """One execution of a subflow, as if it were a run: its results and figures are those of its node.

    Args:
        around: The run, or the subflow around this one.
        path: The path of the subflow in the run: `part`, `loop[2].part`.
        parents: For each node in a loop's body of the workflow in the subflow, the innermost loop around it.
    """

    def __init__(self, around: RunViewModel, path: str, parents: Mapping[str, str]) -> None:
        super().__init__(parents, f"{path}.", around.state)
        self.around, self.path = around, path

    @property
    def execution(self) -> NodeExecution:
        """The execution of the subflow itself."""
        return self.nodes.get(self.path, NO_NODE)

    @property
    def _figures(self) -> NodeExecution:
        return self.execution

    @property
    def status(self) -> str:
        """The status of the subflow; where it has not ended, that of the run."""
        unfinished = "cancelled" if self.around.status == "completed" else self.around.status
        return _STATUS_OF_SUBFLOW.get(self.execution.state, unfinished)

    @property
    def usage(self) -> Usage:
        """Tokens used, as its node reports them."""
        return self.execution.usage or Usage()

    def running_s(self, now: float) -> float:
        """Seconds since its node started."""
        return max(now - self.execution.started, 0.0) if self.execution.started else 0.0
