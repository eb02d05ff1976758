"""Show the models in use and the spent budget in the run bar."""

from __future__ import annotations

from app.controllers.run_controller import default_model
from app.runs.run_status import ModelsInUse, run_budget
from app.session import Session
from app.settings.preferences import Preferences
from app.window.run_bar import RunBar
from engine.models.protocol import SCRIPTED_PREFIX


class RunBarPresenter:
    """Finds out both for a document.

    Args:
        run_bar: The bar that shows them.
        preferences: The user's settings, for default model, budget and recent models.
    """

    def __init__(self, run_bar: RunBar, preferences: Preferences) -> None:
        self._run_bar = run_bar
        self._preferences = preferences
        self._models = ModelsInUse()

    def show(self, session: Session) -> None:
        """Show the models and the budget of a document, or of its run."""
        view_model, workflow = session.shown.view_model, session.workflow
        names = self.models(session)
        if session.shown.live is not None and view_model is not None and view_model.models:
            names, workflow = view_model.models, session.shown.workflow or workflow
        self._run_bar.show_models(names)
        self._run_bar.show_budget(
            run_budget(workflow, self._preferences.budget_usd, self._preferences.budget_tokens, view_model)
        )

    def models(self, session: Session) -> tuple[str, ...]:
        """The models that a document uses; the default model where a node names none."""
        return self._models.of(session.workflow, default_model(self._preferences))

    def remember_models(self, session: Session) -> None:
        """Put the models of a run first in the list of recent models."""
        for name in reversed(self.models(session)):
            if not name.startswith(SCRIPTED_PREFIX):
                self._preferences.remember_model(name)
