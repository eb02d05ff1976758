"""Show a run on the canvas: status of nodes, edges and loops, and animations.

One timer drives all animations and stops when nothing moves. Changes of a batch of events are collected and shown at
the next tick, so that many events cost little more than a few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, QPointF, QTimer, Signal

from app.canvas.document_view import DocumentView
from app.canvas.edge_item import EdgeAnimation, EdgeFlow
from app.canvas.loop_region import LoopViewModel
from app.canvas.node_item import CanvasPort, NodeItem
from app.canvas.node_status_item import LoopProgress, NodeStatus, NodeStatusItem
from app.canvas.viewer import CanvasViewer
from app.runs.loop_status import best_so_far
from app.runs.run_view_model import RunViewModel
from app.session import MAX_NODES_AT_ONCE, Session
from app.worker import Worker
from engine.document.model import Node
from engine.document.problems import Severity
from engine.events import NodeWaiting
from engine.formatting import format_count, format_duration, format_money, format_score
from engine.nodes.spec import ITERATOR, LOOP, PAIR_BY_START, AnySpec, is_body_port
from engine.nodes.subflow import SUBFLOW
from engine.plan.dependencies import everything_in, stale_nodes
from engine.plan.structure import Structure
from engine.run_state.state import FINISHED, NodeExecution, NodeState
from engine.runner.iterator_run import FAILED
from engine.values import Value, to_text

PREVIEW: Final = 160
"""Maximum length of a value's preview on a card."""

TIP: Final = 600
"""Maximum length of a value's preview in a tooltip."""

_WITHOUT_OUTPUT: Final = frozenset({NodeState.SKIPPED, NodeState.CANCELLED, NodeState.INTERRUPTED})


