"""The tools `python` and `shell`, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.tools.code_tools import MAX_OUTPUT_BYTES, PYTHON, SHELL, batch_file_arguments
from engine.tools.tool import ToolContext, ToolError

ALLOWED = ToolContext(allow_code=True)
posix_only = pytest.mark.skipif(os.name != "posix", reason="these commands are those of a POSIX shell")


async def python(code: str, context: ToolContext = ALLOWED, **more: Any) -> Any:
    return await PYTHON.run(PYTHON.parameters(code=code, **more), context)


async def shell(command: str, context: ToolContext = ALLOWED, **more: Any) -> Any:
    return await SHELL.run(SHELL.parameters(command=command, **more), context)


@pytest.mark.parametrize("call", [python, shell])
async def test_nothing_runs_without_permission(call: Any, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"runs code .* not allowed") as caught:
        await call("open('made', 'w')", ToolContext(folder=tmp_path))
    assert caught.value.fix == "allow_code"
    assert os.listdir(tmp_path) == []  # noqa: PTH208


async def test_python_gets_input_and_returns_output() -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('ä', file=sys.stderr); sys.exit(3)"
    assert await python(code, input="grün") == {"exit_code": 3, "stdout": "GRÜN\n", "stderr": "ä\n"}


async def test_python_runs_in_the_allowed_folder(tmp_path: Path) -> None:
    await python("open('made.txt', 'w').write('here')", ToolContext(folder=tmp_path, allow_code=True))
    assert (tmp_path / "made.txt").read_text() == "here"
    assert os.listdir(tmp_path) == ["made.txt"]  # noqa: PTH208


async def test_without_a_folder_python_runs_in_a_temporary_one() -> None:
    where = (await python("import os; open('x', 'w'); print(os.getcwd())"))["stdout"].strip()
    assert Path(where).name.startswith("loopwright-")
    assert not os.path.exists(where)  # noqa: PTH110, ASYNC240


async def test_environment_keys_do_not_reach_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    outcome = await python("import os; print(dict(os.environ))")
    assert "sk-secret" not in outcome["stdout"]
    assert "PATH" in outcome["stdout"]


async def test_exception_in_the_code_is_a_result() -> None:
    outcome = await python("1 / 0")
    assert outcome["exit_code"] == 1
    assert "ZeroDivisionError" in outcome["stderr"]


@posix_only
async def test_command_runs_in_the_shell() -> None:
    outcome = await shell("cat | tr a-z A-Z; echo done >&2; exit 4", input="text")
    assert outcome == {"exit_code": 4, "stdout": "TEXT", "stderr": "done\n"}


async def test_timeout_stops_the_program() -> None:
    with pytest.raises(ToolError, match=r"took longer than 0\.2 s and was stopped"):
        await python("import time; time.sleep(600)", timeout_s=0.2)


async def test_too_much_output_stops_the_program() -> None:
    code = f"import sys\nwhile True: sys.stdout.write('x' * {MAX_OUTPUT_BYTES // 4})"
    with pytest.raises(ToolError, match="wrote more than 1,000,000 bytes and was stopped"):
        await python(code)


async def test_full_pipe_does_not_hide_the_exit() -> None:
    many = "import os\nwhile True: os.write(1, b'x' * 1_000_000); os.write(2, b'x' * 1_000_000)"
    async with asyncio.timeout(30):
        for _ in range(10):
            with pytest.raises(ToolError, match="wrote more than 1,000,000 bytes and was stopped"):
                await python(many)


@posix_only
async def test_detached_process_with_the_pipes_is_ended(tmp_path: Path) -> None:
    code = (
        "import subprocess; escaped = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "open('told', 'w').write(str(escaped.pid))\nescaped.wait()"
    )
    async with asyncio.timeout(30):
        with pytest.raises(ToolError, match=r"took longer than 1 s and was stopped"):
            await python(code, ToolContext(folder=tmp_path, allow_code=True), timeout_s=1)
    escaped = int((tmp_path / "told").read_text())
    if sys.platform == "linux":
        await gone(escaped)
    else:
        os.kill(escaped, signal.SIGKILL)


@posix_only
async def test_background_processes_are_ended_with_the_command(tmp_path: Path) -> None:
    context = ToolContext(folder=tmp_path, allow_code=True)
    outcome = await shell("sleep 600 & echo $!", context, timeout_s=20)
    assert outcome["exit_code"] == 0
    await gone(int(outcome["stdout"]))


@posix_only
async def test_canceling_ends_the_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "told")
    code = "import os, time; open('told', 'w').write(str(os.getpid())); time.sleep(600)"
    task = asyncio.create_task(python(code, ToolContext(folder=tmp_path, allow_code=True)))
    process = int(await asyncio.to_thread((tmp_path / "told").read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(process)


async def test_missing_program_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(ToolError, match="/no/such/python cannot be started: No such file or directory"):
        await python("print(1)")


async def gone(process: int) -> None:
    """Wait until a process has ended; a zombie counts as ended."""
    async with asyncio.timeout(10):
        while _is_alive(process):  # noqa: ASYNC110 - it is no child of this process
            await asyncio.sleep(0)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_command_with_nul_is_refused() -> None:
    with pytest.raises(ToolError, match="NUL character"):
        await shell("echo a\0b")


@pytest.mark.parametrize("call", [python, shell])
async def test_missing_folder_is_an_error(call: Any, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="folder no longer exists"):
        await call("exit", ToolContext(folder=tmp_path / "gone", allow_code=True))


@pytest.mark.parametrize("call", [python, shell])
async def test_missing_temporary_folder_is_an_error(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(ToolError, match=r"temporary folder: .* not exist"):
        await call("exit")


def test_command_line_is_unchanged_in_a_batch_file(tmp_path: Path) -> None:
    folder = tmp_path / "a (b) & c"
    folder.mkdir()
    *start, file = batch_file_arguments(folder, 'echo "ü b" | more')
    assert start[1:] == ["/d", "/c", "call"]
    assert Path(file).parent == folder
    assert Path(file).read_bytes().decode("utf-8").split("\r\n")[1:] == ["chcp 65001 >nul", 'echo "ü b" | more', ""]


def test_line_ends_of_a_command_are_those_of_windows_in_a_batch_file(tmp_path: Path) -> None:
    *_, file = batch_file_arguments(tmp_path, "dir\r\ncd\nver")
    assert Path(file).read_bytes().split(b"\r\n")[2:] == [b"dir", b"cd", b"ver", b""]
