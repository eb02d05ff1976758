"""Status of nodes, edges and loops during a run, selected from the run's view model. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from app.canvas.edge_item import EdgeFlow
from app.canvas.loop_region_label import LoopViewModel
from app.canvas.node_status_item import LoopProgress, NodeStatus
from app.runs.loop_status import best_so_far
from app.runs.run_view_model import RunViewModel
from engine.document.model import Node
from engine.events import NodeWaiting
from engine.formatting import format_count, format_duration, format_money, format_score
from engine.nodes.pairs import ITERATOR, PAIR_BY_START, is_body_port
from engine.nodes.spec import AnySpec
from engine.nodes.subflow import SUBFLOW
from engine.plan.structure import Structure
from engine.run_state.state import NodeExecution, NodeState
from engine.runner.iterator_run import FAILED
from engine.values import Value

PREVIEW: Final = 160
"""Maximum length of a value's preview on a card."""

_WITHOUT_OUTPUT: Final = frozenset({NodeState.SKIPPED, NodeState.CANCELLED, NodeState.INTERRUPTED})
_FINISHED: Final = frozenset({NodeState.COMPLETED, NodeState.CACHED})


class RunDecorations:
    """Decorations for one run and the selected iterations."""

    def __init__(self, picture: RunViewModel, structure: Structure, chosen: Mapping[str, int]) -> None:
        self._picture, self._structure, self._chosen = picture, structure, chosen

    def card(self, node: Node, spec: AnySpec | None) -> NodeStatus:
        """Return the status of a node."""
        if node.type == "exit":
            return self._exit(node.id)
        execution = self._picture.node(node.id, self._chosen)
        state: NodeState | None = execution.state
        if state is NodeState.PENDING and self._picture.is_over:
            state = None
        elif state is NodeState.RUNNING and node.type == SUBFLOW and self._asked(node.id) is not None:
            state = NodeState.WAITING
        note = _duration(execution.duration_s) if state in _FINISHED or state is NodeState.FAILED else ""
        bar = self._bar(node.id) if node.type in PAIR_BY_START else None
        if bar is not None:
            note = self._counter(node, bar) if state is NodeState.RUNNING else note
            note = " · ".join([*([note] if note else []), *([f"{bar.failed} failed"] if bar.failed else [])])
        elif execution.retries and state is NodeState.RUNNING:
            note = f"attempt {execution.retries + 1}"
        if execution.warnings and state in _FINISHED:
            note = " · ".join([*([note] if note else []), format_count(len(execution.warnings), "warning")])
        return NodeStatus(state, note, self._line(node, spec, execution), bar)

    def _counter(self, node: Node, bar: LoopProgress) -> str:
        """Return the counter of a loop's current iteration, or of an iterator's completed items."""
        at = bar.done + bar.failed if node.type == ITERATOR.start else max(self._shown(node.id), 0) + 1
        return f"{at} / {bar.total}" if bar.total else ""

    def _bar(self, loop_id: str) -> LoopProgress | None:
        """Return the progress of a loop, or None before it has begun."""
        loop = self._picture.loop(loop_id, self._chosen)
        if loop.current < 0:
            return None
        ended, failed = len(loop.iterations) + len(loop.ahead), len(self._failed(loop_id))
        return LoopProgress(ended - failed, failed, ended if loop.exit_reason else max(loop.total, ended))

    def _failed(self, loop_id: str) -> frozenset[int]:
        """Return the failed items of an iterator; empty for a loop."""
        if self._unit(loop_id) != "item":
            return frozenset()
        loop = self._picture.loop(loop_id, self._chosen)
        ended = (*loop.iterations, *loop.ahead.values())
        return frozenset(item.index for item in ended if item.branch == FAILED)

    def _unit(self, loop_id: str) -> str:
        body = self._structure.bodies.get(loop_id)
        return "item" if body is not None and body.kind is ITERATOR else "iteration"

    def loop(self, loop_id: str, title: str) -> LoopViewModel:
        """Return the content of a loop's label."""
        loop = self._picture.loop(loop_id, self._chosen)
        if loop.current < 0:
            return LoopViewModel(title)
        shown = self._shown(loop_id)
        unit = self._unit(loop_id)
        return LoopViewModel(
            title,
            f"{unit} {shown + 1} of {loop.total}" if loop.total else f"{unit} {shown + 1}",
            loop.total,
            len(loop.iterations),
            loop.current,
            shown,
            loop.returned,
            format_money(loop.cost_usd) if loop.cost_usd else "",
            is_live=not loop.exit_reason and not self._picture.is_over,
            unit=unit,
            ended_ahead=frozenset(loop.ahead),
            failed=self._failed(loop_id),
        )

    def flow(self, source: str, port: str) -> EdgeFlow:
        """Return what the edges from a port did."""
        nodes = self._structure.workflow.nodes_by_id
        kind = nodes[source].type if source in nodes else ""
        loop = self._structure.loop_of.get(source) if kind == "exit" else None
        if loop is not None:
            ended = self._picture.node(loop, self._chosen).state
            return (
                EdgeFlow.CARRIED if ended in _FINISHED else EdgeFlow.DEAD if ended in _WITHOUT_OUTPUT else EdgeFlow.NONE
            )
        execution = self._picture.node(source, self._chosen)
        if is_body_port(kind, port) and self._picture.loop(source, self._chosen).current >= 0:
            return EdgeFlow.CARRIED
        if execution.state in _WITHOUT_OUTPUT:
            return EdgeFlow.DEAD
        if execution.state not in _FINISHED:
            return EdgeFlow.NONE
        return EdgeFlow.CARRIED if port in execution.outputs else EdgeFlow.DEAD

    def state(self, node_id: str) -> NodeState:
        """Return the state of a node in the selected iterations."""
        return self._picture.node(node_id, self._chosen).state

    def _exit(self, node_id: str) -> NodeStatus:
        """Return the status of an exit, which follows its loop's iteration."""
        loop_id = self._structure.loop_of.get(node_id)
        if loop_id is None:
            return NodeStatus()
        loop, shown = self._picture.loop(loop_id, self._chosen), self._shown(loop_id)
        if 0 <= shown < len(loop.iterations):
            return NodeStatus(NodeState.COMPLETED, "", preview(loop.iterations[shown].result))
        state = self._picture.node(loop_id, self._chosen).state
        over = self._picture.is_over and state in {NodeState.PENDING, NodeState.RUNNING}
        return NodeStatus(None if over else NodeState.PENDING if state is NodeState.RUNNING else state)

    def _line(self, node: Node, spec: AnySpec | None, execution: NodeExecution) -> str:
        if execution.state in {NodeState.RUNNING, NodeState.WAITING}:
            question = self._asked(node.id)
            return preview(question.message) if question is not None else self._running_line(node, execution)
        if execution.error and execution.state is not NodeState.SKIPPED:
            return preview(execution.error)
        if execution.state not in _FINISHED or node.type in PAIR_BY_START:
            return ""
        outputs = dict(execution.outputs)
        if spec is None or not outputs:
            return ""
        return preview(spec.recorded(outputs))

    def _asked(self, node_id: str) -> NodeWaiting | None:
        """Return the open question of a node, or of a node in its subflow."""
        path = self._picture.path_of(node_id, self._chosen)
        questions = self._picture.questions.items()
        return next((asked for place, asked in questions if place == path or place.startswith(f"{path}.")), None)

    def _running_line(self, node: Node, execution: NodeExecution) -> str:
        """Return the best iteration of a loop, the last tool call of an agent, or the end of the stream."""
        best = best_so_far(self._picture.loop(node.id, self._chosen)) if node.type in PAIR_BY_START else None
        if best is not None:
            return f"best so far: iteration {best.index + 1}, score {best.score:g}"
        if node.type == SUBFLOW:
            return self._running_in_subflow(f"{self._picture.path_of(node.id, self._chosen)}.")
        if execution.tool_calls and not execution.text:
            return f"called {execution.tool_calls[-1].tool}"
        return " ".join(execution.text[-PREVIEW:].split())

    def _running_in_subflow(self, around: str) -> str:
        """Return the running node of a subflow with its iteration."""
        nodes, loops = self._picture.nodes, self._picture.loops
        for path in reversed(nodes):
            if path.startswith(around) and nodes[path].state is NodeState.RUNNING and path not in loops:
                loop = loops.get(path.rpartition("[")[0])
                turn = f" · {loop.current + 1} of {loop.total}" if loop is not None else ""
                return f"{path.rpartition('.')[2]}{turn}"
        return ""

    def _shown(self, loop_id: str) -> int:
        has_begun = self._picture.loop(loop_id, self._chosen).current >= 0
        return self._picture.index_of(loop_id, self._chosen) if has_begun else -1


def with_problems(state: NodeStatus, errors: int, warnings: int) -> NodeStatus:
    """Add the number of problems to a status."""
    return replace(state, errors=errors, warnings=warnings)


def preview(value: Value) -> str:
    """Return a short preview of a value without formatting all of a large one."""
    if isinstance(value, str):
        return " ".join(value[: 2 * PREVIEW].split())[:PREVIEW]
    if value is None:
        return ""
    if isinstance(value, list):
        return format_count(len(value), "entry", "entries")
    if isinstance(value, dict):
        if isinstance(value.get("selected_branch"), str):
            return f"→ {value['selected_branch']}"
        return f"{{{', '.join(list(value)[:8])}}}"[:PREVIEW]
    return (
        str(value).lower()
        if isinstance(value, bool)
        else format_score(value)
        if isinstance(value, float)
        else str(value)
    )


def _duration(duration_s: float | None) -> str:
    """Format a node's duration; empty if it rounds to zero."""
    return format_duration(duration_s) if duration_s is not None and duration_s >= 0.05 else ""
