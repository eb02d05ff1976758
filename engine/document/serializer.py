"""From a JSON object to the canonical text of a document's file, in steps that let other threads in between.

The text is what `json.dumps(..., ensure_ascii=False, indent=2, allow_nan=False)` makes of it, in half the time, and
checked in passing. This module knows JSON only.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring as quoted
from typing import Final, cast

from engine.document.json_rules import MAX_DEPTH, has_usual_keys, plain_fault

_INDENT: Final = "  "
_DEEPEST: Final = len("\n" + _INDENT * (MAX_DEPTH - 1))
"""The longest beginning of a line in which an object or list may stand."""

_STEP: Final = 64
"""Objects and lists from one call of `between` to the next: less than a millisecond."""


class RulesBrokenError(Exception):
    """A value breaks the rules of `json_rules`; `faults` tells which, and where."""


class TextWriter:
    """Writes values.

    Args:
        between: Called every now and then while it writes.
    """

    def __init__(self, between: Callable[[], object]) -> None:
        self._between = between
        self._number = 0

    def text(self, value: object, line: str = "\n") -> str:
        """The text of a value.

        Args:
            value: The value.
            line: What begins a line where the value stands: the end of the line before, and the indent.

        Raises:
            RulesBrokenError: It breaks the rules.
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
        return float.__repr__(value)  # not what a class of its own makes of itself: the number that it is
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return int.__repr__(cast("int", value))
