"""Open, save and close documents: files, imports, templates, copies, stored runs, and work recovered after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QMessageBox, QPlainTextEdit, QWidget

from app.controllers.consent_controller import ConsentController
from app.dialogs import (
    SAVE_FILTER,
    FileDialogs,
    ask_question,
    confirm_overwrite,
    file_name_of,
    import_filter,
    show_failure,
    with_workflow_suffix,
)
from app.document_file import FileFingerprint
from app.engine_thread import EngineThread
from app.inspector.model_list import ModelSource
from app.session import Analysis, ReplaceDocument, Session, analyze_document
from app.settings.preferences import Preferences
from app.theme.tokens import UNIT
from app.theme.widgets import PlainLabel, resize_on_screen, vbox
from app.window.autosave import RecoveredDocument, find_recovered, find_unsaved
from app.window.document_page import DocumentPage
from app.worker import Worker
from engine.document.files import load
from engine.document.model import FILE_SUFFIX, Workflow
from engine.errors import EngineError
from engine.importing.reader import ImportResult, import_file, looks_importable
from engine.importing.report import Outcome, ReportEntry
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
    """Read and analyze a file. It runs nothing in the file, and is called in a worker thread.

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
    return OpenedDocument(path, workflow, analyze_document(workflow, registry), fingerprint, recovered)


