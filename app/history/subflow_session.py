"""The workflow in a subflow of a run, as a document that is looked at and not changed: what it did in that run.

It follows the session that shows the run: its events, its stored levels, and the iterations that are looked at there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QWidget

from app.engine_thread import EngineThread
from app.history.store_session import StoredSession
from app.runs.run_view_model import SubflowViewModel
from app.session import Session
from app.theme.style import ThemedIcon, set_style_properties, style
from app.theme.tokens import UNIT
from app.theme.widgets import ElidedLabel, PlainLabel, plain_tool_tip
from engine.document.model import Workflow
from engine.document.operation import Operation
from engine.plan.structure import analyse

READ_ONLY: Final = "This subflow of a past run is read-only. Choose “Open workflow” to edit its workflow."


class PartSession(Session):
    """One subflow of a run.

    Args:
        engine: The engine's thread.
        around: The session that shows the run, or the subflow around this one.
        node_id: The subflow in its document.
        workflow: The workflow in it, as it ran.

    Attributes:
        around: The session that shows what it is a part of.
        node_id: The subflow in its document.
        is_followed: Whether it still shows the run that is shown around it; not where that has begun anew with another
            workflow in the subflow, or without it.
    """

    is_past = True

    def __init__(
        self, engine: EngineThread, around: Session, node_id: str, workflow: Workflow, parent: QObject | None = None
    ) -> None:
        super().__init__(engine, workflow, parent=parent, registry=around.registry)
        self.around, self.node_id = around, node_id
        self.shown.workflow = workflow
        self.is_followed = True
        self._title = _title_of(around, node_id)
        self._bind()
        around.shown.started.connect(self._take_up_run)
        around.shown.updated.connect(self._take_up_update)
        around.shown.ended.connect(self._show_all)
        around.shown.view_changed.connect(self._take_up_view)
        self.shown.view_changed.connect(self._read_shown)
        self.analysed.connect(self._begin)
        self._read_shown()

    @property
    def name(self) -> str:
        """What to call it: the subflow's title."""
        return self._title

    def do(self, operation: Operation) -> bool:
        """Nothing changes what has run."""
        del operation
        self.refused.emit(READ_ONLY)
        return False

    def read(self, levels: Iterable[str]) -> None:
        """Have levels of the run read, where it is one of the history."""
        if self.is_followed and isinstance(self.around, (StoredSession, PartSession)):
            self.around.read(levels)

    def _bind(self) -> None:
        """Show the execution in the iterations that are looked at around it."""
        shown, around = self.shown, self.around.shown
        assert around.picture is not None
        path = around.picture.path_of(self.node_id, around.chosen)
        shown.picture = self._part = SubflowViewModel(around.picture, path, self.structure.parent)
        shown.run_id, shown.read_results, shown.chosen = around.run_id, around.read_results, {}

    def _begin(self) -> None:
        self._bind()
        self.shown.started.emit()
        self._read_shown()

    def _take_up_run(self) -> None:
        """The run around it is another one: the same subflow in it is shown."""
        if self.around.shown.picture is None or workflow_in(self.around, self.node_id) != self.workflow:
            self.is_followed = False
            self.shown.updated.emit(set())
        else:
            self.is_followed = True
            self._begin()

    def _take_up_update(self, touched: set[str]) -> None:
        around = self.around.shown
        if not self.is_followed or around.picture is None:
            return
        if around.picture.path_of(self.node_id, around.chosen) != self._part.path:
            self._begin()
        elif self.node_id in touched:
            self._show_all()

    def _take_up_view(self) -> None:
        if self.is_followed:
            self._take_up_update({self.node_id})

    def _show_all(self) -> None:
        if not self.is_followed:
            return
        self.shown.run_id = self.around.shown.run_id
        self.shown.updated.emit({node.id for node in self.workflow.nodes})
        self._read_shown()

    def _read_shown(self) -> None:
        self.read(self._part.levels(self.structure.bodies, self.shown.chosen))


def workflow_in(session: Session, node_id: str) -> Workflow | None:
    """The workflow in a subflow of the run that a session shows, as it ran; None where there is none."""
    ran = session.shown.workflow
    if session.shown.picture is None or ran is None:
        return None
    structure = session.structure if session.structure.workflow is ran else analyse(ran, session.registry)
    part = structure.subflows.get(node_id)
    return None if part is None else part.workflow


def _title_of(session: Session, node_id: str) -> str:
    assert session.shown.workflow is not None
    node = session.shown.workflow.nodes_by_id[node_id]
    return node.title or node.id


_WIDEST = 160
"""The widest part of the way, in pixels at the usual size of texts; a longer title ends in `…`."""


class PartBar(QFrame):
    """The bar.

    Signals:
        back_wanted: Show what it is a part of; 0 is the whole run, 1 the outermost subflow.
        workflow_wanted: Open the workflow in the subflow as a document that can be changed.

    Attributes:
        steps: The buttons of the way, the whole run first.
        open: Opens the workflow.
    """

    back_wanted = Signal(int)
    workflow_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.steps: list[QToolButton] = []
        self._here = ElidedLabel("")
        self.open = QPushButton("Open workflow")
        self.open.setAccessibleName("Open workflow")
        self.open.setToolTip("Open the workflow of this subflow for editing")
        self.open.clicked.connect(lambda _checked=False: self.workflow_wanted.emit())
        self._way = QHBoxLayout()
        self._way.setSpacing(UNIT)
        row = QHBoxLayout(self)
        row.setContentsMargins(3 * UNIT, UNIT, 2 * UNIT, UNIT)
        row.setSpacing(UNIT)
        row.addLayout(self._way)
        row.addWidget(self._here, 1)
        row.addWidget(self.open)
        set_style_properties(self, hint="info")

    @property
    def text(self) -> str:
        """Where one is: the way and what is shown."""
        return " › ".join([*(button.accessibleDescription() for button in self.steps), self._here.full_text])

    def show_way(self, names: Sequence[str], here: str) -> None:
        """Say where one is.

        Args:
            names: What it is a part of, the whole run first.
            here: What is shown, and in which iteration.
        """
        self._here.set_full_text(here)
        if [button.accessibleDescription() for button in self.steps] != list(names):
            self._build(names)
        self.setAccessibleName(self.text)

    def _build(self, names: Sequence[str]) -> None:
        while (item := self._way.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self.steps = []
        for place, name in enumerate(names):
            button = QToolButton()
            widest = round(_WIDEST * style().scale)
            button.setText(button.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, widest))
            button.setAccessibleName(f"Back to {name}")
            button.setAccessibleDescription(name)
            button.setToolTip(plain_tool_tip(f"Back to {name}"))
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            if not place:
                ThemedIcon(button, "mdi6.arrow-left", "dim")
            button.clicked.connect(lambda _checked=False, place=place: self.back_wanted.emit(place))
            self.steps.append(button)
            self._way.addWidget(button)
            self._way.addWidget(PlainLabel("›", look="dim"))
