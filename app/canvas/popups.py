"""Pop-ups over the canvas: pick lists with a filter, inline editors and the context menu.

The text of an inline editor is committed before anything else happens, such as saving or closing the window: shortcuts
and most buttons do not move the focus. Until then it is the session's pending edit, which autosave includes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPlainTextEdit,
    QWidget,
)

from app.canvas.add_button_item import DISTANCE
from app.canvas.annotations import AnnotationItem
from app.canvas.canvas_style import FRAME_COLORS, canvas_style
from app.canvas.connection_rules import ConnectionRules
from app.canvas.document_view import DocumentView
from app.canvas.edit_commands import EditCommands
from app.canvas.node_card import PortViewModel
from app.canvas.node_item import CanvasPort, NodeItem
from app.canvas.nodegraphqt_imports import AbstractNodeItem
from app.canvas.operation_builders import display_title
from app.canvas.viewer import CanvasViewer
from app.palette import tool_entries
from app.search import ListKeys, match_score
from app.session import Session
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import disabled_item, plain_tool_tip, vbox
from app.timers import call_later
from engine.document.operations import Operation, SetTitle
from engine.nodes.json_values import can_ever_fit
from engine.nodes.node_registry import Registry
from engine.nodes.spec import PAIR_BY_END, PAIR_BY_START, AnySpec, NodeConfig
from engine.nodes.subflow import SUBFLOW

WIDTH: Final = 280
HEIGHT: Final = 320
MAX_ROWS: Final = 200
"""Maximum number of listed entries; more are found faster by typing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a pick list.

    Attributes:
        title: Its title.
        help: One-line description.
        icon: Name of its icon.
        color: Color of the icon.
        value: Passed on when the entry is picked.
        synonyms: Other words that find it.
        is_rare: Whether it is listed only if it is searched for.
    """

    title: str
    help: str
    icon: str
    color: str
    value: Any
    synonyms: tuple[str, ...] = ()
    is_rare: bool = False


@dataclass(frozen=True, slots=True)
class TypeAndPort:
    """A node type (or `tool:NAME`) and its port that the edge connects to."""

    type: str
    port: str


_AFTER_AN_OUTPUT: Final = ("llm", "output", "loop", "transform", "router", "agent", "tool")
_BEFORE_AN_INPUT: Final = ("input", "llm", "transform", "tool")
"""The most likely node types, which lists show first."""


def matching_node_types(
    registry: Registry, port: PortViewModel | None, *, is_input: bool, in_body: bool = False
) -> list[Entry]:
    """Return the node types and tools that can be added: all, or those with a matching port.

    Args:
        registry: The node types.
        port: The port at the other end of the edge; None for all types.
        is_input: Whether that port is an input.
        in_body: Whether the new node is inside a loop body, which cannot contain inputs and outputs.
    """
    theme, entries = style().theme, list[Entry]()
    for spec in registry:
        if in_body and spec.type in {"input", "output"}:
            continue
        joined = _fitting(spec, spec.config(), port, is_input=is_input) if port is not None else ""
        if joined is not None:
            choice = TypeAndPort(spec.type, joined)
            color = theme.category[spec.category]
            is_rare = spec.type in PAIR_BY_END  # it is added with its start
            entries.append(Entry(display_title(spec), spec.help, spec.icon, color, choice, spec.synonyms, is_rare))
    caller = registry.find("tool")
    assert caller is not None, "a type of the program's own"
    for row in tool_entries():
        config = caller.config(tool=row.key.removeprefix("tool:"))
        joined = _fitting(caller, config, port, is_input=is_input) if port is not None else ""
        if joined is not None:
            color = theme.category[caller.category]
            entries.append(Entry(row.title, row.help, row.icon, color, TypeAndPort(row.key, joined)))
    if port is not None:
        order = _AFTER_AN_OUTPUT if not is_input else _BEFORE_AN_INPUT
        entries.sort(key=lambda entry: order.index(entry.value.type) if entry.value.type in order else len(order))
    return entries


def _fitting(spec: AnySpec, config: NodeConfig, port: PortViewModel, *, is_input: bool) -> str | None:
    if not is_input:
        found = next((own for own in spec.inputs(config) if can_ever_fit(port.type, own.type)), None)
    elif spec.type in PAIR_BY_START:  # the value leaves a pair through its end
        return "output"
    else:
        found = next((own for own in spec.all_outputs(config) if can_ever_fit(own.type, port.type)), None)
    return found.name if found is not None else None


class PickList(QFrame):
    """The pick list. Enter or a click picks; Escape or a click elsewhere closes it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parent = parent
        self._entries: Sequence[Entry] = ()
        self._chosen: Callable[[Any], object] = lambda _value: None
        self.setProperty("card", True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.filter = QLineEdit(self)
        self.filter.setClearButtonEnabled(True)
        self.list = QListWidget(self)
        self.list.setAccessibleName("Results")
        self.list.setUniformItemSizes(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        vbox(self.filter, self.list, spacing=2, margins=2, parent=self)
        self.filter.textChanged.connect(self._refill)
        ListKeys(self.filter, self.list, self._take)
        self.filter.installEventFilter(self)
        self.list.installEventFilter(self)
        self.list.itemClicked.connect(self._take)
        style().changed.connect(self.close_if_open)  # its icons and its place fit the former look
        self.hide()

    def open(self, place: QPoint, prompt: str, entries: Sequence[Entry], chosen: Callable[[Any], object]) -> None:
        """Open the list at a position of the parent.

        Args:
            place: Position.
            prompt: Placeholder of the filter.
            entries: The entries.
            chosen: Called with the value of the picked entry.
        """
        self._entries, self._chosen = entries, chosen
        scale = style().scale
        side = round(18 * scale)
        self.list.setIconSize(QSize(side, side))
        self.filter.clear()
        self._refill()
        room = self._parent.rect()
        height = min(self._wanted_height(), round(HEIGHT * scale), room.height() - 2 * 8)
        self.resize(round(WIDTH * scale), height)
        x = min(max(place.x(), 8), max(room.width() - self.width() - 8, 8))
        y = min(max(place.y(), 8), max(room.height() - self.height() - 8, 8))
        self.move(x, y)
        self.filter.setPlaceholderText(prompt)
        self.filter.setAccessibleName(prompt)
        self.show()
        self.raise_()
        self.filter.setFocus(Qt.FocusReason.PopupFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Route keys: arrows move in the list, Enter picks, Escape and losing the focus close."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._key(watched, event)
        if event.type() == QEvent.Type.FocusOut and self.isVisible():
            focus = self.window().focusWidget()
            if focus is not self.filter and focus is not self.list:
                self.hide()
        return super().eventFilter(watched, event)

    def close_if_open(self) -> None:
        """Close the list if it is open."""
        if self.isVisible():
            self.close_list()

    def close_list(self) -> None:
        """Close the list and return the focus to the canvas."""
        self.hide()
        self._parent.setFocus()

    def _key(self, watched: QObject, event: QKeyEvent) -> bool:
        if event.key() == Qt.Key.Key_Escape:
            self.close_list()
            return True
        if watched is self.list and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._take(self.list.currentItem())
            return True
        return False

    def _wanted_height(self) -> int:
        """Return the height that shows all entries without scrolling."""
        rows = max(self.list.count(), 3) * max(self.list.sizeHintForRow(0), 1) + 2 * self.list.frameWidth() + 4 * UNIT
        return rows + self.filter.sizeHint().height() + 6 * UNIT

    def _refill(self) -> None:
        self.list.clear()
        typed = self.filter.text()
        scores = [(match_score(typed, (entry.title,), entry.help, entry.synonyms), entry) for entry in self._entries]
        scores = [(score, entry) for score, entry in scores if score and (typed.strip() or not entry.is_rare)]
        fitting = [entry for _, entry in sorted(scores, key=lambda scored: -scored[0])]
        for entry in fitting[:MAX_ROWS]:
            item = QListWidgetItem(icon(entry.icon, entry.color), entry.title)
            item.setToolTip(plain_tool_tip(entry.help))
            item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, entry.help)
            item.setData(Qt.ItemDataRole.UserRole, entry)
            self.list.addItem(item)
        if len(fitting) > MAX_ROWS:
            self.list.addItem(disabled_item(f"{len(fitting) - MAX_ROWS} more. Type to filter."))
        if not fitting:
            self.list.addItem(disabled_item("No results"))
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        entry: Entry | None = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        if entry is None:
            return
        self.close_list()
        self._chosen(entry.value)


SMALLEST: Final = (120, 28)

Step = Callable[[str], Operation | None]
"""Returns the operation for a text, or None if nothing changes."""


class InlineEditor(QObject):
    """The single-line and the multi-line editor.

    Args:
        session: The document's session.
        parent: The widget that the editors lie over.
    """

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._parent = parent
        self.line = QLineEdit(parent)
        self.line.setAccessibleName("Title")
        self.area = QPlainTextEdit(parent)
        self.area.setAccessibleName("Note")
        self.area.setTabChangesFocus(True)
        self._step: Step | None = None
        for field in (self.line, self.area):
            field.hide()
            field.textChanged.connect(self._update_pending_edit)

    @property
    def is_open(self) -> bool:
        """Whether an editor is open."""
        return self._step is not None

    def edit_line(self, rect: QRect, text: str, step: Step) -> None:
        """Edit a line in place; `step` makes the operation unless the user cancels."""
        self._open(self.line, rect, step)
        self.line.setText(text)
        self.line.selectAll()

    def edit_text(self, rect: QRect, text: str, step: Step) -> None:
        """Edit several lines in place; Escape, Ctrl+Enter or a click elsewhere commits."""
        self._open(self.area, rect, step)
        self.area.setPlainText(text)
        self.area.selectAll()

    def commit(self) -> None:
        """Commit the open editor, if any."""
        make, self._step = self._step, None
        if make is None:
            return
        _application().removeEventFilter(self)
        text = self._text()
        self._close()
        step = make(text)
        if step is not None:
            self._session.do(step)
        self._session.pending_edit.put(None)  # last, so that autosave never misses the text

    def cancel(self) -> None:
        """Close the editor without a change."""
        _application().removeEventFilter(self)
        self._step = None
        self._close()
        self._session.pending_edit.put(None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Commit on Enter, on losing the focus, and before anything else happens.

        Escape cancels a title. It keeps the text of a note: that may be long, and undo brings the old one back.
        """
        if watched is not self.line and watched is not self.area:
            if self._is_outside(watched, event):
                self.commit()
        elif event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            is_enter = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
            with_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            is_escape = event.key() == Qt.Key.Key_Escape
            if is_escape and watched is self.line:
                self.cancel()
                return True
            if is_escape or (is_enter and (watched is self.line or with_control)):
                self.commit()
                return True
        elif event.type() == QEvent.Type.FocusOut and self.is_open and not self._owns(QApplication.activePopupWidget()):
            self.commit()
        return False

    def _owns(self, thing: QObject | None) -> bool:
        """Whether an object is an editor or part of one, such as its context menu."""
        while thing is not None and thing is not self.line and thing is not self.area:
            thing = thing.parent()
        return thing is not None

    def _is_outside(self, watched: QObject, event: QEvent) -> bool:
        """Whether an event starts something else: a shortcut, a mouse press elsewhere, closing the window."""
        kind = event.type()
        if kind == QEvent.Type.MouseButtonPress:
            return isinstance(watched, QWidget) and not self._owns(watched)
        return kind == QEvent.Type.Shortcut or (kind == QEvent.Type.Close and watched is self._parent.window())

    def _text(self) -> str:
        return self.line.text() if self.line.isVisible() else self.area.toPlainText()

    def _update_pending_edit(self) -> None:
        if self._step is not None:
            self._session.pending_edit.put(self._step(self._text()))

    def _open(self, field: QLineEdit | QPlainTextEdit, rect: QRect, step: Step) -> None:
        self.commit()
        self._step = step
        _application().installEventFilter(self)
        scale = style().scale
        width = max(rect.width(), round(SMALLEST[0] * scale))
        height = max(rect.height(), round(SMALLEST[1] * scale))
        room = self._parent.rect()
        field.setGeometry(
            min(max(rect.x(), 0), max(room.width() - width, 0)),
            min(max(rect.center().y() - height // 2, 0), max(room.height() - height, 0)),
            width,
            height,
        )
        field.show()
        field.raise_()
        field.setFocus(Qt.FocusReason.PopupFocusReason)

    def _close(self) -> None:
        had_focus = self.line.hasFocus() or self.area.hasFocus()
        self.line.hide()
        self.area.hide()
        if had_focus:
            self._parent.setFocus()


def _application() -> QCoreApplication:
    application = QCoreApplication.instance()
    assert application is not None
    return application


_NODE_MENU: Final = (
    ("set_up", "rename", "toggle_enabled", "pin", "unpin", "toggle_ports", "connect_to"),
    ("cut", "copy", "duplicate", "delete", "delete_reconnect"),
    ("wrap_loop", "wrap_iterator", "wrap_subflow", "wrap_frame"),
)
_ARRANGE_MENU: Final = (
    ("align_left", "align_center", "align_right"),
    ("align_top", "align_middle", "align_bottom"),
    ("distribute_across", "distribute_down"),
)
_CANVAS_MENU: Final = (
    ("quick_add", "add_frame", "add_note"),
    ("paste", "select_all"),
    ("tidy", "fit_all", "zoom_100"),
)


class Popups(QObject):
    """The pop-ups of one canvas.

    Attributes:
        menu: The context menu that was opened last.
        menu_position: Position of the last right click, while its menu is open or its action runs.
        actions: The actions of the canvas by name.
        run_actions: The window's actions that run a part of the workflow.

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
        self.menu: QMenu | None = None
        self.menu_position: QPointF | None = None
        self.actions: dict[str, QAction] = {}
        self.run_actions: list[QAction] = []
        viewer.dropped_on_empty.connect(self.choose_for_port)
        viewer.empty_double_clicked.connect(self.quick_add)
        viewer.opened.connect(self._open)
        viewer.context_menu_requested.connect(self.open_menu)

    @cached_property
    def list(self) -> PickList:
        """The pick list, created when it is first opened."""
        pick_list = PickList(self._canvas)
        self._session.changed.connect(pick_list.close_if_open)  # its entries belong to the document's previous state
        return pick_list

    @cached_property
    def text(self) -> InlineEditor:
        """The inline editor, created when it is first opened."""
        editor = InlineEditor(self._session, self._canvas)
        self._viewer.view_moved.connect(editor.commit)
        return editor

    @property
    def pointer(self) -> QPointF | None:
        """Position of the right click, else of the mouse; None if the mouse is elsewhere."""
        return self.menu_position if self.menu_position is not None else self._viewer.mouse_position()

    @property
    def position(self) -> QPointF:
        """Position for new items: the pointer, else the center."""
        pointer = self.pointer
        return pointer if pointer is not None else self._viewer.center

    def quick_add(self, at: QPointF | None = None) -> None:
        """Pick a node type to add at a position, or at the mouse; without one, next to the selection."""
        position = at if at is not None else self.pointer
        entries = matching_node_types(self._session.registry, None, is_input=False)
        self.list.open(
            self._on_canvas(position if position is not None else self._viewer.center),
            "Add node",
            entries,
            lambda choice: self._commands.add_node(choice.type, position),
        )

    def choose_next(self, port: CanvasPort) -> None:
        """Pick the node to add after an output: between it and what follows."""
        end, beside = port.end, port.middle + QPointF(2 * DISTANCE, -16)
        self._choose_matching(port, beside, lambda choice: self._commands.add_after(choice.type, end, choice.port))

    def choose_for_port(self, port: CanvasPort, position: QPointF) -> None:
        """Pick a node type that fits a port, to add it at a position with an edge."""
        end, is_input = port.end, port.is_input
        self._choose_matching(
            port,
            position,
            lambda choice: self._commands.add_connected(
                choice.type, position, end, choice.port, from_output=not is_input
            ),
        )

    def _choose_matching(self, port: CanvasPort, position: QPointF, chosen: Callable[[TypeAndPort], object]) -> None:
        """Open the list of node types that fit a port."""
        node_id, is_input, structure = port.node_id, port.is_input, self._session.structure
        in_body = not is_input and (
            node_id in structure.parent
            or (node_id in structure.bodies and port.name in structure.bodies[node_id].kind.body_ports)
        )
        entries = matching_node_types(self._session.registry, port.content, is_input=is_input, in_body=in_body)
        self.list.open(self._on_canvas(position), "Add matching node", entries, chosen)

    def connect_to(self, connect: Callable[[CanvasPort, CanvasPort], object]) -> None:
        """Pick an input to connect the selected node to, without the mouse."""
        item = self._view.nodes.get(self._session.selection[0]) if self._session.selection else None
        if item is not None:
            corner = self._viewer.mapFromScene(item.card_rect.topRight()) + QPoint(8, 0)
            prompt = f"Connect {item.content.title} to"
            self.list.open(corner, prompt, self._targets(item), lambda ports: connect(*ports))

    def _targets(self, item: NodeItem) -> Sequence[Entry]:
        """Return an entry for each input that an output of a node may be connected to."""
        workflow, structure = self._session.workflow, self._session.structure
        entries: list[Entry] = []
        for output in item.outputs:
            rules = ConnectionRules(workflow, structure, output.node_id, output.content, is_input=False)
            prefix = "" if len(item.outputs) == 1 else f"{output.name} → "
            for other in self._view.nodes.values():
                color = canvas_style().category(other.content.category).name()
                entries += [
                    Entry(
                        f"{prefix}{other.content.title} · {input_.name}",
                        f"from {output.name}",
                        other.content.icon,
                        color,
                        (output, input_),
                    )
                    for input_ in other.inputs
                    if rules.rejection_reason(input_.node_id, input_.content, is_input=True) is None
                ]
        return entries

    def _open(self, item: AbstractNodeItem) -> None:
        """Open the workflow of a subflow node, expand a collapsed loop; edit the text of any other item."""
        node = self._session.node(item.content.id) if isinstance(item, NodeItem) else None
        if node is not None and node.type == SUBFLOW:
            self.opened.emit(node.id)
        elif isinstance(item, NodeItem) and item.content.collapsed:
            item.expand(item.content.id)
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

    def open_menu(self, global_position: QPoint, position: QPointF) -> None:
        """Select the item at a scene position, at a loop's label the whole loop, and open its context menu."""
        self.menu_position = position
        items = self._viewer.scene().items(position)
        label = self._viewer.label_at(position)
        item = next((item for item in items if isinstance(item, (NodeItem, AnnotationItem))), None)
        edge = self._viewer.edge_at(position) if item is None and label is None else None
        clicked = (item or edge) if label is None else None
        if label is not None:
            label.select(label.loop_id)
        if clicked is not None and not clicked.isSelected():
            self._viewer.scene().clearSelection()
            clicked.setSelected(True)
        self.menu = QMenu(self._canvas)
        self.menu.setAccessibleName("Actions")
        if label is None and isinstance(item, AnnotationItem):
            self._fill(self.menu, (("rename", "delete"),))
            if item.is_frame:
                self.menu.addAction(self.actions["unwrap"])
                self._add_colors(self.menu, item)
        elif label is not None or isinstance(item, NodeItem):
            self.menu.addActions(self.run_actions)
            self.menu.addSeparator()
            if self.actions["open_subflow"].isEnabled():
                self._fill(self.menu, (("open_subflow",), ()))
            if self.actions["unwrap"].isEnabled():
                is_loop = self.actions["toggle_collapsed"].isEnabled()
                self._fill(self.menu, (("toggle_collapsed", "unwrap") if is_loop else ("unwrap",), ()))
            self._fill(self.menu, _NODE_MENU)
            if len(self._session.selection) > 1:
                self._fill(self.menu.addMenu("Align and distribute"), _ARRANGE_MENU)
        else:
            self._fill(self.menu, (("delete",),) if edge is not None else _CANVAS_MENU)
        self.menu.aboutToHide.connect(self._menu_closed)
        self.menu.popup(global_position)

    def _menu_closed(self) -> None:
        # The chosen action runs after this signal and still needs the position; the next menu replaces it.
        menu = self.sender()
        assert isinstance(menu, QMenu)
        menu.deleteLater()
        call_later(self, self._forget_menu_position)

    def _forget_menu_position(self) -> None:
        self.menu_position = None

    def _fill(self, menu: QMenu, groups: tuple[tuple[str, ...], ...]) -> None:
        """Add the actions that apply: with all of them, the menu would be higher than a small screen."""
        for index, group in enumerate(groups):
            if index:
                menu.addSeparator()
            menu.addActions([self.actions[name] for name in group if self.actions[name].isEnabled()])

    def _add_colors(self, menu: QMenu, item: AnnotationItem) -> None:
        colors = menu.addMenu("Color")
        for name in FRAME_COLORS:
            action = colors.addAction(name.capitalize())
            action.setCheckable(True)
            action.setChecked(item.annotation.color == name)
            action.triggered.connect(
                lambda _checked=False, name=name: self._commands.change_annotation(
                    item, replace(item.annotation, color=name), "Change frame color"
                )
            )

    def _annotation_operation(self, item: AnnotationItem, text: str) -> Operation | None:
        if not item.isVisible():  # removed
            return None
        title = "Rename frame" if item.is_frame else "Edit note"
        return self._commands.annotation_operation(item, replace(item.annotation, text=text), title)

    def _on_canvas(self, position: QPointF) -> QPoint:
        return self._viewer.mapTo(self._canvas, self._viewer.mapFromScene(position))

    def _in_view(self, rect: QRectF) -> QRect:
        return QRect(self._on_canvas(rect.topLeft()), self._on_canvas(rect.bottomRight()))
