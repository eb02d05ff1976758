"""The history of runs in the window: list, comparison, fork, export, retention, and answers to runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Qt, QUrl, Signal
from PySide6.QtGui import QCursor, QDesktopServices
from PySide6.QtWidgets import QDialog, QMenu, QWidget

from app.controllers.history_pages import HistoryPage, HistoryPages
from app.controllers.resume_fork_controller import ResumeForkController
from app.dialogs import FileDialogs, is_dialog_open
from app.history.compare_window import NO_PLACE, ComparedRun, CompareWindow, SideContent, live_compared_run
from app.history.iterations_panel import IterationsPanel
from app.history.run_labels import STATUS_LABELS, can_resume, full_run_title, run_title, stored_titles
from app.history.runs_panel import RunsPanel
from app.history.store_client import StoreClient
from app.history.stored_session import recall_last_run
from app.runs.loop_status import iterators_of, place_label, titles_of
from app.session import Session
from app.settings.preferences import Preferences
from app.theme.tokens import UNIT
from app.theme.widgets import STRETCH, MessageBars, PlainLabel, hbox, push_button, vbox
from app.window.document_page import DocumentPage
from app.window.question_cards import QuestionCard
from app.worker import Worker
from engine.document.files import loads
from engine.errors import EngineError
from engine.events import AnyEvent, NodeWaiting, RunNotKept
from engine.nodes.context import Answer
from engine.plan.structure import analyse
from engine.store.answers import give_answer, open_questions
from engine.store.store_protocol import EVERY_RUN, RunFilter, RunStatus, RunSummary, Store
from engine.values import Value

HISTORY_FILTER: Final = "Histories (*.sqlite3);;All files (*)"
MOST_OFFERED: Final = 30
"""Number of runs to choose from for a comparison; the Compare window lists others too."""
NOT_STORED: Final = "not-stored"
"""The topic of the message that a run is not stored any more."""


class HistoryController(QObject):
    """Connects the history with the documents.

    Args:
        preferences: The user's settings, for how many runs to retain.
        notices: Shows messages about the program as a whole.
        tabs: The tabs that show stored runs.
        resuming: Resumes and forks runs.
        current: Returns the current document; None on the start page.

    Attributes:
        compare: The comparison window; None until it is first opened.
        run_menu: The runs to compare with that were offered last.

    Signals:
        refused: Something could not be done; the text says what and why.
        exported: A run was exported; the text says to which file.
        stored: A run has ended and is stored; its id.
        list_wanted: The list of runs should be shown.
    """

    refused = Signal(str)
    exported = Signal(str)
    stored = Signal(str)
    list_wanted = Signal()

    def __init__(
        self,
        window: QWidget,
        preferences: Preferences,
        dialogs: FileDialogs,
        access: StoreClient,
        notices: MessageBars,
        tabs: HistoryPages,
        resuming: ResumeForkController,
        current: Callable[[], DocumentPage | None],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._preferences = preferences
        self._dialogs = dialogs
        self.access = access
        self._notices = notices
        self.tabs = tabs
        self.resuming = resuming
        self._current = current
        self._answers = RemoteAnswers(window, access)
        self.compare: CompareWindow | None = None
        self.run_menu = QMenu(window)
        self._unfinished = ""
        self._stored: set[tuple[Path | None, str]] = set()
        for part in (tabs, resuming, self._answers):
            part.refused.connect(self.refused)
        resuming.unwritable.connect(lambda text: self._show_not_storing(access.failure, text))
        answered = "Your answer was sent. The run continues in the other window or program."
        self._answers.delivered.connect(lambda: notices.say("answered", answered, "info"))
        tabs.resume_wanted.connect(self.resume)
        tabs.compare_wanted.connect(self._compare_fork)
        access.failed.connect(self._show_not_storing)
        access.opened.connect(self._start)
        if access.store is not None:
            self._start()
        if access.failure:
            self._show_not_storing(access.failure)

    @cached_property
    def panel(self) -> RunsPanel:
        """The list of runs."""
        panel = RunsPanel(self.access, self._dialogs, self._window)
        panel.open_wanted.connect(self.tabs.open_run)
        panel.resume_wanted.connect(self.resume)
        panel.run_actions.exported.connect(self.exported)  # also of a run that is exported beside the hidden panel
        panel.run_actions.export_failed.connect(self.refused)
        panel.other_history_wanted.connect(self._choose_history)
        panel.compare_wanted.connect(lambda left, right: self._compare(SideContent(left), SideContent(right)))
        return panel

    def resume(self, summary: RunSummary) -> None:
        """Resume a run, after the questions that it takes."""
        if summary.status is RunStatus.WAITING and self.access.writable is not None:
            self._answers.before_resuming(summary, lambda: self.resuming.resume(summary))
        else:
            self.resuming.resume(summary)

    def resume_shown(self, document: DocumentPage) -> None:
        """Resume the run that the tab of a stored run shows, if it can be resumed."""
        page = self.tabs.pages.get(document.session.shown.run_id)
        if page is not None and page.summary is not None and can_resume(page.summary):
            self.resume(page.summary)

    def compare_from(self, document: DocumentPage, place: str) -> None:
        """Compare a place of the document's run with the same place one iteration earlier."""
        if document.session.shown.view_model is None:
            return
        level, what = _level_and_text(place)
        run = self._shown_run(document)
        self._compare(SideContent(run, _before(level), what), SideContent(run, level, what))

    def choose_run_to_compare(self, document: DocumentPage, place: str) -> None:
        """Let the user choose another run of this workflow, and compare the same place of both runs."""
        shown = document.session.shown
        if shown.view_model is None:
            return
        level, what = _level_and_text(place)
        run, run_id = self._shown_run(document), shown.run_id
        ran = shown.workflow or document.session.workflow

        def read(store: Store) -> list[tuple[RunSummary, str]]:
            source = store.find(run_id).source if run_id else ""
            which = RunFilter(source=source) if source else RunFilter(workflow=ran.name)
            others = (other for other in store.runs(which, limit=MOST_OFFERED) if other.run_id != run_id)
            return [(other, full_run_title(other, stored_titles(store, other))) for other in others]

        def offer(found: list[tuple[RunSummary, str]]) -> None:
            menu = self.run_menu
            menu.clear()
            for other, name in found:
                title = f"{name} · {STATUS_LABELS[other.status]}".replace("&", "&&")
                other_side = SideContent(other.run_id, level, what)
                menu.addAction(title).triggered.connect(
                    lambda _checked=False, left=other_side: self._compare(left, SideContent(run, level, what))
                )
            if not found:
                menu.addAction("No other run of this workflow is stored.").setEnabled(False)
            menu.popup(QCursor.pos())

        if not self.access.ask(read, offer, self._refuse):
            self.refused.emit("The history is not open, so there is no other run to compare with.")

    def _shown_run(self, document: DocumentPage) -> str | ComparedRun:
        """The run that a document shows: its id, or the run itself if it is not stored."""
        session = document.session
        if self._has_run_of(document):
            return session.shown.run_id
        structure = analyse(session.shown.workflow or session.workflow, session.registry)
        assert session.shown.view_model is not None
        return live_compared_run(session.name, structure, session.shown.view_model)

    def _has_run_of(self, document: DocumentPage) -> bool:
        """Return whether the history has the run that a document shows: it was read there, or could be stored."""
        return (self.access.path, document.session.shown.run_id) in self._stored

    def export_run(self, document: DocumentPage) -> None:
        """Export the document's run to a file."""
        run_id = document.session.shown.run_id
        if not self._has_run_of(document):
            document.session.refused.emit("Only a stored run can be exported. Run the workflow again, then export it.")
            return
        self._ask(lambda store: store.find(run_id), lambda found: self.panel.run_actions.choose_format([found]))

    def follow(self, document: DocumentPage) -> None:
        """Connect a document that was opened."""
        session = document.session
        document.iterations_created.connect(lambda iterations: self._follow_iterations(document, iterations))
        document.inspector_created.connect(
            lambda inspector: inspector.compare_wanted.connect(partial(self.choose_run_to_compare, document))
        )
        document.is_stored = lambda: (
            self.access.writable is not None and self._has_run_of(document) and not document.bars.text(NOT_STORED)
        )
        document.resume_wanted.connect(lambda: self.resuming.resume_in(document))
        session.shown.started.connect(lambda: self._listen(document))
        session.shown.ended.connect(lambda: self.note_end(document))
        session.shown.started.connect(self.drop_shown_offer)
        if not session.is_past:
            self.access.when_settled(lambda: None if document.is_closed else recall_last_run(session, self.access))
            if session.path is None:
                self._set_source_when_saved(session)

    def _set_source_when_saved(self, session: Session) -> None:
        """When a document gets its file, make its runs so far runs of that file."""
        runs: set[str] = set()

        def set_source(path: Path) -> None:
            found = frozenset({*runs, session.shown.run_id} - {""})  # the last one may still be running
            if found:
                self.access.ask(lambda store: store.set_source(found, str(path)), lambda _: self.access.changed.emit())

        session.shown.ended.connect(lambda: runs.add(session.shown.run_id))
        session.saved.connect(set_source, Qt.ConnectionType.SingleShotConnection)

    def _follow_iterations(self, document: DocumentPage, iterations: IterationsPanel) -> None:
        iterations.compare_wanted.connect(lambda place: self.compare_from(document, place))
        iterations.detail.run_compare_wanted.connect(lambda place: self.choose_run_to_compare(document, place))
        iterations.fork_wanted.connect(lambda place: self.resuming.fork_from(document, place))
        iterations.export_wanted.connect(lambda: self.export_run(document))

    def show_in_list(self, run_id: str) -> None:
        """Show a run in the list of runs."""
        self.list_wanted.emit()
        self.panel.seek(run_id)

    def note_end(self, document: DocumentPage) -> None:
        """Update lists and tabs after the end of a run, and delete runs beyond the limits."""
        self.access.changed.emit()
        run_id = document.session.shown.run_id
        if run_id and not document.bars.text(NOT_STORED):
            self.access.ask(lambda store: store.find(run_id).run_id, self.stored.emit)
        page = self.tabs.pages.get(run_id)
        if page is not None:
            self._ask(
                lambda store: store.find(run_id),
                lambda summary: None if page.document.is_closed else page.show_summary(summary),
            )
        self.retain()

    def retain(self) -> None:
        """Delete the oldest runs beyond the limits in the settings."""
        most_runs, megabytes = self._preferences.keep_runs, self._preferences.keep_megabytes
        if most_runs is None and megabytes is None:
            return
        most_bytes = None if megabytes is None else megabytes * 1_000_000
        self.access.ask(lambda store: store.retain(most_runs=most_runs, most_bytes=most_bytes))

    def _listen(self, document: DocumentPage) -> None:
        document.bars.drop(NOT_STORED)
        shown, history = document.session.shown, self.access.path
        if shown.live is None:
            if shown.read_levels is not None:
                self._stored.add((history, shown.run_id))
            return
        is_stored = self.access.writable is not None

        def check(events: list[AnyEvent]) -> None:
            if is_stored:
                self._stored.add((history, events[0].run_id))
            if events[0].run_id == self._unfinished:  # it was resumed elsewhere in the window
                self._notices.drop("unfinished")
            lost = next((event for event in events if isinstance(event, RunNotKept)), None)
            if lost is not None:
                text = f"The rest of this run is not being stored. {lost.error} {lost.remedy}".rstrip()
                document.bars.say(NOT_STORED, text, "warning")

        shown.live.events.connect(check)

    def _compare_fork(self, page: HistoryPage, parent: str, place: str) -> None:
        level = place if place.endswith("]") else place.rpartition(".")[0]
        self._compare(SideContent(parent, level or None), SideContent(page.session.shown.run_id, level or None))

    def _compare(self, left: SideContent, right: SideContent) -> None:
        if self.compare is None:
            self.compare = CompareWindow(self.access, self._window)
        self.compare.show_pair(left, right)

    def _show_not_storing(self, reason: str, what: str = "Runs are not being stored.") -> None:
        buttons = [
            ("Try again", self.access.open),
            ("Choose another history…", self._choose_history),
            ("Open folder", self._open_folder),
        ]
        self._notices.say("history", f"{what} {reason}", "warning", buttons)

    def _choose_history(self) -> None:
        self._show_not_storing(self.access.failure)  # stays if the user cancels
        self._dialogs.open_text(self._window, self.access.choose, "Choose a history", HISTORY_FILTER)

    def _open_folder(self) -> None:
        from engine.store import store_path

        self._show_not_storing(self.access.failure)
        folder = (self.access.path or store_path()).absolute().parent
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def _start(self) -> None:
        self._notices.drop("history")
        if self.access.writable is not None:
            self._offer_unfinished()
            self.retain()

    def _offer_unfinished(self) -> None:
        """Offer to show the last run, if it was interrupted or waits for an answer."""
        which = RunFilter(statuses=frozenset({RunStatus.INTERRUPTED, RunStatus.WAITING}))

        def answered(found: tuple[list[RunSummary], list[RunSummary]]) -> None:
            newest, unfinished = found
            # Only the most recent run: older ones were offered before, and are in the list.
            if newest and unfinished and newest[0].run_id == unfinished[0].run_id:
                waits = unfinished[0].status is RunStatus.WAITING
                state = "is waiting for your answer" if waits else "was interrupted"
                text = f"The run “{run_title(unfinished[0])}” {state}. You can resume it."
                self._unfinished = run_id = unfinished[0].run_id
                self._notices.say("unfinished", text, "info", [("Show run", lambda: self.tabs.open_run(run_id))])
                self.drop_shown_offer()

        self._ask(lambda store: (store.runs(EVERY_RUN, limit=1), store.runs(which, limit=1)), answered)

    def drop_shown_offer(self) -> None:
        """Withdraw the offer of an unfinished run while the current document shows that run and offers to resume it."""
        document = self._current()
        if document is not None and document.session.shown.run_id == self._unfinished:
            self._notices.drop("unfinished")

    def _ask(self, work: Callable[[Store], object], answered: Callable[..., object]) -> None:
        self.access.ask(work, answered, self._refuse)

    def _refuse(self, error: EngineError) -> None:
        self.refused.emit(str(error))


