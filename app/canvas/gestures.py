"""Mouse gestures as document operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from PySide6.QtCore import QObject, QPointF, QRectF

from app.canvas import operation_builders
from app.canvas.annotations import AnnotationItem, read_annotations
from app.canvas.canvas_style import united
from app.canvas.connection_rules import ConnectionRules
from app.canvas.document_view import DocumentView
from app.canvas.edge_item import EdgeItem
from app.canvas.loop_edits import Document, insert_into_body, take_out_of_body
from app.canvas.node_item import CanvasPort, NodeItem, PortHighlightItem
from app.canvas.operation_builders import with_hidden
from app.canvas.viewer import CanvasViewer
from app.node_layout import Position
from app.session import Session
from engine.document.model import Edge, Node
from engine.document.operations import Batch, Disconnect, Operation
from engine.nodes.node_names import node_name
from engine.nodes.spec import PAIR_BY_END, PAIR_BY_START
from engine.plan.structure import analyse

_WORKFLOW_ENDS: Final = frozenset({"input", "output"})


@dataclass
class _RegionDrag:
    """Cards that are being dragged, and the loop regions as they were before.

    Attributes:
        members: The cards, if they may change their loop.
        first: The node, or the loop of a pair.
        last: The node, or the exit of a pair.
        home: The loop that they belong to.
        regions: Depth and rectangle of each region.
        began_in: The loop whose region they were in, whether they belong to it or not.
        center: Where the cards are now.
        leaves: Whether they leave that loop when they are dropped here.
        enters: The loop that they would become part of.
    """

    members: frozenset[str]
    first: str
    last: str
    home: str | None
    regions: Mapping[str, tuple[int, QRectF]]
    began_in: str | None = None
    center: QPointF = field(default_factory=QPointF)
    leaves: bool = False
    enters: str | None = None

    def touches(self, loop: str, rect: QRectF) -> bool:
        """Whether cards overlap the region that a loop had before the drag."""
        return loop in self.regions and self.regions[loop][1].intersects(rect)

    def innermost(self, position: QPointF) -> str | None:
        """The innermost loop whose region contained a position before the drag."""
        around = [loop for loop, (_, rect) in self.regions.items() if rect.contains(position)]
        return max(around, key=lambda loop: self.regions[loop][0], default=None)


class Gestures(QObject):
    """Turns the viewer's signals into operations."""

    def __init__(self, session: Session, view: DocumentView, viewer: CanvasViewer, parent: QObject) -> None:
        super().__init__(parent)
        self._session, self._view, self._viewer = session, view, viewer
        self._rules: ConnectionRules | None = None
        self._target: EdgeItem | None = None
        self._drag: _RegionDrag | None = None
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
        here = with_hidden(here, before, self._view.hidden)
        moved = with_hidden(moved, before, self._view.hidden)
        return moved and {node: here[node] for node in (*moved, *self._view.positions.computed) if node in here}

    def commit_positions(self) -> None:
        """Store dragged positions, and insert a node that was dropped on an edge."""
        target, drag = self._target, self._drag
        self._end_region_drag()
        self._set_drop_target(None)
        workflow = self._session.workflow
        moved_annotations: list[Operation] = [
            item.annotation.moved(round(item.x()), round(item.y())).set_in(workflow)
            for item in self._view.annotations.items.values()
            if (item.x(), item.y()) != (item.annotation.x, item.annotation.y)
        ]
        hidden = self._view.hidden
        step = operation_builders.move(workflow, self.moved_positions(), moved_annotations, hidden=hidden)
        if step is None:
            return
        selected = self._viewer.selected_nodes()
        if target is not None and len(selected) == 1 and isinstance(selected[0], NodeItem):
            inserted = self._insertion(selected[0], target)
            if inserted is not None:
                title = node_name(workflow, selected[0].content.id)
                step = Batch(f"Insert {title} into an edge", (*step.operations, *inserted))
        elif drag is not None and drag.members:
            step = self._moved_between_regions(step, drag)
        if not self._session.do(step):
            self._view.reset_positions()

    def _moved_between_regions(self, step: Batch, drag: _RegionDrag) -> Batch:
        """Add to a move what it changes about the loops that the cards belong to."""
        document, target = self.document, (drag.center.x(), drag.center.y())
        name = node_name(document.workflow, drag.first)
        outside = Batch(f"Take {name} out of the loop", (*step.operations, *take_out_of_body(document, drag.members)))
        if drag.enters is not None:
            workflow, _ = outside.apply(document.workflow)
            there = replace(document, workflow=workflow, structure=analyse(workflow, document.registry))
            nodes = workflow.nodes_by_id
            inserted = insert_into_body(there, drag.enters, nodes[drag.first], nodes[drag.last], target)
            if inserted:
                return Batch(f"Put {name} into the loop", (*outside.operations, *inserted))
        return outside if drag.leaves else step

    def insertion_operations(self, edge_item: EdgeItem, first: Node, last: Node) -> tuple[Operation, ...] | None:
        """Return the operations that insert a node, or a loop with its exit, into an edge; None if it does not fit."""
        return operation_builders.insert_into_edge(self._edge_of(edge_item), first, last, self.ports)

    @property
    def document(self) -> Document:
        """The document with the positions and sizes of its cards."""
        session, view = self._session, self._view
        here = {node_id: (item.x(), item.y()) for node_id, item in view.nodes.items()}
        positions = with_hidden(here, view.document_positions, view.hidden)
        structure, boxes = session.structure_now, view.all_boxes()
        return Document(view.workflow, structure, session.registry, positions, boxes, view.hidden)

    @property
    def ports(self) -> operation_builders.PortLookup:
        """The ports of the document's nodes."""
        session = self._session
        return operation_builders.PortLookup(session.workflow, session.registry, session.structure)

    def _insertion(self, item: NodeItem, edge_item: EdgeItem) -> tuple[Operation, ...] | None:
        ends = self._ends_of(item.content.id)
        nodes = self._session.workflow.nodes_by_id
        return None if ends is None else self.insertion_operations(edge_item, nodes[ends[0]], nodes[ends[1]])

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
        if body is None:
            return None
        end = self._view.nodes.get(body.exit)  # None if the loop is collapsed
        return (node_id, body.exit) if end is None or not _has_edges(end) else None

    def _update_drop_target(self, item: object) -> None:
        """Highlight the edge that a dragged unconnected card would be inserted into."""
        self._view.update_dragged()
        found = None
        if isinstance(item, NodeItem) and not _has_edges(item):
            edge_item = self._viewer.edge_at(item.card_rect.center())
            if edge_item is not None and self._insertion(item, edge_item) is not None:
                found = edge_item
        self._set_drop_target(found)
        self._follow_region_drag()

    def _follow_region_drag(self) -> None:
        """Find out whether the dragged cards leave the region of their loop, or enter another one."""
        regions = self._view.regions
        if self._drag is None:
            self._drag = self._begin_region_drag()
        drag = self._drag
        if not drag.members:
            return
        cards = [self._view.nodes[node_id] for node_id in drag.members if node_id in self._view.nodes]
        around = united(card.card_rect for card in cards)
        drag.center = around.center()
        loop = drag.innermost(drag.center)
        drag.leaves = drag.home is not None and not drag.touches(drag.home, around)
        is_free = drag.leaves or not any(_has_edges(card) for card in cards) or self._may_enter(loop, drag)
        drag.enters = loop if is_free and loop != drag.home and self._target is None else None
        regions.leave_out(drag.members if drag.leaves else frozenset())
        regions.highlight(drag.enters)

    def _may_enter(self, loop: str | None, drag: _RegionDrag) -> bool:
        """Whether connected cards may become part of a loop: they came from elsewhere, and feed nothing in its body."""
        body = self._session.structure.bodies.get(loop or "")
        if body is None or loop == drag.began_in:
            return False
        ends = ((edge.source[0], edge.target[0]) for edge in self._session.workflow.edges)
        return not any(
            (source in drag.members and target in body.nodes) or (target in drag.members and source in body.nodes)
            for source, target in ends
        )

    def _begin_region_drag(self) -> _RegionDrag:
        """Remember the regions as they are before the drag, and which cards may change their loop.

        These are a single node, or a whole loop. Input and output nodes stay outside of all loops.
        """
        structure, session = self._session.structure, self._session
        moving = {item.content.id for item in self._viewer.selected_nodes() if isinstance(item, NodeItem)}
        moving |= {node_id for node_id, loop in self._view.hidden.items() if loop in moving}
        first = next((node for node in moving if structure.parent.get(node) not in moving), "")
        body = structure.bodies.get(structure.loop_of.get(first, first))
        members = frozenset({body.loop, body.exit, *body.nodes}) if body is not None else frozenset({first})
        node = session.workflow.nodes_by_id.get(first)
        if moving != members or node is None or node.type in _WORKFLOW_ENDS:
            members = frozenset()
        ends = (first, first) if body is None else (body.loop, body.exit)
        rects = {loop: (region.depth, QRectF(region.rect)) for loop, region in self._view.regions.items.items()}
        rects = {loop: rect for loop, rect in rects.items() if loop not in members}
        drag = _RegionDrag(members, *ends, structure.parent.get(first), rects)
        places, cards = self._view.document_positions, self._view.nodes
        before = (QRectF(QPointF(*places[node]), cards[node].card_rect.size()) for node in members & cards.keys())
        drag.began_in = drag.innermost(united(before).center())
        return drag

    def _end_region_drag(self) -> None:
        if self._drag is not None:
            self._drag = None
            self._view.regions.leave_out(frozenset())
            self._view.regions.highlight(None)

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
        self._end_region_drag()
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

    def _disconnect(self, edge_item: EdgeItem) -> None:
        self._session.do(Disconnect(*edge_item.ends))

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

    def _edge_of(self, edge_item: EdgeItem) -> Edge:
        ends = edge_item.ends
        return next(edge for edge in self._session.workflow.edges if (edge.from_, edge.to) == ends)

    def _store_size(self, item: AnnotationItem) -> None:
        workflow = self._session.workflow
        if read_annotations(workflow).get(item.annotation.path) != item.annotation:  # not just a click on the handle
            self._session.do(Batch("Resize frame or note", (item.annotation.set_in(workflow),)))


def _has_edges(item: NodeItem) -> bool:
    return any(port.connected_pipes for port in (*item.inputs, *item.outputs))
