"""Rules for the JSON of documents: finite numbers, unique keys, limited depth.

The rules are checked when a file is read and before one is written, so every saved document can be opened again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from engine.text_sanitizing import shown

MAX_DEPTH = 200
"""Maximum nesting of objects and lists; deeper values overflow the stack of some JSON tools."""

MAX_DIGITS = 600
"""Maximum number of digits of an integer. Python can be configured to refuse 640 digits and more."""

_INTEGER_BOUND = 10**MAX_DIGITS

JsonPath: TypeAlias = "tuple[str | int, ...]"
"""Keys and list indices from the root to a value."""


class RepeatingObject(dict[str, object]):
    """A JSON object with repeated keys."""

    def __init__(self, pairs: list[tuple[str, object]], repeated: frozenset[str]) -> None:
        super().__init__(pairs)
        self.repeated = repeated


@dataclass(frozen=True, slots=True)
class Fault:
    """A violation of the rules.

    Attributes:
        code: Stable identifier of the kind of violation.
        path: Its place.
        message: One sentence: what is wrong.
        remedy: One sentence: how to fix it.
    """

    code: str
    path: JsonPath
    message: str
    remedy: str


def faults(root: object, *, depth: int = 0) -> Iterator[Fault]:
    """Find all violations of the rules in a value; stops at the first place that is too deep.

    Iterative, so that deep values do not overflow the stack.

    Args:
        root: The output of `json.loads`, or the input of `json.dumps`.
        depth: The number of objects and lists that contain it.

    Yields:
        A violation for each invalid value or key.
    """
    pending: list[Iterator[tuple[str | int, object]]] = [iter([(0, root)])]
    path: list[str | int] = [0]
    if depth > MAX_DEPTH:
        yield _too_deep(())
        return
    while pending:
        step = next(pending[-1], None)
        if step is None:
            pending.pop()
            path.pop()
            continue
        path[-1], value = step
        if isinstance(value, str):  # the most frequent case
            continue
        if isinstance(value, dict):
            keyed = cast("dict[object, object]", value)
            for wrong in () if has_usual_keys(keyed) else _key_faults(keyed):
                yield Fault(wrong[0], tuple(path[1:]), *wrong[1:])
            inside: Iterator[tuple[str | int, object]] = iter(cast("dict[str, object]", value).items())
        elif isinstance(value, list):
            inside = enumerate(cast("list[object]", value))
        else:
            if wrong := plain_fault(value):
                yield Fault(wrong[0], tuple(path[1:]), *wrong[1:])
            continue
        if len(pending) + depth > MAX_DEPTH:
            yield _too_deep(tuple(path[1:4]))
            return
        pending.append(inside)
        path.append(0)


def _too_deep(path: JsonPath) -> Fault:
    message = f"Objects and lists are nested more than {MAX_DEPTH} levels deep."
    return Fault("too-deep", path, message, "Make the value flatter.")


def has_usual_keys(value: dict[Any, object]) -> bool:
    """Whether all keys are encodable texts without repetition, which holds for almost every object."""
    if isinstance(value, RepeatingObject):
        return False
    try:
        "".join(value).encode()
    except (TypeError, UnicodeEncodeError):
        return False
    return True


def _key_faults(value: dict[object, object]) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, RepeatingObject):
        for key in sorted(value.repeated):
            message = f'The key "{shown(key)}" is repeated in the same object.'
            yield "duplicate-key", message, "Keep one of them."
    for key in value:
        if not isinstance(key, str):
            yield "bad-key", f'The key "{shown(key)}" is not a text.', "Use texts as keys."
        elif not _encodable(key):
            message = f'The key "{shown(key)}" contains half of a surrogate pair.'
            yield "bad-key", message, "Use complete characters in the key."


def _encodable(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_fault(value: object) -> tuple[str, str, str] | None:
    """The violation in a value other than a text, object or list: its code, message and remedy."""
    if value is None:
        return None
    if isinstance(value, int):
        ordinary = -_INTEGER_BOUND < value < _INTEGER_BOUND
    elif isinstance(value, float):
        ordinary = math.isfinite(value)
    else:
        message = f"A value of the Python type {type(value).__name__} cannot be written as JSON."
        return "not-json", message, "Use texts, numbers, true, false, null, lists and objects."
    if ordinary:
        return None
    message = "The number is infinite or too long."
    return "bad-number", message, "Use a finite number, or write it as a text in quotes."
