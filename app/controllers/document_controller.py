"""Open and close documents: files, templates, copies, stored runs, and work recovered after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from app.controllers.import_controller import ImportController
from app.controllers.save_controller import FileConflictBar, SaveController, is_same_file
from app.dialogs import FileDialogs, ask_question
from app.document_file import FileFingerprint
from app.engine_thread import EngineThread
from app.session import Analysis, Session, analyse_document
from app.settings.preferences import Preferences
from app.window.autosave import RecoveredDocument, find_recovered, find_unsaved
from app.window.document_page import DocumentPage
from app.window.page_factories import PageFactories
from app.worker import Worker
from engine.document.files import load
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.importing.reader import looks_importable
from engine.nodes.node_registry import Registry, builtin_registry

_Role = QMessageBox.ButtonRole


@dataclass(frozen=True, slots=True)
class OpenedDocument:
    """A document that was read.

    Attributes:
        path: Its file.
        workflow: Its content.
        analysis: Its structure and problems.
        fingerprint: The file when it was read.
        recovered: Unsaved work that a crash left; None where there is none.
    """

    path: Path
    workflow: Workflow
    analysis: Analysis
    fingerprint: FileFingerprint
    recovered: RecoveredDocument | None


@dataclass(frozen=True, slots=True)
class OpenFailure:
    """A file that cannot be opened as a document.

    Attributes:
        path: The file.
        reason: Why, and what to do.
        is_foreign: Whether another program seems to have written it.
        is_gone: Whether the file does not exist.
        recovered: Unsaved work that a crash left of a file that is gone; None where there is none.
    """

    path: Path
    reason: str
    is_foreign: bool
    is_gone: bool
    recovered: RecoveredDocument | None = None


def read_document(path: Path, data_folder: Path, registry: Registry) -> OpenedDocument | OpenFailure:
    """Read and analyse a file. It runs nothing in the file, and is called in a worker thread.

    Args:
        path: The file.
        data_folder: The folder of autosave files that cannot be written beside their document.
        registry: The node types.
    """
    fingerprint = FileFingerprint.of(path)
    try:
        workflow = load(path)
    except EngineError as error:
        if path.exists():
            return OpenFailure(path, str(error), looks_importable(path), is_gone=False)
        recovered = find_recovered(path, data_folder, None)
        return OpenFailure(path, str(error), is_foreign=False, is_gone=True, recovered=recovered)
    recovered = find_recovered(path, data_folder, workflow)
    return OpenedDocument(path, workflow, analyse_document(workflow, registry), fingerprint, recovered)


class DocumentController(QObject):
    """The open documents.

    Args:
        window: The parent of dialogs.
        engine: The engine's thread.
        preferences: The user's settings, for the recent files.
        dialogs: Asks for files.
        factories: Creates canvases and inspectors.
        data_folder: The folder of autosave files that cannot be written beside their document.
        model_names: Returns the names of the available models.

    Attributes:
        all: The open documents, in the order in which they were opened.
        files: Saves and reverts them.
        loading: Files that are being read.
        data_folder: See above.

    Signals:
        opened: A document was opened.
        shown: A document should be brought to the front.
        closed: A document was closed.
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
        dialogs: FileDialogs,
        factories: PageFactories,
        data_folder: Path,
        model_names: Callable[[], list[str]],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._engine = engine
        self._preferences = preferences
        self._dialogs = dialogs
        self._factories = factories
        self.data_folder = data_folder
        self._model_names = model_names
        self.all: list[DocumentPage] = []
        self._reader = Worker(self)
        self.loading: list[Path] = []
        self._closing: set[DocumentPage] = set()
        self._imports = ImportController(window, partial(self.open_copy, is_trusted=False), self.refused.emit)
        self.files = SaveController(window, preferences, dialogs, self.all, self._reader)
        self.files.attention_wanted.connect(self.shown)

    def new(self) -> DocumentPage:
        """Open an empty document."""
        return self._add(Session(self._engine))

    def open_template(self, file: Path) -> DocumentPage | None:
        """Open a copy of a template as a new document."""
        try:
            workflow = load(file)
        except EngineError as error:
            self.refused.emit(str(error))
            return None
        return self.open_copy(workflow)

    def open_copy(
        self, workflow: Workflow, analysis: Analysis | None = None, *, is_trusted: bool = True
    ) -> DocumentPage:
        """Open a workflow as a new document without a file.

        Args:
            workflow: The workflow.
            analysis: Its structure and problems, where they are known.
            is_trusted: Whether it is the user's own work or part of the program.
        """
        session = Session(self._engine, workflow, analysis=analysis)
        session.is_trusted = is_trusted
        return self._add(session)

    def open_past(self, session: Session) -> DocumentPage:
        """Open a stored run as a read-only document."""
        return self._add(session)

    @property
    def is_reading(self) -> bool:
        """Whether files are still being read."""
        return self._reader.is_busy

    def open_files(self, files: Sequence[Path]) -> None:
        """Open files, or show those that are open already."""
        for file in files:
            self.open_file(file)

    def open_file(self, file: Path) -> None:
        """Read a file in a thread and open it, after those that were requested before.

        Work that a crash left is offered for recovery, and a file of another program for import.
        """
        path = file.expanduser().absolute()
        if not self._show_open(path):
            self.loading.append(path)
            self._reader.ask(partial(read_document, path, self.data_folder, builtin_registry()), self._open_read)

    def _open_read(self, read: OpenedDocument | OpenFailure) -> None:
        self.loading.remove(read.path)
        if isinstance(read, OpenFailure):
            self._report_failure(read)
        elif not self._show_open(read.path):  # it may have been opened, or saved to, meanwhile
            self._preferences.remember_file(read.path)
            session = Session(
                self._engine, read.workflow, read.path, analysis=read.analysis, fingerprint=read.fingerprint
            )
            document = self._add(session)
            if read.recovered is not None:
                self._offer_recovery(document, read.recovered)

    def _show_open(self, path: Path) -> bool:
        """Show the document of a file that is open already; returns whether it is."""
        for document in self.all:
            if document.session.path is not None and is_same_file(document.session.path, path):
                self.shown.emit(document)
                return True
        return False

    def _report_failure(self, failure: OpenFailure) -> None:
        if failure.is_foreign:
            self._imports.offer(failure.path)
            return
        self.refused.emit(failure.reason)
        if failure.is_gone:
            self._preferences.forget_file(failure.path)
        if failure.recovered is not None:
            self._offer_recovery(self.open_copy(Workflow(), is_trusted=False), failure.recovered)

    def ask_for_files(self) -> None:
        """Ask which files to open."""
        self._dialogs.open_files(self._window, self.open_files)

    def recover_unsaved(self) -> None:
        """Offer the documents without a file that a crash left, after the files that were requested before."""
        self._reader.ask(partial(find_unsaved, self.data_folder), self._offer_unsaved)

    def _offer_unsaved(self, left: list[RecoveredDocument]) -> None:
        for recovered in left:
            self._offer_recovery(self._add(Session(self._engine)), recovered)

    def close(self, document: DocumentPage, then: Callable[[], object] = lambda: None) -> None:
        """Close a document, asking about unsaved changes; a save in progress is awaited."""
        if document in self._closing:
            return
        if document.session.is_saving:
            self._closing.add(document)
            document.session.when_saved(lambda: self._close_after_saving(document, then))
            return
        if not document.session.is_modified:
            self.drop(document)
            then()
            return
        self.shown.emit(document)

        def discard() -> None:
            self.drop(document)
            then()

        # Changes made while it is being saved are asked about again.
        again = partial(self._close_after_saving, document, then)
        ask_question(
            self._window,
            f"Save the changes to “{document.session.name}”?",
            "Your changes will be lost if you don't save them.",
            [
                ("Save", _Role.AcceptRole, lambda: self.files.save(document, again)),
                ("Don't save", _Role.DestructiveRole, discard),
                ("Cancel", _Role.RejectRole, lambda: None),
            ],
        )

    def _close_after_saving(self, document: DocumentPage, then: Callable[[], object]) -> None:
        self._closing.discard(document)
        if document in self.all:
            self.close(document, then)

    def drop(self, document: DocumentPage) -> None:
        """Close a document without asking; unsaved work is lost."""
        if document not in self.all:  # closed together with the document that it belongs to
            return
        document.autosave.settle()
        self.all.remove(document)
        self.closed.emit(document)

    def _add(self, session: Session) -> DocumentPage:
        document = DocumentPage(session, self._factories, self._model_names, self.data_folder)
        document.save_wanted.connect(lambda: self.files.save(document))
        document.save_as_wanted.connect(lambda: self.files.save_as(document))
        FileConflictBar(document, self.files)
        self.all.append(document)
        self.opened.emit(document)
        return document

    def _offer_recovery(self, document: DocumentPage, recovered: RecoveredDocument) -> None:
        def open_beside() -> None:
            session = document.session
            named = recovered.workflow.model_copy(update={"name": f"{session.name} (recovered)"})
            self.open_copy(named, is_trusted=session.is_trusted and not session.confirms_calls)

        document.offer_recovery(recovered, open_beside)
