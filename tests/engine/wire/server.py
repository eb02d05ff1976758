"""An OpenAI-compatible HTTP server for tests, on loopback: the model's name selects its behavior.

    with WireServer() as wire:
        model = "openai/rate-limited", api_base=wire.base_url

It records every request, and every call that the client gave up, and lets a test wait for either.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.engine.wire.behaviors import BEHAVIORS, REPLY, Behavior, Body, Exchange

_PATIENCE_S = 20.0
_PATHS = frozenset({"/v1/chat/completions", "/v1/messages", "/v1/api/chat"})


@dataclass(frozen=True)
class WireRequest:
    """A received request; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Body


class WireServer:
    """The server.

    Attributes:
        host: Its host and port.
        base_url: What a model's `api_base` is to be.
        requests: Every request so far, oldest first.
        reply: Makes the text of an ordinary answer (`plain`, `stream`, `no-usage`) from the request's body. Replace it
            to play a conversation.
        own: Behaviors of a test's own, by model name; they answer at any path.
        turns: For a model's name, the behaviors of its next calls, one each; after them it does what its name says.
    """

    def __init__(self) -> None:
        self.requests: list[WireRequest] = []
        self.reply: Callable[[Body], str] = lambda _body: REPLY
        self.own: dict[str, Behavior] = {}
        self.turns: dict[str, list[str]] = {}
        self._abandoned = 0
        self._changed = threading.Condition()
        self._connections: set[socket.socket] = set()
        self._closing = False
        self._server = _Server(("127.0.0.1", 0), _make_handler(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="wire", daemon=True
        )
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.base_url = f"http://{self.host}/v1"
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every connection, thread and the listening socket."""
        with self._changed:
            self._closing = True
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    async def request_arrived(self, count: int = 1) -> None:
        """Wait until that many requests have arrived in total."""
        await asyncio.to_thread(self._wait_for, lambda: len(self.requests) >= count)

    async def call_abandoned(self, count: int = 1) -> None:
        """Wait until the client has closed the connection in the middle of that many calls."""
        await asyncio.to_thread(self._wait_for, lambda: self._abandoned >= count)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            if not self._changed.wait_for(condition, timeout=_PATIENCE_S):
                raise AssertionError("The wire server saw nothing of what the test waits for.")

    def opened(self, connection: socket.socket) -> None:
        with self._changed:
            self._connections.add(connection)
            if self._closing:
                connection.close()

    def closed(self, connection: socket.socket) -> None:
        with self._changed:
            self._connections.discard(connection)

    def record(self, request: WireRequest) -> None:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    def next_behavior(self, model: str) -> str:
        with self._changed:
            return self.turns[model].pop(0) if self.turns.get(model) else model

    def record_abandoned(self) -> None:
        with self._changed:
            self._abandoned += not self._closing
            self._changed.notify_all()


class _Server(ThreadingHTTPServer):
    # So that closing it waits for the threads.
    daemon_threads = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that disconnected is not an error of the server
            super().handle_error(request, client_address)


def _make_handler(wire: WireServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Without it each answer waits for the client's delayed acknowledgement: 40 ms a call.
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            wire.opened(self.connection)

        def finish(self) -> None:
            wire.closed(self.connection)
            super().finish()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            return

        def do_GET(self) -> None:
            wire.record(WireRequest("GET", self.path, _headers(self), {}))
            exchange = Exchange(self, {}, wire.reply)
            if self.path == "/v1/models":
                exchange.send_json(200, {"object": "list", "data": [{"id": name} for name in BEHAVIORS]})
            else:
                exchange.refuse(404, f"There is no {self.path}", "invalid_request_error")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            wire.record(WireRequest("POST", self.path, _headers(self), body))
            exchange = Exchange(self, body, wire.reply)
            name = wire.next_behavior(str(body.get("model")))
            behavior = wire.own.get(name) or BEHAVIORS.get(name)
            if behavior is None or (self.path not in _PATHS and name not in wire.own):
                exchange.refuse(404, f"There is no {body.get('model')} at {self.path}", "invalid_request_error")
                return
            try:
                behavior(exchange)
            except OSError:
                self.close_connection = True
                wire.record_abandoned()
            else:
                if exchange.abandoned:
                    wire.record_abandoned()

    return Handler


def _headers(handler: BaseHTTPRequestHandler) -> dict[str, str]:
    return {name.lower(): value for name, value in handler.headers.items()}
