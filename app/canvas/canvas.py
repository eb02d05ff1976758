"""The canvas widget of one document: its parts, actions and keyboard navigation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.canvas.actions import enable, make_actions
from app.canvas.add_button_item import AddButtonItem, button_rect
from app.canvas.annotations import AnnotationItem
from app.canvas.document_view import DocumentView
from app.canvas.edit_commands import EditCommands
from app.canvas.gestures import Gestures
from app.canvas.node_item import NodeItem
from app.canvas.popups import Popups
from app.canvas.run_view import RunView
from app.canvas.viewer import CanvasViewer
from app.canvas.viewport_controls import CursorHint, EmptyCanvasHint, FitToView, Minimap, ZoomControls
from app.inspector.pin_dialog import show_pin_dialog, unpin
from app.node_layout import ALIGNMENTS
from app.session import Session
from app.theme.style import style
from app.theme.widgets import vbox
from engine.document.model import Workflow
from engine.nodes.spec import ITERATOR, LOOP, PAIR_BY_END, PAIR_BY_START
from engine.nodes.subflow import SUBFLOW
from engine.plan.dependencies import pin_target

ZOOM_STEP: Final = 1.25
NUDGE: Final = 8.0
FAR_NUDGE: Final = 40.0

Item = NodeItem | AnnotationItem

_ARROWS: Final = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}


class Canvas(QWidget):
    """Canvas of one document.

    Signals:
        files_dropped: Files were dropped on the canvas.
        template_dropped: The template of this name was dropped on the canvas.
        properties_requested: The user wants to edit the properties of the selected node.
        subflow_requested: The user wants to open the workflow of the subflow node of this id.

    Attributes:
        session: The document's session.
        viewer: The graphics view.
        view: The items of the document.
        commands: The edit commands behind menus and shortcuts.
        actions_by_name: All actions, for menus.
    """

    files_dropped = Signal(list)
    template_dropped = Signal(str)
    properties_requested = Signal()
    subflow_requested = Signal(str)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.setAccessibleName("Canvas")
        self.viewer = CanvasViewer(self)
        self.viewer.setAccessibleName("Workflow")
        self.view = DocumentView(session, self.viewer, self)
        self.gestures = Gestures(session, self.view, self.viewer, self)
        self.commands = EditCommands(session, self.view, self.viewer, self.gestures)
        self.navigation = KeyboardNavigation(session, self.view, self.viewer)
        self.popups = Popups(session, self.view, self.viewer, self.commands, self)
        self.run_view = RunView(session, self.view, self.viewer, self)
        self.actions_by_name = make_actions(self.viewer, self._handlers())
        self.popups.actions = self.actions_by_name
        self.add_button = AddButtonItem()
        self.add_button.requested = self.popups.choose_next
        self.viewer.scene().addItem(self.add_button)
        self._hovered: NodeItem | None = None
        vbox(self.viewer, parent=self)
        self.minimap = Minimap(self.view, self.viewer, self)
        self.controls = ZoomControls(self.viewer, self.actions_by_name, self)
        self.fit_to_view = FitToView(self.view, self.viewer, self.controls, self.minimap)
        self.hint = CursorHint(self)
        self.empty_hint = EmptyCanvasHint(self)
        self._show_first_steps()
        self.setFocusProxy(self.viewer)
        self._is_selecting = False
        self._has_selected = False
        self._styled_for = (style().theme.name, style().scale)
        self._connect_signals()
        self._enable_actions()

    def _connect_signals(self) -> None:
        self.session.changed.connect(self._document_changed)
        self.session.analyzed.connect(self._analyzed)
        self.session.selection_changed.connect(self._session_selection_changed)
        self.viewer.scene().selectionChanged.connect(self._scene_selection_changed)
        self.commands.placed.connect(self.fit_to_view.show_rect)
        self.commands.arranged.connect(self.fit_to_view.show_all)
        self.commands.layout_changed.connect(lambda workflow: self._document_changed(self.view.workflow, workflow))
        self.view.expand_requested.connect(partial(self.commands.set_collapsed, collapsed=False))
        self.view.created_regions.collapse_requested = partial(self.commands.set_collapsed, collapsed=True)
        self.popups.opened.connect(self.subflow_requested)
        self.viewer.files_dropped.connect(self.files_dropped)
        self.viewer.template_dropped.connect(self.template_dropped)
        self.viewer.type_dropped.connect(self.commands.add_node)
        self.viewer.hint_changed.connect(self._show_hint)
        self.viewer.hovered.connect(self._hover)
        self.viewer.pointer_dragged.connect(self.fit_to_view.avoid_pointer)
        self.session.selection_changed.connect(self.minimap.redraw_soon)
        self.viewer.connecting.connect(self._show_add_button)
        self.view.items_changed.connect(self._show_add_button)
        self.view.nodes_created.connect(self._select_created)
        self.view.nodes_created.connect(self.run_view.show)
        self.viewer.key_handler = self._key
        style().changed.connect(self._restyle)

    def _handlers(self) -> dict[str, Callable[[], object]]:
        commands = self.commands
        return {
            **{f"align_{edge}": partial(commands.align, edge) for edge in ALIGNMENTS},
            "cut": commands.cut,
            "copy": commands.copy,
            "paste": lambda: commands.paste(self.popups.pointer),
            "duplicate": commands.duplicate,
            "delete": commands.delete,
            "delete_reconnect": commands.delete_and_reconnect,
            "select_all": lambda: self.session.select(self.view.nodes),
            "select_next": partial(self.navigation.step, 1),
            "select_previous": partial(self.navigation.step, -1),
            "set_up": self.properties_requested.emit,
            "open_subflow": lambda: self.subflow_requested.emit(self.session.selection[0]),
            "rename": self.popups.rename_selected,
            "toggle_enabled": commands.toggle_enabled,
            "pin": lambda: show_pin_dialog(self.session, self.session.selection[0], self),
            "unpin": lambda: unpin(self.session, self.session.selection[0]),
            "toggle_ports": self._toggle_ports,
            "quick_add": self.popups.quick_add,
            "connect_to": lambda: self.popups.connect_to(self.gestures.connect_ports),
            "add_frame": lambda: commands.add_annotation("frames", self.popups.position),
            "add_note": self._add_note,
            "wrap_loop": partial(commands.wrap, LOOP),
            "wrap_iterator": partial(commands.wrap, ITERATOR),
            "wrap_subflow": commands.wrap_in_subflow,
            "wrap_frame": lambda: commands.add_annotation("frames"),
            "unwrap": commands.unwrap,
            "toggle_collapsed": commands.toggle_collapsed,
            "tidy": commands.tidy,
            "distribute_across": lambda: commands.distribute(across=True),
            "distribute_down": lambda: commands.distribute(across=False),
            "zoom_in": lambda: self.viewer.zoom_to(self.viewer.zoom * ZOOM_STEP),
            "zoom_out": lambda: self.viewer.zoom_to(self.viewer.zoom / ZOOM_STEP),
            "zoom_100": lambda: self.viewer.zoom_to(1.0),
            "fit_all": lambda: self.fit_to_view.fit_all(),  # noqa: PLW0108 - it is created later
            "fit_selection": lambda: self.fit_to_view.fit_selection(),  # noqa: PLW0108
        }

    # API for the window

    def center_on(self, node_id: str) -> None:
        """Center the view on a node."""
        self.commands.reveal([node_id])
        item = self.view.nodes.get(node_id)
        if item is not None:
            self.viewer.center_at(item.card_rect.center())

    def draw(self, kind: str, scale: float = 2.0) -> Callable[[Path], None]:
        """Draw the whole document, and return a function that writes the drawing to a file, in any thread.

        Args:
            kind: `png`, `svg` or `pdf`.
            scale: Pixels of a PNG per unit of the scene.
        """
        from app.canvas.image_export import draw_pdf, draw_png, draw_svg

        scene, content = self.viewer.scene(), self.view.content_rect
        if kind == "png":
            return draw_png(scene, content, scale)
        return (draw_svg if kind == "svg" else draw_pdf)(scene, content, self.session.name)

    # Updates from the document

    def _document_changed(self, old: Workflow, new: Workflow) -> None:
        self.gestures.cancel()
        touched = self._patch(old, new)
        self.commands.restore_view(new)  # now, because fewer cards change their level of detail
        self._show_first_steps()
        self.run_view.show(touched)
        self._enable_actions()

    def _show_first_steps(self) -> None:
        self.empty_hint.setVisible(not self.view.workflow.nodes and not self.view.annotations.items)

    def _analyzed(self) -> None:
        workflow = self.view.workflow
        self._patch(workflow, workflow)  # collapsed loops hide what belongs to them now
        if self.view.is_complete:
            self.view.created_regions.refresh(workflow)
        self.run_view.update_problems()
        self.view.items_changed.emit()

    def _patch(self, old: Workflow, new: Workflow) -> set[str]:
        """Update the view, and select the loop instead of nodes that it hides now."""
        before = self.view.hidden
        with self._selecting():
            touched = self.view.patch(old, new)
        hidden, selection = self.view.hidden, self.session.selection
        if any(node_id in hidden and node_id not in before for node_id in selection):
            self.session.select(hidden.get(node_id, node_id) for node_id in selection)
        return touched

    def _session_selection_changed(self) -> None:
        self.commands.reveal(self.session.selection)
        self.viewer.forget_hover()
        wanted = set(self.session.selection)
        with self._selecting():
            for node_id, item in self.view.created_nodes.items():  # `_select_created` selects those that wait
                if item.isSelected() != (node_id in wanted):
                    item.setSelected(node_id in wanted)
        self._show_add_button()
        self._enable_actions()

    def _select_created(self, node_ids: set[str]) -> None:
        """Select the new cards of selected nodes."""
        created = self.view.created_nodes
        with self._selecting():
            for node_id in node_ids.intersection(self.session.selection, created):
                created[node_id].setSelected(True)

    def _scene_selection_changed(self) -> None:
        if not isValid(self.viewer):  # a scene that is being deleted clears its selection
            return
        if self._is_selecting:  # the scene emits once per item
            self._has_selected = True
            return
        items = self.viewer.scene().selectedItems()
        self.session.select(item.content.id for item in items if isinstance(item, NodeItem))
        self.view.show_selection()
        self._show_add_button()
        self._enable_actions()

    @contextmanager
    def _selecting(self) -> Iterator[None]:
        """Apply a selection from the session without sending it back, and show it once at the end."""
        was_selecting = self._is_selecting
        self._is_selecting, self._has_selected = True, was_selecting and self._has_selected
        try:
            yield
        finally:
            self._is_selecting = was_selecting
        if self._has_selected and not was_selecting:
            self.view.show_selection()

    def showEvent(self, event: QShowEvent) -> None:
        """Apply a theme that was chosen while the canvas was hidden."""
        super().showEvent(event)
        if self._styled_for != (style().theme.name, style().scale):
            self._restyle()

    def _restyle(self) -> None:
        """Apply the theme and the text size; a hidden canvas waits until it is shown."""
        if not self.isVisible():
            return
        was_fitted = self.fit_to_view.is_fitted and self._styled_for[1] != style().scale
        self._styled_for = (style().theme.name, style().scale)
        self.viewer.apply_zoom()
        self.viewer.update_background()
        self.view.restyle()
        self._place_overlays()
        if was_fitted:
            self.fit_to_view.fit_again()

    def _place_overlays(self) -> None:
        self.fit_to_view.place_overlays(self.size())
        self.empty_hint.center_in_parent()

    def _show_hint(self, text: str, position: QPoint) -> None:
        self.hint.show_text(text, self.viewer.mapTo(self, position))

    def _hover(self, card: NodeItem | None) -> None:
        self._hovered = card
        self._show_add_button()

    def _show_add_button(self, connecting: object = None) -> None:
        """Show the + beside the outputs of the card under the mouse, or else of the only selected one."""
        card = self._hovered
        if card is None or not card.isVisible():
            selection = self.session.selection
            card = self.view.created_nodes.get(selection[0]) if len(selection) == 1 else None
        is_editable = connecting is None and not self.session.is_past
        outputs = card.outputs if card is not None and is_editable else ()
        self.add_button.show_for(
            port for port in outputs if port.content.known and not self.viewer.has_card_in(button_rect(port))
        )

    def _add_note(self) -> None:
        """Add a note and let the user type its text."""
        note = self.view.annotations.items.get(self.commands.add_annotation("notes", self.popups.pointer))
        if note is not None:
            self.navigation.choose(note)
            self.popups.edit(note)

    def _toggle_ports(self) -> None:
        for node_id in self.session.selection:
            self.view.toggle_ports(node_id)

    def _enable_actions(self) -> None:
        session, annotations = self.session, self.view.annotations.selected
        nodes = [node for node_id in session.selection if (node := session.node(node_id)) is not None]
        types = {node.type for node in nodes}
        is_loop = not types.isdisjoint({*PAIR_BY_START, *PAIR_BY_END})
        is_one, items = len(nodes) == 1, len(nodes) + len(annotations) + len(self.commands.selected_edges)
        target = session.node(pin_target(session.structure, nodes[0].id) or "") if is_one else None
        selection = {
            "any": items > 0,
            "one item": items == 1,
            "nodes": bool(nodes),
            "one": is_one,
            "two": len(nodes) >= 2,
            "three": len(nodes) >= 3,
            "subflow": is_one and SUBFLOW in types,
            "loop": is_loop,
            "wrapped": is_loop or SUBFLOW in types or (not nodes and any(item.is_frame for item in annotations)),
            "pinnable": target is not None,
            "pinned": target is not None and bool(target.pinned),
        }
        enable(self.actions_by_name, selection)

    def _key(self, event: QKeyEvent) -> bool:
        """Move the selection with the arrow keys; with Ctrl or without a selection, navigate instead. Escape deselects.

        With Shift, the arrow keys resize selected frames and notes; Enter edits their text.
        While an older iteration is shown, the window uses the arrow keys to step through iterations.
        """
        if self.session.shown.chosen:
            return False
        if event.key() == Qt.Key.Key_Escape and (self.session.selection or self.viewer.scene().selectedItems()):
            self.view.create_all()
            self.viewer.scene().clearSelection()
            return True
        annotations = self.view.annotations.selected if not self.session.selection else []
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and annotations:
            self.popups.edit(annotations[0])
            return True
        direction = _ARROWS.get(Qt.Key(event.key()))
        if direction is None:
            return False
        modifiers = event.modifiers()
        has_selection = bool(self.session.selection or self.view.annotations.selected)
        if modifiers & Qt.KeyboardModifier.ControlModifier or not has_selection:
            self.navigation.go(direction)
        elif annotations and modifiers & Qt.KeyboardModifier.ShiftModifier:
            self.commands.resize_annotations(direction[0] * NUDGE, direction[1] * NUDGE)
        else:
            step = FAR_NUDGE if modifiers & Qt.KeyboardModifier.ShiftModifier else NUDGE
            self.commands.nudge(direction[0] * step, direction[1] * step)
        return True

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the overlays in their corners, and keep a fitted document fitted."""
        super().resizeEvent(event)
        self._place_overlays()
        if self.fit_to_view.is_fitted:
            self.fit_to_view.fit_again()


