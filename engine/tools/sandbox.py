"""Sandbox of the file tools: opens files below one folder and nowhere else.

A path comes from a document or a model and is hostile until it is shown to be harmless: it is relative, has no `..`,
and no part of it is a link. Where the system can open relative to a folder's descriptor, each step does, so that a
folder swapped for a link between the check and the use leads nowhere. Elsewhere (Windows) each step is resolved and
compared with the allowed folder.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Fix
from engine.safe_file_io import is_windows_name
from engine.tools.tool import ToolError

MAX_FILE_BYTES = 10_000_000
"""Maximum size of a file that the file tools read or write."""

HAS_FOLDER_DESCRIPTORS = {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd

_UNPRINTABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff\\ufffd]")

# For each error number: the reason, as half a sentence, and the remedy.
_REASONS: dict[int, tuple[str, str]] = {
    errno.ENOENT: ("it does not exist", "Check the spelling; the path starts at the run's folder."),
    errno.EACCES: ("the system does not permit it", "Change the permissions, or choose another folder."),
    errno.EPERM: ("the system does not permit it", "Change the permissions, or choose another folder."),
    errno.EROFS: ("the disk is read-only", "Choose another folder."),
    errno.ENOSPC: ("the disk is full", "Free some space and run again."),
    errno.EFBIG: ("the system allows no file of that size", "Write less, or raise the system's limit."),
    errno.ENAMETOOLONG: ("the name is too long for the system", "Choose a shorter name."),
    errno.EISDIR: ("it is a folder", "Name a file."),
    errno.ELOOP: ("a part of the path is a link", "File tools do not follow links: name the file itself."),
    errno.ENOTDIR: (
        "a part of the path is a file or a link",
        "File tools do not follow links: name the folder itself.",
    ),
}
if hasattr(errno, "EDQUOT"):
    _REASONS[errno.EDQUOT] = ("the quota of the disk is used up", "Free some space and run again.")


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """An opened folder below the allowed one.

    Attributes:
        path: Its path.
        descriptor: Its descriptor, valid until the folder is closed; None where the system has none.
    """

    path: Path
    descriptor: int | None

    def at(self, name: str) -> Path:
        """The path of an entry for `os` functions that are also given `dir_fd=descriptor`."""
        return Path(name) if self.descriptor is not None else self.path / name


def quoted(text: str) -> str:
    """Quote and escape a path or an address for an error message, and truncate it to a line."""
    return ascii(text) if len(text) <= 120 else f"{text[:117]!a}..."


def split_path(path: str, *, on_windows: bool = os.name == "nt") -> tuple[str, ...]:
    """Split a relative path into its parts, which are joined by `/` on every system.

    Raises:
        ToolError: It is empty, absolute, leads upwards, or contains characters that no file name should.
    """
    where = f"The path {quoted(path)}"
    if _UNPRINTABLE.search(path):
        raise ToolError(f"{where} contains a line break or another character that is invalid in names.", "Remove it.")
    if "\\" in path:
        raise ToolError(f"{where} contains a backslash.", "Separate folders and files by '/'.")
    if path.startswith("/") or (on_windows and path[1:2] == ":"):
        raise ToolError(f"{where} is absolute.", "Write it relative to the run's folder.")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    if not parts:
        raise ToolError(f"{where} names no file.", "Write the name of a file, such as 'notes/draft.md'.")
    if ".." in parts:
        raise ToolError(f"{where} leads upwards with '..'.", "Stay inside the run's folder.")
    if on_windows and not all(map(is_windows_name, parts)):
        raise ToolError(f"{where} has a name that Windows does not allow.", "Use letters, digits, '-' and '_'.")
    return parts


@contextmanager
def explain_os_errors(problem: str) -> Generator[None]:
    """Turn an `OSError` into a `ToolError` that opens with `problem`, half a sentence."""
    try:
        yield
    except OSError as error:
        text = (error.strerror or "unknown reason").lower()
        reason, remedy = _REASONS.get(error.errno or 0, (text, "Check the folder and the disk."))
        raise ToolError(f"{problem}: {reason}.", remedy) from error


def require_folder(folder: Path | None) -> Path:
    """The folder that file tools may use.

    Raises:
        ToolError: The run was given none.
    """
    if folder is None:
        raise ToolError(
            "This run has no folder that file tools may use.", "Allow it to use a folder.", fix=Fix.CHOOSE_FOLDER
        )
    return folder


@contextmanager
def open_folder(folder: Path, parts: tuple[str, ...], *, create: bool = False) -> Generator[OpenFolder]:
    """Open the folder that `parts` name below `folder`, and close it at the end.

    Args:
        folder: The allowed folder; it may itself be reached by a link.
        parts: Names as `split_path` returns them.
        create: Whether to create missing folders.

    Raises:
        OSError: A part is missing, not a folder, or a link.
    """
    if not HAS_FOLDER_DESCRIPTORS:
        yield OpenFolder(_resolve_step_by_step(folder, parts, create=create), None)
        return
    descriptor = _descend(folder, parts, create=create)
    try:
        yield OpenFolder(folder.joinpath(*parts), descriptor)
    finally:
        os.close(descriptor)


def _descend(folder: Path, parts: tuple[str, ...], *, create: bool) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _resolve_step_by_step(folder: Path, parts: tuple[str, ...], *, create: bool) -> Path:
    root = current = folder.resolve(strict=True)
    for part in parts:
        if create:
            with suppress(FileExistsError):
                (current / part).mkdir()
        try:
            current = (current / part).resolve(strict=True)
        except RuntimeError as error:  # before Python 3.13, a link that leads to itself
            raise OSError(errno.ELOOP, "link") from error
        if not current.is_relative_to(root):
            raise OSError(errno.ELOOP, "link")
        if not current.is_dir():
            raise OSError(errno.ENOTDIR, "not a folder")
    return current


def stat_regular_file(folder: OpenFolder, name: str) -> os.stat_result | None:
    """The status of a regular file in a folder, without following links; None if there is no such entry.

    Raises:
        OSError: The entry is not a regular file.
    """
    try:
        status = os.stat(folder.at(name), dir_fd=folder.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _require_regular(status)
    return status


def open_regular_file(folder: OpenFolder, name: str, flags: int) -> int:
    """Open a regular file without following a link and without blocking; return a descriptor that the caller closes.

    Args:
        folder: The folder that contains it.
        name: The file's name in it.
        flags: As for `os.open`.

    Raises:
        OSError: It is missing, a link, a folder, a pipe, a device, or may not be opened.
    """
    if stat_regular_file(folder, name) is None and not flags & os.O_CREAT:
        raise FileNotFoundError(errno.ENOENT, "missing")
    # A pipe swapped in after the first check must not block: hence O_NONBLOCK, and the second check.
    careful = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
    descriptor = os.open(folder.at(name), flags | careful, 0o666, dir_fd=folder.descriptor)
    try:
        _require_regular(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "link")
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file")
