"""What a model costs, from the price list that litellm brings along. It asks nobody.

Prices change and tiers differ, so what comes out of it is an estimate; `Reply.cost_usd` is better where a provider
gives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from engine.models.base import LongPrice, Price
from engine.models.providers import AddressError, origin_of, provider_named

_ABOVE: Final = re.compile(r"(?:input|output)_cost_per_token_above_(\d+)k_tokens")
"""What is dearer in calls of more than so many thousand tokens; for calls of another kind, more follows in the name."""


def local_price(litellm: ModuleType, name: str, api_base: str | None, environment: Mapping[str, str]) -> Price | None:
    """The price of a model.

    0.0 for a provider that runs on the user's own machine. None where nobody knows: a model that the list does not
    have, and any model at another address than its provider's, since what stands there may be anything, a paid one too.

    Args:
        litellm: The module with the list.
        name: The model's full name.
        api_base: The address given for it.
        environment: The user's environment variables, which may send the provider elsewhere.
    """
    prefix, _, model = name.partition("/")
    provider = provider_named(prefix)
    chosen = next((value for variable in provider.address_variables if (value := environment.get(variable))), None)
    address = api_base or chosen
    if provider.local:
        # Ollama's own service is reached like a local one, and is not free.
        return None if address and "ollama.com" in address else Price(0.0, 0.0)
    if address and not _is_own(address, provider.addresses):
        return None
    listed: Mapping[str, Mapping[str, Any]] = litellm.model_cost
    entry = listed.get(name) or listed.get(model) or {}
    if not str(entry.get("litellm_provider", "")).startswith(prefix):
        return None
    read, written = _usd(entry, "input_cost_per_token"), _usd(entry, "output_cost_per_token")
    if read is None or written is None:
        return None
    return Price(read, written, _usd(entry, "input_cost_per_request") or 0.0, _long_prices(entry, read, written))


def _long_prices(entry: Mapping[str, Any], read: float, written: float) -> tuple[LongPrice, ...]:
    """The prices above so many tokens; what is not dearer there has its usual price."""
    steps = sorted({int(found[1]) for key in entry if (found := _ABOVE.fullmatch(key))})
    prices: list[LongPrice] = []
    for thousands in steps:
        read = _usd(entry, f"input_cost_per_token_above_{thousands}k_tokens") or read
        written = _usd(entry, f"output_cost_per_token_above_{thousands}k_tokens") or written
        prices.append(LongPrice(thousands * 1000, read, written))
    return tuple(prices)


def _usd(entry: Mapping[str, Any], key: str) -> float | None:
    value = entry.get(key)
    return float(value) if isinstance(value, int | float) else None


def _is_own(address: str, addresses: tuple[str, ...]) -> bool:
    try:
        return origin_of(address) in {origin_of(own) for own in addresses}
    except AddressError:
        return False
