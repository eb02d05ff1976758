"""Quick fixes for problems with an obvious solution, as operations on the document. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.document.model import Node, Workflow, make_id, unique_id
from engine.document.operations import (
    UNSET,
    AddNode,
    Batch,
    Connect,
    Disconnect,
    Operation,
    RemoveNode,
    RenameNode,
    SetConfig,
    SetLayout,
    SetSettings,
)
from engine.document.problems import Problem
from engine.exits.evaluator import DONE
from engine.exits.max_iterations import MAX_ITERATIONS_CAP
from engine.nodes.spec import PAIR_BY_END, PAIR_BY_START
from engine.plan.structure import Structure
from engine.values import Value

COLUMN: Final = 280.0
"""Distance of a new node from the one it belongs to, in scene units."""


@dataclass(frozen=True, slots=True)
class QuickFix:
    """One fix.

    Attributes:
        title: The text of its button.
        operation: The operation that it does.
    """

    title: str
    operation: Operation


def quick_fixes(problem: Problem, structure: Structure) -> tuple[QuickFix, ...]:
    """Return the quick fixes of a problem; most have none.

    Args:
        problem: One of the problems of that document.
        structure: The analysed document.
    """
    find = _FIXES.get(problem.code)
    return () if find is None else tuple(find(problem, structure))


def _missing_exit(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    loop = problem.node or ""
    workflow = structure.workflow
    pair = PAIR_BY_START[workflow.node(loop).type]
    exit_id = unique_id(workflow, pair.end)
    place = _beside(workflow, loop, 2 * COLUMN)
    operations: list[Operation] = [AddNode(Node(id=exit_id, type=pair.end, config={pair.field: loop}))]
    if place is not None:
        operations.append(SetLayout(("nodes", exit_id), place))
    yield QuickFix(f"Add the missing {pair.end}", Batch(f"Add {exit_id}", tuple(operations)))


def _exit_without_loop(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    end = structure.workflow.node(problem.node or "").type
    yield QuickFix(f"Remove the {end}", RemoveNode(problem.node or ""))


def _unknown_loop(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    pair = PAIR_BY_END[structure.workflow.node(problem.node or "").type]
    nodes = structure.workflow.nodes
    for loop in (node.id for node in nodes if node.type == pair.start and node.id not in structure.bodies):
        yield QuickFix(f"End “{loop}”", SetConfig(problem.node or "", (pair.field,), loop))


def _edge(problem: Problem, _structure: Structure) -> Iterator[QuickFix]:
    source, arrow, target = (problem.edge or "").partition(" -> ")
    if arrow:
        yield QuickFix("Remove edge", Disconnect(source, target))


def _rename_node(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    old = problem.node or ""
    yield QuickFix("Rename", RenameNode(old, make_id(old, structure.workflow.nodes_by_id)))


def _rename_parameter(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    kind = problem.code.partition("-")[2]
    taken = {node.config.get("name") or node.id for node in structure.workflow.nodes if node.type == kind}
    node = structure.workflow.nodes_by_id.get(problem.node or "")
    if node is not None:
        name = make_id(str(node.config.get("name") or node.id), taken)
        yield QuickFix(f"Rename to “{name}”", SetConfig(node.id, ("name",), name))


def _remove_setting(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    node = structure.workflow.nodes_by_id.get(problem.node or "")
    field = problem.field or ""
    if node is not None and field in node.config:
        yield QuickFix("Remove setting", SetConfig(node.id, (field,), UNSET))
    elif node is None and field.startswith("settings."):
        yield QuickFix("Remove setting", SetSettings((field.removeprefix("settings."),), UNSET))


def _use_default(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    field = (problem.field or "").removeprefix("settings.").partition(".")[0]
    node = structure.workflow.nodes_by_id.get(problem.node or "")
    if node is not None and field in node.config:
        yield QuickFix("Use default", SetConfig(node.id, (field,), UNSET))
    elif node is None and field in structure.workflow.settings:
        yield QuickFix("Use default", SetSettings((field,), UNSET))


def _clamp(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    node = structure.workflow.nodes_by_id.get(problem.node or "")
    wish = node.config.get("max_iterations") if node is not None else None
    if node is not None and isinstance(wish, int):
        number = min(max(wish, 1), MAX_ITERATIONS_CAP)
        yield QuickFix(f"Use {number}", SetConfig(node.id, ("max_iterations",), number))


def _choose_evaluator(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    body = structure.bodies.get(problem.node or "")
    if body is None:
        return
    for node in structure.order:
        is_own = structure.parent.get(node) == body.loop and structure.workflow.node(node).type == "router"
        if is_own and any(link.source_port == DONE for link in structure.links_from.get(node, ())):
            yield QuickFix(f"Use “{node}”", SetConfig(body.loop, ("evaluator",), node))


def _feedback_end(problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    loop = structure.parent.get(problem.node or "", "")
    body = structure.bodies.get(loop)
    for end in structure.feedback_ends.get(loop, ()):
        resolved = structure.resolution.nodes.get(end)
        port = next(iter(resolved.outputs), None) if resolved is not None else None
        if body is not None and port is not None:
            yield QuickFix(f"Feed back “{end}”", Connect(f"{end}.{port}", f"{body.exit}.feedback"))


def _no_output(_problem: Problem, structure: Structure) -> Iterator[QuickFix]:
    workflow = structure.workflow
    output = unique_id(workflow, "result")
    operations: list[Operation] = [AddNode(Node(id=output, type="output", title="Result"))]
    inside = {*structure.parent, *structure.bodies}
    ends = [node for node in structure.order if node not in structure.links_from and node not in inside]
    if len(ends) == 1:
        resolved = structure.resolution.nodes.get(ends[0])
        port = next(iter(resolved.outputs), None) if resolved is not None else None
        place = _beside(workflow, ends[0], COLUMN)
        if place is not None:
            operations.append(SetLayout(("nodes", output), place))
        if port is not None:
            operations.append(Connect(f"{ends[0]}.{port}", f"{output}.value"))
    yield QuickFix("Add output", Batch("Add output", tuple(operations)))


def _beside(workflow: Workflow, node_id: str, distance: float) -> dict[str, Value] | None:
    places = workflow.layout.get("nodes")
    place = places.get(node_id) if isinstance(places, dict) else None
    if not isinstance(place, dict) or not all(isinstance(place.get(axis), int | float) for axis in ("x", "y")):
        return None
    return {"x": place["x"] + distance, "y": place["y"]}


_FIXES: Final[dict[str, Callable[[Problem, Structure], Iterator[QuickFix]]]] = {
    "missing-exit": _missing_exit,
    "exit-without-loop": _exit_without_loop,
    "unknown-loop": _unknown_loop,
    "unknown-node": _edge,
    "unknown-port": _edge,
    "duplicate-edge": _edge,
    "type-mismatch": _edge,
    "edge-out-of-body": _edge,
    "loop-result-in-body": _edge,
    "loop-waits-for-itself": _edge,
    "bad-id": _rename_node,
    "duplicate-id": _rename_node,
    "duplicate-input": _rename_parameter,
    "duplicate-output": _rename_parameter,
    "unknown-config-key": _remove_setting,
    "unknown-key": _remove_setting,
    "bad-config": _use_default,
    "bad-setting": _use_default,
    "no-effect": _use_default,
    "no-score": _use_default,
    "bad-default": _use_default,
    "iterations-clamped": _clamp,
    "several-evaluators": _choose_evaluator,
    "bad-evaluator": _choose_evaluator,
    "two-feedback-ends": _feedback_end,
    "no-output": _no_output,
}
