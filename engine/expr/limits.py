"""How much an expression or a template may cost, and the counting that holds it to that. Knows nothing of CEL.

The numbers keep any expression within about a second and some ten megabytes, whatever its text and its inputs are.
"""

from __future__ import annotations

from engine.expr.errors import LimitError
from engine.expr.scope import Scope
from engine.values import Value

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
