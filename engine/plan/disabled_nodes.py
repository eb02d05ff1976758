"""Disabled nodes: their own problems do not prevent a run, so that people can disable a broken node.

Problems of the graph stay errors. In the plan a stand-in replaces a faulty disabled node: a node of its type with
default settings and the ports that edges use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from engine.document.model import Node
from engine.document.problems import Problem, Severity
from engine.nodes.registry import Registry
from engine.nodes.spec import AnySpec, Category, NodeConfig, NodeSpec, Port
from engine.plan.resolve import Resolved
from engine.plan.secrets import SECRET_CODE
from engine.plan.structure import Structure

_OF_THE_WHOLE: Final = frozenset({"bad-id", "duplicate-id", "unknown-loop", SECRET_CODE})
"""Problems with a field that concern more than the node itself."""


def with_disabled_as_warnings(problems: Iterable[Problem], structure: Structure) -> list[Problem]:
    """The problems, with those that only a node at work would have as warnings where the node does no work."""
    return [
        replace(problem, severity=Severity.WARNING) if _is_its_own(problem, structure) else problem
        for problem in problems
    ]


def planned_nodes(structure: Structure, problems: Iterable[Problem], registry: Registry) -> dict[str, Resolved]:
    """The nodes of a document without errors, by id; where one that is switched off has faults, its stand-in."""
    faulty = {problem.node for problem in problems if _is_its_own(problem, structure)}
    nodes = structure.workflow.nodes_by_id
    stand_ins = {node: _stand_in(nodes[node], structure, registry) for node in faulty if node is not None}
    return {**structure.resolution.nodes, **stand_ins}


def _is_its_own(problem: Problem, structure: Structure) -> bool:
    if problem.node not in structure.disabled:
        return False
    return problem.code == "unconnected-port" or (problem.field is not None and problem.code not in _OF_THE_WHOLE)


def _stand_in(node: Node, structure: Structure, registry: Registry) -> Resolved:
    resolved = structure.resolution.nodes.get(node.id)
    spec, config = _with_own_settings(node, registry)
    inputs, outputs = _ports(resolved, spec, config)
    for link in structure.links_to.get(node.id, ()):
        inputs.setdefault(link.target_port, Port(link.target_port))
    is_branching = any(port.branch for port in spec.outputs(config))
    for link in structure.links_from.get(node.id, ()):
        outputs.setdefault(link.source_port, Port(link.source_port, branch=is_branching))
    there, given = tuple(inputs.values()), tuple(outputs.values())
    stand_in = NodeSpec(
        type=node.type,
        title=spec.title,
        category=spec.category,
        help=spec.help,
        icon=spec.icon,
        config=spec.config,
        inputs=lambda _config: there,
        outputs=lambda _config: given,
        run=spec.run,
        recorded=spec.recorded,
    )
    return Resolved(node.model_copy(update={"enabled": False}), stand_in, config)


def _ports(resolved: Resolved | None, spec: AnySpec, config: Any) -> tuple[dict[str, Port], dict[str, Port]]:
    """The ports that are known without the edges: of settings that cannot be read, those that do not hang on them."""
    if resolved is not None:
        return dict(resolved.inputs), dict(resolved.outputs)
    if spec.run is None:  # the engine runs it, by these ports
        return {port.name: port for port in spec.inputs(config)}, {port.name: port for port in spec.outputs(config)}
    return {}, {}


def _with_own_settings(node: Node, registry: Registry) -> tuple[AnySpec, Any]:
    """The node's type with the settings that it has by itself; a type that nobody knows has none of its own."""
    spec = registry.find(node.type)
    try:
        if spec is not None:
            return spec, spec.config()
    except ValidationError:  # a plugin's, with settings that have no value of their own
        pass
    return _unknown(node.type), NodeConfig()


async def _never(_context: Any) -> dict[str, Any]:
    raise AssertionError("a node that is switched off is not run")


def _unknown(node_type: str) -> NodeSpec[NodeConfig]:
    return NodeSpec(
        type=node_type,
        title=node_type,
        category=Category.LOGIC,
        help="",
        icon="",
        config=NodeConfig,
        inputs=lambda _config: (),
        outputs=lambda _config: (),
        run=_never,
    )
