"""The user's keys: where they come from, and to which servers they may be sent.

Keys come from the environment, this session, or the system's keyring, never from a file. `Keys` can redact them in any
text. `find_endpoint` is the one place that binds keys to hosts: a document may name any address, but a provider's key
goes only to the provider's own host, or to where the user's own environment variables send the provider. No connection
is opened here.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.errors import EngineError
from engine.models.protocol import ModelError, ModelErrorKind
from engine.models.providers import PROVIDERS, AddressError, Origin, Provider, origin_of, provider_named
from engine.system_keyring import KeyringError, forget_secret, keep_secret, read_secret

_STRUCK_OUT = "…"
_LONG_KEY = 12
_SHORT_KEY = 8
"""Characters from which on a key is struck out of replies; a short one only with a digit in it."""


class KeyStoreError(EngineError):
    """A key that cannot be used, or a keyring that cannot keep one."""


class KeySource(StrEnum):
    """Where a key comes from."""

    ENVIRONMENT = "environment"
    SESSION = "session"
    KEYRING = "keyring"


def host_variable(host: str) -> str:
    """The environment variable with the key for a host: LOOPWRIGHT_KEY_LOCALHOST_8080 for `localhost:8080`.

    A hyphen gives two underscores: were it one, `api-example.com` would be handed the key of `api.example.com`.
    """
    signs = (sign if sign.isalnum() else "__" if sign == "-" else "_" for sign in host.upper())
    return "LOOPWRIGHT_KEY_" + "".join(signs)


class Keys:
    """The user's keys. Safe to use from several threads; its text never shows a key."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._session: dict[str, str] = {}
        self._from_keyring: dict[str, str] = {}
        self._keyring_failed = False
        self._handed_out: frozenset[str] = frozenset()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def get(self, provider: str) -> str | None:
        """The key of a provider (`openai`): from its environment variable, else this session, else the keyring.

        Asks the keyring the first time, which may take a while: not to be called on an event loop.

        Raises:
            KeyStoreError: There is one, but no key looks like it.
        """
        known = provider_named(provider)
        return self._find(known.name, known.key_variables)

    def get_for_host(self, host: str) -> str | None:
        """The key that the user keeps for a host (`localhost:8080`).

        Raises:
            KeyStoreError: There is one, but no key looks like it.
        """
        return self._find(f"host:{host}", (host_variable(host),))

    def source(self, provider: str) -> KeySource | None:
        """Where `get` finds the key of a provider; None where there is none. As slow as `get`.

        Raises:
            KeyStoreError: The keyring has one, but no key looks like it.
        """
        known = provider_named(provider)
        with self._lock:
            if any(self._environment.get(variable, "").strip() for variable in known.key_variables):
                return KeySource.ENVIRONMENT
            if known.name in self._session:
                return KeySource.SESSION
            found = self._from_keyring.get(known.name) or self._ask_keyring(known.name)
            return KeySource.KEYRING if found else None

    def set(self, provider: str, key: str, *, session_only: bool = False) -> None:
        """Keep a key in the system's keyring, or for this session in memory alone.

        `provider` may also be `host:NAME`.

        Raises:
            KeyStoreError: No key looks like this one, or the machine has no keyring that can keep it.
        """
        key = _checked(key, f"The key for {provider}")
        user = _user(provider)
        with self._lock:
            if session_only:
                self._session[user] = key
                return
            try:
                keep_secret(user, key)
            except KeyringError:
                raise _no_keyring("keep", provider) from None
            self._keyring_failed = False
            self._session.pop(user, None)  # the newer one counts, and that of the session would come before it
            self._from_keyring[user] = key

    def delete(self, provider: str) -> None:
        """Forget a provider's key, in this session and in the keyring; one that is not there is no error.

        Raises:
            KeyStoreError: The machine has no keyring that can be changed.
        """
        user = _user(provider)
        with self._lock:
            in_session = self._session.pop(user, None) is not None
            self._from_keyring.pop(user, None)
            try:
                forget_secret(user)
            except KeyringError:
                if not in_session:
                    raise _no_keyring("delete", provider) from None

    def redact(self, text: str) -> str:
        """The text with every key that was ever handed out struck out."""
        # Without the lock: a keyring may hold it for as long as it asks the user, and this is called on event loops.
        for key in sorted(self._handed_out, key=len, reverse=True):
            text = text.replace(key, _STRUCK_OUT)
        return text

    def redact_reply(self, text: str) -> str:
        """The text of a reply with every key struck out that a model would not write by chance.

        A key that is set only to please a local server (`none`, `ollama`) is a word like any other there.
        """
        for key in sorted(filter(_is_unmistakable, self._handed_out), key=len, reverse=True):
            text = text.replace(key, _STRUCK_OUT)
        return text

    def possible_key(self, text: str) -> int:
        """How many characters at the end of a reply's text, as far as it has come, may be the beginning of a key."""
        held = 0
        for key in filter(_is_unmistakable, self._handed_out):
            tail = text[-len(key) + 1 :]
            place = tail.find(key[0])
            while place >= 0 and not key.startswith(tail[place:]):
                place = tail.find(key[0], place + 1)
            held = max(held, len(tail) - place if place >= 0 else 0)
        return held

    def _find(self, user: str, variables: tuple[str, ...]) -> str | None:
        with self._lock:
            for variable in variables:
                if value := self._environment.get(variable, "").strip():
                    return self._hand_out(_checked(value, f"The key in {variable}"))
            found = self._session.get(user) or self._from_keyring.get(user) or self._ask_keyring(user)
            return None if found is None else self._hand_out(found)

    def _ask_keyring(self, user: str) -> str | None:
        if self._keyring_failed:
            return None
        try:
            found = read_secret(user)
        except KeyringError:  # a machine without a working keyring is an ordinary machine
            self._keyring_failed = True
            return None
        if not found:
            return None
        self._from_keyring[user] = _checked(found, f"The key for {user} in the keyring")
        return self._from_keyring[user]

    def _hand_out(self, key: str) -> str:
        self._handed_out |= {key}
        return key


def _user(provider: str) -> str:
    return provider if provider.startswith("host:") else provider_named(provider).name


def _is_unmistakable(key: str) -> bool:
    return len(key) >= _LONG_KEY or (len(key) >= _SHORT_KEY and any(sign.isdigit() for sign in key))


def _checked(key: str, what: str) -> str:
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise KeyStoreError(f"{what} is empty or holds signs that no key has.", "Copy it once more, whole and alone.")
    return key


def _no_keyring(action: str, provider: str) -> KeyStoreError:
    _, _, host = provider.partition("host:")
    variable = host_variable(host) if host else provider_named(provider).key_variables[0]
    return KeyStoreError(
        f"This machine has no keyring that could {action} the key for {provider}.",
        f"Put the key into the environment variable {variable}, or keep it for this session only.",
    )


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
