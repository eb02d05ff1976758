"""The names of models that a chooser offers. No network, no keyring: it is asked while somebody opens a list."""

from __future__ import annotations

import os
from collections.abc import Iterable

from app.settings.preferences import Preferences
from app.settings.preferences_schema import OwnServer
from engine.models.base import Model
from engine.models.catalogue import Models, known_examples
from engine.models.keys import Keys
from engine.models.model_names import EMBEDDED_MODEL
from engine.models.providers import provider_named


def model_names(preferences: Preferences) -> list[str]:
    """The models that can most likely be called, the likeliest choice first.

    The default, those used of late, the built-in one, the person's own servers, those found on local servers, and an
    example of each provider of which there is a key.
    """
    choices = preferences.choices
    default = [choices.default_model] if choices.default_model else []
    own = [server.model for server in choices.servers]
    names = [*default, *choices.recent_models, EMBEDDED_MODEL, *own, *choices.local_models]
    return list(dict.fromkeys([*names, *_examples(choices.providers_with_key)]))


def is_placeholder(name: str) -> bool:
    """Whether a name stands for others (`openrouter/VENDOR/MODEL`)."""
    return name.rpartition("/")[2] == "MODEL"


def _examples(providers_with_key: Iterable[str]) -> list[str]:
    known = known_examples(_KnownKeys(frozenset(providers_with_key)))
    return [model.name for model in known if model.available and not is_placeholder(model.name)]


class _KnownKeys(Keys):
    """Tells of which providers there is a key, by what is known of the keyring without asking it."""

    def __init__(self, providers: frozenset[str]) -> None:
        super().__init__()
        self._providers = providers

    def get(self, provider: str) -> str | None:
        """An empty text where there is a key, None where there is none."""
        known = provider_named(provider)
        in_environment = any(os.environ.get(variable, "").strip() for variable in known.key_variables)
        return "" if in_environment or known.name in self._providers else None


class AddressedModels:
    """A catalogue for `RunOptions.models`: where a document gives no address, the address of the person's own server.

    A document's own address comes first. The models belong to the program and are not closed with a run.
    """

    def __init__(self, models: Models, servers: Iterable[OwnServer]) -> None:
        self._models = models
        self._addresses = {server.model: server.address for server in servers}

    def get(self, name: str, api_base: str | None = None) -> Model:
        """The model of that name.

        Raises:
            ModelError: There is no such model.
        """
        return self._models.get(name, api_base or self._addresses.get(name))

    async def close(self) -> None:
        """Leave the models open: other runs use them too."""
