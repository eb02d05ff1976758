"""Analysis of a document: its graph, the bodies of its loops, the controlling routers, and its subflows.

Workflows of subflows are read from the copies in the document, never from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from engine.document.model import Node, Workflow
from engine.document.problems import Problem
from engine.document.subflows import workflow_in
from engine.exits.condition import Need
from engine.exits.evaluator import DONE
from engine.exits.loop_conditions import KEY
from engine.nodes.loop import LoopConfig
from engine.nodes.node_registry import Registry, builtin_registry
from engine.nodes.spec import LOOP, Pair
from engine.nodes.subflow import SUBFLOW, SubflowConfig
from engine.plan.graph_algorithms import Neighbors, find_cycle, reverse, topological_order
from engine.plan.loop_bodies import Body, body_problems, find_body, pair, parents, waiting_problem
from engine.plan.resolve import Link, Resolution, Resolved, links, resolve
from engine.text_sanitizing import shown
from engine.values import as_list, as_object

MAX_SUBFLOW_DEPTH: Final = 16
"""How deep subflows may nest; each level needs some of Python's stack."""


def inner_workflows(resolution: Resolution, registry: Registry) -> dict[str, Workflow]:
    """Return the workflow of each subflow, by the subflow's id; unreadable ones become problems."""
    found: dict[str, Workflow] = {}
    for resolved in resolution.by_type.get(SUBFLOW, ()):
        config = resolved.config
        if not isinstance(config, SubflowConfig) or config.workflow is None:
            continue
        workflow = workflow_in(resolved.node)
        if workflow is None:
            message = f'The copy of "{shown(config.file, 60)}" in this document is not a workflow.'
            resolution.problems.append(
                Problem("bad-subflow", message, "Choose the file again.", node=resolved.id, field="file")
            )
            continue
        if depth(config.workflow) > MAX_SUBFLOW_DEPTH:
            message = f"Subflows are nested more than {MAX_SUBFLOW_DEPTH} deep."
            resolution.problems.append(
                Problem("nested-too-deep", message, "Flatten them.", node=resolved.id, field="file")
            )
            continue
        found[resolved.id] = with_own_model(workflow, registry)
    return found


def node_at(workflow: Workflow, path: str) -> Node | None:
    """Return the node at a path of a run (`outer[1].inner`, `part.draft` in a subflow), or None."""
    *around, last = path.split(".")
    for step in around:
        node = workflow.nodes_by_id.get(step.partition("[")[0])
        if node is not None and node.type == SUBFLOW:
            inner = workflow_in(node)
            if inner is None:
                return None
            workflow = inner
    return workflow.nodes_by_id.get(last.partition("[")[0])


def depth(workflow: dict[str, Any]) -> int:
    """Return the nesting depth of a workflow and its subflows, from 1."""
    deepest, level = 0, [workflow]
    while level and deepest <= MAX_SUBFLOW_DEPTH:
        deepest += 1
        nodes = [as_object(node) for each in level for node in as_list(each.get("nodes"))]
        configs = (as_object(node.get("config")) for node in nodes)
        level = [as_object(config["workflow"]) for config in configs if isinstance(config.get("workflow"), dict)]
    return deepest


def problem_of_subflow(subflow: Resolved, title: str, problem: Problem) -> Problem:
    """Report a problem of a subflow's workflow at the subflow, which people call by that title."""
    place = f"{problem.place}: " if problem.place else ""
    name = subflow.config.file or title
    message = f'In "{shown(name, 60)}": {place}{problem.message}'
    return Problem(problem.code, message, problem.remedy, problem.severity, node=subflow.id, field="file")


def with_own_model(workflow: Workflow, registry: Registry) -> Workflow:
    """Set a subflow's default model at its nodes that name none: the outer workflow may have another default."""
    model = workflow.settings.get("model")
    if not isinstance(model, str) or not model:
        return workflow
    return workflow.model_copy(update={"nodes": tuple(_with_model(node, model, registry) for node in workflow.nodes)})