class RunDecorations:
    """What to show on cards, edges and loop labels for one run and the selected iterations."""

    def __init__(
        self, run: RunViewModel, structure: Structure, chosen: Mapping[str, int], stale: Collection[str] = ()
    ) -> None:
        self._run, self._structure, self._chosen, self._stale = run, structure, chosen, stale

    def card(self, node: Node, spec: AnySpec | None) -> NodeStatus:
        """Return the status of a node."""
        if node.type == "exit":
            return self._exit(node.id)
        execution = self._run.node(node.id, self._chosen)
        state: NodeState | None = execution.state
        if state is NodeState.PENDING and (self._run.is_over or not self._run.takes_part(node.id)):
            state = None
        elif state is NodeState.RUNNING and node.type == SUBFLOW and self._asked(node.id) is not None:
            state = NodeState.WAITING
        bar = self._bar(node.id) if node.type in PAIR_BY_START else None
        notes: list[str] = []
        if state in FINISHED or state is NodeState.FAILED:
            notes.append(_duration(execution.duration_s))
        elif state is NodeState.RUNNING and bar is not None:
            notes.append(self._counter(node, bar))
        elif state is NodeState.RUNNING and execution.retries:
            notes.append(f"attempt {execution.retries + 1}")
        if bar is not None and bar.failed:
            notes.append(f"{bar.failed} failed")
        if execution.warnings and state in FINISHED:
            notes.append(format_count(len(execution.warnings), "warning"))
        line, is_stale = self._line(node, spec, execution), state in FINISHED and node.id in self._stale
        return NodeStatus(state, " · ".join(filter(None, notes)), line, bar, is_stale=is_stale)

    def collapsed_card(self, node: Node, spec: AnySpec | None) -> NodeStatus:
        """Return the status of a collapsed loop: that of the loop, what a node in it waits for, and the result."""
        status, body = self.card(node, spec), self._structure.bodies[node.id]
        waiting = [member for member in body.nodes if self.state(member) is NodeState.WAITING]
        if status.state is NodeState.RUNNING and waiting:
            question = self._asked(waiting[0])
            return replace(status, state=NodeState.WAITING, line=preview(question.message) if question else "")
        return replace(status, line=status.line or self._exit(body.exit).line)

    def _counter(self, node: Node, bar: LoopProgress) -> str:
        """Return the counter of a loop's current iteration, or of an iterator's completed items."""
        at = bar.done + bar.failed if node.type == ITERATOR.start else max(self._shown(node.id), 0) + 1
        return f"{at} / {bar.total}" if bar.total else ""

    def _bar(self, loop_id: str) -> LoopProgress | None:
        """Return the progress of a loop, or None before it has begun."""
        loop = self._run.loop(loop_id, self._chosen)
        if loop.current < 0:
            return None
        ended, failed = len(loop.iterations) + len(loop.ahead), len(self._failed(loop_id))
        return LoopProgress(ended - failed, failed, ended if loop.exit_reason else max(loop.total, ended))

    def _failed(self, loop_id: str) -> frozenset[int]:
        """Return the failed items of an iterator; empty for a loop."""
        if self._unit(loop_id) != "item":
            return frozenset()
        loop = self._run.loop(loop_id, self._chosen)
        ended = (*loop.iterations, *loop.ahead.values())
        return frozenset(item.index for item in ended if item.branch == FAILED)

    def _unit(self, loop_id: str) -> str:
        body = self._structure.bodies.get(loop_id)
        return "item" if body is not None and body.kind is ITERATOR else "iteration"

    def loop(self, loop_id: str, title: str) -> LoopViewModel:
        """Return the content of a loop's label."""
        loop = self._run.loop(loop_id, self._chosen)
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
            state = self._run.node(loop, self._chosen).state
            dead = EdgeFlow.DEAD if state in _WITHOUT_OUTPUT else EdgeFlow.NONE
            return EdgeFlow.CARRIED if state in FINISHED else dead
        execution = self._run.node(source, self._chosen)
        if is_body_port(kind, port) and self._run.loop(source, self._chosen).current >= 0:
            return EdgeFlow.CARRIED
        if execution.state in _WITHOUT_OUTPUT:
            return EdgeFlow.DEAD
        if execution.state not in FINISHED:
            return EdgeFlow.NONE
        return EdgeFlow.CARRIED if port in execution.outputs else EdgeFlow.DEAD

    def state(self, node_id: str) -> NodeState:
        """Return the state of a node in the selected iterations."""
        return self._run.node(node_id, self._chosen).state

    def _exit(self, node_id: str) -> NodeStatus:
        """Return the status of an exit, which follows its loop's iteration."""
        loop_id = self._structure.loop_of.get(node_id)
        if loop_id is None:
            return NodeStatus()
        loop, shown = self._run.loop(loop_id, self._chosen), self._shown(loop_id)
        if 0 <= shown < len(loop.iterations):
            line, is_stale = preview(loop.iterations[shown].result), loop_id in self._stale
            return NodeStatus(NodeState.COMPLETED, "", line, is_stale=is_stale)
        state = self._run.node(loop_id, self._chosen).state
        over = self._run.is_over and state in {NodeState.PENDING, NodeState.RUNNING}
        return NodeStatus(None if over else NodeState.PENDING if state is NodeState.RUNNING else state)

    def _line(self, node: Node, spec: AnySpec | None, execution: NodeExecution) -> str:
        if execution.state in {NodeState.RUNNING, NodeState.WAITING}:
            question = self._asked(node.id)
            return preview(question.message) if question is not None else self._running_line(node, execution)
        if execution.error and execution.state is not NodeState.SKIPPED:
            return preview(execution.error)
        if execution.state not in FINISHED or node.type in PAIR_BY_START:
            return ""
        return preview(spec.recorded(dict(execution.outputs))) if spec is not None and execution.outputs else ""

    def _asked(self, node_id: str) -> NodeWaiting | None:
        """Return the open question of a node, or of a node in its subflow."""
        path = self._run.path_of(node_id, self._chosen)
        questions = self._run.questions.items()
        return next((question for at, question in questions if at == path or at.startswith(f"{path}.")), None)

    def _running_line(self, node: Node, execution: NodeExecution) -> str:
        """Return the best iteration of a loop, the last tool call of an agent, or the end of the stream."""
        best = best_so_far(self._run.loop(node.id, self._chosen)) if node.type in PAIR_BY_START else None
        if best is not None and best.score is not None:
            return f"best so far: iteration {best.index + 1}, score {format_score(best.score)}"
        if node.type == SUBFLOW:
            return self._running_in_subflow(f"{self._run.path_of(node.id, self._chosen)}.")
        if execution.tool_calls and not execution.text:
            return f"called {execution.tool_calls[-1].tool}"
        return " ".join(execution.text[-PREVIEW:].split())

    def _running_in_subflow(self, around: str) -> str:
        """Return the running node of a subflow with its iteration."""
        nodes, loops = self._run.nodes, self._run.loops
        for path in reversed(nodes):
            if path.startswith(around) and nodes[path].state is NodeState.RUNNING and path not in loops:
                loop = loops.get(path.rpartition("[")[0])
                iteration = f" · {loop.current + 1} of {loop.total}" if loop is not None else ""
                return f"{path.rpartition('.')[2]}{iteration}"
        return ""

    def value_at(self, node_id: str, port: str, *, is_input: bool) -> tuple[Value] | None:
        """Return the value at a port in the selected iterations, in a tuple; None if there is none."""
        loop_id = self._structure.loop_of.get(node_id, node_id)
        loop, shown = self._run.loop(loop_id, self._chosen), self._shown(loop_id)
        ended = loop.iteration(shown) if shown >= 0 else None
        nodes = self._structure.workflow.nodes_by_id
        kind = nodes[node_id].type if node_id in nodes else ""
        if ended is not None and is_body_port(kind, port) and port != "index":
            return (ended.input,)
        if ended is not None and is_input and kind == LOOP.end:
            return (ended.result,) if port == "input" else (ended.feedback,)
        execution = self._run.node(loop_id if kind == LOOP.end else node_id, self._chosen)
        values = execution.inputs if is_input else execution.outputs
        return (values[port],) if port in values else None

    def _shown(self, loop_id: str) -> int:
        has_begun = self._run.loop(loop_id, self._chosen).current >= 0
        return self._run.index_of(loop_id, self._chosen) if has_begun else -1


