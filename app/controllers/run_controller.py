"""Start, pause, step and stop the runs of documents.

Also choose their options, and show their models and budget in the run bar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.controllers.consent_controller import ConsentController
from app.controllers.key_controller import KeyController
from app.dialogs import FileDialogs
from app.engine_thread import EngineThread
from app.history.store_client import StoreClient
from app.run_view_state import LiveRun
from app.runs.run_status import Budget, models_in_use, run_budget
from app.session import Session, analyze_document
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.window.run_bar import RunBar
from app.window.run_dialog import Permissions, RunDialog, known_values, needs_in
from engine.document.problems import has_errors
from engine.models.catalog import Models
from engine.models.protocol import RECORDED_PREFIX, SCRIPTED_PREFIX
from engine.plan.structure import Structure
from engine.runner.declared_inputs import DeclaredInput, declared_inputs, given_inputs
from engine.runner.options import Catalog, RunOptions
from engine.settings import run_defaults
from engine.store.store_protocol import Store
from engine.values import Value

if TYPE_CHECKING:
    from engine.batch.batch import BatchOptions


def run_options(
    structure: Structure,
    engine: EngineThread,
    preferences: Preferences,
    folder: Path | None,
    store: Store | None = None,
    source: str = "",
) -> RunOptions:
    """Return the options of a new run.

    Args:
        structure: The document.
        engine: The engine's thread, which has the models.
        preferences: The user's settings.
        folder: The folder that tools may read and write; None for none.
        store: The history; None to not store the run.
        source: The document's file; empty for one that was never saved.
    """
    defaults = run_defaults(preferences.values, structure.workflow)
    models = run_models(models_in_use(structure, defaults["default_model"]), engine, preferences, store)
    return RunOptions(**defaults, folder=folder, models=models, store=store, source=source)


def run_models(
    names: Iterable[str], engine: EngineThread, preferences: Preferences, store: Store | None
) -> Catalog | None:
    """Return the models of a run by name. Scripted and recorded ones have a state, so each run reads them again."""
    called = tuple(names)
    addresses = preferences.values.server_addresses
    if any(name.startswith(RECORDED_PREFIX) for name in called):
        from engine.store import open_store
        from engine.store.recorded_model import recorded_models

        # If the window could not open its history, it may be readable by now.
        recorded = recorded_models(
            lambda: closing(open_store(for_reading=True)) if store is None else nullcontext(store)
        )
        models = Models(engine.models.keys, recorded, addresses)
        models.gguf_settings = engine.models.gguf_settings
        return models
    if any(name.startswith(SCRIPTED_PREFIX) for name in called):
        return None
    engine.models.addresses = addresses
    return engine.models


class RunController(QObject):
    """Implements the run commands.

    Signals:
        run_blocked: A document has errors and cannot run; they should be shown.
        run_wanted: The user wants to see a stored run; its id.
    """

    run_blocked = Signal(object)
    run_wanted = Signal(str)

    def __init__(
        self,
        window: QWidget,
        engine: EngineThread,
        preferences: Preferences,
        dialogs: FileDialogs,
        store: StoreClient,
        keys: KeyController,
    ) -> None:
        super().__init__(window)
        self._store = store
        self._keys = keys
        self._window = window
        self._engine = engine
        self._preferences = preferences
        self._dialogs = dialogs
        self._consent = ConsentController(window)

    def run(self, document: DocumentPage) -> None:
        """Run a document, asking only for missing values and for permission to run code."""
        self._run(document, lambda: None, paused=False)

    def run_with_text(self, document: DocumentPage, name: str, text: str) -> None:
        """Run a document with a text for one of its inputs; the others have the values of the last run."""
        self._run(document, lambda: None, paused=False, given={name: text})

    def _run(
        self,
        document: DocumentPage,
        then: Callable[[], object],
        *,
        paused: bool,
        given: Mapping[str, Value] | None = None,
    ) -> None:
        if not self._may_start(document):
            return
        last = _last_inputs(document.session) | dict(given or {})
        values = known_values(declared_inputs(document.session.workflow), last)
        if values is None or (runs_code(document) and not document.may_run_code):
            self._ask(document, given or {}, then, paused=paused)
        else:
            self._start(document, values, then, paused=paused)

    def run_with(self, document: DocumentPage) -> None:
        """Ask for all inputs, and run."""
        if self._may_start(document):
            self._ask(document, {}, lambda: None, paused=False)

    def _ask(
        self, document: DocumentPage, given: Mapping[str, Value], then: Callable[[], object], *, paused: bool
    ) -> None:
        inputs = declared_inputs(document.session.workflow)
        suggested = _stored_inputs(document.session) | _last_inputs(document.session) | dict(given)
        self.ask_for_inputs(document, inputs, suggested, partial(self._start, document, then=then, paused=paused))

    def run_batch(self, document: DocumentPage, table: Path | None = None) -> None:
        """Show the batch window, which runs a document for each row of a table.

        Args:
            document: The document.
            table: The table; if None, the user chooses it there.
        """
        document.session.seal()
        self._consent.before_run(document.session, lambda: self._show_batch(document, table))

    def _show_batch(self, document: DocumentPage, table: Path | None) -> None:
        from app.batch.batch_window import BatchWindow
        from engine.batch.batch import BatchOptions

        session = document.session
        structure, path = session.structure_now, session.path

        def options() -> BatchOptions:
            fresh = partial(self.options, document, structure)
            run = replace(fresh(), store=None)
            return BatchOptions(run=run, store=self._store.writable, models=lambda: fresh().models or Models())

        folder = None if path is None else path.parent
        window = BatchWindow(
            self._engine, structure.workflow, session.name, options, self._dialogs, folder, self._window
        )
        window.open_wanted.connect(self.run_wanted)
        window.run_ended.connect(self._store.changed)
        window.show()
        if table is not None:
            window.show_table(table)

    def toggle_pause(self, document: DocumentPage) -> None:
        """Pause or resume a run."""
        session = document.session
        if session.shown.live is None or session.shown.view_model is None:
            return
        if session.shown.view_model.status == "paused":
            session.shown.live.resume()
        else:
            session.shown.live.pause()

    def step_node(self, document: DocumentPage) -> None:
        """Start one node, of a new run if none is in progress."""
        self._step(document, LiveRun.step_node)

    def step_iteration(self, document: DocumentPage) -> None:
        """Continue to the end of the current iteration, of a new run if none is in progress."""
        self._step(document, LiveRun.step_iteration)

    def stop(self, document: DocumentPage) -> None:
        """Cancel a run."""
        if document.session.shown.live is not None:
            document.session.shown.live.cancel()

    def _step(self, document: DocumentPage, step: Callable[[LiveRun], None]) -> None:
        session = document.session

        def act() -> None:
            assert session.shown.live is not None
            step(session.shown.live)

        if session.shown.live is None:
            self._run(document, act, paused=True)
        else:
            act()

    def _may_start(self, document: DocumentPage) -> bool:
        session = document.session
        if session.shown.live is not None:
            return False
        session.seal()
        problems = session.problems
        if session.structure.workflow is not session.workflow:  # not up to date with what was just typed
            _, problems = analyze_document(session.workflow, session.registry)
        if has_errors(problems):
            session.reveal_problems()
            session.refused.emit("The workflow has errors and cannot run. See Problems.")
            self.run_blocked.emit(document)
            return False
        return True

    def _start(
        self, document: DocumentPage, values: dict[str, Value], then: Callable[[], object], *, paused: bool
    ) -> None:
        session = document.session

        def start() -> None:
            if document.is_closed:
                return
            session.start_run(values, self.options(document, session.structure_now), paused=paused)
            then()

        self._keys.before_run(session, lambda: self.when_allowed(session, start))

    def when_allowed(self, session: Session, start: Callable[[], object]) -> None:
        """Start a run with the user's consent, once the history is open; the workflow may change meanwhile."""
        self._store.when_settled(lambda: self._consent.before_run(session, start))

    def options(self, document: DocumentPage, structure: Structure) -> RunOptions:
        """Return the options of a new run of a document, with what the user has allowed it; see `run_options`."""
        path, store = document.session.path, self._store
        folder = path.parent if path is not None and document.may_use_folder else None
        source = "" if path is None else str(path)
        return replace(
            run_options(structure, self._engine, self._preferences, folder, store.store, source),
            store=store.writable,
            allow_code=document.may_run_code,
            allow_private_addresses=document.may_reach_private,
            confirm_calls=document.session.confirms_calls,
        )

    def ask_for_inputs(
        self,
        document: DocumentPage,
        inputs: list[DeclaredInput],
        last: Mapping[str, Value],
        run: Callable[[dict[str, Value]], object],
    ) -> None:
        """Ask for inputs and permissions, which the document remembers, and run with these inputs.

        Args:
            document: The document.
            inputs: The inputs to ask for.
            last: The values of the last run.
            run: Called with the inputs by name.
        """
        session = document.session
        folder = session.path.parent if session.path is not None else None
        allowed = Permissions(
            folder if document.may_use_folder else None,
            document.may_run_code,
            may_reach_private=document.may_reach_private,
        )
        dialog = RunDialog(inputs, last, folder, self._dialogs, needs_in(session.structure_now), allowed, self._window)

        def start(inputs: dict[str, Value], allowed: Permissions) -> None:
            document.may_use_folder, document.may_run_code = allowed.folder is not None, allowed.may_run_code
            document.may_reach_private = allowed.may_reach_private
            run(inputs)

        dialog.wanted.connect(start)
        dialog.open()


