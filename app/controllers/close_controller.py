"""Closing documents and the window: what would be lost is asked about once, and runs may end in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox

from app.controllers.history_controller import KEPT
from app.controllers.run_controller import ask_about_runs
from app.dialogs import ask_question
from app.run_status import is_running
from app.window.document_page import DocumentPage

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

_Role = QMessageBox.ButtonRole


class CloseController(QObject):
    """How things end.

    Attributes:
        background: Documents that are closed and whose runs go on.
        is_under_way: Whether the window is being closed for good.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._question: QMessageBox | None = None
        self._is_waiting = False
        self._has_given_up = False
        self.background: list[DocumentPage] = []
        self.is_under_way = False

    def close_document(self, document: DocumentPage) -> None:
        """Close a document, after the questions that it takes."""
        documents = self._window.documents
        if document.session.shown.live is None:
            documents.close(document)
            return

        def stop() -> None:
            if document.session.shown.live is not None:
                document.session.shown.live.cancel()
            documents.close(document)

        def leave() -> None:
            self._leave([document])
            documents.close(document)

        ask_about_runs(self._window, [document], stop, leave, wait=self._waits(document))

    def let_go(self, document: DocumentPage) -> None:
        """Take a closed document apart, once its run has ended."""
        session = document.session
        if session.shown.live is None:
            document.dispose()
            return
        self.background.append(document)
        document.setParent(None)

        def end() -> None:
            self.background.remove(document)
            document.dispose()
            if self.is_under_way and not self.background:
                self._window.finished.emit()

        session.shown.ended.connect(end)
        session.shown.updated.connect(lambda _touched: self._wait_for_nobody(document))

    def _wait_for_nobody(self, document: DocumentPage) -> None:
        """A run in the background that has come to a question waits in the history, or ends where it is not kept."""
        run, picture = document.session.shown.live, document.session.shown.picture
        if run is None or picture is None or not picture.questions or is_running(picture):
            return
        if self._waits(document):
            run.put_aside()
        else:
            run.cancel()

    def may_close(self) -> bool:
        """Whether the window may close now; false where a question is open, whose answer then closes it."""
        if self.is_under_way:
            return True
        if self._question is not None or self._wait_for_saving():
            return False
        if self._ask_about_changes() or self._ask_about_runs():
            return False
        self._end()
        return True

    def _wait_for_saving(self) -> bool:
        """Whether something is being saved; then the window closes by itself when that is over."""
        saving = [document for document in self._window.tabs.documents if document.session.is_saving]
        if not saving or self._has_given_up:
            return False
        if self._is_waiting:  # somebody closes it again: the disk may never answer
            self._ask_to_wait(saving[0])
            return True
        self._is_waiting = True
        saving[0].session.when_saved(self._close_after_saving)
        return True

    def _ask_to_wait(self, document: DocumentPage) -> None:
        self._question = ask_question(
            self._window,
            f"“{document.session.name}” is still being saved.",
            "The disk has not answered yet. The window closes by itself when it has.",
            [
                ("Wait", _Role.AcceptRole, lambda: None),
                ("Close all the same", _Role.DestructiveRole, self._give_up_saving),
                ("Keep it open", _Role.RejectRole, self._stay),
            ],
        )
        self._question.finished.connect(self._forget_question)

    def _close_after_saving(self) -> None:
        if self._question is not None:
            self._question.close()
            self._question = None
        if self._is_waiting and not self.is_under_way:
            self._is_waiting = False
            self._window.close()

    def _stay(self) -> None:
        self._is_waiting = False

    def _give_up_saving(self) -> None:
        self._question = None
        self._has_given_up = True
        self._window.close()
        self._has_given_up = False

    def _ask_about_changes(self) -> bool:
        documents = (document for document in self._window.tabs.documents if not document.session.is_saving)
        changed = [document for document in documents if document.session.is_modified]
        if not changed:
            return False
        names = ", ".join(f"“{document.session.name}”" for document in changed)
        self._question = ask_question(
            self._window,
            f"Save the changes of {names}?",
            "They are lost otherwise.",
            [
                ("Save", _Role.AcceptRole, lambda: self._window.documents.files.save_all(changed, self._window.close)),
                ("Don't save", _Role.DestructiveRole, self._go_on),
                ("Cancel", _Role.RejectRole, lambda: None),
            ],
        )
        self._question.destroyed.connect(self._forget_question)
        self._question.finished.connect(self._forget_question)
        return True

    def _ask_about_runs(self) -> bool:
        running = [document for document in self._window.tabs.documents if document.session.shown.live is not None]
        if not running:
            return False

        def stop() -> None:
            for document in running:
                if document.session.shown.live is not None:
                    document.session.shown.live.cancel()
            self._close_now()

        def leave() -> None:
            self._leave(running)
            self._close_now()

        ask_about_runs(self._window, running, stop, leave, wait=all(map(self._waits, running)))
        return True

    def _waits(self, document: DocumentPage) -> bool:
        """Whether a run waits for the person, and is kept, so that it can be answered another day."""
        picture = document.session.shown.picture
        is_kept = self._window.history.access.store is not None and not document.bars.text(KEPT)
        return is_kept and picture is not None and bool(picture.questions)

    def _leave(self, documents: list[DocumentPage]) -> None:
        """Put aside the runs that wait for the person, and let the others go on to their ends, also where they paused.

        Nobody will be there to answer the ones and to resume the others.
        """
        for document in documents:
            run = document.session.shown.live
            if run is not None and self._waits(document):
                run.put_aside()
            elif run is not None:
                run.resume()

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
