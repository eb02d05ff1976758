"""Tabs that show stored runs: the workflow as it ran, with a bar for resuming, comparing and copying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.controllers.document_controller import DocumentController
from app.engine_thread import EngineThread
from app.history.past_run_bar import PastRunBar, workflow_differences
from app.history.resume_dialog import current_document
from app.history.run_labels import (
    STATUS_LABELS,
    can_resume,
    capitalized,
    fork_label,
    node_titles,
    path_label,
    short_id,
    time_label,
    workflow_name,
)
from app.history.store_client import StoreClient
from app.history.stored_session import ExternalRunPoller, StoredRun, StoredSession, SubflowSession, read_outline
from app.timers import call_later
from app.window.document_page import DocumentPage
from app.window.log_panel import LogLine, log_of
from app.worker import Worker
from engine.runner.run import Run
from engine.store.store_protocol import RunStatus, RunSummary

COPY, RESUME, ANSWER, COMPARE = "Open as new document", "Resume", "Answer…", "Compare with original"


class HistoryPage(QObject):
    """One such tab.

    Signals:
        copy_wanted: The user wants the workflow as a new document.
        resume_wanted: The user wants to resume the run; its summary.
        compare_wanted: The user wants to compare the fork with its original; the original's id, and the place.
    """

    copy_wanted = Signal()
    resume_wanted = Signal(object)
    compare_wanted = Signal(str, str)

    def __init__(self, document: DocumentPage, session: StoredSession, store: StoreClient) -> None:
        super().__init__(document)
        self.document = document
        self.session = session
        self.summary: RunSummary | None = None
        self._store = store
        self._worker = Worker(self)
        self._parent = ("", "")
        self._is_held = False
        self.poller = ExternalRunPoller(store, document)
        self.bar = PastRunBar(document)
        self.bar.add_button(COMPARE, lambda: self.compare_wanted.emit(*self._parent))
        self.bar.add_button(RESUME, lambda: self.resume_wanted.emit(self.summary))
        self.bar.add_button(ANSWER, lambda: self.resume_wanted.emit(self.summary))
        self.bar.add_button(COPY, self.copy_wanted.emit)
        document.put_on_top(self.bar)
        session.shown.started.connect(self._note_run)
        self._refresh_buttons()

    def show_summary(self, summary: RunSummary, *, is_owned: bool = False) -> None:
        """Show the run's id and status.

        Args:
            summary: The run's summary.
            is_owned: Whether another process runs it, and waits for an answer.
        """
        self.summary = summary
        self._parent = (summary.parent, summary.forked_at)
        self._is_held = is_owned
        status = STATUS_LABELS[summary.status] + (" in another window or program" if is_owned else "")
        self._say(summary, status, "answer it here or there; it continues there" if is_owned else "")
        self.poller.start(summary, is_owned=is_owned)
        self._refresh_buttons()

    def _say(self, summary: RunSummary, status: str, hint: str = "") -> None:
        more = " · ".join(part for part in (fork_label(summary, node_titles(self.session.workflow)), hint) if part)
        self.bar.say(f"Run {short_id(summary.run_id)}, as it ran · {status}", capitalized(more))

    def show_fork(self, parent: str, at: str) -> None:
        """Show what is being forked.

        Args:
            parent: The id of the original run.
            at: The place in it; empty for a fork that continues where the original stopped.
        """
        self._parent = (parent, at)
        place = path_label(at, node_titles(self.session.workflow))
        self.bar.say(", ".join(part for part in (f"Fork of {short_id(parent)}", place) if part))
        self._refresh_buttons()

    def compare_with_today(self, documents: Sequence[DocumentPage]) -> None:
        """Show how the workflow's file, or its open document, differs from the workflow that ran."""
        if self.summary is None:
            return
        ran, source, opened = self.session.workflow, self.summary.source, open_document(self.summary, documents)
        shown = opened.session.workflow if opened is not None else None

        def work() -> list[str]:
            today = shown or current_document(source)
            return workflow_differences(ran, today) if today is not None else []

        self._worker.ask(work, self.bar.show_differences)

    def _note_run(self) -> None:
        """Poll for changes by another process, unless the run continues here."""
        if self.session.shown.live is not None:
            self.poller.stop()
            if self.summary is not None:
                self._say(self.summary, STATUS_LABELS[RunStatus.RUNNING])
        elif self.summary is not None:
            self.show_summary(self.summary, is_owned=self._is_held)
        self._refresh_buttons()

    def _refresh_buttons(self) -> None:
        is_live = self.session.shown.live is not None
        self.bar.offer(COMPARE, can=bool(self._parent[0]))
        is_resumable = not is_live and self.summary is not None and can_resume(self.summary)
        self.bar.offer(RESUME, can=is_resumable and not self._is_held)
        self.bar.offer(ANSWER, can=is_resumable and self._is_held)


