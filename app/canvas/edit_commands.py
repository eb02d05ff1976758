"""Edit commands of menus and shortcuts, applied to the selection as document operations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, QPointF, QRectF
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGraphicsItem

from app import node_layout
from app.canvas import operation_builders
from app.canvas.annotations import Annotation, AnnotationItem, Kind
from app.canvas.document_view import DocumentView
from app.canvas.edge_item import EdgeItem
from app.canvas.gestures import Gestures
from app.canvas.node_item import NodeItem
from app.canvas.viewer import CanvasViewer
from app.node_layout import Position, auto_layout, free_position, layout_entries, stored_position
from app.session import Session
from app.worker import Worker
from engine.document.clipboard import PASTE_OFFSET, copy_fragment, paste_fragment
from engine.document.files import loads
from engine.document.model import Workflow
from engine.document.operations import AddNode, Batch, Connect, Operation
from engine.errors import EngineError

LARGEST: Final = 20_000_000
"""Maximum length of a text on the clipboard that is parsed."""


class Clipboard:
    """Copy and paste of nodes as text for one document."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last = ""
        self._times = 0

    def copy(self, node_ids: Iterable[str]) -> bool:
        """Copy nodes and the edges between them to the clipboard."""
        wanted = list(node_ids)
        if not wanted:
            return False
        try:
            text = copy_fragment(self._session.workflow, wanted)
        except EngineError as error:
            self._session.refused.emit(str(error))
            return False
        QGuiApplication.clipboard().setText(text)
        self._last, self._times = text, 0
        return True

    def paste(self, seen: QRectF, at: QPointF | None = None) -> None:
        """Paste the nodes on the clipboard.

        Args:
            seen: The visible part of the scene; nodes that would be pasted outside are centred in it.
            at: Position of the upper left corner, or None.
        """
        text = QGuiApplication.clipboard().text()
        if not text.strip():
            return
        if len(text) > LARGEST:
            self._session.refused.emit("The text on the clipboard is too long. Copy a smaller part.")
            return
        self._times = self._times + 1 if text == self._last else 1
        self._last = text
        self.add(text, seen, at)

    def duplicate(self, node_ids: Iterable[str], seen: QRectF) -> None:
        """Duplicate nodes without using the clipboard."""
        wanted = list(node_ids)
        if wanted:
            times, self._times = self._times, 1
            self.add(copy_fragment(self._session.workflow, wanted), seen, verb="Duplicate")
            self._times = times

    def add(self, text: str, seen: QRectF, at: QPointF | None = None, verb: str = "Paste") -> None:
        """Add the nodes of a text and select them."""
        try:
            step = paste_fragment(self._session.workflow, text, offset=self._offset(text, seen, at))
        except EngineError as error:
            self._session.refused.emit(str(error))
            return
        if self._session.do(Batch(step.title.replace("Paste", verb, 1), step.operations)):
            self._session.select([step.node.id for step in step.operations if isinstance(step, AddNode)])

    def _offset(self, text: str, seen: QRectF, at: QPointF | None) -> tuple[float, float]:
        fragment = loads(text, source="clipboard")
        places = [place for node in fragment.nodes if (place := stored_position(fragment, node.id)) is not None]
        usual = (PASTE_OFFSET[0] * self._times, PASTE_OFFSET[1] * self._times)
        if not places:
            return usual
        left, top = min(x for x, _ in places), min(y for _, y in places)
        if at is not None:
            return (at.x() - left, at.y() - top)
        if seen.contains(QPointF(left + usual[0], top + usual[1])):
            return usual
        width, height = max(x for x, _ in places) - left, max(y for _, y in places) - top
        middle = seen.center()
        return (round(middle.x() - left - width / 2), round(middle.y() - top - height / 2))


BACKGROUND_LAYOUT_FROM: Final = 150
"""Documents with more nodes are laid out in a worker thread."""


