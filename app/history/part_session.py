"""The workflow in a subflow of a run, as a document that is looked at and not changed: what it did in that run.

It follows the session that shows the run: its events, its stored levels, and the iterations that are looked at there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QObject

from app.bridge import EngineThread
from app.history.store_session import StoredSession
from app.runs.part import PartPicture
from app.session import Session
from engine.document.model import Workflow
from engine.document.operation import Operation
from engine.plan.structure import analyse

READ_ONLY: Final = "This is a subflow as it ran. Choose “Open the workflow” to change it."


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
        picture: What the run has told of it.
        is_followed: Whether it still shows the run that is shown around it; not where that has begun anew with another
            workflow in the subflow, or without it.
    """

    is_past = True
    picture: PartPicture

    def __init__(
        self, engine: EngineThread, around: Session, node_id: str, workflow: Workflow, parent: QObject | None = None
    ) -> None:
        super().__init__(engine, workflow, parent=parent, registry=around.registry)
        self.around, self.node_id = around, node_id
        self.run_workflow = workflow
        self.is_followed = True
        self._title = _title_of(around, node_id)
        self._bind()
        around.run_started.connect(self._take_up_run)
        around.run_updated.connect(self._take_up_update)
        around.run_ended.connect(self._show_all)
        around.view_changed.connect(self._take_up_view)
        self.view_changed.connect(self._read_shown)
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
        around = self.around
        assert around.picture is not None
        path = around.picture.path_of(self.node_id, around.chosen)
        self.picture = PartPicture(around.picture, path, self.structure.parent)
        self.run_id, self.read_results, self.chosen = around.run_id, around.read_results, {}

    def _begin(self) -> None:
        self._bind()
        self.run_started.emit()
        self._read_shown()

    def _take_up_run(self) -> None:
        """The run around it is another one: the same subflow in it is shown."""
        if self.around.picture is None or workflow_in(self.around, self.node_id) != self.workflow:
            self.is_followed = False
            self.run_updated.emit(set())
        else:
            self.is_followed = True
            self._begin()

    def _take_up_update(self, touched: set[str]) -> None:
        if not self.is_followed or self.around.picture is None:
            return
        if self.around.picture.path_of(self.node_id, self.around.chosen) != self.picture.path:
            self._begin()
        elif self.node_id in touched:
            self._show_all()

    def _take_up_view(self) -> None:
        if self.is_followed:
            self._take_up_update({self.node_id})

    def _show_all(self) -> None:
        if not self.is_followed:
            return
        self.run_id = self.around.run_id
        self.picture.refresh()
        self.run_updated.emit({node.id for node in self.workflow.nodes})
        self._read_shown()

    def _read_shown(self) -> None:
        self.read(self.picture.levels(self.structure.bodies, self.chosen))


def workflow_in(session: Session, node_id: str) -> Workflow | None:
    """The workflow in a subflow of the run that a session shows, as it ran; None where there is none."""
    ran = session.run_workflow
    if session.picture is None or ran is None:
        return None
    structure = session.structure if session.structure.workflow is ran else analyse(ran, session.registry)
    part = structure.parts.get(node_id)
    return None if part is None else part.workflow


def _title_of(session: Session, node_id: str) -> str:
    assert session.run_workflow is not None
    node = session.run_workflow.nodes_by_id[node_id]
    return node.title or node.id
