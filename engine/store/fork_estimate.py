"""What a fork reuses and what it does anew, in words, and what that may cost: told before anything is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.events import AnyEvent, LoopIterationCompleted, NodeCompleted
from engine.plan.execution_plan import GraphPlan, LoopPlan
from engine.run_state.reducer import reduce_events
from engine.run_state.state import Detail, LoopExecution
from engine.runner.fork import ForkPoint, latest
from engine.runner.run_path import PlaceError, parse_place


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a fork comes to; see `ForkPlan` for the fields."""

    reused: tuple[str, ...]
    anew: tuple[str, ...]
    iterations_anew: int
    estimate_usd: float | None
    warnings: tuple[str, ...]


def reuse(
    past: Iterable[AnyEvent], point: ForkPoint, settings: Mapping[str, Mapping[str, Any]], *, model_changed: bool
) -> Reuse:
    """Hold a fork's place against what its parent told.

    Raises:
        PlaceError: The parent never came to that place, or the loop would not get there any more.
    """
    told = latest(past)
    _refuse_unreached(reduce_events(told, detail=Detail.LOOPS).loops, point)
    anew_ids = _anew_ids(point)
    warnings = tuple(
        f'The change to "{node}" has no effect: nothing of it is run anew.' for node in settings if node not in anew_ids
    )
    estimate = None if model_changed else _estimate(told, point)
    return Reuse(tuple(_reused(point)), tuple(_anew(point)), _iterations_left(point), estimate, warnings)


def _refuse_unreached(loops: Mapping[str, LoopExecution], point: ForkPoint) -> None:
    """Refuse a place that the parent did not reach, or that the loop would not reach any more.

    Args:
        loops: The loops of the parent, by path.
        point: The place.
    """
    assert point.place is not None
    steps = point.place.steps
    depths = (depth for depth, step in enumerate(steps) if step.index is not None)  # a subflow has no iterations
    for depth, (path, index) in zip(depths, point.place.iterations(), strict=True):
        loop = loops.get(path, LoopExecution())
        is_last = depth == len(steps) - 1
        is_item = point.nodes[depth].iterator is not None
        most = loop.completed if is_last and not is_item else loop.current
        if index > most:
            raise PlaceError(
                f"The run never came to {point.place}.",
                f"The last place there is {path}[{most}]." if most >= 0 else f'"{path}" made no iteration.',
            )
        count = None if is_item else _loop(point, depth).max_iterations
        if count is not None and index >= count:
            raise PlaceError(
                f'The loop "{path}" makes at most {count} iterations, and would not come to {point.place}.',
                f"Let it make at least {index + 1}.",
            )


def _loop(point: ForkPoint, depth: int) -> LoopPlan:
    loop = point.nodes[depth].loop
    assert loop is not None, "only loops have iterations"
    return loop


def _anew_ids(point: ForkPoint) -> set[str]:
    """Ids of all nodes of which anything may be run anew."""
    assert point.place is not None
    found: set[str] = set()
    for graph, step, after in zip(point.graphs, point.place.steps, point.after, strict=True):
        found.add(step.node)
        found |= after
        for node in graph.nodes:
            if node.body is not None and (node.id == step.node or node.id in after):
                found |= _all_ids(node.body)
    return found


def _all_ids(graph: GraphPlan) -> set[str]:
    inner = (_all_ids(node.body) for node in graph.nodes if node.body is not None)
    return {node.id for node in graph.nodes}.union(*inner)


def _reused(point: ForkPoint) -> Iterable[str]:
    assert point.place is not None
    for there, graph, step, after in zip(point.nodes, point.graphs, point.place.steps, point.after, strict=True):
        others = [node.title for node in graph.nodes if node.id != step.node and node.id not in after]
        if others:
            yield ", ".join(f"“{title}”" for title in others)
        if there.iterator is not None and step.index is not None:
            yield f"all other items of “{there.title}”"
        elif step.index:
            yield f"{_counted(1, step.index)} of “{there.title}”"
    if point.keeps_node:
        yield f"“{point.nodes[-1].title}”, with the value given by hand"


def _anew(point: ForkPoint) -> Iterable[str]:
    assert point.place is not None
    last = len(point.place.steps) - 1
    for depth in range(last, -1, -1):
        graph, step, after = point.graphs[depth], point.place.steps[depth], point.after[depth]
        if step.index is not None and point.nodes[depth].iterator is not None:
            if depth == last:
                yield f"item {step.index + 1} of “{point.nodes[depth].title}”"
        elif step.index is not None:
            first, most = step.index + (1 if depth == last else 2), _loop(point, depth).max_iterations
            if first <= most:
                yield f"{_counted(first, most)} of “{point.nodes[depth].title}”, at most"
        elif not point.keeps_node:
            yield f"“{point.nodes[depth].title}”"
        titles = [node.title for node in graph.nodes if node.id in after and node.exit_of is None]
        if titles:
            yield ", ".join(f"“{title}”" for title in titles)


def _counted(first: int, last: int) -> str:
    return f"iteration {first}" if first == last else f"iterations {first} to {last}"


def _iterations_left(point: ForkPoint) -> int:
    depth = _outermost_loop(point)
    if depth is None:
        return 0
    assert point.place is not None
    index = point.place.steps[depth].index or 0
    return 1 if point.nodes[depth].iterator is not None else _loop(point, depth).max_iterations - index


def _outermost_loop(point: ForkPoint) -> int | None:
    """Which step of the place is the outermost loop or iterator around it; None where it lies in none."""
    assert point.place is not None
    return next((depth for depth, step in enumerate(point.place.steps) if step.index is not None), None)


def _estimate(told: Iterable[AnyEvent], point: ForkPoint) -> float | None:
    """By what the parent paid: an iteration's mean cost for each that may come, and what followed the place."""
    assert point.place is not None
    depth = _outermost_loop(point)
    loop = "" if depth is None else ".".join(step.node for step in point.place.steps[: depth + 1])
    iterations: list[float | None] = []
    following: list[float | None] = []
    for event in told:
        if isinstance(event, LoopIterationCompleted) and event.path == loop:
            iterations.append(event.cost_usd)
        elif isinstance(event, NodeCompleted) and event.path != loop and _is_counted_anew(event.path, point):
            following.append(event.cost_usd)
    if any(cost is None for cost in (*iterations, *following)):
        return None
    total = sum(cost or 0.0 for cost in following)
    if depth is None:
        return total
    if not iterations:
        return None
    return total + sum(cost or 0.0 for cost in iterations) / len(iterations) * _iterations_left(point)


def _is_counted_anew(path: str, point: ForkPoint) -> bool:
    """Whether a node is run anew and tells what it cost: a loop does for the nodes in it, a subflow does not."""
    return "[" not in path and not point.holds(parse_place(path).steps)
