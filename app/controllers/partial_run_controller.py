"""Run a part of a document: up to the selected node, only it, or from it on, with values of the last run."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject

from app.controllers.key_controller import KeyController
from app.controllers.run_controller import RunController, runs_code
from app.history.store_client import StoreClient
from app.window.document_page import PART, DocumentPage
from app.worker import Worker
from engine.document.problems import DocumentError
from engine.errors import EngineError
from engine.plan.dependencies import everything_in
from engine.plan.partial_run import Extent, Part
from engine.runner.declared_inputs import declared_inputs
from engine.store.partial_runs import (
    MissingValuesError,
    PartialRunPlan,
    last_run,
    plan_partial_run,
    start_partial_run,
)
from engine.store.store_protocol import RunSummary, Store, StoreError
from engine.values import Value


class PartialRunController(QObject):
    """Implements *Run up to here*, *Run this node* and *Run from here*.

    Args:
        runs: Runs whole documents; its `run_blocked` also reports a part with errors.
    """

    def __init__(self, runs: RunController, store: StoreClient, keys: KeyController) -> None:
        super().__init__(runs)
        self._runs = runs
        self._store = store
        self._keys = keys
        self._worker = Worker(self)

    def run(self, document: DocumentPage, extent: Extent) -> None:
        """Run a part of a document around the selected node, which stands for the loop that it is in."""
        if document.session.selection:
            self._begin(document, Part(extent, document.session.selection[0]), ask=False)

    def run_with(self, document: DocumentPage, part: Part) -> None:
        """Ask for the inputs of a part and for permissions, and run it."""
        self._begin(document, part, ask=True)

    def _begin(self, document: DocumentPage, part: Part, *, ask: bool) -> None:
        session = document.session
        if session.shown.live is None and not session.is_past:
            session.seal()
            document.bars.drop(PART)  # also if it is refused for another reason
            self._runs.when_allowed(session, partial(self._plan, document, part, {}, ask=ask))

    def _plan(self, document: DocumentPage, part: Part, inputs: dict[str, Value], *, ask: bool = False) -> None:
        if document.is_closed:
            return
        session, store = document.session, self._store.store
        workflow, run_id = session.workflow, session.shown.run_id
        options = self._runs.options(document, session.structure_now)

        def plan() -> PartialRunPlan:
            last = None if store is None else _last_run(store, run_id, options.source)
            return plan_partial_run(store, workflow, part, inputs, options, last=last)

        def start_or_ask(planned: PartialRunPlan) -> None:
            if document.is_closed or session.shown.live is not None:
                return
            if ask or _lacks_input(planned) or (runs_code(document) and not document.may_run_code):
                self._ask(document, part, planned)
            else:
                running = everything_in(planned.plan.structure, planned.rerun)
                self._keys.before_run(session, partial(start, planned), running)

        def start(planned: PartialRunPlan) -> None:
            if document.is_closed or session.shown.live is not None:
                return
            begin = partial(start_partial_run, store, planned, options)
            session.shown.last_inputs = {**session.shown.last_inputs, **planned.inputs}
            session.shown.last_inputs_of = workflow
            session.shown.follow(planned.plan.structure, begin)

        self._worker.ask(plan, start_or_ask, partial(self._refuse, document, part))

    def _ask(self, document: DocumentPage, part: Part, planned: PartialRunPlan) -> None:
        """Ask for the inputs of a part and for permissions, and run it."""
        declared = declared_inputs(document.session.workflow)
        inputs = [item for item in declared if item.name in planned.plan.parameters]

        def run(inputs: dict[str, Value]) -> None:
            if document.may_run_code or not runs_code(document):
                self._plan(document, part, inputs)
            else:
                document.session.refused.emit("This part of the workflow did not run, because it may not run code.")

        self._runs.ask_for_inputs(document, inputs, planned.inputs, run)

    def _refuse(self, document: DocumentPage, part: Part, error: EngineError) -> None:
        if isinstance(error, MissingValuesError):
            again = partial(self._plan, document, Part(Extent.UNTIL, part.node), {})
            document.bars.say(PART, error.message, "warning", [("Run up to here instead", again)])
        elif isinstance(error, DocumentError):
            document.session.reveal_problems()
            document.session.refused.emit("This part of the workflow has errors and cannot run. See Problems.")
            self._runs.run_blocked.emit(document)
        else:
            document.session.refused.emit(str(error))


def _last_run(store: Store, run_id: str, source: str) -> RunSummary | None:
    """Return the run that is shown if the history has it, else the last one of the file."""
    try:
        if run_id:
            return store.find(run_id)
    except StoreError:  # it was not stored, or has been deleted
        pass
    return last_run(store, source)


def _lacks_input(planned: PartialRunPlan) -> bool:
    given = planned.inputs
    return any(name not in given and config.default is None for name, config in planned.plan.parameters.items())
