"""A start of the real program while a window is open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.main import open_at_start, open_requested
from app.window.main_window import open_files
from app.workbench import Workbench
from engine.document.builder import Builder
from engine.document.files import save
from tests.app.window.conftest import await_files, open_file, saved, small

ROOT = Path(__file__).parents[3]
_LEFT_RUNNING = """
import sys
from PySide6.QtCore import QTimer
from tests.app.window import listening_process

class Workbench(listening_process.ReportingWorkbench):
    def show(self):
        super().show()
        self.closing.background.append(None)
        QTimer.singleShot(0, self.leave)

    def leave(self):
        self.window.close()
        listening_process.report("closed")

listening_process.ReportingWorkbench = Workbench
sys.exit(listening_process.start())
"""
"""A program whose window is closed while a run continues."""

PROGRAM = ["-m", "tests.app.window.listening_process"]
_IMPATIENT = """
import sys
from functools import partial
from app import single_instance
single_instance.hand_over = partial(single_instance.hand_over, timeout_s=0.3)
from tests.app.window.listening_process import start
sys.exit(start())
"""


def named(folder: Path, name: str) -> Path:
    """A file with a workflow of that name."""
    flow = Builder(name)
    flow.add("input", id="text")
    path = folder / f"{name}.loop.json"
    save(flow.build(), path)
    return path


class Program:
    """A process of the program."""

    def __init__(self, arguments: list[str | Path], environment: dict[str, str], folder: Path) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, *map(str, arguments)]
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)
        self.lines: list[str] = []

    def wait_for(self, line: str) -> None:
        """Read what it reports up to a line."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        while not self.lines or self.lines[-1] != line:
            read = self.process.stdout.readline()
            assert read, f"it ended after {self.lines}: {self.process.stderr.read()}"
            self.lines.append(read.rstrip("\n"))

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; its exit code, the rest of its output, and its errors."""
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors


Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the program in a folder with its own settings."""
    started: list[Program] = []
    folders = {name: str(tmp_path / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    environment = {**os.environ, **folders, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}

    def begin(*arguments: str | Path) -> Program:
        started.append(Program(list(arguments), environment, tmp_path))
        return started[-1]

    yield begin
    for program in started:
        program.process.kill()
        program.process.communicate()


@pytest.mark.slow
def test_second_start_opens_its_files_in_the_open_window_and_ends(start: Start, tmp_path: Path) -> None:
    first = start(*PROGRAM, "open", named(tmp_path, "one"))
    named(tmp_path, "two")
    first.wait_for("['one']")

    second = start("-m", "app.entry", "two.loop.json")

    assert second.end() == (0, "", "")
    first.wait_for("['one', 'two']")
    assert first.lines.count("front") == 1


@pytest.mark.slow
def test_new_window_is_a_process_of_its_own_that_the_next_start_does_not_open_again(
    start: Start, tmp_path: Path
) -> None:
    first = start(*PROGRAM, "open", named(tmp_path, "one"))
    first.wait_for("['one']")
    second = start(*PROGRAM, "open", "--new-window", named(tmp_path, "two"))
    second.wait_for("['two']")

    os.kill(first.process.pid, signal.SIGKILL)
    first.end()
    third = start(*PROGRAM)

    third.wait_for("['one']")
    assert "front" not in second.lines
    fourth = start(*PROGRAM, "open", named(tmp_path, "three"))
    assert fourth.end() == (0, "", "")
    third.wait_for("['one', 'three']")


@pytest.mark.slow
def test_window_that_hangs_does_not_stop_the_next_one(start: Start, tmp_path: Path) -> None:
    first = start(*PROGRAM, "open", named(tmp_path, "one"))
    first.wait_for("['one']")
    os.kill(first.process.pid, signal.SIGSTOP)

    second = start("-c", _IMPATIENT, "open", named(tmp_path, "two"))
    second.wait_for("['two']")
    second.process.terminate()

    assert "does not respond" in second.end()[2]
    os.kill(first.process.pid, signal.SIGCONT)
    third = start("-m", "app.entry", named(tmp_path, "three"))
    assert third.end() == (0, "", "")
    first.wait_for("['one', 'three']")


@pytest.mark.slow
def test_start_after_the_window_was_closed_opens_another_while_a_run_continues(start: Start, tmp_path: Path) -> None:
    first = start("-c", _LEFT_RUNNING, "open", named(tmp_path, "one"))
    first.wait_for("closed")

    second = start(*PROGRAM, "open", named(tmp_path, "two"))

    second.wait_for("['two']")
    assert first.process.poll() is None


def test_desktop_asks_to_open_a_file() -> None:
    program = (
        "from PySide6.QtGui import QFileOpenEvent\n"
        "from app.single_instance import Application\n"
        "application = Application([])\n"
        "application.files_requested.connect(lambda files: (print(files[0].name), application.quit()))\n"
        "application.postEvent(application, QFileOpenEvent('/tmp/one.loopwright'))\n"
        "application.exec()\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "one.loopwright\n"


def test_additional_window_starts_empty_and_is_not_remembered(workbench: Workbench, tmp_path: Path) -> None:
    first = saved(tmp_path, "first.loop.json")
    document = open_file(workbench, first)
    workbench.is_additional = True
    workbench.documents.drop(document)
    (tmp_path / "data").mkdir()
    save(small(), tmp_path / "data" / "unsaved-1.autosave")

    open_at_start(workbench, [], [])
    await_files(workbench)

    assert workbench.documents.all == []
    open_file(workbench, saved(tmp_path, "second.loop.json"))
    assert open_files(workbench.preferences, tmp_path) == [first]


def test_named_file_opens_in_front_of_recovered_documents(workbench: Workbench, tmp_path: Path) -> None:
    named = saved(tmp_path, "named.loop.json")
    (tmp_path / "data").mkdir()
    save(small(), tmp_path / "data" / "unsaved-1.autosave")

    open_at_start(workbench, [named], [])
    await_files(workbench)

    assert [document.session.path for document in workbench.documents.all] == [named, None]
    assert workbench.current is not None
    assert workbench.current.session.path == named


def test_files_requested_during_the_start_open_after_it(workbench: Workbench, tmp_path: Path) -> None:
    workbench.is_starting = True
    waiting: list[Path] = []
    files = [saved(tmp_path, f"{name}.loop.json") for name in "abc"]

    open_requested(workbench, waiting, files[1:2])
    assert not workbench.documents.is_reading
    open_at_start(workbench, files[:1], waiting)
    open_requested(workbench, waiting, files[2:])
    await_files(workbench)

    assert [document.session.path for document in workbench.documents.all] == files
