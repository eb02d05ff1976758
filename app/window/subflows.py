"""Keeps the copies of other workflows in an open document as their files are. The files are read in a thread.

A file may be another program's work, or a stranger's: trust in the document does not reach to what is new in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.session import Session
from app.window.bars import Bars
from app.window.consent import is_known
from app.worker import Worker
from engine.document.model import Workflow
from engine.document.node_operations import SetConfig
from engine.document.operation import Batch
from engine.document.problems import Problem
from engine.document.subflows import refreshed
from engine.nodes.subflow import SUBFLOW

SETTLE_MS: Final = 400
_MATTER: Final = "subflow"


class Subflows(QObject):
    """Follows one document.

    Args:
        session: The document.
        bars: Where it is told what could not be read.
    """

    def __init__(self, session: Session, bars: Bars, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self._bars = bars
        self._worker = Worker(self)
        self._seen: set[tuple[str, str]] = set()
        self._is_behind = False
        # A name is read when it has been typed to its end.
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SETTLE_MS)
        self._timer.timeout.connect(self._look_for_new)
        session.changed.connect(lambda *_: self._timer.start())
        session.saved.connect(lambda _path: self.look())
        session.shown.ended.connect(self._catch_up)
        self.look()

    def look(self) -> None:
        """Read the files again, and take up what is new in them."""
        session, path = self._session, self._session.path
        self._seen = _files(session.workflow)
        if session.is_past or not self._seen:
            self._bars.drop(_MATTER)
            return
        if path is None:
            self._bars.say(_MATTER, "Save the workflow first: a subflow's file is seen from its folder.", "info")
            return
        workflow = session.workflow
        self._worker.ask(lambda: _read(workflow, path), lambda found: self._take(workflow, *found))

    def _look_for_new(self) -> None:
        # Not what was seen before: taking a step back must not read it in again.
        if not _files(self._session.workflow) <= self._seen:
            self.look()

    def _catch_up(self) -> None:
        """While a run went on, the document stayed as it ran."""
        if self._is_behind:
            self.look()

    def _take(self, asked: Workflow, now: Workflow, problems: list[Problem], may_run: bool) -> None:
        current = self._session.workflow
        if _files(current) != _files(asked):
            self.look()
            return
        nodes = now.nodes_by_id
        changes = tuple(
            SetConfig(node.id, ("workflow",), nodes[node.id].config["workflow"])
            for node in current.nodes
            if node.type == SUBFLOW
            and node.id in nodes
            and "workflow" in nodes[node.id].config
            and nodes[node.id].config["workflow"] != node.config.get("workflow")
        )
        self._is_behind = bool(changes) and self._session.shown.live is not None
        if changes and not self._is_behind:
            self._session.is_trusted = self._session.is_trusted and may_run
            self._session.do(Batch("Read the subflow's file", changes))
        if problems:
            self._bars.say(_MATTER, f"{problems[0].message} {problems[0].remedy}".strip(), "warning")
        else:
            self._bars.drop(_MATTER)


def _read(workflow: Workflow, path: Path) -> tuple[Workflow, list[Problem], bool]:
    """The document with its files read anew, what is wrong with them, and whether what is new in it may run unasked."""
    now, problems = refreshed(workflow, path)
    before = workflow.nodes_by_id
    copies = (node.config.get("workflow") for node in now.nodes if node is not before.get(node.id))
    return now, problems, all(is_known(Workflow.model_validate(copy)) for copy in copies if isinstance(copy, dict))


def _files(workflow: Workflow) -> set[tuple[str, str]]:
    """Each subflow that names a file, with the name."""
    named = ((node.id, node.config.get("file")) for node in workflow.nodes if node.type == SUBFLOW)
    return {(node_id, file) for node_id, file in named if isinstance(file, str) and file.strip()}
