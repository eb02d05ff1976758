"""What the inspector shows while nothing is selected: the workflow itself, its name, description and settings."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from app.inspector.editors.base import name_widget
from app.inspector.editors.texts import GrowingEdit
from app.inspector.form import Form, faults_by_field
from app.inspector.row import ProblemLines
from app.inspector.target import Target
from app.session import Session
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel
from engine.document.operations import SetDescription, SetName
from engine.document.settings import Settings

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
        self.target = Target(session, model_names, parent=self)
        self.name = QLineEdit()
        self.name.setObjectName("title")
        self.name.setPlaceholderText("Untitled workflow")
        name_widget(self.name, "Name of the workflow", "What people call the workflow.")
        self.description = GrowingEdit(least=2, most=10)
        self.description.setPlaceholderText("What it is for, in a sentence or two")
        name_widget(self.description, "Description of the workflow", "What the workflow is for.")
        self.problems = ProblemLines()
        self.form = Form(Settings, self.target)
        heading = PlainLabel("SETTINGS OF THE WORKFLOW", look="section")
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(3 * UNIT)
        for widget in (self.name, self.description, self.problems, heading, self.form):
            box.addWidget(widget)
        for widget in (self.name, self.description):
            self.target.keys.watch(widget)
        self.name.textEdited.connect(lambda text: session.do(SetName(text)))
        self.description.typed.connect(lambda text: session.do(SetDescription(text)))

    def show_values(self, *, anew: bool = False) -> None:
        """Show what the document has; `anew` also where that is the same as before."""
        workflow = self._session.workflow
        if self.name.text() != workflow.name:
            position = self.name.cursorPosition()
            self.name.setText(workflow.name)
            self.name.setCursorPosition(min(position, len(workflow.name)))
        self.description.set_text(workflow.description)
        self.form.show_values(anew=anew)

    def show_problems(self) -> None:
        """Show what is wrong: with a setting beside it, with the workflow as a whole above."""
        whole = [problem for problem in self._session.problems if problem.node is None and problem.edge is None]
        faults = faults_by_field(whole, _PREFIX)
        known = {name: found for name, found in faults.items() if name in self.form.fields}
        self.form.show_faults(known)
        placed = {id(fault.problem) for found in known.values() for fault in found}
        self.problems.show_problems([problem for problem in whole if id(problem) not in placed])

    def focus_field(self, field: str) -> None:
        """Give the keyboard to a field, `settings.budget_usd`, or to the name."""
        name, _, place = field.removeprefix(_PREFIX).partition(".")
        if field == "description":
            self.description.setFocus()
        elif not (field.startswith(_PREFIX) and self.form.focus_field(name, place)):
            self.name.setFocus()
