"""Secrets in the keyring of the system.

The keyring may ask its user, so a call can take long and must not run in an event loop.
"""

from __future__ import annotations

from typing import Final

_SERVICE: Final = "loopwright"


class KeyringError(Exception):
    """No keyring can do this. The original error is dropped, because its text may contain the secret."""


def read_secret(name: str) -> str | None:
    """Return a secret, or None.

    Raises:
        KeyringError: No keyring can be read.
    """
    try:
        import keyring

        return keyring.get_password(_SERVICE, name)
    except Exception:  # backends raise anything, and the text may contain the secret
        raise KeyringError from None


def keep_secret(name: str, secret: str) -> None:
    """Store a secret.

    Raises:
        KeyringError: No keyring can store it.
    """
    try:
        import keyring

        keyring.set_password(_SERVICE, name, secret)
        stored = keyring.get_password(_SERVICE, name)
    except Exception:  # as above
        raise KeyringError from None
    if stored != secret:  # the null backend accepts everything and stores nothing
        raise KeyringError


def forget_secret(name: str) -> None:
    """Delete a secret if it exists.

    Raises:
        KeyringError: No keyring can be changed.
    """
    try:
        import keyring

        if keyring.get_password(_SERVICE, name) is not None:
            keyring.delete_password(_SERVICE, name)
    except Exception:  # as above
        raise KeyringError from None
