"""Pages of the Properties tab: for a node of each type, for several nodes, and for the workflow itself."""

from __future__ import annotations

from collections import Counter
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from app.inspector.editor import (
    ConfigBinding,
    FieldProblem,
    NodesBinding,
    describe_widget,
    mark_invalid,
    set_line_text,
)
from app.inspector.field_spec import field_specs, shared_fields
from app.inspector.form import Form, order_tabs, problems_by_field
from app.inspector.form_fields import ProblemLines
from app.inspector.model_list import ModelSource
from app.inspector.text_widgets import GrowingEdit
from app.session import SYNTAX_ERROR_CODES, Session
from app.theme.style import style
from app.theme.widgets import IconLabel, PlainLabel, Switch, discard, hbox, vbox
from engine.document.model import Node, Settings, is_node_id
from engine.document.operations import Batch, SetEnabled, SetText, SetTitle
from engine.document.problems import Problem

_SETTLED_AFTER_MS: Final = 150


class NodeIdEdit(QLineEdit):
    """Field for a node's ID. Esc discards an unfinished change.

    Signals:
        cancelled: Esc was pressed.
    """

    cancelled = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # Qt's name
        """Handle Esc."""
        if event.key() == Qt.Key.Key_Escape and self.isModified():
            self.cancelled.emit()
            return
        super().keyPressEvent(event)


