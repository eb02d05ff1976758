"""Saving documents into files, and going back to what is in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.controllers.consent_controller import ConsentController
from app.dialogs import FILTER, FileDialogs, confirm_overwrite
from app.file_watcher import FileFingerprint
from app.session import ReplaceDocument
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.window.remains import forget_used
from app.worker import Worker
from engine.document.files import load
from engine.document.model import FILE_SUFFIX, Workflow
from engine.errors import EngineError

if TYPE_CHECKING:
    from app.controllers.document_controller import DocumentController


class SaveController(QObject):
    """Saves documents, and puts back what is in their files.

    Args:
        window: Over which questions are asked.
        preferences: The person's settings.
        asker: Asks for files.
        documents: All that are open.
        reader: Reads files, one after the other.

    Attributes:
        consent: Is told what a person has saved, which is their own work.

    Signals:
        saved: A document is in its file, and what it says is known to be trusted, where it is.
    """

    saved = Signal(object)

    def __init__(
        self,
        window: QWidget,
        preferences: Preferences,
        asker: FileDialogs,
        documents: DocumentController,
        reader: Worker,
    ) -> None:
        super().__init__(documents)
        self._window = window
        self._preferences = preferences
        self._asker = asker
        self._documents = documents
        self._reader = reader
        self.consent = ConsentController(window)

    def save(self, document: DocumentPage, then: Callable[[], object] = lambda: None) -> None:
        """Save a document, asking where if it has no file; `then` is done only when it is saved."""
        path = document.session.destination
        if path is None:
            self.save_as(document, then)
        else:
            self._save_to(document, path, then)

    def save_as(self, document: DocumentPage, then: Callable[[], object] = lambda: None) -> None:
        """Ask where to save a document, and save it there."""
        session = document.session
        suggestion = session.destination or Path.home() / f"{_file_name(session.name)}{FILE_SUFFIX}"

        def write(chosen: Path) -> None:
            path = _with_suffix(chosen)
            confirm_overwrite(self._window, chosen, path, lambda: self._save_to(document, path, then))

        self._asker.save_file(self._window, suggestion, FILTER, write)

    def save_all(self, documents: Sequence[DocumentPage], then: Callable[[], object]) -> None:
        """Save one document after the other; `then` is done when all are saved."""
        if not documents:
            then()
            return
        self._documents.shown.emit(documents[0])
        self.save(documents[0], lambda: self.save_all(documents[1:], then))

    def revert(self, document: DocumentPage) -> None:
        """Go back to what is saved, as a step that can be taken back."""
        path = document.session.path
        if path is None:
            return

        def read() -> tuple[FileFingerprint, Workflow]:
            return FileFingerprint.of(path), load(path)

        def take(read: tuple[FileFingerprint, Workflow]) -> None:
            if document in self._documents.all and document.session.path == path:
                _put_back(document, path, *read)

        def refuse(error: EngineError) -> None:
            if document in self._documents.all:
                document.session.refused.emit(str(error))

        self._reader.ask(read, take, refuse)

    def _save_to(self, document: DocumentPage, path: Path, then: Callable[[], object]) -> None:
        session = document.session
        others = (other.session.destination for other in self._documents.all if other is not document)
        if any(there is not None and is_same_file(there, path) for there in others):
            session.refused.emit(f"“{path.name}” is open in another tab. Close it there, or choose another name.")
            return
        session.save(path, lambda: self._note_saved(document, path, then))

    def _note_saved(self, document: DocumentPage, path: Path, then: Callable[[], object]) -> None:
        self._preferences.remember_file(path)
        forget_used(document)
        if document.session.is_trusted:
            # Who looks at it then is to find it approved.
            fully = not document.session.confirms_calls
            self.consent.remember(document.session.workflow, partial(self.saved.emit, document), fully=fully)
        else:
            self.saved.emit(document)
        then()


def is_same_file(first: Path, second: Path) -> bool:
    """Whether two names are of the same file."""
    try:
        return first == second or first.samefile(second)
    except OSError:
        return False


def _put_back(document: DocumentPage, path: Path, on_disk: FileFingerprint, saved: Workflow) -> None:
    document.session.do(ReplaceDocument("Revert to saved", saved))
    document.session.is_trusted = False  # another program may have written it
    document.watch.know(path)
    document.session.know_file(on_disk)
    document.session.mark_saved()
    document.bars.drop("disk")


def _with_suffix(path: Path) -> Path:
    return path if path.name.endswith(".json") else path.with_name(path.name + FILE_SUFFIX)


def _file_name(name: str) -> str:
    kept = "".join(letter if letter.isalnum() else "-" for letter in name.casefold()).strip("-")
    return kept[:60] or "workflow"


_MATTER: Final = "disk"
_CHANGED: Final = "Another program has changed the file."


class FileConflictBar(QObject):
    """Follows the files of one document.

    Args:
        document: The document; it owns this.
        documents: What reads and saves it.
    """

    def __init__(self, document: DocumentPage, documents: DocumentController) -> None:
        super().__init__(document)
        self._document, self._documents = document, documents
        document.watch.changed.connect(self._tell_changed)
        document.watch.gone.connect(self._tell_gone)
        document.session.save_withheld.connect(self._ask_before_saving_over)

    def _tell_changed(self) -> None:
        self._ask(_CHANGED, self._keep)

    def _ask_before_saving_over(self, then: Sequence[Callable[[], object]]) -> None:
        """Saving has found the change, of which the system may have told nothing."""

        def save() -> None:
            self._keep()
            self._documents.files.save(self._document, lambda: [act() for act in then])

        self._documents.shown.emit(self._document)
        self._ask(f"{_CHANGED} Your work is not saved over it yet.", save)

    def _ask(self, text: str, keep: Callable[[], object]) -> None:
        ways = [("Reload", lambda: self._documents.files.revert(self._document)), ("Keep mine", keep)]
        self._document.bars.say(_MATTER, text, "warning", ways)

    def _keep(self) -> None:
        self._document.session.know_file()
        self._document.session.mark_unsaved()

    def _tell_gone(self) -> None:
        document, files = self._document, self._documents.files
        path = document.session.path
        assert path is not None
        document.session.mark_unsaved()
        document.bars.say(
            _MATTER,
            f"The file {path.name} is gone from its folder. Your work is still here.",
            "warning",
            [("Save again", lambda: files.save(document)), ("Save as…", lambda: files.save_as(document))],
        )
