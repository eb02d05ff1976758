"""Values of the `${NAME}` variables in MCP settings: environment, this session, the system's keyring.

The settings themselves are a file that holds no secret.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping

from engine.system_keyring import KeyringError, keep_secret, read_secret


class Variables:
    """The variables. Safe to use from several threads; its text never shows a value.

    Args:
        environment: What comes first; None for that of the process.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._session: dict[str, str] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def values(self, names: Iterable[str]) -> dict[str, str]:
        """What these names stand for; one that stands for nothing is left out. The keyring may take a while."""
        found = {name: self._value(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def hold(self, name: str, value: str) -> None:
        """Let a name stand for a value as long as the program runs."""
        with self._lock:
            self._session[name] = value

    def keep(self, name: str, value: str) -> bool:
        """Let a name stand for a value in every session, by the system's keyring.

        Returns:
            Whether the machine has a keyring that keeps it; where not, it stands for this session.
        """
        self.hold(name, value)
        try:
            keep_secret(_entry(name), value)
        except KeyringError:
            return False
        return True

    def _value(self, name: str) -> str | None:
        if name in self._environment:
            return self._environment[name]
        with self._lock:
            if name in self._session:
                return self._session[name]
        try:
            return read_secret(_entry(name))
        except KeyringError:  # a machine without a working keyring is an ordinary machine
            return None


VARIABLES = Variables()
"""Those of this process."""


def _entry(name: str) -> str:
    return f"variable:{name}"
