"""From a person's settings to the options of a run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from app.bridge import EngineThread
from app.settings.addressed import AddressedModels
from app.settings.preferences import Preferences
from app.window.run_facts import limit_of, models_of
from engine.document.model import Workflow
from engine.models.catalogue import Models, default_model_name
from engine.models.model_names import RECORDED_PREFIX, SCRIPTED_PREFIX
from engine.runner.journal import RunKeeper
from engine.runner.options import Catalogue, RunOptions


def usual_model(preferences: Preferences) -> str:
    """The model where a document names none."""
    return preferences.default_model or default_model_name()


def run_options(
    workflow: Workflow,
    engine: EngineThread,
    preferences: Preferences,
    folder: Path | None,
    store: RunKeeper | None = None,
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
    default = usual_model(preferences)
    tokens = limit_of(workflow, "budget_tokens", preferences.budget_tokens)
    return RunOptions(
        default_model=default,
        budget_usd=limit_of(workflow, "budget_usd", preferences.budget_usd),
        budget_tokens=None if tokens is None else int(tokens),
        max_iterations_cap=preferences.max_iterations_cap,
        folder=folder,
        models=_models(models_of(workflow, default), engine, preferences),
        store=store,
        source=source,
    )


def options_of_past(models: Iterable[str], engine: EngineThread, preferences: Preferences) -> RunOptions:
    """The options of a run that goes on, or of a fork: models and budgets are those that the history has kept.

    Args:
        models: The models that it may call.
        engine: Has the models of the program.
        preferences: The person's settings.
    """
    return RunOptions(max_iterations_cap=preferences.max_iterations_cap, models=_models(models, engine, preferences))


def _models(names: Iterable[str], engine: EngineThread, preferences: Preferences) -> Catalogue | None:
    # A scripted or recorded model remembers what it has said: each run reads anew what it plays.
    called = tuple(names)
    if any(name.startswith(RECORDED_PREFIX) for name in called):
        from engine.store import open_store
        from engine.store.recorded import recorded_models

        return Models(engine.models.keys, recorded_models(lambda: closing(open_store())))
    is_scripted = any(name.startswith(SCRIPTED_PREFIX) for name in called)
    return None if is_scripted else AddressedModels(engine.models, preferences.servers)
