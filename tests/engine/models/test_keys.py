"""Sources of keys, and that keys are never shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from keyring.backends import fail, null
from keyring.errors import PasswordDeleteError

from engine.errors import EngineError
from engine.models.keys import Keys, KeySource, KeyStoreError, host_variable
from tests.wording import mentions


class MemoryKeyring(KeyringBackend):
    """A working keyring that lives as long as the test."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.asked = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("not there")


class BrokenKeyring(MemoryKeyring):
    """A keyring whose error message contains the key."""

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        raise ZeroDivisionError(f"{service} {username} sk-from-the-keyring")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise ZeroDivisionError(password)


@pytest.fixture(autouse=True)
def _own_keyring_is_put_back() -> Iterator[None]:
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


@pytest.fixture
def ring() -> MemoryKeyring:
    ring = MemoryKeyring()
    keyring.set_keyring(ring)
    return ring


@pytest.fixture(params=[fail.Keyring, BrokenKeyring])
def no_ring(request: pytest.FixtureRequest) -> KeyringBackend:
    ring: KeyringBackend = request.param()
    keyring.set_keyring(ring)
    return ring


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("gemini", "GOOGLE_API_KEY"),
        ("ollama_chat", "OLLAMA_API_KEY"),
        ("together_ai", "TOGETHERAI_API_KEY"),
        ("someone_new", "SOMEONE_NEW_API_KEY"),
    ],
)
def test_key_comes_from_the_providers_variable(ring: MemoryKeyring, provider: str, variable: str) -> None:
    assert Keys({variable: " sk-1\n"}).get(provider) == "sk-1"
    assert ring.asked == 0


def test_environment_precedes_session_precedes_keyring(ring: MemoryKeyring) -> None:
    environment: dict[str, str] = {}
    keys = Keys(environment)
    keys.set("openai", "sk-ring")
    assert keys.get("openai") == "sk-ring"

    keys.set("openai", "sk-session", session_only=True)
    assert keys.get("openai") == "sk-session"

    environment["OPENAI_API_KEY"] = "sk-environment"
    assert keys.get("openai") == "sk-environment"

    environment["OPENAI_API_KEY"] = "  "
    assert keys.get("openai") == "sk-session"
    assert ring.kept == {("loopwright", "openai"): "sk-ring"}


def test_source_matches_where_a_key_is_found(ring: MemoryKeyring) -> None:
    environment: dict[str, str] = {}
    keys = Keys(environment)
    assert keys.source("openai") is None

    keys.set("openai", "sk-ring")
    assert keys.source("openai") is KeySource.KEYRING

    keys.set("openai", "sk-session", session_only=True)
    assert keys.source("openai") is KeySource.SESSION

    environment["OPENAI_API_KEY"] = "sk-environment"
    assert keys.source("openai") is KeySource.ENVIRONMENT
    assert keys.source("anthropic") is None

    ring.kept["loopwright", "anthropic"] = "no key"
    with pytest.raises(KeyStoreError, match="in the keyring"):
        keys.get("anthropic")
    assert keys.source("anthropic") is KeySource.KEYRING


def test_keyring_is_asked_once_per_key(ring: MemoryKeyring) -> None:
    ring.kept["loopwright", "openai"] = "sk-ring"
    keys = Keys({})

    assert [keys.get("openai") for _ in range(3)] == ["sk-ring"] * 3
    assert ring.asked == 1


def test_key_added_to_the_keyring_later_is_found(ring: MemoryKeyring) -> None:
    keys = Keys({})
    assert keys.get("openai") is None

    ring.kept["loopwright", "openai"] = "sk-late"

    assert keys.get("openai") == "sk-late"


def test_providers_share_no_keys_except_both_ollama_prefixes(ring: MemoryKeyring) -> None:
    keys = Keys({})
    keys.set("ollama_chat", "sk-ollama")

    assert keys.get("ollama") == "sk-ollama"
    assert keys.get("openai") is None


def test_stored_key_replaces_the_session_key(ring: MemoryKeyring) -> None:
    keys = Keys({})
    keys.set("openai", "sk-mistyped", session_only=True)

    keys.set("openai", "sk-right")

    assert keys.get("openai") == "sk-right"
    assert keys.source("openai") is KeySource.KEYRING


def test_key_of_a_host_is_only_for_that_host(ring: MemoryKeyring) -> None:
    ring.kept["loopwright", "host:localhost:8080"] = "sk-8080"
    keys = Keys({"LOOPWRIGHT_KEY_LOCALHOST_9090": "sk-9090", "OPENAI_API_KEY": "sk-openai"})

    assert keys.get("host:localhost:8080") == "sk-8080"
    assert keys.get("host:localhost:9090") == "sk-9090"
    assert keys.get("host:localhost:7070") is None
    assert keys.get("host:openai") is None


