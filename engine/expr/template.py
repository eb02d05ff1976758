r"""Texts with holes: `{{ expression }}` is replaced by a value, once.

What was put in is never looked at again, so a value that holds `{{…}}` stays as it is. `\{{` is a literal `{{`. A hole
with a plain dotted path is looked up directly; this is the engine's most frequent work, so a compiled template is no
more than its literal pieces and its holes in a row.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from engine.expr.expression import Expression, compile_expression
from engine.expr.scope import (
    MAX_EXPRESSION_HOLES,
    MAX_TEMPLATE_BYTES,
    ExpressionError,
    Frame,
    Scope,
    TemplateError,
    plain_path,
    read,
    written_size,
)
from engine.expr.syntax import hole_end
from engine.values import TooDeepError, Value, to_text

_CACHED = 256
_OPEN = "{{"
_CLOSE = "}}"
_ESCAPED = r"\{{"


@dataclass(frozen=True, slots=True)
class _Hole:
    """One `{{ … }}` and the literal text after it.

    Attributes:
        content: What the hole holds: a plain path, or an expression.
        position: Where its text starts in the template.
        literal: The text up to the next hole.
        name: The bare name that it is; empty for anything else.
    """

    content: tuple[str, ...] | Expression
    position: int
    literal: str
    name: str

    def value(self, scope: Scope, frame: Frame | None) -> Value:
        content = self.content
        try:
            if isinstance(content, tuple):
                return read(content, scope, 0)
            assert frame is not None, "only templates of plain paths do without one"
            return content.evaluate_in(frame)
        except ExpressionError as error:
            raise _placed(error, self.position) from error


@dataclass(frozen=True, slots=True)
class Template:
    """A template that can be rendered any number of times, from any thread.

    Attributes:
        text: What the person wrote.
        paths: Every dotted path that a rendering may read; see `Expression.paths`.
        elements: What a rendering may read of elements of lists; see `Expression.elements`.
        is_plain: Every hole is a plain path, so that rendering needs no expression language.
    """

    text: str
    paths: frozenset[tuple[str, ...]]
    elements: frozenset[tuple[tuple[str, ...], tuple[str, ...]]]
    is_plain: bool
    _start: str = field(repr=False, compare=False)
    _holes: tuple[_Hole, ...] = field(repr=False, compare=False)

    @property
    def names(self) -> frozenset[str]:
        """The bare names and namespaces that a rendering may read."""
        return frozenset(path[0] for path in self.paths)

    @property
    def parts(self) -> tuple[str | tuple[str, ...] | Expression, ...]:
        """Its literal texts, and between them what its holes hold: a plain path, or an expression."""
        pairs = ((hole.content, hole.literal) for hole in self._holes)
        return (self._start, *(part for pair in pairs for part in pair))

    def render(self, scope: Scope) -> str:
        """Put the values into the holes: null as nothing, a text as it is, anything else as compact JSON.

        Raises:
            TemplateError: A hole has no value, or the outcome is longer than `MAX_TEMPLATE_BYTES`.
        """
        pieces = [self._start]
        room = MAX_TEMPLATE_BYTES - len(self._start)
        frame = None if self.is_plain else Frame(scope)
        for hole in self._holes:
            value = scope.get(hole.name) if hole.name else None
            if not isinstance(value, str):  # most holes are the name of a text, and need no further look
                value = hole.value(scope, frame)
            text = value if isinstance(value, str) else _written(value, room, hole.position)
            room -= len(text) + len(hole.literal)
            if room < 0:
                raise _too_long()
            pieces.append(text)
            pieces.append(hole.literal)
        outcome = "".join(pieces)
        # A character takes one to four bytes, so that most often nothing needs to be encoded.
        if len(outcome) * 4 > MAX_TEMPLATE_BYTES and len(outcome.encode("utf-8", "surrogatepass")) > MAX_TEMPLATE_BYTES:
            raise _too_long()
        return outcome


@functools.lru_cache(maxsize=_CACHED)
def compile_template(text: str) -> Template:
    """Compile a template; nothing is evaluated.

    Raises:
        TemplateError: A hole is not closed, or its expression is refused; the position is one of the template.
    """
    first, position = _literal(text, 0)
    holes: list[_Hole] = []
    paths: set[tuple[str, ...]] = set()
    elements: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    expressions = 0
    while position < len(text):
        start = position + len(_OPEN)
        end = _hole_end(text, start)
        content, expression = _content(text[start:end], start)
        paths.update(expression.paths)
        elements.update(expression.elements)
        expressions += isinstance(content, Expression)
        if expressions > MAX_EXPRESSION_HOLES:
            raise TemplateError(
                f"The template has more than {MAX_EXPRESSION_HOLES} holes with an expression.",
                "Divide it between several nodes.",
                position,
            )
        literal, position = _literal(text, end + len(_CLOSE))
        holes.append(
            _Hole(content, start, literal, content[0] if isinstance(content, tuple) and len(content) == 1 else "")
        )
    return Template(text, frozenset(paths), frozenset(elements), not expressions, first, tuple(holes))


def escape_template(text: str) -> str:
    r"""Write a text so that a template gives it back unchanged: `{{` becomes `\{{`."""
    return text.replace(_OPEN, _ESCAPED)


def _literal(text: str, start: int) -> tuple[str, int]:
    """Read literal text, unescaped, up to the next hole or the end; give it and where it ends."""
    pieces: list[str] = []
    while (found := text.find(_OPEN, start)) >= 0:
        if found == start or text[found - 1] != "\\":
            return "".join([*pieces, text[start:found]]), found
        pieces.extend((text[start : found - 1], _OPEN))
        start = found + len(_OPEN)
    return "".join([*pieces, text[start:]]), len(text)


def _hole_end(text: str, start: int) -> int:
    try:
        end = hole_end(text, start)
    except ExpressionError as error:
        raise _placed(error, 0) from error
    if end is None:
        raise TemplateError(
            "The {{ that starts here is not closed.",
            r"Close it with }}, or write \{{ for a literal {{.",
            start - len(_OPEN),
        )
    return end


def _content(text: str, position: int) -> tuple[tuple[str, ...] | Expression, Expression]:
    """Compile what a hole holds, a plain path where it is one, and as an expression in any case."""
    if not text.strip():
        raise TemplateError("The {{ }} here is empty.", r"Name a value in it, or write \{{ for a literal {{.", position)
    try:
        expression = compile_expression(text)
    except ExpressionError as error:
        raise _placed(error, position) from error
    return plain_path(text) or expression, expression


def _written(value: Value, room: int, position: int) -> str:
    try:
        if type(value) is int:
            return str(value)  # Counts are what templates hold most after texts.
        if isinstance(value, (list, dict)) and written_size(value, room) > room:
            raise _too_long()
        return to_text(value)
    except (RecursionError, TooDeepError):
        raise TemplateError(
            "The value here is nested too deeply to be written.", "Use a flatter one.", position
        ) from None
    except ValueError:
        raise TemplateError("The number here cannot be written.", "", position) from None


def _too_long() -> TemplateError:
    return TemplateError(
        f"The filled-in template is longer than {MAX_TEMPLATE_BYTES:,} bytes.", "Put shorter values into it."
    )


def _placed(error: ExpressionError, start: int) -> TemplateError:
    """Say of an expression's error where in the template it is."""
    return TemplateError(error.detail, error.remedy, start + (error.position or 0))
