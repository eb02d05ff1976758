"""Histories in folders and on disks that cannot be written are read; writing to them says why it fails.

On Linux, the tests mount a folder read-only: permissions do not stop the root user.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from engine.store import open_store
from tests.engine.store.run_samples import complete_run, head, store_run


def can_mount() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "--map-root-user", "--mount", "true"], check=False, capture_output=True)
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="This test needs a read-only mount, by unshare of Linux.")

OPEN = """
from pathlib import Path
from engine.store import StoreError, open_store
store = open_store(Path({path!r}), for_reading=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A history with a run, in a folder whose name has what must be escaped in an address."""
    folder = tmp_path / "old runs?#%41"
    folder.mkdir()
    path = folder / "h.sqlite3"
    with closing(open_store(path)) as store:
        store_run(store, head("a"), complete_run("a"))
    return path


@pytest.fixture
def in_read_only_folder(path: Path) -> Callable[[str], str]:
    """Runs Python code while the folder of the history is mounted read-only; returns its output."""

    def run(code: str) -> str:
        folder = str(path.parent)
        mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" -c "$3"'
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", folder, sys.executable, code]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_runs_of_a_read_only_history_are_listed_and_read(path: Path, in_read_only_folder: Callable[[str], str]):
    read = "print([run.run_id for run in store.runs()], len(list(store.events('a'))), len(store.document('a')) > 0)"
    expected = f"['a'] {len(complete_run('a'))} True"
    assert in_read_only_folder(OPEN.format(path=str(path)) + read) == expected
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_runs_are_listed_on_a_full_disk_and_what_would_change_them_is_refused(path: Path):
    code = """
from engine.store import StoreError
print([run.run_id for run in store.runs()], len(list(store.events("a"))))
for write in (lambda: store.pin("a", pinned=True), lambda: open_store(store._path)):
    try:
        write()
    except StoreError as error:
        print(error)
store.close()
"""
    listed, refused, full = _on_full_disk(path, OPEN + code).splitlines()
    assert listed == f"['a'] {len(complete_run('a'))}"
    assert "free space" in refused
    assert "the disk is full" in full


@pytest.mark.parametrize("is_older", [False, True])
def test_history_that_must_be_written_to_be_read_says_that_the_disk_is_full(path: Path, is_older: bool):
    if is_older:
        shutil.copyfile(Path(__file__).parents[2] / "data" / "history-2.sqlite3", path)
    else:
        path.with_name(f"{path.name}-wal").write_bytes(b"changes")
    code = OPEN.replace("store =", "try:") + "except StoreError as error: print(error)"
    assert "the disk is full" in _on_full_disk(path, code)


def test_what_is_still_in_the_wal_is_read(path: Path, in_read_only_folder: Callable[[str], str]):
    with closing(open_store(path)) as store:
        store.pin("a", pinned=True)  # waits for the disk
        assert path.with_name(f"{path.name}-wal").stat().st_size > 0
        read = "print(store.find('a').pinned)"
        assert in_read_only_folder(OPEN.format(path=str(path)) + read) == "True"


def test_wal_without_its_index_is_refused(path: Path, in_read_only_folder: Callable[[str], str]):
    path.with_name(f"{path.name}-wal").write_bytes(b"changes")
    assert "h.sqlite3" in _refused(path, in_read_only_folder, "for_reading=True")


def test_older_history_is_refused(path: Path, in_read_only_folder: Callable[[str], str]):
    shutil.copyfile(Path(__file__).parents[2] / "data" / "history-2.sqlite3", path)
    assert "older version" in _refused(path, in_read_only_folder, "for_reading=True")


def test_read_only_history_is_refused_for_runs(path: Path, in_read_only_folder: Callable[[str], str]):
    assert "cannot be written" in _refused(path, in_read_only_folder, "")


def test_link_in_a_read_only_folder_leads_to_a_history_that_is_written(
    path: Path, tmp_path: Path, in_read_only_folder: Callable[[str], str]
):
    target = path.rename(tmp_path / "target.sqlite3")
    path.symlink_to(target)
    write = "store.pin('a', pinned=True); print(store.find('a').pinned); store.close()"
    assert in_read_only_folder(OPEN.format(path=str(path)).replace(", for_reading=True", "") + write) == "True"


def _on_full_disk(path: Path, code: str) -> str:
    """Run Python code where the history is on a full disk, at `{path}`; return its output."""
    disk = path.parent / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=400k tmpfs "$1" && cp "$2"* "$1" || exit; cat /dev/zero 2>&- >"$1/fill"; '
    arguments = [str(disk), str(path), sys.executable, code.format(path=str(disk / path.name))]
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{mount}exec "$3" -c "$4"', "sh", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _refused(path: Path, in_read_only_folder: Callable[[str], str], options: str) -> str:
    code = f"""
from pathlib import Path
from engine.errors import Fix
from engine.store import StoreError, open_store
try:
    open_store(Path({str(path)!r}), {options})
except StoreError as error:
    assert error.fix is Fix.CHOOSE_HISTORY
    print(error)
"""
    return in_read_only_folder(code)


def test_writing_to_a_read_only_history_is_an_error(path: Path, in_read_only_folder: Callable[[str], str]):
    code = """
from engine.store import StoreError
for write in (lambda: store.delete(["a"]), lambda: store.pin("a", pinned=True)):
    try:
        write()
    except StoreError as error:
        print(error)
store.close()
"""
    output = in_read_only_folder(OPEN.format(path=str(path)) + code)
    assert output.count("cannot be written") == 2
