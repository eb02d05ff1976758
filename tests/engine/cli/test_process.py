"""The program in a separate process: signals, pipes and terminals."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.store.sqlite.store import SqliteStore
from tests.engine.cli.kit import PROGRAM, Program, document, drafts, echo, environment, process, refine, write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and terminals")

FOR_EVER = 3600


def slow(folder: Path, *before: str, iterations: int = 3) -> list[str]:
    """Arguments of a run whose model replies `before` and then never again."""
    script = write(folder, drafts(*before, {"text": "never", "delay_s": FOR_EVER}), "script.json")
    return ["run", str(write(folder, refine(iterations))), "--model", f"scripted:{script}"]


@contextmanager
def started(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    with subprocess.Popen([*PROGRAM, *arguments], env=environment(), **options) as running:
        overdue = threading.Timer(60, running.kill)
        overdue.start()
        try:
            yield running
        finally:
            overdue.cancel()
            running.kill()


def wait_for(stream: Any, words: bytes) -> bytes:
    """Read lines up to the one that contains the text."""
    read = b""
    for line in stream:
        read += line
        if words in line:
            return read
    raise AssertionError(f"{words!r} never came, but: {read!r}")


def test_ctrl_c_cancels_and_json_has_the_finished_results(tmp_path: Path):
    arguments = slow(tmp_path, "One.")
    with started(*arguments, "--events", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        wait_for(running.stdout, b'"path": "loop[1].draft"')
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    *events, result = [json.loads(line) for line in out.splitlines()]
    assert events[-1]["type"] == "run.cancelled"
    assert result["status"] == "cancelled"
    loop = result["loops"]["loop"]
    assert [each["result"] for each in loop["iterations"]] == ["One."]
    assert loop["exit_reason"] == "cancelled"
    assert err == b"The run was cancelled.\n"


def test_ctrl_c_shows_the_finished_results(tmp_path: Path):
    with started(*slow(tmp_path, "One."), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as running:
        wait_for(running.stdout, b"loop 1/3")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert b"loop: Stopped after 1 of 3: cancelled." in out
    assert b"Cancelled after " in out
    assert err == b"The run was cancelled.\n"


@pytest.mark.parametrize(
    ("command", "sent", "code"),
    [
        ("run", signal.SIGINT, 130),
        ("run", signal.SIGTERM, 143),
        ("resume", signal.SIGINT, 130),
        pytest.param("resume", signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param("fork", signal.SIGINT, 130, marks=pytest.mark.slow),
        ("fork", signal.SIGTERM, 143),
    ],
)
def test_signal_cancels_and_history_has_the_finished_results(
    program: Program, tmp_path: Path, command: str, sent: signal.Signals, code: int
):
    store = tmp_path / "history.sqlite3"
    arguments = slow(tmp_path, "One.")
    if command != "run":
        failing: Any = {"error": {"kind": "not_found"}}
        write(tmp_path, drafts("One.", failing), "script.json")
        run_id = program(*arguments, "--store", store, "--json").json["run_id"]
        slow(tmp_path, "One.", *([failing] if command == "resume" else []))  # the next call never ends
        place = ["--at", "loop[1]", "--yes"] if command == "fork" else []
        arguments = ["runs", command, run_id, *place]
    with started(
        *arguments, "--store", str(store), "--events", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        wait_for(running.stdout, b'"path": "loop[1].draft"')
        running.send_signal(sent)
        out, err = running.communicate(timeout=30)
    assert running.returncode == code
    assert json.loads(out.splitlines()[-1])["type"] == "run.cancelled"
    assert err.endswith(b"The run was cancelled.\n")
    history = SqliteStore(store)
    assert "cancelled" in {run.status for run in history.runs()}
    assert "running" not in {run.status for run in history.runs()}
    history.close()


@pytest.mark.parametrize("how", ["timeout", "ctrl_c"])
def test_hanging_tool_does_not_block_process_exit(tmp_path: Path, how: str):
    read = {"tool": "read_file", "arguments": {"path": "a.txt"}, "timeout_s": 0.1 if how == "timeout" else FOR_EVER}
    file = write(tmp_path, document([{"id": "read", "type": "tool", "config": read}], []))
    store = tmp_path / "history.sqlite3"
    arguments = ["run", str(file), "--allow", "--folder", str(tmp_path), "--store", str(store)]
    program = [sys.executable, "-m", "tests.engine.cli.hanging_process", *arguments]
    own = environment(LOOPWRIGHT_APPROVED=str(tmp_path / "approved.json"))
    with subprocess.Popen(program, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        overdue = threading.Timer(30, running.kill)
        overdue.start()
        wait_for(running.stderr, b"It hangs.")
        if how == "ctrl_c":
            running.send_signal(signal.SIGINT)
        _, err = running.communicate()
        overdue.cancel()

    expected = {"timeout": (1, b"It exceeded its timeout"), "ctrl_c": (130, b"The run was cancelled.")}[how]
    assert running.returncode == expected[0]
    assert expected[1] in err
    history = SqliteStore(store)
    assert [run.status for run in history.runs()] == ["failed" if how == "timeout" else "cancelled"]
    history.close()


def test_second_ctrl_c_ends_a_hanging_process():
    code = """
