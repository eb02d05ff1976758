"""The tools `read_file` and `write_file`: text files in the allowed folder.

Existing files are safe by default. The mode `new` never touches a file: it takes the next free name (`draft.md`,
`draft-2.md` …), so a loop that writes in every iteration keeps each version. `overwrite` replaces a file in one step: a
reader, or a computer that loses power, sees either the old text or the new one, complete.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.formatting import format_count
from engine.safe_file_io import NotTextError, clear_unfinished, decode_text, move_over, unfinished_name
from engine.tools.sandbox import (
    MAX_FILE_BYTES,
    OpenFolder,
    explain_os_errors,
    open_folder,
    open_regular_file,
    quoted,
    require_folder,
    split_path,
    stat_regular_file,
)
from engine.tools.tool import Parameters, Text, Tool, ToolContext, ToolError
from engine.values import Value


class ReadFileParameters(Parameters):
    """Parameters of `read_file`."""

    path: Text = Field(
        title="Path",
        description="The file, relative to the run's folder, parts joined by '/': notes/draft.md",
        min_length=1,
        max_length=1000,
    )
    max_bytes: int = Field(
        default=1_000_000,
        title="Max bytes",
        description="A file with more bytes is refused, so that a text is never truncated.",
        ge=1,
        le=MAX_FILE_BYTES,
    )


async def read_file(parameters: ReadFileParameters, context: ToolContext) -> Value:
    """Read a text file with its own line ends, so that it can be written back unchanged.

    The encoding is UTF-8, or UTF-16 or UTF-32 with a byte order mark, which is not part of the text.

    Raises:
        ToolError: No folder is allowed, or the file is missing, outside, a link, not a regular file, too large or
            not text.
    """
    return await asyncio.to_thread(_read, require_folder(context.folder), parameters.path, parameters.max_bytes)


def _read(folder: Path, path: str, max_bytes: int) -> str:
    parts = split_path(path)
    with (
        explain_os_errors(f"The file {quoted(path)} cannot be read"),
        open_folder(folder, parts[:-1]) as parent,
        os.fdopen(open_regular_file(parent, parts[-1], os.O_RDONLY), "rb") as stream,
    ):
        content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ToolError(
            f"The file {quoted(path)} has more than {format_count(max_bytes, 'byte')}.",
            f"Raise 'Max bytes' (up to {format_count(MAX_FILE_BYTES)}), or split the file.",
        )
    try:
        return decode_text(content, keep_line_ends=True)
    except NotTextError as error:
        raise ToolError(
            f"The file {quoted(path)} cannot be read: {error}.", "Save it as UTF-8, or name a text file."
        ) from error


READ_FILE = Tool(
    name="read_file",
    title="Read a file",
    help="Returns the text of a file in the run's folder.",
    parameters=ReadFileParameters,
    output_type="text",
    run=read_file,
    uses_folder=True,
    idempotent=True,
)


_MAX_VERSIONS = 999
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
"""Error numbers of a disk without hard links."""

# A failed append is undone by truncating the file, which must not remove what another node appended meanwhile.
_append_lock = threading.Lock()

WriteMode = Literal["new", "overwrite", "append"]
"""What happens to a file that exists. An enumeration class would only be a reference in the JSON Schema."""


class WriteFileParameters(Parameters):
    """Parameters of `write_file`."""

    path: Text = Field(
        title="Path",
        description="Relative to the run's folder, parts joined by '/'. Missing folders are created.",
        min_length=1,
        max_length=1000,
    )
    text: Text = Field(title="Text", description="The text to write, as UTF-8.", max_length=MAX_FILE_BYTES)
    mode: WriteMode = Field(
        default="new",
        title="If the file exists",
        description="new: take the next free name (draft-2.md) instead; overwrite: replace it; append: add at its end.",
    )


async def write_file(parameters: WriteFileParameters, context: ToolContext) -> Value:
    """Write a text: `{path, bytes}`, `path` relative to the folder, `bytes` the number of bytes written.

    A call that is cancelled may still finish its write; it never leaves a part of it.

    Raises:
        ToolError: No folder is allowed, the path leads outside or to something other than a regular file, the text is
            too long, or the disk refuses.
    """
    folder = require_folder(context.folder)
    return await asyncio.to_thread(_write, folder, parameters.path, parameters.text, parameters.mode)


def _write(folder: Path, path: str, text: str, mode: WriteMode) -> Value:
    *folders, name = split_path(path)
    content = text.encode()
    if len(content) > MAX_FILE_BYTES:
        raise _too_large(path)
    with (
        explain_os_errors(f"The file {quoted(path)} cannot be written"),
        open_folder(folder, tuple(folders), create=True) as parent,
    ):
        if mode == "append":
            _append(parent, name, content, path)
        elif mode == "overwrite":
            _replace(parent, name, content)
        else:
            name = _create(parent, name, content, path)
    return {"path": "/".join((*folders, name)), "bytes": len(content)}


def _append(parent: OpenFolder, name: str, content: bytes, path: str) -> None:
    with _append_lock:
        descriptor = open_regular_file(parent, name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            before = os.fstat(descriptor).st_size
            if before + len(content) > MAX_FILE_BYTES:
                raise _too_large(path)
            try:
                _write_all(descriptor, content)
            except OSError:
                os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)
        _sync_folder(parent)


def _replace(parent: OpenFolder, name: str, content: bytes) -> None:
    """Write a temporary file and move it over the file in one step."""
    status = stat_regular_file(parent, name)
    with _temporary_file(parent, content, None if status is None else stat.S_IMODE(status.st_mode)) as written:
        move_over(parent.at(written), parent.at(name), folder=parent.descriptor)
    _sync_folder(parent)
    clear_unfinished(parent.path)


def _create(parent: OpenFolder, name: str, content: bytes, path: str) -> str:
    """Write a temporary file and link it to the first free name in one step, so that a kill leaves no partial file."""
    with _temporary_file(parent, content) as written:
        for candidate in _candidates(name):
            try:
                os.link(
                    parent.at(written), parent.at(candidate), src_dir_fd=parent.descriptor, dst_dir_fd=parent.descriptor
                )
            except FileExistsError:
                continue
            except OSError as error:
                if error.errno in _NO_LINKS:
                    return _create_without_links(parent, name, content, path)
                raise
            _sync_folder(parent)
            clear_unfinished(parent.path)
            return candidate
    raise _no_free_name(path)


def _create_without_links(parent: OpenFolder, name: str, content: bytes, path: str) -> str:
    """The same on a disk without hard links, where a kill may leave an empty file."""
    for candidate in _candidates(name):
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            os.close(os.open(parent.at(candidate), flags, 0o666, dir_fd=parent.descriptor))
        except FileExistsError:
            continue
        try:
            _replace(parent, candidate, content)
        except BaseException:
            os.unlink(parent.at(candidate), dir_fd=parent.descriptor)
            raise
        return candidate
    raise _no_free_name(path)


@contextmanager
def _temporary_file(parent: OpenFolder, content: bytes, mode: int | None = None) -> Generator[str]:
    """A temporary file with that content, removed at the end if it still exists."""
    written = unfinished_name()
    descriptor = open_regular_file(parent, written, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            _write_all(descriptor, content)
        finally:
            os.close(descriptor)
        yield written
    finally:
        with suppress(OSError):
            os.unlink(parent.at(written), dir_fd=parent.descriptor)


def _candidates(name: str) -> Iterator[str]:
    stem, suffix = Path(name).stem, Path(name).suffix
    yield name
    for version in range(2, _MAX_VERSIONS + 1):
        yield f"{stem}-{version}{suffix}"


def _no_free_name(path: str) -> ToolError:
    return ToolError(
        f"The file {quoted(path)} already exists in {_MAX_VERSIONS} versions.",
        "Choose another name or the mode 'overwrite'.",
    )


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _sync_folder(parent: OpenFolder) -> None:
    """Make a new name survive a loss of power, where the system can sync a folder."""
    if parent.descriptor is not None:
        with suppress(OSError):
            os.fsync(parent.descriptor)


def _too_large(path: str) -> ToolError:
    return ToolError(
        f"The file {quoted(path)} would have more than {format_count(MAX_FILE_BYTES, 'byte')}.",
        "Write less, or to several files.",
    )


WRITE_FILE = Tool(
    name="write_file",
    title="Write a file",
    help="Writes a text to a file in the run's folder; by default no existing file is touched.",
    parameters=WriteFileParameters,
    output_type="json",
    run=write_file,
    uses_folder=True,
)
