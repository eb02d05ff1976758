"""From the bytes of a file to a JSON object that keeps the rules of `json_rules`.

Here ends whatever a hostile or damaged text can do: size, depth, encoding, numbers without end. What the object means
is not known here.
"""

from __future__ import annotations

import json
import math
from typing import cast

from engine.document.json_rules import MAX_DEPTH, MAX_DIGITS, RepeatingObject
from engine.document.places import broken, kind_of, rule_problems
from engine.document.problems import DocumentError
from engine.document.wording import shown
from engine.ordinary_file import NotTextError, decode_text
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
