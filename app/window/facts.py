"""What the window says of the document that is shown: the models in use, and what of the budget is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.controllers.run_controller import default_model
from app.run_status import ModelsInUse, run_budget
from app.session import Session
from app.window.document_page import DocumentPage
from engine.models.model_names import SCRIPTED_PREFIX

if TYPE_CHECKING:
    from app.window.main_window import MainWindow


class Facts(QObject):
    """Finds the facts.

    Args:
        window: Whose bar shows them.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._models = ModelsInUse()

    def show(self, document: DocumentPage) -> None:
        """Show those of a document."""
        session, choices, bar = document.session, self._window.preferences, self._window.run_bar
        running = session.shown.live is not None and session.shown.picture is not None and session.shown.picture.models
        bar.show_models(session.shown.picture.models if running else self.models(session))
        shown = session.shown.workflow if running else session.workflow
        bar.show_budget(run_budget(shown, choices.budget_usd, choices.budget_tokens, session.shown.picture))

    def models(self, session: Session) -> tuple[str, ...]:
        """The models that a document names, and the person's usual one where a node names none."""
        return self._models.of(session.workflow, default_model(self._window.preferences))

    def remember_models(self, session: Session) -> None:
        """What a run calls is offered first from now on."""
        for name in reversed(self.models(session)):
            if not name.startswith(SCRIPTED_PREFIX):
                self._window.preferences.remember_model(name)
