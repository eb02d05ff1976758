"""Letting runs of the history go on, and forking them: what is asked before, and the tab in which they run.

Asked is, where there is something to ask: whether the workflow is trusted, as which document it goes on, whether calls
of unknown outcome are made again, and what the run may touch on this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.controllers.consent_controller import ConsentController
from app.controllers.history_pages import HistoryPage, open_document
from app.controllers.run_controller import default_model, resume_options
from app.dialogs import is_dialog_open
from app.history.fork_dialog import ForkDialog, read_place
from app.history.fork_form import ForkPlace
from app.history.resume_dialog import Budget, Standing, ask_before, budget_of, look_before
from app.history.runs_words import name_of
from app.history.store_run import StoredRun
from app.history.store_session import StoredSession
from app.run_status import models_in_use
from app.settings.available_models import model_names
from app.window.document_page import DocumentPage
from app.window.permissions_form import PermissionDialog, PermissionFields, Permissions, ToolNeeds, needs_of
from engine.document.files import loads
from engine.document.model import Workflow
from engine.formatting import format_count, format_money
from engine.plan.compiler import compile_workflow
from engine.runner.options import RunOptions
from engine.runner.run import Run
from engine.store.base import RunStatus, RunSummary, Store
from engine.store.consent import approve, is_fully_trusted
from engine.store.resume import ForkPlan, fork, resume, resume_with
from engine.store.run_file import is_imported

if TYPE_CHECKING:
    from app.controllers.history_controller import HistoryController
    from app.window.main_window import MainWindow


class ResumeForkController(QObject):
    """What goes on.

    Args:
        window: The window.
        history: Its history; it reads runs and shows them.
    """

    def __init__(self, window: MainWindow, history: HistoryController) -> None:
        super().__init__(history)
        self._window = window
        self._history = history
        self._consent = ConsentController(window)

    def resume(self, summary: RunSummary) -> None:
        """Let a run go on; ask first where its workflow is somebody else's, has changed, or a call is made again."""
        self._trusting(summary.run_id, lambda: self._resume(summary))

    def _trusting(self, run_id: str, then: Callable[[], object]) -> None:
        """Do something with a run once what it ran is trusted: a run may have been imported."""

        def read(workflow: Workflow) -> None:
            self._consent.before_going_on(workflow.name or run_id, workflow, then)

        self._ask(lambda store: loads(store.document(run_id), source="The document of that run"), read)

    def _resume(self, summary: RunSummary) -> None:
        opened = open_document(summary, self._window.documents.all)

        def look(store: Store) -> tuple[Standing, ToolNeeds]:
            standing = look_before(store, summary, opened)
            return standing, needs_of(standing.ran)

        def asked(found: tuple[Standing, ToolNeeds]) -> None:
            if is_dialog_open():
                return
            standing, needs = found

            def go_on(document: Workflow | None) -> None:
                retry = bool(standing.calls)  # the person has been shown them
                if document is None:
                    self._permitting(
                        summary,
                        needs,
                        standing.budget,
                        lambda allowed: self._go_on(summary, allowed, retry_in_flight=retry),
                    )
                else:
                    self._go_on_with(summary, document, standing.budget, retry_in_flight=retry)

            ask_before(self._window, standing, go_on)

        self._ask(look, asked)

    def _permitting(
        self, run: RunSummary, needs: ToolNeeds, budget: Budget, then: Callable[[Permissions], object]
    ) -> None:
        """Ask what a run is allowed that goes on: where its tools would use anything, or its budget may be spent."""
        if run.status is not RunStatus.FAILED:
            budget = Budget()
        if not needs and not budget:
            then(Permissions())
            return
        told = ["What a run may touch is not kept with it. Allow it for what is still to do."] if needs else []
        if budget:
            told.append(
                f"The run has used {format_count(run.tokens, 'token')} so far and spent {format_money(run.cost_usd)}."
            )
        PermissionDialog("\n".join(told), self._boxes(run, needs, budget), then, self._window).open()

    def _boxes(self, run: RunSummary, needs: ToolNeeds, budget: Budget) -> PermissionFields:
        """The fields for a run, ticked as they were for the document of its file, where that is open."""
        path = Path(run.source) if run.source else None
        folder = path.parent if path is not None else None
        opened = next((one for one in self._window.documents.all if path and one.session.path == path), None)
        may_use_folder = opened is not None and opened.may_use_folder
        may_run_code = opened is not None and opened.may_run_code
        allowed = Permissions(folder if may_use_folder else None, may_run_code, budget.usd, budget.tokens)
        return PermissionFields(needs, folder, allowed)

    def fork_from(self, document: DocumentPage, place: str) -> None:
        """Ask what a fork from that place of the run that a document shows is to do differently, and run it."""
        run_id = document.session.shown.run_id
        if not run_id or self._history.access.store is None:
            document.session.refused.emit("Only a run that is kept can be forked. Run the workflow again, then fork.")
            return

        def read(store: Store) -> tuple[RunSummary, ForkPlace, ToolNeeds, Budget]:
            found = read_place(store, run_id, place)
            ran = found.structure.workflow
            return store.find(run_id), found, needs_of(ran), budget_of(store, run_id, ran)

        def trusted() -> None:
            self._ask(read, self._ask_for_fork)

        self._trusting(run_id, trusted)

    def _ask_for_fork(self, found: tuple[RunSummary, ForkPlace, ToolNeeds, Budget]) -> None:
        run, place, needs, budget = found
        boxes = self._boxes(run, needs, budget)
        names = partial(model_names, self._window.preferences)
        dialog = ForkDialog(self._history.access, run.run_id, place, names, boxes, self._window)
        dialog.wanted.connect(lambda plan: self._run_fork(plan, boxes.allowed))
        dialog.open()

    def _run_fork(self, plan: ForkPlan, permissions: Permissions) -> None:
        store = self._history.access.store
        if store is None:
            return
        options = self._options((plan.changes.model,) if plan.changes.model else plan.parent.models, store, permissions)

        def begin() -> Run:
            parent = plan.parent.run_id
            fully = is_fully_trusted(loads(store.document(parent)))
            approve(plan.workflow, fully=fully)  # the person has made the changes just now
            return fork(store, plan, replace(options, confirm_calls=not fully or is_imported(store, parent)))

        self._history.run_in_page(self._fork_page(plan.parent, plan.at, plan.workflow), begin)

    def _go_on_with(self, summary: RunSummary, document: Workflow, budget: Budget, *, retry_in_flight: bool) -> None:
        """Let a new run take over what had come to its end, as another document."""
        store, window = self._history.access.store, self._window
        if store is None:
            return

        def go_on(permissions: Permissions) -> None:
            models = {*summary.models, *models_in_use(document, default_model(window.preferences))}
            options = self._options(models, store, permissions)
            page = self._fork_page(summary, "", document)

            def begin() -> Run:
                confirms = not is_fully_trusted(document) or is_imported(store, summary.run_id)
                given = replace(options, confirm_calls=confirms)
                return resume_with(store, summary.run_id, document, given, retry_in_flight=retry_in_flight)

            self._history.run_in_page(page, begin)

        def look(_store: Store) -> ToolNeeds:
            compile_workflow(document)  # where it does not run, there is no tab for it
            return needs_of(document)

        def trusted() -> None:
            self._ask(look, lambda needs: self._permitting(summary, needs, budget, go_on))

        self._consent.before_going_on(document.name or summary.run_id, document, trusted)

    def _options(self, models: Iterable[str], store: Store, permissions: Permissions) -> RunOptions:
        return resume_options(models, self._window.engine, self._window.preferences, store, permissions)

    def _fork_page(self, parent: RunSummary, at: str, workflow: Workflow) -> HistoryPage:
        session = StoredSession(self._window.engine, self._history.access, workflow, f"{name_of(parent)} · fork")
        page = self._history.make_page(session)
        page.show_fork(parent.run_id, at)
        return page

    def _go_on(self, summary: RunSummary, permissions: Permissions, *, retry_in_flight: bool) -> None:
        store, window = self._history.access.store, self._window
        if store is None:
            return
        options = self._options(summary.models, store, permissions)

        def begin() -> Run:
            is_own = is_fully_trusted(loads(store.document(summary.run_id)))
            confirms = not is_own or is_imported(store, summary.run_id)
            given = replace(options, confirm_calls=confirms)
            return resume(store, summary.run_id, given, retry_in_flight=retry_in_flight)

        def shown(run: StoredRun) -> None:
            self._history.run_in_page(self._history.show(run), begin)

        page = self._history.pages.get(summary.run_id)
        if page is not None:
            window.tabs.show_document(page.document)
            self._history.run_in_page(page, begin)
        else:
            self._history.read(summary.run_id, shown)

    def _ask(self, work: Callable[[Store], object], answered: Callable[..., object]) -> None:
        self._history.access.ask(work, answered, lambda error: self._window.status.refuse(str(error)))
