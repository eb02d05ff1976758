"""The outcome of an iteration (result and feedback), and the input of the next iteration built from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.exits.condition import Need
from engine.nodes.loop import LoopConfig
from engine.nodes.spec import NodeError
from engine.plan.execution_plan import LoopPlan
from engine.runner.scheduler import DEAD, GraphRun
from engine.values import Value, to_text

SEPARATOR: Final = "\n---\n"


@dataclass(slots=True)
class Outcome:
    """The outcome of an iteration.

    Attributes:
        result: The value at the exit; without one, the value of the controlling router in a loop with an evaluator.
        has_result: Whether there is such a value.
        feedback: The feedback for the next iteration.
        branch: Branch that the controlling router chose, or None if there is none or it was skipped.
        reason: Its reason.
        warnings: Warnings about the outcome.
    """

    result: Value
    has_result: bool
    feedback: Value
    branch: str | None
    reason: str | None
    warnings: tuple[str, ...]


def outcome_of(run: GraphRun, plan: LoopPlan) -> Outcome:
    """Read the outcome of a pass through the body."""
    verdict = _verdict(run, plan)
    reached = run.collect(plan.body.result)
    result: Value = None
    has_result = True
    if reached is not DEAD:
        result = reached  # pyright: ignore[reportAssignmentType] - a slot holds DEAD or a Value
    elif Need.EVALUATOR in plan.config.needs and verdict is not None:
        result = verdict["value"]
    else:
        has_result = False
    warnings: list[str] = []
    feedback = _feedback(run, plan, verdict, result, warnings)
    branch, reason = _text_or_none(verdict, "selected_branch"), _text_or_none(verdict, "reason")
    return Outcome(result, has_result, feedback, branch, reason, tuple(warnings))


def next_input(config: LoopConfig, original: Value, current: Value, feedbacks: list[Value]) -> Value:
    """Build the input of the next iteration.

    Args:
        config: Settings of the loop.
        original: Input of the loop.
        current: Input of the iteration that has ended.
        feedbacks: The feedback of each iteration so far; at least one.

    Raises:
        NodeError: A value that is not text would have to be appended.
    """
    if config.feedback_mode == "replace":
        return feedbacks[-1]
    if config.feedback_mode == "append":
        return SEPARATOR.join((_text(current), _text(feedbacks[-1])))
    window = feedbacks[-config.append_window :]
    return SEPARATOR.join((_text(original), *map(_text, window)))


def _verdict(run: GraphRun, plan: LoopPlan) -> dict[str, Value] | None:
    """Return the decision of the controlling router, or None if there is none or it was skipped."""
    if plan.evaluator is None:
        return None
    outputs = run.outputs[plan.evaluator]
    if outputs is None:
        return None
    recorded = plan.body.nodes[plan.evaluator].spec.recorded(outputs)
    return recorded if isinstance(recorded, dict) else None


def _feedback(
    run: GraphRun, plan: LoopPlan, verdict: dict[str, Value] | None, result: Value, warnings: list[str]
) -> Value:
    """Return the value at the exit's feedback port, else that of a dead end, else the router's, else the result."""
    reached = run.collect(plan.body.feedback)
    if reached is not DEAD:
        return reached  # pyright: ignore[reportReturnType] - a slot holds DEAD or a Value
    nodes = plan.body.nodes
    live = [position for position in plan.feedback_ends if run.outputs[position] is not None]
    if len(live) > 1:
        names = ", ".join(nodes[position].id for position in live)
        warnings.append(f"Several branches ended in dead ends ({names}). The first one is the feedback.")
    if live:
        outputs = run.outputs[live[0]]
        assert outputs is not None, "live nodes have outputs"
        return nodes[live[0]].spec.recorded(outputs)
    if Need.EVALUATOR in plan.config.needs and verdict is not None:
        return verdict["value"]
    return result


def _text_or_none(verdict: dict[str, Value] | None, key: str) -> str | None:
    value = verdict.get(key) if verdict is not None else None
    return value if isinstance(value, str) else None


def _text(value: Value) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    kind = "a list" if isinstance(value, list) else "JSON"
    raise NodeError(
        f"Only text can be appended to the next input, and the feedback is {kind}: {to_text(value)[:60]}.",
        'Choose the feedback mode "replace", or convert it to text in a Transform.',
    )