def open_document(summary: RunSummary, documents: Sequence[DocumentPage]) -> DocumentPage | None:
    """Return the open document of the file that a run came from; None where it is not open."""
    path = Path(summary.source) if summary.source else None
    return next((document for document in documents if path and document.session.path == path), None)


class HistoryPages(QObject):
    """Opens stored runs in tabs, and runs in them what is resumed or forked.

    Args:
        documents: Opens the tabs.

    Attributes:
        pages: The tabs by run id.

    Signals:
        resume_wanted: The user wants to resume a run; its summary.
        compare_wanted: The user wants to compare a fork with its original; the page, the original's id, and the place.
        refused: Something could not be done; the text says what and why.
    """

    resume_wanted = Signal(object)
    compare_wanted = Signal(object, str, str)
    refused = Signal(str)

    def __init__(self, engine: EngineThread, store: StoreClient, documents: DocumentController) -> None:
        super().__init__(documents)
        self._engine = engine
        self._store = store
        self._documents = documents
        self.pages: dict[str, HistoryPage] = {}
        documents.closed.connect(self._forget)

    def open_run(self, run_id: str) -> None:
        """Show a run, in the tab that shows it already or in a new one."""
        documents = () if run_id in self.pages else self._documents.all
        for document in documents:
            if document.session.shown.run_id == run_id and not isinstance(document.session, SubflowSession):
                self._documents.shown.emit(document)
                return
        self.show_page(run_id)

    def show_page(self, run_id: str, then: Callable[[HistoryPage], object] = lambda _page: None) -> None:
        """Show the tab of a run, which is read first if it has none, and call a function with it."""
        page = self.pages.get(run_id)  # may not be filled yet
        if page is not None:
            self._documents.shown.emit(page.document)
            then(page)
        else:
            self._store.ask(
                lambda store: read_outline(store, run_id),
                lambda run: then(self._page_of(run)),
                lambda error: self.refused.emit(str(error)),
            )

    def _page_of(self, run: StoredRun) -> HistoryPage:
        """Return a new tab for a run, or the one in which it was opened while it was read."""
        page = self.pages.get(run.summary.run_id)
        if page is not None:
            self._documents.shown.emit(page.document)
            return page
        title = f"{workflow_name(run.summary)} · {time_label(run.summary.started)}"
        page = self.make_page(StoredSession(self._engine, self._store, run.workflow, title))
        self.pages[run.summary.run_id] = page
        page.show_summary(run.summary, is_owned=run.is_owned)
        page.compare_with_today(self._documents.all)
        page.poller.changed.connect(lambda now: self._show_again(page, now))
        # Filling the tab is a step of its own, so that the window stays responsive.
        call_later(page, lambda: self._fill(page, run))
        return page

    def make_page(self, session: StoredSession) -> HistoryPage:
        """Open an empty tab for a run."""
        page = HistoryPage(self._documents.open_session(session), session, self._store)
        # An imported run contains another person's workflow.
        page.copy_wanted.connect(lambda: self._documents.open_copy(session.workflow, is_trusted=False))
        page.resume_wanted.connect(self.resume_wanted)
        page.compare_wanted.connect(lambda parent, place: self.compare_wanted.emit(page, parent, place))
        return page

    def run_in_page(self, page: HistoryPage, begin: Callable[[], Run]) -> None:
        """Run a resumed run or a fork in its tab.

        Args:
            page: The tab.
            begin: Starts the run, in the engine's thread.
        """

        def note_id() -> None:
            if page.session.shown.run_id:
                self.pages[page.session.shown.run_id] = page

        if page.session.shown.live is not None:
            return
        page.session.go_live(begin)
        page.session.shown.updated.connect(lambda _touched: note_id())
        live = page.session.shown.live
        assert live is not None
        # Another process may have taken the run meanwhile.
        live.refused.connect(lambda _error: page.poller.poll())

    def _show_again(self, page: HistoryPage, run: StoredRun) -> None:
        if page.session.shown.live is None:
            page.show_summary(run.summary, is_owned=run.is_owned)
            self._fill(page, run)

    def _fill(self, page: HistoryPage, run: StoredRun) -> None:
        def show_log(lines: list[LogLine]) -> None:
            if page.session.shown.live is None:
                page.document.log.show_past(lines)

        if page.session.shown.live is None:  # otherwise it was resumed meanwhile, which replays all events
            page.session.loader.show(run)
            page.session.read_log(partial(log_of, run.workflow), show_log)

    def _forget(self, document: DocumentPage) -> None:
        self.pages = {run_id: page for run_id, page in self.pages.items() if page.document is not document}
