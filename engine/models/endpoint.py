"""Where a model's requests go, and with which key: the one place that binds keys to hosts.

A document may name any address. The provider's key goes only to the provider's own host, or to where the user's own
environment variables send the provider. No connection is opened here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.models.base import ModelError, ModelErrorKind
from engine.models.keys import Keys, KeyStoreError, host_variable
from engine.models.providers import PROVIDERS, AddressError, Origin, Provider, origin_of, provider_named

NO_KEY = "none"
"""What is sent where no key is needed; without it the OpenAI client would look for one of its own."""

# A name becomes part of addresses; some providers even take one that is an address for the place to send the key to.
_MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*(/[A-Za-z0-9_@~][A-Za-z0-9_.:@+-]*)+")
# These ask the user to log in, on the console, while the call waits.
_INTERACTIVE = frozenset({"chatgpt", "github_copilot"})


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the requests of one model go.

    Attributes:
        provider: Who serves it.
        address: Where; None leaves it to the provider's usual place.
        api_key: What is sent as the key; None lets the provider's client find one in the user's environment.
        title: How sentences call the place, at their start.
        key_remedy: What to do when there is no key, or a wrong one.
        foreign: Whether it is none of the provider's own places: nothing of the user's account there may be sent.
    """

    provider: Provider
    address: str | None
    api_key: str | None = field(repr=False)
    title: str
    key_remedy: str
    foreign: bool = False


def find_destination(name: str, api_base: str | None, keys: Keys, environment: Mapping[str, str]) -> Destination:
    """Find out where a model's requests go. May ask the keyring: not to be called on an event loop.

    Args:
        name: The model's full name (`openai/gpt-4o-mini`).
        api_base: The address that the document or the command line gives.
        keys: The user's keys.
        environment: The user's environment variables.

    Raises:
        ModelError: The name or address cannot be used, or a key is missing.
    """
    if _MODEL_NAME.fullmatch(name) is None:
        raise ModelError(
            ModelErrorKind.NOT_FOUND,
            f"{name[:200]!r} is not the name of a model.",
            "Write it as PROVIDER/MODEL, for example openai/gpt-4o-mini or ollama_chat/llama3.2.",
        )
    prefix = name.split("/", 1)[0]
    provider = provider_named(prefix)
    if prefix in _INTERACTIVE:
        raise ModelError(
            ModelErrorKind.UNAVAILABLE,
            f"{provider.title} asks for a login in the browser, which a workflow cannot give.",
            "Choose a model that is called with a key.",
        )
    try:
        return _find(provider, prefix in PROVIDERS, api_base or None, keys, environment)
    except AddressError as error:
        raise ModelError(ModelErrorKind.BAD_REQUEST, error.message, error.remedy) from None
    except KeyStoreError as error:
        raise ModelError(ModelErrorKind.AUTHENTICATION, error.message, error.remedy) from None


def _find(
    provider: Provider, listed: bool, api_base: str | None, keys: Keys, environment: Mapping[str, str]
) -> Destination:
    if not listed:
        return _unlisted(provider, api_base, keys)
    chosen = next((value for name in provider.address_variables if (value := environment.get(name))), None)
    own = {origin_of(address) for address in provider.addresses}
    trusted = own | ({origin_of(chosen)} if chosen else set[Origin]())
    address = api_base or chosen or (provider.addresses[0] if provider.local else None)
    place = origin_of(address) if address else origin_of(provider.addresses[0])
    if place not in trusted:
        return _at_host(provider, address, place, keys.get_for_host(place.name), foreign=True)
    key = keys.get(provider.name)
    if place not in own:
        return _at_host(provider, address, place, key or keys.get_for_host(place.name), foreign=False)
    remedy = _key_remedy(provider.key_variables[0])
    if key is None and not provider.local:
        raise ModelError(ModelErrorKind.MISSING_KEY, f"There is no key for {provider.title}.", remedy)
    return Destination(provider, address, key or NO_KEY, provider.title, remedy)


def _unlisted(provider: Provider, api_base: str | None, keys: Keys) -> Destination:
    if api_base is not None:
        raise ModelError(
            ModelErrorKind.BAD_REQUEST,
            f"A model of {provider.title} cannot be given an address.",
            "For a server of your own that speaks like OpenAI's write the model as openai/MODEL.",
        )
    return Destination(provider, None, keys.get(provider.name), provider.title, _key_remedy(provider.key_variables[0]))


def _at_host(provider: Provider, address: str | None, place: Origin, key: str | None, *, foreign: bool) -> Destination:
    remedy = _key_remedy(host_variable(place.name))
    return Destination(provider, address, key or NO_KEY, f"The server at {place.name}", remedy, foreign)


def _key_remedy(variable: str) -> str:
    where = f"the environment variable {variable} or into the system keyring"
    return f"Put a valid key into {where} (see `loopwright models`)."
