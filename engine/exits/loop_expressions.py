"""Evaluate the expressions of loops and iterators, with errors that name the expression."""

from __future__ import annotations

from engine.errors import EngineError
from engine.expr import Expression, ExpressionError, Scope
from engine.text_sanitizing import quoted
from engine.values import Value


class LoopExpressionError(EngineError):
    """An expression of a loop or an iterator that failed or returned a value of the wrong type."""


def evaluate(field: str, expression: Expression, scope: Scope) -> Value:
    """Return the value of an expression; `field` names the setting that holds it.

    Raises:
        LoopExpressionError: The expression fails.
    """
    try:
        return expression.evaluate(scope)
    except ExpressionError as error:
        raise LoopExpressionError(
            f'The expression in "{field}" ({expression.text}) failed: {error.message}', error.remedy
        ) from error


def is_true(field: str, expression: Expression, scope: Scope) -> bool:
    """Return whether a boolean expression is true.

    Raises:
        LoopExpressionError: The expression fails, or returns something else than true or false.
    """
    value = evaluate(field, expression, scope)
    if isinstance(value, bool):
        return value
    raise LoopExpressionError(
        f'The expression in "{field}" ({expression.text}) returned {quoted(value)}, not true or false.',
        "Write a comparison, such as size(output) < 500.",
    )


def score_of(expression: Expression, scope: Scope) -> float:
    """Return the score that an expression gives an iteration.

    Raises:
        LoopExpressionError: The expression fails, or does not return a number of ordinary size.
    """
    score = evaluate("score", expression, scope)
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        raise LoopExpressionError(
            f'The expression in "score" ({expression.text}) returned {quoted(score)}, not a number.',
            "Write an expression that returns a number.",
        )
    try:
        return float(score)
    except OverflowError as error:
        raise LoopExpressionError(
            f'The expression in "score" ({expression.text}) returned a number that is too large.',
            "Write an expression that returns an ordinary number.",
        ) from error
