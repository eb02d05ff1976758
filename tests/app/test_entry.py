from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from app import entry

SCREEN = {"QT_QPA_PLATFORM": "offscreen"}


def test_command_runs_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["templates"]) == 0

    assert "self-refine" in capsys.readouterr().out


def test_command_line_works_without_qt() -> None:
    program = (
        "import sys\n"
        "for name in ('PySide6', 'NodeGraphQt', 'qtawesome'): sys.modules[name] = None\n"
        "from app.entry import main\n"
        "sys.exit(main(['--version']))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("loopwright ")


def run_without_window(program: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    clean.pop("QT_QPA_PLATFORM", None)
    return subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nfrom app.entry import main\nsys.exit(main([]))"],
        capture_output=True,
        text=True,
        check=False,
        env={**clean, **environment},
    )


def test_missing_screen_is_reported_in_one_sentence() -> None:
    done = run_without_window("", {})

    assert done.returncode == 2
    assert done.stderr == f"{entry.NO_SCREEN}\n"


def test_missing_pyside_is_reported_with_what_to_install() -> None:
    done = run_without_window("sys.modules['PySide6'] = None", SCREEN)

    assert done.returncode == 2
    assert "pip install 'loopwright[app]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_missing_system_library_is_reported_with_its_package() -> None:
    breaking = (
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'PySide6.QtWidgets':\n"
        "            raise ImportError('libEGL.so.1: cannot open shared object file: No such file or directory')\n"
        "sys.meta_path.insert(0, Finder())"
    )

    done = run_without_window(breaking, SCREEN)

    assert done.returncode == 2
    assert "needs the system library libEGL.so.1" in done.stderr
    assert "sudo apt-get install libegl1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("libxcb-cursor.so.0: cannot open shared object file", "`sudo apt-get install libxcb-cursor0`"),
        ("libodd-2.1.so.7: cannot open shared object file", "libodd-2.1.so.7, which is missing. Install it with"),
        ("undefined symbol: x", "Qt cannot be loaded: undefined symbol: x."),
    ],
)
def test_sentence_for_a_missing_library(message: str, told: str) -> None:
    assert told in entry.missing_library(message)


def test_no_obstacle_with_a_screen() -> None:
    assert entry.window_obstacle(SCREEN) == ""


def test_missing_canvas_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "NodeGraphQt" else find(name))

    assert "NodeGraphQt is not installed" in entry.window_obstacle(SCREEN)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="X11 is Linux's")
def test_missing_x11_library_is_named_before_qt_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "X11_LIBRARIES", ("libxcb-nonsense.so.9",))

    assert "libxcb-nonsense.so.9" in entry.window_obstacle({"DISPLAY": ":0"})
    assert entry.window_obstacle({"WAYLAND_DISPLAY": "wayland-0"}) == ""


def test_files_are_passed_to_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    import app.main

    seen: list[list[str]] = []
    monkeypatch.setattr(entry, "window_obstacle", lambda _environment: "")
    monkeypatch.setattr(app.main, "run_window", lambda files, _store: (seen.append(files), 0)[1])

    assert entry.main(["open", "one.loop.json", "two.loop.json"]) == 0
    assert entry.main([]) == 0
    assert seen == [["one.loop.json", "two.loop.json"], []]


@pytest.mark.parametrize(
    "given",
    [
        ["--store", "h.sqlite3"],
        ["--store=h.sqlite3", "open"],
        ["open", "--store", "h.sqlite3"],
    ],
)
def test_store_option_is_passed_to_the_window(given: list[str]) -> None:
    assert entry.window_arguments(given) == ([], Path("h.sqlite3"))


def test_files_and_store_option_may_be_in_any_order() -> None:
    expected = (["a.loop.json"], Path("h.sqlite3"))
    assert entry.window_arguments(["open", "a.loop.json", "--store", "h.sqlite3"]) == expected
    assert entry.window_arguments(["--store", "h.sqlite3", "open", "a.loop.json"]) == expected


def test_command_with_store_option_opens_no_window() -> None:
    assert entry.window_arguments(["runs", "--store", "h.sqlite3"]) is None
    assert entry.window_arguments(["--store", "h.sqlite3", "runs"]) is None


def test_console_script_calls_this_module() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")

    assert 'loopwright = "app.entry:main"' in text


@pytest.mark.slow
def test_hanging_tool_delays_the_end_of_the_program_only_briefly(tmp_path: Path) -> None:
    home = {name: str(tmp_path) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}

    done = subprocess.run(
        [sys.executable, "-m", "tests.app.window.hanging_process"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **home, **SCREEN},
    )

    assert (done.returncode, done.stdout) == (0, "The window is closed.\n"), done.stderr
    assert list(tmp_path.rglob("*.sqlite3-wal")) == [], "the history was closed"
