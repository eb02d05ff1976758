"""The exit condition `until`: an expression about the iteration just ended is true. It is checked first."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition
from engine.exits.verdict import is_true
from engine.expr import Expression

UNTIL = "until"


class Until(ExitCondition):
    """Stops when an expression is true."""

    name = UNTIL

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def reason(self, iteration: EndedIteration) -> str | None:
        """`until` when it is.

        Raises:
            NodeError: The expression fails, or gives something that is neither true nor false.
        """
        return UNTIL if is_true("until", self._expression, iteration.scope) else None
