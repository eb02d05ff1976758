"""Open subflows in tabs, and keep the copies of subflow files in open documents up to date."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.controllers.consent_controller import is_known
from app.controllers.document_controller import DocumentController, is_same_file
from app.engine_thread import EngineThread
from app.history.iterations_panel import crumbs
from app.history.past_run_bar import SubflowBar
from app.history.stored_session import SubflowSession, subflow_workflow
from app.runs.loop_status import unit_of
from app.session import Session
from app.theme.widgets import MessageBars
from app.window.document_page import DocumentPage
from app.worker import Worker
from engine.document.files import dumps
from engine.document.model import Workflow
from engine.document.operations import Batch, Operation, SetConfig
from engine.document.problems import Problem
from engine.document.subflows import (
    file_of,
    is_relative,
    named_files,
    refresh_subflows,
    relative_path,
    with_moved_files,
    workflow_in,
)
from engine.nodes.subflow import SUBFLOW
from engine.text_sanitizing import shown
from engine.values import Value

SETTLE_MS: Final = 400
"""Delay after typing before a new file name is read."""

_TOPIC: Final = "subflow"
_EMBEDDED: Final = "embedded"


class SubflowController(QObject):
    """Opens subflows, and refreshes their copies.

    Args:
        documents: Opens and closes documents.

    Attributes:
        refreshers: Refreshes the copies in each open document.
    """

    def __init__(self, documents: DocumentController, engine: EngineThread) -> None:
        super().__init__(documents)
        self._documents, self._engine = documents, engine
        self._pages: dict[DocumentPage, SubflowSession] = {}
        self._copies: dict[DocumentPage, EmbeddedCopy] = {}
        self.refreshers: dict[DocumentPage, SubflowRefresher] = {}
        documents.opened.connect(self._follow)
        documents.closed.connect(self._close_inner)
        documents.files.saved.connect(self._refresh_others)

    def _follow(self, document: DocumentPage) -> None:
        session = document.session
        self.refreshers[document] = SubflowRefresher(session, document.bars, document)
        session.save_steps.append(lambda path: _moved_links(session.workflow, session.path, path))
        document.canvas.subflow_requested.connect(lambda node_id: self.open(document, node_id))

    def _refresh_others(self, saved: DocumentPage) -> None:
        """Refresh all other documents: the saved one may be a subflow of theirs."""
        for document, refresher in self.refreshers.items():
            if document is not saved:
                refresher.refresh()

    def open(self, document: DocumentPage, node_id: str) -> None:
        """Show a subflow's part of the current run; without a run, open its workflow."""
        if not self._show_run(document, node_id):
            self._open_workflow(document, node_id)

    def _open_workflow(self, document: DocumentPage, node_id: str) -> None:
        """Open a subflow's file, or its copy where it has none or the document has no folder."""
        documents, path = self._documents, document.session.path
        node = document.session.node(node_id)
        file = file_of(node)
        if path is not None and file and is_relative(file):
            documents.open_file(path.parent / file)
        elif (inner := workflow_in(node)) is not None:
            self._open_copy(document, node_id, inner)
        else:
            document.session.refused.emit("This subflow has no file yet. Choose one in its properties.")

    def _open_copy(self, document: DocumentPage, node_id: str, workflow: Workflow) -> None:
        """Open a subflow's copy as a document of its own; if it has no file, saving it changes the subflow too."""
        session = document.session
        there = next((inner for inner, copy in self._copies.items() if copy.is_of(document, node_id)), None)
        if there is not None and not file_of(session.node(node_id)):
            self._documents.shown.emit(there)
            return
        is_trusted = session.is_trusted and not session.confirms_calls and not session.is_past
        inner = self._documents.open_copy(workflow, is_trusted=is_trusted)
        if session.is_past or file_of(session.node(node_id)):
            return
        self._copies[inner] = EmbeddedCopy(document, node_id)
        inner.session.save_steps.append(lambda path: self._links_of_copy(document, inner, path))
        inner.session.saved.connect(lambda path: self._use_saved(inner, path))
        text = f"This is a subflow of “{shown(session.name, 60)}”. Save it to use your changes there."
        inner.bars.say(_EMBEDDED, text, "info")

    def _links_of_copy(self, outer: DocumentPage, inner: DocumentPage, path: Path) -> list[Operation]:
        """The paths in an embedded workflow are relative to the document around it until it is saved itself."""
        session = inner.session
        return [] if session.path is not None else _moved_links(session.workflow, outer.session.path, path)

    def _use_saved(self, inner: DocumentPage, path: Path) -> None:
        """Update a subflow that has no file after its workflow was saved, or say that it was not possible."""
        copy = self._copies.get(inner)
        if copy is None:  # the document around it was closed
            return
        if copy.update(inner.session.saved_workflow, path):
            inner.bars.drop(_EMBEDDED)
            return
        name = shown(copy.document.session.name, 60)
        text = f"“{name}” does not use these changes: the subflow was removed from it, or has another file."
        inner.bars.say(_EMBEDDED, f"{text} To use them, choose this file in the properties of a subflow.", "warning")

    def _show_run(self, document: DocumentPage, node_id: str) -> bool:
        """Show a subflow's part of the document's run; returns whether there is one."""
        workflow = subflow_workflow(document.session, node_id)
        if workflow is None:
            return False
        there = self._page_of(document.session, node_id)
        if there is not None:
            self._documents.shown.emit(there)
            return True
        session = SubflowSession(self._engine, document.session, node_id, workflow)
        page = self._documents.open_session(session)
        self._pages[page] = session
        bar = SubflowBar(page)
        bar.back_wanted.connect(lambda place: self._go_back(session, place))
        bar.workflow_wanted.connect(lambda: self._open_workflow(self._document_of(session.outer), node_id))
        page.put_on_top(bar)

        def update_bar() -> None:
            bar.show_way([outer.name for outer in _outer_sessions(session)], subflow_run_title(session))

        for signal in (session.shown.started, session.shown.updated):
            signal.connect(update_bar)
        update_bar()
        return True

    def _page_of(self, around: Session, node_id: str) -> DocumentPage | None:
        pages = self._pages.items()
        return next(
            (page for page, part in pages if part.outer is around and part.node_id == node_id and part.is_followed),
            None,
        )

    def _document_of(self, session: Session) -> DocumentPage:
        return next(document for document in self._documents.all if document.session is session)

    def _go_back(self, session: SubflowSession, place: int) -> None:
        outer = _outer_sessions(session)
        inner = [*outer, session][place + 1]
        document = self._document_of(outer[place])
        self._documents.shown.emit(document)
        assert isinstance(inner, SubflowSession)
        document.show_node(inner.node_id)

    def _close_inner(self, document: DocumentPage) -> None:
        self._pages.pop(document, None)
        self.refreshers.pop(document, None)
        self._copies.pop(document, None)
        for inner in [inner for inner, copy in self._copies.items() if copy.document is document]:
            inner.bars.drop(_EMBEDDED)
            del self._copies[inner]
        for page in [page for page, part in self._pages.items() if part.outer is document.session]:
            self._documents.drop(page)