def _with_model(node: Node, model: str, registry: Registry) -> Node:
    spec = registry.find(node.type)
    config = deepcopy(node.config)
    configs = [config] if spec is not None and "model" in spec.config.model_fields else []
    if node.type == "loop":
        configs.append(as_object(config.get("judge")))
    if node.type == SUBFLOW:
        configs.append(as_object(as_object(config.get("workflow")).setdefault("settings", {})))
    for settings in configs:
        if settings.get("model") is None:
            settings["model"] = model
    return node.model_copy(update={"config": config}) if configs else node


@dataclass(slots=True, eq=False)
class Structure:
    """An analysed document. Immutable once it is analysed.

    Attributes:
        workflow: The document.
        registry: The node types that it was analysed with.
        resolution: Its nodes with type, settings and ports.
        links: Its edges, in the document's order.
        links_from: The edges that start at each node, in the document's order.
        links_to: The edges that lead to each node, in the document's order.
        order: Node ids, sources before targets, otherwise in the document's order; empty where there is a cycle.
        bodies: The body of each loop that has one exit, and of each iterator that has one aggregator, by its id.
        parent: For each node in a body, the innermost loop or iterator around it.
        evaluators: For each loop, the one router that controls it, where there is one.
        feedback_ends: For each loop, the ends of its router branches that lead nowhere, in the document's order.
        problems: The problems found during the analysis.
        subflows: The analysed workflow of each subflow, by the subflow's id.
        checked: The problems that `engine.plan.validation` found, by the cap on iterations.
        members: The nodes of each body in their order, without those of nested bodies; under None those outside of all.
        loop_of: The loop of each exit, the iterator of each aggregator.
        disabled: The nodes that do not run: disabled ones, and those in the body of a disabled loop or iterator. A
            disabled exit still outputs its loop's result.
        replaced_by_pins: The enabled nodes that do not run because they, or the loop or iterator around them, are
            pinned.
    """

    workflow: Workflow
    registry: Registry
    resolution: Resolution
    links: list[Link]
    links_from: dict[str, list[Link]]
    links_to: dict[str, list[Link]]
    order: list[str] = field(default_factory=list[str])
    bodies: dict[str, Body] = field(default_factory=dict[str, Body])
    parent: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[Problem] = field(default_factory=list[Problem])
    evaluators: dict[str, str] = field(init=False)
    feedback_ends: dict[str, tuple[str, ...]] = field(init=False)
    subflows: dict[str, Structure] = field(init=False)
    checked: dict[int, tuple[Problem, ...]] = field(init=False)
    members: dict[str | None, list[str]] = field(init=False)
    loop_of: dict[str, str] = field(init=False)
    disabled: frozenset[str] = field(init=False)
    replaced_by_pins: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.evaluators, self.feedback_ends, self.subflows, self.checked = {}, {}, {}, {}
        self.loop_of = {body.exit: body.loop for body in self.bodies.values()}
        self.members = {}
        for node in self.order:
            self.members.setdefault(self.parent.get(node), []).append(node)
        nodes = self.workflow.nodes_by_id.values()
        self.disabled = self._all_in({node.id for node in nodes if not node.enabled and node.type != LOOP.end})
        pinned = {node.id for node in nodes if node.pinned and node.enabled}
        self.replaced_by_pins = self._all_in({self.loop_of.get(node, node) for node in pinned} | pinned)

    def _all_in(self, starts: set[str]) -> frozenset[str]:
        """Nodes, and those in the bodies of the loops and iterators among them."""
        if not starts:
            return frozenset()
        return frozenset(node for node in self.workflow.nodes_by_id if self._is_within(node, starts))

    def _is_within(self, node: str | None, starts: set[str]) -> bool:
        while node is not None and node not in starts:
            node = self.parent.get(node)
        return node is not None

    def around(self, node: str, kind: Pair) -> str | None:
        """The innermost loop, or the innermost iterator, around a node; None where there is none."""
        start = self.parent.get(node)
        while start is not None and self.bodies[start].kind is not kind:
            start = self.parent.get(start)
        return start


