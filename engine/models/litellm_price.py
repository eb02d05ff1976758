"""What a model costs, from the price list that litellm brings along. It asks nobody.

Prices change and tiers differ, so what comes out of it is an estimate; `Reply.cost_usd` is better where a provider
gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from engine.models.base import Price
from engine.models.providers import AddressError, origin_of, provider_named


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
    read, written = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not str(entry.get("litellm_provider", "")).startswith(prefix):
        return None
    if not isinstance(read, int | float) or not isinstance(written, int | float):
        return None
    return Price(float(read), float(written))


def _is_own(address: str, addresses: tuple[str, ...]) -> bool:
    try:
        return origin_of(address) in {origin_of(own) for own in addresses}
    except AddressError:
        return False
