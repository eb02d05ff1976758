"""The exit condition `all_of`: several conditions that must hold after the same iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from engine.document.problems import FieldProblem
from engine.exits.condition import ConditionConfig, ConditionSpec, EndedIteration, ExitCondition


class AllOfConfig(ConditionConfig):
    """Settings of the condition `all_of`."""

    conditions: list[dict[str, Any]] = Field(
        default_factory=list[dict[str, Any]],
        max_length=12,
        title="Conditions",
        description="The conditions that must all hold after the same iteration.",
        json_schema_extra={"widget": "conditions"},
    )


class AllOf(ExitCondition):
    """Stops when each of its conditions would; the exit reason joins theirs with `+`."""

    def __init__(self, conditions: Sequence[ExitCondition]) -> None:
        self.conditions = tuple(conditions)

    def observe(self, iteration: EndedIteration) -> None:
        """Pass the iteration to each condition."""
        for condition in self.conditions:
            condition.observe(iteration)

    def reason(self, iteration: EndedIteration) -> str | None:
        """Return all reasons joined with `+`; None if one of the conditions does not hold."""
        reasons: list[str] = []
        for condition in self.conditions:
            reason = condition.reason(iteration)
            if reason is None:
                return None
            reasons.append(reason)
        return "+".join(dict.fromkeys(reasons)) or None


def _check(config: AllOfConfig) -> Iterator[FieldProblem]:
    if not config.conditions:
        yield FieldProblem("no-conditions", "conditions", "The list of conditions is empty.", "Add a condition.")


SPEC = ConditionSpec(
    name="all_of",
    label="When several conditions are met",
    help="Stops when several conditions hold after the same iteration.",
    config=AllOfConfig,
    make=lambda _config: AllOf(()),
    explain=lambda _config, _evidence: "all of several conditions",
    exit_reason_label="all conditions were met",
    check=_check,
    inner="conditions",
    combine=AllOf,
)
