"""MCP servers over HTTP on this computer: one written with the SDK, and a faulty one."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from engine.tools.mcp_settings import McpServer
from engine.tools.mcp_tools import ask_server, served_tools
from engine.tools.tool import ToolError
from tests.engine.tools.test_mcp_stdio import call, context, tools_of

pytest.importorskip("mcp")
SERVER = Path(__file__).parent / "mcp_sdk_server.py"
TOOL = {"name": "work", "description": "Works.", "inputSchema": {"type": "object", "properties": {}}}


@pytest.fixture
def served() -> Iterator[tuple[McpServer, subprocess.Popen[str]]]:
    """A server of the SDK that listens, and its process."""
    process = subprocess.Popen([sys.executable, str(SERVER), "--http"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield McpServer(url=f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"), process
    process.kill()
    process.wait()
    process.stdout.close()


async def test_calls_reach_a_running_server(served: tuple[McpServer, subprocess.Popen[str]]) -> None:
    tools = await tools_of(served[0])
    async with context() as given:
        assert await call(tools["sample/add"], given, a=40, b=2) == 42
        assert await call(tools["sample/process"], given) == served[1].pid
        with pytest.raises(ToolError, match=r'The tool "sample/fail" failed: .*the reason'):
            await call(tools["sample/fail"], given, reason="the reason")
        with pytest.raises(ToolError, match=r'The MCP server "sample" .*the call of "die"') as caught:
            await call(tools["sample/die"], given)
        assert "s3cret" not in str(caught.value)
        with pytest.raises(ToolError, match='The MCP server "sample"'):
            await call(tools["sample/add"], given, a=1)


class Raw(BaseHTTPRequestHandler):
    """A valid handshake; `behavior` decides the answer to a call."""

    behavior: ClassVar[str] = ""
    headers_seen: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        self.headers_seen.append(self.headers["authorization"])
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = request["method"]
        if "id" not in request:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
        elif method == "initialize":
            info = {"name": "raw", "version": "1"}
            version = request["params"]["protocolVersion"]
            self.answer(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            self.answer(request, {"tools": [TOOL]})
        elif method == "tools/call":
            self.work(request)
        else:
            self.send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}})

    def work(self, request: Any) -> None:
        if self.behavior == "flood":
            self.head(100_000_000)
            for _ in range(100):
                self.wfile.write(b" " * 1_000_000)
        elif self.behavior == "squeezed":
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-encoding", "gzip")
            self.send_header("content-length", "4")
            self.end_headers()
            self.wfile.write(b"\x1f\x8b\x08\x00")
        elif self.behavior == "rubbish":
            self.head(1)
            self.wfile.write(b"{")
        elif self.behavior == "broken":
            self.send_response(500)
            self.send_header("content-length", "0")
            self.end_headers()
        else:
            self.answer(request, {"content": [{"type": "text", "text": "done"}]})

    def answer(self, request: Any, result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.head(len(body))
        self.wfile.write(body)

    def head(self, length: int) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(length))
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Do not log."""


class Quiet(ThreadingHTTPServer):
    """A server that does not report clients that disconnect."""

    daemon_threads = True

    def handle_error(self, *_arguments: Any) -> None:
        """Do not log."""


@pytest.fixture
def raw() -> Iterator[McpServer]:
    Raw.headers_seen = []
    server = Quiet(("127.0.0.1", 0), Raw)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield McpServer(url=f"http://127.0.0.1:{server.server_port}/mcp", headers={"Authorization": "Bearer ${MCP_TOKEN}"})
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ("flood", "more than 8,000,000 bytes"),
        ("squeezed", "it sent a compressed response"),
        ("broken", 'The MCP server "sample"'),
        ("rubbish", 'The MCP server "sample" refused the call of "work"'),
    ],
)
async def test_misbehaving_server_is_a_specific_error(
    raw: McpServer,
    behavior: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a program that sets up no logging
    monkeypatch.setenv("MCP_TOKEN", "s3cret-token")
    monkeypatch.setattr(Raw, "behavior", behavior)
    (tool,) = served_tools("sample", raw, await ask_server("sample", raw))
    async with context() as given:
        with pytest.raises(ToolError) as caught:
            await call(tool, given)
        assert message in str(caught.value)
        assert "s3cret-token" not in str(caught.value)
        monkeypatch.setattr(Raw, "behavior", "")
        assert await call(tool, given) == "done"
    assert set(Raw.headers_seen) == {"Bearer s3cret-token"}
    assert capsys.readouterr().err == ""


async def test_address_without_a_server_is_an_error() -> None:
    with pytest.raises(ToolError, match=r'The MCP server "sample" .*connect') as caught:
        await ask_server("sample", McpServer(url="http://127.0.0.1:1/mcp"))
    assert len(str(caught.value)) < 500
