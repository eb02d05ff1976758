"""Edit commands of menus and shortcuts, applied to the selection as document operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, QPointF, QRectF, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGraphicsItem

from app import node_layout
from app.canvas import collapsed_loops, loop_edits, operation_builders
from app.canvas.annotations import DEFAULT_SIZES, Annotation, AnnotationItem, Kind
from app.canvas.canvas_style import united
from app.canvas.card_spacing import Area, make_room
from app.canvas.document_view import DocumentView
from app.canvas.edge_item import EdgeItem
from app.canvas.gestures import Gestures
from app.canvas.loop_edits import Document, insert_into_body
from app.canvas.node_item import NodeItem
from app.canvas.operation_builders import BODY_ROOM, insert_into_edge, with_hidden
from app.canvas.subflow_edits import extract_subflow, inline_subflow
from app.canvas.viewer import CanvasViewer
from app.node_layout import Box, Position, auto_layout, free_position, layout_entries, stored_position
from app.session import Session
from app.timers import call_later
from app.worker import Worker
from engine.document.clipboard import PASTE_OFFSET, copy_fragment, fragment_of, paste_fragment, read_fragment
from engine.document.model import Workflow
from engine.document.operations import AddNodes, Batch, Connect, Operation, OperationError
from engine.nodes.json_values import can_ever_fit
from engine.nodes.spec import PAIR_BY_START, Pair
from engine.nodes.subflow import SUBFLOW

LARGEST: Final = 20_000_000
"""Maximum length of a text on the clipboard that is parsed."""

BACKGROUND_FROM: Final = 150
"""Documents with more nodes are laid out, and more nodes are duplicated, in a worker thread."""

BACKGROUND_PASTE_FROM: Final = 50_000
"""Longer texts are pasted in a worker thread: about as many nodes."""


@dataclass(frozen=True, slots=True)
class _Paste:
    """A paste that was applied to a document in advance.

    Attributes:
        step: The operation.
        before: The document.
        result: What the operation returned.
    """

    step: Batch
    before: Workflow
    result: tuple[Workflow, Operation]

    @property
    def title(self) -> str:
        """See `Operation.title`."""
        return self.step.title

    def apply(self, workflow: Workflow) -> tuple[Workflow, Operation]:
        """Return the result."""
        assert workflow is self.before
        return self.result


_Prepare = Callable[[Workflow], _Paste]


class Clipboard:
    """Copy and paste of nodes as text for one document.

    Attributes:
        added: Called with the ids of pasted or duplicated nodes.
    """

    def __init__(self, session: Session, worker: Worker, added: Callable[[list[str]], object]) -> None:
        self._session, self._worker = session, worker
        self.added = added
        self._last = ""
        self._times = 0

    def copy(self, node_ids: list[str]) -> bool:
        """Copy nodes and the edges between them to the clipboard."""
        if not node_ids:
            return False
        text = self._session.attempt(partial(copy_fragment, self._session.workflow, node_ids))
        if text is None:
            return False
        QGuiApplication.clipboard().setText(text)
        self._last, self._times = text, 0
        return True

    def paste(self, visible: QRectF, position: QPointF | None = None) -> None:
        """Paste the nodes on the clipboard.

        Args:
            visible: The visible part of the scene; nodes that would be pasted outside are centered in it.
            position: Position of the upper left corner, or None.
        """
        text = QGuiApplication.clipboard().text()
        if not text.strip():
            return
        if len(text) > LARGEST:
            self._session.refused.emit("The text on the clipboard is too long. Copy a smaller part.")
            return
        times = self._times = self._times + 1 if text == self._last else 1
        self._last = text

        def prepare(workflow: Workflow) -> _Paste:
            return _prepared(workflow, read_fragment(text), "Paste", visible, times, position)

        self._add(prepare, in_background=len(text) > BACKGROUND_PASTE_FROM)

    def duplicate(self, node_ids: list[str], visible: QRectF) -> None:
        """Duplicate nodes without using the clipboard."""
        copied = self._session.workflow

        def prepare(workflow: Workflow) -> _Paste:
            return _prepared(workflow, fragment_of(copied, node_ids), "Duplicate", visible)

        if node_ids:
            self._add(prepare, in_background=len(node_ids) > BACKGROUND_FROM)

    def _add(self, prepare: _Prepare, *, in_background: bool) -> None:
        """Add nodes and select them."""
        workflow = self._session.workflow
        if in_background:
            added, refused = partial(self._add_prepared, prepare), self._session.refused
            ask = partial(self._worker.ask, partial(prepare, workflow), added, lambda error: refused.emit(str(error)))
            call_later(self._worker, ask)  # the thread would slow down painting the selection
            return
        paste = self._session.attempt(partial(prepare, workflow))
        if paste is not None and self._session.do(paste):
            self.added(_added_ids(paste.step))

    def _add_prepared(self, prepare: _Prepare, paste: _Paste) -> None:
        """Add nodes, and select them in another turn of the event loop."""
        is_edited = paste.before is not self._session.workflow
        if is_edited and self._session.redo_title is not None:  # a new step would discard what can be redone
            self._session.refused.emit("Nothing was added, because you used Undo or Redo meanwhile. Try again.")
        elif is_edited:
            self._add(prepare, in_background=False)
        elif self._session.do(paste):
            call_later(self._worker, partial(self.added, _added_ids(paste.step)))


def _added_ids(step: Batch) -> list[str]:
    return [node.id for part in step.operations if isinstance(part, AddNodes) for node in part.nodes]


def _prepared(
    workflow: Workflow,
    fragment: Workflow,
    verb: str,
    visible: QRectF,
    times: int = 1,
    position: QPointF | None = None,
) -> _Paste:
    """Prepare the n-th paste of a fragment, in any thread; see `Clipboard.paste`."""
    step = paste_fragment(workflow, fragment, offset=_offset(workflow, fragment, visible, times, position))
    step = Batch(step.title.replace("Paste", verb, 1), step.operations)
    return _Paste(step, workflow, step.apply(workflow))


def _offset(
    workflow: Workflow, fragment: Workflow, visible: QRectF, times: int, position: QPointF | None
) -> tuple[float, float]:
    stored = [found for node in fragment.nodes if (found := stored_position(fragment, node.id)) is not None]
    x, y = PASTE_OFFSET[0] * times, PASTE_OFFSET[1] * times
    if not stored:
        return x, y
    left, top = min(x for x, _ in stored), min(y for _, y in stored)
    if position is not None:
        x, y = position.x() - left, position.y() - top
    elif not visible.contains(QPointF(left + x, top + y)):
        width, height = max(x for x, _ in stored) - left, max(y for _, y in stored) - top
        middle = visible.center()
        x, y = round(middle.x() - left - width / 2), round(middle.y() - top - height / 2)
    taken = {stored_position(workflow, node.id) for node in workflow.nodes}
    while any((at_x + x, at_y + y) in taken for at_x, at_y in stored):  # it would hide another copy
        x, y = x + PASTE_OFFSET[0], y + PASTE_OFFSET[1]
    return x, y


class EditCommands(QObject):
    """The edit commands of one canvas.

    Signals:
        placed: An edit placed cards in this rectangle of the scene, which should be in view.
        arranged: The same for an edit after which the whole document should be in view, if it is small enough.
        layout_changed: Show this workflow, whose layout differs from that of the read-only document.
    """

    placed = Signal(QRectF)
    arranged = Signal(QRectF)
    layout_changed = Signal(object)

    def __init__(self, session: Session, view: DocumentView, viewer: CanvasViewer, gestures: Gestures) -> None:
        super().__init__(viewer)
        self._session, self._view, self._viewer, self._gestures = session, view, viewer, gestures
        self._worker = Worker(self)
        self._clipboard = Clipboard(session, self._worker, self._show_pasted)
        self._saw_all = False
        self._shown_pasted: tuple[tuple[str, ...], QRectF] | None = None
        self._frame_before = (viewer.factor, viewer.center)
        self._pasted, self._seen_after = list[str](), self._seen()
        view.nodes_created.connect(self._show_pasted_again)

    @property
    def selected_edges(self) -> list[tuple[str, str]]:
        """The selected edges by their ends."""
        return [item.ends for item in self._viewer.scene().selectedItems() if isinstance(item, EdgeItem)]

    def add_node(self, node_type: str, position: QPointF | None = None) -> str | None:
        """Add a node, with a loop also its exit. Return its id, or None if that is not possible.

        On an edge the node is inserted; in a loop's region it becomes part of the body, or is put below the region if
        it cannot. A loop on a card wraps that card, or the selection if the card is selected; on an edge, it wraps the
        nodes at both ends, or the selection if both are selected. Without a position, the node is connected to the
        only selected one if nothing follows its main output yet, or inserted between it and the only node that follows.

        Args:
            node_type: The type, or `tool:NAME` for a tool node with that tool.
            position: Position, or None for one without cards and edges, and outside of regions if it stays unconnected.
                If other cards are there, the nearest free one below.
        """
        self._view.create_all()
        pair = PAIR_BY_START.get(node_type)
        card = self._viewer.card_at(position) if position is not None else None
        if pair is not None and card is not None:
            return self.wrap(pair, self._session.selection if card.isSelected() else [card.content.id])
        edge = self._viewer.edge_at(position) if position is not None else None
        if pair is not None and edge is not None:
            ends, selection = {end.partition(".")[0] for end in edge.ends}, self._session.selection
            for node_ids in (selection, ends) if ends <= set(selection) else (ends,):
                if loop_edits.can_wrap(self._gestures.document, node_ids, pair):
                    return self.wrap(pair, node_ids)
        added = self._added_node(node_type, position)
        if added is None:
            return None
        insertion = self._gestures.insertion_operations(edge, added.first, added.last) if edge is not None else None
        loop = self._view.regions.innermost_at(position) if position is not None and not insertion else None
        if position is not None and loop is not None:
            target = (position.x(), position.y())
            insertion = insert_into_body(self._gestures.document, loop, added.first, added.last, target)
            if not insertion:  # it does not belong to the loop, so it does not lie in the region either
                below = self._view.regions.bottom_at(position) + node_layout.FREE_GAP
                added = self._added_node(node_type, QPointF(position.x(), below)) or added
        if position is None:
            insertion = self._connections_to_selection(added)
            if not insertion:
                added = self._added_node(node_type, None, is_clear_of_regions=True) or added
        return self._add(added, *(insertion or ()))

    def _connections_to_selection(self, added: operation_builders.AddedNode) -> tuple[Operation, ...]:
        """Connect a new node to the only selected one; nothing if that is ambiguous or does not fit."""
        if len(self._session.selection) != 1:
            return ()
        document, before = self._gestures.document, self._session.selection[0]
        body = document.structure.bodies.get(before)
        if body is not None and body.exit in document.hidden:
            before, body = body.exit, None
        if body is not None:
            return insert_into_body(document, before, added.first, added.last, (0.0, 0.0)) if not body.nodes else ()
        ports, node = document.ports, document.workflow.nodes_by_id[before]
        output = document.main_output(node)
        edges = [edge for edge in document.edges_from(before) if edge.from_ == output]
        if len(edges) > 1 or (before in document.structure.parent and added.first.type == "output"):
            return ()
        outputs, inputs = ports.of(node)[1], ports.of(added.first)[0]
        if not outputs or not inputs or outputs[0].branch or node.type in PAIR_BY_START:
            return ()
        if not edges:
            fits = can_ever_fit(outputs[0].type, inputs[0].type)
            return (Connect.between(output, document.main_input(added.first)),) if fits else ()
        inserted = insert_into_edge(edges[0], added.first, added.last, ports)
        card = self._view.card_of(before)
        return (*inserted, *self._with_room(document, card, added)) if inserted and card is not None else ()

    def wrap(self, pair: Pair, node_ids: Iterable[str] | None = None) -> str | None:
        """Wrap nodes (default: the selection) in a loop or iterator; return its id, or None if that is not possible."""
        wanted = node_ids or self._session.selection
        step = self._session.attempt(lambda: loop_edits.wrap(self._gestures.document, wanted, pair))
        if step is None or not self._rearrange(step):
            return None
        loop = _added_ids(step)[0]
        self._session.select([loop])
        return loop

    def wrap_in_subflow(self) -> None:
        """Replace the selected nodes by a subflow that contains them."""
        step = self._session.attempt(lambda: extract_subflow(self._gestures.document, self._session.selection))
        if step is not None:
            self._rearrange(step)

    def unwrap(self) -> None:
        """Remove the selected loop with its exit, subflow or frame, and keep what is inside."""
        document = self._gestures.document
        frames = [item.annotation.unset() for item in self._view.annotations.selected if item.is_frame]
        if frames and not self._session.selection:
            self._session.do(Batch("Unwrap frame", tuple(frames)))
        for node_id in self._session.selection:
            try:
                if document.workflow.nodes_by_id[node_id].type == SUBFLOW:
                    self._rearrange(inline_subflow(document, node_id))
                elif node_id in document.structure.bodies or node_id in document.structure.loop_of:
                    self._unwrap_loop(document, document.structure.loop_of.get(node_id, node_id))
                else:
                    continue
            except OperationError as error:
                self._session.refused.emit(str(error))
            return

    def _unwrap_loop(self, document: Document, loop: str) -> None:
        step = loop_edits.unwrap(document, loop)
        if loop in self._view.hidden.values():  # make room for its body first
            card = self._view.loop_box(document.structure.bodies[loop], collapsed=False)
            room = collapsed_loops.expand(document, loop, card)
            step = Batch(step.title, (*room.operations, *step.operations))
        self._session.do(step)

    def _rearrange(self, step: Batch) -> bool:
        """Apply an edit, select what it adds, and bring the document into view; return False if it was refused."""
        if not self._session.do(step):
            return False
        rect = self._select(_added_ids(step))
        self.arranged.emit(rect)
        return True

    def toggle_collapsed(self) -> None:
        """Collapse the selected loop to a card, or expand it."""
        structure = self._session.structure
        for node_id in self._session.selection:
            loop = structure.loop_of.get(node_id, node_id)
            if loop in structure.bodies:
                self.set_collapsed(loop, collapsed=loop not in self._view.hidden.values())
                return

    def set_collapsed(self, loop: str, *, collapsed: bool) -> None:
        """Collapse or expand a loop, and select it. In a read-only document, only the view changes."""
        document, view = self._gestures.document, self._view
        body = document.structure.bodies.get(loop)
        if body is None or collapsed is (loop in view.hidden.values()):
            return
        card = view.loop_box(body, collapsed=collapsed)
        change = collapsed_loops.collapse if collapsed else collapsed_loops.expand
        step = self._session.attempt(partial(change, document, loop, card))
        if step is None:
            return
        if collapsed:
            self._session.select([loop])
        if self._session.is_past:
            self.layout_changed.emit(step.apply(view.workflow)[0])
        elif not self._session.do(step):
            return
        region = view.regions.items.get(loop)
        self.arranged.emit(region.rect if region is not None else view.nodes[loop].card_rect)

    def reveal(self, node_ids: Iterable[str]) -> None:
        """Expand the loops that hide nodes."""
        for node_id in node_ids:
            while (loop := self._view.hidden.get(node_id)) is not None:
                self.set_collapsed(loop, collapsed=False)
                if self._view.hidden.get(node_id) == loop:  # refused
                    break

    def add_connected(self, node_type: str, position: QPointF, end: str, port: str, *, from_output: bool) -> str | None:
        """Add a node as `add_node` does and connect `end` to its `port`; return its id."""
        added = self._added_node(node_type, position)
        if added is None:
            return None
        if from_output:
            return self._add(added, Connect.between(end, f"{added.first.id}.{port}"))
        item = self._view.port(end, is_input=True)
        takes_many = item is not None and item.content.many
        source = f"{added.last.id}.{port}"
        return self._add(added, *operation_builders.connect(self._session.workflow, source, end, takes_many=takes_many))

    def add_after(self, node_type: str, end: str, port: str) -> str | None:
        """Add a node after an output, between it and what follows; return its id.

        If nothing follows, or several nodes do, or the node does not fit between, only its `port` is connected.
        """
        document, edges = self._gestures.document, [edge for edge in self._session.workflow.edges if edge.from_ == end]
        card = self._view.card_of(end.partition(".")[0])
        assert card is not None, "the output has a button"
        added = self._added_node(node_type, self.position_after(card.content.id))
        if added is None:
            return None
        inserted = insert_into_edge(edges[0], added.first, added.last, document.ports) if len(edges) == 1 else None
        if inserted is None:
            return self._add(added, Connect.between(end, f"{added.first.id}.{port}"))
        return self._add(added, *inserted, *self._with_room(document, card, added))

    def _with_room(
        self, document: Document, card: NodeItem, added: operation_builders.AddedNode
    ) -> tuple[Operation, ...]:
        """Put a new node right of a card, and move what is there aside."""
        before, boxes, workflow = card.card_rect, document.boxes, document.workflow
        width, height = max(box.width for box in boxes.values()), max(box.height for box in boxes.values())
        left = before.right() + node_layout.COLUMN_GAP
        places = {added.first.id: (left, before.top())}
        if added.last is not added.first:
            places[added.last.id] = (left + BODY_ROOM, before.top())
        right = max(x for x, _ in places.values()) + width
        small = Area(before.left(), before.top(), before.right(), before.bottom())
        area = Area(before.right(), before.top(), right, before.top() + height)
        others = {node: place for node, place in document.visible.items() if node != card.content.id}
        moved, annotations = make_room(workflow, others, boxes, area, small)
        moved = with_hidden(moved, document.positions, document.hidden)
        return (operation_builders.set_positions(workflow, {**moved, **places}), *annotations)

    def _added_node(
        self, node_type: str, position: QPointF | None, *, is_clear_of_regions: bool = False
    ) -> operation_builders.AddedNode | None:
        node_type, _, tool = node_type.partition(":")
        spec = self._session.registry.find(node_type)
        if spec is None:
            self._session.refused.emit(f"Unknown node type “{node_type[:60]}”. Choose one from the palette.")
            return None
        room = BODY_ROOM if spec.type in PAIR_BY_START else 0.0
        preferred = position if position is not None else self._default_position()
        free = self._free_position(
            preferred, room, is_clear_of_edges=position is None, is_clear_of_regions=is_clear_of_regions
        )
        return operation_builders.add(self._session.workflow, spec, (free.x(), free.y()), tool=tool)

    def _add(self, added: operation_builders.AddedNode, *more: Operation) -> str | None:
        if not self._session.do(added.with_operations(*more)):
            return None
        self.placed.emit(self._select([added.first.id, added.last.id]))
        self._session.select([added.first.id])
        return added.first.id

    def _select(self, node_ids: Iterable[str]) -> QRectF:
        """Select the cards of nodes, and return the rectangle around them."""
        cards = dict.fromkeys(self._view.hidden.get(node_id, node_id) for node_id in node_ids)
        self._session.select(cards)
        return self._view.expected_rect_of(self._session.selection)

    def copy(self) -> bool:
        """Copy the selected nodes to the clipboard."""
        return self._clipboard.copy(self._selected_pairs())

    def cut(self) -> None:
        """Cut the selected nodes to the clipboard."""
        node_ids = self._selected_pairs()
        if self._clipboard.copy(node_ids):
            step = operation_builders.delete(self._session.workflow, node_ids, ())
            if step is not None:
                self._session.do(Batch(step.title.replace("Delete", "Cut", 1), step.operations))

    def paste(self, position: QPointF | None = None) -> None:
        """Paste the nodes on the clipboard."""
        self._clipboard.paste(self._noted_view(), position)

    def duplicate(self) -> None:
        """Duplicate the selected nodes."""
        self._clipboard.duplicate(self._selected_pairs(), self._noted_view())

    def _noted_view(self) -> QRectF:
        """Return the visible part of the scene, and note whether it shows everything: then it still does afterwards."""
        visible = self._viewer.visible_rect
        self._saw_all = visible.contains(self._view.content_rect)
        self._frame_before = (self._viewer.factor, self._viewer.center)
        return visible

    def _bring_into_view(self, rect: QRectF) -> None:
        """Bring a rectangle into view, or everything if it was in view before."""
        (self.arranged if self._saw_all else self.placed).emit(rect)
        self._seen_after = self._seen()

    def _seen(self) -> tuple[float, QPointF]:
        """Return the zoom factor and the upper left corner of the view, which a resize keeps."""
        return self._viewer.factor, self._viewer.visible_rect.topLeft()

    def restore_view(self, new: Workflow) -> None:
        """Show what was visible before a paste that was undone, unless the user has moved the view since."""
        is_undo = self._session.redo_title is not None
        if is_undo and self._pasted and new.nodes_by_id.keys().isdisjoint(self._pasted):
            self._pasted = []
            if self._seen() == self._seen_after:
                self._viewer.show_frame(*self._frame_before)

    def _show_pasted(self, node_ids: list[str]) -> None:
        if self._session.workflow.nodes_by_id.keys().isdisjoint(node_ids):  # undone in the meantime
            return
        self._pasted = node_ids
        self._bring_into_view(self._select(node_ids))
        self._shown_pasted = None if self._view.is_complete else (self._session.selection, self._viewer.visible_rect)

    def _show_pasted_again(self) -> None:
        """Bring pasted nodes into view once their cards have a size, in a turn of the event loop of its own."""
        if self._shown_pasted is not None and self._view.is_complete:
            shown, self._shown_pasted = self._shown_pasted, None
            call_later(self, partial(self._show_sized, *shown))

    def _show_sized(self, cards: Iterable[str], seen: QRectF) -> None:
        """Bring nodes into view unless the user has moved the view since this part of the scene was visible."""
        left = self._view.created_nodes.keys() & cards
        if left and seen == self._viewer.visible_rect:
            self._bring_into_view(self._view.expected_rect_of(left))

    def delete(self) -> None:
        """Delete the selection."""
        annotations = [item.annotation.unset() for item in self._view.annotations.selected]
        nodes, edges = self._selected_pairs(), self.selected_edges
        self._do(operation_builders.delete(self._session.workflow, nodes, edges, annotations))

    def delete_and_reconnect(self) -> None:
        """Delete the selected nodes and connect their predecessors to their successors."""
        self._do(operation_builders.delete_and_reconnect(self._gestures.ports, self._selected_pairs()))

    def toggle_enabled(self) -> None:
        """Disable the selected nodes, or enable them if all are disabled."""
        self._do(operation_builders.toggle_enabled(self._session.workflow, self._session.selection))

    def nudge(self, across: float, down: float) -> None:
        """Move the selection a little, frames with their contents."""
        annotations, nodes = self._view.annotations.selected, self._view.nodes
        moved: dict[QGraphicsItem, None] = dict.fromkeys(
            (*(nodes[node_id] for node_id in self._session.selection), *annotations)
        )
        for frame in annotations:
            moved.update(dict.fromkeys(self._view.annotations.contained_items(frame) if frame.is_frame else ()))
        positions = {
            item.content.id: (item.x() + across, item.y() + down) for item in moved if isinstance(item, NodeItem)
        }
        others: list[Operation] = [
            item.annotation.moved(item.annotation.x + across, item.annotation.y + down).set_in(self._session.workflow)
            for item in moved
            if isinstance(item, AnnotationItem)
        ]
        self._move(positions, others)

    def resize_annotations(self, across: float, down: float) -> None:
        """Make the selected frames and notes larger or smaller."""
        resized = [
            item.annotation.resized(item.annotation.width + across, item.annotation.height + down)
            for item in self._view.annotations.selected
        ]
        workflow = self._session.workflow
        self._do(Batch("Resize frame or note", tuple(annotation.set_in(workflow) for annotation in resized)))

    def align(self, edge: str) -> None:
        """Align the selected nodes."""
        self._move(node_layout.align(self._rects(), edge), verb="Align")

    def distribute(self, *, across: bool) -> None:
        """Make the gaps between the selected nodes equal."""
        self._move(node_layout.distribute(self._rects(), across=across), verb="Distribute")

    def tidy(self) -> None:
        """Lay out all nodes; large documents in a worker thread."""
        workflow, structure, boxes = self._session.workflow, self._session.structure, self._view.card_boxes()
        layout = partial(auto_layout, workflow, structure, boxes, dict(self._view.hidden))
        if len(boxes) <= BACKGROUND_FROM:
            self._apply_layout(workflow, layout())
        else:
            self._worker.ask(layout, partial(self._apply_layout, workflow))

    def _apply_layout(self, workflow: Workflow, positions: dict[str, Position]) -> None:
        if workflow is not self._session.workflow:  # edited in the meantime
            return
        before = self._view.document_positions
        positions = with_hidden(positions, before, self._view.hidden)
        moved = {node: position for node, position in positions.items() if before.get(node) != position}
        if moved:
            self._session.do(Batch("Tidy up", (operation_builders.set_positions(workflow, moved),)))
        self.arranged.emit(self._view.content_rect)

    def add_annotation(self, kind: Kind, position: QPointF | None = None) -> tuple[str, str]:
        """Add a note, or a frame around the selected nodes, and return its path in the layout."""
        workflow = self._session.workflow
        existing = layout_entries(workflow, kind)
        number = 1
        while f"{kind[:-1]}_{number}" in existing:
            number += 1
        rect = self._annotation_rect(kind, position)
        annotation = Annotation(kind, f"{kind[:-1]}_{number}", rect.x(), rect.y(), rect.width(), rect.height())
        self._session.do(Batch("Add frame" if kind == "frames" else "Add note", (annotation.set_in(workflow),)))
        return annotation.path

    def annotation_operation(self, item: AnnotationItem, annotation: Annotation, title: str) -> Batch | None:
        """Return the operation that changes text or color of a frame or note, or None if nothing changes."""
        return None if annotation == item.annotation else Batch(title, (annotation.set_in(self._session.workflow),))

    def change_annotation(self, item: AnnotationItem, annotation: Annotation, title: str) -> None:
        """Change text or color of a frame or note."""
        self._do(self.annotation_operation(item, annotation, title))

    def _selected_pairs(self) -> list[str]:
        """Return the ids of the selected nodes, including the partner of each loop and exit, and hidden nodes."""
        session, hidden = self._session, self._view.hidden
        selected = [*session.selection, *(node_id for node_id, loop in hidden.items() if loop in session.selection)]
        return operation_builders.include_pairs(session.workflow, session.structure, selected)

    def _annotation_rect(self, kind: Kind, position: QPointF | None) -> QRectF:
        nodes = [self._view.nodes[node_id].card_rect for node_id in self._session.selection]
        if kind == "frames" and nodes and position is None:
            return QRectF(united(nodes).adjusted(-24, -48, 24, 24).toRect())
        width, height = DEFAULT_SIZES[kind]
        corner = self._viewer.center - QPointF(width / 2, height / 2)
        if position is not None:
            corner = position
        elif kind == "notes":
            corner = self._free_position(corner, box=Box(width, height))
        return QRectF(round(corner.x()), round(corner.y()), width, height)

    def position_after(self, node_id: str) -> QPointF:
        """Return a free position right of a node."""
        rect = self._view.nodes[node_id].card_rect
        return self._free_position(QPointF(rect.right() + node_layout.COLUMN_GAP, rect.top()))

    def _default_position(self) -> QPointF:
        """Return a position right of the selection, or in the middle of the view."""
        if self._session.selection:
            return self.position_after(self._session.selection[-1])
        return self._viewer.center - QPointF(88, 40)

    def _free_position(
        self,
        preferred: QPointF,
        room: float = 0.0,
        box: Box | None = None,
        *,
        is_clear_of_edges: bool = False,
        is_clear_of_regions: bool = False,
    ) -> QPointF:
        """Return the first position at or below a preferred one where a new item covers no card.

        Args:
            preferred: The preferred position.
            room: Width of what is between a card and its partner.
            box: Size of the item; by default that of a card, which is at most as large as the others.
            is_clear_of_edges: Whether it covers no edge either.
            is_clear_of_regions: Whether it lies in no loop's region either.
        """
        taken = {node_id: (item.x(), item.y()) for node_id, item in self._view.nodes.items()}
        boxes = self._view.card_boxes()
        if box is None:
            width = max((box.width for box in boxes.values()), default=0.0)
            box = Box(width + room, max((box.height for box in boxes.values()), default=0.0))
        rect = QRectF(*free_position(box, (preferred.x(), preferred.y()), taken, boxes), box.width, box.height)
        column = rect.adjusted(0, 0, 0, self._view.content_rect.height())
        edges = [*self._view.edge_items.values()] if is_clear_of_edges else []
        shapes = [edge.shape() for edge in edges if edge.boundingRect().intersects(column)]
        regions = [item.rect for item in self._view.regions.items.values()] if is_clear_of_regions else []
        while True:
            blocked = [region.bottom() for region in regions if region.intersects(rect)]
            blocked += [rect.top() for shape in shapes if shape.intersects(rect)]
            if not blocked:
                return rect.topLeft()
            x, y = free_position(box, (rect.x(), max(blocked) + node_layout.FREE_GAP), taken, boxes)
            rect.moveTo(x, y)

    def _rects(self) -> dict[str, node_layout.Rect]:
        rects = {node_id: self._view.nodes[node_id].card_rect for node_id in self._session.selection}
        return {node_id: (rect.x(), rect.y(), rect.width(), rect.height()) for node_id, rect in rects.items()}

    def _move(self, positions: dict[str, Position], others: Iterable[Operation] = (), verb: str = "Move") -> None:
        if positions:
            before = self._view.document_positions
            computed = {node: before[node] for node in self._view.positions.computed}
            positions = {**computed, **with_hidden(positions, before, self._view.hidden)}
        self._do(operation_builders.move(self._session.workflow, positions, others, verb, self._view.hidden))

    def _do(self, step: Operation | None) -> None:
        if step is not None:
            self._session.do(step)
