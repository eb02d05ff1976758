"""From a person's settings to the options of a run."""

from __future__ import annotations

from pathlib import Path

from app.bridge import EngineThread
from app.settings.addressed import AddressedModels
from app.settings.preferences import Preferences
from app.window.run_facts import limit_of, models_of
from engine.document.model import Workflow
from engine.models.catalogue import default_model_name
from engine.models.model_names import SCRIPTED_PREFIX
from engine.runner.options import RunOptions


def usual_model(preferences: Preferences) -> str:
    """The model where a document names none."""
    return preferences.default_model or default_model_name()


def run_options(workflow: Workflow, engine: EngineThread, preferences: Preferences, folder: Path | None) -> RunOptions:
    """The options of a run.

    Args:
        workflow: The document.
        engine: Has the models of the program.
        preferences: The person's settings.
        folder: The folder that the run may read and write; None for none.
    """
    default = usual_model(preferences)
    tokens = limit_of(workflow, "budget_tokens", preferences.budget_tokens)
    # A scripted model remembers what it has said: each run reads its script anew.
    is_scripted = any(name.startswith(SCRIPTED_PREFIX) for name in models_of(workflow, default))
    return RunOptions(
        default_model=default,
        budget_usd=limit_of(workflow, "budget_usd", preferences.budget_usd),
        budget_tokens=None if tokens is None else int(tokens),
        max_iterations_cap=preferences.max_iterations_cap,
        folder=folder,
        models=None if is_scripted else AddressedModels(engine.models, preferences.servers),
    )
