"""Pop-ups over the canvas: pick lists, inline editors and the context menu."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from PySide6.QtCore import QObject, QPoint, QPointF, QRect, QRectF, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from app.canvas.annotations import AnnotationItem
from app.canvas.canvas_style import FRAME_COLOURS, canvas_style
from app.canvas.connection_rules import ConnectionRules
from app.canvas.document_view import DocumentView
from app.canvas.edge_item import EdgeItem
from app.canvas.edit_commands import EditCommands
from app.canvas.inline_editor import InlineEditor
from app.canvas.node_item import NodeItem
from app.canvas.nodegraphqt_imports import AbstractNodeItem
from app.canvas.port_item import CanvasPort
from app.canvas.quick_add import Entry, PickList, TypeAndPort, matching_node_types
from app.canvas.viewer import CanvasViewer
from app.session import Session
from engine.document.operation import Operation
from engine.document.operations import SetTitle
from engine.nodes.subflow import SUBFLOW

_NODE_MENU: Final = (
    ("set_up", "rename", "toggle_enabled", "toggle_ports", "connect_to"),
    ("cut", "copy", "duplicate", "delete", "delete_reconnect"),
    ("add_frame", "fit_selection"),
)
_ARRANGE_MENU: Final = (
    ("align_left", "align_centre", "align_right"),
    ("align_top", "align_middle", "align_bottom"),
    ("distribute_across", "distribute_down"),
)
_GROUND_MENU: Final = (
    ("quick_add", "add_frame", "add_note"),
    ("paste", "select_all"),
    ("tidy", "fit_all", "zoom_100"),
)


class Popups(QObject):
    """The pop-ups of one canvas.

    Attributes:
        list: The pick list.
        text: The inline editor.
        menu: The context menu that was opened last.

    Signals:
        opened: The user wants to open the workflow of the subflow node of this id.
    """

    opened = Signal(str)

    def __init__(
        self, session: Session, view: DocumentView, viewer: CanvasViewer, commands: EditCommands, canvas: QWidget
    ) -> None:
        super().__init__(canvas)
        self._session, self._view, self._viewer, self._commands = session, view, viewer, commands
        self._canvas = canvas
        self.list = PickList(canvas)
        self.text = InlineEditor(session, canvas)
        self.menu: QMenu | None = None
        self._menu_place: QPointF | None = None
        self.actions: dict[str, QAction] = {}
        viewer.dropped_on_empty.connect(self.choose_for_port)
        viewer.opened.connect(self._open)
        viewer.context_menu_requested.connect(self.open_menu)
        viewer.view_moved.connect(self.text.commit)
        session.changed.connect(self.list.close_if_open)  # its entries belong to the previous state of the document

    @property
    def menu_place(self) -> QPointF | None:
        """Position of the last right click, while its menu is open or its action runs."""
        return self._menu_place

    @property
    def place(self) -> QPointF:
        """Position for new items: the right click, else the mouse, else the centre."""
        if self._menu_place is not None:
            return self._menu_place
        mouse = self._viewer.mouse_position()
        return mouse if mouse is not None else self._viewer.centre

    def quick_add(self) -> None:
        """Pick a node type to add at the mouse."""
        place = self.place

        def add(choice: TypeAndPort) -> None:
            self._commands.add_node(choice.type, place)

        entries = matching_node_types(self._session.registry, None, is_input=False)
        self.list.open(self._on_canvas(place), "Add node", entries, add)

    def choose_for_port(self, port: CanvasPort, place: QPointF) -> None:
        """Pick a node type that fits a port, to add it with an edge."""
        end, is_input = port.end, port.is_input

        def add(choice: TypeAndPort) -> None:
            self._commands.add_connected(choice.type, place, end, choice.port, from_output=not is_input)

        node_id, structure = port.node_id, self._session.structure
        in_body = not is_input and (
            node_id in structure.parent
            or (node_id in structure.bodies and port.name in structure.bodies[node_id].kind.body_ports)
        )
        entries = matching_node_types(self._session.registry, port.content, is_input=is_input, in_body=in_body)
        self.list.open(self._on_canvas(place), "Add matching node", entries, add)

    def connect_to(self, connect: Callable[[CanvasPort, CanvasPort], object]) -> None:
        """Pick an input to connect the selected node to, without the mouse."""
        item = self._view.nodes.get(self._session.selection[0]) if self._session.selection else None
        if item is None:
            return

        def chosen(ports: tuple[CanvasPort, CanvasPort]) -> None:
            connect(*ports)

        place = self._viewer.mapFromScene(item.card_rect.topRight())
        self.list.open(place + QPoint(8, 0), f"Connect {item.content.title} to", self._targets(item), chosen)

    def _targets(self, item: NodeItem) -> list[Entry]:
        entries: list[Entry] = []
        for output in item.outputs:
            fits = ConnectionRules(
                self._session.workflow, self._session.structure, item.content.id, output.content, is_input=False
            )
            for other in self._view.nodes.values():
                for input_ in other.inputs:
                    if fits.rejection_reason(other.content.id, input_.content, is_input=True) is None:
                        title = f"{other.content.title} · {input_.name}"
                        help_ = f"from {output.name}"
                        title = title if len(item.outputs) == 1 else f"{output.name} → {title}"
                        entries.append(
                            Entry(
                                title,
                                help_,
                                other.content.icon,
                                canvas_style().category(other.content.category).name(),
                                (output, input_),
                            )
                        )
        return entries

    def _open(self, item: AbstractNodeItem) -> None:
        """Open the workflow of a subflow node; edit the text of any other item."""
        node = self._session.node(item.content.id) if isinstance(item, NodeItem) else None
        if node is not None and node.type == SUBFLOW:
            self.opened.emit(node.id)
        else:
            self.edit(item)

    def edit(self, item: AbstractNodeItem) -> None:
        """Edit the title of a node or frame, or the text of a note."""
        if isinstance(item, NodeItem):
            self.rename(item)
        elif isinstance(item, AnnotationItem):
            rect = self._in_view(item.text_rect.translated(item.pos()))
            if item.is_frame:
                self.text.edit_line(
                    rect, item.annotation.text, lambda text: self._annotation_operation(item, text.strip())
                )
            else:
                self.text.edit_text(rect, item.annotation.text, lambda text: self._annotation_operation(item, text))

    def rename_selected(self) -> None:
        """Edit the title of the selected item."""
        items = self._viewer.selected_nodes()
        if items:
            self.edit(items[0])

    def rename(self, item: NodeItem) -> None:
        """Edit the title of a node."""
        node = self._session.workflow.nodes_by_id[item.content.id]
        rect = self._in_view(item.geometry.title_rect.translated(item.pos()))

        def step(text: str) -> Operation | None:
            text = " ".join(text.split())
            is_new = text != node.title and self._session.node(node.id) is not None
            return SetTitle(node.id, text) if is_new else None

        self.text.edit_line(rect, node.title, step)

    def open_menu(self, at: QPoint, place: QPointF) -> None:
        """Select the item at a scene position and open its context menu."""
        self._menu_place = place
        items = self._viewer.scene().items(place)
        item = next((item for item in items if isinstance(item, (NodeItem, AnnotationItem))), None)
        pipe = self._viewer.edge_at(place) if item is None else None
        self.menu = QMenu(self._canvas)
        self.menu.setAccessibleName("Actions")
        if item is not None or pipe is not None:
            self._select_only(item if item is not None else pipe)
        if isinstance(item, AnnotationItem):
            self._fill(self.menu, (("rename", "delete"),))
            if item.is_frame:
                self._add_colours(self.menu, item)
        elif isinstance(item, NodeItem):
            if self.actions["open_subflow"].isEnabled():
                self._fill(self.menu, (("open_subflow",), ()))
            self._fill(self.menu, _NODE_MENU)
            if len(self._session.selection) > 1:
                self._fill(self.menu.addMenu("Align and distribute"), _ARRANGE_MENU)
        else:
            self._fill(self.menu, (("delete",),) if pipe is not None else _GROUND_MENU)
        self.menu.aboutToHide.connect(self._menu_closed)
        self.menu.popup(at)

    def _menu_closed(self) -> None:
        # The chosen action runs after this signal and still needs the position; the next menu replaces it.
        menu = self.sender()
        assert isinstance(menu, QMenu)
        menu.deleteLater()
        self._viewer.call_later(self._forget_menu_place)

    def _forget_menu_place(self) -> None:
        self._menu_place = None

    def _select_only(self, item: AbstractNodeItem | EdgeItem | None) -> None:
        if item is not None and not item.isSelected():
            self._viewer.scene().clearSelection()
            item.setSelected(True)

    def _fill(self, menu: QMenu, groups: tuple[tuple[str, ...], ...]) -> None:
        for index, group in enumerate(groups):
            if index:
                menu.addSeparator()
            for name in group:
                menu.addAction(self.actions[name])

    def _add_colours(self, menu: QMenu, item: AnnotationItem) -> None:
        colours = menu.addMenu("Color")
        for name in FRAME_COLOURS:
            action = colours.addAction(name.capitalize())
            action.setCheckable(True)
            action.setChecked(item.annotation.colour == name)
            action.triggered.connect(
                lambda _checked=False, name=name: self._commands.change_annotation(
                    item, replace(item.annotation, colour=name), "Change frame color"
                )
            )

    def _annotation_operation(self, item: AnnotationItem, text: str) -> Operation | None:
        if item.scene() is None:
            return None
        words = "Rename frame" if item.is_frame else "Edit note"
        return self._commands.annotation_operation(item, replace(item.annotation, text=text), words)

    def _on_canvas(self, place: QPointF) -> QPoint:
        return self._viewer.mapTo(self._canvas, self._viewer.mapFromScene(place))

    def _in_view(self, rect: QRectF) -> QRect:
        return QRect(self._on_canvas(rect.topLeft()), self._on_canvas(rect.bottomRight()))
