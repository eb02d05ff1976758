"""One window listens; later starts hand it their files."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QLockFile
from pytestqt.qtbot import QtBot

from app import single_instance
from app.single_instance import ACTIVATION_VARIABLE, InstanceServer, hand_over, socket_path
from engine import settings
from engine.store import PATH_VARIABLE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="The tests connect to sockets in the file system.")

Listen = Callable[[], InstanceServer]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "window"


@pytest.fixture
def make_server(path: Path, qapp: Any) -> Iterator[Listen]:
    made: list[InstanceServer] = []

    def make() -> InstanceServer:
        made.append(InstanceServer(path))
        made[-1].listen()
        return made[-1]

    yield make
    for server in made:
        server.close()
        server.deleteLater()


@pytest.fixture
def server(make_server: Listen) -> InstanceServer:
    return make_server()


@pytest.fixture
def received(server: InstanceServer) -> list[list[Path]]:
    requests: list[list[Path]] = []
    server.files_requested.connect(requests.append)
    return requests


_HAND_OVER = """
import sys
from pathlib import Path
from app.single_instance import hand_over
sys.exit(not hand_over(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
"""


def test_files_arrive_in_their_order(qtbot: QtBot, path: Path, received: list[list[Path]], tmp_path: Path) -> None:
    files = [tmp_path / "b.loop.json", tmp_path / "a “quoted”\n.loop.json", Path(os.fsdecode(b"/tmp/latin-\xe9"))]

    process = subprocess.Popen([sys.executable, "-c", _HAND_OVER, path, *files])
    qtbot.waitUntil(lambda: process.poll() is not None)

    assert process.returncode == 0
    assert received == [files]


def test_start_without_files_only_shows_the_window(qtbot: QtBot, path: Path, received: list[list[Path]]) -> None:
    assert answer_to(qtbot, path, valid(files=[])) == b"ok\n"
    assert received == [[]]


def test_permission_to_come_to_the_front_is_passed_on(
    qtbot: QtBot, path: Path, received: list[list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ACTIVATION_VARIABLE, raising=False)

    assert answer_to(qtbot, path, valid(token="from the desktop")) == b"ok\n"

    assert os.environ.pop(ACTIVATION_VARIABLE) == "from the desktop"


def valid(**changes: object) -> bytes:
    request = {"files": ["/tmp/a.loop.json"], "token": "", "until": time.time() + 60} | changes
    return json.dumps(request).encode() + b"\n"


def answer_to(qtbot: QtBot, path: Path, request: bytes) -> bytes:
    """Send bytes to the window; what it answers before it closes the connection."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.setblocking(False)
        rest, answer = memoryview(request), b""

        def is_closed() -> bool:
            nonlocal rest, answer
            try:
                if rest:
                    rest = rest[client.send(rest) :]
                part = client.recv(100)
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                return True
            answer += part
            return not part

        qtbot.waitUntil(is_closed)
    return answer


def test_valid_request_is_answered(qtbot: QtBot, path: Path, received: list[list[Path]]) -> None:
    assert answer_to(qtbot, path, valid()) == b"ok\n"
    assert received == [[Path("/tmp/a.loop.json")]]


@pytest.mark.parametrize(
    "request_",
    [
        b"\n",
        b"open /tmp/a.loop.json\n",
        b"[" * 100_000 + b"\n",
        b"[]\n",
        valid(files="/tmp/a.loop.json"),
        valid(files=["a.loop.json"]),
        valid(files=["/tmp/a\0.loop.json"]),
        valid(files=["/tmp/\ud800.loop.json"]),
        valid(files=[1]),
        valid(files=["/tmp/a"] * (single_instance.MAX_FILES + 1)),
        valid(token=None),
        valid(token="a\0b"),
        valid(until="later"),
        valid(until=time.time() - 1.5),
        b"x" * (single_instance.MAX_BYTES + 1),
    ],
    ids=[
        *("empty", "text", "deep", "list", "no-list", "relative", "nul", "surrogate", "number", "many", "no-token"),
        *("nul-token", "no-time", "too-late", "large"),
    ],
)
def test_malformed_request_gets_no_answer(
    qtbot: QtBot, path: Path, received: list[list[Path]], request_: bytes
) -> None:
    assert answer_to(qtbot, path, request_) == b""
    assert received == []


def test_silent_connection_is_closed(
    qtbot: QtBot, path: Path, server: InstanceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_instance, "REQUEST_TIMEOUT_MS", 20)

    assert answer_to(qtbot, path, b'{"files"') == b""


def test_window_that_does_not_answer_is_given_up(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()

        assert not hand_over(path, [], timeout_s=0.1)


def test_only_the_first_listens_and_after_its_end_the_next(qtbot: QtBot, path: Path, make_server: Listen) -> None:
    first, second = make_server(), make_server()
    assert (first.is_first, second.is_first) == (True, False)

    first.close()
    third = make_server()

    assert third.is_first
    assert answer_to(qtbot, path, valid()) == b"ok\n"


def test_socket_of_a_killed_program_is_replaced(qtbot: QtBot, path: Path, make_server: Listen) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))

    assert make_server().is_first
    assert answer_to(qtbot, path, valid()) == b"ok\n"


_LISTEN = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.single_instance import InstanceServer
application = QCoreApplication([])
server = InstanceServer(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(server.listen(), flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_of_starts_at_the_same_moment_one_listens(path: Path) -> None:
    command, pipe = [sys.executable, "-c", _LISTEN, str(path)], subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    streams = [(process.stdin, process.stdout) for process in processes]
    try:
        for _, output in streams:
            assert output is not None
            assert output.readline() == "ready\n"
        for given, _ in streams:
            assert given is not None
            given.write("\n")
            given.flush()
        first = [output.readline().strip() for _, output in streams if output is not None]
    finally:
        for process in processes:
            process.communicate("\n", timeout=60)

    assert sorted(first) == ["False", "False", "False", "True"]


def test_start_does_not_listen_while_another_one_finds_out(
    path: Path, make_server: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_instance, "LOCK_TIMEOUT_MS", 20)
    other = QLockFile(f"{path}.lock")
    assert other.tryLock(0)

    make_server()
    assert not path.exists()

    other.unlock()
    make_server()
    assert path.exists()


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": str(tmp_path), "DISPLAY": ":1"}


def test_socket_is_in_a_folder_of_the_user_alone(runtime: dict[str, str], tmp_path: Path) -> None:
    path = socket_path(None, runtime)

    assert path is not None
    assert path.parent.parent == tmp_path
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_folder_that_others_may_use_is_not_used(runtime: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / f"loopwright-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o770)

    assert socket_path(None, runtime) is None
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert socket_path(None, runtime) is None
    assert InstanceServer(None).listen(), "such a start opens a window of its own"


def test_other_history_settings_variables_user_folder_or_screen_is_another_program(
    runtime: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [
        socket_path(None, runtime),
        socket_path(tmp_path / "other.sqlite3", runtime),
        socket_path(None, {**runtime, "DISPLAY": ":2"}),
        socket_path(None, {**runtime, settings.PATH_VARIABLE: str(tmp_path / "settings.json")}),
        socket_path(None, {**runtime, settings.variable_of("budget_usd"): "0.01"}),
        socket_path(None, {**runtime, settings.variable_of("default_model"): "openai/x"}),
    ]
    assert socket_path(None, {**runtime, settings.variable_of("budget_usd"): ""}) == paths[0]
    with_history = {**runtime, PATH_VARIABLE: str(tmp_path / "third.sqlite3")}
    paths.append(socket_path(None, with_history))
    assert socket_path(tmp_path / "third.sqlite3", runtime) == paths[-1]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    paths.append(socket_path(None, runtime))

    assert len(set(paths)) == len(paths)