class KeyboardNavigation(QObject):
    """Keyboard navigation between the cards, frames and notes of one canvas."""

    def __init__(self, session: Session, view: DocumentView, viewer: CanvasViewer) -> None:
        super().__init__(viewer)
        self._session, self._view, self._viewer = session, view, viewer

    def go(self, direction: tuple[int, int]) -> None:
        """Select the nearest item in a direction, or the one nearest to the center if none is selected."""
        start = self._start()
        origin = _target_rect(start).center() if start is not None else self._viewer.center
        items = [item for item in self._items() if item is not start]
        points = [_target_point(item, origin) for item in items]
        found = nearest(points, origin, direction if start is not None else None)
        if found is not None:
            self.choose(items[found])

    def step(self, by: int) -> None:
        """Select the next (1) or previous (-1) item from left to right, wrapping around.

        Directions alone do not reach every item: others may always be nearer.
        """
        items, start = self._items(), self._start()
        items.sort(key=lambda item: (item.x(), item.y()))
        if items:
            index = items.index(start) + by if start is not None else min(by, 0)
            self.choose(items[index % len(items)])

    def choose(self, item: Item) -> None:
        """Select one item and nothing else."""
        for other in self._view.annotations.selected:
            other.setSelected(other is item)
        if isinstance(item, NodeItem):
            self._session.select([item.content.id])
        else:
            item.setSelected(True)
            self._session.select([])
        self._viewer.ensure_visible(_target_rect(item))

    def _items(self) -> list[Item]:
        return [*self._view.nodes.values(), *self._view.annotations.items.values()]

    def _start(self) -> Item | None:
        if self._session.selection:
            return self._view.nodes[self._session.selection[-1]]
        return next(iter(self._view.annotations.selected), None)


