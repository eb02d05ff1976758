"""Find models whose key or file is missing, before they are called, and ask for the key.

A missing key or file is a problem of this computer, not of the document: it is shown among the document's problems and
prevents nothing. Both are looked up in a thread, because the keyring may ask the user.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox, QWidget
from shiboken6 import isValid

from app.dialogs import ask_question
from app.engine_thread import EngineThread
from app.inspector.model_list import ModelSource
from app.session import Session
from app.settings.key_dialog import KeyDialog
from app.settings.preferences import Preferences
from app.worker import Worker
from engine.document.problems import Problem, Severity
from engine.errors import EngineError, Fix
from engine.models.keys import Keys, missing_key
from engine.models.providers import PROVIDERS
from engine.nodes.node_names import node_name
from engine.plan.compiler import models_called
from engine.plan.model_files import is_named_file, missing_file_problem

MISSING_KEY: Final = "missing-key"
_CHANGES: Final = {"default_model", "servers", "providers_with_key", "model_files"}
_Role = QMessageBox.ButtonRole

UsedModel = tuple[str, str, str, str | None]
"""The id of a node, the setting that chooses its model, the model, and the address of its server."""


class KeyController(QObject):
    """Finds missing keys and files of models, and asks for keys.

    Args:
        models: The models to choose from, which are looked up again after a key was added.
    """

    def __init__(self, window: QWidget, engine: EngineThread, preferences: Preferences, models: ModelSource) -> None:
        super().__init__(window)
        self._window = window
        self._engine = engine
        self._preferences = preferences
        self._models = models
        self._worker = Worker(self)
        self._checked: WeakKeyDictionary[Session, tuple[UsedModel, ...]] = WeakKeyDictionary()
        self.dialog: KeyDialog | None = None
        preferences.changed.connect(self._follow)

    def follow(self, session: Session) -> None:
        """Check the models of a document now and whenever they change."""
        session.analyzed.connect(partial(self.check, session))
        if session.structure.workflow is session.workflow:  # otherwise it is being analyzed, in a thread
            self.check(session)

    def check(self, session: Session) -> None:
        """Look for missing keys and files, unless the models are the same as last time."""
        used = self._models_of(session)
        if self._checked.get(session) == used:
            return
        self._checked[session] = used
        if not used:
            session.show_setup_problems([])
            return

        def show(problems: list[Problem]) -> None:
            if isValid(session) and self._checked.get(session) == used:  # otherwise other models are shown or asked for
                session.show_setup_problems(problems)

        self._worker.ask(partial(_setup_problems, used, self._engine.models.keys), show)

    def before_run(
        self, session: Session, start: Callable[[], object], nodes: Container[str | None] | None = None
    ) -> None:
        """Start a run, asking first for a missing key that it needs.

        Args:
            session: The document.
            start: Starts the run.
            nodes: The nodes that run, at any depth; None for all of the document.
        """
        self.check(session)
        if self._worker.is_busy:  # its answers arrive in order
            self._worker.ask(lambda: None, lambda _done: self._ask_before_run(session, start, nodes))
        else:
            self._ask_before_run(session, start, nodes)

    def ask_for_key(self, name: str, then: Callable[[], object] = lambda: None) -> None:
        """Ask for a key and store it.

        Args:
            name: Whose key it is: a provider, or `host:NAME`.
            then: Called when it is stored.
        """
        if self.dialog is not None:
            self.dialog.deleteLater()
        self.dialog = KeyDialog(self._engine, name, self._window)
        self.dialog.key_saved.connect(lambda: self._note_key(then))
        self.dialog.open()

    def _ask_before_run(
        self, session: Session, start: Callable[[], object], nodes: Container[str | None] | None
    ) -> None:
        missing = [problem for problem in session.problems if problem.code == MISSING_KEY]
        missing = [problem for problem in missing if nodes is None or problem.node in nodes]
        if not missing:
            start()
            return
        first = missing[0]
        key = first.fix.removeprefix(Fix.ADD_KEY.of(""))
        names = [node_name(session.workflow, problem.node or "") for problem in missing]
        ask_question(
            self._window,
            first.message,
            f"Needed by: {', '.join(dict.fromkeys(names))}.",
            [
                (
                    "Add key…",
                    _Role.AcceptRole,
                    lambda: self.ask_for_key(key, lambda: self.before_run(session, start, nodes)),
                ),
                ("Run anyway", _Role.DestructiveRole, start),
            ],
        )

    def _note_key(self, then: Callable[[], object]) -> None:
        self._recheck()
        self._models.refresh()
        then()

    def _follow(self, names: frozenset[str]) -> None:
        if names & _CHANGES:
            self._recheck()

    def _recheck(self) -> None:
        """Check all documents again: a key, the default model, a server or the files have changed."""
        sessions = list(self._checked)
        self._checked.clear()
        for session in sessions:
            if isValid(session):
                self.check(session)

    def _models_of(self, session: Session) -> tuple[UsedModel, ...]:
        """Return the first model of each node that runs; its fallbacks may do without a key."""
        values, structure = self._preferences.values, session.structure_now
        workflow = structure.workflow
        addresses = values.server_addresses
        own = workflow.settings.get("model")
        default = own if isinstance(own, str) and own else values.model
        used: list[UsedModel] = []
        for node, choice in models_called(structure, workflow.nodes_by_id):
            name = choice.name or default
            if _may_need_key(name) or is_named_file(name):  # opening a document looks at no path that it names
                field = structure.resolution.nodes[node].spec.model_field
                used.append((node, field, name, choice.api_base or addresses.get(name)))
        return tuple(dict.fromkeys(used))


def _may_need_key(name: str) -> bool:
    provider = PROVIDERS.get(name.partition("/")[0])
    return provider is not None and not provider.local


def _setup_problems(used: Iterable[UsedModel], keys: Keys) -> list[Problem]:
    """Return a problem for each node whose model has no key or file. Accesses the keyring, which may be slow."""
    found: list[Problem] = []
    for node, field, name, address in used:
        if is_named_file(name):
            problem = missing_file_problem(name, node, field)
        else:
            problem = _missing_key_problem(missing_key(name, address, keys, os.environ), node, field)
        if problem is not None:
            found.append(problem)
    return found


def _missing_key_problem(error: EngineError | None, node: str, field: str) -> Problem | None:
    if error is None:
        return None
    remedy = "Add a key, or choose another model."
    return Problem(MISSING_KEY, error.message, remedy, Severity.WARNING, node, field=field, fix=error.fix)
