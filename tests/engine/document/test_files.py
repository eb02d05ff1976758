"""Documents on disk: real files, links, pipes, and disks that refuse."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given

from engine.document.files import dumps, load, save
from engine.document.model import Workflow
from engine.document.problems import DocumentError
from tests.engine.document.strategies import workflows
from tests.examples import examples
from tests.wording import mentions

posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX file system")
OLD = Workflow(name="old")
NEW = Workflow(name="new", description="longer than the old one")


def failure_of_load(path: str | Path) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        load(path)
    assert str(caught.value).isprintable()
    return caught.value


def test_binary_file_is_called_that_instead_of_a_text_to_save_again(tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    failure = failure_of_load(path)
    assert "not text" in failure.message
    assert "UTF-8" not in failure.message + failure.remedy


def failure_of_save(path: str | Path) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        save(NEW, path)
    assert str(caught.value).isprintable()
    assert "The file cannot be saved: " in caught.value.message
    return caught.value


@examples(20)
@given(workflow=workflows())
def test_saved_document_opens_unchanged(workflow: Workflow, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("saved", numbered=True) / "a.loop.json"
    save(workflow, path)
    assert load(path) == workflow
    assert load(str(path)) == workflow
    assert path.read_bytes() == dumps(workflow).encode()


def test_save_leaves_only_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.loop.json"
    save(OLD, path)
    save(NEW, path)
    assert load(path) == NEW
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_save_keeps_permissions_and_a_new_file_gets_the_default_ones(tmp_path: Path) -> None:
    path, other = tmp_path / "a.loop.json", tmp_path / "other"
    save(OLD, path)
    other.write_text("")
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o640)
    save(NEW, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@posix
def test_save_through_a_link_replaces_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link, dangling = tmp_path / "real" / "a.loop.json", tmp_path / "link", tmp_path / "dangling"
    save(OLD, target)
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "real" / "b.loop.json")
    save(NEW, link)
    save(NEW, dangling)
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert load(target) == NEW
    assert load(tmp_path / "real" / "b.loop.json") == NEW


@posix
def test_circular_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert "cannot be opened" in failure_of_load(tmp_path / "a").message
    failure_of_save(tmp_path / "a")
    assert (tmp_path / "a").is_symlink()


def test_missing_file_and_missing_folder_are_named(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "a.loop.json"
    assert mentions(failure_of_load(path).message, f"{path}: … cannot be opened: … no such file")
    assert mentions(failure_of_save(path).message, f"{path}: … cannot be saved: … no such file")


def test_folder_is_refused(tmp_path: Path) -> None:
    assert mentions(failure_of_load(tmp_path).message, f"{tmp_path}: … a folder")
    assert "not an ordinary file" in failure_of_save(tmp_path).message
    assert list(tmp_path.iterdir()) == []


@posix
def test_pipe_and_device_are_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "a device or a pipe" in failure_of_load(pipe).message
    assert "a device or a pipe" in failure_of_load("/dev/zero").message
    failure_of_save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.loop.json"
    with path.open("wb") as file:
        file.truncate(200_000_000_000)
    assert "larger than 20 MB" in failure_of_load(path).message


@posix
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("a\x00b", "a\\x00b"),
        ("a\ud800b", "a\\ud800b"),
        ("x" * 5000, "xxx…xxx"),
        ("\x1b[2J", "\\x1b[2J"),
    ],
)
def test_strange_path_is_one_readable_line_of_the_message(name: str, shown: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/gone/{name}"
    for error in (failure_of_load(path), failure_of_save(path)):
        assert shown in error.message.replace("xxxx", "x" * 3) if "…" not in shown else "…" in error.message
        assert len(error.message) < 400


@posix
def test_file_with_a_newline_in_its_name_opens_and_saves(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.loop.json"
    save(OLD, path)
    assert load(path) == OLD
    path.write_text("{")
    assert mentions(failure_of_load(path).message, "a\\nb.loop.json: … not JSON")


COMMON_USER = """
import os, sys
from pathlib import Path
from engine.document.files import load, save
from engine.document.model import Workflow
from engine.document.problems import DocumentError
folder = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
def attempt(call, *arguments):
    try:
        call(*arguments)
        print("done")
    except DocumentError as error:
        print(error.message.removeprefix(str(folder)))
"""


def run_as_a_common_user(script: str, folder: Path) -> list[str]:
    """Run a script in a process that no permission is waived for, also where the tests run as root."""
    if os.geteuid() == 0:
        shared = Path(tempfile.gettempdir()).resolve()
        for place in (folder, *(parent for parent in folder.parents if shared in parent.parents)):
            place.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", COMMON_USER + script, str(folder)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@posix
def test_files_and_folders_without_permission_are_refused_unchanged(tmp_path: Path) -> None:
    secret, fixed, closed = tmp_path / "secret", tmp_path / "fixed", tmp_path / "closed"
    closed.mkdir()
    for path in (secret, fixed, closed / "a"):
        save(OLD, path)
    secret.chmod(0o000)
    fixed.chmod(0o444)
    closed.chmod(0o555)
    script = (
        "attempt(load, folder / 'secret')\n"
        "attempt(load, folder / 'fixed')\n"
        "attempt(save, Workflow(), folder / 'fixed')\n"
        "attempt(save, Workflow(), folder / 'closed' / 'b')\n"
    )
    expected = [
        "/secret: … cannot be opened: permission denied",
        "done",
        "/fixed: … cannot be saved: … write-protected",
        "/closed/b: … cannot be saved: permission denied",
    ]
    for message, parts in zip(run_as_a_common_user(script, tmp_path), expected, strict=True):
        assert mentions(message, parts), message
    closed.chmod(0o755)
    fixed.chmod(0o644)
    assert [path.name for path in closed.iterdir()] == ["a"]
    assert load(fixed) == OLD


@posix
@pytest.mark.parametrize("is_there", [True, False])
def test_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, *, is_there: bool) -> None:
    import resource

    path = tmp_path / "a"
    if is_there:
        save(OLD, path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(DocumentError) as caught:
            save(Workflow(name="x" * 5000), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert mentions(caught.value.message, f"{path}: … cannot be saved: … too large")
    assert ("existing file" in caught.value.remedy) == is_there
    assert list(tmp_path.iterdir()) == [path][:is_there]
    assert not is_there or load(path) == OLD


def test_invalid_document_is_not_written_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    save(OLD, path)
    with pytest.raises(DocumentError, match="infinite"):
        save(Workflow(settings={"x": float("nan")}), path)
    assert load(path) == OLD
