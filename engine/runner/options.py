"""What the person who starts a run decides, whatever the document says."""

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
        allow_code: Whether the tools `python` and `shell` may run code on this machine.
        confirm_calls: Whether a person is asked before calls that the document does not hold: commands, code and calls
            of servers' tools that an edge or a model brings, hosts that an edge brings. Once for each distinct value.
        models: Where models come from, left open at the end; None: a catalogue of the run's own.
        registry: The node types.
        store: Where the run is kept while it goes; None: nowhere.
        source: The file that the document came from, for the history; empty where it never was saved.
        run_id: The id of the run; empty for a new one. A run that is begun twice under one id is kept once.
        shared_budget: What several runs in the same event loop may spend together; None: nothing is shared.
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
    models: Catalogue | None = None
    registry: Registry = field(default_factory=builtin_registry)
    store: RunStorage | None = None
    source: str = ""
    run_id: str = ""
    shared_budget: Budget | None = None


def options_to_json(options: RunOptions, default_model: str | None = None) -> dict[str, Value]:
    """What the history keeps of the options, so that the run can go on another day.

    What a run may touch (`folder`, `allow_private_addresses`, `allow_code`, `confirm_calls`) is not part of it: that is
    allowed again each time.

    Args:
        options: The options.
        default_model: The model that stands for the default, should it have been found rather than named.
    """
    return {
        "model": options.model,
        "default_model": options.default_model or default_model,
        "budget_usd": options.budget_usd,
        "budget_tokens": options.budget_tokens,
        "max_iterations_cap": options.max_iterations_cap,
        "allow_unknown_price": options.allow_unknown_price,
    }


def options_with_stored(options: RunOptions, kept: Mapping[str, Value]) -> RunOptions:
    """The options, with what the history kept of a run's wherever they say nothing themselves.

    The text may come from a file that somebody else made: what does not fit is left out.
    """
    model, default, usd = kept.get("model"), kept.get("default_model"), kept.get("budget_usd")
    tokens, cap = kept.get("budget_tokens"), kept.get("max_iterations_cap")
    return replace(
        options,
        model=options.model or (model if isinstance(model, str) else None),
        default_model=options.default_model or (default if isinstance(default, str) else None),
        budget_usd=options.budget_usd if not _is_number(usd) or options.budget_usd is not None else float(usd),
        budget_tokens=options.budget_tokens
        if options.budget_tokens is not None
        else tokens
        if _is_count(tokens)
        else None,
        max_iterations_cap=max(options.max_iterations_cap, cap) if _is_count(cap) else options.max_iterations_cap,
        allow_unknown_price=options.allow_unknown_price or kept.get("allow_unknown_price") is True,
    )


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _is_count(value: Value) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
