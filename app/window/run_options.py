"""From a person's settings to the options of a run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, nullcontext
from pathlib import Path

from app.bridge import EngineThread
from app.settings.available_models import AddressedModels
from app.settings.preferences import Preferences
from app.window.permissions import Permissions
from app.window.run_facts import limit_of, models_of
from engine.document.model import Workflow
from engine.models.catalogue import Models, default_model_name
from engine.models.model_names import RECORDED_PREFIX, SCRIPTED_PREFIX
from engine.runner.options import Catalogue, RunOptions
from engine.store.base import Store


def usual_model(preferences: Preferences) -> str:
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
    default = usual_model(preferences)
    tokens = limit_of(workflow, "budget_tokens", preferences.budget_tokens)
    return RunOptions(
        default_model=default,
        budget_usd=limit_of(workflow, "budget_usd", preferences.budget_usd),
        budget_tokens=None if tokens is None else int(tokens),
        max_iterations_cap=preferences.max_iterations_cap,
        folder=folder,
        models=_models(models_of(workflow, default), engine, preferences, store),
        store=store,
        source=source,
    )


def options_of_past(
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
    return None if is_scripted else AddressedModels(engine.models, preferences.servers)
