"""Files are replaced completely or not at all, even if the program is killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.safe_file_io import clear_unfinished, replace_file, unfinished_name

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
