"""Files are replaced completely or not at all, even if the program is killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engine.safe_file_io import clear_unfinished, is_windows_name, replace_file, unfinished_name

posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX system")
HOUR_S = 3600

_KILLED_WHILE_WRITING = """
import resource, signal, sys
from pathlib import Path
from engine.safe_file_io import replace_file

signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # the system kills who writes a file beyond the limit
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
replace_file(Path(sys.argv[1]), b"new" * 1000)
"""


@posix
def test_a_kill_leaves_the_old_file_and_a_later_write_removes_the_temporary_one(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"old")
    killed = subprocess.run([sys.executable, "-c", _KILLED_WHILE_WRITING, file], check=False)
    assert killed.returncode == -signal.SIGXFSZ
    assert file.read_bytes() == b"old"
    (left,) = set(tmp_path.iterdir()) - {file}

    replace_file(tmp_path / "b", b"other")
    assert left.exists(), "another process may still be writing it"
    _make_old(left)
    replace_file(file, b"new")

    assert file.read_bytes() == b"new"
    assert sorted(tmp_path.iterdir()) == [file, tmp_path / "b"]


def test_only_temporary_files_of_this_program_are_removed(tmp_path: Path):
    names = [".loopwright-0123456789abcdef.tmp.txt", ".loopwright-0123.tmp", ".0123456789abcdef.tmp", "a.tmp"]
    files = [tmp_path / name for name in names]
    unfinished = tmp_path / unfinished_name()
    for file in (*files, unfinished):
        file.touch()
        _make_old(file)
    folder = tmp_path / unfinished_name()
    folder.mkdir()
    _make_old(folder)

    clear_unfinished(tmp_path)
    clear_unfinished(tmp_path / "none")

    assert sorted(tmp_path.iterdir()) == sorted([*files, folder])


@posix
@pytest.mark.parametrize(("wait", "synced"), [(True, ["file", "folder"]), (False, [])])
def test_waiting_for_the_disk_syncs_the_file_and_then_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: bool, synced: list[str]
):
    file = tmp_path / "a"
    asked: list[str] = []

    def note(descriptor: int) -> None:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        assert file.exists() is not is_file, "the name is another file's before, and this one's after"
        asked.append("file" if is_file else "folder")

    monkeypatch.setattr(os, "fsync", note)
    replace_file(file, [b"one", b"two"], wait_for_disk=wait)

    assert asked == synced
    assert file.read_bytes() == b"onetwo"


def _make_old(file: Path) -> None:
    then = time.time() - HOUR_S - 60
    os.utime(file, (then, then))


RESERVED = ["con", "NUL.txt", "con .txt", "aux.tar.gz", "CONIN$", "com1", "lpt9.log", "COM²", "a?", "x.", "x "]
ALLOWED = ["console", "nullable.txt", "a.con", "com10", "comx", "conin", ".con", "ä b.txt", "-"]


@pytest.mark.parametrize("name", [*RESERVED, "a:b"])  # for the standard library, a: is a drive here
def test_windows_does_not_allow_reserved_names(name: str):
    assert not is_windows_name(name)


@pytest.mark.parametrize("name", ALLOWED)
def test_windows_allows_similar_names(name: str):
    assert is_windows_name(name)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="ntpath.isreserved is new in Python 3.13")
@pytest.mark.parametrize("name", [*RESERVED, *ALLOWED])
def test_reserved_names_are_those_of_the_standard_library(name: str):
    import ntpath

    assert ntpath.isreserved(name) is not is_windows_name(name)


def _windows_error(number: int) -> OSError:
    error = PermissionError(13, "Permission denied")
    error.winerror = number  # pyright: ignore[reportAttributeAccessIssue] - only Windows has it
    return error


def test_file_that_is_open_for_a_moment_on_windows_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    failures, move = [_windows_error(32), _windows_error(5)], os.replace

    def replace(*paths: Path, **folders: Any) -> None:
        if failures:
            raise failures.pop()
        move(*paths, **folders)

    monkeypatch.setattr(os, "replace", replace)
    (tmp_path / "a").write_bytes(b"old")
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(("error", "attempts"), [(_windows_error(32), 5), (_windows_error(112), 1), (OSError(28), 1)])
def test_file_that_cannot_be_replaced_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, attempts: int
):
    tried: list[Path] = []

    def replace(_file: Path, target: Path, **_folders: Any) -> None:
        tried.append(target)
        raise error

    monkeypatch.setattr(os, "replace", replace)
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(OSError):
        replace_file(tmp_path / "a", b"new")
    assert len(tried) == attempts
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"old")]
