"""Regular expressions that take time in proportion to the text, whatever the pattern. By RE2; knows nothing of CEL."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Protocol, cast

from engine.expr.errors import ExpressionError
from engine.expr.limits import Frame
from engine.formatting import format_count

_MAX_PATTERN_LENGTH = 1_000
_MEMORY = 1 << 20
"""Bytes that one compiled pattern may take, the states included that it collects while it searches."""

_STATES_PER_STEP = 100
"""A pattern's instructions times a text's characters that are gone through in one step, at worst (measured: when its
states do not fit into the memory above)."""

_STEPS_PER_PATTERN_CHARACTER = 20
"""Steps that compiling takes (measured: 23 ms for `\\pL` 330 times, which is then found to be too large)."""


class _Options(Protocol):
    max_mem: int
    log_errors: bool


class _Compiled(Protocol):
    programsize: int

    def search(self, text: str) -> object: ...


class _Library(Protocol):
    """What is used of the package `re2`, which has no types of its own."""

    error: type[Exception]
    Options: type[_Options]

    def compile(self, pattern: str, options: _Options) -> _Compiled: ...


def found(frame: Frame, position: int | None, text: str, pattern: str) -> bool:
    """Tell whether a pattern (RE2's syntax) matches anywhere in a text.

    Raises:
        ExpressionError: The pattern is not well formed, or too large.
        LimitError: The text is too long for this pattern.
    """
    if len(pattern) > _MAX_PATTERN_LENGTH:
        raise ExpressionError(
            f"The pattern has {format_count(len(pattern), 'character')}; at most {_MAX_PATTERN_LENGTH:,} are allowed.",
            "",
            position,
        )
    if pattern not in frame.patterns:
        frame.charge(len(pattern) * _STEPS_PER_PATTERN_CHARACTER, position)
    library = _library()
    try:
        compiled = _compile(_encodable(pattern))
    except library.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        raise ExpressionError(
            f"The pattern cannot be used: {reason[:100]}.", "Correct the pattern.", position
        ) from None
    frame.patterns.add(pattern)
    frame.charge(1 + compiled.programsize * len(text) // _STATES_PER_STEP, position)
    return compiled.search(_encodable(text)) is not None


def _encodable(text: str) -> str:
    """Replace halves of surrogate pairs, which a model's text can hold and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _library() -> _Library:
    import re2  # pyright: ignore[reportMissingTypeStubs]

    module: ModuleType = re2
    return cast("_Library", module)


@functools.lru_cache(maxsize=64)
def _compile(pattern: str) -> _Compiled:
    library = _library()
    options = library.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    return library.compile(pattern, options)
