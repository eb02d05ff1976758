"""What stands over a node's form: its title, its id, what kind of node it is, and whether it is switched on."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from app.inspector.editors.base import name_widget, set_invalid
from app.inspector.row import ProblemLines
from app.inspector.target import Target
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, Switch
from engine.document.ids import is_node_id
from engine.document.model import Node
from engine.document.node_operations import SetEnabled, SetTitle
from engine.document.problems import Problem


class IdLine(QLineEdit):
    """The id; Esc takes back what was typed.

    Signals:
        given_up: Esc was pressed.
    """

    given_up = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # Qt's name
        """Esc, and everything else as usual."""
        if event.key() == Qt.Key.Key_Escape and self.isModified():
            self.given_up.emit()
            return
        super().keyPressEvent(event)


class NodeHeader(QWidget):
    """Title, id, kind and switch of the target's node.

    Signals:
        rename_asked: The id shall be another one, which is free and well-formed.
    """

    rename_asked = Signal(str)

    def __init__(self, target: Target, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._target = target
        self.title = QLineEdit(self)
        self.title.setObjectName("title")
        name_widget(self.title, "Title", "What people call the node.")
        self.id_line = IdLine(self)
        name_widget(self.id_line, "Id", "What edges and prompts call the node. Enter renames it everywhere.")
        self.id_fault = ProblemLines(self)
        self.problems = ProblemLines(self)
        self._mark = QLabel(self)
        self._kind = PlainLabel(parent=self, look="dim small", wrap=True)
        self.enabled = Switch(self)
        name_widget(self.enabled, "Enabled", "A node that is switched off passes its one input on, or is skipped.")
        self._lay_out()
        for widget in (self.title, self.id_line, self.enabled):
            target.keys.watch(widget)
        self.title.textEdited.connect(self._retitle)
        self.id_line.textEdited.connect(self._check_id)
        self.id_line.editingFinished.connect(self._rename)
        self.id_line.given_up.connect(self._give_up)
        self.enabled.clicked.connect(self._switch)
        style().changed.connect(self._draw)

    def _lay_out(self) -> None:
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(2 * UNIT)
        first = QHBoxLayout()
        first.setSpacing(2 * UNIT)
        first.addWidget(self._mark)
        first.addWidget(self.title, 1)
        first.addWidget(self.enabled)
        box.addLayout(first)
        box.addWidget(self._kind)
        second = QHBoxLayout()
        second.setSpacing(2 * UNIT)
        label = PlainLabel("Id", self, look="fieldname")
        label.setBuddy(self.id_line)
        second.addWidget(label)
        second.addWidget(self.id_line, 1)
        box.addLayout(second)
        box.addWidget(self.id_fault)
        box.addWidget(self.problems)

    def show_node(self, node: Node) -> None:
        """Show a node; what is being typed stays."""
        spec = self._target.session.registry.find(node.type)
        if self.title.text() != node.title:
            position = self.title.cursorPosition()
            self.title.setText(node.title)
            self.title.setCursorPosition(min(position, len(node.title)))
        self.title.setPlaceholderText(spec.title if spec is not None else node.type)
        if not self.id_line.isModified() and self.id_line.text() != node.id:
            self.id_line.setText(node.id)
            self._check_id(node.id)
        self.enabled.setChecked(node.enabled)
        unknown = f'There is no node type "{node.type}".'
        self._kind.setText(f"{spec.title} · {spec.help}" if spec is not None else unknown)
        self._draw()

    def show_problems(self, problems: list[Problem]) -> None:
        """Show what is wrong with the node as a whole."""
        self.problems.show_problems(problems)

    def forget_typing(self) -> None:
        """Another node is shown: what was typed into the id and not taken is gone."""
        self.id_line.setModified(False)

    def _draw(self) -> None:
        node = self._target.session.node(self._target.node_id or "")
        spec = self._target.session.registry.find(node.type) if node is not None else None
        theme = style().theme
        size = round(18 * style().scale)
        unknown = icon("mdi6.help-circle-outline", theme.bad)
        picture = icon(spec.icon, theme.category[spec.category]) if spec is not None else unknown
        self._mark.setPixmap(picture.pixmap(size, size))

    def _retitle(self, text: str) -> None:
        if self._target.node_id is not None:
            self._target.session.do(SetTitle(self._target.node_id, text))

    def _switch(self, on: bool) -> None:  # Qt's signal
        if self._target.node_id is not None:
            self._target.session.do(SetEnabled(self._target.node_id, on))

    def _fault_of(self, text: str) -> Problem | None:
        if text == self._target.node_id:
            return None
        if not is_node_id(text):
            remedy = "Use small letters, digits and underscores, a letter first."
            return Problem("bad-id", "This cannot be an id.", remedy)
        if self._target.session.node(text) is not None:
            return Problem("duplicate-id", f'There is already a node "{text}".', "Choose another id.")
        return None

    def _check_id(self, text: str) -> None:
        fault = self._fault_of(text)
        self.id_fault.show_problems([fault] if fault else [])
        set_invalid(self.id_line, invalid=fault is not None)

    def _rename(self) -> None:
        text = self.id_line.text()
        if not self.id_line.isModified():
            return
        if text == self._target.node_id or self._fault_of(text) is not None:
            if not self.id_line.hasFocus():
                self._give_up()  # leaving with an id that cannot be is as good as not having typed it
            return
        self.id_line.setModified(False)
        self.rename_asked.emit(text)

    def _give_up(self) -> None:
        self.id_line.setModified(False)
        self.id_line.setText(self._target.node_id or "")
        self._check_id(self.id_line.text())
