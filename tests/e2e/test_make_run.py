"""`make run` opens the window, or does the same run without one where none can be shown.

The program is a stand-in that notes its arguments; `tests/app/test_entry.py` tests the real messages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"
pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("make") is None, reason="This test needs make, which is missing."
)


def make_run(folder: Path, exit_code: int, *, is_set_up: bool = True) -> tuple[int, list[str], str]:
    """Run `make run`, with a program that ends with this code where it shall show a window.

    Returns:
        The exit code, the arguments of each call of the program and of the package client, and what was printed.
    """
    shutil.copy(MAKEFILE, folder)
    for name in ("requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        (folder / name).touch()
        os.utime(folder / name, (0, 0))
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    calls = folder / "calls"
    (programs / "loopwright").write_text(
        f'#!/bin/sh\necho "called $*" >> "{calls}"\n[ $# -gt 0 ] || exit {exit_code}\n', encoding="utf-8"
    )
    (programs / "uv").write_text(f'#!/bin/sh\necho "uv $*" >> "{calls}"\n', encoding="utf-8")
    for name in ("loopwright", "python", "uv"):
        (programs / name).touch()
        (programs / name).chmod(0o755)
    if is_set_up:
        (folder / ".venv" / ".installed").touch()
    # What `make test` hands on would have it announce the folders that it enters.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    done = subprocess.run(
        ["make", "run"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, calls.read_text("utf-8").splitlines(), done.stdout


def test_the_window_is_all_that_is_started(tmp_path: Path) -> None:
    assert make_run(tmp_path, 0) == (0, ["called "], "")


def test_run_is_done_without_a_window_if_none_can_be_shown(tmp_path: Path) -> None:
    code, calls, output = make_run(tmp_path, 2)

    assert code == 0
    assert calls == ["called ", "called run templates/self-refine.loop.json"]
    assert output.startswith("So here is the run without a window.\n")


def test_failing_window_is_not_replaced_by_a_run_without_one(tmp_path: Path) -> None:
    code, calls, _ = make_run(tmp_path, 1)

    assert code != 0
    assert calls == ["called "]


def test_setting_up_installs_no_developer_tools(tmp_path: Path) -> None:
    code, (packages, program, window), _ = make_run(tmp_path, 0, is_set_up=False)

    assert code == 0
    assert packages.startswith("uv pip sync ")
    assert packages.endswith(" requirements.lock")
    assert program.endswith(" --no-deps --no-build-isolation -e .")
    assert window == "called "
