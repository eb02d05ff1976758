"""Texts on loops: progress, exit reason and verdicts, the same in panels, inspector and log.

No Qt here.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.runs.run_view_model import NO_NODE, RunViewModel
from engine.document.model import Workflow, make_id
from engine.events import LoopIterationCompleted
from engine.formatting import format_count, format_score
from engine.nodes.judge import JUDGE
from engine.nodes.loop import LoopConfig
from engine.nodes.node_registry import Registry
from engine.nodes.spec import ITERATOR
from engine.plan.structure import node_at
from engine.run_state.state import LoopExecution, NodeExecution
from engine.store.exit_explanation import describe_conditions, explain_exit, loop_config
from engine.values import Value


def unit_of(workflow: Workflow, path: str) -> str:
    """The word for one pass through a body: `item` for an iterator, `iteration` for a loop."""
    node = node_at(workflow, path)
    return "item" if node is not None and node.type == ITERATOR.start else "iteration"


def sentence(
    loop: LoopExecution,
    config: LoopConfig,
    *,
    unit: str = "iteration",
    error: str = "",
    similarity: float | None = None,
    given: Mapping[str, Value] | None = None,
) -> str:
    """Explain why a loop ended, or state its progress.

    Args:
        loop: The run of the loop.
        config: Its settings.
        unit: What to call one pass through its body.
        error: What failed, where an error ended it.
        similarity: Of its last two results, from 0 to 1; None where it is not known.
        given: What the nodes of its body gave in its last iteration, by id.
    """
    if not loop.exit_reason:
        return _standing(loop, unit)
    total, last = loop.cap, len(loop.iterations) - 1
    words = explain_exit(
        config, loop.iterations, loop.exit_reason, total, error=error, similarity=similarity, given=given
    )
    is_other = loop.returned is not None and loop.returned != last
    return f"{words} It gave the result of iteration {(loop.returned or 0) + 1}." if is_other else words


def loop_explanation(
    workflow: Workflow,
    view_model: RunViewModel,
    registry: Registry,
    chosen: Mapping[str, int],
    loop_id: str,
    similarity: float | None = None,
) -> str:
    """Explain why the displayed run of a loop ended, or state its progress.

    Args:
        workflow: The document as it ran.
        view_model: The run.
        registry: The node types.
        chosen: The iterations that are looked at, by loop id.
        loop_id: The loop.
        similarity: Of its last two results, from 0 to 1; None where it is not known.
    """
    loop, path, config = (
        view_model.loop(loop_id, chosen),
        view_model.path_of(loop_id, chosen),
        loop_config(workflow, loop_id),
    )
    given: dict[str, Value] = {}
    if loop.exit_reason and config.names_nodes:
        given = body_outputs(workflow, view_model, registry, loop_id, f"{path}[{len(loop.iterations) - 1}]")
    error, unit = view_model.node(loop_id, chosen).error, unit_of(workflow, loop_id)
    return sentence(loop, config, unit=unit, error=error, similarity=similarity, given=given)


def body_outputs(
    workflow: Workflow, view_model: RunViewModel, registry: Registry, loop_id: str, place: str
) -> dict[str, Value]:
    """The outputs of a loop's body nodes in one iteration (`loop[2]`), by id, as expressions see them."""
    found: dict[str, Value] = {}
    for node in workflow.nodes:
        execution = view_model.nodes.get(f"{place}.{node.id}") if view_model.parents.get(node.id) == loop_id else None
        spec = registry.find(node.type)
        if execution is not None and execution.outputs and spec is not None:
            found[node.id] = spec.recorded(dict(execution.outputs))
    return found


def _standing(loop: LoopExecution, unit: str) -> str:
    """The progress of a loop that has not ended."""
    if loop.current < 0:
        return f"No {unit} has begun yet."
    if unit == "item":
        ended = len(loop.iterations) + len(loop.ahead)
        return f"{ended} of {format_count(loop.total, 'item')} done."
    best = best_so_far(loop)
    so_far = ""
    if best is not None and best.score is not None:
        so_far = f" Best so far: iteration {best.index + 1}, score {format_score(best.score)}."
    return f"At iteration {loop.current + 1} of at most {loop.total}.{so_far}"


def best_so_far(loop: LoopExecution) -> LoopIterationCompleted | None:
    """The first iteration with the highest score; None without scores."""
    scored = [iteration for iteration in loop.iterations if iteration.score is not None]
    return max(scored, key=lambda iteration: iteration.score or 0.0, default=None)


def judge_execution(run: RunViewModel, loop_id: str, place: str) -> NodeExecution:
    """The execution of a loop's judge in one iteration (`loop[2]`)."""
    body = [node for node, loop in run.parents.items() if loop == loop_id]
    return run.nodes.get(f"{place}.{make_id(JUDGE, body)}", NO_NODE)


def score_lines(workflow: Workflow, loop_id: str, judge: NodeExecution) -> list[str]:
    """A line for the score of each criterion: `clarity: 8 (weight 2)`; none without a rubric."""
    config = loop_config(workflow, loop_id).judge
    scores = judge.outputs.get("scores")
    if config is None or not isinstance(scores, dict):
        return []
    known = {criterion.name: criterion.weight for criterion in config.rubric}
    is_weighted = len(set(known.values())) > 1
    return [
        f"{name.replace('_', ' ')}: {_number(score)}{f' (weight {known[name]:g})' if is_weighted else ''}"
        for name, score in scores.items()
        if name in known
    ]


def verdict_text(workflow: Workflow, loop_id: str, judge: NodeExecution) -> str:
    """The judge's verdict: done or not, scores and reason; empty without a verdict."""
    given = judge.outputs
    if "done" not in given:
        return ""
    found = "Done" if given["done"] is True else "Not done"
    score = given.get("score")
    head = f"{found}, score {_number(score)} of 10" if score is not None else found
    reason = given.get("reason")
    lines = [head, *score_lines(workflow, loop_id, judge)]
    return "\n".join([*lines, *(["", reason] if isinstance(reason, str) and reason else [])])


def _number(value: Value) -> str:
    return format_score(value) if isinstance(value, int | float) else "–"


def findings(
    loop: LoopExecution,
    index: int,
    config: LoopConfig,
    *,
    similarity: float | None = None,
    given: Mapping[str, Value] | None = None,
) -> str:
    """The values that the exit conditions tested after an iteration, and the full reason of the verdict.

    Args:
        loop: The run of the loop.
        index: An iteration that has ended.
        config: Its settings.
        similarity: Of its result to the one before, from 0 to 1; None where it is not known.
        given: What the nodes of its body gave in it, by id.
    """
    lines = list(describe_conditions(config, loop.iterations, index, similarity=similarity, given=given))
    reason = loop.iterations[index].reason
    return "\n".join([*(f"{line[:1].upper()}{line[1:]}" for line in lines), *(("", reason) if reason else ())])
