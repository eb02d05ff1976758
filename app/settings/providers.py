"""What the list of providers shows: who they are and where a key comes from, never the key itself. No Qt here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import EngineError
from engine.models.catalogue import KnownModel, known_models
from engine.models.keys import Keys, KeySource
from engine.models.model_names import EMBEDDED_MODEL
from engine.models.providers import PROVIDERS

EMBEDDED_LINE = "Built-in demo model (135M): real, but not reliable"


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """One line of the list.

    Attributes:
        name: How keyring and settings call the provider; empty for the built-in model, which needs no key.
        title: What people call it.
        model: A model of it, as an example.
        key: Where its key comes from, in words.
        has_key: Whether it can be called as far as keys go.
        removable: Whether the key is the program's to forget.
        variable: The environment variable that has its key now; empty where none does.
        problem: What is wrong, in a sentence; empty where nothing is.
    """

    name: str
    title: str
    model: str
    key: str
    has_key: bool
    removable: bool = False
    variable: str = ""
    problem: str = ""


def look_up(keys: Keys, environment: Mapping[str, str] = os.environ) -> list[ProviderRow]:
    """The list as it is now. Asks the keyring, which may take a while: not on the window's thread."""
    rows = []
    for model in known_models(keys):
        provider = PROVIDERS.get(model.name.partition("/")[0])
        if model.name == EMBEDDED_MODEL:
            rows.append(ProviderRow("", model.title, model.name, "Needs no key", True, problem=model.how_to_get))
        elif provider is not None and not provider.local and model.available is not None:
            rows.append(_row(model, provider.name, provider.key_variables, keys, environment))
    return rows


def _row(
    model: KnownModel, name: str, variables: tuple[str, ...], keys: Keys, environment: Mapping[str, str]
) -> ProviderRow:
    variable = next((variable for variable in variables if environment.get(variable, "").strip()), "")
    try:
        source = keys.source(name)
        keys.get(name)
    except EngineError as error:
        words = f"{variable} cannot be used" if variable else "Cannot be used"
        return ProviderRow(name, model.title, model.name, words, False, not variable, variable, str(error))
    words = {
        KeySource.ENVIRONMENT: f"From {variable}",
        KeySource.SESSION: "For this session only",
        KeySource.KEYRING: "In the system keyring",
        None: "No key",
    }[source]
    removable = source in {KeySource.SESSION, KeySource.KEYRING}
    return ProviderRow(name, model.title, model.name, words, source is not None, removable, variable)
