"""Texts about loops and places in a run: progress, exit reasons, verdicts, labels. No Qt.

Canvas, panels, inspector and log show the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from app.runs.run_view_model import NO_NODE, RunViewModel, steps_of
from engine.document.model import Workflow, make_id
from engine.events import LoopIterationCompleted
from engine.formatting import format_count, format_score
from engine.nodes.judge import JUDGE
from engine.nodes.loop import LoopConfig
from engine.nodes.node_names import node_names
from engine.nodes.node_registry import Registry
from engine.nodes.spec import ITERATOR
from engine.plan.structure import node_at
from engine.run_state.state import LoopExecution, NodeExecution
from engine.store.exit_explanation import describe_conditions, explain_exit, loop_config
from engine.values import Value

_LOOPS: Final = re.compile(r"(\w+)\[(\d+)\]")


def unit_of(workflow: Workflow, path: str) -> str:
    """The word for one pass through a body: `item` for an iterator, `iteration` for a loop."""
    node = node_at(workflow, path)
    return "item" if node is not None and node.type == ITERATOR.start else "iteration"


def loop_status(
    loop: LoopExecution,
    config: LoopConfig,
    *,
    unit: str = "iteration",
    error: str = "",
    similarity: float | None = None,
    outputs: Mapping[str, Value] | None = None,
) -> str:
    """Explain why a loop ended, or state its progress.

    Args:
        loop: The run of the loop.
        config: Its settings.
        unit: What to call one iteration.
        error: The error, where one ended the loop.
        similarity: Of its last two results, from 0 to 1; None where it is not known.
        outputs: The outputs of the body's nodes in the last iteration, by id.
    """
    if not loop.exit_reason:
        return _progress(loop, unit)
    last = len(loop.iterations) - 1
    text = explain_exit(
        config, loop.iterations, loop.exit_reason, loop.cap, error=error, similarity=similarity, given=outputs
    )
    if loop.returned is None or loop.returned == last:
        return text
    return f"{text} It returned the result of iteration {loop.returned + 1}."


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
        view_model: The view_model.
        registry: The node types.
        chosen: The selected iterations, by loop id.
        loop_id: The loop.
        similarity: Of its last two results, from 0 to 1; None where it is not known.
    """
    loop, config = view_model.loop(loop_id, chosen), loop_config(workflow, loop_id)
    outputs: dict[str, Value] = {}
    if loop.exit_reason and config.names_nodes:
        last = f"{view_model.path_of(loop_id, chosen)}[{len(loop.iterations) - 1}]"
        outputs = body_outputs(workflow, view_model, registry, loop_id, last)
    error, unit = view_model.node(loop_id, chosen).error, unit_of(workflow, loop_id)
    return loop_status(loop, config, unit=unit, error=error, similarity=similarity, outputs=outputs)


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


def _progress(loop: LoopExecution, unit: str) -> str:
    if loop.current < 0:
        return f"No {unit} has started yet."
    if unit == "item":
        ended = len(loop.iterations) + len(loop.ahead)
        return f"{ended} of {format_count(loop.total, 'item')} done."
    text = f"Iteration {loop.current + 1} of up to {loop.total}."
    best = best_so_far(loop)
    if best is None or best.score is None:
        return text
    return f"{text} Best so far: iteration {best.index + 1}, score {format_score(best.score)}."


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
    verdict = judge.outputs
    if "done" not in verdict:
        return ""
    done = "Done" if verdict["done"] is True else "Not done"
    score, reason = verdict.get("score"), verdict.get("reason")
    head = f"{done}, score {_number(score)} of 10" if score is not None else done
    lines = [head, *score_lines(workflow, loop_id, judge)]
    return "\n".join([*lines, *(["", reason] if isinstance(reason, str) and reason else [])])


def _number(value: Value) -> str:
    return format_score(value) if isinstance(value, int | float) else "–"


def condition_values(
    loop: LoopExecution,
    index: int,
    config: LoopConfig,
    *,
    similarity: float | None = None,
    outputs: Mapping[str, Value] | None = None,
) -> str:
    """The values that the exit conditions tested after an iteration, and the full reason of the verdict.

    Args:
        loop: The run of the loop.
        index: An iteration that has ended.
        config: Its settings.
        similarity: Of its result to the previous one, from 0 to 1; None where it is not known.
        outputs: The outputs of the body's nodes in it, by id.
    """
    lines = describe_conditions(config, loop.iterations, index, similarity=similarity, given=outputs)
    reason = loop.iterations[index].reason
    return "\n".join([*(f"{line[:1].upper()}{line[1:]}" for line in lines), *(("", reason) if reason else ())])


def titles_of(workflow: Workflow | None) -> dict[str, str]:
    """The names of a document's nodes by id."""
    return dict(node_names(workflow)) if workflow is not None else {}


def iterators_of(workflow: Workflow | None) -> frozenset[str]:
    """The ids of a document's iterators."""
    nodes = workflow.nodes if workflow is not None else ()
    return frozenset(node.id for node in nodes if node.type == ITERATOR.start)


def place_label(path: str, titles: Mapping[str, str] | None = None, iterators: Collection[str] = ()) -> str:
    """Label a place in a run: `loop[2].draft` is `Draft (iteration 3)`, in an iterator `Draft (item 3)`."""
    node, inside = steps_of(path)
    node = " › ".join([(titles or {}).get(node, node), *([inside] if inside else [])])
    loops = _LOOPS.findall(path)
    numbers = ".".join(str(int(index) + 1) for _, index in loops)
    unit = "item" if all(loop in iterators for loop, _ in loops) else "iteration"
    return f"{node} ({unit} {numbers})" if numbers else node


def warning_label(warning: str, workflow: Workflow | None) -> str:
    """Label the place of a warning of a run: `loop[2].draft: No.` becomes `Draft (iteration 3): No.` for people."""
    path, _, text = warning.partition(": ")
    titles = titles_of(workflow)
    if steps_of(path)[0] not in titles:  # it is of the run itself
        return warning
    return f"{place_label(path, titles, iterators_of(workflow))}: {text}"
