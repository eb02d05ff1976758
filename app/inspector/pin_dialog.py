"""Pin the output of a node: the dialog for its value, and the bar that shows that a node is pinned."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QComboBox, QDialog, QFrame, QPlainTextEdit, QWidget

from app.inspector.editor import describe_widget
from app.inspector.text_widgets import exact_text
from app.session import Session
from app.theme.style import set_style_properties
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, PlainLabel, StatusLabel, hbox, push_button, resize_on_screen, vbox
from engine.document.operations import SetPinned
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.node_names import node_name
from engine.nodes.spec import Port, PortType, is_body_port
from engine.plan.dependencies import pin_target
from engine.values import Value, compact_json, to_text

HINT = "Runs use this value instead of running the node. It costs nothing."


class PinField(QWidget):
    """The value of one output port.

    Args:
        port: The port.
        value: Its initial value; None for none.

    Attributes:
        editor: The text of the value: JSON unless the port or the initial value is text.
        error: What is wrong with the text.
    """

    def __init__(self, port: Port, value: Value, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.port = port
        is_text = port.type is PortType.TEXT or (
            port.type is PortType.ANY and (value is None or isinstance(value, str))
        )
        self._type = PortType.TEXT if is_text else PortType.JSON if port.type is PortType.ANY else port.type
        self.heading = PlainLabel(f"{port.name} ({'text' if is_text else self._type})", look="fieldname")
        text = "" if value is None else to_text(value) if is_text or not isinstance(value, str) else compact_json(value)
        self.editor = QPlainTextEdit(text, self)
        self.editor.setTabChangesFocus(True)
        describe_widget(self.editor, f"Pinned value of {port.name}", port.help)
        self.error = StatusLabel(look="small")
        vbox(self.heading, (self.editor, 1), self.error, spacing=1, parent=self)

    def value(self) -> Value:
        """Return the value.

        Raises:
            ConversionError: The text is not a value of the port's type.
        """
        return convert(exact_text(self.editor), self._type)

    def check(self) -> bool:
        """Show what is wrong with the text; return whether it is valid."""
        message = ""
        try:
            self.value()
        except ConversionError as error:
            message = error.message
        self.error.say(message, "bad")
        set_style_properties(self.editor, invalid=bool(message))
        return not message


class PinDialog(QDialog):
    """Asks for the values to pin.

    Args:
        session: The document.
        node_id: The node.

    Attributes:
        fields: The fields; of the branches of a router, only that of the chosen one is used.
        branch: The choice of a branch; None for a node without branches.
        pin: The button that pins the values.
        remove: The button that unpins the node; hidden if it is not pinned.
    """

    def __init__(self, session: Session, node_id: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._session, self._node_id = session, node_id
        node = session.workflow.nodes_by_id[node_id]
        self.setWindowTitle(f"Pin the output of “{node_name(session.workflow, node_id)}”")
        values = node.pinned or _last_outputs(session, node_id)
        ports = _ports(session, node_id, values)
        self.fields = [PinField(port, values.get(port.name), self) for port in ports]
        branches = [port.name for port in ports if port.branch]
        self.branch: QComboBox | None = QComboBox(self) if branches else None
        if self.branch is not None:
            self.branch.setAccessibleName("Branch")
            self.branch.addItems(branches)
            self.branch.setCurrentText(next((name for name in branches if name in values), branches[0]))
            self.branch.currentTextChanged.connect(self._show_branch)
        self.pin = push_button("Pin", self._pin, self, look="primary", auto_default=True)
        self.pin.setDefault(True)
        self.remove = push_button("Unpin", self._unpin, self, auto_default=True)
        self.remove.setVisible(bool(node.pinned))
        cancel = push_button("Cancel", self.reject, self, auto_default=True)
        vbox(
            PlainLabel(HINT, look="dim", wrap=True),
            *((self.branch,) if self.branch is not None else ()),
            *((field, 1) for field in self.fields),
            hbox(self.remove, STRETCH, cancel, self.pin, spacing=2),
            spacing=4,
            margins=(6, 6, 6, 4),
            parent=self,
        )
        self._show_branch()
        resize_on_screen(self, QSize(140, min(70 + 30 * len(self.fields), 160)) * UNIT)
        if self.fields:
            self.fields[0].editor.setFocus()

    def _show_branch(self) -> None:
        for field in self.fields:
            field.setVisible(self._is_used(field))

    def _is_used(self, field: PinField) -> bool:
        return self.branch is None or not field.port.branch or field.port.name == self.branch.currentText()

    def _pin(self) -> None:
        used = [field for field in self.fields if self._is_used(field)]
        invalid = [field for field in used if not field.check()]
        if invalid:
            invalid[0].editor.setFocus()
            return
        self._session.do(SetPinned(self._node_id, {field.port.name: field.value() for field in used}))
        self.accept()

    def _unpin(self) -> None:
        self._session.do(SetPinned(self._node_id, {}))
        self.accept()


def _last_outputs(session: Session, node_id: str) -> Mapping[str, Value]:
    """Return the outputs of a node in the run and iterations that are shown."""
    view_model = session.shown.view_model
    return view_model.node(node_id, session.shown.chosen).outputs if view_model is not None else {}


def _ports(session: Session, node_id: str, values: Mapping[str, Value]) -> list[Port]:
    """Return the main output of a node, its branches, and the outputs that are connected or pinned."""
    structure = session.structure_now
    resolved, node = structure.resolution.nodes.get(node_id), session.workflow.nodes_by_id[node_id]
    ports = resolved.outputs.values() if resolved is not None else ()
    outside = [port for port in ports if not is_body_port(node.type, port.name)]
    used = {link.source_port for link in structure.links_from.get(node_id, ())}
    used |= {*node.pinned} if node.pinned else {port.name for port in outside if port.branch and port.name in values}
    return [port for index, port in enumerate(outside) if index == 0 or port.branch or port.name in used]


def show_pin_dialog(session: Session, node_id: str, parent: QWidget) -> PinDialog | None:
    """Open the dialog for the output of a node; that of an exit belongs to its loop."""
    target = pin_target(session.structure_now, node_id)
    if target is None:
        session.refused.emit("This node has no output that can be pinned.")
        return None
    dialog = PinDialog(session, target, parent)
    dialog.open()
    return dialog


def unpin(session: Session, node_id: str) -> None:
    """Unpin a node; an exit stands for its loop."""
    target = pin_target(session.structure_now, node_id)
    if target is not None:
        session.do(SetPinned(target, {}))


class PinBar(QFrame):
    """Says that the selected node is pinned, and offers to pin it while its result is shown.

    Attributes:
        edit: Opens the dialog.
        remove: Unpins the node.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._node_id: str | None = None
        self._text = PlainLabel("", wrap=True)
        self.edit = push_button("", self._edit, self)
        self.remove = push_button("Unpin", self._remove, self)
        self._column = vbox(self._text, hbox(self.edit, self.remove, STRETCH, spacing=2), spacing=1, parent=self)

    def show_node(self, node_id: str | None, *, has_result: bool) -> None:
        """Show the bar for a node; hidden if it is not pinned and has no result to pin.

        Args:
            node_id: The selected node; None for none.
            has_result: Whether its result is shown.
        """
        session = self._session
        target = pin_target(session.structure, node_id) if node_id is not None and not session.is_past else None
        node = session.node(target) if target is not None else None
        self._node_id = target
        is_pinned = node is not None and bool(node.pinned)
        self.setVisible(node is not None and (is_pinned or has_result))
        self._text.setText("This node is pinned: runs use its pinned value instead of running it." if is_pinned else "")
        self._text.setVisible(is_pinned)
        self.edit.setText("Edit pinned value…" if is_pinned else "Pin output…")
        self.remove.setVisible(is_pinned)
        around = 2 * UNIT if is_pinned else 0
        self._column.setContentsMargins(around, around // 2, around, around // 2)
        set_style_properties(self, hint="info" if is_pinned else False)

    def _edit(self) -> None:
        if self._node_id is not None:
            show_pin_dialog(self._session, self._node_id, self)

    def _remove(self) -> None:
        if self._node_id is not None:
            unpin(self._session, self._node_id)
