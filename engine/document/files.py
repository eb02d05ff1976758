"""Open and save documents.

Opening reads one regular file and executes nothing. Saving is atomic: it replaces the file, or leaves it unchanged.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from engine.document.migrate import migrate
from engine.document.model import Workflow
from engine.document.parser import MAX_BYTES, parse, to_workflow, too_large
from engine.document.problems import DocumentError, broken, rule_problems
from engine.document.serializer import RulesBrokenError, TextWriter
from engine.safe_file_io import replace_file
from engine.text_sanitizing import shown


def _nothing() -> None:
    """Default callback: do nothing."""


def loads(text: str | bytes, *, source: str = "document") -> Workflow:
    """Parse a document.

    Args:
        text: The JSON text; bytes are decoded as in `decode_text`.
        source: The document's name for error messages.

    Raises:
        DocumentError: The text is not a valid document.
    """
    name = shown(source)
    return to_workflow(migrate(parse(text, name), name), name)


def dumps(workflow: Workflow) -> str:
    """Serialize a document.

    The text is canonical: two-space indent, known keys in the model's order, then unknown keys in theirs, a newline at
    the end. Only lone surrogates, which UTF-8 cannot encode, are escaped.

    Raises:
        DocumentError: The document contains values that are not JSON, or is too large.
    """
    return _content(workflow, _nothing).decode()


def load(path: str | os.PathLike[str]) -> Workflow:
    """Open a document.

    Raises:
        DocumentError: The file does not exist, cannot be read, or is not a valid document.
    """
    return loads(read_file(path), source=os.fspath(path))


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file up to the maximum size of a document.

    Raises:
        DocumentError: The file does not exist, is too large, or cannot be read.
    """
    name = shown(os.fspath(path))
    try:
        return _read(Path(path), name)
    except (OSError, ValueError) as error:
        message = f"{name}: The file cannot be opened: {_reason(error)}."
        raise DocumentError(message, "Check the path and the permissions of the file.") from error


def save(workflow: Workflow, path: str | os.PathLike[str], between: Callable[[], object] = _nothing) -> None:
    """Save a document atomically.

    The text is written to a new file in the same folder, which then replaces the old one and gets its permissions. A
    symbolic link stays; its target is replaced.

    Args:
        workflow: The document.
        path: The file.
        between: Called regularly during serialization, so that other threads can run.

    Raises:
        DocumentError: The file cannot be written; an existing file is unchanged.
    """
    content = _content(workflow, between)
    name = shown(os.fspath(path))
    try:
        replace_file(Path(path), content)
    except (OSError, ValueError) as error:
        message = f"{name}: The file cannot be saved: {_reason(error)}."
        raise DocumentError(
            message, "The existing file is unchanged. Save under another name, or fix the cause."
        ) from error


def _content(workflow: Workflow, between: Callable[[], object]) -> bytes:
    source = "The document cannot be saved"
    document = workflow.to_json()
    try:
        text = TextWriter(between).text(document) + "\n"
    except RulesBrokenError:
        raise broken(source, rule_problems(document)) from None
    content = text.encode(errors="backslashreplace")  # escapes lone surrogates
    if len(content) > MAX_BYTES:
        raise too_large(source)
    return content


def _read(path: Path, name: str) -> bytes:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise DocumentError(f"{name}: This is a folder, not a workflow file.", "Choose a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError(f"{name}: This is a device or a pipe, not a workflow file.", "Choose an ordinary file.")
    if status.st_size > MAX_BYTES:
        raise too_large(name)
    # Non-blocking, because a pipe may have replaced the file since.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_BYTES + 1)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    if isinstance(error, OSError):
        text = error.strerror or str(error)
    elif isinstance(error, UnicodeError):
        text = "its name holds characters that this system cannot write"
    else:
        text = str(error)
    return shown(text[:1].lower() + text[1:])
