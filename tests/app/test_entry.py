from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from app import entry
from engine.cli.remedies import install_command
from tests.wording import mentions

SCREEN = {"QT_QPA_PLATFORM": "offscreen"}


def test_command_runs_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["templates"]) == 0

    assert "self-refine" in capsys.readouterr().out


def test_command_line_works_without_qt() -> None:
    program = (
        "import sys\n"
        "for name in ('PySide6', 'NodeGraphQt'): sys.modules[name] = None\n"
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


@pytest.mark.parametrize("environment", [{}, SCREEN])
def test_command_without_a_console_has_no_standard_streams(environment: Mapping[str, str], tmp_path: Path) -> None:
    program = (
        "import app.main, os\n"
        "sys.stdin = sys.stdout = sys.stderr = None\n"
        "app.main.run_window = lambda *_: os._exit(7 if all((sys.stdin, sys.stdout, sys.stderr)) else 8)"
    )

    done = run_without_window(program, {**environment, "XDG_RUNTIME_DIR": str(tmp_path)})

    assert done.returncode == (7 if environment else 2)


def test_missing_pyside_is_reported_with_what_to_install() -> None:
    done = run_without_window("sys.modules['PySide6'] = None", SCREEN)

    assert done.returncode == 2
    assert install_command("app") in done.stderr
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
    ("libraries", "parts"),
    [
        (["libxcb-cursor.so.0"], "libxcb-cursor.so.0, … `sudo apt-get install libxcb-cursor0`"),
        (
            ["libEGL.so.1", "libglib-2.0.so.0", "libxcb-icccm.so.4"],
            "libEGL.so.1, … `sudo apt-get install libegl1 libglib2.0-0 libxcb-icccm4`",
        ),
        (["libodd-2.1.so.7"], "libodd-2.1.so.7, … your system"),
    ],
)
def test_sentence_names_all_missing_libraries_and_their_packages(libraries: list[str], parts: str) -> None:
    assert mentions(entry.missing_libraries(libraries), parts)


def test_import_that_fails_for_another_reason_is_quoted() -> None:
    assert "Qt cannot be loaded: undefined symbol: x." in entry.import_failure("undefined symbol: x")


def test_no_obstacle_with_a_screen() -> None:
    assert entry.window_obstacle(SCREEN) == ""


def test_missing_canvas_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "NodeGraphQt" else find(name))

    assert "NodeGraphQt is not installed" in entry.window_obstacle(SCREEN)


LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="This is about libraries of Linux.")


@LINUX
def test_all_missing_x11_libraries_are_named_before_qt_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "X11_LIBRARIES", ("libxcb-nonsense.so.9", "libxcb.so.1", "libxcb-absurd.so.3"))

    obstacle = entry.window_obstacle({"DISPLAY": ":0"})
    assert "libxcb-nonsense.so.9, libxcb-absurd.so.3, which are missing" in obstacle
    assert "libxcb-nonsense9 libxcb-absurd3" in obstacle
    assert entry.window_obstacle({"WAYLAND_DISPLAY": "wayland-0"}) == ""


def needed_by(file: Path) -> set[str]:
    """The libraries that a library of Qt loads, those of Qt included."""
    done = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True)
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", done.stdout))


@LINUX
@pytest.mark.skipif(shutil.which("readelf") is None, reason="This test needs readelf, which is missing.")
def test_no_library_that_qt_needs_is_missing_from_the_lists() -> None:
    import PySide6

    qt = Path(PySide6.__path__[0]) / "Qt"
    waiting, needed = [qt / "plugins" / "platforms" / "libqxcb.so", qt / "lib" / "libQt6Widgets.so.6"], set[str]()
    while waiting:
        for library in needed_by(waiting.pop()) - needed:
            needed.add(library)
            if (qt / "lib" / library).exists():
                waiting.append(qt / "lib" / library)
    everywhere = re.compile(r"lib(Qt6|icu|c|m|z|dl|pthread|zstd|gcc_s|stdc\+\+|gthread-2.0)[\w]*\.so|ld-linux")

    listed = {*entry.QT_LIBRARIES, *entry.X11_LIBRARIES}
    assert {library for library in needed if not everywhere.match(library)} == listed


BROUGHT_BY_OTHERS = (
    {"libfreetype6", "libx11-6", "libx11-xcb1", "libxkbcommon0"}
    | {
        f"libxcb{name}"
        for name in ("1", "-image0", "-randr0", "-render0", "-render-util0", "-shm0", "-sync1", "-util1")
    }
    | {"libxcb-xfixes0", "libxcb-xkb1"}
)
"""Packages that those in the README depend on, by `apt-cache depends --recurse`."""


