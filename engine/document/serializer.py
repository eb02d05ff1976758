"""Serialize a JSON object to the canonical text of a document file.

The text equals that of `json.dumps(..., ensure_ascii=False, indent=2, allow_nan=False)`, in half the time, with checks
of `json_rules` and regular callbacks, which let other threads run.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring as quoted
from typing import Final, cast

from engine.document.json_rules import MAX_DEPTH, has_usual_keys, plain_fault

_INDENT: Final = "  "
_DEEPEST: Final = len("\n" + _INDENT * (MAX_DEPTH - 1))
"""Maximum length of a line break and indent before an object or list."""

_STEP: Final = 64
"""Number of objects and lists between two calls of `between`: less than a millisecond."""


class RulesBrokenError(Exception):
    """A value violates `json_rules`; `faults` has the details."""


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