def test_host_with_hyphen_does_not_get_the_key_of_host_with_dot() -> None:
    assert host_variable("api.example.com") == "LOOPWRIGHT_KEY_API_EXAMPLE_COM"
    assert host_variable("api-example.com") == "LOOPWRIGHT_KEY_API__EXAMPLE_COM"


def test_broken_keyring_has_no_keys_and_is_asked_once(no_ring: KeyringBackend) -> None:
    keys = Keys({})

    assert [keys.get("openai"), keys.get("openai"), keys.get("host:localhost:1")] == [None] * 3
    assert getattr(no_ring, "asked", 1) == 1


@pytest.mark.parametrize("provider", ["openai", "host:localhost:80"])
def test_storing_without_a_keyring_is_refused_with_a_remedy(no_ring: KeyringBackend, provider: str) -> None:
    with pytest.raises(KeyStoreError) as caught:
        Keys({}).set(provider, "sk-secret")

    assert isinstance(caught.value, EngineError)
    assert mentions(caught.value.message, f"no keyring … {provider}")
    assert caught.value.fix == f"use_session_key:{provider}"
    assert "sk-secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_keyring_that_stores_nothing_counts_as_none() -> None:
    keyring.set_keyring(null.Keyring())
    keys = Keys({})

    with pytest.raises(KeyStoreError, match="no keyring that can store the key for openai"):
        keys.set("openai", "sk-secret")

    assert keys.get("openai") is None


def test_session_key_needs_no_keyring(no_ring: KeyringBackend) -> None:
    keys = Keys({})
    keys.set("openai", "sk-session", session_only=True)
    assert keys.get("openai") == "sk-session"

    keys.delete("openai")

    assert keys.get("openai") is None


def test_deleting_without_a_keyring_is_refused(no_ring: KeyringBackend) -> None:
    with pytest.raises(KeyStoreError, match="delete the key for openai"):
        Keys({}).delete("openai")


def test_deleted_key_is_gone_and_can_be_deleted_again(ring: MemoryKeyring) -> None:
    keys = Keys({})
    keys.set("openai", "sk-ring")
    keys.set("openai", "sk-session", session_only=True)

    keys.delete("openai")
    keys.delete("openai")

    assert keys.get("openai") is None
    assert ring.kept == {}


@pytest.mark.parametrize("key", ["", "   ", "sk one", "sk-é", "sk-\x00", "sk-1\nX-Header: 2"])
def test_invalid_key_is_neither_stored_nor_returned(ring: MemoryKeyring, key: str) -> None:
    with pytest.raises(KeyStoreError) as caught:
        Keys({}).set("openai", key)
    assert not key.strip() or key not in str(caught.value)

    if key.strip():
        with pytest.raises(KeyStoreError, match="The key for openai in the environment"):
            Keys({"OPENAI_API_KEY": key}).get("openai")
        ring.kept["loopwright", "openai"] = key
        with pytest.raises(KeyStoreError, match="in the keyring"):
            Keys({}).get("openai")


def test_no_repr_and_no_file_shows_a_key(ring: MemoryKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys = Keys({"OPENAI_API_KEY": "sk-environment"})
    keys.set("anthropic", "sk-ring")
    keys.set("gemini", "sk-session", session_only=True)
    assert [keys.get("openai"), keys.get("anthropic"), keys.get("gemini")] == [
        "sk-environment",
        "sk-ring",
        "sk-session",
    ]

    assert f"{keys!r} {keys}" == "Keys() Keys()"
    assert list(tmp_path.iterdir()) == []


def test_every_used_key_is_redacted_longest_first(ring: MemoryKeyring) -> None:
    keys = Keys({"OPENAI_API_KEY": "sk-1", "LOOPWRIGHT_KEY_HOST": "sk-1-and-more", "GEMINI_API_KEY": "unused"})
    keys.get("openai")
    keys.get("host:host")

    assert keys.redact("a sk-1 b sk-1-and-more c unused") == "a … b … c unused"


@given(text=st.text(), key=st.text("abcdefgh-0123456789", min_size=8))
def test_redacted_text_contains_no_key(text: str, key: str) -> None:
    keys = Keys({"OPENAI_API_KEY": key})
    keys.get("openai")

    assert key not in keys.redact(json.dumps({"said": text + key + text, key: key}))