import os, signal, sys, time
from engine.cli.exit_codes import Interrupts
stopped = []
with Interrupts(lambda: stopped.append(1)):
    os.kill(os.getpid(), signal.SIGINT)
    print(stopped, flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    print("not reached", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (130, b"[1]\n")


def test_signal_handlers_are_restored_after_a_run():
    from engine.cli.exit_codes import Interrupts

    before = signal.getsignal(signal.SIGINT)
    with Interrupts(lambda: None):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_break_of_windows_stops_a_run_like_sigterm():
    code = (
        "import signal; signal.SIGBREAK = signal.SIGUSR1\n"
        "from engine.cli.exit_codes import Interrupts\n"
        "with Interrupts(lambda: print('stopped')) as interrupts: signal.raise_signal(signal.SIGUSR1)\n"
        "print(int(interrupts.code))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["stopped", "143"]


def test_closed_pipe_stops_the_run_quietly(tmp_path: Path):
    reply = {"text": "word " * 20_000, "stream": 1, "chunk_delay_s": 0.01}
    script = write(tmp_path, drafts(reply), "script.json")
    arguments = ["run", str(write(tmp_path, refine(1))), "--model", f"scripted:{script}"]
    reading, writing = os.pipe()
    with started(*arguments, "--events", stdout=writing, stderr=subprocess.PIPE) as running:
        os.close(writing)
        with os.fdopen(reading, "rb", buffering=0) as stream:
            assert b"run.started" in stream.readline()
        _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (1, b"")


def read_terminal(descriptor: int, until: bytes) -> bytes:
    """The output of a terminal, up to these bytes or its end."""
    shown = b""
    while until not in shown:
        assert select.select([descriptor], [], [], 30)[0], f"{until!r} never came, but: {shown!r}"
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            return shown
        if not piece:
            return shown
        shown += piece
    return shown


@contextmanager
def on_terminal(*arguments: str, **changes: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    import pty

    main_end, program_end = pty.openpty()
    try:
        with subprocess.Popen(
            [*PROGRAM, *arguments],
            env=environment(COLUMNS="100", LINES="40", **changes),
            stdin=program_end,
            stdout=program_end,
            stderr=program_end,
            start_new_session=True,
        ) as running:
            os.close(program_end)
            try:
                yield running, main_end
            finally:
                running.kill()
    finally:
        os.close(main_end)


def test_live_display_on_a_terminal_is_drawn_and_cleared(tmp_path: Path):
    reply = {"stream": ["The moon ", "pulls."], "chunk_delay_s": FOR_EVER}
    script = write(tmp_path, drafts("One.", reply), "script.json")
    arguments = ["run", str(write(tmp_path, refine())), "--model", f"scripted:{script}"]
    with on_terminal(*arguments) as (running, terminal):
        shown = read_terminal(terminal, b"The moon")
        assert b"2/3" in shown
        assert b"loop[1].draft" in shown
        assert b"\x1b[?25l" in shown
        running.send_signal(signal.SIGINT)
        rest = read_terminal(terminal, b"The run was cancelled.")
        assert running.wait(30) == 130
    assert b"\x1b[?25h" in rest
    assert b"3: cancelled." in rest


def test_model_text_cannot_control_the_terminal(tmp_path: Path):
    reply = {"stream": ["\x1b]0;owned\x07\x1b[2J", "x"], "chunk_delay_s": 0.3}
    script = write(tmp_path, drafts(reply), "script.json")
    with on_terminal("run", str(write(tmp_path, refine(1))), "--model", f"scripted:{script}") as (running, terminal):
        shown = read_terminal(terminal, b"Done: ")
        assert running.wait(30) == 0
    assert b"\x1b]0;" not in shown
    assert b"\x1b[2J" not in shown
    assert b"\\x1b]0;owned\\x07" in shown


STEERING = "\x1b]0;owned\x07\u202etxt.exe\x9b2J\x7f"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["runs", "show", "RUN"],
        ["runs", "show", "RUN", "--iteration", "draft"],
        ["runs", "show", "RUN", "--json"],
        ["runs", "diff", "RUN", "RUN"],
        ["runs", "export", "RUN", "--to", "markdown"],
        ["runs", "export", "RUN", "--to", "json"],
        ["runs", "export", "RUN", "--to", "csv"],
        ["runs"],
        ["export", "FILE", "--to", "python"],
        ["export", "FILE", "--to", "langgraph"],
        ["graph", "FILE"],
        ["validate", "FILE"],
        ["import", "YAML", "-o", "OUT", "--force"],
    ],
    ids=" ".join,
)
def test_no_command_writes_control_characters_to_the_terminal(program: Program, tmp_path: Path, command: list[str]):
    flow = document(
        [
            {"id": "task", "type": "input", "title": STEERING, "config": {"default": STEERING, STEERING: 1}},
            {"id": "draft", "type": "llm", "title": STEERING, "config": {"prompt": f"{STEERING} {{{{input}}}}"}},
            {"id": "out", "type": "output", "title": STEERING},
        ],
        ["task.value > draft.input", "draft.output > out.value"],
    )
    file, script = write(tmp_path, flow), write(tmp_path, drafts(STEERING), "script.json")
    steps = {"agents": {STEERING: {"role": STEERING}}, "steps": [{"id": STEERING, "agent": STEERING}]}
    run_id = program("run", file, "--model", f"scripted:{script}", "--json").json["run_id"]
    names = {"RUN": run_id, "FILE": str(file), "YAML": str(write(tmp_path, steps, "steps.yaml"))}
    arguments = [names.get(word, str(tmp_path / "out.loop.json") if word == "OUT" else word) for word in command]

    with on_terminal(*arguments) as (running, terminal):
        shown = read_terminal(terminal, b"\0 is never written")
        running.wait(30)

    for steering in (b"\x1b]", b"\x07", b"\x7f", b"\xc2\x9b", "\u202e".encode()):
        assert steering not in shown
    assert shown.strip()


def test_export_into_a_pipe_is_unchanged(program: Program, tmp_path: Path):
    file, script = write(tmp_path, refine(1)), write(tmp_path, drafts(STEERING), "script.json")
    run_id = program("run", file, "--model", f"scripted:{script}", "--json").json["run_id"]

    page = process("runs", "export", run_id, "--to", "markdown").stdout

    assert STEERING in page.decode()


def test_no_color_gives_a_live_display_without_colors(tmp_path: Path):
    script = write(tmp_path, drafts("One."), "script.json")
    arguments = ["run", str(write(tmp_path, refine(1))), "--model", f"scripted:{script}"]
    with on_terminal(*arguments, NO_COLOR="1") as (running, terminal):
        shown = read_terminal(terminal, b"Done: ")
        assert running.wait(30) == 0
    assert b"\x1b[3" not in shown
    assert b"One." in shown


def test_pipe_gets_lines_without_escape_sequences(tmp_path: Path):
    script = write(tmp_path, drafts("One.", "Two."), "script.json")
    done = process("run", write(tmp_path, refine(2)), "--model", f"scripted:{script}")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert b"loop[1].draft: done" in done.stdout
    assert b"loop 2/2" in done.stdout


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}])
def test_ascii_locale_escapes_other_characters(tmp_path: Path, locale: dict[str, str]):
    arguments = ["run", write(tmp_path, echo("text", "Größe 界 \ud83d 👩‍🔬"))]
    done = process(*arguments, env=environment(**locale))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\ud83d" in done.stdout
    result = json.loads(process(*arguments, "--json", env=environment(**locale)).stdout)
    assert result["outputs"] == {"result": "Größe 界 \ud83d 👩‍🔬"}


def test_ascii_locale_has_a_live_display(tmp_path: Path):
    script = write(tmp_path, drafts("Größe 界"), "script.json")
    arguments = ["run", str(write(tmp_path, refine(1))), "--model", f"scripted:{script}"]
    with on_terminal(*arguments, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0") as (running, terminal):
        shown = read_terminal(terminal, b"Done: ")
        assert running.wait(30) == 0
    assert b"Gr\\xf6\\xdfe" in shown


def test_value_on_the_command_line_in_any_encoding(tmp_path: Path):
    done = process("run", write(tmp_path, echo()), "-i", b"value=caf\xe9".decode("utf-8", "surrogateescape"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["outputs"] == {"result": "caf\udce9"}


def test_closed_pipe_stops_event_lines_quietly(tmp_path: Path):
    reading, writing = os.pipe()
    os.close(reading)
    with started(*slow(tmp_path), stdout=writing, stderr=subprocess.PIPE) as running:
        os.close(writing)
        _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (1, b"")
