from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.tools import sandbox
from engine.tools.file_tools import ReadFileParameters, WriteFileParameters, read_file, write_file
from engine.tools.sandbox import MAX_FILE_BYTES, explain_os_errors, open_folder, open_regular_file, quoted, split_path
from engine.tools.tool import ToolContext, ToolError
from engine.values import Value
from tests.examples import examples


@pytest.fixture(params=["descriptors", "resolved paths"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allowed folder, once for each of the two ways to follow a path."""
    if request.param == "resolved paths":
        monkeypatch.setattr(sandbox, "HAS_FOLDER_DESCRIPTORS", False)
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    return allowed


async def read(folder: Path | None, path: str, **more: int) -> Value:
    return await read_file(ReadFileParameters(path=path, **more), ToolContext(folder=folder))


async def write(folder: Path | None, path: str, text: str, mode: str = "new") -> Value:
    parameters = WriteFileParameters.model_validate({"path": path, "text": text, "mode": mode})
    return await write_file(parameters, ToolContext(folder=folder))


async def refused(call: object, *parts: str) -> None:
    with pytest.raises(ToolError) as caught:
        await call  # type: ignore[misc]
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# Reading


async def test_text_is_read_unchanged(folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "ä.txt").write_bytes("Zeile\r\nzwei ü\n".encode())

    assert await read(folder, "deep/./er//ä.txt") == "Zeile\r\nzwei ü\n"


async def test_byte_order_mark_is_not_part_of_the_text(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbfabc")
    assert await read(folder, "a.txt") == "abc"


async def test_file_over_max_bytes_is_refused(folder: Path) -> None:
    (folder / "a.txt").write_text("x" * 10)
    assert await read(folder, "a.txt", max_bytes=10) == "x" * 10
    await refused(read(folder, "a.txt", max_bytes=9), "'a.txt'", "more than 9 bytes")


async def test_invalid_utf8_is_refused(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"caf\xe9")
    await refused(read(folder, "a.txt"), "not UTF-8 text", "byte 4")


async def test_missing_file_is_an_error(folder: Path) -> None:
    await refused(read(folder, "no/such.txt"), "'no/such.txt'", "does not exist")
    await refused(read(folder, "such.txt"), "does not exist")


async def test_without_an_allowed_folder_both_tools_name_the_option() -> None:
    await refused(read(None, "a.txt"), "no folder")
    await refused(write(None, "a.txt", ""), "no folder")


async def test_missing_allowed_folder_is_a_tool_error(tmp_path: Path) -> None:
    await refused(read(tmp_path / "gone", "a.txt"), "does not exist")
    await refused(write(tmp_path / "gone", "a.txt", ""), "does not exist")


async def test_folder_is_not_a_file(folder: Path) -> None:
    (folder / "sub").mkdir()
    await refused(read(folder, "sub"), "it is a folder")
    for mode in ("overwrite", "append"):
        await refused(write(folder, "sub", "x", mode), "it is a folder")


async def test_file_is_not_a_folder(folder: Path) -> None:
    (folder / "a.txt").write_text("a")
    await refused(read(folder, "a.txt/b"), "'a.txt/b'")
    await refused(write(folder, "a.txt/b", "x"), "'a.txt/b'")
    assert (folder / "a.txt").read_text() == "a"


# Never outside

ESCAPES = [
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "/etc/passwd",
    "..",
    "..\\outside\\secret.txt",
    "link/secret.txt",
    "link.txt",
    "inner.txt",
    "circle/x",
]


@pytest.mark.parametrize("path", ESCAPES)
async def test_no_path_and_no_link_leads_outside(folder: Path, path: str) -> None:
    (folder / "sub").mkdir()
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "link.txt").symlink_to(folder.parent / "outside" / "secret.txt")
    (folder / "target.txt").write_text("target")
    (folder / "inner.txt").symlink_to("target.txt")
    (folder / "circle").symlink_to("circle")

    await refused(read(folder, path))
    for mode in ("overwrite", "append"):
        await refused(write(folder, path, "gotcha", mode))
    assert (folder.parent / "outside" / "secret.txt").read_text() == "secret"
    assert (folder / "target.txt").read_text() == "target"
    assert names_in(folder.parent / "outside") == ["secret.txt"]


async def test_link_is_reported_as_a_link(folder: Path) -> None:
    (folder / "a.txt").symlink_to("b.txt")
    (folder / "b.txt").write_text("b")
    await refused(read(folder, "a.txt"), "path is a link", "name the file itself")


async def test_new_file_does_not_follow_a_dangling_link(folder: Path) -> None:
    (folder / "a.txt").symlink_to(folder.parent / "outside" / "made.txt")
    assert await write(folder, "a.txt", "x") == {"path": "a-2.txt", "bytes": 1}
    assert not (folder.parent / "outside" / "made.txt").exists()


async def test_missing_folders_are_not_created_through_a_link(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "outside")
    await refused(write(folder, "link/new/a.txt", "x"), "link")
    assert not (folder.parent / "outside" / "new").exists()


async def test_allowed_folder_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(folder)
    await write(tmp_path / "alias", "a.txt", "hello")
    assert await read(tmp_path / "alias", "a.txt") == "hello"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("a\nb", "line break"),
        ("a\0b", "line break"),
        ("a\ud800b", "invalid in names"),
        ("a\u2028b", "line break"),
        ("", "names no file"),
        ("././/", "names no file"),
        ("a\\b", "backslash"),
        ("/a", "absolute"),
        ("a/../b", "upwards"),
    ],
)
def test_invalid_path_is_a_specific_error(path: str, says: str) -> None:
    with pytest.raises(ToolError, match=says) as caught:
        split_path(path)
    str(caught.value).encode("ascii")


@pytest.mark.parametrize("path", ["a:b", "C:/x", "con", "sub/NUL.txt", "a?", "x./y"])
def test_special_names_of_windows_are_refused_there(path: str) -> None:
    with pytest.raises(ToolError):
        split_path(path, on_windows=True)
    assert split_path(path, on_windows=False)


async def test_surrogate_in_a_path_is_a_clear_error(folder: Path) -> None:
    await refused(read(folder, "a\ud800"), "invalid in names")


async def test_too_long_name_is_a_clear_error(folder: Path) -> None:
    await refused(read(folder, "n" * 300), "too long")
    for mode in ("new", "overwrite", "append"):
        await refused(write(folder, "n" * 300, "x", mode), "too long")
    assert names_in(folder) == []
    with pytest.raises(ValidationError):
        ReadFileParameters(path="x" * 1001)


def test_long_path_is_truncated_in_messages(tmp_path: Path) -> None:
    assert len(quoted("é" * 5000)) < 600
    assert quoted("ok") == "'ok'"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
async def test_pipe_and_socket_are_refused_without_blocking(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        for name in ("pipe", "sock"):
            await refused(read(folder, name), "pipe or a device")
            for mode in ("overwrite", "append"):
                await refused(write(folder, name, "x", mode), "pipe or a device")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipe_swapped_in_after_the_check_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")

    def other_status(*_: object) -> os.stat_result:
        return Path(__file__).stat()

    monkeypatch.setattr(sandbox, "stat_regular_file", other_status)
    with open_folder(tmp_path, ()) as parent, pytest.raises(OSError, match="pipe"):
        open_regular_file(parent, "pipe", os.O_RDONLY)


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.one_of(
        st.text(min_size=1, max_size=40),
        st.lists(st.sampled_from(["..", ".", "", "link", "a", "~", "a.txt", "*", "\\", "\x00"]), min_size=1).map(
            "/".join
        ),
    ),
    mode=st.sampled_from(["new", "overwrite", "append"]),
)
async def test_any_path_changes_nothing_outside_and_raises_only_tool_errors(
    tmp_path_factory: pytest.TempPathFactory, path: str, mode: str
) -> None:
    top = tmp_path_factory.mktemp("paths")
    folder = top / "allowed"
    folder.mkdir()
    (top / "outside").mkdir()
    (folder / "link").symlink_to(top / "outside")
    try:
        given_back = await write(folder, path, "text", mode)
    except (ToolError, ValidationError):
        pass
    else:
        assert isinstance(given_back, dict)
        assert await read(folder, str(given_back["path"])) == "text"
    assert names_in(top) == ["allowed", "outside"]
    assert names_in(top / "outside") == []
    assert not [entry for entry in folder.rglob("*.tmp") if entry.name.startswith(".")]


# Writing


async def test_unfinished_files_are_removed_by_a_later_write(folder: Path) -> None:
    left = folder / ".loopwright-0123456789abcdef.tmp"
    left.write_text("half")
    os.utime(left, (1.0, 1.0))

    await write(folder, "draft.md", "text")

    assert names_in(folder) == ["draft.md"]


async def test_every_write_takes_a_free_name_by_default(folder: Path) -> None:
    written = [await write(folder, "notes/draft.md", text) for text in ("one", "two", "three")]

    assert written == [
        {"path": "notes/draft.md", "bytes": 3},
        {"path": "notes/draft-2.md", "bytes": 3},
        {"path": "notes/draft-3.md", "bytes": 5},
    ]
    assert (folder / "notes" / "draft.md").read_text() == "one"
    assert (folder / "notes" / "draft-3.md").read_text() == "three"


async def test_concurrent_writes_never_share_a_name(folder: Path) -> None:
    written = await asyncio.gather(*(write(folder, "a.txt", str(number)) for number in range(20)))
    assert len({str(one["path"]) for one in written if isinstance(one, dict)}) == 20
    assert sorted((folder / name).read_text() for name in names_in(folder)) == sorted(map(str, range(20)))


async def test_number_of_free_names_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tools.file_tools._MAX_VERSIONS", 2)
    await write(folder, "a", "1")
    await write(folder, "a", "2")
    await refused(write(folder, "a", "3"), "2 versions")


async def test_overwrite_replaces_the_text_and_keeps_the_permissions(folder: Path) -> None:
    (folder / "a.sh").write_text("a long old text")
    (folder / "a.sh").chmod(0o750)

    assert await write(folder, "a.sh", "new", "overwrite") == {"path": "a.sh", "bytes": 3}

    assert (folder / "a.sh").read_text() == "new"
    assert stat.S_IMODE((folder / "a.sh").stat().st_mode) == 0o750
    assert names_in(folder) == ["a.sh"]


async def test_overwrite_leaves_a_reader_the_old_text(folder: Path) -> None:
    (folder / "a.txt").write_text("old")
    with (folder / "a.txt").open() as reader:
        await write(folder, "a.txt", "newer", "overwrite")
        assert reader.read() == "old"


async def test_overwrite_and_append_create_a_missing_file(folder: Path) -> None:
    await write(folder, "new/a.txt", "A", "overwrite")
    await write(folder, "new/b.txt", "B", "append")
    assert (folder / "new" / "a.txt").read_text() == "A"
    assert (folder / "new" / "b.txt").read_text() == "B"


async def test_append_adds_at_the_end(folder: Path) -> None:
    for text in ("eins\n", "zwei ü\n"):
        await write(folder, "log.txt", text, "append")
    assert (folder / "log.txt").read_bytes() == "eins\nzwei ü\n".encode()


async def test_line_ends_are_written_unchanged(folder: Path) -> None:
    await write(folder, "a.txt", "a\r\nb\n")
    assert (folder / "a.txt").read_bytes() == b"a\r\nb\n"


async def test_surrogates_are_written_as_valid_characters(folder: Path) -> None:
    await write(folder, "a.txt", "x\ud800y\ud83d\ude00z\udc00")
    assert (folder / "a.txt").read_text(encoding="utf-8") == "x\ufffdy\U0001f600z\ufffd"


async def test_append_over_the_limit_changes_nothing(folder: Path) -> None:
    (folder / "big.txt").write_bytes(b"x" * (MAX_FILE_BYTES - 1))
    await refused(write(folder, "big.txt", "ab", "append"), "more than 10,000,000 bytes")
    assert (folder / "big.txt").stat().st_size == MAX_FILE_BYTES - 1
    await write(folder, "big.txt", "a", "append")
    assert (folder / "big.txt").stat().st_size == MAX_FILE_BYTES


async def test_text_over_the_limit_is_refused(folder: Path) -> None:
    await refused(write(folder, "a.txt", "ü" * (MAX_FILE_BYTES // 2 + 1)), "more than 10,000,000 bytes")
    assert names_in(folder) == []


@pytest.fixture
def tight_disk() -> Iterator[None]:
    """A system that lets no file of this process grow beyond 50,000 bytes: a real error at a real write."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("tight_disk")
@pytest.mark.parametrize("mode", ["new", "overwrite", "append"])
async def test_failed_write_keeps_the_old_file(folder: Path, mode: str) -> None:
    (folder / "a.txt").write_text("old")
    await refused(
        write(folder, "a.txt", "x" * 100_000, mode),
        "The file 'a.txt' cannot be written: ",
        "no file of that size",
    )
    assert names_in(folder) == ["a.txt"]
    assert (folder / "a.txt").read_text() == "old"


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full. Free some space"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "does not permit"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "input/output error"),
    ],
)
def test_os_error_becomes_a_sentence(number: int, says: str) -> None:
    with pytest.raises(ToolError, match=says), explain_os_errors("The file 'a' cannot be written"):
        raise OSError(number, os.strerror(number))


def test_os_error_without_a_reason_is_a_sentence() -> None:
    with pytest.raises(ToolError, match="cannot be read: unknown reason"), explain_os_errors("It cannot be read"):
        raise OSError


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open descriptors cannot be counted")
async def test_no_descriptor_stays_open(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent)
    before = open_descriptors()
    for number in range(20):
        await write(folder, "a/b.txt", "x", ("new", "overwrite", "append")[number % 3])
        await read(folder, "a/b.txt")
        await refused(read(folder, "a/link"))
        await refused(read(folder, "link/b"))
    assert open_descriptors() <= before + 1


@pytest.mark.parametrize("links", [True, False])
async def test_new_file_gets_its_name_only_when_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    seen: list[list[str]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        seen.append(sorted(file.name for file in tmp_path.iterdir() if not file.name.startswith(".")))

    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "fsync", watched)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    for _ in range(2):
        await write_file(WriteFileParameters(path="a.md", text="whole"), ToolContext(folder=tmp_path))
    files = {name: (tmp_path / name).read_text() for name in os.listdir(tmp_path)}  # noqa: PTH208
    assert files == {"a.md": "whole", "a-2.md": "whole"}
    if links:
        assert seen[0] == [], "its text is on the disk before its name"
