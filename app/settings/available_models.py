"""Models to choose from, found without network or keyring access, and the lookup of models on custom servers."""

from __future__ import annotations

import os
from collections.abc import Iterable

from app.settings.preferences import Preferences
from app.settings.preferences_schema import CustomServer
from engine.models.catalog import Models, known_examples
from engine.models.keys import Keys
from engine.models.protocol import EMBEDDED_MODEL, Model
from engine.models.providers import provider_named


def available_model_names(preferences: Preferences) -> list[str]:
    """Return the available models, the most likely choice first.

    These are the default model, recent models, the built-in model, models on custom and local servers, and an example
    for each provider with an API key.
    """
    values = preferences.values
    default = [values.default_model] if values.default_model else []
    custom = [server.model for server in values.servers]
    names = [*default, *values.recent_models, EMBEDDED_MODEL, *custom, *values.local_models]
    return list(dict.fromkeys([*names, *_examples(values.providers_with_key)]))


def is_placeholder(name: str) -> bool:
    """Return whether a name is only a placeholder (`openrouter/VENDOR/MODEL`)."""
    return name.rpartition("/")[2] == "MODEL"


def _examples(providers_with_key: Iterable[str]) -> list[str]:
    known = known_examples(_KnownKeys(frozenset(providers_with_key)))
    return [model.name for model in known if model.available and not is_placeholder(model.name)]


class _KnownKeys(Keys):
    """Knows which providers have a key without accessing the keyring."""

    def __init__(self, providers: frozenset[str]) -> None:
        super().__init__()
        self._providers = providers

    def get(self, provider: str) -> str | None:
        """Return an empty text if there is a key, else None."""
        known = provider_named(provider)
        in_environment = any(os.environ.get(variable, "").strip() for variable in known.key_variables)
        return "" if in_environment or known.name in self._providers else None


class CustomServerModels:
    """Model catalogue for `RunOptions.models` that adds the addresses of custom servers.

    An address in the workflow takes precedence. The models are shared by all runs and not closed with a run.
    """

    def __init__(self, models: Models, servers: Iterable[CustomServer]) -> None:
        self._models = models
        self._addresses = {server.model: server.address for server in servers}

    def get(self, name: str, api_base: str | None = None) -> Model:
        """Return a model by name.

        Raises:
            ModelError: The model does not exist.
        """
        return self._models.get(name, api_base or self._addresses.get(name))

    async def close(self) -> None:
        """Do nothing: other runs use the models too."""
