"""What a run told of each of its nodes and loops, and where to find it in the iterations that a person looks at.

No Qt here. A node of a loop has a state of its own in each iteration, and stands under a path of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from engine.values import Value

if TYPE_CHECKING:
    from engine.events import LoopIterationCompleted, NodeToolCalled
    from engine.models.base import Usage
    from engine.nodes.spec import ModelCall

TAIL_LENGTH: Final = 160
_INDEX: Final = re.compile(r"\[\d+\]")
_ITERATIONS: Final = re.compile(r"(?:\w+\[\d+\]\.)*")


def node_of(path: str) -> str:
    """The id of the document's own node at a path: `draft` for `loop[2].draft`, `part` for what lies in a subflow."""
    return steps_of(path)[0]


@lru_cache(maxsize=4_096)  # each event of a run, and each look at it, names the same places again
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
    STOPPED = "stopped"
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
        tool_calls: The tools that it has called, in order.
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
    tool_calls: tuple[NodeToolCalled, ...] = ()
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
    iterations: list[LoopIterationCompleted] = field(default_factory=list)
    out_of_turn: dict[int, LoopIterationCompleted] = field(default_factory=dict)
    cost_usd: float | None = 0.0
    exit_reason: str = ""
    returned: int | None = None
    converged: bool = False

    def ended(self, index: int) -> LoopIterationCompleted | None:
        """The iteration of that index; None where it has not ended."""
        return self.iterations[index] if 0 <= index < len(self.iterations) else self.out_of_turn.get(index)


NO_LOOP: Final = LoopPicture()


class Executions:
    """Executions by their paths, and the way from a node's id to its path.

    Args:
        parents: For each node in a loop's body, the innermost loop around it, in the document as it runs.
        around: What stands before the paths of the document's own nodes: `part.` for the workflow in a subflow.

    Attributes:
        nodes: Executions by path (`loop[2].draft`).
        loops: Runs of loops by path.
    """

    def __init__(self, parents: Mapping[str, str], around: str = "") -> None:
        self.parents = parents
        self.around = around
        self.nodes: dict[str, NodePicture] = {}
        self.loops: dict[str, LoopPicture] = {}

    def path_of(self, node_id: str, chosen: Mapping[str, int] | None = None) -> str:
        """The path of a node in the chosen iterations (by loop id), the latest where none is chosen."""
        loop = self.parents.get(node_id)
        if loop is None:
            return f"{self.around}{node_id}"
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

    def levels(self, loops: Iterable[str], chosen: Mapping[str, int] | None = None) -> list[str]:
        """The levels (`""`, `loop[2]`) that are seen in the chosen iterations of these loops, the outermost first."""
        begun = (loop for loop in loops if self.loop(loop, chosen).current >= 0)
        own = self.around.removesuffix(".")
        return [own, *(f"{self.path_of(loop, chosen)}[{self.index_of(loop, chosen)}]" for loop in begun)]
