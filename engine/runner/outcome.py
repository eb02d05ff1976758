"""What one pass through a loop's body came to: its result, its feedback, and what the controlling router decided."""

from __future__ import annotations

from dataclasses import dataclass

from engine.plan.execution_plan import LoopPlan
from engine.runner.scheduler import DEAD, GraphRun
from engine.values import Value


@dataclass(slots=True)
class Outcome:
    """What an iteration came to.

    Attributes:
        result: What reached the exit; in evaluator mode, where nothing did, the controlling router's value.
        has_result: Whether anything is such a result.
        feedback: What the next iteration starts from.
        branch: What the controlling router chose; None without one, or where it was skipped.
        reason: Why it chose that.
        warnings: What a person should know although it went on.
    """

    result: Value
    has_result: bool
    feedback: Value
    branch: str | None
    reason: str | None
    warnings: tuple[str, ...]


def outcome_of(run: GraphRun, plan: LoopPlan) -> Outcome:
    """Take up what a pass through the body came to."""
    verdict = _verdict(run, plan)
    reached = run.collect(plan.body.result)
    result: Value = None
    has_result = True
    if reached is not DEAD:
        result = reached  # pyright: ignore[reportAssignmentType] - a slot holds DEAD or a Value
    elif plan.config.asks_for("evaluator") and verdict is not None:
        result = verdict["value"]
    else:
        has_result = False
    warnings: list[str] = []
    feedback = _feedback(run, plan, verdict, result, warnings)
    branch, reason = _text_or_none(verdict, "selected_branch"), _text_or_none(verdict, "reason")
    return Outcome(result, has_result, feedback, branch, reason, tuple(warnings))


def _verdict(run: GraphRun, plan: LoopPlan) -> dict[str, Value] | None:
    """What the controlling router decided; None without one, or where it was skipped."""
    if plan.evaluator is None:
        return None
    outputs = run.given[plan.evaluator]
    if outputs is None:
        return None
    recorded = plan.body.nodes[plan.evaluator].spec.recorded(outputs)
    return recorded if isinstance(recorded, dict) else None


def _feedback(
    run: GraphRun, plan: LoopPlan, verdict: dict[str, Value] | None, result: Value, warnings: list[str]
) -> Value:
    """What reached the exit as feedback, else a branch's loose end, else the router's value, else the result."""
    reached = run.collect(plan.body.feedback)
    if reached is not DEAD:
        return reached  # pyright: ignore[reportReturnType] - a slot holds DEAD or a Value
    nodes = plan.body.nodes
    live = [position for position in plan.feedback_ends if run.given[position] is not None]
    if len(live) > 1:
        names = ", ".join(nodes[position].id for position in live)
        warnings.append(f"Several branches ended in nodes that lead nowhere ({names}); the first was fed back.")
    if live:
        outputs = run.given[live[0]]
        assert outputs is not None, "only nodes that gave something are live"
        return nodes[live[0]].spec.recorded(outputs)
    if plan.config.asks_for("evaluator") and verdict is not None:
        return verdict["value"]
    return result


def _text_or_none(verdict: dict[str, Value] | None, key: str) -> str | None:
    value = verdict.get(key) if verdict is not None else None
    return value if isinstance(value, str) else None
