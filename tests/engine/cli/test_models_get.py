"""`loopwright models get` in separate processes, with a model hub on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.formatting import format_bytes
from engine.models import file_download
from engine.models.demo_weights import FILE, find_weights
from engine.models.file_download import partial_size
from engine.models.model_hub import CATALOG
from tests.engine.cli.kit import PROGRAM, Program, environment, refine, write
from tests.engine.models.gguf_writer import language_model, write_header, write_split_demo_model
from tests.engine.models.loopback_hub import Answer, LoopbackHub

CONTENT = b"GGUF" + random.Random(1).randbytes(3 << 20)
STALL_AT = 5 << 19
NAME = "maker/model/model.gguf"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    monkeypatch.setattr(file_download, "_FIRST_WAIT_S", 0.0)
    with LoopbackHub(CONTENT) as hub:
        hub.use(monkeypatch)
        yield hub


@contextmanager
def halfway(hub: LoopbackHub, target: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has written two of three megabytes, and waits for more."""
    hub.content_answers.append(Answer(stall_after=STALL_AT))
    command = [*PROGRAM, "models", "get", NAME]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as running:
        try:
            assert hub.stalled.wait(30)
            deadline = time.monotonic() + 30
            while partial_size(target) < 2 << 20:
                assert time.monotonic() < deadline
                threading.Event().wait(0.01)
            yield running
        finally:
            running.kill()


