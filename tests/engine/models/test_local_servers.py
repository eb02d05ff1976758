"""Models on local servers, and servers that misbehave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from engine.models import local_servers
from engine.models.local_servers import MAX_BYTES, MAX_MODELS, find_local_servers
from tests.engine.wire.server import WireServer
from tests.wording import mentions

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers that answer one path with one body and record requests."""
    servers: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(
        body: bytes, *, path: str = "/api/tags", status: int = 200, asked: list[dict[str, str]] | None = None
    ) -> str:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_args: object) -> None:
                return

            def do_GET(self) -> None:
                if asked is not None:
                    asked.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
                self.send_response(status if self.path == path else 404)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    return  # it had read enough

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def nowhere() -> str:
    """An address without a server."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


def _at(nowhere: str, **addresses: str) -> dict[str, str]:
    return dict.fromkeys(("OLLAMA_API_BASE", "LM_STUDIO_API_BASE", "LLAMAFILE_API_BASE"), nowhere) | addresses


async def test_servers_are_looked_for_on_their_usual_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[int | None] = set()

    async def read(_client: object, address: str) -> None:
        asked.add(urlsplit(address).port)

    monkeypatch.setattr(local_servers, "_read", read)
    found = await find_local_servers({})
    assert {server.title: urlsplit(server.address).port for server in found} == {
        "Ollama": 11434,
        "LM Studio": 1234,
        "llama.cpp": 8080,
    }
    assert asked == {11434, 1234, 8080}


async def test_models_of_each_kind_of_server_are_found(serve: Serve, wire: WireServer, nowhere: str) -> None:
    asked: list[dict[str, str]] = []
    tags = {"models": [{"name": "llama3.2:latest"}, {"name": "qwen3:8b"}, {"name": "qwen3:8b"}]}
    places = _at(
        nowhere, OLLAMA_API_BASE=serve(json.dumps(tags).encode(), asked=asked), LM_STUDIO_API_BASE=wire.base_url
    )

    ollama, studio, llama = await find_local_servers(places)

    assert (ollama.title, ollama.models) == ("Ollama", ("ollama_chat/llama3.2:latest", "ollama_chat/qwen3:8b"))
    assert "lm_studio/plain" in studio.models
    assert (ollama.problem, studio.problem) == ("", "")
    assert llama.models == ()
    assert mentions(llama.problem, f"llama.cpp … not running at {nowhere}.")
    assert [entry["path"] for entry in asked] == ["/api/tags"]
    assert "authorization" not in asked[0]
    assert [request.path for request in wire.requests] == ["/v1/models"]


async def test_llama_cpp_model_is_named_after_its_file(serve: Serve, nowhere: str) -> None:
    names = [{"id": "/models/tiny.gguf"}, {"id": r"C:\models\big.gguf"}, {"id": "org/model:Q4"}, {"id": "a b"}]
    address = serve(json.dumps({"data": names}).encode(), path="/models")

    found = (await find_local_servers(_at(nowhere, LLAMAFILE_API_BASE=address)))[2]

    assert found.models == ("llamafile/tiny.gguf", "llamafile/big.gguf", "llamafile/org/model:Q4")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>", 200),
        (b"[]", 200),
        (b'{"models": 7}', 200),
        (b'{"models": []}', 500),
        (b"[" * 100_000, 200),
        (b'{"models": [' + b'{"name": "x"},' * (MAX_BYTES // 10) + b"{}]}", 200),
    ],
)
async def test_other_server_is_reported_in_a_sentence(serve: Serve, nowhere: str, body: bytes, status: int) -> None:
    found = (await find_local_servers(_at(nowhere, OLLAMA_API_BASE=serve(body, status=status))))[0]

    assert found.models == ()
    assert found.problem == f"The server at {found.address} is not Ollama."


async def test_entry_without_a_name_is_no_model(serve: Serve, nowhere: str) -> None:
    body = b'{"models": [{"name": null}, {}, {"name": "one"}]}'
    assert (await find_local_servers(_at(nowhere, OLLAMA_API_BASE=serve(body))))[0].models == ("ollama_chat/one",)


async def test_servers_without_models_and_with_very_many(serve: Serve, nowhere: str) -> None:
    many = {"models": [{"name": f"m{number}"} for number in range(MAX_MODELS + 50)] + [7, {"name": None}]}
    assert (await find_local_servers(_at(nowhere, OLLAMA_API_BASE=serve(b'{"models": []}'))))[0].problem.endswith(
        "but has no models."
    )
    full = (await find_local_servers(_at(nowhere, OLLAMA_API_BASE=serve(json.dumps(many).encode()))))[0]
    assert len(full.models) == MAX_MODELS


async def test_unresponsive_server_times_out(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.models.local_servers.TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = (await find_local_servers(_at(nowhere, OLLAMA_API_BASE=address)))[0]

    assert mentions(found.problem, f"Ollama … {address} did not respond")


async def test_invalid_address_in_the_environment_is_reported(nowhere: str) -> None:
    found = (await find_local_servers(_at(nowhere, OLLAMA_API_BASE="ftp://x")))[0]
    assert "not the address of" in found.problem


async def test_default_address_is_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def read(_client: object, address: str) -> None:
        asked.append(address)

    monkeypatch.setattr("engine.models.local_servers._read", read)
    await find_local_servers({})

    assert asked == [
        "http://127.0.0.1:11434/api/tags",
        "http://127.0.0.1:1234/v1/models",
        "http://127.0.0.1:8080/v1/models",
    ]
