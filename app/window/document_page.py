"""The page of an open document: canvas, messages over it, inspector and bottom panels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app.document_file import FileWatcher
from app.history.chat_turns import chat_input
from app.history.iterations_panel import IterationsPanel
from app.history.store_client import StoreClient
from app.inspector.model_list import ModelSource
from app.runs.run_view_model import RunViewModel, node_of
from app.session import ReplaceDocument, Session
from app.theme.widgets import MessageBars, vbox
from app.timers import call_between_frames
from app.window.autosave import Autosave, RecoveredDocument, remove_autosave
from app.window.chat_panel import ChatPanel
from app.window.log_panel import LogPanel
from app.window.problems_panel import ProblemsPanel
from app.window.question_cards import QuestionStack
from engine.document.model import Workflow
from engine.document.problems import Problem
from engine.errors import Fix
from engine.settings import budget_limit

if TYPE_CHECKING:
    from app.inspector.inspector import Inspector

_FIX_TITLES: Final = {
    Fix.ADD_KEY: "Add key…",
    Fix.ALLOW_CODE: "Allow and run…",
    Fix.ALLOW_PRIVATE_ADDRESSES: "Allow and run…",
    Fix.ALLOW_UNKNOWN_PRICE: "Set the price",
    Fix.CHANGE_SETTING: "Open settings…",
    Fix.CHOOSE_FOLDER: "Allow and run…",
    Fix.CHOOSE_MODEL: "Choose a model",
    Fix.GET_MODEL: "Download the model…",
    Fix.INSTALL: "Install…",
    Fix.RAISE_BUDGET: "Raise the budget",
}
"""The buttons of failed runs."""

PART: Final = "part"
"""Topic of the message that a run of a part lacks values. The next run that starts makes it obsolete."""

_LOOP: Final = re.compile(r"(\w+)\[(\d+)\]")


def fix_title(fix: str) -> str:
    """Return the text of the button that applies a fix; empty if the window has none."""
    kind, _, _ = fix.partition(":")
    return _FIX_TITLES.get(Fix(kind), "") if kind in set(Fix) else ""


_OUTSIDE: Final = frozenset({Fix.ADD_KEY, Fix.CHANGE_SETTING, Fix.GET_MODEL, Fix.INSTALL})
"""Fixes that change something outside of the document, so that they are offered for stored runs too."""

_UNFINISHED: Final = frozenset({"failed", "cancelled", "interrupted"})
"""Statuses of a run that can be resumed."""


class DocumentPage(QWidget):
    """The page of a document.

    Args:
        session: The document; the page becomes its owner.
        models: The models to choose from.
        data_folder: The folder of autosave files that cannot be written beside their document.
        inspectors: The parent of the inspector.
        parent: The final parent: Qt restyles a whole widget tree whenever its parent changes.

    Signals:
        fresh_run_wanted: The user wants to run the document again.
        fix_wanted: The user wants to fix something outside of the document; what, as in `EngineError`.
        resume_wanted: The user wants to resume the run that is shown.
        save_wanted: The user wants to save again, after a failure.
        save_as_wanted: The user wants to save elsewhere, after a failure.
        inspector_wanted: The inspector should be visible, because something is shown in it.
        inspector_created: The inspector was created, between the first frames or when it was first used.
        iterations_created: The Iterations panel was created, which is when it is first shown or used.
        chat_created: The chat was created.

    Attributes:
        may_use_folder: Whether runs may use the document's folder, as last answered.
        may_run_code: Whether runs may run code, as last answered.
        may_reach_private: Whether runs may reach private addresses, as last answered.
        is_closed: Whether the page was disposed.
        is_stored: Returns whether the history has the run that is shown.
    """

    fresh_run_wanted = Signal()
    fix_wanted = Signal(str)
    resume_wanted = Signal()
    save_wanted = Signal()
    save_as_wanted = Signal()
    inspector_wanted = Signal()
    inspector_created = Signal(object)
    iterations_created = Signal(object)
    chat_created = Signal(object)

    def __init__(
        self,
        session: Session,
        models: ModelSource,
        data_folder: Path,
        inspectors: QWidget,
        parent: QWidget | None = None,
    ) -> None:
        from app.canvas.canvas import Canvas  # slow to import

        super().__init__(parent)
        self.session = session
        session.setParent(self)
        self._recovered: Path | None = None
        self._uses_recovered = False
        self.may_use_folder = False
        self.may_run_code = False
        self.may_reach_private = False
        self.is_closed = False
        self._models = models
        self._inspectors = inspectors
        self._chat_access: StoreClient | None = None
        self.is_stored: Callable[[], bool] = lambda: False
        self.bars = MessageBars(self)
        self.canvas = Canvas(session, self)
        self.questions = QuestionStack(session, self)
        self.autosave = Autosave(session, data_folder, self)
        self.watch = FileWatcher(session.path, session.fingerprint, self)
        vbox(self.bars, self.questions, (self.canvas, 1), spacing=0, parent=self)
        self.questions.node_chosen.connect(self.show_node)
        self.canvas.run_view.question_wanted.connect(self.questions.show_question_of)
        self.autosave.failed.connect(lambda text: self.bars.say("autosave", text, "warning"))
        self.autosave.autosaved.connect(lambda: self.bars.drop("autosave"))
        session.saved.connect(self._note_saved)
        session.save_failed.connect(self._say_unsaved)
        session.saved_state_changed.connect(lambda: self.watch.hold(session.is_saving))
        session.changed.connect(self._compare_with_run)
        session.refused.connect(self._log_refusal)
        session.shown.started.connect(self._log_run)
        session.shown.started.connect(lambda: self.bars.drop(PART))
        session.shown.started.connect(self._compare_with_run)
        session.shown.ended.connect(self._compare_again)
        self._needs_fit = True
        # Deferred until the layout has settled.
        self._fitting = QTimer(self, singleShot=True)
        self._fitting.timeout.connect(self.fit_initial_view)
        # Deferred until all other slots have seen the end of the run, which may create the output's page.
        self._showing = QTimer(self, singleShot=True)
        self._showing.timeout.connect(self._show_result)
        call_between_frames(self, lambda: None if self.is_closed else self.inspector)

    def can_resume(self) -> bool:
        """Return whether the run that is shown failed or was stopped and can be resumed here."""
        shown = self.session.shown
        is_unfinished = shown.view_model is not None and shown.view_model.status in _UNFINISHED
        return is_unfinished and shown.live is None and not self.session.is_past and self.is_stored()

    @cached_property
    def inspector(self) -> Inspector:
        """The inspector."""
        from app.inspector.inspector import Inspector  # slow to import

        inspector = Inspector(self.session, self._models, self._inspectors)
        inspector.installEventFilter(self)
        inspector.fix_wanted.connect(self.fix_wanted)
        if self._chat_access is not None:
            self._add_chat_tab(inspector)
        self.inspector_created.emit(inspector)
        return inspector

    @property
    def created_inspector(self) -> Inspector | None:
        """The inspector, if it exists."""
        return vars(self).get("inspector")

    @cached_property
    def iterations(self) -> IterationsPanel:
        """The Iterations panel."""
        panel = IterationsPanel(self.session)
        self.iterations_created.emit(panel)
        return panel

    @cached_property
    def log(self) -> LogPanel:
        """The Log panel."""
        panel = LogPanel(self.session)
        panel.node_chosen.connect(self.show_node)
        return panel

    @cached_property
    def problems(self) -> ProblemsPanel:
        """The Problems panel."""
        panel = ProblemsPanel(self.session)
        panel.problem_chosen.connect(self.go_to)
        panel.fix_wanted.connect(self.fix_wanted)
        return panel

    @property
    def panels(self) -> Mapping[str, Callable[[], QWidget]]:
        """Returns each of the document's panels in the bottom panel, by name, creating it if it is new."""
        return {"iterations": lambda: self.iterations, "log": lambda: self.log, "problems": lambda: self.problems}

    @property
    def created_panels(self) -> dict[str, QWidget]:
        """The panels that exist, by name."""
        return {name: vars(self)[name] for name in self.panels if name in vars(self)}

    def put_on_top(self, widget: QWidget) -> None:
        """Insert a widget above the messages."""
        layout = self.layout()
        assert isinstance(layout, QVBoxLayout)
        layout.insertWidget(0, widget)

    def add_chat(self, access: StoreClient) -> None:
        """Let the inspector, which does not exist yet, have a tab for the chat.

        The chat is created after the inspector, or by a run that starts earlier: it shows all runs from now on.
        """
        self._chat_access = access
        self.session.shown.started.connect(lambda: self.chat)

    def _add_chat_tab(self, inspector: Inspector) -> None:
        """Add a tab for the chat, which is visible while the workflow has a text to chat with."""
        page = QWidget(inspector)
        tab = inspector.add_tab("Chat", page)
        inspector.tabs.setTabVisible(tab, chat_input(self.session.workflow) is not None)
        self._chat_tab = page, tab
        call_between_frames(page, lambda: self.chat)

    @cached_property
    def chat(self) -> ChatPanel:
        """The chat preview; a stored run has none."""
        assert self._chat_access is not None
        tabs = self.inspector.tabs
        page, tab = self._chat_tab
        chat = ChatPanel(self.session, self._chat_access, page)
        vbox(chat, parent=page)
        tabs.setTabVisible(tab, chat.given is not None)
        chat.available.connect(partial(tabs.setTabVisible, tab))
        self.chat_created.emit(chat)
        return chat

    @property
    def has_draft_answer(self) -> bool:
        """Whether the user has typed an answer to a question of the run that is not sent yet."""
        return self.questions.has_draft or ("chat" in vars(self) and self.chat.questions.has_draft)

    def show_chat(self) -> bool:
        """Show the chat; returns False if the workflow has no text to chat with."""
        if self._chat_access is None or self.chat.given is None:
            return False
        self.inspector_wanted.emit()
        self.inspector.show_tab(self._chat_tab[0])
        self.chat.field.setFocus()
        return True

    def go_to(self, problem: Problem) -> None:
        """Show a problem's node on the canvas and its field in the inspector."""
        node = problem.node
        if node is None and problem.edge is not None:
            ends = (end.partition(".")[0] for end in reversed(problem.edge.split(" -> ")))
            node = next((end for end in ends if self.session.node(end) is not None), None)
        if node is None or self.session.node(node) is None:
            self.session.select(())
            if node is None and problem.field is not None:
                self.inspector.focus_field(None, problem.field)
            return
        self.show_node(node)
        if problem.field is not None:
            self.inspector.focus_field(node, problem.field)

    def show_node(self, node_id: str) -> None:
        """Select a node and move the canvas to it."""
        if self.session.node(node_id) is not None:
            self.session.select([node_id])
            self.canvas.center_on(node_id)

    def show_failure(self) -> None:
        """Show the node that failed, in the iteration in which it did, and the reason in its result."""
        shown = self.session.shown
        if shown.view_model is None:
            return
        path = shown.view_model.state.failed_node
        node, _ = self._failed_place
        indexes = dict(reversed(_LOOP.findall(path)))
        loop = shown.view_model.parents.get(node) if node == node_of(path) else node
        while loop is not None:
            index = int(indexes.get(loop, 0))
            if index != shown.view_model.index_of(loop, shown.chosen):
                shown.look_at(loop, index)
            loop = shown.view_model.parents.get(loop)
        self.show_node(node)
        self.inspector_wanted.emit()
        self.inspector.show_result()

    def choose_model(self) -> None:
        """Open the model field of the node that failed; the model of a loop's judge is a field of the loop."""
        node, field = self._failed_place
        if self.session.node(node) is not None:
            self.inspector_wanted.emit()
            self.inspector.focus_field(node, field)

    @property
    def _failed_place(self) -> tuple[str, str]:
        """The document's node that failed and its model field: for a judge, which is no node, those of its loop."""
        view_model, ran = self.session.shown.view_model, self.session.shown.workflow
        path = view_model.state.failed_node if view_model is not None else ""
        loop, is_in_loop, _ = path.rpartition("[")
        if is_in_loop and ran is not None and node_of(path) not in ran.nodes_by_id:
            return node_of(loop), "judge.model"
        return node_of(path), "model"

    def focus_properties(self) -> None:
        """Focus the first field of the selected nodes; Esc returns to the canvas."""
        if self.session.selection:
            self.inspector.focus_first_field()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Esc in the inspector moves the focus to the canvas, unless a field handles it."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Escape:
            self.canvas.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return True
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the workflow into the view once the page has its size."""
        super().resizeEvent(event)
        if self._needs_fit:
            self._fitting.start()

    def fit_initial_view(self) -> None:
        """Fit the workflow into the view."""
        if self.session.workflow.nodes:
            self.canvas.fit_to_view.fit_initial_view()
        self._needs_fit = False

    def show_run_end(self) -> None:
        """Show the outputs of a completed run; of another one why it ended, and what can be done."""
        view_model = self.session.shown.view_model
        if self.session.shown.live is not None or view_model is None or view_model.status not in _UNFINISHED:
            self.bars.drop("run")
        if self.session.shown.live is not None or view_model is None:
            return
        if view_model.status == "completed":
            if not view_model.origin:
                self._showing.start()
        elif view_model.status == "failed" or (view_model.status in _UNFINISHED and not self.session.is_past):
            self._say_unfinished(view_model)

    def _say_unfinished(self, view_model: RunViewModel) -> None:
        """Say why a run failed or was stopped, with buttons that fix it, show its node and resume it."""
        buttons: list[tuple[str, Callable[[], object]]] = []
        text, kind = f"{view_model.error} {view_model.remedy}".strip(), "bad"
        if view_model.status != "failed":
            text, kind = view_model.error or "The run was stopped. The results so far remain available.", "info"
        else:
            fixes = self._fixes(view_model.state.fix)
            buttons += [(fix_title(fix), partial(self.fix_wanted.emit, fix)) for fix in fixes]
            if self.session.node(self._failed_place[0]) is not None:
                buttons.append(("Show it", self.show_failure))
        if self.can_resume():
            buttons.append(("Resume", self.resume_wanted.emit))
        self.bars.say("run", text, kind, buttons)

    def _fixes(self, fix: str) -> list[str]:
        """Return the fixes that the window offers for a fix of a failed run."""
        kind, _, subject = fix.partition(":")
        if not fix_title(fix):
            return []
        if self.session.is_past:
            return [fix] if kind in _OUTSIDE else []
        setting = Fix.CHANGE_SETTING.of(subject)
        ran = self.session.shown.workflow
        is_own = "." in subject or (ran is not None and budget_limit(ran, subject, None) is not None)
        match kind:
            case Fix.RAISE_BUDGET:
                return [fix if is_own else setting]
            case Fix.ALLOW_UNKNOWN_PRICE:
                return [fix] if is_own or not subject else [fix, setting]
            case Fix.INSTALL if subject == "embedded":
                return [fix, Fix.CHOOSE_MODEL]
            case _:
                return [fix]

    def open_field(self, place: str) -> None:
        """Open a field of the form: `budget_usd` of the workflow, or `outer[0].inner.budget_usd` of a node."""
        path, _, name = place.rpartition(".")
        self.inspector_wanted.emit()
        if path:
            self.inspector.focus_field(node_of(path), name)
        else:
            self.inspector.focus_field(None, f"settings.{name}")

    def offer_recovery(self, recovered: RecoveredDocument, open_beside: Callable[[], object]) -> None:
        """Offer unsaved work that a crash left; it stays on disk until the user has decided.

        Args:
            recovered: The unsaved work.
            open_beside: Opens it as a document of its own.
        """
        self._recovered = recovered.file
        self.autosave.avoid(recovered.file)
        self.autosave.autosaved.connect(lambda: self.discard_recovered(only_used=True))

        def restore() -> None:
            self._uses_recovered = True
            self.session.do(ReplaceDocument("Restore unsaved changes", recovered.workflow))
            self.fit_initial_view()

        def compare() -> None:
            open_beside()
            self.offer_recovery(recovered, open_beside)

        text = f"Loopwright closed before changes from {recovered.clock} were saved."
        buttons = [("Restore", restore), ("Open as copy", compare), ("Discard", self.discard_recovered)]
        self.bars.say("recovery", text, "warning", buttons)

    def discard_recovered(self, *, only_used: bool = False) -> None:
        """Delete the unsaved work that a crash left.

        Args:
            only_used: Delete it only if it was restored, because the restored document is on disk now.
        """
        if only_used and not self._uses_recovered:
            return
        if self._recovered is not None:
            remove_autosave(self._recovered)
        self._recovered = None
        self.bars.drop("recovery")

    def _log_refusal(self, text: str) -> None:
        self.log.note_refusal(text)

    def _log_run(self) -> None:
        self.log.follow_run()

    def _note_saved(self, path: Path) -> None:
        self.watch.know(path, self.session.fingerprint)
        for topic in ("disk", "autosave", "save"):
            self.bars.drop(topic)

    def _say_unsaved(self, text: str) -> None:
        buttons = [("Save again", self.save_wanted.emit), ("Save as…", self.save_as_wanted.emit)]
        self.bars.say("save", text, "bad", buttons)

    def _show_result(self) -> None:
        """Show the workflow's outputs, unless a node is selected, the chat shows them, or the user edits settings."""
        focus = QApplication.focusWidget()
        is_editing = focus is not None and self.inspector.isAncestorOf(focus)
        is_chatting = "chat" in vars(self) and self.chat.isVisible()
        if self.session.shown.live is None and not (self.session.selection or is_editing or is_chatting):
            self.inspector.show_result()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right step through the iterations while one is selected; Esc returns to the latest."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if self.session.shown.chosen and step is not None:
            self.iterations.step(step)
        elif self.session.shown.chosen and event.key() == Qt.Key.Key_Escape:
            self.session.shown.look_at_latest()
        else:
            super().keyPressEvent(event)

    def dispose(self) -> None:
        """Delete the page and its panels, which are not its children."""
        self.is_closed = True
        inspector = [self.created_inspector] if self.created_inspector is not None else []
        for widget in (*inspector, *self.created_panels.values(), self):
            widget.hide()  # without a new parent, for which Qt would restyle the whole tree
            widget.deleteLater()

    def _compare_again(self) -> None:
        self.bars.drop("changed")  # shown again with a button: the run is over
        self._compare_with_run()

    def _compare_with_run(self, *_: object) -> None:
        ran = self.session.shown.workflow
        if ran is None or _same_meaning(ran, self.session.workflow):
            self.bars.drop("changed")
        elif not self.bars.text("changed"):
            buttons = [("Run again", self.fresh_run_wanted.emit)]
            text = "The workflow has changed since this run. The results are from the earlier version."
            self.bars.say("changed", text, "info", buttons if self.session.shown.live is None else ())


def _same_meaning(first: Workflow, second: Workflow) -> bool:
    """Return whether two workflows do the same; layout and names do not count."""
    return first is second or (
        first.nodes == second.nodes and first.edges == second.edges and first.settings == second.settings
    )
