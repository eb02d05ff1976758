"""Reading a file that a person names: an ordinary one, not larger than what reads it can bear.

What the file is for, and what to say when it cannot be read, is not known here.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


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
