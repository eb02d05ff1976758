"""Several exit conditions as one: all of them have to hold after the same iteration."""

from __future__ import annotations

from collections.abc import Sequence

from engine.exits.base import EndedIteration, ExitCondition


class Every(ExitCondition):
    """Stops when each of the conditions would; the reason names all of theirs."""

    name = "every"

    def __init__(self, conditions: Sequence[ExitCondition]) -> None:
        self.conditions = tuple(conditions)

    def observe(self, iteration: EndedIteration) -> None:
        """Let each observe it."""
        for condition in self.conditions:
            condition.observe(iteration)

    def reason(self, iteration: EndedIteration) -> str | None:
        """All reasons, joined with `+`; None where one of them has none."""
        reasons: list[str] = []
        for condition in self.conditions:
            reason = condition.reason(iteration)
            if reason is None:
                return None
            reasons.append(reason)
        return "+".join(dict.fromkeys(reasons))