def _level_and_text(place: str) -> tuple[str, tuple[str, str] | None]:
    """The iteration of a path, and the text to compare: the output of a node, or what was compared before."""
    if place.endswith("]") or not place:
        return place, None
    level, _, node = place.rpartition(".")
    return level, (node, "output")


def _before(level: str) -> str:
    """The iteration before this one; nothing before the first."""
    loop, _, index = level.removesuffix("]").rpartition("[")
    if not loop:
        return level
    return f"{loop}[{int(index) - 1}]" if int(index) else NO_PLACE


HINT = "Another window or program is running this. It continues there with your answer."


class AnswerDialog(QDialog):
    """Shows one question of such a run.

    Args:
        title: The title of the node, and its iteration.

    Attributes:
        card: The form for the answer.
    """

    def __init__(self, asked: NodeWaiting, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Answer a run")
        self.card = QuestionCard(asked, title, self)
        self.card.show_node.hide()  # this window does not show its graph
        self.card.answered.connect(lambda *_: self.accept())
        cancel = push_button("Cancel", self.reject, self)
        vbox(
            PlainLabel(HINT, look="dim", wrap=True),
            (self.card, 1),
            hbox(STRETCH, cancel),
            spacing=4,
            margins=(6, 6, 6, 4),
            parent=self,
        )
        self.setMinimumSize(160 * UNIT, 80 * UNIT)
        self.card.setFocus()


class RemoteAnswers(QObject):
    """Asks the user, and passes the answer on.

    Args:
        store: The history that contains the runs.

    Signals:
        delivered: The other process has taken the answer.
        refused: Something could not be done; the text says what and why.
    """

    delivered = Signal()
    refused = Signal(str)

    def __init__(self, window: QWidget, store: StoreClient) -> None:
        super().__init__(window)
        self._window = window
        self._store = store
        self._worker = Worker(self)  # of its own: the other process may take some seconds

    def before_resuming(self, summary: RunSummary, resume: Callable[[], object]) -> None:
        """Resume a run that waits for an answer; if another process runs it, answer it there."""

        def look(store: Store) -> tuple[NodeWaiting, str] | None:
            questions = open_questions(store, summary.run_id) if store.is_owned(summary.run_id) else {}
            if not questions:
                return None
            ran = loads(store.document(summary.run_id), source="The workflow of this run")
            path, asked = next(iter(questions.items()))
            return asked, place_label(path, titles_of(ran), iterators_of(ran))

        def found(question: tuple[NodeWaiting, str] | None) -> None:
            if question is None:
                resume()
                return
            if is_dialog_open():
                return
            dialog = AnswerDialog(*question, self._window)
            dialog.card.answered.connect(
                lambda choice, value, comment: self._deliver(question[0], choice, value, comment, resume)
            )
            dialog.open()

        self._ask(look, found)

    def _deliver(
        self, asked: NodeWaiting, choice: str, value: Value, comment: str, resume: Callable[[], object]
    ) -> None:
        def taken(by_another: bool) -> None:
            self._store.changed.emit()
            if by_another:
                self.delivered.emit()
            else:  # the other process has ended: the answer is stored, and the run continues here
                resume()

        self._ask(lambda store: give_answer(store, asked, Answer(choice, value, comment)), taken)

    def _ask(self, work: Callable[[Store], object], answered: Callable[..., object]) -> None:
        self._store.ask(work, answered, lambda error: self.refused.emit(str(error)), worker=self._worker)
