"""The exit condition `evaluator`: the router that controls the loop chose `done`."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition
from engine.nodes.router import DONE
from engine.values import Value

EVALUATOR_DONE = "evaluator_done"


class Evaluator(ExitCondition):
    """Stops when the controlling router chose `done`."""

    name = "evaluator"

    def reason(self, iteration: EndedIteration) -> str | None:
        """`evaluator_done` when it did."""
        return EVALUATOR_DONE if iteration.branch == DONE else None

    def tested(self, iteration: EndedIteration) -> Value:
        """The branch that it chose."""
        return iteration.branch
