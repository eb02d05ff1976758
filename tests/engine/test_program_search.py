"""Programs are found in the folders of PATH, and not in the current folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.program_search import find_program
from tests.closed_folder import close_folder


def _program(file: Path) -> str:
    file.parent.mkdir(exist_ok=True)
    file.touch(mode=0o755)
    return str(file)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The current folder, and the last one of PATH, which names the current one in two ways before it."""
    current, listed = tmp_path / "current", tmp_path / "listed"
    current.mkdir()
    monkeypatch.chdir(current)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", str(listed)]))
    monkeypatch.setenv("PATHEXT", ".EXE;.CMD")
    return current, listed


@pytest.mark.parametrize("on_windows", [False, True])
def test_program_in_the_current_folder_is_not_found(folders: tuple[Path, Path], on_windows: bool):
    current, listed = folders
    _program(current / "tool.EXE")
    assert find_program("tool.EXE", on_windows=on_windows) is None
    assert find_program("tool", on_windows=on_windows) is None
    expected = _program(listed / "tool.EXE")
    assert find_program("tool.EXE", on_windows=on_windows) == expected


def test_suffix_is_added_on_windows(folders: tuple[Path, Path]):
    _, listed = folders
    script = _program(listed / "npx.CMD")
    _program(listed / "npx")  # the shell script that comes with it
    assert find_program("npx", on_windows=True) == script
    dotted = _program(listed / "python3.11.EXE")
    assert find_program("python3.11", on_windows=True) == dotted


def test_path_is_not_searched_for(folders: tuple[Path, Path]):
    current, _ = folders
    _program(current / "tool")
    assert find_program("./tool") == "./tool"
    assert find_program(str(current / "tool")) == str(current / "tool")
    assert find_program("./other") is None


@pytest.mark.skipif(os.name == "nt", reason="there, every file may be executed")
def test_file_that_may_not_be_executed_is_no_program(folders: tuple[Path, Path]):
    _, listed = folders
    Path(_program(listed / "tool")).chmod(0o644)
    assert find_program("tool") is None


def test_folder_that_may_not_be_entered_has_no_program(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch):
    """PATH of a start with `sudo -u` names folders of another user."""
    current, listed = folders
    closed = current.parent / "closed"
    _program(closed / "tool")
    expected = _program(listed / "tool")
    monkeypatch.setenv("PATH", os.pathsep.join([str(closed), str(listed)]))
    close_folder(closed, monkeypatch)
    assert find_program("tool") == expected
