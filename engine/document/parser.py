"""Parse the text of a file to a JSON object, and a JSON object to a `Workflow`.

Handles hostile and damaged files: size, depth, encoding, infinite numbers, missing or malformed members. Whether the
workflow makes sense is checked elsewhere.
"""

from __future__ import annotations

import json
import math
from typing import cast

from pydantic import ValidationError

from engine.document.json_rules import MAX_DEPTH, MAX_DIGITS, JsonPath, RepeatingObject
from engine.document.migrate import is_newer
from engine.document.model import Workflow
from engine.document.problems import MAX_PROBLEMS, DocumentError, Problem, broken, kind_of, problem_at, rule_problems
from engine.safe_file_io import NotTextError, decode_text
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
        DocumentError: The text is too large, empty, not UTF-8, not JSON, not an object, or violates `json_rules`.
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
    # Python refuses to parse very long integers. Infinity is reported with its place by `json_rules`.
    return int(digits) if len(digits) <= MAX_DIGITS else math.inf


MAX_PARTS = 50_000
"""Maximum number of nodes, and of edges, in one document."""

_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "tuple_type": "a list",
}


def to_workflow(document: dict[str, Value], source: str) -> Workflow:
    """Build the model of a document.

    Args:
        document: An object that follows `json_rules`, in the current format version or a newer one.
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
    expected = _EXPECTED[kind]
    message = f"{what} is {kind_of(value)}, not {expected}."
    return problem_at(document, path, "wrong-kind", message, f"Make it {expected}.")
