"""The document as scene items: created once, then patched where the document changes.

The items of many nodes are created in batches, with a turn of the event loop in between, so that the window stays
responsive. What needs all items creates the rest at once: reading `nodes` does, and so does a mouse button.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, cast

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QTimer, Signal
from PySide6.QtWidgets import QGraphicsItem, QGraphicsSceneMouseEvent

from app.canvas import node_item
from app.canvas.annotations import AnnotationView
from app.canvas.canvas_style import Sides, rect_around, united
from app.canvas.collapsed_loops import collapsed_bodies, collapsed_card, hidden_nodes
from app.canvas.edge_item import EdgeItem
from app.canvas.loop_region import LoopRegions
from app.canvas.node_card import LOWEST_CARD, MIN_WIDTH, CardViewModel, card_box, card_view_model
from app.canvas.node_item import CanvasPort, NodeItem, NodeLodItem
from app.canvas.viewer import CanvasViewer
from app.node_layout import Box, NodePositions
from app.session import Session
from engine.document.model import Node, Workflow
from engine.nodes.node_names import node_names
from engine.plan.loop_bodies import Body

BATCH: Final = 40
"""Number of node items that are created in one turn of the event loop, in about a frame."""

REMOVAL_BATCH: Final = 400
"""Number of node and edge items that are removed from the scene in one turn of the event loop."""

ANALYSIS_POLL_MS: Final = 10
MAX_ANALYSIS_POLLS: Final = 30
"""Batches stop waiting for the analysis then: it starts again with every edit."""

REMOVED_CARDS: Final = 2_000
"""Number of removed nodes whose cards are remembered for undo."""

EdgeKey = tuple[str, str]
Ends = tuple[tuple[str, str], tuple[str, str]]
_Used = tuple[tuple[str, ...], tuple[str, ...], str, bool]
"""The connected inputs and outputs of a node, its name, and whether all outputs are shown."""


class DocumentView(QObject):
    """The items of one document.

    Signals:
        items_changed: Items were added, removed or moved.
        nodes_created: Items that had been waiting were created; the ids of the nodes that are new or have new edges.
        expand_requested: The button of the collapsed loop of this id was clicked.

    Attributes:
        workflow: The document that is shown.
        created_nodes: The items of visible nodes by id, as far as they are created.
        created_regions: The loop regions of these.
        hidden: The hidden nodes, each with the collapsed loop that hides it.
        annotations: Frames and notes.
        node_lod: The level-of-detail item of the nodes.
        positions: Stored and computed positions of the nodes.
        document_positions: The position of each node in the document; during a drag items differ from it.
        expanded: The nodes whose output ports are all shown.
    """

    items_changed = Signal()
    nodes_created = Signal(object)
    expand_requested = Signal(str)

    def __init__(self, session: Session, viewer: CanvasViewer, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._viewer, self._scene = session, viewer, viewer.scene()
        self._removed: list[QGraphicsItem] = []
        self._removal = QTimer(self, singleShot=True)
        self._removal.timeout.connect(self._remove_hidden)
        self.workflow = Workflow()
        self.created_nodes: dict[str, NodeItem] = {}
        self.hidden: dict[str, str] = {}
        self._collapsed: dict[str, Body] = {}
        self._edges: dict[EdgeKey, Ends] = {}
        self._edge_items: dict[EdgeKey, EdgeItem] = {}
        self._waiting: list[str] = []
        self._regions_wait = False
        self._analysis_polls = 0
        self._batches = QTimer(self, singleShot=True)
        self._batches.timeout.connect(self._create_batch)
        self.annotations = AnnotationView(self._scene, self.created_nodes, self._dispose)
        self.expanded: set[str] = set()
        self.document_positions: dict[str, tuple[float, float]] = {}
        self.positions = NodePositions()
        self.created_regions = LoopRegions(session, self._scene, self.created_nodes)
        self.node_lod = NodeLodItem(self.created_nodes)
        self._scene.addItem(self.node_lod)
        self._own_cards: dict[str, tuple[Node, _Used, CardViewModel]] = {}
        self._names: Mapping[str, str] = {}
        self._used_in: dict[str, dict[str, None]] = {}
        self._used_out: dict[str, dict[str, None]] = {}
        self._moved: set[NodeItem] = set()
        self._selected_edges: set[EdgeItem] = set()
        viewer.view_moved.connect(self.update_level_of_detail)
        viewer.pressed.connect(self.create_all)
        self.patch(Workflow(), session.workflow)

    @property
    def is_complete(self) -> bool:
        """Whether all items are created."""
        return not self._waiting and not self._regions_wait

    @property
    def nodes(self) -> Mapping[str, NodeItem]:
        """The items of all visible nodes by id."""
        self.create_all()
        return self.created_nodes

    @property
    def edge_items(self) -> Mapping[EdgeKey, EdgeItem]:
        """All edge items by their two ends."""
        self.create_all()
        return self._edge_items

    @property
    def regions(self) -> LoopRegions:
        """The loop regions of all nodes."""
        self.create_all()
        return self.created_regions

    @property
    def content_rect(self) -> QRectF:
        """Bounding rectangle of everything drawn."""
        self.create_all()
        return self.expected_rect

    @property
    def expected_rect(self) -> QRectF:
        """Bounding rectangle of everything drawn; an estimate while items are waiting to be created."""
        cards = self.expected_rect_of((*self.created_nodes, *self._waiting))
        regions = (region.rect.adjusted(0, -12, 0, 0) for region in self.created_regions.items.values())
        return united((cards, *regions, *(item.scene_rect for item in self.annotations.items.values())))

    def expected_rect_of(self, node_ids: Iterable[str]) -> QRectF:
        """Return the bounding rectangle of the cards of visible nodes; those that wait count as small cards."""
        sides = list[Sides]()
        for node_id in node_ids:
            item = self.created_nodes.get(node_id)
            if item is not None:
                sides.append(item.sides)
            else:
                x, y = self.document_positions[node_id]
                sides.append((x, y, x + MIN_WIDTH, y + LOWEST_CARD))
        return rect_around(sides)

    def card_boxes(self) -> dict[str, Box]:
        """Return size and port offsets of all visible cards, for layouts."""
        visible = (node_id for node_id in self.workflow.nodes_by_id if node_id not in self.hidden)
        return {node_id: card_box(self._card(node_id)) for node_id in visible}

    def all_boxes(self) -> dict[str, Box]:
        """Return the boxes of all cards, also of those that hidden nodes would have."""
        return {**self.card_boxes(), **{node_id: card_box(self._card(node_id)) for node_id in self.hidden}}

    def loop_box(self, body: Body, *, collapsed: bool) -> Box:
        """Return the box of the card of a body's loop if the loop were collapsed or expanded."""
        return card_box(self._collapsed_card(body) if collapsed else self._own_card(body.loop))

    def card_of(self, node_id: str) -> NodeItem | None:
        """Return the card of a node, or of the collapsed loop that hides it."""
        return self.nodes.get(self.hidden.get(node_id, node_id))

    def port(self, end: str, *, is_input: bool) -> CanvasPort | None:
        """Return the visible port at an end of an edge, or None."""
        self.create_all()
        return self._port(end, is_input=is_input)

    def _port(self, end: str, *, is_input: bool) -> CanvasPort | None:
        node_id, _, name = end.partition(".")
        card = self.created_nodes.get(self.hidden.get(node_id, node_id))
        return card.port(end if node_id in self.hidden else name, is_input=is_input) if card is not None else None

    def patch(self, old: Workflow, new: Workflow) -> set[str]:
        """Update what differs between two documents, and return the ids of the changed nodes.

        The items of more nodes than a batch has are created in the following turns of the event loop.
        """
        before, wanted = old.nodes_by_id, new.nodes_by_id
        was_complete = self.is_complete
        self.workflow = new
        touched = {node_id for node_id, node in wanted.items() if before.get(node_id) is not node}
        if old.nodes is not new.nodes:
            former, self._names = self._names, node_names(new, self._session.registry)
            touched.update(node_id for node_id, name in self._names.items() if former.get(node_id) != name)
        changed_loops = self._hide_collapsed(new)
        touched |= changed_loops
        visible = wanted.keys() - self.hidden.keys()
        removed = self.created_nodes.keys() - visible
        has_other_nodes = bool(removed) or self.created_nodes.keys() | set(self._waiting) != visible
        has_other_edges = has_other_nodes or bool(changed_loops) or old.edges is not new.edges
        if has_other_edges:
            self._edges = _drawable_edges(new)
            self._count_ports()
        touched |= {loop for node_id in touched if (loop := self.hidden.get(node_id)) is not None}
        if has_other_nodes:
            self._patch_nodes(new)
            touched.update(self._waiting)
        if has_other_edges:
            self._remove_stale_edges(touched)
        # edges may name ports that a node does not declare
        for node_id in touched & self.created_nodes.keys():
            self.refresh(node_id)
        if has_other_nodes or old.layout is not new.layout:
            self._patch_positions(new)
            self.annotations.patch(new)
            self._viewer.extend_scene_rect(self.expected_rect)
        if has_other_edges:
            self._regions_wait = max(len(self._waiting), len(removed)) > BATCH
            self._create([] if len(self._waiting) > BATCH else self._waiting)
            if self.is_complete:
                self.created_regions.refresh(new)
            elif removed:
                self.created_regions.remove_stale()
        else:
            self.update_moved()
            self.created_regions.relabel(touched, new)
        if touched or has_other_nodes:
            self.node_lod.refresh()
        self.items_changed.emit()
        if self.is_complete and not was_complete:
            self.nodes_created.emit(touched | self.created_regions.items.keys())
        return touched

    def create_all(self) -> None:
        """Create the items that are waiting, now."""
        if not self.is_complete:
            self._create_waiting(self._waiting)

    def _create_batch(self) -> None:
        """Create a batch of the waiting items, those in view first; the regions are a batch of their own."""
        if not self._session.is_analyzing:
            self._analysis_polls = 0
        elif self._analysis_polls < MAX_ANALYSIS_POLLS:  # its thread would make the batch take twice as long
            self._analysis_polls += 1
            self._batches.start(ANALYSIS_POLL_MS)
            return
        seen, places = self._viewer.visible_rect, self.document_positions
        by_place = sorted(self._waiting, key=lambda node_id: not seen.contains(QPointF(*places[node_id])))
        self._create_waiting(by_place[:BATCH], with_regions=not by_place)

    def _create_waiting(self, node_ids: list[str], *, with_regions: bool = True) -> None:
        """Create items that the last patch left waiting; regions at the end, around all their cards."""
        self._regions_wait = not with_regions
        touched = self._create(node_ids)
        if with_regions:
            self.created_regions.refresh(self.workflow)
            touched.update(self.created_regions.items)
        self.node_lod.add(self.created_nodes[node_id] for node_id in node_ids)
        self.items_changed.emit()
        self.nodes_created.emit(touched)

    def _create(self, node_ids: list[str]) -> set[str]:
        """Create the items of waiting nodes, and of all missing edges between cards that exist; return their nodes."""
        items = [self._create_node(node_id) for node_id in node_ids]
        self._waiting = [node_id for node_id in self._waiting if node_id not in self.created_nodes]
        missing = [key for key in self._edges if key not in self._edge_items and self._has_cards(key)]
        edges = [self._add_edge(key) for key in missing]
        self.update_moved()
        for item in (*items, *edges):
            self._scene.addItem(item)  # added at their final position, so that the scene indexes them once
        if self.is_complete:
            self._batches.stop()
        else:
            self._batches.start(0)
        return {*node_ids, *(node_id for key in missing for node_id, _ in self._edges[key])}

    def _create_node(self, node_id: str) -> NodeItem:
        item = self.created_nodes[node_id] = NodeItem(self._card(node_id))
        item.expand = self.expand_requested.emit
        item.setPos(*self.document_positions[node_id])
        self._moved.add(item)
        if self.node_lod.isVisible():
            NodeLodItem.show_card(item, is_spot=True)
        return item

    def reset_positions(self) -> None:
        """Move all items back to their positions in the document after a rejected move."""
        self._patch_positions(self.workflow)
        self.annotations.patch(self.workflow)
        self.update_moved()

    def refresh(self, node_id: str) -> None:
        """Update a node item and its edges from the document."""
        item, content = self.created_nodes[node_id], self._card(node_id)
        if content != item.content:
            item.set_content(content)
            self._restyle_edges(item)
            self._moved.add(item)

    def toggle_ports(self, node_id: str) -> None:
        """Show all output ports of a node, or only those in use."""
        self.create_all()
        self.expanded ^= {node_id}
        if node_id not in self.hidden:  # selected in a document that cannot expand its loop
            self.refresh(node_id)
            self.update_moved()

    def update_dragged(self) -> None:
        """Update edges and regions of the nodes that the user drags."""
        self._moved.update(item for item in self.created_nodes.values() if item.pos() != item.followed_pos)
        self.update_moved()

    def update_moved(self) -> None:
        """Update edges and regions of the nodes that the document moved."""
        if not self._moved:
            return
        edge_items: dict[EdgeItem, None] = {}
        for item in self._moved:
            item.followed_pos = item.pos()
            for port in (*item.inputs, *item.outputs):
                edge_items.update(dict.fromkeys(port.connected_pipes))
        for edge in edge_items:
            edge.redraw()
        self.created_regions.update_moved(item.content.id for item in self._moved)
        self.node_lod.update_moved(self._moved)
        self._moved.clear()
        self.items_changed.emit()

    def update_level_of_detail(self) -> None:
        """Switch to the level-of-detail items when zoomed far out."""
        is_zoomed_out = self._viewer.factor < node_item.SPOTS_BELOW
        if is_zoomed_out is not self.node_lod.isVisible():
            self.node_lod.set_active(is_zoomed_out)
            self.created_regions.lod_item.set_active(is_zoomed_out)
            self._viewer.set_item_index(are_most_seen=is_zoomed_out)

    def show_selection(self) -> None:
        """Restyle edges whose selection changed, and update the level-of-detail item."""
        self.node_lod.update_selection()
        selected = {edge for edge in self._viewer.selected_pipes() if isinstance(edge, EdgeItem)}
        for edge in self._selected_edges ^ selected:
            edge.restyle()
        self._selected_edges = selected

    def restyle(self) -> None:
        """Apply another theme."""
        for edge in self._edge_items.values():
            edge.restyle()
        for item in self._scene.items():
            item.update()

    def _hide_collapsed(self, workflow: Workflow) -> set[str]:
        """Update which nodes collapsed loops hide; return the loops whose cards change."""
        before, self._collapsed = self._collapsed, collapsed_bodies(workflow, self._session.structure)
        if not before and not self._collapsed:
            return set()
        self.hidden = hidden_nodes(self._collapsed.values(), workflow.nodes_by_id)
        loops = {*before, *self._collapsed}
        changed = {loop for loop in loops if before.get(loop) != self._collapsed.get(loop)}
        self._remove_edges_of([self.created_nodes[loop] for loop in changed & self.created_nodes.keys()])
        return changed & workflow.nodes_by_id.keys()

    def _card(self, node_id: str) -> CardViewModel:
        body = self._collapsed.get(node_id)
        return self._own_card(node_id) if body is None else self._collapsed_card(body)

    def _collapsed_card(self, body: Body) -> CardViewModel:
        nodes = self.workflow.nodes_by_id  # the structure follows an edit with a delay
        hidden = {node_id: self._own_card(node_id) for node_id in (*body.nodes, body.exit) if node_id in nodes}
        return collapsed_card(self._own_card(body.loop), body, hidden, self.workflow)

    def _own_card(self, node_id: str) -> CardViewModel:
        """Return the card of a node if it is not collapsed; it is built again only if what it shows has changed."""
        node, name, is_expanded = self.workflow.nodes_by_id[node_id], self._names[node_id], node_id in self.expanded
        used = (tuple(self._used_in.get(node_id, ())), tuple(self._used_out.get(node_id, ())), name, is_expanded)
        known = self._own_cards.get(node_id)
        if known is not None and known[0] is node and known[1] == used:
            return known[2]
        session = self._session
        content = card_view_model(
            node, session.registry, session.structure, used[0], used[1], name=name, expanded=is_expanded
        )
        self._own_cards[node_id] = (node, used, content)
        return content

    def _patch_nodes(self, new: Workflow) -> None:
        """Remove node items, and note for which nodes items are to be created."""
        wanted = {node_id: node for node_id, node in new.nodes_by_id.items() if node_id not in self.hidden}
        if len(self._own_cards) > 2 * len(new.nodes) + REMOVED_CARDS:
            self._own_cards = {}
        removed = [node_id for node_id in self.created_nodes if node_id not in wanted]
        self._remove_edges_of([self.created_nodes[node_id] for node_id in removed])
        for node_id in removed:
            self._remove_node(node_id)
        self._waiting = [node_id for node_id in wanted if node_id not in self.created_nodes]

    def _remove_node(self, node_id: str) -> None:
        item = self.created_nodes.pop(node_id)
        self._moved.discard(item)
        self.expanded.discard(node_id)
        self._dispose(item)

    def _remove_edges_of(self, items: Iterable[NodeItem]) -> None:
        """Remove the edges of cards that are removed or get other ports, without repainting these cards."""
        ports = {port for item in items for port in (*item.inputs, *item.outputs)}
        edges = {edge for port in ports for edge in port.connected_pipes}
        for key in [key for key, edge in self._edge_items.items() if edge in edges]:
            self._remove_edge(key, ports)

    def _remove_stale_edges(self, touched: set[str]) -> None:
        """Remove edge items, and add the ends of these and of missing edges to `touched`."""
        removed = [key for key in self._edge_items if key not in self._edges]
        for key in removed:
            self._remove_edge(key)
        changed = {end.partition(".")[0] for key in removed for end in key}
        changed |= {end[0] for key, ends in self._edges.items() if key not in self._edge_items for end in ends}
        touched |= changed | {self.hidden.get(node_id, node_id) for node_id in changed}

    def _has_cards(self, key: EdgeKey) -> bool:
        """Whether an edge leads from one created card to another; those within a collapsed loop do not."""
        (source, _), (target, _) = self._edges[key]
        first, second = self.hidden.get(source, source), self.hidden.get(target, target)
        return first in self.created_nodes and second in self.created_nodes and (first != second or source == target)

    def _count_ports(self) -> None:
        self._used_in, self._used_out = {}, {}
        for (source, source_port), (target, target_port) in self._edges.values():
            self._used_out.setdefault(source, {})[source_port] = None
            self._used_in.setdefault(target, {})[target_port] = None

    def _add_edge(self, key: EdgeKey) -> EdgeItem:
        output, input_ = self._port(key[0], is_input=False), self._port(key[1], is_input=True)
        assert output is not None
        assert input_ is not None
        edge = self._edge_items[key] = EdgeItem()
        edge.join(output, input_)
        edge.restyle()
        for port in (output, input_):
            card = cast("NodeItem", port.parentItem())
            self._moved.add(card)
            card.update()
        return edge

    def _remove_edge(self, key: EdgeKey, repainted: Collection[QGraphicsItem] = ()) -> None:
        edge = self._edge_items.pop(key)
        self._selected_edges.discard(edge)
        for port in edge.ports:
            if edge in port.connected_pipes:
                port.remove_pipe(edge)
            card = port.parentItem() if port not in repainted else None  # a slow call
            if card is not None:
                card.update()
        self._dispose(edge)

    def _restyle_edges(self, item: NodeItem) -> None:
        """Restyle the edges of a node whose ports may have been replaced."""
        for port in (*item.inputs, *item.outputs):
            for edge in port.connected_pipes:
                edge.restyle()

    def _patch_positions(self, workflow: Workflow) -> None:
        visible = [node_id for node_id in workflow.nodes_by_id if node_id not in self.hidden]
        shown = dict.fromkeys((*visible, *self.hidden))
        self.document_positions = self.positions.of(workflow, self._session.structure, shown, self.all_boxes)
        for node_id, item in self.created_nodes.items():
            x, y = self.document_positions[node_id]
            if item.x() != x or item.y() != y:
                item.setPos(x, y)
                self._moved.add(item)

    def _dispose(self, item: QGraphicsItem) -> None:
        """Hide an item, which deselects it; it is removed once the current event, which may refer to it, is over."""
        if item is self._scene.mouseGrabberItem():  # else the next drag would begin where this one did
            QGraphicsItem.mouseReleaseEvent(item, QGraphicsSceneMouseEvent(QEvent.Type.GraphicsSceneMouseRelease))
        item.setVisible(False)
        if not self._removed:
            self._removal.start()
        self._removed.append(item)

    def _remove_hidden(self) -> None:
        """Remove a batch of hidden items from the scene, which takes longer than hiding them."""
        for item in self._removed[-REMOVAL_BATCH:]:
            self._scene.removeItem(item)
        del self._removed[-REMOVAL_BATCH:]
        if self._removed:
            self._removal.start()


def _drawable_edges(workflow: Workflow) -> dict[EdgeKey, Ends]:
    """Return the edges between existing nodes with their parsed ends."""
    nodes, found = workflow.nodes_by_id, dict[EdgeKey, Ends]()
    for edge in workflow.edges:
        from_, to = edge.from_, edge.to
        (source, _, source_port), (target, _, target_port) = from_.partition("."), to.partition(".")
        if source in nodes and target in nodes and source_port and target_port:
            found[from_, to] = (source, source_port), (target, target_port)
    return found
