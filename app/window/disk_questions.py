"""What is said over a document whose file another program has changed or removed, and what can be done about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from app.window.document import Document

if TYPE_CHECKING:
    from app.window.documents import Documents

_MATTER: Final = "disk"
_CHANGED: Final = "Another program has changed the file."


class DiskQuestions(QObject):
    """Follows the files of one document.

    Args:
        document: The document; it owns this.
        documents: What reads and saves it.
    """

    def __init__(self, document: Document, documents: Documents) -> None:
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