def analyse(workflow: Workflow, registry: Registry | None = None) -> Structure:
    """Analyse a document and the workflows of its subflows; never fails, whatever the document."""
    known = registry or builtin_registry()
    structure = _analyse_level(workflow, known)
    before = len(structure.resolution.problems)
    for node_id, inner in inner_workflows(structure.resolution, known).items():
        structure.subflows[node_id] = analyse(inner, known)
    structure.problems.extend(structure.resolution.problems[before:])
    return structure


def _analyse_level(workflow: Workflow, registry: Registry) -> Structure:
    resolution = resolve(workflow, registry)
    found, problems = links(workflow, resolution)
    leaving: dict[str, list[Link]] = {}
    leading: dict[str, list[Link]] = {}
    successors: dict[str, list[str]] = {node: [] for node in workflow.nodes_by_id}
    for link in found:
        leaving.setdefault(link.source, []).append(link)
        leading.setdefault(link.target, []).append(link)
        successors[link.source].append(link.target)
    problems = [*resolution.problems, *problems]
    make = partial(Structure, workflow, registry, resolution, found, leaving, leading)
    order = topological_order(successors)
    cycle = _cycle(successors, order, resolution.name)
    if cycle is not None:
        return make(problems=[*problems, cycle])
    pairing = pair(workflow, resolution, leading, order)
    problems.extend(pairing.problems)
    if not pairing.exit_of:
        return make(order, problems=problems)
    for loop, exit_id in pairing.exit_of.items():
        successors[loop].append(exit_id)
    position = {node: index for index, node in enumerate(order)}
    if any(position[exit_id] < position[loop] for loop, exit_id in pairing.exit_of.items()):
        order = topological_order(successors)
        cycle = _cycle(successors, order, resolution.name)
        if cycle is not None:
            return make(problems=[*problems, cycle])
    predecessors = reverse(successors)
    bodies = {
        loop: find_body(loop, workflow, successors, predecessors, leaving.get(loop, []), pairing.exit_of)
        for loop in pairing.exit_of
    }
    innermost = parents(bodies)
    problems.extend(body_problems(bodies, innermost, found, resolution.name))
    waiting = waiting_problem(bodies, found, successors, resolution.name)
    problems.extend([waiting] if waiting is not None else [])
    structure = make(order, bodies, innermost, problems=problems)
    for body in (body for body in bodies.values() if body.kind is LOOP):
        problems.extend(_control_problems(structure, body))
        problems.extend(_feedback_problems(structure, body))
    return structure


def _cycle(successors: Neighbors, order: list[str], name: Callable[[str], str]) -> Problem | None:
    nodes = find_cycle(successors, order)
    if nodes is None:
        return None
    names = [name(node) for node in nodes]
    shown = names if len(names) <= 8 else [*names[:4], "…", *names[-3:]]
    return Problem(
        "cycle",
        f"The edges form a cycle: {' -> '.join(shown)}.",
        "To repeat something, put it between a Loop and its Exit; what the exit's port feedback gets comes next.",
        node=nodes[0],
    )


def _reachable(starts: set[str], within: frozenset[str], structure: Structure) -> set[str]:
    """All nodes that paths from `starts` lead to; paths end at nodes outside `within`."""
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            if node in within:
                waiting.extend(link.target for link in structure.links_from.get(node, ()))
    return reached


def _routers_to_exit(structure: Structure, body: Body) -> list[str]:
    """The enabled routers of the body itself whose branch `done` leads to the exit's input."""
    nodes = structure.workflow.nodes_by_id
    routers = (node for node in structure.members.get(body.loop, ()) if nodes[node].type == "router")
    return [node for node in routers if nodes[node].enabled and _is_done_at_exit(structure, node, body)]


def _is_done_at_exit(structure: Structure, router: str, body: Body) -> bool:
    starts = {link.target for link in structure.links_from.get(router, ()) if link.source_port == DONE}
    reached = _reachable(starts, body.nodes, structure)
    into_exit = (link for link in structure.links_to.get(body.exit, ()) if link.target_port == "input")
    return any(link.source in reached or (link.source, link.source_port) == (router, DONE) for link in into_exit)


