"""Ordinary files: reading one that a person names, decoding text, and replacing a file as a whole.

This module does not know what a file is for. Callers turn its errors into messages.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_UNFINISHED: Final = re.compile(r"\.loopwright-[0-9a-f]{16}\.tmp")
_GIVEN_UP_S: Final = 3600.0
"""Seconds without a change after which nobody is still at work on an unfinished file."""

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotTextError(ValueError):
    """Bytes that are not text; the message is the reason, for people."""


def read_ordinary_file(path: Path, most: int) -> bytes:
    """The bytes of a file; a pipe is refused, and not waited for.

    Args:
        path: The file.
        most: How many bytes it may have, a whole number of millions.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no ordinary file, larger than that, or has a name that no file can have; the text is the
            reason, for people.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no ordinary file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most // 1_000_000:,} MB")
    return content


def read_text_file(path: Path, most: int) -> str:
    """Read a text file that a person or another program wrote; see `decode_text`.

    Args:
        path: The file.
        most: Its maximum size in bytes, a whole number of millions.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not an ordinary file, is too large, is not text (`NotTextError`), or has an impossible name;
            the message is the reason, for people.
    """
    return decode_text(read_ordinary_file(path, most))


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
        raise NotTextError(f"it is not {name} text: byte {at:,} does not fit") from error
    return text if keep_line_ends else normalize_line_ends(text)


def normalize_line_ends(text: str) -> str:
    r"""End every line of a text with `\n`, as models are trained on."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def replace_file(target: Path, content: bytes | Iterable[bytes], *, wait_for_disk: bool = True) -> None:
    """Put a whole new file in a file's place, with its permissions, or leave it as it was.

    The new file is made beside it. A symbolic link stays; the file that it leads to is replaced.

    Args:
        target: The file.
        content: What it is to hold, whole or in pieces.
        wait_for_disk: Whether it is safe from a power cut when this ends.

    Raises:
        OSError, ValueError: It cannot be written.
    """
    target = Path(os.path.realpath(target))
    mode = _mode_of_old(target)
    unfinished = target.parent / unfinished_name()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(unfinished, flags, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            if wait_for_disk:
                os.fsync(file.fileno())
        if mode is not None:
            unfinished.chmod(mode)
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    if wait_for_disk:
        _settle(target.parent)
    clear_unfinished(target.parent)


def unfinished_name() -> str:
    """A new name for a file that is to take another's place once it is whole."""
    return f".loopwright-{secrets.token_hex(8)}.tmp"


def clear_unfinished(folder: Path) -> None:
    """Remove what programs that were killed have left of such files; what cannot be removed stays."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _UNFINISHED.fullmatch(entry.name):
                with suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _GIVEN_UP_S:
                        Path(entry).unlink()


def _mode_of_old(target: Path) -> int | None:
    try:
        status = target.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("something that is no ordinary file has this name")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is write-protected")
    return stat.S_IMODE(status.st_mode)


def _settle(folder: Path) -> None:
    # The new name is safe from a power cut once its folder is on the disk; not every system can be asked for that.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