def test_readme_lists_the_packages_of_all_libraries() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    found = re.search(r"apt-get\s+install\s+([^`]+)`", text)
    assert found is not None
    packages = {entry.debian_package(library) for library in (*entry.QT_LIBRARIES, *entry.X11_LIBRARIES)}

    assert packages - BROUGHT_BY_OTHERS == {name for name in found[1].split() if name.startswith("lib")} - {"libgomp1"}


@LINUX
def test_display_that_refuses_is_reported_in_one_sentence(tmp_path: Path) -> None:
    done = run_without_window("", {"DISPLAY": str(tmp_path / "no-socket:0")})

    assert done.returncode == 2
    assert done.stderr.startswith("The display ")
    assert done.stderr.count("\n") == 1


@LINUX
def test_display_that_does_not_answer_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "X_SERVER_TIMEOUT_S", 0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen()
        monkeypatch.setenv("DISPLAY", str(tmp_path / "silent"))
        assert "does not answer" in entry.window_obstacle({"DISPLAY": str(tmp_path / "silent")})


def test_files_are_passed_to_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(entry, "window_obstacle", lambda _environment: "")
    monkeypatch.setattr(entry, "open_window", lambda window: (seen.append(window.files), 0)[1])

    monkeypatch.setattr(entry, "missing_files", lambda _files: "")

    assert entry.main(["open", "one.loop.json", "two.loop.json"]) == 0
    assert entry.main(["one.loop.json", "two"]) == 0
    assert entry.main([]) == 0
    assert seen == [["one.loop.json", "two.loop.json"], ["one.loop.json", "two"], []]


@pytest.mark.parametrize("options", [[], ["--store=h.sqlite3"]])
@pytest.mark.parametrize("file", ["a.loop.json", "folder/a", "./run", "a.yaml"])
def test_file_name_opens_the_window(options: list[str], file: str) -> None:
    found = entry.window_arguments([*options, file])
    assert found is not None
    assert found.files == [file]


def test_command_wins_over_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run", "mine"):
        (tmp_path / name).touch()

    assert entry.window_arguments(["run"]) is None
    assert entry.window_arguments(["mine"]) == entry.WindowArguments(["mine"])
    assert entry.window_arguments(["other"]) is None, "the command line reports an unknown command"


def test_missing_file_is_reported_before_the_window_opens(tmp_path: Path) -> None:
    there = tmp_path / "there.loop.json"
    there.touch()
    program = f"from app.entry import main\nsys.exit(main(['{there}', '{tmp_path / 'gone.loop.json'}']))"

    done = run_without_window(program, SCREEN)

    assert done.returncode == 2
    assert done.stderr.startswith(f"There is no file “{tmp_path / 'gone.loop.json'}”.")


def test_missing_file_with_recoverable_work_opens(tmp_path: Path) -> None:
    (tmp_path / ".gone.loop.json.autosave").touch()

    assert entry.missing_files([str(tmp_path / "gone.loop.json")]) == ""


@pytest.mark.parametrize(
    "given",
    [
        ["--store", "h.sqlite3"],
        ["--store=h.sqlite3", "open"],
        ["open", "--store", "h.sqlite3"],
    ],
)
def test_store_option_is_passed_to_the_window(given: list[str]) -> None:
    assert entry.window_arguments(given) == entry.WindowArguments([], Path("h.sqlite3"))


def test_files_and_store_option_may_be_in_any_order() -> None:
    expected = entry.WindowArguments(["a.loop.json"], Path("h.sqlite3"))
    assert entry.window_arguments(["open", "a.loop.json", "--store", "h.sqlite3"]) == expected
    assert entry.window_arguments(["--store", "h.sqlite3", "open", "a.loop.json"]) == expected


@pytest.mark.parametrize(
    "given",
    [
        ["--new-window", "a.loop.json"],
        ["--new-window", "open", "a.loop.json"],
        ["open", "a.loop.json", "--new-window"],
    ],
)
def test_new_window_option_is_passed_to_the_window(given: list[str]) -> None:
    assert entry.window_arguments(given) == entry.WindowArguments(["a.loop.json"], is_separate=True)


@pytest.mark.parametrize("given", [["--new-window", "--help"], ["--store=h.sqlite3", "-h"], ["open", "--help"]])
def test_help_after_an_option_of_the_window_is_that_of_the_window(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        entry.window_arguments(given)
    assert ended.value.code == 0
    assert "--new-window" in capsys.readouterr().out


def test_help_of_the_program_names_the_arguments_of_the_window(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("FILE", entry.OPEN_COMMAND, entry.STORE_OPTION, entry.NEW_WINDOW_OPTION))


def test_options_of_the_window_may_be_combined() -> None:
    expected = entry.WindowArguments([], Path("h.sqlite3"), is_separate=True)
    assert entry.window_arguments(["--new-window", "--store", "h.sqlite3"]) == expected
    assert entry.window_arguments(["--store=h.sqlite3", "--new-window", "open"]) == expected


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
