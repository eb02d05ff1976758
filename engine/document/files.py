"""Open, parse, serialize and save documents.

Opening reads one regular file and executes nothing. The parser handles hostile and damaged files: size, depth,
encoding, infinite numbers, malformed members. Saving is atomic: it replaces the file, or leaves it unchanged. The
serializer writes the text of `json.dumps(..., ensure_ascii=False, indent=2, allow_nan=False)` in half the time, with
checks of the JSON rules and regular callbacks that let other threads run.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable
from json.encoder import encode_basestring as quoted
from pathlib import Path
from typing import Final, cast

from pydantic import ValidationError

from engine.document.migrate import is_newer, migrate
from engine.document.model import Workflow
from engine.document.problems import (
    EXPECTED_TYPES,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_PROBLEMS,
    DocumentError,
    JsonPath,
    Problem,
    RepeatingObject,
    broken,
    has_usual_keys,
    kind_of,
    plain_fault,
    problem_at,
    rule_problems,
)
from engine.safe_file_io import NotTextError, decode_text, path_exists, replace_file
from engine.text_sanitizing import shown
from engine.values import Value

MAX_BYTES = 20_000_000
"""Maximum size of a document; a hand-made one has a few thousand bytes."""

_RESTORE = "Restore the file from a copy, or correct it in a text editor."


def parse(text: str | bytes, source: str) -> dict[str, Value]:
    """Parse a text as one JSON object.

    Args:
        text: The bytes of a text file (see `decode_text`), or a decoded text.
        source: The document's name for error messages, escaped already.

    Raises:
        DocumentError: The text is too large, empty, not UTF-8, not JSON, not an object, or violates the JSON rules.
    """
    if len(text) > MAX_BYTES:
        raise too_large(source)
    decoded = text.removeprefix("\ufeff") if isinstance(text, str) else decoded_text(text, source)
    if not decoded.strip():
        raise DocumentError(
            f"{source}: The document is empty.", "Choose another file, or restore this one from a copy."
        )
    document = _parsed(decoded, source)
    if not isinstance(document, dict):
        raise DocumentError(f"{source}: The document is {kind_of(document)}, not a JSON object.", _RESTORE)
    whole = cast("dict[str, Value]", document)
    problems = rule_problems(whole)
    if problems:
        raise broken(source, problems)
    return whole


def too_large(source: str) -> DocumentError:
    """The error for a document over `MAX_BYTES`."""
    megabytes = MAX_BYTES // 1_000_000
    message = f"{source}: The document is larger than {megabytes} MB, the maximum."
    return DocumentError(message, "Move large texts to separate files, and read them during the run.")


def decoded_text(content: bytes, source: str) -> str:
    """Decode a document or a file to import.

    Raises:
        DocumentError: It is not a text.
    """
    try:
        return decode_text(content)
    except NotTextError as error:
        if b"\0" in content:
            raise DocumentError(
                f"{source}: The file is not text, so it is not a workflow.", "Choose another file."
            ) from error
        message = f"{source}: The document cannot be read: {error}."
        raise DocumentError(message, "Save it as UTF-8 in a text editor, or choose another file.") from error


def _parsed(text: str, source: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        reason = error.msg[:1].lower() + error.msg[1:]
        raise DocumentError(f"{source}: The document is not JSON: {place}: {shown(reason)}.", _RESTORE) from error
    except RecursionError as error:
        message = f"{source}: Objects and lists are nested more than {MAX_DEPTH} levels deep."
        raise DocumentError(message, _RESTORE) from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    whole = dict(pairs)
    if len(whole) == len(pairs):
        return whole
    seen: set[str] = set()
    repeated = frozenset(key for key, _ in pairs if key in seen or seen.add(key))
    return RepeatingObject(pairs, repeated)


def _integer(digits: str) -> int | float:
    # Python refuses to parse very long integers. Infinity is reported with its place by `faults`.
    return int(digits) if len(digits) <= MAX_DIGITS else math.inf


MAX_PARTS = 50_000
"""Maximum number of nodes, and of edges, in one document."""


def to_workflow(document: dict[str, Value], source: str) -> Workflow:
    """Build the model of a document.

    Args:
        document: An object that follows the JSON rules, in the current format version or a newer one.
        source: The document's name for error messages.

    Raises:
        DocumentError: The object is malformed; `problems` has every place.
    """
    for key in ("nodes", "edges"):
        parts = document.get(key)
        if isinstance(parts, list) and len(parts) > MAX_PARTS:
            message = f"{source}: The document has {len(parts)} {key}; the maximum is {MAX_PARTS}."
            raise DocumentError(message, "Split the workflow into several files.")
    try:
        # Only names as in the file: a key `from_` is an unknown key.
        return Workflow.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)[:MAX_PROBLEMS]
        problems = [_problem(document, detail["type"], detail["loc"], detail["input"]) for detail in details]
        newer = is_newer(Workflow.model_construct(version=document["version"]))
        remedy = "A newer version of the program wrote it. Update the program." if newer else ""
        raise broken(source, problems, remedy) from None


def _problem(document: dict[str, Value], kind: str, path: JsonPath, value: object) -> Problem:
    what = f'"{path[-1]}"' if isinstance(path[-1], str) else f"Entry {path[-1]} of {path[-2]}"
    if kind == "missing":
        return problem_at(document, path, "missing-key", f"{what} is missing.", f"Add {what}.")
    expected = EXPECTED_TYPES[kind]
    message = f"{what} is {kind_of(value)}, not {expected}."
    return problem_at(document, path, "wrong-kind", message, f"Make it {expected}.")


_INDENT: Final = "  "
_DEEPEST: Final = len("\n" + _INDENT * (MAX_DEPTH - 1))
"""Maximum length of a line break and indent before an object or list."""

_STEP: Final = 64
"""Number of objects and lists between two calls of `between`: less than a millisecond."""


class RulesBrokenError(Exception):
    """A value violates the JSON rules; `faults` has the details."""


class TextWriter:
    """Serializes values.

    Args:
        between: Called regularly while it works.
    """

    def __init__(self, between: Callable[[], object]) -> None:
        self._between = between
        self._number = 0

    def text(self, value: object, line: str = "\n") -> str:
        """Serialize a value.

        Args:
            value: The value.
            line: A line break and the indent of the value.

        Raises:
            RulesBrokenError: The value violates the rules.
        """
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, dict):
            inner, keyed = self._inside(line), cast("dict[str, object]", value)
            if not has_usual_keys(keyed):
                raise RulesBrokenError
            items = [
                f"{quoted(key)}: {quoted(held) if type(held) is str else self.text(held, inner)}"
                for key, held in keyed.items()
            ]
            return f"{{{inner}{f',{inner}'.join(items)}{line}}}" if items else "{}"
        if isinstance(value, list):
            inner = self._inside(line)
            items = [self.text(held, inner) for held in cast("list[object]", value)]
            return f"[{inner}{f',{inner}'.join(items)}{line}]" if items else "[]"
        return _plain_text(value)

    def _inside(self, line: str) -> str:
        self._number += 1
        if not self._number % _STEP:
            self._between()
        if len(line) > _DEEPEST:
            raise RulesBrokenError
        return line + _INDENT


def _plain_text(value: object) -> str:
    if plain_fault(value):
        raise RulesBrokenError
    if isinstance(value, float):
        return float.__repr__(value)  # not the representation of a subclass
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return int.__repr__(cast("int", value))


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
        unchanged = "The existing file is unchanged. " if path_exists(Path(path)) else ""
        raise DocumentError(message, f"{unchanged}Save under another name, or fix the cause.") from error


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
