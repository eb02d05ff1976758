"""A kill while somebody types loses at most two seconds of work; the rest is recovered."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.engine_thread import EngineThread
from app.settings.preferences import Preferences
from app.workbench import Workbench
from engine.document.files import load
from tests.app.window.conftest import Answers, await_files, end, press, saved

LOST_AT_MOST_S = 2.0
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")


@contextmanager
def typing(home: Path, *files: Path) -> Iterator[subprocess.Popen[str]]:
    """The program with somebody who types in it."""
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "QT_QPA_PLATFORM": "offscreen",
    }
    command = [sys.executable, "-m", "tests.app.window.editing_process", *map(str, files)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def killed_after(process: subprocess.Popen[str], moment_s: float) -> tuple[dict[int, float], float]:
    """The times of the changes and of the kill, some seconds after the first change."""
    assert process.stdout is not None
    reported: dict[int, float] = {}
    for line in process.stdout:
        number, when = line.split()
        reported[int(number)] = float(when)
        if reported[int(number)] - reported[0] >= moment_s:
            break
    os.kill(process.pid, signal.SIGKILL)
    killed = time.time()
    for line in process.stdout:
        if line.endswith("\n"):
            number, when = line.split()
            reported[int(number)] = float(when)
    process.wait()
    return reported, killed


def check_kept(description: str, reported: dict[int, float], killed: float) -> None:
    """Check that no change older than two seconds is lost; an empty description contains none."""
    number = int(description.removeprefix("change ") or -1)
    first_lost = reported.get(number + 1, killed)
    assert killed - first_lost <= LOST_AT_MOST_S


def next_start(engine: EngineThread, home: Path) -> Workbench:
    """A workbench with the settings and the data of the program that was killed."""
    preferences = Preferences(home / "config/loopwright/settings.json")
    workbench = Workbench(engine, preferences, dialogs=Answers(), data_folder=home / "data/loopwright/unsaved")
    preferences.setParent(workbench.window)
    workbench.show()
    return workbench


def use_what_is_offered(workbench: Workbench) -> None:
    (document,) = workbench.documents.all
    press(document.bars, "Restore")
    assert document.session.workflow.description.startswith("change ")


@pytest.mark.slow
def test_kill_loses_at_most_two_seconds_of_a_saved_document(
    engine_thread: EngineThread, tmp_path: Path, qtbot: object
) -> None:
    path = saved(tmp_path)
    with typing(tmp_path, path) as process:
        reported, killed = killed_after(process, 3.0)

    check_kept(load(tmp_path / ".one.loop.json.autosave").description, reported, killed)
    assert load(path).description == ""

    workbench = next_start(engine_thread, tmp_path)
    workbench.reopen()
    await_files(workbench)
    use_what_is_offered(workbench)
    end(workbench, qtbot)


@pytest.mark.slow
def test_document_without_a_file_is_recovered_after_a_kill(
    engine_thread: EngineThread, tmp_path: Path, qtbot: object
) -> None:
    with typing(tmp_path) as process:
        reported, killed = killed_after(process, 3.0)

    (file,) = (tmp_path / "data/loopwright/unsaved").glob("*.autosave")
    check_kept(load(file).description, reported, killed)
    workbench = next_start(engine_thread, tmp_path)
    workbench.documents.recover_unsaved()
    await_files(workbench)
    use_what_is_offered(workbench)
    end(workbench, qtbot)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_kill_at_any_time_loses_at_most_two_seconds(
    engine_thread: EngineThread, tmp_path: Path, qtbot: object, part: int
) -> None:
    moment_s = random.uniform(part * 1.5, (part + 1) * 1.5)
    path = saved(tmp_path)
    with typing(tmp_path, path) as process:
        reported, killed = killed_after(process, moment_s)

    assert load(path).description == "", "the saved file is as it was"
    workbench = next_start(engine_thread, tmp_path)
    workbench.reopen()
    await_files(workbench)
    (document,) = workbench.documents.all
    if document.bars.text("recovery"):
        press(document.bars, "Restore")
    check_kept(document.session.workflow.description, reported, killed)
    end(workbench, qtbot)
