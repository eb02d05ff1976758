"""A run of the history in its tab: the document as it ran, with the bar over it that says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.history.runs_differences import differences
from app.history.runs_words import STATUS_WORDS, capital, fork_words, may_resume, moment, place_words, short_id
from app.history.store_access import StoreAccess
from app.history.store_bar import PastBar
from app.history.store_session import StoredSession
from app.window.document import Document
from app.worker import Worker
from engine.document.files import load
from engine.document.model import Workflow
from engine.errors import EngineError
from engine.store.base import RunSummary
from engine.store.resume import ForkPlan

COPY, FORK, RESUME, COMPARE = "Open as new document", "Fork from here…", "Resume", "Compare with its parent"


class HistoryPage(QObject):
    """One such tab.

    Args:
        document: The page of the document.
        session: The run.
        access: The way to the history.

    Signals:
        copy_wanted: A person wants the document as it ran as a document of its own.
        resume_wanted: A person wants the run to go on; what lists say of it.
        fork_wanted: A person wants to fork from what is looked at.
        compare_wanted: A person wants to compare the fork with its parent; the parent's id, and the place.
    """

    copy_wanted = Signal()
    resume_wanted = Signal(object)
    fork_wanted = Signal()
    compare_wanted = Signal(str, str)

    def __init__(self, document: Document, session: StoredSession, access: StoreAccess) -> None:
        super().__init__(document)
        self.document = document
        self.session = session
        self.summary: RunSummary | None = None
        self._access = access
        self._worker = Worker(self)
        self._parent = ("", "")
        self.bar = PastBar(document)
        self.bar.add_button(COMPARE, lambda: self.compare_wanted.emit(*self._parent))
        self.bar.add_button(RESUME, lambda: self.resume_wanted.emit(self.summary))
        self.bar.add_button(FORK, self.fork_wanted.emit)
        self.bar.add_button(COPY, self.copy_wanted.emit)
        document.put_on_top(self.bar)
        self._offer()

    def show_summary(self, summary: RunSummary) -> None:
        """Say what run this is, and how it stands."""
        self.summary = summary
        self._parent = (summary.parent, summary.forked_at)
        origin = fork_words(summary)
        parts = [
            f"Run {short_id(summary.run_id)} of {moment(summary.started)}, as it ran",
            STATUS_WORDS[summary.status],
        ]
        self.bar.say(" · ".join([*parts, *([origin] if origin else [])]))
        self._offer()

    def show_fork(self, plan: ForkPlan) -> None:
        """Say what fork this is going to be."""
        self._parent = (plan.parent.run_id, plan.at)
        self.bar.say(capital(f"fork of {short_id(plan.parent.run_id)}, {place_words(plan.at)}"))
        self._offer()

    def show_live(self) -> None:
        """The run goes on."""
        self._offer()

    def compare_with_today(self, documents: Sequence[Document]) -> None:
        """Say how the document of the same file has changed since: the one that is open, or else the file."""
        if self.summary is None or not self.summary.source:
            return
        path = Path(self.summary.source)
        for document in documents:
            if document.session.path == path:
                self.bar.show_differences(differences(self.session.workflow, document.session.workflow))
                return
        ran = self.session.workflow

        def work() -> list[str]:
            try:
                today: Workflow = load(path)
            except EngineError:  # there is no such document any more
                return []
            return differences(ran, today)

        self._worker.ask(work, self.bar.show_differences)

    def _offer(self) -> None:
        is_live = self.session.run is not None
        self.bar.offer(COMPARE, can=bool(self._parent[0]))
        self.bar.offer(RESUME, can=not is_live and self.summary is not None and may_resume(self.summary))
        self.bar.offer(FORK, can=self.session.picture is not None)
