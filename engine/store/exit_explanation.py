"""Explain why a loop stopped, and what its conditions looked at after each iteration.

Each condition explains itself from the loop's settings and its recorded iterations; nothing is evaluated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from engine.document.model import Workflow
from engine.events import LoopIterationCompleted
from engine.exits.condition import Evidence, quote_expression
from engine.exits.loop_conditions import format_exit_reason
from engine.exits.max_iterations import MAX_ITERATIONS
from engine.formatting import format_duration, format_score
from engine.nodes.loop import LoopConfig
from engine.nodes.spec import ITERATOR
from engine.plan.structure import node_at
from engine.values import Value


def loop_config(workflow: Workflow, path: str, total: int | None = None) -> LoopConfig:
    """Return the settings of the loop at a path of a run (`outer[1].inner`); the defaults if they are invalid.

    For an iterator, the settings that both types have; it has no maximum, so `max_iterations` is 0.

    Args:
        workflow: The document as it ran.
        path: The loop.
        total: The maximum that applied in the run, clamped to its cap; None if no iteration started.
    """
    node = node_at(workflow, path)
    given = node.config if node is not None else {}
    if node is not None and node.type == ITERATOR.start:
        given = {**given, "max_iterations": 0}
    elif total:
        given = {**given, "max_iterations": total}
    try:
        return LoopConfig.model_validate(given)
    except ValidationError:
        return LoopConfig()


def explain_exit(
    config: LoopConfig,
    iterations: Sequence[LoopIterationCompleted],
    exit_reason: str,
    total: int | None,
    *,
    error: str = "",
    similarity: float | None = None,
    given: Mapping[str, Value] | None = None,
) -> str:
    """Explain in one sentence why a loop stopped.

    `Stopped after 4 of 10: the result is 96.2% the same as the previous one (threshold 95%).`

    Args:
        config: The loop's settings.
        iterations: Its completed iterations, in order.
        exit_reason: Its exit reason.
        total: Its maximum number of iterations; None if no iteration started.
        error: The error, if one ended the loop.
        similarity: Similarity of the last result to the one before, if it was computed later.
        given: Outputs of the body's nodes in the last iteration by id, if known.
    """
    evidence = Evidence(iterations, similarity, given or {}, config.delay_s)
    if exit_reason == "error" and error:
        reason = f"{format_exit_reason(exit_reason)}: {error}"
    else:
        reason = " and ".join(_reason(config, evidence, part) for part in exit_reason.split("+"))
    end = "" if reason.endswith((".", "!", "?", "…")) else "."
    if total is None and not iterations:
        return f"Ran no iteration: {reason}{end}"
    return f"Stopped after {len(iterations)} of {len(iterations) if total is None else total}: {reason}{end}"


def describe_conditions(
    config: LoopConfig,
    iterations: Sequence[LoopIterationCompleted],
    index: int,
    *,
    similarity: float | None = None,
    given: Mapping[str, Value] | None = None,
) -> tuple[str, ...]:
    """Describe what was tested after an iteration, in order: `similarity 91% < 95%`, `iteration 2 of at most 5`.

    Args:
        config: The loop's settings.
        iterations: Its completed iterations, in order.
        index: The iteration, from 0.
        similarity: Similarity of its result to the one before, if it was computed later.
        given: Outputs of the body's nodes in it by id, if known.
    """
    evidence = Evidence(iterations[: index + 1], similarity, given or {}, config.delay_s)
    score = evidence.last.score
    tested = [leaf.explain(evidence) for leaf in config.leaf_conditions]
    if score is not None:
        tested.append(f"score {format_score(score)}")
    if config.max_iterations > 0:
        tested.append(f"iteration {index + 1} of at most {config.max_iterations}")
    return tuple(tested)


def _reason(config: LoopConfig, evidence: Evidence, exit_reason: str) -> str:
    if evidence.iterations:
        for leaf in config.leaf_conditions:
            is_its_own = not leaf.spec.is_shared_reason or leaf.spec.name in evidence.last.tested
            if leaf.spec.reason == exit_reason and is_its_own:
                return leaf.explain_stop(evidence)
        if exit_reason == MAX_ITERATIONS:
            is_any = config.stop_mode == "any"
            others = (
                leaf.explain_unmet(evidence) if is_any and not condition.inner else leaf.explain(evidence)
                for condition in config.conditions
                for leaf in condition.leaves
            )
            return "; ".join([format_exit_reason(exit_reason), *others])
    if exit_reason == "condition":
        return f"the condition {quote_expression(config.condition)} was not met"
    if exit_reason == "timeout" and config.timeout_s is not None:
        return f"time limit of {format_duration(config.timeout_s)} reached"
    return format_exit_reason(exit_reason)
