"""Options of a run, which the person who starts it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeGuard

from engine.exits import MAX_ITERATIONS_CAP
from engine.models.protocol import Model
from engine.nodes.node_registry import Registry, builtin_registry
from engine.runner.budget import Budget
from engine.runner.run_storage import RunStorage
from engine.values import Value


class Catalog(Protocol):
    """Creates the models of a run."""

    def get(self, name: str, api_base: str | None = None) -> Model:
        """Return a model by name and server address.

        Raises:
            ModelError: There is no such model.
        """
        ...

    async def close(self) -> None:
        """Release the resources of the models."""
        ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run.

    Attributes:
        model: Model for all nodes, which overrides the document; None for the document's models.
        default_model: Model if neither the node nor the document names one; None for the program's default.
        budget_usd: Budget in US dollars; None for the document's budget.
        budget_tokens: Token limit; None for the document's limit.
        max_iterations_cap: Maximum number of iterations of any loop.
        allow_unknown_price: Whether models of unknown price may run under a budget in US dollars.
        folder: The one folder that file tools may read and write; None for none.
        allow_private_addresses: Whether `http_get` may reach loopback and private networks.
        allow_code: Whether the tools `python` and `shell` may run code on this computer.
        confirm_calls: Whether a person confirms calls that are not part of the document: commands, code and calls of
            servers' tools from an edge or a model, and hosts from an edge. Once for each distinct value.
        models: Catalog of models, which stays open; None for a catalog of the run's own.
        registry: The node types.
        store: Stores the run; None if it is not stored.
        source: File of the document, for the history; empty if it was never saved.
        run_id: Id of the run; empty for a new one. Two runs with one id are stored once.
        shared_budget: Budget shared by several runs in the same event loop; None for none.
    """

    model: str | None = None
    default_model: str | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    max_iterations_cap: int = MAX_ITERATIONS_CAP
    allow_unknown_price: bool = False
    folder: Path | None = None
    allow_private_addresses: bool = False
    allow_code: bool = False
    confirm_calls: bool = False
    models: Catalog | None = None
    registry: Registry = field(default_factory=builtin_registry)
    store: RunStorage | None = None
    source: str = ""
    run_id: str = ""
    shared_budget: Budget | None = None


def options_to_json(options: RunOptions, default_model: str | None = None) -> dict[str, Value]:
    """Return the options that the history stores, so that the run can be resumed.

    Permissions (`folder`, `allow_private_addresses`, `allow_code`, `confirm_calls`) are not stored: a person grants
    them again for each resume.

    Args:
        options: The options.
        default_model: The default model that was found, if the options name none.
    """
    return {
        "model": options.model,
        "default_model": options.default_model or default_model,
        "budget_usd": options.budget_usd,
        "budget_tokens": options.budget_tokens,
        "max_iterations_cap": options.max_iterations_cap,
        "allow_unknown_price": options.allow_unknown_price,
    }


def options_with_stored(options: RunOptions, stored: Mapping[str, Value]) -> RunOptions:
    """Complete options with the stored options of a run.

    Stored options may come from another person's file: invalid values are ignored.
    """
    model, default, usd = stored.get("model"), stored.get("default_model"), stored.get("budget_usd")
    tokens, cap = stored.get("budget_tokens"), stored.get("max_iterations_cap")
    return replace(
        options,
        model=options.model or (model if isinstance(model, str) else None),
        default_model=options.default_model or (default if isinstance(default, str) else None),
        budget_usd=options.budget_usd if not _is_number(usd) or options.budget_usd is not None else float(usd),
        budget_tokens=options.budget_tokens if not _is_count(tokens) or options.budget_tokens is not None else tokens,
        max_iterations_cap=max(options.max_iterations_cap, cap) if _is_count(cap) else options.max_iterations_cap,
        allow_unknown_price=options.allow_unknown_price or stored.get("allow_unknown_price") is True,
    )


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _is_count(value: Value) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
