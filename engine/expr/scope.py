"""Scopes of expressions: names, namespaces and paths, with the errors and the limits of an evaluation.

The limits keep any expression within about a second and some ten megabytes, whatever its text and its inputs are.
This module knows nothing of CEL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Protocol

from engine.errors import EngineError
from engine.formatting import format_count
from engine.values import Value


class PlacedError(EngineError):
    """An error at a position in an expression or a template.

    Attributes:
        detail: The message without the position.
        position: Index of the character; None without a single position.
    """

    def __init__(self, detail: str, remedy: str = "", position: int | None = None) -> None:
        super().__init__(detail if position is None else f"Character {position + 1}: {detail}", remedy)
        self.detail = detail
        self.position = position


class ExpressionError(PlacedError):
    """An expression is invalid, or its evaluation fails."""


class MissingError(ExpressionError):
    """An object has no such member; `has()` turns this error into false."""


class LimitError(ExpressionError):
    """An expression would take too long or grow too large; `||` and `&&` never swallow this error."""


class TemplateError(PlacedError):
    """A template is invalid, or its rendering fails."""


class Namespace(Protocol):
    """A group of values, each fetched only when it is read."""

    def member(self, name: str) -> Value | Namespace:
        """Return a value of the group, or a group inside it.

        Raises:
            LookupError: There is no such member.
        """
        ...


class Record(dict[str, Value]):
    """An object with additional members `by_name` that only an expression reads.

    Text and JSON of the whole record omit them. So a text with a loop's history does not repeat every output in it,
    and does not grow with earlier texts that contain the history.
    """

    __slots__ = ("by_name",)

    def __init__(self, whole: Mapping[str, Value], **by_name: Value) -> None:
        super().__init__(whole)
        self.by_name = by_name

    def __missing__(self, name: str) -> Value:
        return self.by_name[name]


class Records(list[Value]):
    """A list that grows up to `most` elements; an element that does not exist yet reads as `blank`."""

    __slots__ = ("blank", "most")

    def __init__(self, there: Iterable[Value], blank: Value, most: int) -> None:
        super().__init__(there)
        self.blank = blank
        self.most = most


Scope = Mapping[str, "Value | Namespace"]
"""Values by bare name."""

NAMESPACES = frozenset({"loop", "nodes", "state"})
"""Names that are always groups of values, so using one as a whole is reported before the run."""

_VALUE = (str, int, float, list, dict, NoneType)
"""The types of values; anything else is a namespace."""

LITERALS = frozenset({"true", "false", "null"})
"""The words of CEL that look like names but are not."""

PATH = re.compile(r"[ \t\r\n]*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)[ \t\r\n]*")
"""A plain dotted path with white space around it."""


def plain_path(text: str) -> tuple[str, ...] | None:
    """Split a dotted path (`loop.last.draft`); None for any other text."""
    match = PATH.fullmatch(text)
    if match is None:
        return None
    path = tuple(match[1].split("."))
    return None if path[0] in LITERALS else path


def check_path(path: tuple[str, ...], position: int | None) -> None:
    """Check that a path does not name a whole group of values.

    Raises:
        ExpressionError: It does.
    """
    if len(path) == 1 and path[0] in NAMESPACES:
        raise ExpressionError(
            f"`{path[0]}` is a group of values and cannot be used as a whole.",
            f"Name one of them after a dot, as in `{path[0]}.{'iteration' if path[0] == 'loop' else 'NAME'}`.",
            position,
        )


def describe(value: Value) -> str:
    """Describe the type of a value for a person."""
    match value:
        case None:
            return "empty (null)"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def member_of(value: Value, name: str, owner: str, position: int | None) -> Value:
    """Read a member of a JSON object.

    Args:
        value: The object.
        name: The member.
        owner: The source of the object, for the error.
        position: Its position.

    Raises:
        ExpressionError: The value is no object, or has no such member.
    """
    if isinstance(value, dict):
        try:
            return value[name]
        except KeyError:
            names = [*value, *value.by_name] if isinstance(value, Record) else value
            raise MissingError(f"{owner} has no `{name}`; it has: {_listing(names)}.", "", position) from None
    error = MissingError if value is None else ExpressionError
    raise error(f"{owner} is {describe(value)} and so has no `{name}`.", "", position)


def resolve(path: tuple[str, ...], scope: Scope, position: int | None = None) -> Value | Namespace:
    """Follow a path to a value or a group of values.

    A null in a namespace (as in a loop's first iteration) has null members too.

    Raises:
        ExpressionError: There is nothing at the path.
    """
    try:
        item = scope[path[0]]
    except KeyError:
        raise ExpressionError(
            f"There is no `{path[0]}` here; there is: {_listing(scope)}.", "Correct the name.", position
        ) from None
    inside_namespace = not isinstance(item, _VALUE)
    for index in range(1, len(path)):
        if not isinstance(item, _VALUE):
            try:
                item = item.member(path[index])
            except LookupError:
                owner = ".".join(path[:index])
                raise MissingError(f"`{owner}` has no `{path[index]}`.", "Correct the name.", position) from None
        elif item is None and inside_namespace:
            return None
        else:
            item = member_of(item, path[index], f"`{'.'.join(path[:index])}`", position)
    return item


def read(path: tuple[str, ...], scope: Scope, position: int | None = None) -> Value:
    """Follow a path to a value.

    Raises:
        ExpressionError: There is nothing or a whole group of values at the path.
    """
    item = resolve(path, scope, position)
    if isinstance(item, _VALUE):
        return item
    written = ".".join(path)
    raise ExpressionError(
        f"`{written}` is a group of values and cannot be used as a whole.",
        f"Name one of them after a dot, as in `{written}.NAME`.",
        position,
    )


def has(path: tuple[str, ...], scope: Scope, position: int | None = None) -> bool:
    """Whether the member at the end of a path of two or more names exists.

    Raises:
        ExpressionError: The path starts with an unknown name, or a value in it has no members.
    """
    try:
        owner = resolve(path[:-1], scope, position)
        if isinstance(owner, _VALUE):
            member_of(owner, path[-1], f"`{'.'.join(path[:-1])}`", position)
        else:
            resolve(path, scope, position)
    except MissingError:
        return False
    return True


def _listing(names: Iterable[str]) -> str:
    ordered = sorted(names)
    if not ordered:
        return "nothing"
    return ", ".join(name[:40] for name in ordered[:10]) + (", …" if len(ordered) > 10 else "")


MAX_EXPRESSION_LENGTH = 1_000
"""Characters of an expression's text."""

MAX_NESTING = 50
"""Nested calls, lists, objects and conditions. Parentheses do not count."""

MAX_WALK = 10_000
"""Elements of a list or object for `map`, `filter`, `all`, `exists` and `exists_one`."""

MAX_TEXT = 1_000_000
"""Characters of a text that an expression builds."""

MAX_RESULT = 10_000_000
"""Approximate number of characters of an expression's result as JSON."""

MAX_TEMPLATE_BYTES = 1_000_000
"""UTF-8 bytes of a rendered template."""

MAX_EXPRESSION_PLACEHOLDERS = 100
"""Placeholders of a template with more than a plain path; each takes about a millisecond to compile."""

MAX_WORK = 1_000_000
"""Steps of one evaluation. A step takes a few tenths of a microsecond."""

CHARACTERS_READ = 1_000
"""Characters read in one step."""

CHARACTERS_WRITTEN = 8
"""Characters written in one step; this bounds the memory of all texts of an evaluation."""

PIECE = 10
"""Steps for a new list element that no other step counts; this bounds memory too."""


class Frame:
    """A running evaluation: its scope and its remaining work.

    Attributes:
        scope: The names that the expression may read.
        variable: The current element of a comprehension. Comprehensions do not nest.
        known: Values read from namespaces so far; reading them may be expensive.
        patterns: Regular expressions compiled so far; compiling one is expensive.
    """

    __slots__ = ("_left", "known", "patterns", "scope", "variable")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.variable: Value = None
        self.known: dict[tuple[str, ...], Value] = {}
        self.patterns: set[str] = set()
        self._left = MAX_WORK

    def charge(self, steps: int, position: int | None) -> None:
        """Count steps of work before they are done.

        Raises:
            LimitError: The evaluation has no more steps left.
        """
        self._left -= steps
        if self._left < 0:
            raise LimitError(
                "This is too much work for one expression.",
                "Use fewer or shorter values, or split the work between several nodes.",
                position,
            )

    def charge_text(self, length: int, position: int | None) -> None:
        """Count a text of `length` characters before it is built.

        Raises:
            LimitError: The text would be too long.
        """
        if length > MAX_TEXT:
            raise LimitError(
                f"This would make a text of more than {format_count(MAX_TEXT, 'character')}.",
                "Build a shorter text.",
                position,
            )
        self.charge(length // CHARACTERS_WRITTEN, position)


def written_size(value: Value, limit: int) -> int:
    """Estimate the number of characters of a value as JSON; counting stops above `limit`.

    A value that occurs several times counts each time.
    """
    size = 0
    waiting: list[Value] = [value]
    while waiting and size <= limit:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item) + 2
        elif isinstance(item, list):
            size += len(item) + 2
            waiting.extend(item[: limit + 1])
        elif isinstance(item, dict):
            size += len(item) + 2
            waiting.extend(item)
            waiting.extend(item.values())
        else:
            size += 4
    return size
