"""The exit condition `evaluator`: the router that controls the loop chose `done`."""

from __future__ import annotations

from engine.exits.base import EndedIteration, ExitCondition
from engine.nodes.router import DONE

EVALUATOR_DONE = "evaluator_done"


class Evaluator(ExitCondition):
    """Stops when the controlling router chose `done`."""

    def reason(self, iteration: EndedIteration) -> str | None:
        """`evaluator_done` when it did."""
        return EVALUATOR_DONE if iteration.branch == DONE else None
