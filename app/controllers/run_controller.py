"""Starting, stopping and stepping the runs of documents, and telling how they ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from app.controllers.consent_controller import ConsentController
from app.dialogs import FileDialogs, ask_question
from app.engine_thread import EngineThread
from app.history.store_client import StoreAccess
from app.live_run import LiveRun
from app.run_status import budget_limit, models_in_use
from app.session import Session, analyse_document
from app.settings.available_models import CustomServerModels
from app.settings.preferences import Preferences
from app.window.document_page import DocumentPage
from app.window.permissions_form import Permissions, needs_in
from app.window.run_dialog import RunDialog, RunRequest, known_values
from engine.document.model import Workflow
from engine.document.problems import has_errors
from engine.models.catalogue import Models, default_model_name
from engine.models.model_names import RECORDED_PREFIX, SCRIPTED_PREFIX
from engine.runner.declared import declared_inputs
from engine.runner.options import Catalogue, RunOptions
from engine.store.base import Store
from engine.values import Value

if TYPE_CHECKING:
    from engine.batch.batch import BatchOptions


def default_model(preferences: Preferences) -> str:
    """The model where a document names none."""
    return preferences.default_model or default_model_name()


def run_options(
    workflow: Workflow,
    engine: EngineThread,
    preferences: Preferences,
    folder: Path | None,
    store: Store | None = None,
    source: str = "",
) -> RunOptions:
    """The options of a run.

    Args:
        workflow: The document.
        engine: Has the models of the program.
        preferences: The person's settings.
        folder: The folder that the run may read and write; None for none.
        store: Where it is kept; None for nowhere.
        source: The document's file; empty where it never was saved.
    """
    default = default_model(preferences)
    tokens = budget_limit(workflow, "budget_tokens", preferences.budget_tokens)
    return RunOptions(
        default_model=default,
        budget_usd=budget_limit(workflow, "budget_usd", preferences.budget_usd),
        budget_tokens=None if tokens is None else int(tokens),
        max_iterations_cap=preferences.max_iterations_cap,
        folder=folder,
        models=_models(models_in_use(workflow, default), engine, preferences, store),
        store=store,
        source=source,
    )


def resume_options(
    models: Iterable[str],
    engine: EngineThread,
    preferences: Preferences,
    store: Store,
    permissions: Permissions | None = None,
) -> RunOptions:
    """The options of a run that goes on, or of a fork; what is not said here, the history has kept.

    Args:
        models: The models that it may call.
        engine: Has the models of the program.
        preferences: The person's settings.
        store: The history.
        permissions: What it may touch on this machine, and spend.
    """
    permissions = permissions or Permissions()
    return RunOptions(
        max_iterations_cap=preferences.max_iterations_cap,
        folder=permissions.folder,
        allow_code=permissions.may_run_code,
        budget_usd=permissions.budget_usd,
        budget_tokens=permissions.budget_tokens,
        models=_models(models, engine, preferences, store),
    )


def _models(
    names: Iterable[str], engine: EngineThread, preferences: Preferences, store: Store | None
) -> Catalogue | None:
    # A scripted or recorded model remembers what it has said: each run reads anew what it plays.
    called = tuple(names)
    if any(name.startswith(RECORDED_PREFIX) for name in called):
        from engine.store import open_store
        from engine.store.recorded import recorded_models

        # Where the window has no history, the usual one may be readable by now.
        return Models(
            engine.models.keys, recorded_models(lambda: closing(open_store()) if store is None else nullcontext(store))
        )
    is_scripted = any(name.startswith(SCRIPTED_PREFIX) for name in called)
    return None if is_scripted else CustomServerModels(engine.models, preferences.servers)


_Role = QMessageBox.ButtonRole


class RunController(QObject):
    """What Run and its kin do.

    Args:
        window: Over which the form is shown.
        engine: The engine's thread.
        preferences: The person's settings.
        asker: Asks for files.
        history: The way to where runs are kept.

    Signals:
        problems_in_the_way: A document has errors and cannot run; they should be shown.
        run_wanted: A person wants to see a run that is kept; its id.
    """

    problems_in_the_way = Signal(object)
    run_wanted = Signal(str)

    def __init__(
        self, window: QWidget, engine: EngineThread, preferences: Preferences, asker: FileDialogs, history: StoreAccess
    ) -> None:
        super().__init__(window)
        self._history = history
        self._window = window
        self._engine = engine
        self._preferences = preferences
        self._asker = asker
        self._consent = ConsentController(window)

    def run(self, document: DocumentPage) -> None:
        """Run a document; a person is asked only where a value is missing, or leave to run code."""
        self._run(document, lambda: None, paused=False)

    def _run(self, document: DocumentPage, then: Callable[[], object], *, paused: bool) -> None:
        if not self._may_start(document):
            return
        values = known_values(declared_inputs(document.session.workflow), _given_last(document.session))
        if values is None or (_runs_code(document) and not document.may_run_code):
            self._ask(document, then, paused=paused)
        else:
            self._start(document, values, then, paused=paused)

    def run_with(self, document: DocumentPage) -> None:
        """Ask for the inputs in any case, and run."""
        if self._may_start(document):
            self._ask(document, lambda: None, paused=False)

    def _ask(self, document: DocumentPage, then: Callable[[], object], *, paused: bool) -> None:
        session = document.session
        dialog = RunDialog(
            declared_inputs(session.workflow),
            _given_last(session),
            session.path.parent if session.path is not None else None,
            self._asker,
            may_use_folder=document.may_use_folder,
            may_run_code=document.may_run_code if _runs_code(document) else None,
            parent=self._window,
        )

        def start(wish: RunRequest) -> None:
            document.may_use_folder = wish.may_use_folder
            document.may_run_code = wish.may_run_code
            self._start(document, wish.inputs, then, paused=paused)

        dialog.wanted.connect(start)
        dialog.open()

    def run_batch(self, document: DocumentPage, table: Path | None = None) -> None:
        """Show the window in which a document is run for each row of a table.

        Args:
            document: The document.
            table: The table; None leaves it to be chosen there.
        """
        document.session.seal()
        self._consent.before_run(document.session, lambda: self._show_batch(document, table))

    def _show_batch(self, document: DocumentPage, table: Path | None) -> None:
        from app.batch.batch_window import BatchWindow
        from engine.batch.batch import BatchOptions

        workflow, path = document.session.workflow, document.session.path

        def options() -> BatchOptions:
            folder = path.parent if path is not None and document.may_use_folder else None
            source = "" if path is None else str(path)
            store = self._history.store

            def fresh() -> RunOptions:
                return run_options(workflow, self._engine, self._preferences, folder, store, source)

            allowed = {"allow_code": document.may_run_code, "confirm_calls": document.session.confirms_calls}
            run = replace(fresh(), **allowed, store=None)
            return BatchOptions(run=run, store=store, models=lambda: fresh().models or Models())

        folder = None if path is None else path.parent
        window = BatchWindow(self._engine, workflow, options, self._asker, folder, self._window)
        window.open_wanted.connect(self.run_wanted)
        window.run_ended.connect(self._history.changed)
        window.show()
        if table is not None:
            window.show_table(table)

    def toggle_pause(self, document: DocumentPage) -> None:
        """Pause a run, or let it go on."""
        session = document.session
        if session.shown.live is None or session.shown.picture is None:
            return
        if session.shown.picture.status == "paused":
            session.shown.live.resume()
        else:
            session.shown.live.pause()

    def step_node(self, document: DocumentPage) -> None:
        """Start one node; a run that is not under way begins with its first."""
        self._step(document, LiveRun.step_node)

    def step_iteration(self, document: DocumentPage) -> None:
        """Go on to the end of the present iteration; a run that is not under way begins."""
        self._step(document, LiveRun.step_iteration)

    def stop(self, document: DocumentPage) -> None:
        """Stop a run at once."""
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
        if session.structure.workflow is not session.workflow:  # a moment behind what was just typed
            _, problems = analyse_document(session.workflow, session.registry)
        if has_errors(problems):
            session.refused.emit("The workflow has errors and cannot run yet. They are listed under Problems.")
            self.problems_in_the_way.emit(document)
            return False
        return True

    def _start(
        self, document: DocumentPage, values: dict[str, Value], then: Callable[[], object], *, paused: bool
    ) -> None:
        session = document.session
        folder = session.path.parent if session.path is not None and document.may_use_folder else None

        def start() -> None:
            if document.is_closed:
                return
            source = str(session.path) if session.path is not None else ""
            store = self._history.store
            options = run_options(session.workflow, self._engine, self._preferences, folder, store, source)
            options = replace(options, allow_code=document.may_run_code, confirm_calls=session.confirms_calls)
            session.start_run(values, options, paused=paused)
            then()

        # Right after the program's start, the history may still be on its way.
        self._consent.before_run(session, lambda: self._history.when_settled(start))


def _runs_code(document: DocumentPage) -> bool:
    return needs_in(document.session.structure_now).code


def _given_last(session: Session) -> dict[str, Value]:
    """The values of the last run, without those that were only what the document had for them then."""
    given_to = session.shown.last_inputs_of
    had = {item.name: item.default for item in declared_inputs(given_to)} if given_to is not None else {}
    return {name: value for name, value in session.shown.last_inputs.items() if value != had.get(name)}


def ask_about_runs(
    window: QWidget,
    documents: list[DocumentPage],
    stop: Callable[[], object],
    leave: Callable[[], object],
    *,
    wait: bool,
) -> None:
    """Ask what becomes of runs whose documents are closed.

    Args:
        window: Over which to ask.
        documents: Those that run.
        stop: What to do when the runs shall stop.
        leave: What to do when they shall go on to their ends in the background, or wait in the history.
        wait: Whether they all wait for the person, and can do so in the history.
    """
    names = ", ".join(f"“{document.session.name}”" for document in documents)
    is_one = len(documents) == 1
    if wait:
        text = f"{names} {'waits' if is_one else 'wait'} for your answer."
        more, way = "It is kept: resume it under Runs, another day too, and you are asked again.", "Answer later"
    else:
        text = f"{names} {'is' if is_one else 'are'} still running."
        more, way = "It can go on to its end in the background; its result is then told.", "Let it finish"
    ask_question(
        window,
        text,
        more,
        [
            (way, _Role.AcceptRole, leave),
            ("Stop", _Role.DestructiveRole, stop),
            ("Cancel", _Role.RejectRole, lambda: None),
        ],
    )
