"""What the person who starts a run decides, whatever the document says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from engine.models.base import Model
from engine.nodes.loop import MAX_ITERATIONS_CAP
from engine.nodes.registry import Registry, builtin_registry


class Catalogue(Protocol):
    """Where a run gets its models."""

    def get(self, name: str, api_base: str | None = None) -> Model:
        """The model of that name, served at that address.

        Raises:
            ModelError: There is no such model.
        """
        ...

    async def close(self) -> None:
        """Give back what the models hold."""
        ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is to be done.

    Attributes:
        model: The model that every node calls, whatever the document says; None leaves it to the document.
        default_model: The model where neither node nor document names one; None: the program's own.
        budget_usd: The most US dollars that the run may spend; None leaves it to the document.
        budget_tokens: The most tokens that the run may use; None leaves it to the document.
        max_iterations_cap: The most iterations of any loop.
        allow_unknown_price: Whether a model of unknown price may be used although there is a money budget.
        folder: The one folder that file tools may read and write; None allows none.
        allow_private_addresses: Whether `http_get` may reach loopback and private networks.
        models: Where models come from, left open at the end; None: a catalogue of the run's own.
        registry: The node types.
    """

    model: str | None = None
    default_model: str | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    max_iterations_cap: int = MAX_ITERATIONS_CAP
    allow_unknown_price: bool = False
    folder: Path | None = None
    allow_private_addresses: bool = False
    models: Catalogue | None = None
    registry: Registry = field(default_factory=builtin_registry)
