"""What the JSON of a document may hold: finite numbers, keys that stand once, no more depth than any tool can follow.

The same rules are kept when a text is read and before one is written, so that whatever is saved can be opened again.
This module knows JSON only, nothing of nodes and edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from engine.text_sanitizing import shown

MAX_DEPTH = 200
"""The most objects and lists inside one another; deeper ones overflow the stack of one JSON tool or another."""

MAX_DIGITS = 600
"""The most digits of an integer. Python itself can be set to refuse from 640 on."""

_INTEGER_BOUND = 10**MAX_DIGITS

JsonPath: TypeAlias = "tuple[str | int, ...]"
"""Keys and list indices that lead from the root to a value."""


class RepeatingObject(dict[str, object]):
    """An object of a JSON text in which keys stand more than once."""

    def __init__(self, pairs: list[tuple[str, object]], repeated: frozenset[str]) -> None:
        super().__init__(pairs)
        self.repeated = repeated


@dataclass(frozen=True, slots=True)
class Fault:
    """One breach of the rules.

    Attributes:
        code: A stable name of the kind of fault.
        path: Where it is.
        message: One sentence: what is wrong.
        remedy: One sentence: what would put it right.
    """

    code: str
    path: JsonPath
    message: str
    remedy: str


def faults(root: object, *, depth: int = 0) -> Iterator[Fault]:
    """All breaches of the rules in a value, in its order; ends after the first place that is too deep.

    Goes through the value with a stack of its own, so that depth costs neither recursion nor memory.

    Args:
        root: What `json.loads` gave, or what is meant for `json.dumps`.
        depth: How many objects and lists are already around it.

    Yields:
        One fault for each wrong value or key.
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
        if isinstance(value, str):  # by far the most
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
    message = f"Objects and lists stand more than {MAX_DEPTH} deep inside one another."
    return Fault("too-deep", path, message, "Make the value flatter.")


def has_usual_keys(value: dict[Any, object]) -> bool:
    """Whether all keys are texts that can be written, and none stood twice: what is so of almost every object."""
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
            message = f'The key "{shown(key)}" stands more than once in the same object.'
            yield "duplicate-key", message, "Keep one of them."
    for key in value:
        if not isinstance(key, str):
            yield "bad-key", f'The key "{shown(key)}" is no text.', "Use texts as keys."
        elif not _encodable(key):
            message = f'The key "{shown(key)}" holds half of a surrogate pair.'
            yield "bad-key", message, "Write the key with whole characters."


def _encodable(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_fault(value: object) -> tuple[str, str, str] | None:
    """The breach of the rules in a value that is no text, object or list: its code, message and remedy."""
    if value is None:
        return None
    if isinstance(value, int):
        ordinary = -_INTEGER_BOUND < value < _INTEGER_BOUND
    elif isinstance(value, float):
        ordinary = math.isfinite(value)
    else:
        message = f"A value of the Python type {type(value).__name__} cannot stand in JSON."
        return "not-json", message, "Use texts, numbers, true, false, null, lists and objects."
    if ordinary:
        return None
    message = "The number is not finite, or too long for a number."
    return "bad-number", message, "Use an ordinary number, or write it as a text in quotes."
