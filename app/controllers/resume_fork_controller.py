"""Resume and fork stored runs: the questions before it, and the tab in which the run continues.

Where needed, the user is asked whether the workflow is trusted, which version of it to use, whether calls of unknown
outcome may be repeated, and what the run may access on this computer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.controllers.consent_controller import ConsentController
from app.controllers.document_controller import DocumentController
from app.controllers.history_pages import HistoryPage, HistoryPages, open_document
from app.controllers.run_controller import run_models
from app.dialogs import is_dialog_open
from app.engine_thread import EngineThread
from app.history.fork_dialog import ForkDialog, ForkPlace, read_fork_place
from app.history.resume_dialog import Budget, ResumeInfo, ask_before_resume, budget_of, read_resume_info
from app.history.run_labels import workflow_name
from app.history.store_client import StoreClient
from app.history.stored_session import StoredSession
from app.inspector.model_list import ModelSource
from app.runs.run_status import models_in_use
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.window.run_dialog import PermissionDialog, PermissionFields, Permissions, ToolNeeds, needs_of
from engine.document.files import loads
from engine.document.model import Workflow
from engine.formatting import format_count, format_money
from engine.plan.compiler import compile_workflow
from engine.plan.structure import analyse
from engine.runner.options import RunOptions
from engine.runner.run import Run
from engine.store.consent import approve, is_fully_trusted
from engine.store.resume import ForkPlan, fork, resume, resume_with
from engine.store.run_file import is_imported
from engine.store.store_protocol import RunStatus, RunSummary, Store


class ResumeForkController(QObject):
    """Resumes and forks runs.

    Args:
        pages: The tabs in which the runs continue.
        models: The models to choose from.

    Signals:
        refused: Something could not be done; the text says what and why.
        unwritable: Something could not be done because the history cannot be written; the text says what.
    """

    refused = Signal(str)
    unwritable = Signal(str)

    def __init__(
        self,
        window: QWidget,
        engine: EngineThread,
        preferences: Preferences,
        store: StoreClient,
        documents: DocumentController,
        pages: HistoryPages,
        models: ModelSource,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._engine = engine
        self._preferences = preferences
        self._store = store
        self._documents = documents
        self._pages = pages
        self._models = models
        self._consent = ConsentController(window)

    def resume(self, summary: RunSummary, document: DocumentPage | None = None) -> None:
        """Resume a run, after asking about trust, changes of the workflow, repeated calls and permissions.

        Args:
            summary: The run.
            document: The document that shows it and in which it continues; None for a tab of the run.
        """
        if self._may_write("The run can't be resumed."):
            self._with_trust(summary.run_id, lambda: self._resume(summary, document))

    def resume_in(self, document: DocumentPage) -> None:
        """Resume the run that a document shows, in that document."""
        run_id = document.session.shown.run_id
        self._ask(lambda store: store.find(run_id), lambda summary: self.resume(summary, document))

    def _may_write(self, otherwise: str) -> bool:
        """Return whether the history can be written; if it is only readable, emit `unwritable` with a text."""
        is_read_only = self._store.store is not None and self._store.writable is None
        if is_read_only:
            self.unwritable.emit(otherwise)
        return not is_read_only

    def _with_trust(self, run_id: str, then: Callable[[], object]) -> None:
        """Call `then` once the run's workflow is trusted: the run may have been imported."""

        def read(workflow: Workflow) -> None:
            self._consent.before_resuming(workflow.name or run_id, workflow, then)

        self._ask(lambda store: loads(store.document(run_id), source="The workflow of this run"), read)

    def _resume(self, summary: RunSummary, page: DocumentPage | None) -> None:
        opened = open_document(summary, self._documents.all)
        today = opened.session.workflow if opened is not None else None

        def look(store: Store) -> tuple[ResumeInfo, ToolNeeds]:
            standing = read_resume_info(store, summary, today)
            return standing, needs_of(standing.ran)

        def asked(found: tuple[ResumeInfo, ToolNeeds]) -> None:
            if is_dialog_open():
                return
            standing, needs = found

            def continue_with(document: Workflow | None) -> None:
                retry = bool(standing.calls)  # the user has seen them
                if document is None:
                    self._with_permissions(
                        summary,
                        needs,
                        standing.budget,
                        lambda allowed: self._start_resumed(summary, allowed, page, retry_in_flight=retry),
                    )
                else:
                    self._start_fork_with(summary, document, standing.budget, page, retry_in_flight=retry)

            ask_before_resume(self._window, standing, continue_with)

        self._ask(look, asked)

    def _with_permissions(
        self, run: RunSummary, needs: ToolNeeds, budget: Budget, then: Callable[[Permissions], object]
    ) -> None:
        """Ask what a resumed run may access and spend, if its tools need anything or its budget is used up.

        Otherwise it may access what its open document was allowed, as when it was started.
        """
        has_failed = run.status is RunStatus.FAILED
        if not has_failed:
            budget = Budget()
        if not needs and not budget and not (has_failed and needs.private):
            then(self._last_allowed(run, budget))
            return
        asks = needs or needs.private
        hints = ["Permissions are not stored with a run. Choose what the rest of it may access."] if asks else []
        if budget:
            tokens = format_count(run.tokens, "token")
            hints.append(f"The run has used {tokens} so far and spent {format_money(run.cost_usd)}.")
        PermissionDialog("\n".join(hints), self._permission_fields(run, needs, budget), then, self._window).open()

    def _permission_fields(self, run: RunSummary, needs: ToolNeeds, budget: Budget) -> PermissionFields:
        """Create the fields for a run, with the last answers of its open document as defaults."""
        folder = Path(run.source).parent if run.source else None
        return PermissionFields(needs, folder, self._last_allowed(run, budget))

    def _last_allowed(self, run: RunSummary, budget: Budget) -> Permissions:
        """Return the last answers for a run's open document; nothing is allowed without one."""
        opened = open_document(run, self._documents.all)
        if opened is None:
            return Permissions(budget_usd=budget.usd, budget_tokens=budget.tokens)
        folder = Path(run.source).parent if opened.may_use_folder else None
        return Permissions(folder, opened.may_run_code, budget.usd, budget.tokens, opened.may_reach_private)

    def fork_from(self, document: DocumentPage, place: str) -> None:
        """Ask what to change in a fork from that place of the document's run, and run it."""
        if not self._may_write("The run can't be forked."):
            return
        run_id = document.session.shown.run_id
        if not run_id or self._store.store is None:
            document.session.refused.emit("Only a stored run can be forked. Run the workflow again, then fork it.")
            return

        def read(store: Store) -> tuple[RunSummary, ForkPlace, ToolNeeds, Budget]:
            found = read_fork_place(store, run_id, place)
            ran = found.structure.workflow
            return store.find(run_id), found, needs_of(ran), budget_of(store, run_id, ran)

        def trusted() -> None:
            self._ask(read, self._ask_for_fork)

        self._with_trust(run_id, trusted)

    def _ask_for_fork(self, found: tuple[RunSummary, ForkPlace, ToolNeeds, Budget]) -> None:
        run, place, needs, budget = found
        fields = self._permission_fields(run, needs, budget)
        dialog = ForkDialog(self._engine, self._store, run.run_id, place, self._models, fields, self._window)
        dialog.wanted.connect(lambda plan: self._run_fork(plan, fields.allowed))
        dialog.open()

    def _run_fork(self, plan: ForkPlan, permissions: Permissions) -> None:
        store = self._store.store
        if store is None:
            return
        options = self._options((plan.changes.model,) if plan.changes.model else plan.parent.models, store, permissions)

        def begin() -> Run:
            parent = plan.parent.run_id
            fully = is_fully_trusted(loads(store.document(parent)))
            approve(plan.workflow, fully=fully)  # the user has just made the changes
            return fork(store, plan, replace(options, confirm_calls=not fully or is_imported(store, parent)))

        self._pages.run_in_page(self._fork_page(plan.parent, plan.at, plan.workflow), begin)

    def _start_fork_with(
        self,
        summary: RunSummary,
        document: Workflow,
        budget: Budget,
        opened: DocumentPage | None,
        *,
        retry_in_flight: bool,
    ) -> None:
        """Run another version of the workflow, reusing the completed parts of the run."""
        store = self._store.store
        if store is None:
            return

        def start(permissions: Permissions) -> None:
            models = {*summary.models, *models_in_use(analyse(document), self._preferences.values.model)}
            options = self._options(models, store, permissions)

            def begin() -> Run:
                confirms = not is_fully_trusted(document) or is_imported(store, summary.run_id)
                given = replace(options, confirm_calls=confirms)
                return resume_with(store, summary.run_id, document, given, retry_in_flight=retry_in_flight)

            if opened is None:
                self._pages.run_in_page(self._fork_page(summary, "", document), begin)
            else:
                _continue_in(opened, document, begin)

        def look(_store: Store) -> ToolNeeds:
            compile_workflow(document)  # fails before a tab is opened if it cannot run
            return needs_of(document)

        def trusted() -> None:
            self._ask(look, lambda needs: self._with_permissions(summary, needs, budget, start))

        self._consent.before_resuming(document.name or summary.run_id, document, trusted)

    def _options(self, models: Iterable[str], store: Store, permissions: Permissions) -> RunOptions:
        """Return the options of a resumed run or a fork that may call these models; the history has the others."""
        return RunOptions(
            max_iterations_cap=self._preferences.max_iterations_cap,
            folder=permissions.folder,
            allow_code=permissions.may_run_code,
            allow_private_addresses=permissions.may_reach_private,
            budget_usd=permissions.budget_usd,
            budget_tokens=permissions.budget_tokens,
            models=run_models(models, self._engine, self._preferences, store),
        )

    def _fork_page(self, parent: RunSummary, at: str, workflow: Workflow) -> HistoryPage:
        session = StoredSession(self._engine, self._store, workflow, f"{workflow_name(parent)} · fork")
        page = self._pages.make_page(session)
        page.show_fork(parent.run_id, at)
        return page

    def _start_resumed(
        self, summary: RunSummary, permissions: Permissions, opened: DocumentPage | None, *, retry_in_flight: bool
    ) -> None:
        store = self._store.store
        if store is None:
            return
        options = self._options(summary.models, store, permissions)

        def begin() -> Run:
            is_own = is_fully_trusted(loads(store.document(summary.run_id)))
            confirms = not is_own or is_imported(store, summary.run_id)
            given = replace(options, confirm_calls=confirms)
            return resume(store, summary.run_id, given, retry_in_flight=retry_in_flight)

        ran = opened.session.shown.workflow if opened is not None else None
        if opened is not None and ran is not None:
            opened.may_use_folder |= permissions.folder is not None
            opened.may_run_code |= permissions.may_run_code
            opened.may_reach_private |= permissions.may_reach_private
            _continue_in(opened, ran, begin)
        else:
            self._pages.show_page(summary.run_id, lambda page: self._pages.run_in_page(page, begin))

    def _ask(self, work: Callable[[Store], object], answered: Callable[..., object]) -> None:
        self._store.ask(work, answered, lambda error: self.refused.emit(str(error)))


def _continue_in(document: DocumentPage, workflow: Workflow, begin: Callable[[], Run]) -> None:
    """Continue a run in the document that shows it.

    Args:
        document: The document.
        workflow: The workflow of the run.
        begin: Starts the run, in the engine's thread.
    """
    session = document.session
    if session.shown.live is None and not document.is_closed:
        structure = session.structure_now
        same = structure.workflow is workflow
        session.shown.follow(structure if same else analyse(workflow, session.registry), begin)
