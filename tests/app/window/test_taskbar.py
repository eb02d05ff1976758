"""Taskbar progress of running documents, and its signal to docks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.controllers.desktop_integration import TaskbarProgress, platform_progress
from app.session import Session
from engine.document.files import load
from engine.runner.options import RunOptions
from tests.app.conftest import MakeSession
from tests.app.window.conftest import SELF_REFINE

ROOT = Path(__file__).parents[3]


def start(session: Session, tmp_path: Path) -> None:
    session.start_run({"task": "A note"}, RunOptions(model=f"scripted:{_script(tmp_path)}"))


def _script(tmp_path: Path) -> Path:
    script = tmp_path / "script.json"
    if not script.exists():  # a run of another session may be reading it
        script.write_text('{"default": "words"}')
    return script


def test_taskbar_progress_grows_and_disappears_at_the_end(
    make_session: MakeSession, qtbot: QtBot, tmp_path: Path
) -> None:
    reported: list[float | None] = []
    taskbar = TaskbarProgress(show=reported.append)
    session = make_session(load(SELF_REFINE))
    taskbar.follow(session)

    with qtbot.waitSignal(session.shown.ended):
        start(session, tmp_path)
        assert reported == [0.0]

    *shares, last = reported
    assert last is None
    assert taskbar.shown is None
    assert shares == sorted(set(shares)), "no share is reported twice, and none is smaller than the one before"
    assert set(shares) <= {0.0, 0.33, 0.67, 1.0}


def test_taskbar_shows_the_mean_of_several_runs(make_session: MakeSession, qtbot: QtBot, tmp_path: Path) -> None:
    reported: list[float | None] = []
    taskbar = TaskbarProgress(show=reported.append)
    first, second = make_session(load(SELF_REFINE)), make_session(load(SELF_REFINE))
    taskbar.follow(first)
    taskbar.follow(second)

    second.start_run({"task": "A note"}, RunOptions(model=f"scripted:{_script(tmp_path)}"), paused=True)
    qtbot.waitUntil(lambda: second.shown.view_model is not None and not second.shown.view_model.is_over)
    with qtbot.waitSignal(first.shown.ended):
        start(first, tmp_path)
    assert None not in reported
    assert taskbar.shown == 0

    assert second.shown.live is not None
    with qtbot.waitSignal(second.shown.ended):
        second.shown.live.cancel()
    assert reported[-1] is None


def test_stored_run_shows_no_taskbar_progress(make_session: MakeSession) -> None:
    reported: list[float | None] = []
    session = make_session(load(SELF_REFINE))
    TaskbarProgress(show=reported.append).follow(session)

    session.shown.started.emit()  # as where a run of the history is shown

    assert reported == []


def test_no_taskbar_signal_without_a_session_bus() -> None:
    assert platform_progress("linux", {}) is None
    assert platform_progress("linux", {"XDG_RUNTIME_DIR": "/nowhere"}) is None
    assert platform_progress("win32", {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}) is None
    assert platform_progress("linux", {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}) is not None


@pytest.mark.skipif(
    not (shutil.which("dbus-run-session") and shutil.which("dbus-monitor")),
    reason="This test listens on a session bus and needs dbus-run-session and dbus-monitor.",
)
def test_taskbar_progress_is_signalled_on_the_session_bus() -> None:
    """Uses a session bus of its own with a listener."""
    teller = (
        "import os, subprocess, sys\n"
        "from app.controllers.desktop_integration import INTERFACE, platform_progress\n"
        "from PySide6.QtCore import QCoreApplication\n"
        "application = QCoreApplication([])\n"
        "command = ['dbus-monitor', '--session', f\"interface='{INTERFACE}'\"]\n"
        "monitor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)\n"
        "while 'NameLost' not in monitor.stdout.readline(): pass\n"  # from now on it listens
        "show = platform_progress('linux', os.environ)\n"
        "show(0.5), show(None)\n"
        "lines = []\n"
        "while not (lines and 'boolean false' in lines[-1]): lines.append(monitor.stdout.readline())\n"
        "monitor.terminate(), monitor.wait()\n"
        "sys.stdout.write(''.join(lines))\n"
    )
    done = subprocess.run(
        ["dbus-run-session", "--", sys.executable, "-c", teller],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("member=Update") == 2
    assert done.stdout.count('string "application://loopwright.desktop"') == 2
    assert "double 0.5" in done.stdout
    assert done.stdout.index("boolean true") < done.stdout.index("boolean false")
