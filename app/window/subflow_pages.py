"""Subflows that are opened: as they ran, where a run is shown, with the way back to it; else as documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.bridge import EngineThread
from app.history.loop_path import crumbs
from app.history.subflow_session import PartBar, PartSession, workflow_in
from app.session import Session
from app.window.document import Document
from engine.document.model import Workflow
from engine.document.subflows import is_relative
from engine.nodes.pairs import ITERATOR
from engine.nodes.subflow import SUBFLOW

if TYPE_CHECKING:
    from app.window.documents import Documents


class SubflowPages(QObject):
    """Opens the subflows of a window's documents.

    Args:
        documents: The open documents.
        engine: The engine's thread.
    """

    def __init__(self, documents: Documents, engine: EngineThread) -> None:
        super().__init__(documents)
        self._documents, self._engine = documents, engine
        self._pages: dict[Document, PartSession] = {}
        documents.closed.connect(self._close_inner)

    def open(self, document: Document, node_id: str) -> None:
        """Show what a subflow did in the run that is shown; where there is none, open the workflow in it."""
        if not self._show_run(document, node_id):
            self._open_workflow(document, node_id)

    def _open_workflow(self, document: Document, node_id: str) -> None:
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

    def _show_run(self, document: Document, node_id: str) -> bool:
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

    def _page_of(self, around: Session, node_id: str) -> Document | None:
        pages = self._pages.items()
        return next(
            (page for page, part in pages if part.around is around and part.node_id == node_id and part.is_followed),
            None,
        )

    def _document_of(self, session: Session) -> Document:
        return next(document for document in self._documents.all if document.session is session)

    def _go_back(self, session: PartSession, place: int) -> None:
        around = _around(session)[place]
        inner = [*_around(session), session][place + 1]
        document = self._document_of(around)
        self._documents.shown.emit(document)
        assert isinstance(inner, PartSession)
        document.show_node(inner.node_id)

    def _close_inner(self, document: Document) -> None:
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
