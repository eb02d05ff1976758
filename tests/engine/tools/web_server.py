"""A web server on loopback for the tests of `http_get`: one behavior per path; it records requests."""

from __future__ import annotations

import gzip
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BOMB = gzip.compress(b"\0" * 50_000_000)


class WebServer(ThreadingHTTPServer):
    """Attributes: `asked` contains (path, headers) of each request; `released` ends the delayed answers."""

    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), _Handler)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.released = threading.Event()
        self.waiting = threading.Event()
        self.hung_up = threading.Event()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def url(self, path: str, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect early."""


class _Handler(BaseHTTPRequestHandler):
    server: WebServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers)))
        parts = urlsplit(self.path)
        self._query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        behavior: Callable[[], None] = getattr(self, "on_" + parts.path.strip("/"))
        behavior()

    def _send(self, body: bytes, content_type: str = "text/plain", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        if content_type:
            self.send_header("Content-Type", content_type)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def on_text(self) -> None:
        self._send("hello ü\n".encode(), "text/plain; charset=utf-8")

    def on_latin(self) -> None:
        self._send(b"caf\xe9", "text/plain; charset=iso-8859-1")

    def on_html(self) -> None:
        self._send(b"<title>T</title><p>Hi &amp; bye</p><script>x</script>", "Text/HTML; charset=utf-8")

    def on_json(self) -> None:
        self._send(b'{"a": 1}', "application/problem+json")

    def on_image(self) -> None:
        self._send(b"\x89PNG\0", "image/png")

    def on_untyped(self) -> None:
        self._send(b"plain", "")

    def on_untyped_binary(self) -> None:
        self._send(b"\0\1", "")

    def on_empty(self) -> None:
        self.send_response(204)
        self.end_headers()

    def on_big(self) -> None:
        self._send("ü".encode() * 500)

    def on_status(self) -> None:
        self._send(b"oops", status=int(self._query["code"]))

    def on_odd_status(self) -> None:
        self.wfile.write(b"HTTP/1.1 599 What\r\nContent-Length: 0\r\n\r\n")

    def on_redirect(self) -> None:
        self._send(b"", status=int(self._query.get("code", "302")), Location=self._query["to"], Set_Cookie="a=b")

    def on_loop(self) -> None:
        self._send(b"", status=302, Location="/loop")

    def on_unmoved(self) -> None:
        self._send(b"stay", status=302)

    def on_gzip(self) -> None:
        self._send(gzip.compress(b"small again"), Content_Encoding="gzip")

    def on_deflate(self) -> None:
        self._send(zlib.compress(b"small again"), Content_Encoding="deflate")

    def on_bomb(self) -> None:
        self._send(BOMB, Content_Encoding="gzip")

    def on_double_bomb(self) -> None:
        self._send(gzip.compress(BOMB), Content_Encoding="gzip, gzip")

    def on_damaged(self) -> None:
        self._send(b"this is not gzip", Content_Encoding="gzip")

    def on_half_gzip(self) -> None:
        """Compressed, without a length, and cut off: only the compression shows that data is missing."""
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"
        self.wfile.write(head + gzip.compress(b"first half, second half", 0)[:-20])

    def on_endless(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        try:
            while not self.server.released.is_set():
                self.wfile.write(b"x" * 65536)
        except OSError:
            self.server.hung_up.set()

    def on_drip(self) -> None:
        """One byte repeatedly: no single read waits long."""
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        try:
            while not self.server.released.wait(0.02):
                self.wfile.write(b"x")
                self.server.waiting.set()
        except OSError:
            self.server.hung_up.set()

    def on_silence(self) -> None:
        self.server.waiting.set()
        self.connection.settimeout(30)
        if self.connection.recv(1) == b"":
            self.server.hung_up.set()

    def on_nonsense(self) -> None:
        self.wfile.write(b"I am no web server\r\n\r\n")

    def on_cut(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf")


@contextmanager
def serving(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    server = WebServer(host)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def unused_port() -> int:
    """A port of loopback on which nothing listens."""
    with serving() as server:
        return server.port
