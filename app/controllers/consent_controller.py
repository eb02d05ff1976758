"""Asking before the first run of a workflow from elsewhere, with everything that it would use.

What a person made or opened as a template here is their own; a file is, once they have approved what it says. Approvals
are kept for the command line too (`engine.store.consent`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox, QWidget

from app.dialogs import add_text_area, ask_question, default_to_cancel, is_dialog_open
from app.session import Session
from app.worker import Worker
from engine.document.model import Workflow
from engine.runner.reach import Reach, reach_in, reach_of
from engine.store.consent import approve, is_approved, is_fully_trusted

_Role = QMessageBox.ButtonRole
_MOST_LINES: Final = 14
_LONGEST_LINE: Final = 120


class ConsentController(QObject):
    """Knows what may be run.

    Args:
        window: Over which is asked.
    """

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._worker = Worker(self)

    def before_run(self, session: Session, start: Callable[[], object]) -> None:
        """Start a run, after asking where its workflow came from elsewhere and would use more than models."""
        workflow = session.workflow
        reach = reach_in(session.structure_now)
        if not reach:
            start()
        elif session.is_trusted:
            self.remember(workflow, fully=not session.confirms_calls)
            start()
        else:

            def run(fully: bool) -> None:
                session.is_trusted, session.confirms_calls = True, not fully
                self.before_run(session, start)

            def answered(known: tuple[bool, bool]) -> None:
                is_known, fully = known
                self._answered(session.name, reach, partial(run, fully), is_known)

            self._worker.ask(lambda: (is_approved(workflow), is_fully_trusted(workflow)), answered)

    def before_resuming(self, name: str, workflow: Workflow, go_on: Callable[[], object]) -> None:
        """Go on with a run of the history, after asking where its workflow is somebody else's.

        Args:
            name: What to call it.
            workflow: The document as it ran.
            go_on: What to do then.
        """

        def trusted() -> None:
            self.remember(workflow, fully=False)
            go_on()

        def look() -> tuple[Reach, bool]:
            reach = reach_of(workflow)
            return reach, not reach or is_approved(workflow)

        def answered(found: tuple[Reach, bool]) -> None:
            reach, is_known = found
            self._answered(name, reach, trusted if reach else go_on, is_known)

        self._worker.ask(look, answered)

    def remember(self, workflow: Workflow, then: Callable[[], object] = lambda: None, *, fully: bool = True) -> None:
        """Note that a document is trusted, `fully` where it is the person's own work; `then` is done after that."""
        self._worker.ask(partial(approve, workflow, fully=fully), lambda _is_noted: then())

    def _answered(self, name: str, reach: Reach, go_on: Callable[[], object], is_known: bool) -> None:
        if is_known:
            go_on()
            return
        if is_dialog_open():
            return
        box = ask_question(
            self._window,
            f"Do you trust “{name}”?",
            f"It has not been run here before. Besides models, it would use:{_listed(reach)}",
            [("Trust and run", _Role.AcceptRole, go_on), ("Cancel", _Role.RejectRole, lambda: None)],
        )
        default_to_cancel(box)
        if not _listed(reach):
            add_text_area(box, "\n".join(reach.lines()), "What it would use")


def is_known(workflow: Workflow) -> bool:
    """Whether a document may be run unasked: a person has approved it, or it only calls models. For a thread."""
    return not reach_of(workflow) or is_approved(workflow)


def _listed(reach: Reach) -> str:
    """What there is, where it fits into the question; a field of its own takes what is longer."""
    text = "\n".join(reach.lines())
    is_short = text.count("\n") < _MOST_LINES and all(len(line) <= _LONGEST_LINE for line in text.split("\n"))
    return f"\n\n{text}" if is_short and not reach.commands else ""
