"""Starting, stopping and stepping the runs of documents, and telling how they ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from app.bridge import EngineThread
from app.history.store_client import StoreAccess
from app.live_run import LiveRun
from app.session import Session, look_through
from app.settings.preferences import Preferences
from app.window.choosers import Asker, ask
from app.window.consent import Consent
from app.window.document import Document
from app.window.permissions import needs_in
from app.window.run_dialog import RunDialog, RunWish, known_values
from app.window.run_options import run_options
from engine.document.problems import has_errors
from engine.models.catalogue import Models
from engine.runner.declared import declared_inputs
from engine.runner.options import RunOptions
from engine.values import Value

if TYPE_CHECKING:
    from pathlib import Path

    from engine.batch.batch import BatchOptions

_Role = QMessageBox.ButtonRole


class Runs(QObject):
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
        self, window: QWidget, engine: EngineThread, preferences: Preferences, asker: Asker, history: StoreAccess
    ) -> None:
        super().__init__(window)
        self._history = history
        self._window = window
        self._engine = engine
        self._preferences = preferences
        self._asker = asker
        self._consent = Consent(window)

    def run(self, document: Document) -> None:
        """Run a document; a person is asked only where a value is missing, or leave to run code."""
        self._run(document, lambda: None, paused=False)

    def _run(self, document: Document, then: Callable[[], object], *, paused: bool) -> None:
        if not self._may_start(document):
            return
        values = known_values(declared_inputs(document.session.workflow), _given_last(document.session))
        if values is None or (_runs_code(document) and not document.may_run_code):
            self._ask(document, then, paused=paused)
        else:
            self._start(document, values, then, paused=paused)

    def run_with(self, document: Document) -> None:
        """Ask for the inputs in any case, and run."""
        if self._may_start(document):
            self._ask(document, lambda: None, paused=False)

    def _ask(self, document: Document, then: Callable[[], object], *, paused: bool) -> None:
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

        def start(wish: RunWish) -> None:
            document.may_use_folder = wish.may_use_folder
            document.may_run_code = wish.may_run_code
            self._start(document, wish.inputs, then, paused=paused)

        dialog.wanted.connect(start)
        dialog.open()

    def run_batch(self, document: Document, table: Path | None = None) -> None:
        """Show the window in which a document is run for each row of a table.

        Args:
            document: The document.
            table: The table; None leaves it to be chosen there.
        """
        document.session.seal()
        self._consent.before_run(document.session, lambda: self._show_batch(document, table))

    def _show_batch(self, document: Document, table: Path | None) -> None:
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

    def toggle_pause(self, document: Document) -> None:
        """Pause a run, or let it go on."""
        session = document.session
        if session.shown.live is None or session.shown.picture is None:
            return
        if session.shown.picture.status == "paused":
            session.shown.live.resume()
        else:
            session.shown.live.pause()

    def step_node(self, document: Document) -> None:
        """Start one node; a run that is not under way begins with its first."""
        self._step(document, LiveRun.step_node)

    def step_iteration(self, document: Document) -> None:
        """Go on to the end of the present iteration; a run that is not under way begins."""
        self._step(document, LiveRun.step_iteration)

    def stop(self, document: Document) -> None:
        """Stop a run at once."""
        if document.session.shown.live is not None:
            document.session.shown.live.cancel()

    def _step(self, document: Document, step: Callable[[LiveRun], None]) -> None:
        session = document.session

        def act() -> None:
            assert session.shown.live is not None
            step(session.shown.live)

        if session.shown.live is None:
            self._run(document, act, paused=True)
        else:
            act()

    def _may_start(self, document: Document) -> bool:
        session = document.session
        if session.shown.live is not None:
            return False
        session.seal()
        problems = session.problems
        if session.structure.workflow is not session.workflow:  # a moment behind what was just typed
            _, problems = look_through(session.workflow, session.registry)
        if has_errors(problems):
            session.refused.emit("The workflow has errors and cannot run yet. They are listed under Problems.")
            self.problems_in_the_way.emit(document)
            return False
        return True

    def _start(self, document: Document, values: dict[str, Value], then: Callable[[], object], *, paused: bool) -> None:
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


def _runs_code(document: Document) -> bool:
    return needs_in(document.session.structure_now).code


def _given_last(session: Session) -> dict[str, Value]:
    """The values of the last run, without those that were only what the document had for them then."""
    given_to = session.shown.last_inputs_of
    had = {item.name: item.default for item in declared_inputs(given_to)} if given_to is not None else {}
    return {name: value for name, value in session.shown.last_inputs.items() if value != had.get(name)}


def ask_about_runs(
    window: QWidget,
    documents: list[Document],
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
    ask(
        window,
        text,
        more,
        [
            (way, _Role.AcceptRole, leave),
            ("Stop", _Role.DestructiveRole, stop),
            ("Cancel", _Role.RejectRole, lambda: None),
        ],
    )