class EditCommands(QObject):
    """The edit commands of one canvas."""

    def __init__(self, session: Session, view: DocumentView, viewer: CanvasViewer, gestures: Gestures) -> None:
        super().__init__(viewer)
        self._session, self._view, self._viewer, self._gestures = session, view, viewer, gestures
        self._clipboard = Clipboard(session)
        self._worker = Worker(self)

    @property
    def selection(self) -> list[str]:
        """The ids of the selected nodes."""
        return list(self._session.selection)

    @property
    def selected_annotations(self) -> list[AnnotationItem]:
        """The selected frames and notes."""
        return [item for item in self._view.annotations.items.values() if item.isSelected()]

    @property
    def selected_edges(self) -> list[tuple[str, str]]:
        """The selected edges by their ends."""
        return [item.ends for item in self._viewer.scene().selectedItems() if isinstance(item, EdgeItem)]

    @property
    def seen(self) -> QRectF:
        """The visible part of the scene."""
        return self._viewer.mapToScene(self._viewer.viewport().rect()).boundingRect()

    def add_node(self, node_type: str, place: QPointF | None = None) -> str | None:
        """Add a node, with a loop also its exit; on an edge, insert it. Return its id, or None if that is not possible.

        Args:
            node_type: The type, or `tool:NAME` for a tool node with that tool.
            place: Position, or None for a free one.
        """
        node_type, _, tool = node_type.partition(":")
        spec = self._session.registry.find(node_type)
        if spec is None:
            self._session.refused.emit(f"Unknown node type “{node_type[:60]}”. Choose one from the palette.")
            return None
        where = place if place is not None else self._default_position()
        added = operation_builders.add(self._session.workflow, spec, (where.x(), where.y()), tool=tool)
        pipe = self._viewer.edge_at(where) if place is not None else None
        pieces = self._gestures.insertion_operations(pipe, added) if pipe is not None else None
        if not self._session.do(operation_builders.add_step(spec, added, *(pieces or ()))):
            return None
        self._session.select([added.first])
        return added.first

    def add_connected(self, node_type: str, place: QPointF, end: str, port: str, *, from_output: bool) -> str | None:
        """Add a node and connect `end` to its `port`; return its id.

        The type may be `tool:NAME`, as for `add_node`.
        """
        node_type, _, tool = node_type.partition(":")
        spec = self._session.registry.find(node_type)
        if spec is None:
            return None
        added = operation_builders.add(self._session.workflow, spec, (place.x(), place.y()), tool=tool)
        edge = Connect(end, f"{added.first}.{port}") if from_output else Connect(f"{added.last}.{port}", end)
        replaced: tuple[Operation, ...] = ()
        if not from_output:
            replaced = self._disconnect_operations(end)
        if not self._session.do(operation_builders.add_step(spec, added, *replaced, edge)):
            return None
        self._session.select([added.first])
        return added.first

    def copy(self) -> bool:
        """Copy the selected nodes to the clipboard."""
        return self._clipboard.copy(self._selected_pairs())

    def cut(self) -> None:
        """Cut the selected nodes to the clipboard."""
        wanted = self._selected_pairs()
        if self._clipboard.copy(wanted):
            step = operation_builders.delete(self._session.workflow, wanted, ())
            if step is not None:
                self._session.do(Batch(step.title.replace("Delete", "Cut", 1), step.operations))

    def paste(self, at: QPointF | None = None) -> None:
        """Paste the nodes on the clipboard."""
        self._clipboard.paste(self.seen, at)

    def duplicate(self) -> None:
        """Duplicate the selected nodes."""
        self._clipboard.duplicate(self._selected_pairs(), self.seen)

    def delete(self) -> None:
        """Delete the selection."""
        workflow = self._session.workflow
        nodes = self._selected_pairs()
        annotations = [item.annotation.unset() for item in self.selected_annotations]
        step = operation_builders.delete(workflow, nodes, self.selected_edges, annotations)
        if step is not None:
            self._session.do(step)

    def delete_and_reconnect(self) -> None:
        """Delete the selected nodes and connect their predecessors to their successors."""
        workflow, structure = self._session.workflow, self._session.structure
        nodes = self._selected_pairs()
        step = operation_builders.delete_and_reconnect(workflow, self._session.registry, structure, nodes)
        if step is not None:
            self._session.do(step)

    def toggle_enabled(self) -> None:
        """Disable the selected nodes, or enable them if all are disabled."""
        step = operation_builders.toggle_enabled(self._session.workflow, self.selection)
        if step is not None:
            self._session.do(step)

    def nudge(self, across: float, down: float) -> None:
        """Move the selection a little, frames with their contents."""
        selected = (*(self._view.nodes[node_id] for node_id in self.selection), *self.selected_annotations)
        moved: dict[QGraphicsItem, None] = dict.fromkeys(selected)
        for frame in self.selected_annotations:
            moved.update(dict.fromkeys(frame.contained_items(frame) if frame.is_frame else ()))
        places = {item.content.id: (item.x() + across, item.y() + down) for item in moved if isinstance(item, NodeItem)}
        annotations: list[Operation] = [
            item.annotation.moved(item.annotation.x + across, item.annotation.y + down).set_in(self._session.workflow)
            for item in moved
            if isinstance(item, AnnotationItem)
        ]
        self._do_move(places, annotations)

    def align(self, where: str) -> None:
        """Align the selected nodes."""
        self._do_move(node_layout.align(self._rects(), where), verb="Align")

    def distribute(self, *, across: bool) -> None:
        """Make the gaps between the selected nodes equal."""
        self._do_move(node_layout.distribute(self._rects(), across=across), verb="Distribute")

    def tidy(self) -> None:
        """Lay out all nodes; large documents in a worker thread."""
        workflow, structure, boxes = self._session.workflow, self._session.structure, self._view.card_boxes()
        if len(boxes) <= BACKGROUND_LAYOUT_FROM:
            self._apply_layout(workflow, auto_layout(workflow, structure, boxes))
            return

        take_up = partial(self._apply_layout, workflow)
        self._worker.ask(partial(auto_layout, workflow, structure, boxes), take_up)

    def _apply_layout(self, workflow: Workflow, places: dict[str, Position]) -> None:
        if workflow is not self._session.workflow:  # edited in the meantime
            return
        moved = {node: place for node, place in places.items() if self._view.document_positions.get(node) != place}
        step = operation_builders.move(self._session.workflow, moved)
        if step is not None:
            self._session.do(Batch("Tidy up", step.operations))

    def add_annotation(self, kind: Kind, place: QPointF | None = None) -> tuple[str, str]:
        """Add a note, or a frame around the selected nodes, and return its path in the layout."""
        there = layout_entries(self._session.workflow, kind)
        number = 1
        while f"{kind[:-1]}_{number}" in there:
            number += 1
        rect = self._room_for(kind, place)
        annotation = Annotation(kind, f"{kind[:-1]}_{number}", rect.x(), rect.y(), rect.width(), rect.height())
        title = "Add frame" if kind == "frames" else "Add note"
        self._session.do(Batch(title, (annotation.set_in(self._session.workflow),)))
        return annotation.path

    def change_annotation(self, item: AnnotationItem, annotation: Annotation, what: str) -> None:
        """Change text or colour of a frame or note."""
        step = self.annotation_operation(item, annotation, what)
        if step is not None:
            self._session.do(step)

    def annotation_operation(self, item: AnnotationItem, annotation: Annotation, what: str) -> Batch | None:
        """Return the operation for such a change, or None if nothing changes."""
        return None if annotation == item.annotation else Batch(what, (annotation.set_in(self._session.workflow),))

    def _selected_pairs(self) -> list[str]:
        """The ids of the selected nodes, including the partner of each loop and exit."""
        return operation_builders.include_pairs(self._session.workflow, self._session.structure, self.selection)

    def _room_for(self, kind: Kind, place: QPointF | None) -> QRectF:
        nodes = [self._view.nodes[node_id].card_rect for node_id in self.selection]
        if kind == "frames" and nodes and place is None:
            around = QRectF()
            for rect in nodes:
                around = around.united(rect)
            return QRectF(around.adjusted(-24, -48, 24, 24).toRect())
        size = (320.0, 200.0) if kind == "frames" else (200.0, 96.0)
        middle = place if place is not None else self.seen.center() - QPointF(size[0] / 2, size[1] / 2)
        return QRectF(round(middle.x()), round(middle.y()), *size)

    def _default_position(self) -> QPointF:
        """Return a free position right of the selection, or in the middle of the view."""
        cards = self._view.nodes
        taken = {node_id: (item.x(), item.y()) for node_id, item in cards.items()}
        last = self.selection[-1] if self.selection else None
        if last is not None:
            wish = (taken[last][0] + cards[last].geometry.width + 72, taken[last][1])
        else:
            wish = (self.seen.center().x() - 88, self.seen.center().y() - 40)
        boxes = self._view.card_boxes()
        sample = boxes.get(last or next(iter(cards), ""))
        return QPointF(*(wish if sample is None else free_position(sample, wish, taken, boxes)))

    def _disconnect_operations(self, input_end: str) -> tuple[Operation, ...]:
        workflow = self._session.workflow
        node, _, name = input_end.partition(".")
        port = self._view.nodes[node].port(name, is_input=True)
        takes_many = port is not None and port.content.many
        step = operation_builders.connect(workflow, "", input_end, None, takes_many=takes_many)
        return step.operations[:-1] if isinstance(step, Batch) else ()

    def _rects(self) -> dict[str, node_layout.Rect]:
        items: dict[str, NodeItem] = {node_id: self._view.nodes[node_id] for node_id in self.selection}
        return {
            node_id: (item.x(), item.y(), item.geometry.width, item.geometry.height) for node_id, item in items.items()
        }

    def _do_move(self, places: dict[str, Position], others: list[Operation] | None = None, verb: str = "Move") -> None:
        if places:
            nodes = self._view.nodes
            computed = {node: (nodes[node].x(), nodes[node].y()) for node in self._view.positions.computed}
            places = {**computed, **places}
        step = operation_builders.move(self._session.workflow, places, others or (), verb)
        if step is not None:
            self._session.do(step)
