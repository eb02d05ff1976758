"""The child process of the built-in demo model: how it starts, fails and ends. Every process here is a real one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.models import embedded
from engine.models.embedded import EmbeddedModel
from engine.models.protocol import ModelError, ModelErrorKind, ToolCall, ToolDefinition
from tests.engine.models.embedded_fixtures import (
    HELLO,
    READY,
    TAKE,
    CloseLater,
    Worker,
    close_later_fixture,
    failure_of,
    on_linux,
    process_id,
    wait_for_end,
    worker_fixture,
)
from tests.wording import mentions

Make = Callable[..., EmbeddedModel]
__all__ = ["close_later_fixture", "worker_fixture"]


@pytest.fixture
def make(close_later: CloseLater) -> Make:
    """Creates models that are closed after the test."""
    return lambda **arguments: close_later(EmbeddedModel(**arguments))


@on_linux
async def test_warm_up_starts_the_child_before_the_first_call(make: Make, worker: Worker, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    program = "open('started', 'w').close()\n" + READY + "sys.stdin.readline()"
    model = make(worker=worker(program.replace("started", str(tmp_path / "started"))))

    await model.warm_up()
    await model.warm_up()

    await asyncio.to_thread((tmp_path / "started").read_text)
    assert process_id(model) is not None


@pytest.mark.parametrize(
    "program",
    [
        "print('Loading…', flush=True); sys.stdin.readline()",
        "print('[]', flush=True); sys.stdin.readline()",
        "print('[' * 100000, flush=True); sys.stdin.readline()",
        'print(\'{"tell": "nonsense"}\', flush=True); sys.stdin.readline()',
        'print(\'{"tell": "text", "id": [], "text": 1}\', flush=True); sys.stdin.readline()',
        "sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush(); sys.stdin.readline()",
        "sys.stdout.write('x' * 2_000_000); sys.stdout.flush(); sys.stdin.readline()",
        READY + TAKE + "print('Bus error', flush=True); sys.stdin.readline()",
    ],
)
async def test_child_with_invalid_output_is_ended(make: Make, worker: Worker, program: str) -> None:
    model = make(worker=worker(program))
    error = await failure_of(model)
    assert error.kind is ModelErrorKind.INTERRUPTED
    assert "not a message" in error.message
    assert process_id(model) is None


@pytest.mark.parametrize("before", ["", READY + TAKE])
async def test_exit_of_the_child_is_reported_with_its_last_output(make: Make, worker: Worker, before: str) -> None:
    program = (
        before + "print('half a mess', end='', flush=True)\nprint('something\\tbroke', file=sys.stderr)\nsys.exit(3)"
    )
    error = await failure_of(make(worker=worker(program)))
    assert error.kind is ModelErrorKind.INTERRUPTED
    assert mentions(error.message, "exit code 3; … : something broke."), error.message


async def test_child_that_exits_without_reading_is_noticed(make: Make, worker: Worker) -> None:
    error = await failure_of(make(worker=worker("os.close(0)\n" + READY)))
    assert error.kind is ModelErrorKind.INTERRUPTED
    assert "exit code 0." in error.message


async def test_python_path_does_not_affect_the_child(
    make: Make, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('wrong module')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    program = "print(json.dumps({'tell': 'fatal', 'message': json.__name__}), flush=True)"
    assert "cannot start: json." in (await failure_of(make(worker=worker(program)))).message


async def test_only_the_end_of_the_error_output_is_kept(make: Make, worker: Worker) -> None:
    program = "for n in range(20000): print('noise', n, file=sys.stderr)\nsys.exit(1)"
    error = await failure_of(make(worker=worker(program)))
    assert "noise 19999" in error.message
    assert "noise 19990" not in error.message
    assert len(error.message) < 700


async def test_messages_about_other_calls_are_ignored(make: Make, worker: Worker) -> None:
    answer = """
