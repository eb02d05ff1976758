"""Asking an expression of a loop, so that what goes wrong says which expression it was."""

from __future__ import annotations

from engine.expr import Expression, ExpressionError, Scope
from engine.nodes.spec import NodeError
from engine.text_sanitizing import quoted
from engine.values import Value


def evaluate(field: str, expression: Expression, scope: Scope) -> Value:
    """The value of a loop's expression; `field` is the setting that it stands in.

    Raises:
        NodeError: The expression fails.
    """
    try:
        return expression.evaluate(scope)
    except ExpressionError as error:
        raise NodeError(
            f'The expression in "{field}" ({expression.text}) cannot be worked out: {error.message}', error.remedy
        ) from error


def is_true(field: str, expression: Expression, scope: Scope) -> bool:
    """Whether a loop's condition holds.

    Raises:
        NodeError: The expression fails, or gives something that is neither true nor false.
    """
    verdict = evaluate(field, expression, scope)
    if isinstance(verdict, bool):
        return verdict
    raise NodeError(
        f'The expression in "{field}" ({expression.text}) gave {quoted(verdict)}, which is neither true nor false.',
        "Write a condition, such as size(output) < 500.",
    )


def score_of(expression: Expression, scope: Scope) -> float:
    """The score that a loop's expression gives an iteration.

    Raises:
        NodeError: The expression fails, or gives something that is no number or is too large for one.
    """
    score = evaluate("score", expression, scope)
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        raise NodeError(
            f'The expression in "score" ({expression.text}) gave {quoted(score)}, which is no number.',
            "Write an expression that gives a number.",
        )
    try:
        return float(score)
    except OverflowError as error:
        raise NodeError(
            f'The expression in "score" ({expression.text}) gave a number that is too large.',
            "Write an expression that gives an ordinary number.",
        ) from error
