"""The system's keyring: where the program keeps secrets, and never in a file.

It knows neither providers nor servers: a secret has a name, and that is all. Each call may take as long as the system
asks its user, and none belongs on an event loop.
"""

from __future__ import annotations

from typing import Final

_SERVICE: Final = "loopwright"


class KeyringError(Exception):
    """The machine has no keyring that can do this; nothing of what it said is kept, which may hold the secret."""


def read_secret(name: str) -> str | None:
    """The secret of that name; None where there is none.

    Raises:
        KeyringError: The machine has no keyring that can be read.
    """
    try:
        import keyring

        return keyring.get_password(_SERVICE, name)
    except Exception:  # backends raise whatever they like, and their text may hold the secret
        raise KeyringError from None


def keep_secret(name: str, secret: str) -> None:
    """Keep a secret.

    Raises:
        KeyringError: The machine has no keyring that can keep it.
    """
    try:
        import keyring

        keyring.set_password(_SERVICE, name, secret)
        kept = keyring.get_password(_SERVICE, name)
    except Exception:  # as above
        raise KeyringError from None
    if kept != secret:  # the backend with which people switch keyrings off takes everything and keeps nothing
        raise KeyringError


def forget_secret(name: str) -> None:
    """Forget a secret; one that is not there is no error.

    Raises:
        KeyringError: The machine has no keyring that can be changed.
    """
    try:
        import keyring

        if keyring.get_password(_SERVICE, name) is not None:
            keyring.delete_password(_SERVICE, name)
    except Exception:  # as above
        raise KeyringError from None
