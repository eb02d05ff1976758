"""Connections to signals of something that comes and goes, such as the document that is shown now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QMetaObject, QObject, SignalInstance


class SignalConnections:
    """Connections that are cut together."""

    def __init__(self) -> None:
        self._links: list[QMetaObject.Connection] = []

    def add(self, signal: SignalInstance, slot: Callable[..., Any]) -> None:
        """Connect a signal."""
        self._links.append(signal.connect(slot))

    def cut(self) -> None:
        """Cut all connections."""
        for link in self._links:
            QObject.disconnect(link)
        self._links.clear()
