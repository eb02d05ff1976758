"""Fixtures of the wire test server, for all tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.wire.server import WireServer


@pytest.fixture
def wire() -> Iterator[WireServer]:
    """An OpenAI-compatible server on loopback; `openai/<behavior>` with `api_base=wire.base_url`."""
    with WireServer() as server:
        yield server


@pytest.fixture
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Refuse and record every connection to, and lookup of, other hosts."""
    elsewhere: list[str] = []
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def is_here(host: object) -> bool:
        name = host.decode() if isinstance(host, bytes) else str(host)
        return name in {"localhost", "::1", "", "None"} or name.startswith("127.")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not is_here(address[0]):
            elsewhere.append(str(address[0]))
            raise OSError("not loopback")
        connect(self, address)

    def guarded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_here(host):
            elsewhere.append(str(host))
            raise socket.gaierror("not loopback")
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)
    return elsewhere
