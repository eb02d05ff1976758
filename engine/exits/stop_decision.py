"""Where a loop decides to stop: its exit conditions, asked in order after each iteration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from engine.exits.all_of import AllOf
from engine.exits.condition import EndedIteration, ExitCondition, Need
from engine.exits.max_iterations import MaxIterations
from engine.exits.registry import Condition, limit_reasons
from engine.values import Value

ALL: Final = "all"


class StopDecision:
    """The decision of one run of a loop. It holds state; each run creates its own.

    Args:
        conditions: The conditions that the loop lists.
        mode: `any`: the first one that holds stops the loop. `all`: all of them must hold after the same iteration.
        max_iterations: The number of iterations that caps all conditions.
    """

    def __init__(self, conditions: Sequence[Condition], mode: str, max_iterations: int) -> None:
        made = [condition.make() for condition in conditions]
        leaves = zip(conditions, made, strict=True)
        self._recording: list[tuple[str, ExitCondition]] = [
            pair for condition, decision in leaves for pair in _recording(condition, decision)
        ]
        self._cap = MaxIterations(max_iterations)
        self._asked: list[ExitCondition] = [AllOf(made)] if mode == ALL and made else made
        leading = itertools.takewhile(lambda pair: pair[0].spec.precedes_judge, zip(conditions, made, strict=True))
        self._before_judge = [] if mode == ALL else [decision for _, decision in leading]
        self.needs_scope = any(Need.SCOPE in condition.needs for condition in conditions)

    def reason_before_judge(self, iteration: EndedIteration) -> str | None:
        """Return the exit reason of a condition that is decided before the judge is asked; None where none holds."""
        return next(filter(None, (condition.reason(iteration) for condition in self._before_judge)), None)

    def observe(self, iteration: EndedIteration) -> None:
        """Update the state of all conditions."""
        for condition in self._asked:
            condition.observe(iteration)

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return the exit reason if the loop stops after this iteration, else None.

        Raises:
            EngineError: A condition cannot be decided; the loop ends as `error`.
        """
        for condition in self._asked:
            if reason := condition.reason(iteration):
                return reason
        return self._cap.reason(iteration)

    def tested(self, iteration: EndedIteration) -> dict[str, Value]:
        """Return the values that the conditions record, by condition."""
        tested: dict[str, Value] = {}
        for name, condition in self._recording:
            value = condition.tested(iteration)
            if value is not None:
                tested[name] = value
        return tested


def _recording(condition: Condition, decision: ExitCondition) -> list[tuple[str, ExitCondition]]:
    """The decisions that record values, by the names of their conditions."""
    if not isinstance(decision, AllOf):
        return [(condition.spec.name, decision)]
    pairs = zip(condition.inner, decision.conditions, strict=True)
    return [pair for inner, made in pairs for pair in _recording(inner, made)]


def has_converged(exit_reason: str) -> bool:
    """Return whether a condition that is no limit ended the loop; several reasons are joined with `+`."""
    return not limit_reasons().issuperset(exit_reason.split("+"))