def nearest(points: Sequence[QPointF], start: QPointF, direction: tuple[int, int] | None) -> int | None:
    """Return the index of the nearest point in a direction, or None.

    Args:
        points: The candidates.
        start: Where to search from.
        direction: -1, 0 or 1 horizontally and vertically; None for any direction.
    """
    distances: dict[int, float] = {}
    for index, point in enumerate(points):
        delta = point - start
        if direction is None:
            distances[index] = delta.manhattanLength()
            continue
        across, down = direction
        ahead = delta.x() * across + delta.y() * down
        if ahead > 0:  # prefer items straight ahead
            distances[index] = ahead + 2 * (abs(delta.x() * down) + abs(delta.y() * across))
    return min(distances, key=distances.__getitem__, default=None)


def _target_rect(item: Item) -> QRectF:
    """Return the rectangle of an item; a frame counts as its title, since it surrounds other items."""
    if isinstance(item, NodeItem):
        return item.card_rect
    return item.text_rect.translated(item.pos()) if item.is_frame else item.scene_rect


def _target_point(item: Item, origin: QPointF) -> QPointF:
    """Return the point of an item to measure from; a frame's title may be wide."""
    rect = _target_rect(item)
    if isinstance(item, NodeItem) or not item.is_frame:
        return rect.center()
    return QPointF(min(max(origin.x(), rect.left()), rect.right()), rect.center().y())
