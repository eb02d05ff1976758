"""Finding and reading the text and Markdown files of a folder, within limits. Knows nothing of searching."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from engine.safe_file_io import decode_text
from engine.tools.base import ToolError
from engine.tools.sandbox import Parent, open_ordinary, shown

MARKDOWN_SUFFIXES = frozenset({".md", ".markdown"})
TEXT_SUFFIXES = frozenset({".txt", ".text"}) | MARKDOWN_SUFFIXES

MAX_FILES = 2_000
MAX_FILE_BYTES = 4_000_000
MAX_TOTAL_BYTES = 32_000_000
_MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that a search may read. Two that compare equal hold the same text, as far as the file system can tell.

    Attributes:
        name: Its path relative to the folder, joined by `/`.
        path: Where it is.
        modified_ns: When it was last changed, in nanoseconds.
        size: Bytes.
    """

    name: str
    path: Path
    modified_ns: int
    size: int


def find_text_files(folder: Path) -> tuple[TextFile, ...]:
    """List a folder's text files, sorted by name, without hidden files and folders, links, and what cannot be listed.

    Raises:
        ToolError: There are more files or bytes than a search reads.
    """
    found: list[TextFile] = []
    entries = total = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        entries += len(folders) + len(files)
        if entries > _MAX_ENTRIES:
            raise _too_much(folder, f"more than {_MAX_ENTRIES:,} files and folders")
        for name in files:
            path = Path(place, name)
            if name.startswith(".") or path.suffix.lower() not in TEXT_SUFFIXES or path.is_symlink():
                continue
            try:
                status = path.stat()
            except OSError:  # It went away while the folder was read.
                continue
            # A name that is no UTF-8 would otherwise carry lone surrogates into the results.
            readable = os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "replace")
            found.append(TextFile(readable, path, status.st_mtime_ns, status.st_size))
            total += status.st_size
            _check_limits(folder, found, total)
    return tuple(sorted(found, key=lambda file: file.name))


def _check_limits(folder: Path, found: list[TextFile], total: int) -> None:
    """Refuse the folder if the file found last, or all of them together, are too much."""
    if len(found) > MAX_FILES:
        raise _too_much(folder, f"more than {MAX_FILES:,} text files")
    if found[-1].size > MAX_FILE_BYTES:
        raise _too_much(folder, f"a file of more than {MAX_FILE_BYTES:,} bytes, {shown(found[-1].name)}")
    if total > MAX_TOTAL_BYTES:
        raise _too_much(folder, f"more than {MAX_TOTAL_BYTES:,} bytes of text")


def _too_much(folder: Path, what: str) -> ToolError:
    return ToolError(
        f"The folder {shown(str(folder))} holds {what}: too much to search.",
        "Name a smaller folder, or move what need not be found elsewhere.",
    )


def read_text(file: TextFile) -> str:
    """Read a file as text as `decode_text` does; bytes that do not fit become U+FFFD.

    A file that cannot be read, is no ordinary file or holds binary data gives an empty text: one bad file does not
    spoil the search through the others.
    """
    try:
        descriptor = open_ordinary(Parent(file.path.parent, None), file.path.name, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as stream:
            content = stream.read(MAX_FILE_BYTES)
    except OSError:
        return ""
    text = decode_text(content, errors="replace")
    return "" if "\0" in text else text
