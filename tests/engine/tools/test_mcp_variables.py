"""Values of `${NAME}` in settings: the environment, then this session, then the keyring."""

from __future__ import annotations

from collections.abc import Iterator

import keyring
import pytest
from keyring.backends import fail, null

from engine.tools.mcp_settings import SecretVariables
from tests.engine.models.test_keys import BrokenKeyring, MemoryKeyring


@pytest.fixture(autouse=True)
def _own_keyring() -> Iterator[None]:
    """A working keyring that lives as long as the test."""
    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeyring())
    yield
    keyring.set_keyring(before)


def test_stored_variable_is_found_later_and_the_environment_precedes_it() -> None:
    assert SecretVariables({}).store("TOKEN", "s3cret")
    assert SecretVariables({}).values(["TOKEN", "OTHER"]) == {"TOKEN": "s3cret"}
    assert SecretVariables({"TOKEN": "theirs"}).values(["TOKEN"]) == {"TOKEN": "theirs"}


def test_session_variable_precedes_the_keyring() -> None:
    SecretVariables({}).store("TOKEN", "kept")
    variables = SecretVariables({})
    variables.set_for_session("TOKEN", "held")
    assert variables.values(["TOKEN"]) == {"TOKEN": "held"}
    assert SecretVariables({}).values(["TOKEN"]) == {"TOKEN": "kept"}
    assert "held" not in repr(variables)


@pytest.mark.parametrize("backend", [fail.Keyring, null.Keyring, BrokenKeyring])
def test_without_a_keyring_a_variable_is_set_for_the_session(backend: type) -> None:
    keyring.set_keyring(backend())
    variables = SecretVariables({})
    assert not variables.store("TOKEN", "s3cret")
    assert variables.values(["TOKEN", "OTHER"]) == {"TOKEN": "s3cret"}
    assert SecretVariables({}).values(["TOKEN"]) == {}