def left(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_killed_download_is_resumed_by_the_next_process(hub: LoopbackHub, program: Program, tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"
    with halfway(hub, target) as running:
        running.send_signal(signal.SIGKILL)
        running.wait(30)
    hub.go_on.set()
    assert left(tmp_path) == ["model.gguf.part", "model.gguf.part.json"]
    (paused,) = program("models", "get", "--json").json["paused"]
    address = f"{hub.url}/maker/model/resolve/main/model.gguf"
    assert paused == {
        "name": address,
        "file": f"{target}.part",
        "address": address,
        "done": partial_size(target),
        "size": len(CONTENT),
    }
    assert paused["address"] in "".join(program("models", "get").out.split())
    size = partial_size(target)
    ended = program("models", "get", NAME)

    assert (ended.code, target.read_bytes() == CONTENT) == (0, True)
    assert f"{format_bytes(size)} of it are here already" in ended.err
    assert hub.range_starts[-1] == f"bytes={size}-"
    assert left(tmp_path) == ["model.gguf"]


def test_ctrl_c_pauses_and_another_process_cannot_interfere(hub: LoopbackHub, program: Program, tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"
    with halfway(hub, target) as running:
        second = program("models", "get", NAME)
        assert (second.code, "downloaded already" in second.err) == (1, True)
        assert "Resuming" not in second.err
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    hub.go_on.set()

    assert running.returncode == 130
    assert "paused" in said
    assert "Traceback" not in said
    assert target.with_name("model.gguf.part").read_bytes() == CONTENT[:STALL_AT]
    assert program("models", "get", NAME).code == 0
    assert target.read_bytes() == CONTENT


def test_download_that_is_canceled_before_anything_has_arrived_starts_again(
    hub: LoopbackHub, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt_download(work: Coroutine[Any, Any, object]) -> object:
        if work.__name__ != "get_model_file":
            return asyncio.run(work)
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setattr("engine.runner.event_loop.run_in_background_loop", interrupt_download)
    ended = program("models", "get", "demo")

    assert ended.code == 130
    assert "starts it again" in ended.err
    assert "resumes" not in ended.err


def test_paused_download_of_the_demo_model_is_resumed_and_deleted_by_its_name(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{FILE}.part").write_bytes(b"half")
    state = {"version": "1", "size": 8, "address": "https://hub.example/demo.whl", "has_query": True}
    (tmp_path / f"{FILE}.part.json").write_text(json.dumps(state))
    listed = program("models", "get").out

    assert "loopwright models get demo\n" in listed
    assert "hub.example" not in listed
    assert program("models", "get", "--json").json["paused"][0]["name"] == "demo"
    assert program("models", "remove", "demo", "--yes").code == 0
    assert left(tmp_path) == []


def test_result_and_progress_are_apart(hub: LoopbackHub, program: Program, tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"
    ended = program("models", "get", NAME, "--json")

    assert ended.json == {"model": "gguf:model", "file": str(target), "size": len(CONTENT)}
    assert "3.1 MB" in ended.err


def test_model_larger_than_the_memory_is_warned_of(
    hub: LoopbackHub, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.models.model_hub.machine_memory", lambda: 1_000_000)

    assert "this computer has 1.0 MB" in program("models", "get", NAME).err


def test_catalog_is_listed_without_asking_the_hub(hub: LoopbackHub, program: Program) -> None:
    ended = program("models", "get")
    listed = {model["name"]: model for model in program("models", "get", "--json").json["models"]}

    assert ended.code == 0
    assert all(name in ended.out for name in listed)
    assert {model["category"] for model in listed.values()} >= {"Small", "Medium", "Large"}
    assert all(model["license"] and model["size"] < model["memory"] for model in listed.values())
    assert hub.asked == []


def test_intact_model_of_the_catalog_needs_no_server(
    hub: LoopbackHub, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(CATALOG[1], size=len(CONTENT), sha256=hub.sha256)
    monkeypatch.setattr("engine.models.model_hub.CATALOG", (model,))
    model.target.write_bytes(CONTENT)
    ended = program("models", "get", model.name)

    assert (ended.code, hub.asked) == (0, [])
    assert str(model.target) in ended.out
    model.target.write_bytes(bytes(len(CONTENT)))
    assert program("models", "get", model.name).code == 1
    assert hub.asked


@pytest.mark.parametrize("name", ["gguf:Big", "big"])
def test_downloaded_model_is_deleted_with_all_its_parts(program: Program, tmp_path: Path, name: str) -> None:
    for number in (1, 2):
        write_header(tmp_path / f"Big-0000{number}-of-00003.gguf", language_model())
    write_header(tmp_path / "bigger.gguf", language_model())

    assert program("models", "remove", name, "--yes").code == 0

    assert left(tmp_path) == ["bigger.gguf"]


@pytest.mark.skipif(os.name == "nt", reason="links need a permission there, and there are no pipes")
def test_what_is_no_file_is_deleted_too(program: Program, tmp_path: Path) -> None:
    (tmp_path / "Loop.gguf").symlink_to("Loop.gguf")
    (tmp_path / "None.gguf").symlink_to("nowhere.gguf")
    os.mkfifo(tmp_path / "Pipe.gguf")

    assert [program("models", "remove", name, "--yes").code for name in ("loop", "none", "pipe")] == [0, 0, 0]

    assert left(tmp_path) == []


def test_catalog_model_is_deleted_only_on_confirmation(program: Program, tmp_path: Path) -> None:
    model = next(model for model in CATALOG if model.name == "qwen2.5-0.5b")
    model.target.touch()

    refused = program("models", "remove", model.name)
    assert (refused.code, "--yes" in refused.err) == (2, True), refused.err
    assert model.target.exists()
    assert program("models", "remove", model.name, "--yes").code == 0
    assert not model.target.exists()


def test_paused_download_is_deleted(hub: LoopbackHub, program: Program, tmp_path: Path) -> None:
    target = tmp_path / "model.gguf"
    with halfway(hub, target):
        assert program("models", "remove", "model", "--yes").code == 2
        assert partial_size(target) > 0
    hub.go_on.set()
    ended = program("models", "remove", "model", "--yes")

    assert (ended.code, left(tmp_path)) == (0, [])
    assert str(target) in ended.out


def test_files_of_other_programs_are_not_deleted(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LOOPWRIGHT_MODELS_FOLDER", str(tmp_path / "models"))
    theirs = write_header(tmp_path / ".lmstudio/models/maker/Chat/Chat.gguf", language_model())

    for name in ("chat", str(theirs), "../.lmstudio/models/maker/Chat/Chat", "none"):
        assert program("models", "remove", name, "--yes").code == 2
    assert theirs.exists()


def test_failed_download_names_what_to_do(hub: LoopbackHub, program: Program) -> None:
    hub.hub_answers.append(Answer(401, (("X-Error-Code", "GatedRepo"),)))
    ended = program("models", "get", NAME)
    host = hub.url.removeprefix("http://")

    assert (ended.code, ended.out) == (1, "")
    assert f"{hub.url}/maker/model," in ended.err
    assert f"loopwright models set-key host:{host}" in ended.err
    assert os.linesep * 2 not in ended.err.strip()


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 3])
def test_downloaded_model_runs_a_loop(hub: LoopbackHub, program: Program, tmp_path: Path, parts: int) -> None:
    folder = tmp_path / "hub"
    folder.mkdir()
    files = write_split_demo_model(folder, "Tiny-Chat", parts) if parts > 1 else [find_weights()]
    names = [file.name for file in files] if parts > 1 else ["Tiny-Chat.gguf"]
    hub.contents = {name: file.read_bytes() for name, file in zip(names, files, strict=True)}
    got = program("models", "get", f"maker/model/{names[0]}", "--json").json
    model = got["model"]
    assert (model, got["size"]) == ("gguf:tiny-chat", sum(map(len, hub.contents.values())))
    workflow = refine(2)
    workflow["nodes"][2]["config"]["max_tokens"] = 6
    ended = program("run", write(tmp_path, workflow), "--model", model, "--json")

    assert ended.code == 0, ended.err
    assert ended.json["loops"]["loop"]["iterations_run"] == 2
    assert [listed["name"] for listed in program("models", "--filter", model, "--json").json["models"]] == [model]
