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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.errors import EngineError, Fix
from engine.models.protocol import ModelError, ModelErrorKind
from engine.models.providers import PROVIDERS, AddressError, Origin, Provider, origin_of, provider_named
from engine.system_keyring import KeyringError, forget_secret, keep_secret, read_secret

_REDACTED = "…"
_LONG_KEY = 12
_SHORT_KEY = 8
"""Minimum lengths of keys that are redacted in replies; a short one only if it contains a digit."""


class KeyStoreError(EngineError):
    """A key that cannot be used, or a keyring that cannot store one."""


class KeySource(StrEnum):
    """Where a key comes from."""

    ENVIRONMENT = "environment"
    SESSION = "session"
    KEYRING = "keyring"


def host_variable(host: str) -> str:
    """The environment variable with the key for a host: LOOPWRIGHT_KEY_LOCALHOST_8080 for `localhost:8080`.

    A hyphen becomes two underscores: with one, `api-example.com` would get the key of `api.example.com`.
    """
    characters = (c if c.isalnum() else "__" if c == "-" else "_" for c in host.upper())
    return "LOOPWRIGHT_KEY_" + "".join(characters)


def key_variables(provider: str) -> tuple[str, ...]:
    """The environment variables that may contain the key of a provider or of `host:NAME`, the usual one first."""
    _, _, host = provider.partition("host:")
    return (host_variable(host),) if host else provider_named(provider).key_variables


class Keys:
    """The user's keys. Safe to use from several threads; its `repr` never shows a key.

    Args:
        environment: The environment variables; None for those of the process.
        with_keyring: Whether to look for keys in the system's keyring, which may ask the user to unlock it.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, *, with_keyring: bool = True) -> None:
        self._environment = os.environ if environment is None else environment
        self._session: dict[str, str] = {}
        self._from_keyring: dict[str, str] = {}
        self._keyring_failed = not with_keyring
        self._handed_out: frozenset[str] = frozenset()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def get(self, provider: str) -> str | None:
        """The key of a provider (`openai`) or a host (`host:NAME`): from the environment, this session or the keyring.

        Asks the keyring the first time, which may take a while: not to be called on an event loop.

        Raises:
            KeyStoreError: The key found cannot be a key.
        """
        user = _user(provider)
        with self._lock:
            found = self._find(user)
            if found is None:
                return None
            source, key = found
            key = _checked(key, f"The key for {user} in the {source}", user)
            if source is KeySource.KEYRING:
                self._from_keyring[user] = key
            self._handed_out |= {key}
            return key

    def source(self, provider: str) -> KeySource | None:
        """Where `get` finds the key, which may be invalid; None if there is none. As slow as `get`."""
        with self._lock:
            found = self._find(_user(provider))
            return None if found is None else found[0]

    def set(self, provider: str, key: str, *, session_only: bool = False) -> None:
        """Store a key in the system's keyring, or for this session in memory only.

        Raises:
            KeyStoreError: This cannot be a key, or the computer has no keyring that can store it.
        """
        user = _user(provider)
        key = _checked(key, f"The key for {provider}", user)
        with self._lock:
            if session_only:
                self._session[user] = key
                return
            try:
                keep_secret(user, key)
            except KeyringError:
                raise _no_keyring("store", provider) from None
            self._keyring_failed = False
            self._session.pop(user, None)  # an older key of the session would take precedence
            self._from_keyring[user] = key

    def delete(self, provider: str) -> None:
        """Delete a provider's key from this session and the keyring; a missing key is not an error.

        Raises:
            KeyStoreError: The computer has no keyring that can be changed.
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
        """Redact every key that was ever handed out."""
        # Without the lock: a thread may hold it while the keyring asks the user, and this is called on event loops.
        return _redact(text, self._handed_out)

    def redact_reply(self, text: str) -> str:
        """Redact every key that a model would not write by chance in a reply.

        A key that is set only to satisfy a local server (`none`, `ollama`) is an ordinary word there.
        """
        return _redact(text, filter(_is_unmistakable, self._handed_out))

    def possible_key(self, text: str) -> int:
        """The number of characters at the end of a partial reply that may be the start of a key."""
        longest = 0
        for key in filter(_is_unmistakable, self._handed_out):
            tail = text[-len(key) + 1 :]
            start = tail.find(key[0])
            while start >= 0 and not key.startswith(tail[start:]):
                start = tail.find(key[0], start + 1)
            longest = max(longest, len(tail) - start if start >= 0 else 0)
        return longest

    def _find(self, user: str) -> tuple[KeySource, str] | None:
        """Find a key that is not checked yet, and where it is."""
        for variable in key_variables(user):
            if value := self._environment.get(variable, "").strip():
                return KeySource.ENVIRONMENT, value
        if user in self._session:
            return KeySource.SESSION, self._session[user]
        key = self._from_keyring.get(user) or self._ask_keyring(user)
        return (KeySource.KEYRING, key) if key else None

    def _ask_keyring(self, user: str) -> str | None:
        if not self._keyring_failed:
            try:
                return read_secret(user)
            except KeyringError:  # many computers have no working keyring
                self._keyring_failed = True
        return None