def _control_problems(structure: Structure, body: Body) -> Iterator[Problem]:
    """Find the router that controls a loop; a loop that asks for one and has none, or several, is a problem."""
    resolved, name = structure.resolution.nodes.get(body.loop), structure.resolution.name
    if resolved is None or not isinstance(resolved.config, LoopConfig):
        return
    config = resolved.config
    routers = _routers_to_exit(structure, body)
    chosen = config.evaluator if config.evaluator in routers else None
    if chosen is None and not config.evaluator and len(routers) == 1:
        chosen = routers[0]
    if chosen is not None:
        structure.evaluators[body.loop] = chosen
    if Need.EVALUATOR not in config.needs or chosen is not None:
        return

    def listed(router: str) -> str:
        """Name a router with its id, which the setting has in a file."""
        return router if router == name(router) else f"{name(router)} ({router})"

    if config.evaluator:
        yield Problem(
            "bad-evaluator",
            f'"{listed(config.evaluator)}" is not a router of the loop "{name(body.loop)}" '
            f'whose branch "{DONE}" leads to its exit.',
            f"Choose one of: {', '.join(map(listed, routers))}." if routers else "Add such a router.",
            node=body.loop,
            field="evaluator",
        )
    elif not routers:
        yield Problem(
            "no-evaluator",
            f'The loop "{name(body.loop)}" waits for an evaluator, '
            f'but no router in it leads from "{DONE}" to its exit.',
            f'Add a router to the loop and connect its branch "{DONE}" to the exit.',
            node=body.loop,
            field=_evaluator_field(config),
        )
    else:
        yield Problem(
            "several-evaluators",
            f'Several routers could control the loop "{name(body.loop)}": {", ".join(map(listed, routers))}.',
            "Choose one of them as its evaluator.",
            node=body.loop,
            field="evaluator",
        )


def _evaluator_field(config: LoopConfig) -> str:
    """The place of the condition that waits for an evaluator."""
    return next(f"{leaf.field}.{KEY}" for leaf in config.leaf_conditions if Need.EVALUATOR in leaf.spec.needs)


def _feedback_problems(structure: Structure, body: Body) -> Iterator[Problem]:
    """Find the ends of branches that lead nowhere; two on the same branch are a problem, since both would be live."""
    if not body.side_branches:
        structure.feedback_ends[body.loop] = ()
        return
    name = structure.resolution.name
    is_wired = any(link.target_port == "feedback" for link in structure.links_to.get(body.exit, ()))
    own = structure.members.get(body.loop, [])
    ends = [node for node in own if node in body.side_branches and node not in structure.links_from]
    ends_of: dict[tuple[str, str], list[str]] = {}
    for node in own:
        resolved = structure.resolution.nodes.get(node)
        branches = [] if resolved is None else [port.name for port in resolved.outputs.values() if port.branch]
        for branch in branches:
            starts = {link.target for link in structure.links_from.get(node, ()) if link.source_port == branch}
            reached = _reachable(starts, body.nodes, structure)
            ends_of[node, branch] = [end for end in ends if end in reached]
    for (node, branch), there in ends_of.items():
        together = [end for end in there if any(end != other and not _apart(end, other, ends_of) for other in there)]
        if together and not is_wired:
            yield Problem(
                "two-feedback-ends",
                f'The branch "{branch}" of "{name(node)}" ends in several nodes that lead nowhere: '
                f"{', '.join(map(name, together))}; the next iteration can start from one.",
                f'Connect the right one to the port "feedback" of the exit "{name(body.exit)}".',
                node=node,
                port=branch,
            )
    hanging = {end for there in ends_of.values() for end in there}
    structure.feedback_ends[body.loop] = tuple(end for end in ends if end in hanging)


def _apart(one: str, other: str, ends_of: dict[tuple[str, str], list[str]]) -> bool:
    """Whether some node chooses between two ends: each lies on a branch of it that does not lead to the other."""
    of_one = {place for place, there in ends_of.items() if one in there and other not in there}
    of_other = {place for place, there in ends_of.items() if other in there and one not in there}
    return any(node == chooser for node, _ in of_one for chooser, _ in of_other)
