"""The program's models, with those of the person's own servers found by their name alone. No Qt here."""

from __future__ import annotations

from collections.abc import Iterable

from app.settings.choices import OwnServer
from engine.models.base import Model
from engine.models.catalogue import Models


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