for number in (request["id"] + 1, request["id"]):
    print(json.dumps({"tell": "text", "id": number, "text": f"{number - request['id']}"}))
    print(json.dumps({"tell": "done", "id": number, "finish": "tool_calls"}), flush=True)
sys.stdin.readline()
"""
    reply = await make(worker=worker(READY + TAKE + answer)).complete(HELLO)
    assert (reply.text, reply.finish) == ("0", "other")


async def test_tools_are_described_and_calls_parsed_from_the_text(make: Make, worker: Worker, tmp_path: Path) -> None:
    asked = tmp_path / "asked.json"
    answer = f"""
open({str(asked)!r}, "w").write(json.dumps(request["body"]["messages"]))
print(json.dumps({{"tell": "text", "id": request["id"], "text": 'Yes: {{"tool": "add", "arguments": {{"a": 1}}}}'}}))
print(json.dumps({{"tell": "done", "id": request["id"], "finish": "stop"}}), flush=True)
sys.stdin.readline()
"""
    tools = (ToolDefinition("add", "Adds.", {"type": "object"}),)

    reply = await make(worker=worker(READY + TAKE + answer)).complete(replace(HELLO, tools=tools))

    assert (reply.tool_calls, reply.finish) == ((ToolCall("call_1", "add", {"a": 1}),), "tool_calls")
    system, user = json.loads(asked.read_text())
    assert "- add: Adds." in system["content"]
    assert user == {"role": "user", "content": "Hi"}


@on_linux
async def test_unresponsive_child_is_killed_and_replaced(make: Make, worker: Worker) -> None:
    stuck = """
print(json.dumps({"tell": "text", "id": request["id"], "text": str(os.getpid())}), flush=True)
while True:
    sys.stdin.readline()
"""
    model = make(worker=worker(READY + TAKE + stuck))
    for _ in range(2):
        process: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(model.complete(HELLO, lambda text, there=process: there.set_result(int(text))))
        child = await process
        task.cancel()
        await asyncio.to_thread(wait_for_end, child)


async def test_call_canceled_while_waiting_never_reaches_the_child(make: Make, worker: Worker) -> None:
    counting = """
count = 0
for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "cancel":
        print(json.dumps({"tell": "cancelled", "id": order["id"]}), flush=True)
        continue
    count += 1
    print(json.dumps({"tell": "text", "id": order["id"], "text": str(count)}), flush=True)
    if count > 1:
        print(json.dumps({"tell": "done", "id": order["id"]}), flush=True)
