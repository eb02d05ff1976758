"""Tool processes end with all their children: at their timeout, with Ctrl+C, SIGTERM, and with the program."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.store import open_store
from tests.engine.cli.kit import PROGRAM, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere what left the session is not found")

# Each holds the pipe open: a child, a child in a new session, and an orphan in a new session.
COMMAND = """
exec 9>pipe
sleep 1000 &
setsid sleep 1000 &
(setsid sh -c 'sleep 1000 & sleep 1000' &)
echo started >&9
sleep 1000
"""
SHELL = {"tool": "shell", "arguments": {"command": COMMAND, "timeout_s": 600}}
SERVER = """
import os, subprocess, sys
pipe = os.open(sys.argv[1], os.O_WRONLY)
subprocess.Popen(["setsid", "sleep", "1000"], pass_fds=(pipe,))
os.write(pipe, b"started\\n")
subprocess.Popen(["sleep", "1000"], pass_fds=(pipe,)).wait()
"""


def workflow(folder: Path, config: dict[str, Any]) -> Path:
    node = {"id": "work", "type": "tool", "config": config}
    document = {"format": "loopwright.workflow", "version": 1, "name": "w", "nodes": [node], "edges": []}
    file = folder / "w.loop.json"
    file.write_text(json.dumps(document))
    return file


def read_until_closed(pipe: int, started: Callable[[], object]) -> None:
    """Wait for the tool to start, do something, and wait until no process holds the pipe."""
    assert _read(pipe) == b"started\n"
    started()
    assert _read(pipe) == b""


def _read(pipe: int) -> bytes:
    assert select.select([pipe], [], [], 60)[0], "it came to no end"
    return os.read(pipe, 100)


def opened(folder: Path) -> int:
    """The read end of a named pipe in a folder; the first read waits for a writer."""
    os.mkfifo(folder / "pipe")
    reading = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    return reading


def run_program(folder: Path, config: dict[str, Any], *more: str, **settings: str) -> subprocess.Popen[bytes]:
    arguments = ["run", str(workflow(folder, config)), "--allow", "--allow-code", "--folder", str(folder), *more]
    own = environment(LOOPWRIGHT_APPROVED=str(folder / "approved.json"), **settings)
    return subprocess.Popen(
        [*PROGRAM, *arguments], env=own, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.parametrize(
    ("sent", "code", "status"),
    [
        (signal.SIGINT, 130, "cancelled"),
        (signal.SIGTERM, 143, "cancelled"),
        (signal.SIGKILL, -signal.SIGKILL, "interrupted"),
    ],
)
def test_tool_processes_end_with_the_program(tmp_path: Path, sent: signal.Signals, code: int, status: str) -> None:
    pipe, store = opened(tmp_path), tmp_path / "history.sqlite3"
    with run_program(tmp_path, SHELL, "--store", str(store)) as program:
        read_until_closed(pipe, lambda: program.send_signal(sent))
        assert program.wait(60) == code
    os.close(pipe)
    history = open_store(store)
    (run,) = history.runs()
    assert run.status == status
    history.close()


def test_tool_processes_end_at_their_timeout(tmp_path: Path) -> None:
    pipe = opened(tmp_path)
    limited = {"tool": "shell", "arguments": {"command": COMMAND, "timeout_s": 2}}
    with run_program(tmp_path, limited, "--no-store") as program:
        read_until_closed(pipe, lambda: None)
        assert program.wait(60) == 1
    os.close(pipe)


def test_mcp_server_of_a_killed_program_ends_with_its_processes(tmp_path: Path) -> None:
    pipe = opened(tmp_path)
    (tmp_path / "server.py").write_text(SERVER)
    code = f"""
import asyncio, sys
from engine.tools.mcp_connection import McpConnection
from engine.tools.mcp_settings import McpServer
arguments = [{str(tmp_path / "server.py")!r}, {str(tmp_path / "pipe")!r}]
asyncio.run(McpConnection("s", McpServer(command=sys.executable, args=arguments)).call("x", {{}}))
"""
    pytest.importorskip("mcp")
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as program:
        read_until_closed(pipe, program.kill)
    os.close(pipe)
