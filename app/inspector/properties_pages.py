"""What the inspector shows of one selected node under *Setup*. One page a node type serves all nodes of the type."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from app.inspector.config_binding import ConfigBinding
from app.inspector.editors.editor import describe_widget, mark_invalid
from app.inspector.form import Form, problems_by_field
from app.inspector.form_fields import ProblemLines
from app.inspector.prompt_editor import SYNTAX_ERROR_CODES
from app.inspector.text_widgets import GrowingEdit
from app.session import Session
from app.theme.style import icon, style
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, Switch
from engine.document.model import Node, is_node_id
from engine.document.operations import SetDescription, SetEnabled, SetName, SetTitle
from engine.document.problems import Problem
from engine.document.settings import Settings


class NodeIdEdit(QLineEdit):
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

    def __init__(self, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._binding = binding
        self.title = QLineEdit(self)
        self.title.setObjectName("title")
        describe_widget(self.title, "Title", "What people call the node.")
        self.id_line = NodeIdEdit(self)
        describe_widget(self.id_line, "Id", "What edges and prompts call the node. Enter renames it everywhere.")
        self.id_fault = ProblemLines(self)
        self.problems = ProblemLines(self)
        self._mark = QLabel(self)
        self._kind = PlainLabel(parent=self, look="dim small", wrap=True)
        self.enabled = Switch(self)
        describe_widget(self.enabled, "Enabled", "A node that is switched off passes its one input on, or is skipped.")
        self._lay_out()
        for widget in (self.title, self.id_line, self.enabled):
            binding.events.watch(widget)
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
        spec = self._binding.session.registry.find(node.type)
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
        node = self._binding.session.node(self._binding.node_id or "")
        spec = self._binding.session.registry.find(node.type) if node is not None else None
        theme = style().theme
        size = round(18 * style().scale)
        unknown = icon("mdi6.help-circle-outline", theme.bad)
        picture = icon(spec.icon, theme.category[spec.category]) if spec is not None else unknown
        self._mark.setPixmap(picture.pixmap(size, size))

    def _retitle(self, text: str) -> None:
        if self._binding.node_id is not None:
            self._binding.session.do(SetTitle(self._binding.node_id, text))

    def _switch(self, on: bool) -> None:  # Qt's signal
        if self._binding.node_id is not None:
            self._binding.session.do(SetEnabled(self._binding.node_id, on))

    def _fault_of(self, text: str) -> Problem | None:
        if text == self._binding.node_id:
            return None
        if not is_node_id(text):
            remedy = "Use small letters, digits and underscores, a letter first."
            return Problem("bad-id", "This cannot be an id.", remedy)
        if self._binding.session.node(text) is not None:
            return Problem("duplicate-id", f'There is already a node "{text}".', "Choose another id.")
        return None

    def _check_id(self, text: str) -> None:
        fault = self._fault_of(text)
        self.id_fault.show_problems([fault] if fault else [])
        mark_invalid(self.id_line, invalid=fault is not None)

    def _rename(self) -> None:
        text = self.id_line.text()
        if not self.id_line.isModified():
            return
        if text == self._binding.node_id or self._fault_of(text) is not None:
            if not self.id_line.hasFocus():
                self._give_up()  # leaving with an id that cannot be is as good as not having typed it
            return
        self.id_line.setModified(False)
        self.rename_asked.emit(text)

    def _give_up(self) -> None:
        self.id_line.setModified(False)
        self.id_line.setText(self._binding.node_id or "")
        self._check_id(self.id_line.text())


class NodePage(QWidget):
    """Header and form of a node.

    Signals:
        rename_asked: The node shall have another id.

    Attributes:
        node_type: The type of the nodes that it shows.
        target: The node's config.
        header: What stands over the form.
        form: The form; None for a type that this program does not know.
    """

    rename_asked = Signal(str)

    def __init__(
        self, session: Session, model_names: Callable[[], list[str]], node_type: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._session = session
        self.node_type = node_type
        self.binding = ConfigBinding(session, model_names, parent=self)
        self.header = NodeHeader(self.binding, self)
        self.header.rename_asked.connect(self.rename_asked)
        spec = session.registry.find(node_type)
        self.form = Form(spec.config, self.binding, self) if spec is not None else None
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4 * UNIT)
        box.addWidget(self.header)
        if self.form is not None:
            box.addWidget(self.form)
        else:
            told = "The program does not know this type, so there is nothing to set. The node is kept as it is."
            box.addWidget(PlainLabel(told, self, look="dim", wrap=True))

    def show_node(self, node_id: str) -> None:
        """Show a node, which is another one than before."""
        self.header.forget_typing()
        self.binding.node_id = node_id
        self.show_values(force=True)
        self.show_problems()

    def show_values(self, *, force: bool = False) -> None:
        """Show what the document has of the node."""
        node = self._session.node(self.binding.node_id or "")
        if node is None:
            return
        self.header.show_node(node)
        if self.form is not None:
            self.form.show_values(force=force)

    def show_problems(self) -> None:
        """Show what is wrong: with a field beside it, with the node as a whole above."""
        problems = self._session.problems_of(self.binding.node_id or "")
        if any(problem.code in SYNTAX_ERROR_CODES for problem in problems):
            # A text in the making that does not compile takes its ports with it; that mends itself.
            problems = [problem for problem in problems if problem.code != "unknown-port"]
        faults = problems_by_field(problems)
        fields = self.form.fields if self.form is not None else {}
        known = {name: found for name, found in faults.items() if name in fields}
        placed = {id(fault.problem) for found in known.values() for fault in found}
        self.header.show_problems([problem for problem in problems if id(problem) not in placed])
        if self.form is not None:
            self.form.show_problems(known)

    def refresh(self) -> None:
        """Look again at what stands around the node."""
        if self.form is not None:
            self.form.refresh()

    def refresh_run(self) -> None:
        """Look again at what the last run tells of the node."""
        if self.form is not None:
            self.form.refresh_run()

    def focus_field(self, field: str) -> None:
        """Give the keyboard to a field, as a dotted path."""
        name, _, place = field.partition(".")
        if name == "id":
            self.header.id_line.setFocus()
        elif self.form is None or not self.form.focus_field(name, place):
            self.header.title.setFocus()


_PREFIX = "settings."


class WorkflowPage(QWidget):
    """Name, description and settings of the workflow.

    Attributes:
        target: The settings.
        form: The form of them.
    """

    def __init__(self, session: Session, model_names: Callable[[], list[str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.binding = ConfigBinding(session, model_names, parent=self)
        self.name = QLineEdit()
        self.name.setObjectName("title")
        self.name.setPlaceholderText("Untitled workflow")
        describe_widget(self.name, "Name of the workflow", "What people call the workflow.")
        self.description = GrowingEdit(min_lines=2, max_lines=10)
        self.description.setPlaceholderText("What it is for, in a sentence or two")
        describe_widget(self.description, "Description of the workflow", "What the workflow is for.")
        self.problems = ProblemLines()
        self.form = Form(Settings, self.binding)
        heading = PlainLabel("SETTINGS OF THE WORKFLOW", look="section")
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(3 * UNIT)
        for widget in (self.name, self.description, self.problems, heading, self.form):
            box.addWidget(widget)
        for widget in (self.name, self.description):
            self.binding.events.watch(widget)
        self.name.textEdited.connect(lambda text: session.do(SetName(text)))
        self.description.typed.connect(lambda text: session.do(SetDescription(text)))

    def show_values(self, *, force: bool = False) -> None:
        """Show what the document has; `anew` also where that is the same as before."""
        workflow = self._session.workflow
        if self.name.text() != workflow.name:
            position = self.name.cursorPosition()
            self.name.setText(workflow.name)
            self.name.setCursorPosition(min(position, len(workflow.name)))
        self.description.set_text(workflow.description)
        self.form.show_values(force=force)

    def show_problems(self) -> None:
        """Show what is wrong: with a setting beside it, with the workflow as a whole above."""
        whole = [problem for problem in self._session.problems if problem.node is None and problem.edge is None]
        faults = problems_by_field(whole, _PREFIX)
        known = {name: found for name, found in faults.items() if name in self.form.fields}
        self.form.show_problems(known)
        placed = {id(fault.problem) for found in known.values() for fault in found}
        self.problems.show_problems([problem for problem in whole if id(problem) not in placed])

    def focus_field(self, field: str) -> None:
        """Give the keyboard to a field, `settings.budget_usd`, or to the name."""
        name, _, place = field.removeprefix(_PREFIX).partition(".")
        if field == "description":
            self.description.setFocus()
        elif not (field.startswith(_PREFIX) and self.form.focus_field(name, place)):
            self.name.setFocus()
