r"""Compiled expressions and templates, cached, with their limits.

A template is a text in which `{{ expression }}` is replaced by a value, once: `{{…}}` inside a value is left unchanged.
`\{{` is a literal `{{`. A placeholder with a plain dotted path is read directly, without the parser: this is the most
frequent work of the engine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.expr.scope import (
    MAX_EXPRESSION_LENGTH,
    MAX_EXPRESSION_PLACEHOLDERS,
    MAX_RESULT,
    MAX_TEMPLATE_BYTES,
    ExpressionError,
    Frame,
    LimitError,
    Scope,
    TemplateError,
    check_path,
    plain_path,
    read,
    written_size,
)
from engine.expr.syntax import placeholder_end
from engine.formatting import format_count
from engine.values import TooDeepError, Value, to_text

_CACHED_EXPRESSIONS = 512
_CACHED_TEMPLATES = 256
_OPEN = "{{"
_CLOSE = "}}"
_ESCAPED = r"\{{"


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. Any thread can evaluate it any number of times.

    Attributes:
        text: The source.
        paths: Every dotted path that an evaluation may read, up to its first part that only evaluation can tell:
            `loop.history[0].result` reads `("loop", "history")`. Variables of comprehensions are not included.
        elements: Paths that are read of list elements: `loop.history[0].nodes.a` and `loop.history.map(x, x.nodes.a)`
            read `("nodes", "a")` of an element of `("loop", "history")`.
    """

    text: str
    paths: frozenset[tuple[str, ...]]
    elements: frozenset[tuple[tuple[str, ...], tuple[str, ...]]] = field(repr=False)
    _run: Callable[[Frame], Value] = field(repr=False, compare=False)

    def evaluate(self, scope: Scope) -> Value:
        """Evaluate the expression. The value may share parts with the scope's values.

        Args:
            scope: The values of the names. Only the members of a namespace that the evaluation needs are fetched.

        Raises:
            ExpressionError: The evaluation fails; a failure never counts as false.
        """
        return self.evaluate_in(Frame(scope))

    def evaluate_in(self, frame: Frame) -> Value:
        """Evaluate the expression as a part of a larger evaluation with common limits.

        Raises:
            ExpressionError: The evaluation fails.
        """
        try:
            value = self._run(frame)
            size = written_size(value, MAX_RESULT)
        except (RecursionError, TooDeepError):
            raise LimitError("The values are nested too deeply for this expression.", "Use flatter ones.") from None
        except MemoryError:
            raise LimitError(
                "There is not enough memory for this expression.", "Use fewer or shorter values."
            ) from None
        if size > MAX_RESULT:
            raise LimitError(
                f"The result of the expression is larger than {format_count(MAX_RESULT, 'character')}.",
                "Return a smaller value.",
            )
        return value


@functools.lru_cache(maxsize=_CACHED_EXPRESSIONS)
def compile_expression(text: str) -> Expression:
    """Compile an expression without evaluating it.

    The language is the common expression language (https://github.com/google/cel-spec, langdef.md) for JSON values,
    with the differences that `engine.expr.functions` states. A plain dotted path does without the language's parser.

    Raises:
        ExpressionError: The expression is not well-formed, too long or too deep, or calls an unknown function.
    """
    path = plain_path(text) if len(text) <= MAX_EXPRESSION_LENGTH else None
    if path is not None:
        start = len(text) - len(text.lstrip())
        check_path(path, start)
        return Expression(text, frozenset({path}), frozenset(), lambda frame: read(path, frame.scope, start))
    from engine.expr.compiler import Compiler
    from engine.expr.syntax import parse

    try:
        tree, scanned = parse(text)
        compiler = Compiler(scanned.literals)
        run = compiler.compile(tree)
    except RecursionError:
        raise LimitError("The expression is nested too deeply.", "Make it simpler.") from None
    return Expression(text, frozenset(compiler.paths), frozenset(compiler.elements), run)


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """A `{{ … }}` and the literal text after it.

    Attributes:
        content: A plain path, or an expression.
        position: Index of the content in the template.
        literal: The text up to the next placeholder.
        name: The content if it is a bare name; else empty.
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
            assert frame is not None, "only templates with plain paths alone need no frame"
            return content.evaluate_in(frame)
        except ExpressionError as error:
            raise _template_error(error, self.position) from error


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template. Any thread can render it any number of times.

    Attributes:
        text: The source.
        paths: See `Expression.paths`.
        elements: See `Expression.elements`.
        is_plain: Whether all placeholders are plain paths.
    """

    text: str
    paths: frozenset[tuple[str, ...]]
    elements: frozenset[tuple[tuple[str, ...], tuple[str, ...]]]
    is_plain: bool
    _start: str = field(repr=False, compare=False)
    _placeholders: tuple[_Placeholder, ...] = field(repr=False, compare=False)

    @property
    def parts(self) -> tuple[str | tuple[str, ...] | Expression, ...]:
        """Its literal texts, and between them the contents of its placeholders: plain paths and expressions."""
        pairs = ((placeholder.content, placeholder.literal) for placeholder in self._placeholders)
        return (self._start, *(part for pair in pairs for part in pair))

    def render(self, scope: Scope) -> str:
        """Fill in the values: null as nothing, a text unchanged, anything else as compact JSON.

        Raises:
            TemplateError: A placeholder has no value, or the text is longer than `MAX_TEMPLATE_BYTES`.
        """
        pieces = [self._start]
        room = MAX_TEMPLATE_BYTES - len(self._start)
        frame = None if self.is_plain else Frame(scope)
        for placeholder in self._placeholders:
            value = scope.get(placeholder.name) if placeholder.name else None
            if not isinstance(value, str):  # most placeholders are names of texts
                value = placeholder.value(scope, frame)
            text = value if isinstance(value, str) else _written(value, room, placeholder.position)
            room -= len(text) + len(placeholder.literal)
            if room < 0:
                raise _too_long()
            pieces.append(text)
            pieces.append(placeholder.literal)
        outcome = "".join(pieces)
        # A character takes one to four bytes, so encoding is rarely necessary.
        if len(outcome) * 4 > MAX_TEMPLATE_BYTES and len(outcome.encode("utf-8", "surrogatepass")) > MAX_TEMPLATE_BYTES:
            raise _too_long()
        return outcome


