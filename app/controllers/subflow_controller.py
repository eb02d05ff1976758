"""SubflowRefresher that are opened: as they ran, where a run is shown, with the way back to it; else as documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer

from app.controllers.consent_controller import is_known
from app.engine_thread import EngineThread
from app.history.loop_path import crumbs
from app.history.subflow_session import PartBar, PartSession, workflow_in
from app.session import Session
from app.window.document_page import DocumentPage
from app.window.message_bars import MessageBars
from app.worker import Worker
from engine.document.model import Workflow
from engine.document.operation import Batch
from engine.document.operations import SetConfig
from engine.document.problems import Problem
from engine.document.subflows import is_relative, refreshed
from engine.nodes.pairs import ITERATOR
from engine.nodes.subflow import SUBFLOW

if TYPE_CHECKING:
    from app.controllers.document_controller import DocumentController


class SubflowController(QObject):
    """Opens the subflows of a window's documents.

    Args:
        documents: The open documents.
        engine: The engine's thread.
    """

    def __init__(self, documents: DocumentController, engine: EngineThread) -> None:
        super().__init__(documents)
        self._documents, self._engine = documents, engine
        self._pages: dict[DocumentPage, PartSession] = {}
        documents.closed.connect(self._close_inner)

    def open(self, document: DocumentPage, node_id: str) -> None:
        """Show what a subflow did in the run that is shown; where there is none, open the workflow in it."""
        if not self._show_run(document, node_id):
            self._open_workflow(document, node_id)

    def _open_workflow(self, document: DocumentPage, node_id: str) -> None:
        """Open the workflow in a subflow: its file, or the copy where the document has no folder."""
        documents, path = self._documents, document.session.path
        node = document.session.node(node_id)
        config = node.config if node is not None and node.type == SUBFLOW else {}
        file, copy = config.get("file"), config.get("workflow")
        if path is not None and isinstance(file, str) and file.strip() and is_relative(file):
            documents.open_file(path.parent / file)
        elif path is None and isinstance(copy, dict):
            session = document.session
            is_trusted = session.is_trusted and not session.confirms_calls and not session.is_past
            documents.open_copy(Workflow.model_validate(copy), is_trusted=is_trusted)
        else:
            document.session.refused.emit("The subflow names no file yet. Choose one in its settings.")

    def _show_run(self, document: DocumentPage, node_id: str) -> bool:
        """Show what a subflow did in the run that a document shows; says whether there is such a run."""
        workflow = workflow_in(document.session, node_id)
        if workflow is None:
            return False
        there = self._page_of(document.session, node_id)
        if there is not None:
            self._documents.shown.emit(there)
            return True
        session = PartSession(self._engine, document.session, node_id, workflow)
        page = self._documents.open_past(session)
        self._pages[page] = session
        bar = PartBar(page)
        bar.back_wanted.connect(lambda place: self._go_back(session, place))
        bar.workflow_wanted.connect(lambda: self._open_workflow(self._document_of(session.around), node_id))
        page.put_on_top(bar)

        def say() -> None:
            bar.show_way([around.name for around in _around(session)], words_of(session))

        for signal in (session.shown.started, session.shown.updated):
            signal.connect(say)
        say()
        return True

    def _page_of(self, around: Session, node_id: str) -> DocumentPage | None:
        pages = self._pages.items()
        return next(
            (page for page, part in pages if part.around is around and part.node_id == node_id and part.is_followed),
            None,
        )

    def _document_of(self, session: Session) -> DocumentPage:
        return next(document for document in self._documents.all if document.session is session)

    def _go_back(self, session: PartSession, place: int) -> None:
        around = _around(session)[place]
        inner = [*_around(session), session][place + 1]
        document = self._document_of(around)
        self._documents.shown.emit(document)
        assert isinstance(inner, PartSession)
        document.show_node(inner.node_id)

    def _close_inner(self, document: DocumentPage) -> None:
        """What is a part of a run that is shown no more is shown no more either."""
        self._pages.pop(document, None)
        for page in [page for page, part in self._pages.items() if part.around is document.session]:
            self._documents.drop(page)


def _around(session: PartSession) -> list[Session]:
    """The sessions that it is a part of, the whole run first."""
    way: list[Session] = [session.around]
    while isinstance(way[0], PartSession):
        way.insert(0, way[0].around)
    return way


def words_of(session: PartSession) -> str:
    """What is shown: the subflow's title, and the iteration in which it stands."""
    around, said = session.around, [session.name]
    picture, ran = around.shown.picture, around.shown.workflow
    loop = picture.parents.get(session.node_id) if picture is not None else None
    if picture is not None and ran is not None and loop is not None:
        way = crumbs(ran, picture, around.shown.chosen, loop)
        unit = "item" if ran.node(loop).type == ITERATOR.start else "iteration"
        steps = [crumb.text for crumb in way if not crumb.is_deeper]
        said.append(" › ".join([*steps, f"{unit} {picture.index_of(loop, around.shown.chosen) + 1}"]))
    if not session.is_followed:
        said.append("of an earlier run")
    return " · ".join(said)


SETTLE_MS: Final = 400
_MATTER: Final = "subflow"


class SubflowRefresher(QObject):
    """Follows one document.

    Args:
        session: The document.
        bars: Where it is told what could not be read.
    """

    def __init__(self, session: Session, bars: MessageBars, parent: QObject) -> None:
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
