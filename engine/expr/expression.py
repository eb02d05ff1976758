"""Compiled expressions: the public face over syntax, compiler and limits, and the guard that nothing gets past."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.expr.scope import (
    MAX_EXPRESSION_LENGTH,
    MAX_RESULT,
    Frame,
    LimitError,
    Scope,
    check_path,
    plain_path,
    read,
    written_size,
)
from engine.values import TooDeepError, Value

_CACHED = 512


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that can be evaluated any number of times, from any thread.

    Attributes:
        text: What the person wrote.
        paths: Every dotted path that an evaluation may read, each as far as it is known without evaluating:
            `loop.history[0].result` reads `("loop", "history")`. Variables of comprehensions are none.
        elements: What is read of elements of lists: `loop.history[0].nodes.a` and `loop.history.map(x, x.nodes.a)` read
            `("nodes", "a")` of an element of `("loop", "history")`.
    """

    text: str
    paths: frozenset[tuple[str, ...]]
    elements: frozenset[tuple[tuple[str, ...], tuple[str, ...]]] = field(repr=False)
    _run: Callable[[Frame], Value] = field(repr=False, compare=False)

    @property
    def names(self) -> frozenset[str]:
        """The bare names and namespaces that an evaluation may read."""
        return frozenset(path[0] for path in self.paths)

    def evaluate(self, scope: Scope) -> Value:
        """Work out the value. It may share parts with the scope's values.

        Args:
            scope: What the names stand for. Of a namespace only those members are fetched that the evaluation meets.

        Raises:
            ExpressionError: There is no value, for whatever reason; a failure is never a false.
        """
        return self.evaluate_in(Frame(scope))

    def evaluate_in(self, frame: Frame) -> Value:
        """Work out the value as a part of a larger evaluation, which the limits hold for as a whole.

        Raises:
            ExpressionError: There is no value.
        """
        try:
            value = self._run(frame)
            size = written_size(value, MAX_RESULT)
        except (RecursionError, TooDeepError):
            raise LimitError("The values are nested too deeply for this expression.", "Use flatter ones.") from None
        except MemoryError:
            raise LimitError("There is not enough memory for this expression.", "Let it look at less.") from None
        if size > MAX_RESULT:
            raise LimitError(
                f"The result of the expression is larger than {MAX_RESULT:,} characters.", "Let it give less."
            )
        return value


@functools.lru_cache(maxsize=_CACHED)
def compile_expression(text: str) -> Expression:
    """Compile an expression; nothing is evaluated.

    The language is the common expression language (https://github.com/google/cel-spec, langdef.md) for JSON values,
    with the differences that `engine.expr.functions` states. A plain dotted path does without the language's parser.

    Raises:
        ExpressionError: The expression is not well formed, too long, too deep, or uses what does not exist.
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