def runs_code(document: DocumentPage) -> bool:
    """Return whether tools of a document may run code."""
    return needs_in(document.session.structure_now).code


def _last_inputs(session: Session) -> dict[str, Value]:
    """Return the inputs of the last run, without those that were the document's defaults."""
    workflow, values = session.shown.last_inputs_of, session.shown.last_inputs
    return given_inputs(workflow, values) if workflow is not None else values


def _stored_inputs(session: Session) -> dict[str, Value]:
    """Return the inputs of the run that is shown, such as the last one of a file that was opened again."""
    run, workflow = session.shown.view_model, session.shown.workflow
    return {} if run is None or workflow is None else given_inputs(workflow, run.state.inputs)


class RunBarPresenter:
    """Finds out both for a document.

    Args:
        run_bar: The bar that shows them.
        preferences: The user's settings, for default model, budget and recent models.
    """

    def __init__(self, run_bar: RunBar, preferences: Preferences) -> None:
        self._run_bar = run_bar
        self._preferences = preferences

    def show(self, session: Session) -> None:
        """Show the models and the budget of a document, or of its run."""
        view_model = session.shown.view_model
        used = view_model.state.models if session.shown.live is not None and view_model is not None else ()
        self._run_bar.show_models(used or self.models(session))
        self.show_budget(session)

    def show_budget(self, session: Session) -> None:
        """Show the budget only: after an edit, the models follow with the analysis."""
        self._run_bar.show_budget(self.budget(session))

    def budget(self, session: Session) -> Budget | None:
        """The budget of a document, or of its run; None for none."""
        view_model, workflow = session.shown.view_model, session.workflow
        if session.shown.live is not None:
            workflow = session.shown.workflow or workflow
        return run_budget(workflow, self._preferences.budget_usd, self._preferences.budget_tokens, view_model)

    def models(self, session: Session) -> tuple[str, ...]:
        """The models that a document may call, as of its last analysis."""
        return models_in_use(session.structure, self._preferences.values.model)

    def remember_models(self, session: Session) -> None:
        """Put the models of a run first in the list of recent models."""
        for name in reversed(self.models(session)):
            if not name.startswith(SCRIPTED_PREFIX):
                self._preferences.remember_model(name)
