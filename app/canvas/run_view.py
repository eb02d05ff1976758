"""Show a run on the canvas: status of nodes, edges and loops, and animations.

One timer drives all animations and stops when nothing moves. Changes of a batch of events are collected and shown at
the next tick, so that many events cost little more than a few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.canvas.document_view import DocumentView
from app.canvas.edge_item import EdgeAnimation, EdgeFlow
from app.canvas.loop_region_label import LoopViewModel
from app.canvas.node_item import NodeItem
from app.canvas.node_status_item import NodeStatus, NodeStatusItem
from app.canvas.run_decorations import RunDecorations, with_problems
from app.canvas.viewer import CanvasViewer
from app.session import Session
from engine.document.problems import Severity
from engine.run_state.state import NodeState

TICK_MS: Final = 40
_NOTHING: Final = NodeStatus()


class RunView(QObject):
    """Shows the run of a session on its canvas.

    Attributes:
        edge_animation: The dots that move along edges.
    """

    def __init__(self, session: Session, view: DocumentView, viewer: CanvasViewer, parent: QObject) -> None:
        super().__init__(parent)
        self._session, self._view = session, view
        self._touched: set[str] = set()
        self._problems: dict[str, Counter[Severity]] = {}
        self._states: dict[str, NodeState] = {}
        self._iterations: dict[str, int] = {}
        self._moving: set[NodeItem] = set()
        self.edge_animation = EdgeAnimation(viewer.scene())
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)
        session.shown.started.connect(self._started)
        session.shown.updated.connect(self._updated)
        session.shown.ended.connect(self.show_all)
        session.shown.view_changed.connect(self.show_all)
        view.regions.chosen = session.shown.look_at
        self.update_problems()

    @property
    def is_moving(self) -> bool:
        """Whether the animation timer is running."""
        return self._timer.isActive()

    def update_problems(self) -> None:
        """Update the number of problems of each node and the tooltips."""
        found: dict[str, list[str]] = {}
        self._problems = {}
        for problem in self._session.problems:
            if problem.node is not None:
                self._problems.setdefault(problem.node, Counter())[problem.severity] += 1
                found.setdefault(problem.node, []).append(f"• {problem.message} {problem.remedy}".rstrip())
        for node_id, item in self._view.nodes.items():
            text = "\n".join(found.get(node_id, ()))
            if text != item.problem_text:
                item.problem_text = text
                item.refresh_tooltip()
        self.show_all()

    def show_all(self) -> None:
        """Update everything."""
        self._touched.clear()
        self.show(self._view.nodes)

    def _started(self) -> None:
        self._states, self._iterations = {}, {}
        self.edge_animation.clear()
        self.show_all()

    def _updated(self, touched: set[str]) -> None:
        self._touched |= touched
        if not self._timer.isActive():
            self._timer.start()

    def _tick(self) -> None:
        if self._touched:
            touched, self._touched = self._touched, set()
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
        wanted = [node_id for node_id in node_ids if node_id in self._view.nodes]
        decorations = self._decorations()
        nodes, registry = self._session.workflow.nodes_by_id, self._session.registry
        for node_id in wanted:
            state = _NOTHING
            if decorations is not None and self._took_part(node_id):
                state = decorations.card(nodes[node_id], registry.find(nodes[node_id].type))
            counted = self._problems.get(node_id)
            if counted:
                state = with_problems(state, counted[Severity.ERROR], counted[Severity.WARNING])
            self._show_card(self._view.nodes[node_id], state)
            self._show_edges(node_id, decorations)
        self._moving = {item for item in self._moving if self._view.nodes.get(item.content.id) is item}
        loops = [node_id for node_id in wanted if node_id in self._view.regions.items]
        self._show_loops(decorations, loops)
        if decorations is not None and not self._session.shown.chosen:
            self._animate_edges(decorations, wanted, loops)
        if self._moving and not self._timer.isActive():
            self._timer.start()

    def _decorations(self) -> RunDecorations | None:
        picture = self._session.shown.picture
        return None if picture is None else RunDecorations(picture, self._session.structure, self._session.shown.chosen)

    def _took_part(self, node_id: str) -> bool:
        """Whether a node existed when the run began."""
        ran = self._session.shown.workflow
        return ran is not None and node_id in ran.nodes_by_id

    def _show_card(self, item: NodeItem, state: NodeStatus) -> None:
        if item.status_item is None:
            if state == _NOTHING:
                return
            item.status_item = NodeStatusItem(item, item.geometry, item.content.title)
        item.status_item.set_status(state)
        item.dim(by_run=state.state in {NodeState.SKIPPED, NodeState.CANCELLED, NodeState.INTERRUPTED})
        if item.status_item.is_moving:
            self._moving.add(item)
        else:
            self._moving.discard(item)

    def _show_edges(self, node_id: str, decorations: RunDecorations | None) -> None:
        for port in self._view.nodes[node_id].outputs:
            for pipe in port.connected_pipes:
                pipe.set_flow(EdgeFlow.NONE if decorations is None else decorations.flow(node_id, port.name))

    def _show_loops(self, decorations: RunDecorations | None, loops: Iterable[str]) -> None:
        for loop in loops:
            region = self._view.regions.items[loop]
            title = self._view.nodes[loop].content.title
            region.label.set_content(LoopViewModel(title) if decorations is None else decorations.loop(loop, title))

    def _animate_edges(self, decorations: RunDecorations, node_ids: Iterable[str], loops: Iterable[str]) -> None:
        """Start a dot along each edge that has just carried a value."""
        picture = self._session.shown.picture
        assert picture is not None
        for node_id in node_ids:
            state = decorations.state(node_id)
            before, self._states[node_id] = self._states.get(node_id), state
            if state is NodeState.COMPLETED and before in {NodeState.RUNNING, NodeState.PENDING, None}:
                self._animate_outputs(node_id, skip="body")
        for loop in loops:
            region = self._view.regions.items[loop]
            now = picture.loop(loop).current
            if now > self._iterations.get(loop, -1):
                if now > 0:
                    self.edge_animation.start(region.arrow)
                self._animate_outputs(loop, only="body")
            self._iterations[loop] = now

    def _animate_outputs(self, node_id: str, *, only: str = "", skip: str = "") -> None:
        if self._session.shown.live is None:
            return
        for port in self._view.nodes[node_id].outputs:
            if port.name != skip and (not only or port.name == only):
                for pipe in port.connected_pipes:
                    if pipe.flow is EdgeFlow.CARRIED:
                        self.edge_animation.start(pipe.path())
