"""Close documents and the window: ask about unsaved changes and running runs, and let runs finish in the background."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from app.controllers.document_controller import DocumentController
from app.dialogs import ask_question
from app.runs.run_status import is_running
from app.window.document_page import DocumentPage

_Role = QMessageBox.ButtonRole


class CloseController(QObject):
    """Closes documents and the window.

    Args:
        documents: Closes and saves documents.
        remember_open: Stores which files are open.

    Attributes:
        background: Closed documents whose runs continue.
        is_closing: Whether the window is closing for good.

    Signals:
        finished: The last run in the background has ended after the window was closed.
    """

    finished = Signal()

    def __init__(self, window: QWidget, documents: DocumentController, remember_open: Callable[[], object]) -> None:
        super().__init__(window)
        self._window = window
        self._documents = documents
        self._remember_open = remember_open
        self._question: QMessageBox | None = None
        self._is_waiting = False
        self._has_given_up = False
        self.background: list[DocumentPage] = []
        self.is_closing = False

    def close_document(self, document: DocumentPage) -> None:
        """Close a document, asking about its run and its unsaved changes."""
        close = partial(self._documents.close, document)
        if document.session.shown.live is None:
            close()
        else:
            self._ask_about_runs([document], close)

    def release(self, document: DocumentPage) -> None:
        """Dispose of a closed document, once its run has ended."""
        session = document.session
        if session.shown.live is None:
            document.dispose()
            return
        self.background.append(document)
        document.hide()  # or Qt could show it as a window
        document.setParent(None)

        def end() -> None:
            self.background.remove(document)
            document.dispose()
            if self.is_closing and not self.background:
                self.finished.emit()

        session.shown.ended.connect(end)
        session.shown.updated.connect(lambda _touched: self._end_at_question(document))

    def _end_at_question(self, document: DocumentPage) -> None:
        """Suspend a run in the background that asks a question, or cancel it if it is not stored."""
        run, view_model = document.session.shown.live, document.session.shown.view_model
        if run is None or view_model is None or not view_model.questions or is_running(view_model):
            return
        if self._waits(document):
            run.suspend()
        else:
            run.cancel()

    def may_close(self) -> bool:
        """Return whether the window may close now; otherwise the answer to a question closes it."""
        if self.is_closing:
            return True
        if self._question is not None or self._wait_for_saving():
            return False
        if self._ask_about_changes() or self._ask_about_running():
            return False
        self._end()
        return True

    def _wait_for_saving(self) -> bool:
        """Return whether a save is in progress; the window then closes by itself afterwards."""
        saving = [document for document in self._documents.all if document.session.is_saving]
        if not saving or self._has_given_up:
            return False
        if self._is_waiting:  # the user closes it again: the disk may never answer
            self._ask_to_wait(saving[0])
            return True
        self._is_waiting = True
        saving[0].session.when_saved(self._close_after_saving)
        return True

    def _ask_to_wait(self, document: DocumentPage) -> None:
        self._question = ask_question(
            self._window,
            f"“{document.session.name}” is still being saved.",
            "The disk is not responding. The window closes by itself once the file is saved.",
            [
                ("Wait", _Role.AcceptRole, lambda: None),
                ("Close anyway", _Role.DestructiveRole, self._give_up_saving),
                ("Keep open", _Role.RejectRole, self._stay),
            ],
        )
        self._question.finished.connect(self._forget_question)

    def _close_after_saving(self) -> None:
        if self._question is not None:
            self._question.close()
            self._question = None
        if self._is_waiting and not self.is_closing:
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
        documents = (document for document in self._documents.all if not document.session.is_saving)
        changed = [document for document in documents if document.session.is_modified]
        if not changed:
            return False
        names = ", ".join(f"“{document.session.name}”" for document in changed)
        self._question = ask_question(
            self._window,
            f"Save the changes to {names}?",
            "Your changes will be lost if you don't save them.",
            [
                ("Save", _Role.AcceptRole, lambda: self._documents.files.save_all(changed, self._window.close)),
                ("Don't save", _Role.DestructiveRole, self._discard_changes),
            ],
        )
        self._question.destroyed.connect(self._forget_question)
        self._question.finished.connect(self._forget_question)
        return True

    def _ask_about_running(self) -> bool:
        running = [document for document in self._documents.all if document.session.shown.live is not None]
        if running:
            self._ask_about_runs(running, self._close_now)
        return bool(running)

    def _ask_about_runs(self, documents: list[DocumentPage], close: Callable[[], object]) -> None:
        """Ask whether to stop the runs of documents, or to let them finish or wait; then call `close`."""

        def stop() -> None:
            for document in documents:
                if document.session.shown.live is not None:
                    document.session.shown.live.cancel()
            close()

        def leave() -> None:
            self._leave(documents)
            close()

        names = ", ".join(f"“{document.session.name}”" for document in documents)
        verb = "is" if len(documents) == 1 else "are"
        if all(map(self._waits, documents)):
            text, title = f"{names} {verb} waiting for your answer.", "Answer later"
            detail = "You can resume the run from the Runs panel and answer then."
        else:
            text, title = f"{names} {verb} still running.", "Run in background"
            detail = "It can finish in the background. You will be notified when it ends."
        if any(document.has_draft_answer for document in documents):
            detail += " What you have typed as an answer is not saved: copy it, or cancel and send it."
        answers = [(title, _Role.AcceptRole, leave), ("Stop", _Role.DestructiveRole, stop)]
        ask_question(self._window, text, detail, answers)

    def _waits(self, document: DocumentPage) -> bool:
        """Return whether a run waits for an answer and is stored, so that it can be answered later."""
        view_model = document.session.shown.view_model
        return document.is_stored() and view_model is not None and bool(view_model.questions)

    def _leave(self, documents: list[DocumentPage]) -> None:
        """Suspend the runs that wait for an answer, and let the others finish, also those that are paused."""
        for document in documents:
            run = document.session.shown.live
            if run is not None and self._waits(document):
                run.suspend()
            elif run is not None:
                run.resume()

    def _forget_question(self) -> None:
        self._question = None

    def _discard_changes(self) -> None:
        self._question = None
        if not self._ask_about_running():
            self._close_now()

    def _close_now(self) -> None:
        self._end()
        self._window.close()

    def _end(self) -> None:
        """Close all documents, after storing which ones were open."""
        self._remember_open()
        self.is_closing = True
        for document in list(self._documents.all):
            self._documents.drop(document)
