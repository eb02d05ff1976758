"""What the window does with the history: it keeps its runs there, shows those of the past and compares them.

It ties the parts of `app.history` to the documents of the window, and holds the way to the store for all of them. How
runs go on and are forked is `app.controllers.resume_fork_controller`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer

from app.controllers.history_pages import HistoryPage
from app.controllers.remote_answers import RemoteAnswers
from app.controllers.resume_fork_controller import ResumeForkController
from app.history.compare_source import live_source
from app.history.compare_window import CompareWindow, Wanted
from app.history.runs_panel import RunsPanel
from app.history.runs_words import moment, name_of, title_of
from app.history.store_client import StoreAccess
from app.history.store_run import StoredRun, read_outline
from app.history.store_session import StoredSession
from app.history.subflow_session import PartSession
from app.window.document_page import DocumentPage
from app.window.log_lines import LogLine, written
from engine.errors import EngineError
from engine.events import AnyEvent, RunNotKept
from engine.plan.structure import analyse
from engine.runner.run import Run
from engine.store.base import EVERY_RUN, RunFilter, RunStatus, RunSummary, Store

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

KEPT: Final = "kept"
"""The matter of the message that a run is not kept any more."""


class HistoryController(QObject):
    """The history of a window.

    Args:
        window: The window.
        access: The way to the store.

    Attributes:
        access: See above.
        panel: The list of runs.
        compare: The window that compares, once it was opened.
    """

    def __init__(self, window: MainWindow, access: StoreAccess) -> None:
        super().__init__(window)
        self._window = window
        self.access = access
        self._going_on = ResumeForkController(window, self)
        self._answering = RemoteAnswers(window, self)
        self.panel = RunsPanel(self.access, window.asker)
        self.compare: CompareWindow | None = None
        self.pages: dict[str, HistoryPage] = {}
        self.panel.open_wanted.connect(self.open_run)
        self.panel.resume_wanted.connect(self.resume)
        self.panel.compare_wanted.connect(lambda left, right: self._compare(Wanted(left), Wanted(right)))
        self.access.failed.connect(self._say_unkept)
        self.access.opened.connect(self._take_up)
        if access.store is not None:
            self._take_up()
        elif access.failure:
            self._say_unkept(access.failure)

    def open_run(self, run_id: str) -> None:
        """Show a run: the tab that shows it already, or a new one."""
        for document in self._window.tabs.documents:
            if document.session.shown.run_id == run_id and not isinstance(document.session, PartSession):
                self._window.tabs.show_document(document)
                return
        self.read(run_id, self.show)

    def resume(self, summary: RunSummary) -> None:
        """Let a run go on; ask first where there is something to ask."""
        if summary.status is RunStatus.WAITING:
            self._answering.before_resuming(summary, lambda: self._going_on.resume(summary))
        else:
            self._going_on.resume(summary)

    def compare_from(self, document: DocumentPage, place: str) -> None:
        """Compare a place of the run that a document shows with the one before it, or with the run's parent."""
        session = document.session
        if session.shown.picture is None:
            return
        node = place.rpartition(".")[2] if not place.endswith("]") else ""
        level = place.rpartition(".")[0] if node else place
        what = (node, "output") if node else None
        run: object = session.shown.run_id
        if self.access.store is None or not session.shown.run_id:
            structure = analyse(session.shown.workflow or session.workflow, session.registry)
            run = live_source(session.name, structure, session.shown.picture)
        before = _before(level)
        self._compare(Wanted(run, before, what), Wanted(run, level, what))  # type: ignore[arg-type]

    def compare_current(self) -> None:
        """Compare iterations of the run that is shown, from the command palette or a menu."""
        document = self._window.current
        if document is not None and document.session.shown.picture is not None:
            self.compare_from(document, document.iterations.detail.place)

    def fork_from(self, document: DocumentPage, place: str) -> None:
        """Ask what a fork from that place of the run that a document shows is to do differently, and run it."""
        self._going_on.fork_from(document, place)

    def fork_current(self) -> None:
        """Fork from the iteration that is looked at."""
        document = self._window.current
        if document is not None and document.session.shown.picture is not None:
            self.fork_from(document, document.iterations.detail.place)

    def export_current(self, document: DocumentPage) -> None:
        """Write the run that a document shows to a file."""
        run_id = document.session.shown.run_id
        if not run_id or self.access.store is None:
            document.session.refused.emit(
                "Only a run that is kept can be exported. Run the workflow again, then export."
            )
            return
        self._ask(lambda store: store.find(run_id), lambda found: self.panel.errands.choose_form([found]))

    def follow(self, document: DocumentPage) -> None:
        """Look after the runs of a document that was opened."""
        iterations, session = document.iterations, document.session
        iterations.compare_wanted.connect(lambda place: self.compare_from(document, place))
        iterations.fork_wanted.connect(lambda place: self.fork_from(document, place))
        iterations.export_wanted.connect(lambda: self.export_current(document))
        session.shown.started.connect(lambda: self._listen(document))
        session.shown.ended.connect(lambda: self.note_end(document))

    def show_in_list(self, run_id: str) -> None:
        """Show a run among all that are kept."""
        self._window.drawer.unfold("runs")
        self.panel.seek(run_id)

    def note_end(self, document: DocumentPage) -> None:
        """A run has ended: lists, pages and the status line show it, and what is too much goes."""
        self.access.changed.emit()
        run_id, status = document.session.shown.run_id, self._window.status
        if run_id and not document.bars.text(KEPT):
            self.access.ask(lambda store: store.find(run_id).run_id, status.note_kept)
        page = self.pages.get(document.session.shown.run_id)
        if page is not None:
            self._ask(lambda store: store.find(page.session.shown.run_id), page.show_summary)
        self.retain()

    def forget(self, document: DocumentPage) -> None:
        """A document was closed."""
        self.pages = {run_id: page for run_id, page in self.pages.items() if page.document is not document}

    def retain(self) -> None:
        """Delete the oldest runs where there are more than the person's settings keep."""
        choices = self._window.preferences
        most_runs, megabytes = choices.keep_runs, choices.keep_megabytes
        if most_runs is None and megabytes is None:
            return
        most_bytes = None if megabytes is None else megabytes * 1_000_000
        self.access.ask(lambda store: store.retain(most_runs=most_runs, most_bytes=most_bytes))

    def _listen(self, document: DocumentPage) -> None:
        document.bars.drop(KEPT)
        if document.session.shown.live is None:
            return

        def look(events: list[AnyEvent]) -> None:
            lost = next((event for event in events if isinstance(event, RunNotKept)), None)
            if lost is not None:
                text = f"From here on this run is not kept. {lost.error} {lost.remedy}"
                document.bars.say(KEPT, text.strip(), "warning")

        document.session.shown.live.events.connect(look)

    def run_in_page(self, page: HistoryPage, begin: Callable[[], Run]) -> None:
        """Run a run that goes on, or a fork, in its tab."""

        def note_id() -> None:
            if page.session.shown.run_id:
                self.pages[page.session.shown.run_id] = page

        if page.session.shown.live is not None:
            return
        page.session.go_on(begin)
        page.session.shown.updated.connect(lambda _touched: note_id())
        # Another program may be at work on it by now.
        page.session.shown.live.refused.connect(lambda _error: page.elsewhere.look())

    def show(self, run: StoredRun) -> HistoryPage:
        """Show a run that was read in a tab of its own."""
        session = StoredSession(
            self._window.engine, self.access, run.workflow, f"{name_of(run.summary)} · {moment(run.summary.started)}"
        )
        page = self.make_page(session)
        self.pages[run.summary.run_id] = page
        page.show_summary(run.summary, is_held=run.is_held)
        page.compare_with_today(self._window.documents.all)
        page.elsewhere.changed.connect(lambda now: self._show_again(page, now))
        # The tab is made by now; filling it is a step of its own, so that the window answers in between.
        QTimer.singleShot(0, page, lambda: self._fill(page, run))
        return page

    def _show_again(self, page: HistoryPage, run: StoredRun) -> None:
        """Show a run that has come further in another program."""
        if page.session.shown.live is None:
            page.show_summary(run.summary, is_held=run.is_held)
            self._fill(page, run)

    def _fill(self, page: HistoryPage, run: StoredRun) -> None:
        def told(lines: list[LogLine]) -> None:
            if page.session.shown.live is None:
                page.document.log.show_past(lines)

        if page.session.shown.live is None:  # it has not gone on meanwhile, which tells everything anew
            page.session.show_run(run)
            page.session.read_log(partial(written, run.workflow), told)

    def make_page(self, session: StoredSession) -> HistoryPage:
        """Open a tab for a run."""
        document = self._window.documents.open_past(session)
        page = HistoryPage(document, session, self.access)
        # A run may have been imported: somebody else may have written what it ran.
        page.copy_wanted.connect(lambda: self._window.documents.open_copy(session.workflow, is_trusted=False))
        page.resume_wanted.connect(self.resume)
        page.compare_wanted.connect(lambda parent, place: self._compare_fork(page, parent, place))
        return page

    def _compare_fork(self, page: HistoryPage, parent: str, place: str) -> None:
        level = place if place.endswith("]") else place.rpartition(".")[0]
        self._compare(Wanted(parent, level or None), Wanted(page.session.shown.run_id, level or None))

    def _compare(self, left: Wanted, right: Wanted) -> None:
        if self.compare is None:
            self.compare = CompareWindow(self.access, self._window)
        self.compare.show_pair(left, right)

    def _say_unkept(self, text: str) -> None:
        self._window.notices.say(
            "history", f"Runs are not being kept. {text}", "warning", [("Try again", self.access.open)]
        )

    def _take_up(self) -> None:
        self._look_for_broken()
        self.retain()

    def _look_for_broken(self) -> None:
        """Offer to show a run that the last session left unfinished."""
        which = RunFilter(statuses=frozenset({RunStatus.INTERRUPTED, RunStatus.WAITING}))

        def answered(found: tuple[list[RunSummary], list[RunSummary]]) -> None:
            newest, broken = found
            # Only what was last at work: older ones have been seen, and stand in the list.
            if newest and broken and newest[0].run_id == broken[0].run_id:
                waits = broken[0].status is RunStatus.WAITING
                how = "waits for your answer" if waits else "was interrupted"
                text = f"The run “{title_of(broken[0])}” {how}. It can go on where it broke off."
                run_id = broken[0].run_id
                self._window.notices.say("broken", text, "info", [("Show it", lambda: self.open_run(run_id))])

        self._ask(lambda store: (store.runs(EVERY_RUN, limit=1), store.runs(which, limit=1)), answered)

    def read(self, run_id: str, shown: Callable[[StoredRun], object]) -> None:
        """Read a run, to show it."""
        self._ask(lambda store: read_outline(store, run_id), shown)

    def _ask(self, work: Callable[[Store], object], answered: Callable[..., object]) -> None:
        self.access.ask(work, answered, self._refuse)

    def _refuse(self, error: EngineError) -> None:
        self._window.status.refuse(str(error))


def _before(level: str) -> str:
    """The iteration before one; itself where it is the first."""
    loop, _, index = level.removesuffix("]").rpartition("[")
    return f"{loop}[{max(int(index) - 1, 0)}]" if loop else level