def preview(value: Value) -> str:
    """Return a short preview of a value without formatting all of a large one."""
    if isinstance(value, str):
        return " ".join(value[: 2 * PREVIEW].split())[:PREVIEW]
    if isinstance(value, list):
        return format_count(len(value), "entry", "entries")
    if isinstance(value, dict):
        if isinstance(value.get("selected_branch"), str):
            return f"→ {value['selected_branch']}"
        return f"{{{', '.join(list(value)[:8])}}}"[:PREVIEW]
    if isinstance(value, float):
        return format_score(value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def long_preview(value: Value) -> str:
    """Return the beginning of a value for a tooltip; empty text and null in words."""
    text = to_text(value)
    shown = f"{text[:TIP].rstrip()}…" if len(text) > TIP else text
    return shown if shown.strip() else "(empty)"


def _duration(duration_s: float | None) -> str:
    """Format a node's duration; empty if it rounds to zero."""
    return format_duration(duration_s) if duration_s is not None and duration_s >= 0.05 else ""


TICK_MS: Final = 40
_NOTHING: Final = NodeStatus()


class RunView(QObject):
    """Shows the run of a session on its canvas.

    Attributes:
        edge_animation: The dots that move along edges.

    Signals:
        question_wanted: The user wants to answer this node.
    """

    question_wanted = Signal(str)

    def __init__(self, session: Session, view: DocumentView, viewer: CanvasViewer, parent: QObject) -> None:
        super().__init__(parent)
        self._session, self._view = session, view
        self._touched: set[str] = set()
        self._problems: dict[str, Counter[Severity]] = {}
        self._problem_texts: dict[str, str] = {}
        self._states: dict[str, NodeState] = {}
        self._iterations: dict[str, int] = {}
        self._moving: set[NodeItem] = set()
        self._stale: frozenset[str] = frozenset()
        self._stale_worker = Worker(self, is_awaited=False)
        self._viewer = viewer
        viewer.tool_tip = self.tool_tip
        self.edge_animation = EdgeAnimation(viewer.scene())
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self._tick)
        session.shown.started.connect(self._started)
        session.shown.updated.connect(self._updated)
        session.shown.outputs_loaded.connect(self.update_stale)
        session.shown.ended.connect(self.update_stale)
        session.shown.view_changed.connect(self.show_all)
        self.update_problems()

    @property
    def is_moving(self) -> bool:
        """Whether the animation timer is running."""
        return self._timer.isActive()

    def update_problems(self) -> None:
        """Update the problems of each node."""
        found: dict[str, list[str]] = {}
        self._problems = {}
        for problem in self._session.visible_problems:
            if problem.node is not None:
                card = self._view.hidden.get(problem.node, problem.node)
                self._problems.setdefault(card, Counter())[problem.severity] += 1
                found.setdefault(card, []).append(f"• {problem.message} {problem.remedy}".rstrip())
        self._problem_texts = {card: "\n".join(lines) for card, lines in found.items()}
        self.update_stale()

    def update_stale(self) -> None:
        """Find the nodes that were edited since the run, in a large document in a thread, and update everything."""
        ran, now = self._ran, self._session.structure
        if ran is None or ran is now:
            self._show_stale(frozenset())
            return
        nodes = self._session.shown.view_model.nodes if self._session.shown.view_model is not None else {}
        outputs = {path: node.outputs for path, node in nodes.items() if "." not in path}

        def find() -> frozenset[str]:
            return everything_in(now, stale_nodes(ran, now, outputs))

        def show(stale: frozenset[str]) -> None:
            if self._ran is ran and self._session.structure is now:  # otherwise it is asked for again
                self._show_stale(stale)

        if len(now.workflow.nodes) <= MAX_NODES_AT_ONCE:
            self._show_stale(find())
        else:
            self.show_all()
            self._stale_worker.ask(find, show)

    @property
    def _ran(self) -> Structure | None:
        """The document of the run that is shown; None where nothing can be outdated."""
        shown = self._session.shown
        return shown.view_model.structure if shown.view_model is not None and shown.live is None else None

    def _show_stale(self, stale: frozenset[str]) -> None:
        self._stale = stale
        self.show_all()

    def tool_tip(self, position: QPointF) -> str:
        """Return the text for the mouse at a scene position: values of the run at ports, on edges and of nodes."""
        items = self._viewer.scene().items(position)
        item = next((item for item in items if isinstance(item, (CanvasPort, NodeItem))), None)
        if isinstance(item, CanvasPort):
            return "\n\n".join(filter(None, (item.description, self._value_text(item.end, is_input=item.is_input))))
        if item is not None:
            line = item.status_item.status.line if item.status_item is not None else ""
            port = next((port for port in item.outputs if self._value_text(port.end, is_input=False)), None)
            value = self._value_text(port.end, is_input=False) if line and port is not None else ""
            return "\n\n".join(filter(None, (item.description, value)))
        edge = self._viewer.edge_at(position)
        if edge is None:
            return ""
        source, target = edge.ends
        value = self._value_text(source, is_input=False)
        return f"{source} → {target}\n\n{value}" if value else ""

    def _value_text(self, end: str, *, is_input: bool) -> str:
        decorations = self._decorations()
        node_id, _, port = end.partition(".")
        if decorations is None or not self._took_part(node_id):
            return ""
        found = decorations.value_at(node_id, port, is_input=is_input)
        if found is None:
            return ""
        return f"{'Outdated: ' if node_id in self._stale else ''}{long_preview(found[0])}"

    def show_all(self) -> None:
        """Update everything."""
        self._touched.clear()
        self.show(self._view.created_nodes)

    def _started(self) -> None:
        self._states, self._iterations = {}, {}
        self.edge_animation.clear()
        self.update_stale()

    def _updated(self, touched: set[str]) -> None:
        self._touched |= touched
        if not self._timer.isActive():
            self._timer.start()

    def _tick(self) -> None:
        if self._touched:
            touched, self._touched = self._touched, set()
            if "" in touched and self._is_partial:  # it has just been reported which nodes take part
                touched = touched | self._view.created_nodes.keys()
            bodies = self._session.structure.bodies
            for loop in touched & bodies.keys():  # a new iteration resets all nodes in the body
                touched = touched | bodies[loop].nodes | {bodies[loop].exit}
            self.show(touched)
        for item in () if self._view.node_lod.isVisible() else self._moving:
            if item.status_item is not None:
                item.status_item.tick()
        self.edge_animation.advance()
        if not self._moving and not self.edge_animation.is_moving and not self._touched:
            self._timer.stop()

    def show(self, node_ids: Iterable[str]) -> None:
        """Update some nodes, their edges, and the regions of loops among them."""
        hidden = self._view.hidden
        cards = dict.fromkeys(hidden.get(node_id, node_id) for node_id in node_ids) if hidden else node_ids
        wanted = [node_id for node_id in cards if node_id in self._view.created_nodes]
        decorations = self._decorations()
        nodes, registry = self._view.workflow.nodes_by_id, self._session.registry
        for node_id in wanted:
            state = _NOTHING
            if decorations is not None and self._took_part(node_id):
                is_collapsed = bool(self._view.created_nodes[node_id].content.collapsed)
                show = decorations.collapsed_card if is_collapsed else decorations.card
                state = show(nodes[node_id], registry.find(nodes[node_id].type))
            if nodes[node_id].pinned and nodes[node_id].enabled:
                state = replace(state, is_pinned=True)
            counted = self._problems.get(node_id)
            if counted:
                state = replace(state, errors=counted[Severity.ERROR], warnings=counted[Severity.WARNING])
            self._show_card(self._view.created_nodes[node_id], state)
            self._show_edges(node_id, decorations)
        self._moving = {item for item in self._moving if self._view.created_nodes.get(item.content.id) is item}
        loops = [node_id for node_id in wanted if node_id in self._view.created_regions.items]
        self._show_loops(decorations, loops)
        if decorations is not None and not self._session.shown.chosen:
            self._animate_edges(decorations, wanted, loops)
        if self._moving and not self._timer.isActive():
            self._timer.start()

    def _decorations(self) -> RunDecorations | None:
        view_model = self._session.shown.view_model
        return (
            None
            if view_model is None
            else RunDecorations(view_model, self._session.structure, self._session.shown.chosen, self._stale)
        )

    @property
    def _is_partial(self) -> bool:
        view_model = self._session.shown.view_model
        return view_model is not None and view_model.state.part is not None

    def _took_part(self, node_id: str) -> bool:
        """Whether a node existed when the run began."""
        workflow = self._session.shown.workflow
        return workflow is not None and node_id in workflow.nodes_by_id

    def _show_card(self, item: NodeItem, state: NodeStatus) -> None:
        text = self._problem_texts.get(item.content.id, "")
        if text != item.problem_text:
            item.problem_text = text
            item.refresh_tooltip()
        if item.status_item is None:
            if state == _NOTHING:
                return
            item.status_item = NodeStatusItem(item, item.geometry, item.content.title)
            item.status_item.clicked = partial(
                self.question_wanted.emit, item.content.id
            )  # a cycle would keep the item
        item.status_item.set_status(state)
        item.dim(by_run=state.state in {NodeState.SKIPPED, NodeState.CANCELLED, NodeState.INTERRUPTED})
        if item.status_item.is_moving:
            self._moving.add(item)
        else:
            self._moving.discard(item)

    def _show_edges(self, node_id: str, decorations: RunDecorations | None) -> None:
        for port in self._view.created_nodes[node_id].outputs:
            for edge in port.connected_pipes:
                edge.set_flow(EdgeFlow.NONE if decorations is None else decorations.flow(port.node_id, port.name))

    def _show_loops(self, decorations: RunDecorations | None, loops: Iterable[str]) -> None:
        for loop in loops:
            region = self._view.created_regions.items[loop]
            title = self._view.created_nodes[loop].content.title
            region.label.set_content(LoopViewModel(title) if decorations is None else decorations.loop(loop, title))

    def _animate_edges(self, decorations: RunDecorations, node_ids: Iterable[str], loops: Iterable[str]) -> None:
        """Start a dot along each edge that has just carried a value."""
        view_model = self._session.shown.view_model
        assert view_model is not None
        for node_id in node_ids:
            state = decorations.state(node_id)
            before, self._states[node_id] = self._states.get(node_id), state
            if state is NodeState.COMPLETED and before in {NodeState.RUNNING, NodeState.PENDING, None}:
                self._animate_outputs(node_id, skip="body")
        for loop in loops:
            region = self._view.created_regions.items[loop]
            now = view_model.loop(loop).current
            if now > self._iterations.get(loop, -1):
                if now > 0:
                    self.edge_animation.start(region.arrow)
                self._animate_outputs(loop, only="body")
            self._iterations[loop] = now

    def _animate_outputs(self, node_id: str, *, only: str = "", skip: str = "") -> None:
        if self._session.shown.live is None:
            return
        for port in self._view.created_nodes[node_id].outputs:
            if port.name != skip and (not only or port.name == only):
                for edge in port.connected_pipes:
                    if edge.flow is EdgeFlow.CARRIED:
                        self.edge_animation.start(edge.path())