class EmbeddedCopy(QObject):
    """A subflow without a file whose workflow is open as a document. It is followed when its id changes.

    Args:
        document: The document that contains the subflow.
        node_id: The subflow.
    """

    def __init__(self, document: DocumentPage, node_id: str) -> None:
        super().__init__(document)
        self.document = document
        self._node = document.session.workflow.node(node_id)
        self._is_there = True
        self._saved: tuple[Path, Value] | None = None
        document.session.changed.connect(self._follow)
        document.session.save_steps.append(self._link)

    def is_of(self, document: DocumentPage, node_id: str) -> bool:
        """Return whether this is the workflow of a subflow in a document."""
        return self.document is document and self._is_there and self._node.id == node_id

    def update(self, workflow: Workflow, path: Path) -> bool:
        """Let the subflow use the saved workflow, and its file if that has a relative path; returns whether it does."""
        session, node = self.document.session, self._node
        if not self._is_there or node.type != SUBFLOW:
            return False
        if file := file_of(node):  # its file is read again after each save
            return session.path is not None and is_same_file(session.path.parent / file, path)
        copy: dict[str, Value] = json.loads(dumps(workflow))
        changes = [SetConfig(("workflow",), {node.id: copy})]
        if session.path is None:
            self._saved = path, copy
        elif file := relative_path(path, session.path):
            copy.pop("layout", None)  # as when the file is read
            changes.append(SetConfig(("file",), {node.id: file}))
        return session.do(Batch("Save the subflow", tuple(changes)))

    def _link(self, document_path: Path) -> Iterator[Operation]:
        """Add the file that was saved before the document had a folder, unless the subflow was changed since."""
        node = self._node
        if self._saved is None or not self._is_there or file_of(node):
            return
        path, copy = self._saved
        if node.config.get("workflow") == copy and (file := relative_path(path, document_path)):
            assert isinstance(copy, dict)
            without_layout: Value = {key: value for key, value in copy.items() if key != "layout"}
            yield SetConfig(("workflow",), {node.id: without_layout})
            yield SetConfig(("file",), {node.id: file})

    def _follow(self, before: Workflow, after: Workflow) -> None:
        """Find the subflow again: under another id, or back after undo; another one may have its old id."""
        node = after.nodes_by_id.get(self._node.id)
        if node is None or not self._is_there:
            config, known = self._node.config, before.nodes_by_id
            new = (one for one in after.nodes if one.id not in known and one.type == SUBFLOW and one.config == config)
            node = next(new, None)
        self._is_there = node is not None
        self._node = node or self._node


