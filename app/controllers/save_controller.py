"""Save documents, revert them, and resolve conflicts with other programs that change their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.controllers.consent_controller import ConsentController
from app.dialogs import FILTER, FileDialogs, confirm_overwrite
from app.document_file import FileFingerprint
from app.session import ReplaceDocument
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.worker import Worker
from engine.document.files import load
from engine.document.model import FILE_SUFFIX, Workflow
from engine.errors import EngineError


class SaveController(QObject):
    """Saves and reverts documents.

    Args:
        window: The parent of dialogs.
        preferences: The user's settings, for the recent files.
        dialogs: Asks for files.
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
        suggestion = session.destination or Path.home() / f"{_file_name(session.name)}{FILE_SUFFIX}"

        def write(chosen: Path) -> None:
            path = _with_suffix(chosen)
            confirm_overwrite(self._window, chosen, path, lambda: self._save_to(document, path, then))

        self._dialogs.save_file(self._window, suggestion, FILTER, write)

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
            self.consent.remember(document.session.workflow, partial(self.saved.emit, document), fully=fully)
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
    document.watch.know(path)
    document.session.know_file(on_disk)
    document.session.mark_saved()
    document.bars.drop("disk")


def _with_suffix(path: Path) -> Path:
    return path if path.name.endswith(".json") else path.with_name(path.name + FILE_SUFFIX)


def _file_name(name: str) -> str:
    kept = "".join(letter if letter.isalnum() else "-" for letter in name.casefold()).strip("-")
    return kept[:60] or "workflow"


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
        """Saving noticed a change that the file watcher did not report."""

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
