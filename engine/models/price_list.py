"""litellm's list of models with their prices and context lengths, read from its file.

litellm itself takes seconds to import; the file takes some tens of milliseconds, so it is read on first use and not on
an event loop.
"""

from __future__ import annotations

import importlib.util
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from engine.models.protocol import LongPrice, Price
from engine.models.providers import provider_named

_FILE: Final = "model_prices_and_context_window_backup.json"
_ABOVE: Final = re.compile(r"(?:input|output)_cost_per_token_above_(\d+)k_tokens")
"""Keys of higher prices above a number of thousand tokens; keys of other kinds of calls have a longer name."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*(/[A-Za-z0-9_@~][A-Za-z0-9_.:@+-]*)*")
_NOT_CALLABLE: Final = re.compile(r"ft:|together-ai-[\d.]+b")
"""Prices of fine-tuned models, and of all models of a size."""


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model of the list.

    Attributes:
        name: Its name in workflows (`openai/gpt-4o-mini`).
        price: Its price; None if unknown.
        context_tokens: Its context length in tokens.
    """

    name: str
    price: Price | None
    context_tokens: int


def price_of_entry(entry: Mapping[str, Any]) -> Price | None:
    """The price in an entry of litellm's list; None without one."""
    read, written = _usd(entry, "input_cost_per_token"), _usd(entry, "output_cost_per_token")
    if read is None or written is None:
        return None
    return Price(read, written, _usd(entry, "input_cost_per_request") or 0.0, _long_prices(entry, read, written))


def _long_prices(entry: Mapping[str, Any], read: float, written: float) -> tuple[LongPrice, ...]:
    """The prices above numbers of tokens; without a higher price there, the usual one."""
    prices: list[LongPrice] = []
    for thousands in sorted({int(found[1]) for key in entry if (found := _ABOVE.fullmatch(key))}):
        read = _usd(entry, f"input_cost_per_token_above_{thousands}k_tokens") or read
        written = _usd(entry, f"output_cost_per_token_above_{thousands}k_tokens") or written
        prices.append(LongPrice(thousands * 1000, read, written))
    return tuple(prices)


def _usd(entry: Mapping[str, Any], key: str) -> float | None:
    value = entry.get(key)
    return float(value) if isinstance(value, int | float) else None


def _today() -> str:
    return time.strftime("%Y-%m-%d")


def litellm_folder() -> Path | None:
    """The folder of litellm's package, found without importing it; None if it is not installed."""
    installed = importlib.util.find_spec("litellm")
    return None if installed is None or installed.origin is None else Path(installed.origin).parent


@cache
def price_entries() -> Mapping[str, Mapping[str, Any]]:
    """The list by name of the model; empty if litellm is not installed or its file is unreadable."""
    folder = litellm_folder()
    if folder is None:
        return {}
    try:
        return json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


@cache
def provider_models(prefix: str) -> tuple[PricedModel, ...]:
    """The chat models of a provider in the list, sorted by name, without those that are no longer served.

    Args:
        prefix: The prefix of the names of its models (`openai`).
    """
    if provider_named(prefix).local:
        return ()
    return tuple(sorted(_models_of(prefix), key=lambda model: model.name))


def _models_of(prefix: str) -> Iterator[PricedModel]:
    today = _today()
    owners = {prefix, f"{prefix}_chat"}
    names: set[str] = set()
    for key, entry in price_entries().items():
        if entry.get("litellm_provider") not in owners or entry.get("mode") != "chat":
            continue
        name = key if key.startswith(f"{prefix}/") else f"{prefix}/{key}"
        is_retired = str(entry.get("deprecation_date") or today) < today
        if is_retired or name in names or not _NAME.fullmatch(key) or _NOT_CALLABLE.match(key):
            continue
        context = entry.get("max_input_tokens") or entry.get("max_tokens")
        if isinstance(context, int):  # the others are not models but services of a provider
            names.add(name)
            yield PricedModel(name, price_of_entry(entry), context)
