from __future__ import annotations

import itertools
import os
import re
import subprocess
from pathlib import Path

import pytest

from engine.cli import main as main_module
from engine.errors import EngineError
from tests.engine.cli.kit import PROGRAM, Program, environment, process, refine, write
from tests.wording import mentions

COMMANDS = ["run", "validate", "graph", "nodes", "templates", "models"]


def test_without_arguments_shows_help(program: Program):
    ended = program()
    assert ended.code == 0
    assert "Usage: loopwright [OPTIONS] COMMAND [ARGS]..." in ended.out
    assert all(f" {command} " in ended.out for command in COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, "models set-key", "models remove-key"])
def test_every_command_has_help_with_an_example(program: Program, command: str):
    ended = program(*command.split(), "--help")
    assert ended.code == 0
    assert f"Example: loopwright {command}" in " ".join(ended.out.split())


@pytest.mark.parametrize("group", ["", "runs", "models", "config"])
def test_a_list_of_commands_has_a_line_for_each_at_80_columns(
    program: Program, monkeypatch: pytest.MonkeyPatch, group: str
):
    monkeypatch.setenv("COLUMNS", "80")
    _, _, listed = program(*group.split(), "--help").out.partition("Commands")
    rows = [line for line in listed.splitlines()[1:] if line.startswith("│")]
    assert rows
    assert all(row[2] != " " for row in rows)


@pytest.mark.parametrize("command", ["run", "batch", "models"])
def test_the_lines_of_a_paragraph_of_the_help_are_filled(
    program: Program, monkeypatch: pytest.MonkeyPatch, command: str
):
    monkeypatch.setenv("COLUMNS", "80")
    text, _, _ = program(command, "--help").out.partition("╭")
    for paragraph in re.split(r"\n *\n", text.strip()):
        for line, following in itertools.pairwise(map(str.split, paragraph.splitlines())):
            assert len(" ".join([*line, following[0]])) > 78


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_output(program: Program, command: str):
    assert "--json" in program(command, "--help").out


def test_version_is_that_of_the_package(program: Program):
    from importlib.metadata import version

    expected = f"loopwright {version('loopwright')}\n"
    assert [program(option).out for option in ("--version", "-V")] == [expected, expected]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["rum"], "'rum' … 'run'? … 'loopwright --help'."),
        (["run"], "'FILE' … 'loopwright run --help'."),
        (["export", "self-refine"], "'--to' … python, langgraph … 'loopwright export --help'."),
        (["nodes", "--bad"], "--bad … 'loopwright nodes --help'."),
        (["run", "x", "--budget-usd", "inf"], "'--budget-usd': … finite … 'loopwright run --help'."),
        (["run", "x", "--folder", "/no/such/folder"], "'--folder': … '/no/such/folder' … 'loopwright run --help'."),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(program: Program, arguments: list[str], parts: str):
    ended = program(*arguments)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert mentions(line, parts), line


def test_control_characters_in_errors_are_escaped(program: Program):
    ended = program("validate", "no\x1b[2J\nsuch")
    assert ended.code == 2
    assert "\x1b" not in ended.out + ended.err


class TestFaults:
    """A bug of the program itself."""

    @pytest.fixture(autouse=True)
    def fault(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken() -> int:
            raise self.error

        monkeypatch.delenv("LOOPWRIGHT_DEBUG", raising=False)
        nodes = next(command for command in main_module.app.registered_commands if command.name == "nodes")
        monkeypatch.setattr(nodes, "callback", broken)

    error: BaseException = KeyError("sk-secret")

    def test_one_sentence_without_the_text_of_the_error(self, program: Program):
        ended = program("nodes")
        assert ended.code == 1
        assert ended.err.startswith("Internal error (KeyError in test_main.py, line ")
        assert "LOOPWRIGHT_DEBUG=1" in ended.err
        assert ended.err.count("\n") == 1
        assert "sk-secret" not in ended.err

    def test_traceback_in_debug_mode(self, program: Program, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("LOOPWRIGHT_DEBUG", "1")
        assert "Traceback (most recent call last)" in program("nodes").err

    def test_os_error_with_a_file_is_not_an_output_error(self, program: Program):
        self.error = PermissionError(13, "Permission denied", "some/file")
        assert program("nodes").err.startswith("Internal error (PermissionError")

    def test_engine_error_is_message_and_remedy(self, program: Program):
        self.error = EngineError("It is broken.", "Mend it.")
        ended = program("nodes")
        assert (ended.code, ended.err) == (2, "It is broken. Mend it.\n")

    def test_ctrl_c_is_exit_code_130(self, program: Program):
        self.error = KeyboardInterrupt()
        assert program("nodes").code == 130


def test_closed_output_is_not_an_error():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, "nodes", "--json"], stdout=writing, stderr=subprocess.PIPE, env=environment(), check=False
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_reported():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, "nodes"], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False)
    assert done.stderr == b"The output cannot be written: No space left on device.\n"
    assert done.returncode == 1


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_closed_streams_are_not_an_error():
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" "$@" >&- 2>&-', *PROGRAM, "nodes"], env=environment(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_run_with_closed_standard_input_completes(tmp_path: Path):
    script = write(tmp_path, {"default": "Good."}, "script.json")
    arguments = ("run", str(write(tmp_path, refine(1))), "-m", f"scripted:{script}", "--no-store")
    command = ["/bin/sh", "-c", '"$0" "$@" <&-', *PROGRAM, *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Good." in done.stdout


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, {"LC_ALL": "POSIX"}]
)
def test_any_character_can_be_written_in_an_ascii_locale(locale: dict[str, str], tmp_path: Path):
    source = refine()
    source["nodes"][2]["type"] = "Größe 界 \ud83d"
    file = write(tmp_path, source)
    done = process("validate", file, env=environment(**locale))
    assert done.returncode == 2
    assert b"There is no node type" in done.stdout
    assert b"Traceback" not in done.stderr
    assert process("--help", env=environment(**locale)).returncode == 0
