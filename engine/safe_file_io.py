"""Safe file I/O: read regular files only, decode texts, replace files atomically, and lock them.

This module does not know what a file is for. Callers convert its errors to messages.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from engine.formatting import format_count

if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE: Final = 1 << 30
    """Beyond the content of every locked file: others cannot read a locked byte."""

    def _lock(descriptor: int) -> None:
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_TEMPORARY: Final = re.compile(r"\.loopwright-[0-9a-f]{16}\.tmp")
_ABANDONED_S: Final = 3600.0
"""Seconds without a change after which a temporary file counts as abandoned."""
_MOVE_DELAYS_S: Final = (0.01, 0.03, 0.1, 0.3)
_OPEN_ELSEWHERE: Final = (5, 32)
"""Error numbers of Windows for a file that another program has open: access denied, sharing violation."""

DISK_FULL: Final = frozenset(getattr(errno, name) for name in ("ENOSPC", "EDQUOT") if hasattr(errno, name))
"""Error numbers of a full disk, and of a quota that is used up."""

# The names for which `os.path.isreserved` of Python 3.13 is true there, COM0 and LPT0.
_NOT_ON_WINDOWS: Final = re.compile(
    r'[<>:"|?*\x00-\x1f/\\]|[. ]$|^(?:con|prn|aux|nul|con(?:in|out)\$|(?:com|lpt)[0-9¹²³]) *(?:\.|$)', re.IGNORECASE
)

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotTextError(ValueError):
    """Bytes that are not text; the message is the reason, for people."""


def user_path(variable: str, name: str, *, is_data: bool = False, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path in an environment variable, else of a name in the program's folder of this user.

    Args:
        variable: The environment variable.
        name: The name of the file or folder.
        is_data: Whether it is in the folder for data, instead of the one for settings.
        environment: The environment variables.
    """
    named = environment.get(variable, "").strip()
    if named:
        return Path(named)
    import platformdirs

    folder = platformdirs.user_data_path if is_data else platformdirs.user_config_path
    return folder("loopwright", appauthor=False) / name


def is_file(path: Path) -> bool:
    """Return whether there is a file, or a link to one; False also in a folder that this user may not enter."""
    return os.path.isfile(path)  # noqa: PTH113 - `Path.is_file` fails in such a folder, before Python 3.14


def path_exists(path: Path) -> bool:
    """Return whether there is a file or a folder, as `is_file` does."""
    return os.path.exists(path)  # noqa: PTH110 - as above


def read_ordinary_file(path: Path, max_bytes: int) -> bytes:
    """Read a regular file; a pipe is refused without waiting for it.

    Args:
        path: The file.
        max_bytes: Maximum size in bytes, a whole number of millions.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not an ordinary file, is too large, or has an impossible name; the message is the reason, for
            people.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not an ordinary file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"it has more than {format_count(max_bytes // 1_000_000)} MB")
    return content


def read_text_file(path: Path, max_bytes: int) -> str:
    """Read a text file that a person or another program wrote; see `decode_text`.

    Args:
        path: The file.
        max_bytes: Its maximum size in bytes, a whole number of millions.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not an ordinary file, is too large, is not text (`NotTextError`), or has an impossible name;
            the message is the reason, for people.
    """
    return decode_text(read_ordinary_file(path, max_bytes))


def decode_text(content: bytes, *, errors: str = "strict", keep_line_ends: bool = False) -> str:
    r"""Decode the content of a text file.

    The encoding is UTF-8, or UTF-16 or UTF-32 where the byte order mark says so. The mark is not part of the text, and
    every line ends with `\n`, whether the file has `\n`, `\r\n` or `\r`.

    Args:
        content: What is in the file.
        errors: What to do with bytes that do not fit, as for `bytes.decode`.
        keep_line_ends: Whether line ends stay as they are in the file.

    Raises:
        NotTextError: A byte does not fit the encoding.
    """
    mark, encoding = next((known for known in _BYTE_ORDER_MARKS if content.startswith(known[0])), (b"", "utf-8"))
    try:
        text = content[len(mark) :].decode(encoding, errors)
    except UnicodeDecodeError as error:
        name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        at = len(mark) + error.start + 1
        raise NotTextError(f"it is not {name} text: byte {format_count(at)} does not fit") from error
    return text if keep_line_ends else normalize_line_ends(text)


def normalize_line_ends(text: str) -> str:
    r"""End every line of a text with `\n`, as models are trained on."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def replace_file(target: Path, content: bytes | Iterable[bytes], *, wait_for_disk: bool = True) -> None:
    """Replace a file atomically, or leave it unchanged; permissions stay.

    The content is first written to a temporary file beside it. A symbolic link stays, and its target is replaced.

    Args:
        target: The file.
        content: The new content, whole or in pieces.
        wait_for_disk: Whether to wait until the content survives a power failure.

    Raises:
        OSError, ValueError: It cannot be replaced.
    """
    target = Path(os.path.realpath(target))
    mode = _current_mode(target)
    temporary = target.parent / unfinished_name()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            if wait_for_disk:
                os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        move_over(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if wait_for_disk:
        _sync_folder(target.parent)
    clear_unfinished(target.parent)


def move_over(source: Path, target: Path, *, folder: int | None = None) -> None:
    """Move a file over another one; on Windows, wait for a program that has it open for a moment, such as a scanner.

    Args:
        source: The file.
        target: Its new path.
        folder: The descriptor of the folder to which both are relative; None for paths as usual.

    Raises:
        OSError: It cannot be moved.
    """
    for delay_s in (*_MOVE_DELAYS_S, None):
        try:
            os.replace(source, target, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            if delay_s is None or getattr(error, "winerror", None) not in _OPEN_ELSEWHERE:
                raise
            time.sleep(delay_s)
        else:
            return


def is_windows_name(name: str) -> bool:
    """Return whether Windows allows a name for a file or folder."""
    return _NOT_ON_WINDOWS.search(name) is None


LOCK_TIMEOUT_S: Final = 5.0
_LOCK_INTERVAL_S: Final = 0.01


@contextmanager
def hold_lock(path: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Generator[None]:
    """Lock a file against other processes and threads that lock it, to read and then replace it.

    The lock is on a hidden file beside it, which stays. The system releases it when a process ends.

    Args:
        path: The file.
        timeout_s: How long to wait for the lock, in seconds.

    Raises:
        TimeoutError: Another process or thread holds the lock.
        OSError: Its folder cannot be written.
    """
    path = Path(os.path.realpath(path))
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + timeout_s
        while not try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another program is changing it")
            time.sleep(_LOCK_INTERVAL_S)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed, without waiting.

    Returns:
        Whether it is locked now; False if it is locked through another descriptor.

    Raises:
        OSError: Its file system has no locks.
    """
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EAGAIN, errno.EDEADLK}:
            return False
        raise
    return True


def unfinished_name() -> str:
    """Return a new name for a temporary file."""
    return f".loopwright-{secrets.token_hex(8)}.tmp"


def clear_unfinished(folder: Path) -> None:
    """Remove abandoned temporary files of killed programs, as far as possible."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED_S:
                        Path(entry).unlink()


def _current_mode(target: Path) -> int | None:
    try:
        status = target.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("something that is not an ordinary file has this name")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is write-protected")
    return stat.S_IMODE(status.st_mode)


def _sync_folder(folder: Path) -> None:
    # A rename survives a power failure only after its folder is synced; not every system supports that.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