"""
    model = make(worker=worker(READY + counting))
    running = asyncio.Event()
    first = asyncio.create_task(model.complete(HELLO, lambda _: running.set()))
    await running.wait()
    second, third = (asyncio.create_task(model.complete(HELLO)) for _ in range(2))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    first.cancel()
    assert (await third).text == "2"


async def test_closing_during_the_start_ends_the_child(make: Make, worker: Worker) -> None:
    model = make(worker=worker("sys.stdin.readline()"))
    task = asyncio.create_task(model.complete(HELLO))
    await asyncio.sleep(0)
    await model.close()
    with pytest.raises(ModelError, match="ended before it replied"):
        await task
    assert process_id(model) is None


async def test_weights_with_another_hash_are_refused(make: Make, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF\x03\0\0\0 and then nothing that fits")
    error = await failure_of(make(weights=damaged))
    assert error.kind is ModelErrorKind.UNAVAILABLE
    assert f"{damaged} are damaged" in error.message
    assert error.fix == "get_model:demo"


async def test_unreadable_weights_are_named(make: Make, tmp_path: Path) -> None:
    error = await failure_of(make(weights=tmp_path))
    assert error.kind is ModelErrorKind.UNAVAILABLE
    assert mentions(error.message, f"weights cannot be read … {tmp_path} (Is a directory)")
    assert error.fix == "get_model:demo"


async def test_weights_refused_by_the_runtime_are_an_error(make: Make, tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.gguf"
    rubbish.write_bytes(b"")
    empty_sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    error = await failure_of(make(weights=rubbish, sha256=empty_sha256))
    assert error.kind is ModelErrorKind.UNAVAILABLE
    assert "its runtime does not start" in error.message


async def test_missing_interpreter_is_an_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert mentions((await failure_of(make())).message, "process does not start (No such file")


@pytest.mark.parametrize(
    ("package", "name", "complaint"),
    [
        ("RUNTIME_PACKAGE", "no_such_package", "(package no_such_package) is not installed"),
        ("RUNTIME_PACKAGE", "this", "(package this) is not installed"),
    ],
)
async def test_missing_package_is_named_with_a_remedy(
    make: Make, monkeypatch: pytest.MonkeyPatch, package: str, name: str, complaint: str
) -> None:
    monkeypatch.setattr(embedded, package, name)
    error = await failure_of(make())
    assert error.kind is ModelErrorKind.UNAVAILABLE
    assert complaint in error.message
    assert error.fix == "install:embedded"


def sockets_of(process_id: int, protocol: str) -> list[list[str]]:
    """The fields of each of a process's sockets of one protocol, as the kernel lists them."""
    links = [str(link.readlink()) for link in Path(f"/proc/{process_id}/fd").iterdir()]
    inodes = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
    lines = Path(f"/proc/{process_id}/net/{protocol}").read_text().splitlines()
    return [line.split() for line in lines if inodes & set(line.split())]


@on_linux
def test_opens_no_port_and_removes_its_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("deeper" * 20)  # a socket's address could not be that long
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    model = EmbeddedModel()
    asyncio.run(model.complete(HELLO))
    process = process_id(model)
    assert process
    assert [sockets_of(process, protocol) for protocol in ("tcp", "tcp6", "udp", "udp6")] == [[], [], [], []]
    addresses = [Path(fields[-1]) for fields in sockets_of(process, "unix") if fields[-1].endswith("s.sock")]
    assert addresses
    assert not any(address.parent.exists() for address in addresses)
    asyncio.run(model.close())
    assert list(folder.iterdir()) == []


PARENT = """
import asyncio, sys
from engine.models.protocol import Message, Request
from engine.models.embedded import EmbeddedModel

async def main():
    model = EmbeddedModel()
    tell = lambda text: print(model._child._process.pid, flush=True)
    await model.complete(Request((Message("user", "Write a long story."),), max_tokens=int(sys.argv[1])), tell)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@on_linux
@pytest.mark.parametrize("max_tokens", [1, 4000])
def test_child_ends_with_a_killed_parent_and_leaves_nothing(max_tokens: int, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", PARENT, str(max_tokens)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, env=environment) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        wait_for_end(child)
    assert list(tmp_path.iterdir()) == []


def test_program_that_does_not_close_the_model_ends_cleanly(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    program = PARENT.replace("await asyncio.Event().wait()", "")
    root = Path(__file__).parents[3]
    result = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program, "1"],
        capture_output=True,
        check=False,
        cwd=root,
        env=environment,
        timeout=60,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert list(tmp_path.iterdir()) == []


async def test_uses_half_of_the_cores_and_at_least_one(
    make: Make, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = worker("print(json.dumps({'tell': 'fatal', 'message': str(settings['threads'])}))")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert "cannot start: 1." in (await failure_of(make(worker=reported))).message
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(9)))
    assert "cannot start: 4." in (await failure_of(make(worker=reported))).message
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert "cannot start: 3." in (await failure_of(make(worker=reported))).message


@on_linux
async def test_interrupt_key_does_not_reach_the_child(make: Make) -> None:
    model = make()
    await model.complete(HELLO)
    process = process_id(model)
    assert process
    assert os.getsid(process) != os.getsid(0)
    os.kill(process, signal.SIGINT)
    await model.complete(HELLO)
    assert process_id(model) == process