class NodeIdField(QWidget):
    """The ID of a node, with its help and its problems.

    Signals:
        rename_requested: The user entered a valid new ID.
    """

    rename_requested = Signal(str)

    def __init__(self, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._binding = binding
        self.edit = NodeIdEdit(self)
        help_text = "The name of the node in edges and prompts. Press Enter to rename it everywhere."
        describe_widget(self.edit, "ID", help_text)
        self.problems = ProblemLines(self)
        label = PlainLabel("ID", self, look="fieldname", buddy=self.edit)
        explanation = PlainLabel(help_text, self, look="dim small", wrap=True)
        vbox(label, self.edit, explanation, self.problems, spacing=1, parent=self)
        binding.events.watch(self.edit)
        self.edit.textEdited.connect(self._check)
        self.edit.editingFinished.connect(self._rename)
        self.edit.cancelled.connect(self._discard)

    def show_node(self, node: Node) -> None:
        """Show the ID of a node; one that is being typed stays."""
        if not self.edit.isModified() and self.edit.text() != node.id:
            self.edit.setText(node.id)
            self._check(node.id)

    def discard_edit(self) -> None:
        """Discard an unfinished change, because another node is shown."""
        self.edit.setModified(False)

    def _problem(self, text: str) -> Problem | None:
        if text == self._binding.node_id:
            return None
        if not is_node_id(text):
            remedy = "Use lowercase letters, digits and underscores, starting with a letter."
            return Problem("bad-id", "Invalid ID.", remedy)
        if self._binding.session.node(text) is not None:
            return Problem("duplicate-id", f"The ID “{text}” is already in use.", "Choose another ID.")
        return None

    def _check(self, text: str) -> None:
        problem = self._problem(text)
        self.problems.show_problems([problem] if problem else [])
        mark_invalid(self.edit, invalid=problem is not None)

    def _rename(self) -> None:
        text = self.edit.text()
        if not self.edit.isModified():
            return
        if text == self._binding.node_id or self._problem(text) is not None:
            if not self.edit.hasFocus():
                self._discard()
            return
        self.edit.setModified(False)
        self.rename_requested.emit(text)

    def _discard(self) -> None:
        self.edit.setModified(False)
        self.edit.setText(self._binding.node_id or "")
        self._check(self.edit.text())


class NodeHeader(QWidget):
    """Title, type and Enabled switch of a node."""

    def __init__(self, binding: ConfigBinding, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._binding = binding
        self.title = QLineEdit(self)
        self.title.setObjectName("title")
        describe_widget(self.title, "Title", "Display name of the node.")
        self.problems = ProblemLines(self)
        self._icon = IconLabel(self, size=18)
        self._kind = PlainLabel(parent=self, look="dim small", wrap=True)
        self.enabled = Switch(self)
        describe_widget(self.enabled, "Enabled", "A disabled node passes its only input through, or is skipped.")
        self._lay_out()
        for widget in (self.title, self.enabled):
            binding.events.watch(widget)
        self.title.textEdited.connect(self._set_title)
        self.enabled.clicked.connect(self._set_enabled)

    def _lay_out(self) -> None:
        line = hbox(self._icon, (self.title, 1), self.enabled, spacing=2)
        vbox(line, self._kind, self.problems, spacing=2, parent=self)

    def show_node(self, node: Node) -> None:
        """Show a node."""
        spec = self._binding.session.registry.find(node.type)
        set_line_text(self.title, node.title)
        self.title.setPlaceholderText(spec.title if spec is not None else node.type)
        self.enabled.setChecked(node.enabled)
        unknown = f"Unknown node type “{node.type}”."
        self._kind.setText(f"{spec.title} · {spec.help}" if spec is not None else unknown)
        if spec is not None:
            self._icon.show_icon(spec.icon, lambda: style().theme.category[spec.category])
        else:
            self._icon.show_icon("mdi6.help-circle-outline", lambda: style().theme.bad)

    def _set_title(self, text: str) -> None:
        if self._binding.node_id is not None:
            self._binding.session.do(SetTitle(self._binding.node_id, text))

    def _set_enabled(self, on: bool) -> None:  # Qt's signal
        if self._binding.node_id is not None:
            self._binding.session.do(SetEnabled(self._binding.node_id, on))


class _FormPage(QWidget):
    """A page whose form may be missing."""

    form: Form | None

    def refresh(self) -> None:
        """Update what depends on the rest of the document."""
        if self.form is not None:
            self.form.refresh()


class NodePage(_FormPage):
    """Header and form for the nodes of one type.

    Signals:
        rename_requested: The user entered a new ID for the node.

    Attributes:
        node_type: The node type.
        binding: The config of the displayed node.
        header: The header.
        id_field: The ID, collapsed with the advanced fields of the form.
        form: The form; None for an unknown node type.
    """

    rename_requested = Signal(str)

    def __init__(self, session: Session, models: ModelSource, node_type: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.node_type = node_type
        self.binding = ConfigBinding(session, models, parent=self)
        self.header = NodeHeader(self.binding, self)
        self.id_field = NodeIdField(self.binding, self)
        self.id_field.rename_requested.connect(self.rename_requested)
        spec = session.registry.find(node_type)
        self.form: Form | None = None
        box = vbox(self.header, spacing=4, parent=self)
        if spec is not None:
            self.form = Form(field_specs(spec.config), self.binding, self, leading=self.id_field)
            box.addWidget(self.form)
        else:
            text = "This node type is not installed. The node stays in the workflow, but you can't edit its properties."
            box.addWidget(PlainLabel(text, self, look="dim", wrap=True))
            box.addWidget(self.id_field)

    def show_node(self, node_id: str) -> None:
        """Switch to another node."""
        self.id_field.discard_edit()
        self.binding.node_id = node_id
        self.show_values(force=True)
        self.show_problems()

    def show_values(self, *, force: bool = False) -> None:
        """Show the values of the document."""
        node = self._session.node(self.binding.node_id or "")
        if node is None:
            return
        self.header.show_node(node)
        self.id_field.show_node(node)
        if self.form is not None:
            self.form.show_values(force=force)

    def show_problems(self) -> None:
        """Show problems of fields at the fields, all others in the header."""
        problems = self._session.problems_of(self.binding.node_id or "")
        if any(problem.code in SYNTAX_ERROR_CODES for problem in problems):
            # While a text does not compile, the ports of its placeholders are missing. Do not report those.
            problems = [problem for problem in problems if problem.code != "unknown-port"]
        rest = problems
        if self.form is not None:
            by_field, rest = _split_problems(problems, self.form)
            self.form.show_problems(by_field)
        self.header.problems.show_problems(rest)

    def focus_field(self, field: str) -> None:
        """Move the focus to a field, given as a dotted path."""
        name, _, path = field.partition(".")
        if name == "id":
            if self.form is not None:
                self.form.expand()
            self.id_field.edit.setFocus()
        elif self.form is None or not self.form.focus_field(name, path):
            self.header.title.setFocus()


class NodesPage(_FormPage):
    """The fields that several selected nodes have in common; a change is made to all of them.

    The form is created once the selection has settled, because a rubber band changes it all the time.

    Signals:
        form_created: There is a form for the types of the nodes.

    Attributes:
        binding: The configs of the nodes.
        title: The number of nodes.
        enabled: Enables or disables all of them.
        form: The form; None until it is created.
    """

    form_created = Signal()

    def __init__(self, session: Session, models: ModelSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._types: frozenset[str] = frozenset()
        self.binding = NodesBinding(session, models, parent=self)
        self.title = PlainLabel(parent=self, look="title")
        self._kinds = PlainLabel(parent=self, look="dim small", wrap=True)
        self.enabled = Switch(self)
        describe_widget(self.enabled, "Enabled", "Enable or disable all selected nodes.")
        self.binding.events.watch(self.enabled)
        self.enabled.clicked.connect(self._set_enabled)
        self.form: Form | None = None
        self._settling = QTimer(self, singleShot=True, interval=_SETTLED_AFTER_MS)
        self._settling.timeout.connect(self.create_form)
        line = hbox((self.title, 1), self.enabled, spacing=2)
        self._box = vbox(vbox(line, self._kinds, spacing=2), spacing=4, parent=self)

    def show_nodes(self, node_ids: tuple[str, ...]) -> None:
        """Switch to other nodes."""
        self.binding.show_nodes(node_ids)
        self.show_values(force=True)
        self.show_problems()
        if self.form is None:
            self._settling.start()  # again, until the selection has settled

    def create_form(self) -> None:
        """Create the form of the selected nodes now, if there is none."""
        self._settling.stop()
        if self.form is not None or not self._types:
            return
        specs = [self._session.registry.find(node_type) for node_type in sorted(self._types)]
        known = [spec.config for spec in specs if spec is not None]
        fields = shared_fields(known) if len(known) == len(specs) else {}
        self.form = Form(fields, self.binding, self)
        self._box.addWidget(self.form)
        self.form.show_values()
        self.form.show()
        self.show_problems()
        order_tabs(self)
        self.form_created.emit()

    def show_values(self, *, force: bool = False) -> None:
        """Show the values of the document."""
        nodes = self.binding.nodes
        types = frozenset(node.type for node in nodes)
        if types != self._types:
            self._types = types
            self._drop_form()
        self.title.setText(f"{len(nodes)} nodes selected")
        specs = {node_type: self._session.registry.find(node_type) for node_type in types}
        titles = Counter(spec.title if (spec := specs[node.type]) is not None else node.type for node in nodes)
        kinds = ", ".join(f"{count} × {title}" for title, count in titles.most_common())
        self._kinds.setText(f"{kinds}. What you change here changes in all of them.")
        self.enabled.setChecked(all(node.enabled for node in nodes))
        if self.form is not None:
            self.form.show_values(force=force)

    def show_problems(self) -> None:
        """Show the problems of the shared fields, each once."""
        if self.form is None:
            return
        chosen = set(self.binding.node_ids)
        problems = {
            (problem.field, problem.message): problem
            for problem in self._session.visible_problems
            if problem.node in chosen
        }
        by_field, _ = _split_problems(list(problems.values()), self.form)
        self.form.show_problems(by_field)

    def focus_field(self, field: str) -> None:
        """Move the focus to a field, given as a dotted path, or to the switch if there is no such field."""
        name, _, path = field.partition(".")
        self.create_form()
        if self.form is None or not self.form.focus_field(name, path):
            self.enabled.setFocus()

    def _drop_form(self) -> None:
        if self.form is not None:
            self._box.removeWidget(self.form)
            discard(self.form)
            self.form = None
        self._settling.start()

    def _set_enabled(self, on: bool) -> None:  # Qt's signal
        changes = tuple(SetEnabled(node.id, on) for node in self.binding.nodes if node.enabled is not on)
        title = f"{'Enable' if on else 'Disable'} {len(changes)} nodes"
        self._session.do(changes[0] if len(changes) == 1 else Batch(title, changes))


_PREFIX = "settings."


class WorkflowPage(QWidget):
    """Name, description and settings of the workflow.

    Attributes:
        binding: The settings.
        form: The form of the settings.
    """

    def __init__(self, session: Session, models: ModelSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.binding = ConfigBinding(session, models, parent=self)
        self.name = QLineEdit(self)
        self.name.setObjectName("title")
        self.name.setPlaceholderText("Untitled workflow")
        describe_widget(self.name, "Workflow name", "Name of the workflow.")
        self.description = GrowingEdit(min_lines=2, max_lines=10, parent=self)
        self.description.setPlaceholderText("Describe the workflow in a sentence or two")
        describe_widget(self.description, "Description", "Purpose of the workflow.")
        self.problems = ProblemLines(self)
        self.form = Form(field_specs(Settings), self.binding, self)
        heading = PlainLabel("Workflow settings", self, look="section")
        vbox(self.name, self.description, self.problems, heading, self.form, spacing=3, parent=self)
        for widget in (self.name, self.description):
            self.binding.events.watch(widget)
        self.name.textEdited.connect(lambda text: session.do(SetText("name", text)))
        self.description.typed.connect(lambda text: session.do(SetText("description", text)))

    def show_values(self, *, force: bool = False) -> None:
        """Show the values of the document; with `force`, even if they are unchanged."""
        workflow = self._session.workflow
        set_line_text(self.name, workflow.name)
        self.description.set_text(workflow.description)
        self.form.show_values(force=force)

    def show_problems(self) -> None:
        """Show problems of settings at their fields, those of the workflow as a whole above."""
        problems = [
            problem for problem in self._session.visible_problems if problem.node is None and problem.edge is None
        ]
        by_field, rest = _split_problems(problems, self.form, _PREFIX)
        self.form.show_problems(by_field)
        self.problems.show_problems(rest)

    def focus_field(self, field: str) -> None:
        """Move the focus to a field such as `settings.budget_usd`, or to the name if there is no such field."""
        name, _, path = field.removeprefix(_PREFIX).partition(".")
        if field == "description":
            self.description.setFocus()
        elif not (field.startswith(_PREFIX) and self.form.focus_field(name, path)):
            self.name.setFocus()


def _split_problems(
    problems: list[Problem], form: Form, prefix: str = ""
) -> tuple[dict[str, list[FieldProblem]], list[Problem]]:
    """Split problems into those of the form's fields and the rest."""
    by_field = {name: found for name, found in problems_by_field(problems, prefix).items() if name in form.fields}
    placed = {id(field_problem.problem) for found in by_field.values() for field_problem in found}
    return by_field, [problem for problem in problems if id(problem) not in placed]
