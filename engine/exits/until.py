"""The exit condition `until`: an expression about the iteration just ended is true. It is checked first."""

from __future__ import annotations

from engine.errors import EngineError
from engine.exits.base import EndedIteration
from engine.expr import Expression

UNTIL = "until"


class Until:
    """Stops when an expression is true."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    def reason(self, iteration: EndedIteration) -> str | None:
        """`until` when it is.

        Raises:
            EngineError: The expression fails, or gives something that is neither true nor false.
        """
        verdict = self._expression.evaluate(iteration.scope)
        if not isinstance(verdict, bool):
            raise EngineError(
                f"The loop's expression {self._expression.text!r} gave {verdict!r}, which is neither true nor false.",
                "Write a condition, such as size(output) < 500.",
            )
        return UNTIL if verdict else None
