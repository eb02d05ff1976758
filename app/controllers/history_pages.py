"""A run of the history in its tab: the document as it ran, with the bar over it that says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.history.past_run_bar import PastBar, differences
from app.history.resume_dialog import document_today
from app.history.runs_words import STATUS_WORDS, capital, fork_words, may_resume, place_words, short_id
from app.history.store_client import StoreAccess
from app.history.store_session import Elsewhere, StoredSession
from app.window.document_page import DocumentPage
from app.worker import Worker
from engine.document.model import Workflow
from engine.store.base import RunSummary

COPY, RESUME, ANSWER, COMPARE = "Open as new document", "Resume", "Answer…", "Compare with its parent"
THERE = " in another window or program"
HOW = "answer it there, or here: it goes on there"


class HistoryPage(QObject):
    """One such tab.

    Args:
        document: The page of the document.
        session: The run.
        access: The way to the history.

    Signals:
        copy_wanted: A person wants the document as it ran as a document of its own.
        resume_wanted: A person wants the run to go on; what lists say of it.
        compare_wanted: A person wants to compare the fork with its parent; the parent's id, and the place.
    """

    copy_wanted = Signal()
    resume_wanted = Signal(object)
    compare_wanted = Signal(str, str)

    def __init__(self, document: DocumentPage, session: StoredSession, access: StoreAccess) -> None:
        super().__init__(document)
        self.document = document
        self.session = session
        self.summary: RunSummary | None = None
        self._access = access
        self._worker = Worker(self)
        self._parent = ("", "")
        self._is_held = False
        self.elsewhere = Elsewhere(access, document)
        self.bar = PastBar(document)
        self.bar.add_button(COMPARE, lambda: self.compare_wanted.emit(*self._parent))
        self.bar.add_button(RESUME, lambda: self.resume_wanted.emit(self.summary))
        self.bar.add_button(ANSWER, lambda: self.resume_wanted.emit(self.summary))
        self.bar.add_button(COPY, self.copy_wanted.emit)
        document.put_on_top(self.bar)
        session.shown.started.connect(self._note_run)
        self._offer()

    def show_summary(self, summary: RunSummary, *, is_held: bool = False) -> None:
        """Say what run this is, and how it stands.

        Args:
            summary: What lists say of it.
            is_held: Whether it waits for the person with another process.
        """
        self.summary = summary
        self._parent = (summary.parent, summary.forked_at)
        self._is_held = is_held
        # When it was stands in the tab.
        status = STATUS_WORDS[summary.status] + (THERE if is_held else "")
        more = " · ".join(part for part in (fork_words(summary), HOW if is_held else "") if part)
        self.bar.say(f"Run {short_id(summary.run_id)}, as it ran · {status}", capital(more))
        self.elsewhere.follow(summary, is_held=is_held)
        self._offer()

    def show_fork(self, parent: str, at: str) -> None:
        """Say what fork this is going to be.

        Args:
            parent: The run that it is forked from.
            at: The place in it; empty where it goes on from where that run broke off.
        """
        self._parent = (parent, at)
        self.bar.say(", ".join(part for part in (f"Fork of {short_id(parent)}", place_words(at)) if part))
        self._offer()

    def compare_with_today(self, documents: Sequence[DocumentPage]) -> None:
        """Say how the document of the same file has changed since: the one that is open, or else the file."""
        if self.summary is None:
            return
        ran, source, opened = self.session.workflow, self.summary.source, open_document(self.summary, documents)

        def work() -> list[str]:
            today = opened if opened is not None else document_today(source)
            return differences(ran, today) if today is not None else []

        self._worker.ask(work, self.bar.show_differences)

    def _note_run(self) -> None:
        """The run goes on here, or is only looked at."""
        if self.session.shown.live is not None:
            self.elsewhere.leave()
        elif self.summary is not None:
            self.elsewhere.follow(self.summary, is_held=self._is_held)
        self._offer()

    def _offer(self) -> None:
        is_live = self.session.shown.live is not None
        self.bar.offer(COMPARE, can=bool(self._parent[0]))
        may_go_on = not is_live and self.summary is not None and may_resume(self.summary)
        self.bar.offer(RESUME, can=may_go_on and not self._is_held)
        self.bar.offer(ANSWER, can=may_go_on and self._is_held)


def open_document(summary: RunSummary, documents: Sequence[DocumentPage]) -> Workflow | None:
    """The document of a run's file as it is now, where it is open; None where it is not."""
    if not summary.source:
        return None
    path = Path(summary.source)
    return next((document.session.workflow for document in documents if document.session.path == path), None)
