"""Mouse gestures as document operations."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.canvas import operation_builders
from app.canvas.annotations import AnnotationItem, read_annotations
from app.canvas.connection_rules import ConnectionRules
from app.canvas.document_view import DocumentView
from app.canvas.edge_item import EdgeItem
from app.canvas.node_item import CanvasPort, NodeItem, PortHighlightItem
from app.canvas.viewer import CanvasViewer
from app.node_layout import Position
from app.session import Session
from engine.document.model import Edge, Node
from engine.document.operations import Batch, Disconnect, Operation
from engine.nodes.spec import PAIR_BY_END, PAIR_BY_START


class Gestures(QObject):
    """Turns the viewer's signals into operations."""

    def __init__(self, session: Session, view: DocumentView, viewer: CanvasViewer, parent: QObject) -> None:
        super().__init__(parent)
        self._session, self._view, self._viewer = session, view, viewer
        self._rules: ConnectionRules | None = None
        self._target: EdgeItem | None = None
        self.port_highlight = PortHighlightItem()
        viewer.scene().addItem(self.port_highlight)
        viewer.rejection_reason = self._rejection_reason
        viewer.connecting.connect(self._highlight_ports)
        viewer.connect_requested.connect(self.connect_ports)
        viewer.disconnect_requested.connect(self._disconnect)
        viewer.dragged.connect(self._update_drop_target)
        viewer.drag_finished.connect(self.commit_positions)
        view.annotations.resized = self._store_size

    def moved_positions(self) -> dict[str, Position]:
        """Return the positions that the document does not have yet.

        Once a card has moved, that includes the computed positions of all others.
        """
        here = {node_id: (item.x(), item.y()) for node_id, item in self._view.nodes.items()}
        before = self._view.document_positions
        moved = {node: position for node, position in here.items() if before.get(node) != position}
        return moved and {node: here[node] for node in (*moved, *self._view.positions.computed) if node in here}

    def commit_positions(self) -> None:
        """Store dragged positions, and insert a node that was dropped on an edge."""
        target = self._target
        self._set_drop_target(None)
        workflow = self._session.workflow
        moved_annotations: list[Operation] = [
            item.annotation.moved(round(item.x()), round(item.y())).set_in(workflow)
            for item in self._view.annotations.items.values()
            if (item.x(), item.y()) != (item.annotation.x, item.annotation.y)
        ]
        step = operation_builders.move(workflow, self.moved_positions(), moved_annotations)
        if step is None:
            return
        selected = self._viewer.selected_nodes()
        if target is not None and len(selected) == 1 and isinstance(selected[0], NodeItem):
            inserted = self._insertion(selected[0], target)
            if inserted is not None:
                title = operation_builders.title_of(workflow, selected[0].content.id)
                step = Batch(f"Insert {title} into an edge", (*step.operations, *inserted))
        if not self._session.do(step):
            self._view.reset_positions()

    def insertion_operations(self, pipe: EdgeItem, first: Node, last: Node) -> tuple[Operation, ...] | None:
        """Return the operations that insert a node, or a loop with its exit, into an edge; None if it does not fit."""
        return operation_builders.insert_into_edge(self._edge_of(pipe), first, last, self.ports)

    @property
    def ports(self) -> operation_builders.PortLookup:
        """The ports of the document's nodes."""
        session = self._session
        return operation_builders.PortLookup(session.workflow, session.registry, session.structure)

    def _insertion(self, item: NodeItem, pipe: EdgeItem) -> tuple[Operation, ...] | None:
        ends = self._ends_of(item.content.id)
        nodes = self._session.workflow.nodes_by_id
        return None if ends is None else self.insertion_operations(pipe, nodes[ends[0]], nodes[ends[1]])

    def _ends_of(self, node_id: str) -> tuple[str, str] | None:
        """Return the ids between which an edge can be rerouted, or None.

        For a loop these are the loop and its exit, unless the exit has edges. An exit alone cannot be inserted.
        """
        node, structure = self._session.workflow.nodes_by_id[node_id], self._session.structure
        if node.type in PAIR_BY_END:
            return None
        if node.type not in PAIR_BY_START:
            return node_id, node_id
        body = structure.bodies.get(node_id)
        end = self._view.nodes.get(body.exit) if body is not None else None
        return (node_id, end.content.id) if end is not None and not _has_edges(end) else None

    def _update_drop_target(self, item: object) -> None:
        """Highlight the edge that a dragged unconnected card would be inserted into."""
        self._view.update_dragged()
        found = None
        if isinstance(item, NodeItem) and not _has_edges(item):
            pipe = self._viewer.edge_at(item.card_rect.center())
            if pipe is not None and self._insertion(item, pipe) is not None:
                found = pipe
        self._set_drop_target(found)

    def _set_drop_target(self, found: EdgeItem | None) -> None:
        if found is not self._target:
            if self._target is not None:
                self._target.set_target(False)
            if found is not None:
                found.set_target(True)
            self._target = found

    def cancel(self) -> None:
        """Abort the gesture: the document changes, and its edges may disappear."""
        self._set_drop_target(None)
        self._viewer.cancel_connection()

    def connect_ports(self, start: CanvasPort, end: CanvasPort, old: EdgeItem | None = None) -> None:
        """Connect two ports."""
        output, input_ = (end, start) if start.is_input else (start, end)
        edge = self._edge_of(old) if old is not None else None
        if edge is not None and (edge.from_, edge.to) == (output.end, input_.end):  # dropped where it was
            return
        workflow = self._session.workflow
        takes_many = input_.content.many or not input_.content.known
        steps = operation_builders.connect(workflow, output.end, input_.end, edge, takes_many=takes_many)
        self._session.do(steps[0] if len(steps) == 1 else Batch(steps[-1].title, steps))

    def _disconnect(self, pipe: EdgeItem) -> None:
        self._session.do(Disconnect(*pipe.ends))

    def _highlight_ports(self, start: CanvasPort | None) -> None:
        if start is None:
            self._rules = None
            self.port_highlight.show_ports(())
            for item in self._view.nodes.values():
                item.dim(by_connection=False)
            return
        old = self._viewer.detached_pipe
        self._rules = ConnectionRules(
            self._session.workflow,
            self._session.structure,
            start.node_id,
            start.content,
            is_input=start.is_input,
            without=self._edge_of(old) if old is not None else None,
        )
        matching = [
            port
            for item in self._view.nodes.values()
            for port in (item.outputs if start.is_input else item.inputs)
            if self._rejection_reason(start, port) is None
        ]
        self.port_highlight.show_ports(matching)
        bright = {port.parentItem() for port in (*matching, start)}
        for item in self._view.nodes.values():
            item.dim(by_connection=item not in bright)

    def _rejection_reason(self, _start: CanvasPort, end: CanvasPort) -> str | None:
        assert self._rules is not None
        return self._rules.rejection_reason(end.node_id, end.content, is_input=end.is_input)

    def _edge_of(self, pipe: EdgeItem) -> Edge:
        ends = pipe.ends
        return next(edge for edge in self._session.workflow.edges if (edge.from_, edge.to) == ends)

    def _store_size(self, item: AnnotationItem) -> None:
        workflow = self._session.workflow
        if read_annotations(workflow).get(item.annotation.path) != item.annotation:  # not just a click on the handle
            self._session.do(Batch("Resize frame or note", (item.annotation.set_in(workflow),)))


def _has_edges(item: NodeItem) -> bool:
    return any(port.connected_pipes for port in (*item.inputs, *item.outputs))