@functools.lru_cache(maxsize=_CACHED_TEMPLATES)
def compile_template(text: str) -> Template:
    """Compile a template without rendering it.

    Raises:
        TemplateError: A placeholder is not closed, or its expression is invalid.
    """
    first, position = _literal(text, 0)
    placeholders: list[_Placeholder] = []
    paths: set[tuple[str, ...]] = set()
    elements: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    expressions = 0
    while position < len(text):
        start = position + len(_OPEN)
        end = _placeholder_end(text, start)
        content, expression = _content(text[start:end], start)
        paths.update(expression.paths)
        elements.update(expression.elements)
        expressions += isinstance(content, Expression)
        if expressions > MAX_EXPRESSION_PLACEHOLDERS:
            raise TemplateError(
                f"The template has more than {MAX_EXPRESSION_PLACEHOLDERS} placeholders with an expression.",
                "Split it between several nodes.",
                position,
            )
        literal, position = _literal(text, end + len(_CLOSE))
        placeholders.append(
            _Placeholder(
                content, start, literal, content[0] if isinstance(content, tuple) and len(content) == 1 else ""
            )
        )
    return Template(text, frozenset(paths), frozenset(elements), not expressions, first, tuple(placeholders))


def escape_template(text: str) -> str:
    r"""Escape a text so that a template renders it unchanged: `{{` becomes `\{{`."""
    return text.replace(_OPEN, _ESCAPED)


def _literal(text: str, start: int) -> tuple[str, int]:
    """Read literal text up to the next placeholder or the end, and return it unescaped with its end."""
    pieces: list[str] = []
    while (found := text.find(_OPEN, start)) >= 0:
        if found == start or text[found - 1] != "\\":
            return "".join([*pieces, text[start:found]]), found
        pieces.extend((text[start : found - 1], _OPEN))
        start = found + len(_OPEN)
    return "".join([*pieces, text[start:]]), len(text)


def _placeholder_end(text: str, start: int) -> int:
    try:
        end = placeholder_end(text, start)
    except ExpressionError as error:
        raise _template_error(error, 0) from error
    if end is None:
        raise TemplateError(
            "The {{ that starts here is not closed.",
            r"Close it with }}, or write \{{ for a literal {{.",
            start - len(_OPEN),
        )
    return end


def _content(text: str, position: int) -> tuple[tuple[str, ...] | Expression, Expression]:
    """Compile the content of a placeholder: to a plain path if it is one, and to an expression in any case."""
    if not text.strip():
        raise TemplateError("The {{ }} here is empty.", r"Name a value in it, or write \{{ for a literal {{.", position)
    try:
        expression = compile_expression(text)
    except ExpressionError as error:
        raise _template_error(error, position) from error
    return plain_path(text) or expression, expression


def _written(value: Value, room: int, position: int) -> str:
    try:
        if type(value) is int:
            return str(value)  # the most frequent values after texts
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
        f"The filled-in template is longer than {format_count(MAX_TEMPLATE_BYTES, 'byte')}.",
        "Put shorter values into it.",
    )


def _template_error(error: ExpressionError, start: int) -> TemplateError:
    """Convert an error of an expression to one of the template."""
    return TemplateError(error.detail, error.remedy, start + (error.position or 0))
