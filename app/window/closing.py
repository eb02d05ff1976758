"""Closing documents and the window: what would be lost is asked about once, and runs may end in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox

from app.window.choosers import ask
from app.window.document import Document
from app.window.runs import ask_about_runs

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

_Role = QMessageBox.ButtonRole


class Closing(QObject):
    """How things end.

    Attributes:
        background: Documents that are closed and whose runs go on.
        is_under_way: Whether the window is being closed for good.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._question: QMessageBox | None = None
        self.background: list[Document] = []
        self.is_under_way = False

    def close_document(self, document: Document) -> None:
        """Close a document, after the questions that it takes."""
        documents = self._window.documents
        if document.session.run is None:
            documents.close(document)
            return

        def stop() -> None:
            if document.session.run is not None:
                document.session.run.cancel()
            documents.close(document)

        ask_about_runs(self._window, [document], stop, lambda: documents.close(document))

    def let_go(self, document: Document) -> None:
        """Take a closed document apart, once its run has ended."""
        session = document.session
        if session.run is None:
            document.dispose()
            return
        self.background.append(document)
        document.setParent(None)

        def end() -> None:
            self.background.remove(document)
            document.dispose()
            if self.is_under_way and not self.background:
                self._window.finished.emit()

        session.run_ended.connect(end)

    def may_close(self) -> bool:
        """Whether the window may close now; false where a question is open, whose answer then closes it."""
        if self.is_under_way:
            return True
        if self._question is not None:
            return False
        if self._ask_about_changes() or self._ask_about_runs():
            return False
        self._end()
        return True

    def _ask_about_changes(self) -> bool:
        changed = [document for document in self._window.tabs.documents if document.session.is_modified]
        if not changed:
            return False
        names = ", ".join(f"“{document.session.name}”" for document in changed)
        self._question = ask(
            self._window,
            f"Save the changes of {names}?",
            "They are lost otherwise.",
            [
                ("Save", _Role.AcceptRole, lambda: self._window.documents.save_all(changed, self._go_on)),
                ("Don't save", _Role.DestructiveRole, self._go_on),
                ("Cancel", _Role.RejectRole, lambda: None),
            ],
        )
        self._question.destroyed.connect(self._forget_question)
        self._question.finished.connect(self._forget_question)
        return True

    def _ask_about_runs(self) -> bool:
        running = [document for document in self._window.tabs.documents if document.session.run is not None]
        if not running:
            return False

        def stop() -> None:
            for document in running:
                if document.session.run is not None:
                    document.session.run.cancel()
            self._close_now()

        ask_about_runs(self._window, running, stop, self._close_now)
        return True

    def _forget_question(self) -> None:
        self._question = None

    def _go_on(self) -> None:
        """What is not saved now is given up; ask about the runs, and close."""
        self._question = None
        if not self._ask_about_runs():
            self._close_now()

    def _close_now(self) -> None:
        self._end()
        self._window.close()

    def _end(self) -> None:
        """Drop all documents; what is open is remembered as it was."""
        self._window.remember_open()
        self.is_under_way = True
        for document in self._window.tabs.documents:
            self._window.documents.drop(document)
