"""Opening and saving documents: texts and files that anybody may have written, on disks that may fail.

Opening is inert: it reads one ordinary file and touches nothing else. Saving puts a whole new file in the old one's
place or leaves the old one as it was. What a document says is not known here.
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
    """Nobody wants to go on between the steps."""


def loads(text: str | bytes, *, source: str = "document") -> Workflow:
    """Read a document from a text.

    Args:
        text: The JSON text; bytes are decoded as in `decode_text`.
        source: What to call it in messages.

    Raises:
        DocumentError: It is no document that can be opened.
    """
    name = shown(source)
    return to_workflow(migrate(parse(text, name), name), name)


def dumps(workflow: Workflow) -> str:
    """Write a document as the text of its file.

    The text is canonical: two-space indent, the model's fields in their order, unknown keys after them in theirs, a
    newline at the end. Characters stand as themselves, but a lone surrogate, which UTF-8 cannot hold, as its escape.

    Raises:
        DocumentError: It holds what JSON cannot say, or is larger than any document that is opened.
    """
    return _content(workflow, _nothing).decode()


def load(path: str | os.PathLike[str]) -> Workflow:
    """Open a document.

    Raises:
        DocumentError: There is no such file, it cannot be read, or it is no document that can be opened.
    """
    return loads(read_file(path), source=os.fspath(path))


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of an ordinary file that is no larger than a document may be.

    Raises:
        DocumentError: There is no such file, or it cannot be read.
    """
    name = shown(os.fspath(path))
    try:
        return _read(Path(path), name)
    except (OSError, ValueError) as error:
        message = f"{name}: The file cannot be opened: {_reason(error)}."
        raise DocumentError(message, "Check the path and the permissions of the file.") from error


def save(workflow: Workflow, path: str | os.PathLike[str], between: Callable[[], object] = _nothing) -> None:
    """Put a document into a file, whole or not at all.

    The text goes to a new file in the same folder, which then takes the old one's place and its permissions. A symbolic
    link stays; the file that it leads to is replaced.

    Args:
        workflow: The document.
        path: The file.
        between: Called every now and then while the text is made, so that a thread can let others go on.

    Raises:
        DocumentError: It cannot be written. A file that was there is as it was.
    """
    content = _content(workflow, between)
    name = shown(os.fspath(path))
    try:
        replace_file(Path(path), content)
    except (OSError, ValueError) as error:
        message = f"{name}: The file cannot be saved: {_reason(error)}."
        raise DocumentError(
            message, "What was there before is unchanged; save under another name or mend that."
        ) from error


def _content(workflow: Workflow, between: Callable[[], object]) -> bytes:
    source = "The document cannot be saved"
    document = workflow.to_json()
    try:
        text = TextWriter(between).text(document) + "\n"
    except RulesBrokenError:
        raise broken(source, rule_problems(document)) from None
    content = text.encode(errors="backslashreplace")  # it is lone surrogates that cannot be encoded: now their escapes
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
    # Not to block: the file may have been replaced by a pipe since.
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
