r"""Finds the `{{ placeholders }}` of a template, also in unfinished text.

`engine.expr` compiles and evaluates them. This module only locates them, because text that is being typed often does
not compile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from engine.expr import ExpressionError, TemplateError, compile_template
from engine.expr.syntax import hole_end

_OPEN: Final = "{{"
_CLOSE: Final = "}}"
_PATH: Final = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_UNFINISHED: Final = re.compile(r"[A-Za-z_](?:\w|\.|\[[0-9]*(?:\]|$))*$|$")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder: `text[start:end]` including the braces, `content` between them; if unclosed, up to the end."""

    start: int
    end: int
    content: str
    closed: bool


def find_placeholders(text: str) -> list[Placeholder]:
    """Return the placeholders of a template, in order."""
    found: list[Placeholder] = []
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        inside = start + len(_OPEN)
        if start > 0 and text[start - 1] == "\\":
            position = inside
            continue
        end = _end(text, inside)
        position = len(text) if end is None else end + len(_CLOSE)
        found.append(Placeholder(start, position, text[inside:end], closed=end is not None))
    return found


def _end(text: str, start: int) -> int | None:
    try:
        return hole_end(text, start)
    except ExpressionError:  # an unclosed quotation mark
        end = text.find(_CLOSE, start)
        return None if end < 0 else end


def expression_paths(content: str) -> frozenset[tuple[str, ...]] | None:
    """Return the dotted paths that an expression reads, or None if it does not compile."""
    try:
        return compile_template(f"{_OPEN}{content}{_CLOSE}").paths
    except (ExpressionError, TemplateError):
        return None


def path_spans(content: str, paths: frozenset[tuple[str, ...]]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Locate paths in an expression: start, end and path."""
    spans: list[tuple[int, int, tuple[str, ...]]] = []
    for match in _PATH.finditer(content):
        names = tuple(match[0].split("."))
        path = next((names[:length] for length in range(len(names), 0, -1) if names[:length] in paths), None)
        if path is not None:
            spans.append((match.start(), match.end(), path))
    return spans


def name_prefix(text: str) -> str:
    """Return the dotted name, possibly unfinished, at the end of a text."""
    match = _UNFINISHED.search(text)
    return match[0] if match else ""