def _moved_links(workflow: Workflow, old: Path | None, new: Path) -> list[Operation]:
    """The changes of the paths of subflow files when a document is saved in another folder."""
    moved = with_moved_files(workflow, old, new) if old is not None else workflow
    pairs = zip(workflow.nodes, moved.nodes, strict=True)
    return [
        SetConfig((name,), {node.id: there.config[name]})
        for node, there in pairs
        if there is not node
        for name in ("file", "workflow")
        if there.config.get(name) != node.config.get(name)
    ]


def _outer_sessions(session: SubflowSession) -> list[Session]:
    """The sessions around a subflow's, the outermost first."""
    outer: list[Session] = [session.outer]
    while isinstance(outer[0], SubflowSession):
        outer.insert(0, outer[0].outer)
    return outer


def subflow_run_title(session: SubflowSession) -> str:
    """The title of a subflow's run: its name, and the iteration it belongs to."""
    around, parts = session.outer, [session.name]
    view_model, ran = around.shown.view_model, around.shown.workflow
    loop = view_model.parents.get(session.node_id) if view_model is not None else None
    if view_model is not None and ran is not None and loop is not None:
        way = crumbs(ran, view_model, around.shown.chosen, loop)
        steps = [crumb.text for crumb in way if not crumb.is_deeper]
        parts.append(" › ".join([*steps, f"{unit_of(ran, loop)} {view_model.index_of(loop, around.shown.chosen) + 1}"]))
    if not session.is_followed:
        parts.append("from an earlier run")
    return " · ".join(parts)


class SubflowRefresher(QObject):
    """Keeps the copies of subflow files in one document up to date. The files are read in a thread.

    A file may be another person's work: trust in the document does not extend to what is new in the file.

    Args:
        bars: Shows what could not be read.
    """

    def __init__(self, session: Session, bars: MessageBars, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self._bars = bars
        self._worker = Worker(self)
        self._seen: set[tuple[str, str]] = set()
        self._is_behind = False
        self._timer = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._timer.timeout.connect(self._read_new)
        session.changed.connect(lambda *_: self._timer.start())
        session.saved.connect(lambda _path: self.refresh())
        session.shown.ended.connect(self._refresh_after_run)
        self.refresh()

    def refresh(self) -> None:
        """Read the files again, and update the copies."""
        session, path = self._session, self._session.path
        self._seen = named_files(session.workflow)
        if session.is_past or not self._seen:
            self._bars.drop(_TOPIC)
            return
        if path is None:
            self._bars.say(_TOPIC, "Save the workflow first: the path of a subflow is relative to its folder.", "info")
            return
        workflow = session.workflow
        self._worker.ask(lambda: _read(workflow, path), lambda found: self._apply(workflow, *found))

    def _read_new(self) -> None:
        # Only new names: otherwise undo would be overwritten at once.
        if not named_files(self._session.workflow) <= self._seen:
            self.refresh()

    def _refresh_after_run(self) -> None:
        """The document does not change during a run, so refresh it afterwards."""
        if self._is_behind:
            self.refresh()

    def _apply(self, asked: Workflow, now: Workflow, problems: list[Problem], may_run: bool) -> None:
        current = self._session.workflow
        if named_files(current) != named_files(asked):
            self.refresh()
            return
        # Meanwhile, the workflow of a subflow without a file may have been edited.
        nodes = {
            node.id: node
            for node in now.nodes
            if file_of(node) or asked.node(node.id) is current.nodes_by_id.get(node.id)
        }
        changes = tuple(
            SetConfig(("workflow",), {node.id: nodes[node.id].config["workflow"]})
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
            self._bars.say(_TOPIC, f"{problems[0].message} {problems[0].remedy}".strip(), "warning")
        else:
            self._bars.drop(_TOPIC)


def _read(workflow: Workflow, path: Path) -> tuple[Workflow, list[Problem], bool]:
    """Read the subflow files: the updated document, the problems, and whether all new copies are trusted."""
    now, problems = refresh_subflows(workflow, path)
    before = workflow.nodes_by_id
    copies = (workflow_in(node) for node in now.nodes if node is not before.get(node.id))
    return now, problems, all(is_known(copy) for copy in copies if copy is not None)
