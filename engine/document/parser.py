"""From the bytes of a file to a JSON object that keeps the rules of `json_rules`.

Here ends whatever a hostile or damaged text can do: size, depth, encoding, numbers without end. What the object means
is not known here.
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
"""The largest document that is opened or saved; a hand-made one has a few thousand bytes."""

_RESTORE = "Restore the file from a copy, or mend it in a text editor."


def parse(text: str | bytes, source: str) -> dict[str, Value]:
    """Read a text as one JSON object.

    Args:
        text: The bytes of a text file (see `decode_text`), or a decoded text.
        source: What to call it in messages; shown as it is.

    Raises:
        DocumentError: It is too large, empty, not UTF-8, not JSON, not an object, or breaks the rules.
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
    message = f"{source}: The document is larger than {megabytes} MB, the most that is opened or saved."
    return DocumentError(message, "Keep large texts in files of their own and read them while the workflow runs.")


def decoded_text(content: bytes, source: str) -> str:
    """Decode a document or a file to import.

    Raises:
        DocumentError: It is not text.
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
        message = f"{source}: Objects and lists stand more than {MAX_DEPTH} deep inside one another."
        raise DocumentError(message, _RESTORE) from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    whole = dict(pairs)
    if len(whole) == len(pairs):
        return whole
    seen: set[str] = set()
    repeated = frozenset(key for key, _ in pairs if key in seen or seen.add(key))
    return RepeatingObject(pairs, repeated)


def _integer(digits: str) -> int | float:
    # Python refuses to read very long integers. Infinity is what the rules refuse with a place, as for 1e999.
    return int(digits) if len(digits) <= MAX_DIGITS else math.inf


MAX_PARTS = 50_000
"""The most nodes and the most edges of one document; a thousand already fill a wall."""

_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "tuple_type": "a list",
}


def to_workflow(document: dict[str, Value], source: str) -> Workflow:
    """Make the document's model.

    Args:
        document: An object that keeps the rules of `json_rules`, in the present form or a newer one.
        source: What to call it in messages.

    Raises:
        DocumentError: The model cannot hold it; its `problems` name every place.
    """
    for key in ("nodes", "edges"):
        parts = document.get(key)
        if isinstance(parts, list) and len(parts) > MAX_PARTS:
            message = f"{source}: The document has {len(parts)} {key}; the most that is opened is {MAX_PARTS}."
            raise DocumentError(message, "Divide the workflow into several files.")
    try:
        # Only the names of the file count: a key `from_` is one that we do not know, and is kept.
        return Workflow.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)[:MAX_PROBLEMS]
        problems = [_problem(document, detail["type"], detail["loc"], detail["input"]) for detail in details]
        newer = is_newer(Workflow.model_construct(version=document["version"]))
        remedy = "A newer version of the program wrote it: update yours." if newer else ""
        raise broken(source, problems, remedy) from None


def _problem(document: dict[str, Value], kind: str, path: JsonPath, value: object) -> Problem:
    what = f'"{path[-1]}"' if isinstance(path[-1], str) else f"Entry {path[-1]} of {path[-2]}"
    if kind == "missing":
        return problem_at(document, path, "missing-key", f"{what} is missing.", f"Add {what}.")
    expected = _EXPECTED[kind]
    message = f"{what} is {kind_of(value)}, not {expected}."
    return problem_at(document, path, "wrong-kind", message, f"Make it {expected}.")
