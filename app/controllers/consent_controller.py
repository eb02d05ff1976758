"""Ask for consent before the first run of a workflow from elsewhere, listing everything that it would use.

New documents and templates are the user's own; a file is trusted once the user has approved its content. Approvals are
shared with the command line: see `engine.store.consent`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox, QWidget

from app.dialogs import add_text_area, ask_question, is_dialog_open
from app.session import Session
from app.worker import Worker
from engine.document.model import Workflow
from engine.runner.capabilities import Capabilities, capabilities_in, capabilities_of
from engine.store.consent import approve, is_approved, is_fully_trusted

_Role = QMessageBox.ButtonRole
_MOST_LINES: Final = 14
_LONGEST_LINE: Final = 120


class ConsentController(QObject):
    """Asks for consent, and records it."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._worker = Worker(self)

    def before_run(self, session: Session, start: Callable[[], object]) -> None:
        """Start a run, asking first if its workflow is not trusted and uses more than models."""
        workflow = session.workflow
        reach = capabilities_in(session.structure_now)
        if not reach:
            start()
        elif session.is_trusted:
            self.remember(workflow, fully=not session.confirms_calls)
            start()
        else:

            def run(fully: bool) -> None:
                if capabilities_in(session.structure_now) == reach:  # otherwise a subflow was read, for example
                    session.is_trusted, session.confirms_calls = True, not fully
                self.before_run(session, start)

            def answered(known: tuple[bool, bool]) -> None:
                is_known, fully = known
                self._answered(session.name, reach, partial(run, fully), is_known)

            self._worker.ask(lambda: (is_approved(workflow), is_fully_trusted(workflow)), answered)

    def before_resuming(self, name: str, workflow: Workflow, proceed: Callable[[], object]) -> None:
        """Resume a stored run, asking first if its workflow is not trusted.

        Args:
            name: The name shown in the question.
            workflow: The workflow that will run.
            proceed: Called with consent.
        """

        def trusted() -> None:
            self.remember(workflow, fully=False)
            proceed()

        def look() -> tuple[Capabilities, bool]:
            reach = capabilities_of(workflow)
            return reach, not reach or is_approved(workflow)

        def answered(found: tuple[Capabilities, bool]) -> None:
            reach, is_known = found
            self._answered(name, reach, trusted if reach else proceed, is_known)

        self._worker.ask(look, answered)

    def remember(self, workflow: Workflow, then: Callable[[], object] = lambda: None, *, fully: bool = True) -> None:
        """Record that a workflow is trusted, `fully` if it is the user's own; `then` is called afterwards."""
        self._worker.ask(partial(approve, workflow, fully=fully), lambda _is_noted: then())

    def _answered(self, name: str, reach: Capabilities, proceed: Callable[[], object], is_known: bool) -> None:
        if is_known:
            proceed()
            return
        if is_dialog_open():
            return
        box = ask_question(
            self._window,
            f"Do you trust “{name}”?",
            f"It hasn't run on this computer before. Besides models, it can use:{_listed(reach)}",
            [("Trust and run", _Role.YesRole, proceed)],
        )
        if not _listed(reach):
            add_text_area(box, "\n".join(reach.lines()), "What it can use")


def is_known(workflow: Workflow) -> bool:
    """Return whether a workflow runs without asking: it was approved, or only calls models. Call it in a thread."""
    return not capabilities_of(workflow) or is_approved(workflow)


def _listed(reach: Capabilities) -> str:
    """Return the list if it fits into the question; a longer one gets a text area."""
    text = "\n".join(reach.lines())
    is_short = text.count("\n") < _MOST_LINES and all(len(line) <= _LONGEST_LINE for line in text.split("\n"))
    return f"\n\n{text}" if is_short and not reach.commands else ""
