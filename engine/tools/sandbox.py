"""Opening files beneath one folder and nowhere else.

A path comes from a document or a model and is hostile until it is shown to be harmless: it is relative, has no `..`,
and no part of it is a link. Where the system can open relative to a folder's descriptor, each step does, so that a
folder swapped for a link between the check and the use leads nowhere. Elsewhere (Windows) each step is resolved and
compared with the allowed folder. Knows nothing of what is read or written.
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

from engine.tools.tool import ToolError

MAX_FILE_BYTES = 10_000_000
"""The largest file that the file tools read or leave behind."""

HAS_FOLDER_DESCRIPTORS = {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd

_UNPRINTABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff\\ufffd]")
_WINDOWS_FORBIDS = re.compile(r'[<>:"|?*]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)', re.IGNORECASE)

# What the system says with a number, as half a sentence, and what helps.
_REASONS: dict[int, tuple[str, str]] = {
    errno.ENOENT: ("it is not there", "Check the spelling; the path starts at the folder that the run was given."),
    errno.EACCES: ("the system does not permit it", "Change the permissions, or choose another folder."),
    errno.EPERM: ("the system does not permit it", "Change the permissions, or choose another folder."),
    errno.EROFS: ("the disk can only be read", "Choose another folder."),
    errno.ENOSPC: ("the disk is full", "Free some space and run again."),
    errno.EFBIG: ("the system allows no file of that size", "Write less, or raise the system's limit."),
    errno.ENAMETOOLONG: ("the name is too long for the system", "Choose a shorter name."),
    errno.EISDIR: ("it is a folder", "Name a file."),
    errno.ELOOP: ("a part of the path is a link", "File tools do not follow links: name the file itself."),
    errno.ENOTDIR: (
        "a part of the path is a file or a link where a folder has to be",
        "File tools do not follow links: name the folder itself.",
    ),
}
if hasattr(errno, "EDQUOT"):
    _REASONS[errno.EDQUOT] = ("the quota of the disk is used up", "Free some space and run again.")


@dataclass(frozen=True, slots=True)
class Parent:
    """An opened folder beneath the allowed one.

    Attributes:
        path: Where it is.
        descriptor: Its descriptor, valid until the folder is closed; None where the system has none.
    """

    path: Path
    descriptor: int | None

    def at(self, name: str) -> Path:
        """How `os` functions find an entry when they are also given `dir_fd=descriptor`."""
        return Path(name) if self.descriptor is not None else self.path / name


def shown(path: str) -> str:
    """A path for an error message: quoted, escaped, and no longer than a line."""
    return ascii(path) if len(path) <= 120 else f"{path[:117]!a}..."


def split_path(path: str, *, on_windows: bool = os.name == "nt") -> tuple[str, ...]:
    """Take a relative path apart; its parts are joined by `/` on every system.

    Raises:
        ToolError: It is empty, absolute, leads upwards, or holds what no file name should.
    """
    where = f"The path {shown(path)}"
    if _UNPRINTABLE.search(path):
        raise ToolError(f"{where} holds a line break or another character that no file name may have.", "Leave it out.")
    if "\\" in path:
        raise ToolError(f"{where} holds a backslash.", "Join folders and files by '/'.")
    if path.startswith("/") or (on_windows and path[1:2] == ":"):
        raise ToolError(f"{where} is absolute.", "Write it relative to the folder that the run was given.")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    if not parts:
        raise ToolError(f"{where} names no file.", "Write the name of a file, such as 'notes/draft.md'.")
    if ".." in parts:
        raise ToolError(f"{where} leads upwards with '..'.", "Stay inside the folder that the run was given.")
    if on_windows and any(_WINDOWS_FORBIDS.search(part) for part in parts):
        raise ToolError(f"{where} has a name that Windows does not allow.", "Use letters, digits, '-' and '_'.")
    return parts


@contextmanager
def explained(problem: str) -> Generator[None]:
    """Turn an `OSError` into a `ToolError` that opens with `problem`, half a sentence."""
    try:
        yield
    except OSError as error:
        text = (error.strerror or "unknown reason").lower()
        reason, remedy = _REASONS.get(error.errno or 0, (text, "Check the folder and the disk."))
        raise ToolError(f"{problem}: {reason}.", remedy) from error


def allowed_folder(folder: Path | None) -> Path:
    """The folder that file tools may use.

    Raises:
        ToolError: The run was given none.
    """
    if folder is None:
        raise ToolError(
            "This run has no folder that file tools may use.", "Start the run with --folder and the folder's name."
        )
    return folder


@contextmanager
def open_parent(folder: Path, parts: tuple[str, ...], *, create: bool = False) -> Generator[Parent]:
    """Open the folder that `parts` name beneath `folder`, and close it at the end.

    Args:
        folder: The allowed folder; it may itself be reached by a link.
        parts: Names as `split_path` gives them.
        create: Whether folders that are missing are made.

    Raises:
        OSError: One of them is missing, no folder, or a link.
    """
    if not HAS_FOLDER_DESCRIPTORS:
        yield Parent(_resolve_step_by_step(folder, parts, create=create), None)
        return
    descriptor = _descend(folder, parts, create=create)
    try:
        yield Parent(folder.joinpath(*parts), descriptor)
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
    root = place = folder.resolve(strict=True)
    for part in parts:
        if create:
            with suppress(FileExistsError):
                (place / part).mkdir()
        try:
            place = (place / part).resolve(strict=True)
        except RuntimeError as error:  # Before Python 3.13, a link that leads to itself.
            raise OSError(errno.ELOOP, "link") from error
        if not place.is_relative_to(root):
            raise OSError(errno.ELOOP, "link")
        if not place.is_dir():
            raise OSError(errno.ENOTDIR, "no folder")
    return place


def look_at(parent: Parent, name: str) -> os.stat_result | None:
    """What an entry of a folder is, links not followed; None where there is no such entry.

    Raises:
        OSError: It is neither an ordinary file nor missing.
    """
    try:
        status = os.stat(parent.at(name), dir_fd=parent.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _require_ordinary(status)
    return status


def open_ordinary(parent: Parent, name: str, flags: int) -> int:
    """Open an ordinary file of a folder without following a link and without waiting for anything.

    Args:
        parent: The folder.
        name: The file's name in it.
        flags: As for `os.open`.

    Returns:
        A descriptor, to be closed by the caller.

    Raises:
        OSError: It is missing, a link, a folder, a pipe, a device, or may not be opened.
    """
    if look_at(parent, name) is None and not flags & os.O_CREAT:
        raise FileNotFoundError(errno.ENOENT, "missing")
    # A pipe put in the file's place after the look must not block: hence O_NONBLOCK, and the second look.
    careful = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
    descriptor = os.open(parent.at(name), flags | careful, 0o666, dir_fd=parent.descriptor)
    try:
        _require_ordinary(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_ordinary(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "link")
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not an ordinary file")
