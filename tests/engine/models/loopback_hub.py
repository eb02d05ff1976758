"""A model hub on loopback: one port answers with redirects, another one, a host of its own, has the content.

A test changes the content and plans how the next answers go wrong. Every request is recorded with its headers.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import deque
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import pytest

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Answer:
    """How an answer goes wrong.

    Attributes:
        status: The status; 200 for the content.
        headers: Headers to add.
        cut_after: The connection is closed after so many bytes of the content.
        stall_after: After so many bytes, nothing comes until `LoopbackHub.go_on` is set.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    cut_after: int | None = None
    stall_after: int | None = None


class LoopbackHub:
    """The hub with its content host.

    Attributes:
        content: The content of every file that is not in `contents`.
        contents: The content of some files, by their names.
        files: The paths of the files that exist (`/OWNER/REPOSITORY/resolve/main/FILE`); None for all.
        linked_etag: The checksum that the hub sends; None for that of the content.
        ranges: Whether the content host knows ranges.
        etag: The ETag of the content host.
        redirect: The address that the hub redirects to; None for the content host.
        hub_answers, content_answers: The next answers of each port; the usual one where there is none.
        asked, sent: The headers of every request to the hub, and to the content host.
        stalled, go_on: Set when an answer stalls; set it to let it continue.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.contents: dict[str, bytes] = {}
        self.files: set[str] | None = None
        self.linked_etag: str | None = None
        self.ranges = True
        self.etag: str | None = '"content-host"'
        self.redirect: str | None = None
        self.hub_answers: deque[Answer] = deque()
        self.content_answers: deque[Answer] = deque()
        self.asked: list[tuple[str, Message]] = []
        self.sent: list[tuple[str, Message]] = []
        self.stalled, self.go_on = threading.Event(), threading.Event()
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), kind) for kind in (_hub(self), _content(self))]
        self.url, self.content_url = (f"http://127.0.0.1:{server.server_address[1]}" for server in self._servers)
        self._threads = [threading.Thread(target=server.serve_forever, args=(0.02,)) for server in self._servers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def content_of(self, path: str) -> bytes:
        return self.contents.get(path.partition("?")[0].rpartition("/")[2], self.content)

    @property
    def range_starts(self) -> list[str | None]:
        """The `Range` headers that the content host received."""
        return [headers["Range"] for _, headers in self.sent]

    def use(self, patch: pytest.MonkeyPatch) -> None:
        """Make it the hub of this process and its children."""
        patch.setenv("HF_ENDPOINT", self.url)
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.delenv("HF_TOKEN", raising=False)


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        pass

    def reply(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _hub(hub: LoopbackHub) -> type[_Handler]:
    class Hub(_Handler):
        def do_GET(self) -> None:
            hub.asked.append((self.path, self.headers))
            answer = hub.hub_answers.popleft() if hub.hub_answers else Answer()
            if answer.status != 200:
                self.reply(answer.status, dict(answer.headers), b"<html>no</html>")
            elif hub.files is not None and self.path not in hub.files:
                self.reply(404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
            else:
                content, name = hub.content_of(self.path), self.path.rpartition("/")[2].partition("?")[0]
                headers = {
                    "Location": hub.redirect or f"{hub.content_url}/{name}?signature=secret",
                    "X-Repo-Commit": "0" * 40,
                    "X-Linked-Size": str(len(content)),
                    "X-Linked-Etag": f'"{hub.linked_etag or hashlib.sha256(content).hexdigest()}"',
                }
                self.reply(302, {**headers, **dict(answer.headers)})

    return Hub


def _content(hub: LoopbackHub) -> type[_Handler]:
    class Content(_Handler):
        def do_GET(self) -> None:
            hub.sent.append((self.path, self.headers))
            answer = hub.content_answers.popleft() if hub.content_answers else Answer()
            if answer.status != 200:
                self.reply(answer.status, dict(answer.headers))
                return
            content = hub.content_of(self.path)
            size, wanted = len(content), self.headers["Range"] if hub.ranges else None
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
            if start >= size:
                self.reply(416, {"Content-Range": f"bytes */{size}"})
                return
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(size - start))
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            if hub.etag is not None:
                self.send_header("ETag", hub.etag)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has gone
                self._send(content[start:], answer)

        def _send(self, body: bytes, answer: Answer) -> None:
            if answer.cut_after is not None:
                self.wfile.write(body[: answer.cut_after])
                return
            if answer.stall_after is None:
                self.wfile.write(body)
                return
            self.wfile.write(body[: answer.stall_after])
            self.wfile.flush()
            hub.stalled.set()
            assert hub.go_on.wait(_PATIENCE_S)
            self.wfile.write(body[answer.stall_after :])

    return Content
