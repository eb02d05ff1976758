"""What the names in an expression or template stand for, and how a dotted path is read.

The one place that knows of namespaces; it knows nothing of CEL, nor of what the engine puts into a scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Protocol

from engine.errors import EngineError
from engine.values import Value


class PlacedError(EngineError):
    """An error at a place in a text that a person wrote.

    Attributes:
        detail: The sentence without the place.
        position: Characters of the text before the place; None where no single place is to blame.
    """

    def __init__(self, detail: str, remedy: str = "", position: int | None = None) -> None:
        super().__init__(detail if position is None else f"Character {position + 1}: {detail}", remedy)
        self.detail = detail
        self.position = position


class ExpressionError(PlacedError):
    """An expression that cannot be understood, or that has no value for these inputs."""


class MissingError(ExpressionError):
    """A member that its object does not have: the one failure that `has()` turns into an answer."""


class LimitError(ExpressionError):
    """An expression that would take too long or grow too large: the one failure that `||` and `&&` never swallow."""


class TemplateError(PlacedError):
    """A template that cannot be understood, or that cannot be filled in with these values."""


class Namespace(Protocol):
    """A group of values of which each is fetched only when it is named."""

    def member(self, name: str) -> Value | Namespace:
        """Give one value of the group, or a group inside it.

        Raises:
            LookupError: There is no such member.
        """
        ...


class Record(dict[str, Value]):
    """An object with more members than it lists: those `by_name` are read by their names alone.

    Text and JSON made of the whole record leave them out, so that a text which shows a loop's history does not repeat
    every output in it, nor grow with each text that did so before.
    """

    __slots__ = ("by_name",)

    def __init__(self, whole: Mapping[str, Value], **by_name: Value) -> None:
        super().__init__(whole)
        self.by_name = by_name

    def __missing__(self, name: str) -> Value:
        return self.by_name[name]


class Records(list[Value]):
    """A list that grows up to a known length; an element that is not there yet is the `blank` one."""

    __slots__ = ("blank", "most")

    def __init__(self, there: Iterable[Value], blank: Value, most: int) -> None:
        super().__init__(there)
        self.blank = blank
        self.most = most


Scope = Mapping[str, "Value | Namespace"]
"""Bare names and what they stand for."""

NAMESPACES = frozenset({"loop", "nodes", "state"})
"""The names that always stand for a group of values, so that using one as a whole is a mistake that shows at once."""

_VALUE = (str, int, float, list, dict, NoneType)
"""The types of a value; what is none of them is a namespace."""

LITERALS = frozenset({"true", "false", "null"})
"""The words of CEL that look like a name and are none."""

PATH = re.compile(r"[ \t\r\n]*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)[ \t\r\n]*")
"""A plain dotted path with white space around it."""


def plain_path(text: str) -> tuple[str, ...] | None:
    """Split a text that is nothing but a dotted path (`loop.last.draft`); None when it is anything else."""
    match = PATH.fullmatch(text)
    if match is None:
        return None
    path = tuple(match[1].split("."))
    return None if path[0] in LITERALS else path


def check_path(path: tuple[str, ...], position: int | None) -> None:
    """Refuse a path that names a whole group of values.

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
    """Name the kind of a value as a person would."""
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
        owner: What the person wrote for the object; it stands in the error.
        position: Where it was written.

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
    """Follow a path; it may end at a group of values.

    What a namespace gives as null (nothing happened there yet, as in a loop's first iteration) has null members too.

    Raises:
        ExpressionError: The path leads nowhere.
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
        ExpressionError: The path leads nowhere, or to a whole group of values.
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
    """Tell whether the last name of a path of two or more is there to be read.

    Raises:
        ExpressionError: The path starts at an unknown name, or goes through something that has no members.
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
    """Name the first few of some names."""
    ordered = sorted(names)
    if not ordered:
        return "nothing"
    return ", ".join(name[:40] for name in ordered[:10]) + (", …" if len(ordered) > 10 else "")


MAX_EXPRESSION_LENGTH = 1_000
"""Characters of an expression's text."""

MAX_NESTING = 50
"""Calls, lists, objects and conditions inside one another. Plain parentheses do not count."""

MAX_WALK = 10_000
"""Elements of a list or object that `map`, `filter`, `all`, `exists` or `exists_one` walks over."""

MAX_TEXT = 1_000_000
"""Characters of a text that an expression puts together."""

MAX_RESULT = 10_000_000
"""Characters, about, that the result of an expression may take as JSON."""

MAX_TEMPLATE_BYTES = 1_000_000
"""UTF-8 bytes of a template's outcome."""

MAX_EXPRESSION_HOLES = 100
"""Holes of a template that hold more than a plain path; each takes about a millisecond to compile."""

MAX_WORK = 1_000_000
"""Steps of one evaluation. A step is what takes a few tenths of a microsecond; see the `CHARACTERS_…` below."""

CHARACTERS_READ = 1_000
"""Characters that are looked through in one step."""

CHARACTERS_WRITTEN = 8
"""Characters that are written in one step; this bounds the memory that all texts of an evaluation take together."""

PIECE = 10
"""Steps that a new element of a list costs where no step of the expression made it: this bounds memory too."""


class Frame:
    """One evaluation under way: what it sees, and how much it may still do.

    Attributes:
        scope: The names that the expression may read.
        variable: The element that a comprehension is at. There is one at most, for comprehensions do not nest.
        known: What was read from namespaces so far, for reading it may be expensive.
        patterns: The regular expressions that were compiled so far, for compiling one is expensive.
    """

    __slots__ = ("_left", "known", "patterns", "scope", "variable")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.variable: Value = None
        self.known: dict[tuple[str, ...], Value] = {}
        self.patterns: set[str] = set()
        self._left = MAX_WORK

    def charge(self, steps: int, position: int | None) -> None:
        """Count `steps` of work before they are done.

        Raises:
            LimitError: It is too much.
        """
        self._left -= steps
        if self._left < 0:
            raise LimitError(
                "This is too much work for one expression.",
                "Let it look at less, or leave the work to a node of its own.",
                position,
            )

    def charge_text(self, length: int, position: int | None) -> None:
        """Count the writing of a text of `length` characters before it is written.

        Raises:
            LimitError: The text would be too long.
        """
        if length > MAX_TEXT:
            raise LimitError(
                f"This would make a text of more than {MAX_TEXT:,} characters.", "Put together less.", position
            )
        self.charge(length // CHARACTERS_WRITTEN, position)


def written_size(value: Value, limit: int) -> int:
    """Count about how many characters a value takes as JSON, no further than just over `limit`.

    A value that is used several times counts each time, for it is written each time.
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