class DocumentController(QObject):
    """The open documents.

    Args:
        preferences: The user's settings, for the recent files.
        data_folder: The folder of autosave files that cannot be written beside their document.
        models: The models to choose from.
        inspectors: The parent of the inspectors.
        pages: The parent of the documents.

    Attributes:
        all: The open documents, in the order in which they were opened.
        files: Saves and reverts them.
        imports: Imports files of other programs.
        loading: Files that are being read.

    Signals:
        opened: A document was opened.
        shown: A document should be brought to the front.
        closed: A document was closed.
    """

    opened = Signal(object)
    shown = Signal(object)
    closed = Signal(object)

    def __init__(
        self,
        window: QWidget,
        engine: EngineThread,
        preferences: Preferences,
        dialogs: FileDialogs,
        data_folder: Path,
        models: ModelSource,
        inspectors: QWidget,
        pages: QWidget,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._engine = engine
        self._preferences = preferences
        self._dialogs = dialogs
        self.data_folder = data_folder
        self._models = models
        self._inspectors = inspectors
        self._pages = pages
        self.all: list[DocumentPage] = []
        self._reader = Worker(self)
        self.loading: list[Path] = []
        self._failures: list[OpenFailure] = []
        self._closing: set[DocumentPage] = set()
        self.imports = ImportController(window, dialogs, partial(self.open_copy, is_trusted=False))
        self.files = SaveController(window, preferences, dialogs, self.all, self._reader)
        self.files.attention_wanted.connect(self.shown)

    def new(self) -> DocumentPage:
        """Open an empty document."""
        return self.open_session(Session(self._engine))

    def open_template(self, file: Path) -> DocumentPage | None:
        """Open a copy of a template as a new document."""
        try:
            workflow = load(file)
        except EngineError as error:
            show_failure(self._window, f"“{file.name}” cannot be opened.", str(error))
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
        return self.open_session(session)

    def open_session(self, session: Session) -> DocumentPage:
        """Open a session as a document: a new one, a file, or a stored run."""
        document = DocumentPage(session, self._models, self.data_folder, self._inspectors, self._pages)
        document.save_wanted.connect(lambda: self.files.save(document))
        document.save_as_wanted.connect(lambda: self.files.save_as(document))
        FileConflictBar(document, self.files)
        self.all.append(document)
        self.opened.emit(document)
        return document

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
        if not self.show_file(path):
            self.loading.append(path)
            self._reader.ask(partial(read_document, path, self.data_folder, builtin_registry()), self._open_read)

    def _open_read(self, read: OpenedDocument | OpenFailure) -> None:
        self.loading.remove(read.path)
        if isinstance(read, OpenFailure):
            self._note_failure(read)
        elif not self.show_file(read.path):  # it may have been opened, or saved to, meanwhile
            self._preferences.remember_file(read.path)
            session = Session(
                self._engine, read.workflow, read.path, analysis=read.analysis, fingerprint=read.fingerprint
            )
            document = self.open_session(session)
            if read.recovered is not None:
                self._offer_recovery(document, read.recovered)
        if not self.loading:
            self._report_failures()

    def show_file(self, path: Path) -> bool:
        """Show the document of a file that is open already; returns whether it is."""
        for document in self.all:
            if document.session.path is not None and is_same_file(document.session.path, path):
                self.shown.emit(document)
                return True
        return False

    def _note_failure(self, failure: OpenFailure) -> None:
        if failure.is_foreign:
            self.imports.offer(failure.path)
            return
        if failure.is_gone:
            self._preferences.forget_file(failure.path)
        if failure.recovered is not None:
            self._offer_recovery(self.open_copy(Workflow(), is_trusted=False), failure.recovered)
        else:
            self._failures.append(failure)

    def _report_failures(self) -> None:
        """Show why files could not be opened, all in one dialog."""
        failures, self._failures = self._failures, []
        if failures:
            names = ", ".join(f"“{failure.path.name}”" for failure in failures)
            show_failure(self._window, f"{names} cannot be opened.", "\n\n".join(each.reason for each in failures))

    def ask_for_files(self) -> None:
        """Ask which files to open."""
        self._dialogs.open_files(self._window, self.open_files)

    def recover_unsaved(self, then: Callable[[], object] = lambda: None) -> None:
        """Offer the documents without a file that a crash left, after the files that were requested before.

        Args:
            then: Called at the end, when all of these documents are open.
        """

        def offer(left: list[RecoveredDocument]) -> None:
            for recovered in left:
                self._offer_recovery(self.open_session(Session(self._engine)), recovered)
            then()

        self._reader.ask(partial(find_unsaved, self.data_folder), offer)

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

    def _offer_recovery(self, document: DocumentPage, recovered: RecoveredDocument) -> None:
        def open_beside() -> None:
            session = document.session
            named = recovered.workflow.model_copy(update={"name": f"{session.name} (recovered)"})
            self.open_copy(named, is_trusted=session.is_trusted and not session.confirms_calls)

        document.offer_recovery(recovered, open_beside)


class SaveController(QObject):
    """Saves and reverts documents.

    Args:
        preferences: The user's settings, for the recent files.
        documents: The open documents; the list is read again each time.
        reader: Reads files, one after the other.

    Attributes:
        consent: Records that saved workflows are the user's own.

    Signals:
        saved: A document was saved, and its trust is recorded.
        attention_wanted: A document should be shown, because the user is asked about it.
    """

    saved = Signal(object)
    attention_wanted = Signal(object)

    def __init__(
        self,
        window: QWidget,
        preferences: Preferences,
        dialogs: FileDialogs,
        documents: Sequence[DocumentPage],
        reader: Worker,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._preferences = preferences
        self._dialogs = dialogs
        self._documents = documents
        self._reader = reader
        self.consent = ConsentController(window)

    def save(self, document: DocumentPage, then: Callable[[], object] = lambda: None) -> None:
        """Save a document, asking where if it has no file; `then` is called only on success."""
        path = document.session.destination
        if path is None:
            self.save_as(document, then)
        else:
            self._save_to(document, path, then)

    def save_as(self, document: DocumentPage, then: Callable[[], object] = lambda: None) -> None:
        """Ask where to save a document, and save it there."""
        session = document.session
        suggestion = session.destination or Path.home() / f"{file_name_of(session.name, 'workflow')}{FILE_SUFFIX}"

        def write(chosen: Path) -> None:
            path = with_workflow_suffix(chosen, FILE_SUFFIX)
            confirm_overwrite(self._window, chosen, path, lambda: self._save_to(document, path, then))

        self._dialogs.save_file(self._window, suggestion, SAVE_FILTER, write)

    def save_all(self, documents: Sequence[DocumentPage], then: Callable[[], object]) -> None:
        """Save documents one after the other; `then` is called when all are saved."""
        if not documents:
            then()
            return
        self.attention_wanted.emit(documents[0])
        self.save(documents[0], lambda: self.save_all(documents[1:], then))

    def revert(self, document: DocumentPage) -> None:
        """Load the saved document again, as an undoable step."""
        path = document.session.path
        if path is None:
            return

        def read() -> tuple[FileFingerprint, Workflow]:
            return FileFingerprint.of(path), load(path)

        def apply(read: tuple[FileFingerprint, Workflow]) -> None:
            if document in self._documents and document.session.path == path:
                _revert(document, path, *read)

        def refuse(error: EngineError) -> None:
            if document in self._documents:
                document.session.refused.emit(str(error))

        self._reader.ask(read, apply, refuse)

    def _save_to(self, document: DocumentPage, path: Path, then: Callable[[], object]) -> None:
        session = document.session
        others = (other.session.destination for other in self._documents if other is not document)
        if any(there is not None and is_same_file(there, path) for there in others):
            session.refused.emit(f"“{path.name}” is open in another tab. Close it there, or choose another name.")
            return
        session.save(path, lambda: self._note_saved(document, path, then))

    def _note_saved(self, document: DocumentPage, path: Path, then: Callable[[], object]) -> None:
        self._preferences.remember_file(path)
        document.discard_recovered(only_used=True)
        if document.session.is_trusted:
            fully = not document.session.confirms_calls
            self.consent.remember(document.session.saved_workflow, partial(self.saved.emit, document), fully=fully)
        else:
            self.saved.emit(document)
        then()


def is_same_file(first: Path, second: Path) -> bool:
    """Return whether two paths name the same file."""
    try:
        return first == second or first.samefile(second)
    except OSError:
        return False


def _revert(document: DocumentPage, path: Path, on_disk: FileFingerprint, saved: Workflow) -> None:
    document.session.do(ReplaceDocument("Revert to saved", saved))
    document.session.is_trusted = False  # another program may have written it
    document.watch.know(path, on_disk)
    document.session.know_file(on_disk)
    document.session.mark_saved()
    document.bars.drop("disk")


_TOPIC: Final = "disk"
_CHANGED: Final = "Another program has changed the file."


class FileConflictBar(QObject):
    """Shows a message over a document whose file another program has changed or removed.

    Args:
        document: The document; the parent of this object.
        saving: Saves and reverts it.
    """

    def __init__(self, document: DocumentPage, saving: SaveController) -> None:
        super().__init__(document)
        self._document, self._saving = document, saving
        document.watch.changed.connect(lambda: self._show(_CHANGED, self._keep))
        document.watch.gone.connect(self._show_removed)
        document.session.save_withheld.connect(self._ask_before_overwriting)

    def _ask_before_overwriting(self, then: Sequence[Callable[[], object]]) -> None:

        def save() -> None:
            self._keep()
            self._saving.save(self._document, lambda: [act() for act in then])

        self._saving.attention_wanted.emit(self._document)
        self._show(f"{_CHANGED} Your changes are not saved yet.", save)

    def _show(self, text: str, keep: Callable[[], object]) -> None:
        buttons = [("Reload", lambda: self._saving.revert(self._document)), ("Keep mine", keep)]
        self._document.bars.say(_TOPIC, text, "warning", buttons)

    def _keep(self) -> None:
        self._document.session.know_file()
        self._document.session.mark_unsaved()

    def _show_removed(self) -> None:
        document, saving = self._document, self._saving
        path = document.session.path
        assert path is not None
        document.session.mark_unsaved()
        document.bars.say(
            _TOPIC,
            f"“{path.name}” was moved or deleted. Your work is still here.",
            "warning",
            [("Save again", lambda: saving.save(document)), ("Save as…", lambda: saving.save_as(document))],
        )


_TITLES: Final = {Outcome.LEFT_OUT: "Left out", Outcome.CHANGED: "Changed", Outcome.CARRIED_OVER: "Carried over"}


class ImportController(QObject):
    """Reads foreign files in a thread and offers to import them.

    Args:
        open_copy: Opens a document that is not saved yet, with its analysis.
    """

    def __init__(
        self, window: QWidget, dialogs: FileDialogs, open_copy: Callable[[Workflow, Analysis], DocumentPage]
    ) -> None:
        super().__init__(window)
        self._window = window
        self._dialogs = dialogs
        self._open_copy = open_copy
        self._worker = Worker(self)

    def ask_for_file(self) -> None:
        """Ask which file to import."""
        self._dialogs.open_text(self._window, self.offer, "Import a workflow of another program", import_filter())

    def offer(self, file: Path) -> None:
        """Convert a file and ask whether to open the result. Nothing in the file is executed."""

        def read() -> tuple[ImportResult, Analysis]:
            imported = import_file(file)
            return imported, analyze_document(imported.workflow, builtin_registry())

        def refuse(error: EngineError) -> None:
            show_failure(self._window, f"“{file.name}” cannot be imported.", str(error))

        self._worker.ask(read, partial(self._ask, file), refuse)

    def _ask(self, file: Path, read: tuple[ImportResult, Analysis]) -> None:
        imported, found = read
        ask_question(
            self._window,
            f"Import “{file.name}”?",
            f"File of another program: {imported.importer.label}. {imported.summary} The file stays unchanged.",
            [("Import", _Role.AcceptRole, lambda: self._open(file, imported, found))],
        )

    def _open(self, file: Path, imported: ImportResult, found: Analysis) -> None:
        document = self._open_copy(imported.workflow, found)
        report = ("Show report", lambda: ReportDialog(file.name, imported, self._window).open())
        document.bars.say("import", f"Imported from {file.name}: {imported.summary}", "info", [report])


class ReportDialog(QDialog):
    """The import report: entries that need attention come first."""

    def __init__(self, name: str, imported: ImportResult, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Import report")
        resize_on_screen(self, QSize(160, 120) * UNIT)
        self.text = QPlainTextEdit(report_text(imported.entries))
        self.text.setReadOnly(True)
        self.text.setAccessibleName("Import report")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        buttons.rejected.connect(self.reject)
        vbox(
            PlainLabel(name, look="title"),
            PlainLabel(f"{imported.summary} {imported.importer.review}", look="dim", wrap=True),
            (self.text, 1),
            buttons,
            spacing=3,
            margins=4,
            parent=self,
        )


def report_text(entries: tuple[ReportEntry, ...]) -> str:
    """The report as text, grouped by outcome."""
    parts: list[str] = []
    for outcome, title in _TITLES.items():
        lines = [f"  {entry.place}: {entry.message}" for entry in entries if entry.outcome is outcome]
        if lines:
            parts.append("\n".join([f"{title} ({len(lines)})", *lines]))
    return "\n\n".join(parts)