def _redact(text: str, keys: Iterable[str]) -> str:
    for key in sorted(keys, key=len, reverse=True):
        text = text.replace(key, _REDACTED)
    return text


def _user(provider: str) -> str:
    return provider if provider.startswith("host:") else provider_named(provider).name


def _is_unmistakable(key: str) -> bool:
    return len(key) >= _LONG_KEY or (len(key) >= _SHORT_KEY and any(c.isdigit() for c in key))


def _checked(key: str, what: str, user: str) -> str:
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        message = f"{what} is empty or contains characters that no key has."
        raise KeyStoreError(message, "Copy the whole key again.", fix=Fix.ADD_KEY.of(user))
    return key


def _no_keyring(action: str, provider: str) -> KeyStoreError:
    return KeyStoreError(
        f"This computer has no keyring that can {action} the key for {provider}.",
        "Use the key for this session only.",
        fix=Fix.USE_SESSION_KEY.of(provider),
    )


ADD_KEY = "Add a valid key."
NO_KEY = "none"
"""Sent where no key is needed; without it the OpenAI client would look for one of its own."""

# A name becomes part of addresses; for some providers even the address that the key is sent to.
_MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*(/[A-Za-z0-9_@~][A-Za-z0-9_.:@+-]*)+")
# These ask the user to log in, on the console, during the call.
_INTERACTIVE = frozenset({"chatgpt", "github_copilot"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the requests of one model go.

    Attributes:
        provider: The provider.
        address: Its address; None for the provider's default.
        api_key: The key that is sent; None lets the provider's client find one in the user's environment.
        title: Its name at the start of a sentence.
        key_name: The name under which `Keys` has its key: the provider's, or `host:NAME`.
        foreign: Whether it is not the provider's own: nothing of the user's account there may be sent.
    """

    provider: Provider
    address: str | None
    api_key: str | None = field(repr=False)
    title: str
    key_name: str
    foreign: bool = False


def find_endpoint(name: str, api_base: str | None, keys: Keys, environment: Mapping[str, str]) -> Endpoint:
    """Find out where a model's requests go. May ask the keyring: not to be called on an event loop.

    Args:
        name: The model's full name (`openai/gpt-4o-mini`).
        api_base: The address from the document or the command line.
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
            f"{provider.title} requires a login in the browser, which is not possible in a workflow.",
            "Choose a model that is called with a key.",
        )
    try:
        return _find(provider, prefix in PROVIDERS, api_base or None, keys, environment)
    except AddressError as error:
        raise ModelError(ModelErrorKind.BAD_REQUEST, error.message, error.remedy) from None
    except KeyStoreError as error:
        raise ModelError(ModelErrorKind.AUTHENTICATION, error.message, error.remedy, fix=error.fix) from None


def missing_key(name: str, api_base: str | None, keys: Keys, environment: Mapping[str, str]) -> ModelError | None:
    """Return the error of a model that cannot be called because its key is missing or cannot be a key; else None.

    The arguments are those of `find_endpoint`, and it is as slow.
    """
    try:
        find_endpoint(name, api_base, keys, environment)
    except ModelError as error:
        return error if error.fix.startswith(Fix.ADD_KEY) else None
    return None


def _find(
    provider: Provider, listed: bool, api_base: str | None, keys: Keys, environment: Mapping[str, str]
) -> Endpoint:
    if not listed:
        if api_base is not None:
            raise ModelError(
                ModelErrorKind.BAD_REQUEST,
                f"A model of {provider.title} cannot be given an address.",
                "For an OpenAI-compatible server of your own write the model as openai/MODEL.",
            )
        return Endpoint(provider, None, keys.get(provider.name), provider.title, provider.name)
    chosen = provider.address_in(environment)
    own = {origin_of(address) for address in provider.addresses}
    trusted = own | ({origin_of(chosen)} if chosen else set[Origin]())
    address = api_base or chosen or (provider.addresses[0] if provider.local else None)
    origin = origin_of(address) if address else origin_of(provider.addresses[0])
    if origin not in trusted:
        return _at_host(provider, address, origin, keys.get(f"host:{origin.name}"), foreign=True)
    key = keys.get(provider.name)
    if origin not in own:
        return _at_host(provider, address, origin, key or keys.get(f"host:{origin.name}"), foreign=False)
    if key is None and not provider.local:
        add_key = Fix.ADD_KEY.of(provider.name)
        raise ModelError(ModelErrorKind.MISSING_KEY, f"There is no key for {provider.title}.", ADD_KEY, fix=add_key)
    return Endpoint(provider, address, key or NO_KEY, provider.title, provider.name)


def _at_host(provider: Provider, address: str | None, origin: Origin, key: str | None, *, foreign: bool) -> Endpoint:
    key_name = f"host:{origin.name}"
    return Endpoint(provider, address, key or NO_KEY, f"The server at {origin.name}", key_name, foreign)
