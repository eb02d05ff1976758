"""The open documents: opening, closing, what another program did, what a crash left.

How they are saved is `app.controllers.save_controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from app.controllers.import_controller import ImportController
from app.controllers.save_controller import FileConflictBar, SaveController, is_same_file
from app.controllers.subflow_controller import SubflowController, SubflowRefresher
from app.dialogs import FileDialogs, ask_question
from app.engine_thread import EngineThread
from app.file_watcher import FileFingerprint
from app.session import Analysis, Session, analyse_document
from app.settings.preferences import Preferences
from app.window.autosave import RecoveredDocument, find_recovered, find_unsaved
from app.window.document_page import DocumentPage, PageFactories
from app.window.remains import offer
from app.worker import Worker
from engine.document.files import load
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.importing.reader import looks_importable
from engine.nodes.registry import Registry, builtin_registry


@dataclass(frozen=True, slots=True)
class OpenedDocument:
    """A document as it is in its file.

    Attributes:
        path: The file.
        workflow: What is in it.
        found: How that hangs together, and what is wrong with it.
        on_disk: The file as it was read.
        remains: What a crash left of the work on it; None where there is nothing.
    """

    path: Path
    workflow: Workflow
    found: Analysis
    on_disk: FileFingerprint
    remains: RecoveredDocument | None


@dataclass(frozen=True, slots=True)
class OpenFailure:
    """A file that is no document that can be opened.

    Attributes:
        path: The file.
        reason: Why, and what to do.
        is_foreign: Whether another program seems to have written it.
        is_gone: Whether there is no such file.
        remains: What a crash left of the work on a file that is gone; None where there is nothing.
    """

    path: Path
    reason: str
    is_foreign: bool
    is_gone: bool
    remains: RecoveredDocument | None = None


def read_document(path: Path, data_folder: Path, registry: Registry) -> OpenedDocument | OpenFailure:
    """Read a file that is to be opened. For a thread: it may take as long as the disk does.

    Args:
        path: The file.
        data_folder: Where unsaved work is kept that cannot be kept beside its file.
        registry: The node types.
    """
    on_disk = FileFingerprint.of(path)
    try:
        workflow = load(path)
    except EngineError as error:
        if path.exists():
            return OpenFailure(path, str(error), looks_importable(path), is_gone=False)
        remains = find_recovered(path, data_folder, None)
        return OpenFailure(path, str(error), is_foreign=False, is_gone=True, remains=remains)
    remains = find_recovered(path, data_folder, workflow)
    return OpenedDocument(path, workflow, analyse_document(workflow, registry), on_disk, remains)


_Role = QMessageBox.ButtonRole


class DocumentController(QObject):
    """All open documents.

    Args:
        window: Over which questions are asked.
        engine: The engine's thread.
        preferences: The person's settings.
        asker: Asks for files.
        parts: Makes canvases and inspectors.
        data_folder: Where unsaved work is kept that cannot be kept beside its file.
        model_names: Lists names of models.

    Attributes:
        all: The open documents, in the order in which they came.
        files: Saves them, and puts back what is in their files.
        to_come: The files that are being read and then opened.
        data_folder: Where the work is kept that cannot be kept beside a document's file.

    Signals:
        opened: A document has come.
        shown: A document that was open already was asked for.
        closed: A document has gone.
        refused: Something could not be done; the text says what and why.
    """

    opened = Signal(object)
    shown = Signal(object)
    closed = Signal(object)
    refused = Signal(str)

    def __init__(
        self,
        window: QWidget,
        engine: EngineThread,
        preferences: Preferences,
        asker: FileDialogs,
        parts: PageFactories,
        data_folder: Path,
        model_names: Callable[[], list[str]],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._engine = engine
        self._preferences = preferences
        self._asker = asker
        self._parts = parts
        self.data_folder = data_folder
        self._model_names = model_names
        self.all: list[DocumentPage] = []
        self._reader = Worker(self)
        self.to_come: list[Path] = []
        self._waiting: set[DocumentPage] = set()
        self._imports = ImportController(window, partial(self.open_copy, is_trusted=False), self.refused.emit)
        self._subflows: dict[DocumentPage, SubflowRefresher] = {}
        self._subflow_pages = SubflowController(self, engine)
        self.files = SaveController(window, preferences, asker, self, self._reader)
        self.files.saved.connect(self._look_for_subflows)

    def new(self) -> DocumentPage:
        """Open an empty document."""
        return self._add(Session(self._engine))

    def open_template(self, file: Path) -> DocumentPage | None:
        """Open a copy of a template, which is one of the program's own small files, as a document not saved yet."""
        try:
            workflow = load(file)
        except EngineError as error:
            self.refused.emit(str(error))
            return None
        return self.open_copy(workflow)

    def open_copy(self, workflow: Workflow, found: Analysis | None = None, *, is_trusted: bool = True) -> DocumentPage:
        """Open a document that is not saved yet.

        Args:
            workflow: The document.
            found: What `analyse_document` finds in it, where that is known.
            is_trusted: Whether what it says is the person's own work or the program's.
        """
        session = Session(self._engine, workflow, found=found)
        session.is_trusted = is_trusted
        return self._add(session)

    def open_past(self, session: Session) -> DocumentPage:
        """Open a run of the history as a document that is looked at."""
        return self._add(session)

    @property
    def is_reading(self) -> bool:
        """Whether files are still being read that are to be opened."""
        return self._reader.is_busy

    def open_files(self, files: Sequence[Path]) -> None:
        """Open files; one that is open already is shown."""
        for file in files:
            self.open_file(file)

    def open_file(self, file: Path) -> None:
        """Read a file in a thread, and open it after those that were asked for before.

        What a crash left of the work on it is offered; a file of another program is offered for import.
        """
        path = file.expanduser().absolute()
        if not self._show_open(path):
            self.to_come.append(path)
            self._reader.ask(partial(read_document, path, self.data_folder, builtin_registry()), self._take_up)

    def _take_up(self, read: OpenedDocument | OpenFailure) -> None:
        self.to_come.remove(read.path)
        if isinstance(read, OpenFailure):
            self._tell_not_opened(read)
        elif not self._show_open(read.path):  # it may have been opened, or saved to, meanwhile
            self._preferences.remember_file(read.path)
            document = self._add(
                Session(self._engine, read.workflow, read.path, found=read.found, on_disk=read.on_disk)
            )
            if read.remains is not None:
                self._offer(document, read.remains)

    def _show_open(self, path: Path) -> bool:
        """Show the document of a file that is open already; says whether it is."""
        for document in self.all:
            if document.session.path is not None and is_same_file(document.session.path, path):
                self.shown.emit(document)
                return True
        return False

    def _tell_not_opened(self, read: OpenFailure) -> None:
        if read.is_foreign:
            self._imports.offer(read.path)
            return
        self.refused.emit(read.reason)
        if read.is_gone:
            self._preferences.forget_file(read.path)
        if read.remains is not None:
            self._offer(self.open_copy(Workflow(), is_trusted=False), read.remains)

    def ask_for_files(self) -> None:
        """Ask which files to open."""
        self._asker.open_files(self._window, self.open_files)

    def recover_unsaved(self) -> None:
        """Open what a crash left of documents that never were saved, after the files that were asked for before."""
        self._reader.ask(partial(find_unsaved, self.data_folder), self._offer_unsaved)

    def _offer_unsaved(self, left: list[RecoveredDocument]) -> None:
        for remains in left:
            self._offer(self._add(Session(self._engine)), remains)

    def close(self, document: DocumentPage, then: Callable[[], object] = lambda: None) -> None:
        """Close a document, asking once where that would lose something; what is being saved is waited for."""
        if document in self._waiting:
            return
        if document.session.is_saving:
            self._waiting.add(document)
            document.session.when_saved(lambda: self._close_after_saving(document, then))
            return
        if not document.session.is_modified:
            self.drop(document)
            then()
            return
        self.shown.emit(document)

        def give_up() -> None:
            self.drop(document)
            then()

        # Once it is saved: what was changed meanwhile is asked about again.
        again = partial(self._close_after_saving, document, then)
        ask_question(
            self._window,
            f"Save the changes of “{document.session.name}”?",
            "They are lost otherwise.",
            [
                ("Save", _Role.AcceptRole, lambda: self.files.save(document, again)),
                ("Don't save", _Role.DestructiveRole, give_up),
                ("Cancel", _Role.RejectRole, lambda: None),
            ],
        )

    def _close_after_saving(self, document: DocumentPage, then: Callable[[], object]) -> None:
        self._waiting.discard(document)
        if document in self.all:
            self.close(document, then)

    def drop(self, document: DocumentPage) -> None:
        """Close a document without a question; unsaved work is gone."""
        if document not in self.all:  # closed with what it is a part of
            return
        document.autosave.settle()
        self.all.remove(document)
        del self._subflows[document]
        self.closed.emit(document)

    def _add(self, session: Session) -> DocumentPage:
        document = DocumentPage(session, self._parts, self._model_names, self.data_folder)
        document.save_wanted.connect(lambda: self.files.save(document))
        document.save_as_wanted.connect(lambda: self.files.save_as(document))
        FileConflictBar(document, self)
        self._subflows[document] = SubflowRefresher(session, document.bars, document)
        document.canvas.subflow_requested.connect(lambda node_id: self._subflow_pages.open(document, node_id))
        self.all.append(document)
        self.opened.emit(document)
        return document

    def _look_for_subflows(self, saved: DocumentPage) -> None:
        """What was saved may be a subflow of other documents."""
        for other, subflows in self._subflows.items():
            if other is not saved:
                subflows.look()

    def _offer(self, document: DocumentPage, remains: RecoveredDocument) -> None:
        def open_beside() -> None:
            session = document.session
            named = remains.workflow.model_copy(update={"name": f"{session.name} (recovered)"})
            self.open_copy(named, is_trusted=session.is_trusted and not session.confirms_calls)

        offer(document, remains, open_beside)
