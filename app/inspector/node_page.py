"""What the inspector shows of one selected node under *Setup*. One page a node type serves all nodes of the type."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.inspector.form import Form, faults_by_field
from app.inspector.node_header import NodeHeader
from app.inspector.prompt_editor import UNREADABLE
from app.inspector.target import Target
from app.session import Session
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel


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
        self.target = Target(session, model_names, parent=self)
        self.header = NodeHeader(self.target, self)
        self.header.rename_asked.connect(self.rename_asked)
        spec = session.registry.find(node_type)
        self.form = Form(spec.config, self.target, self) if spec is not None else None
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
        self.target.node_id = node_id
        self.show_values(anew=True)
        self.show_problems()

    def show_values(self, *, anew: bool = False) -> None:
        """Show what the document has of the node."""
        node = self._session.node(self.target.node_id or "")
        if node is None:
            return
        self.header.show_node(node)
        if self.form is not None:
            self.form.show_values(anew=anew)

    def show_problems(self) -> None:
        """Show what is wrong: with a field beside it, with the node as a whole above."""
        problems = self._session.problems_of(self.target.node_id or "")
        if any(problem.code in UNREADABLE for problem in problems):
            # A text in the making that does not compile takes its ports with it; that mends itself.
            problems = [problem for problem in problems if problem.code != "unknown-port"]
        faults = faults_by_field(problems)
        fields = self.form.fields if self.form is not None else {}
        known = {name: found for name, found in faults.items() if name in fields}
        placed = {id(fault.problem) for found in known.values() for fault in found}
        self.header.show_problems([problem for problem in problems if id(problem) not in placed])
        if self.form is not None:
            self.form.show_faults(known)

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
