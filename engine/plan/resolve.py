"""Resolve the nodes of a document to their types, settings and ports, and its edges to the ports that they join."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from pydantic import ValidationError

from engine.document.model import NODE_ID_PATTERN, Edge, Node, Workflow
from engine.document.problems import Problem, Severity, config_errors, has_errors, kind_of
from engine.errors import did_you_mean
from engine.nodes.json_values import can_ever_fit, fits
from engine.nodes.node_names import node_names
from engine.nodes.node_registry import Registry
from engine.nodes.spec import AnySpec, NodeConfig, Port, is_body_port
from engine.text_sanitizing import shown
from engine.values import immutable

_ID: Final = re.compile(NODE_ID_PATTERN)


class Resolved:
    """A node whose type and settings are known and valid. Immutable once it is checked.

    Attributes:
        node: The node in the document.
        spec: Its type.
        config: Its settings.
        takes_any_port: Whether edges may name ports that it does not have: it is disabled, and its settings, on which
            the ports may depend, have problems.
        id: The node's id.
        type: The name of its type.
        inputs: Its input ports by name.
        outputs: Its output ports by name, `error` included where the settings ask for it.
        texts: The templates and expressions in its settings.
    """

    __slots__ = ("config", "id", "inputs", "node", "outputs", "spec", "takes_any_port", "texts", "type")

    def __init__(self, node: Node, spec: AnySpec, config: Any) -> None:
        self.node = node
        self.spec = spec
        self.config = config
        self.takes_any_port = False
        self.id = node.id
        self.type = node.type
        self.inputs: dict[str, Port] = {port.name: port for port in spec.inputs(config)}
        self.outputs: dict[str, Port] = {port.name: port for port in spec.all_outputs(config)}
        self.texts = spec.texts(config)


@dataclass(frozen=True)
class Resolution:
    """The resolved nodes by id and by type, and the problems of the others."""

    workflow: Workflow
    registry: Registry
    nodes: dict[str, Resolved]
    by_type: dict[str, list[Resolved]]
    problems: list[Problem]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What people call the nodes, by id."""
        return node_names(self.workflow, self.registry)

    def name(self, node_id: str) -> str:
        """What people call a node."""
        return self.names.get(node_id, node_id)


def resolve(workflow: Workflow, registry: Registry) -> Resolution:
    """Find the type and settings of each node; of nodes that share an id, the first counts."""
    resolution = Resolution(workflow, registry, {}, {}, [])
    seen: set[str] = set()
    for node in workflow.nodes:
        if node.id in seen or node.model_extra or _ID.fullmatch(node.id) is None:
            resolution.problems.extend(_identity_problems(node, seen))
            if node.id in seen:
                continue
        seen.add(node.id)
        spec = registry.find(node.type)
        if spec is None:
            resolution.problems.append(_unknown_type(node, registry))
            continue
        try:
            # As `model_validate`, which first checks what was asked of it.
            config: NodeConfig = spec.config.__pydantic_validator__.validate_python(node.config)
        except ValidationError as error:
            resolution.problems.extend(
                Problem("bad-config", message, remedy, node=node.id, field=place)
                for place, message, remedy in config_errors(spec.config, error)
            )
            continue
        resolved = resolution.nodes[node.id] = Resolved(node, spec, config)
        resolution.by_type.setdefault(node.type, []).append(resolved)
        faults = list(_config_problems(resolved))
        if faults:
            resolution.problems.extend(faults)
            resolved.takes_any_port = not node.enabled and has_errors(faults)
        if node.pinned:
            resolution.problems.extend(_pin_problems(resolved, resolution.name(node.id)))
    return resolution


def _identity_problems(node: Node, seen: set[str]) -> Iterator[Problem]:
    if not _ID.fullmatch(node.id):
        yield Problem(
            "bad-id",
            f'"{shown(node.id, 60)}" cannot be the id of a node.',
            "An id has lowercase letters, digits and underscores, and starts with a letter.",
            node=node.id,
            field="id",
        )
    if node.id in seen:
        yield Problem(
            "duplicate-id", f'Two nodes have the id "{shown(node.id, 60)}".', "Rename one.", node=node.id, field="id"
        )
    for key in node.unknown_keys:
        yield unknown_key(f'A node has no "{shown(key, 60)}"', key, node=node.id)


def unknown_key(message: str, place: str, *, node: str | None = None, edge: str | None = None) -> Problem:
    """Return the warning about a key of the document, of a node or of an edge that this version does not know."""
    return Problem(
        "unknown-key",
        f"{message}; it is kept, but has no effect.",
        "Remove it, or open the file with the version of the program that wrote it.",
        Severity.WARNING,
        node=node,
        edge=edge,
        field=place,
    )


def _unknown_type(node: Node, registry: Registry) -> Problem:
    hint = did_you_mean(node.type, (spec.type for spec in registry))
    return Problem(
        "unknown-type",
        f'There is no node type "{shown(node.type, 60)}".',
        f"{hint} If it is a plugin's, install and enable the plugin.".lstrip(),
        node=node.id,
        field="type",
    )


def _config_problems(resolved: Resolved) -> Iterator[Problem]:
    node, spec, config = resolved.node, resolved.spec, resolved.config
    known = spec.config.__pydantic_fields__  # as `model_fields`, which looks for deprecated uses at every access
    for key in node.config:
        if key not in known:
            yield Problem(
                "unknown-config-key",
                f'"{shown(key, 60)}" is not a setting of the type {spec.title}; it is kept, but has no effect.',
                f"{did_you_mean(key, known)} Remove it if it is not needed.".lstrip(),
                Severity.WARNING,
                node=node.id,
                field=key,
            )
    if config.on_error == "continue" and (ports := spec.outputs(config)) and ports[0].branch:
        yield Problem(
            "no-value-on-error",
            f"A {spec.title} that fails cannot continue with a value on error, because it has to choose a branch.",
            'Choose "branch" or "fail".',
            node=node.id,
            field="on_error",
        )
    for fault in spec.problems(config, resolved.texts):
        yield Problem(
            fault.code,
            fault.message,
            fault.remedy,
            fault.severity,
            node=node.id,
            field=fault.field,
            correction=fault.correction,
        )


def _pin_problems(resolved: Resolved, title: str) -> Iterator[Problem]:
    """Yield what prevents a run from using the pinned values of a node."""
    spec, pinned = resolved.spec, resolved.node.pinned
    found = partial(Problem, "bad-pin", node=resolved.id, field="pinned")
    if spec.type in UNPINNABLE:
        yield found(f"A node of the type {spec.title} cannot be pinned.", UNPINNABLE[spec.type])
        return
    ports = {name: port for name, port in resolved.outputs.items() if not is_body_port(spec.type, name)}
    for name, value in pinned.items():
        port = ports.get(name)
        if port is None:
            message = f'"{title}" is pinned at "{shown(name, 60)}", which is not one of its output ports.'
            yield found(message, f"Edit the pinned value, or unpin the node. It has: {', '.join(ports)}.", port=name)
        elif not fits(value, port.type):
            message = f'The value pinned at "{name}" of "{title}" is {kind_of(value)}, and not of type {port.type}.'
            yield found(message, "Edit the pinned value, or unpin the node.", port=name)
    branches = [name for name in pinned if name in ports and ports[name].branch]
    if len(branches) > 1:
        message = f'"{title}" is pinned at several branches: {", ".join(branches)}.'
        yield found(message, "Keep one of them.")


UNPINNABLE: Final = {
    "input": "Set its default value instead.",
    "output": "Unpin it, and pin the node before it.",
    "exit": "Unpin it, and pin its loop.",
    "iterator": "Unpin it, and pin its aggregator.",
}
"""What to do instead for the node types that cannot be pinned."""


@immutable
class Link:
    """An edge whose ends exist."""

    edge: Edge
    source: str
    source_port: str
    target: str
    target_port: str


def links(workflow: Workflow, resolution: Resolution) -> tuple[list[Link], list[Problem]]:
    """Return the edges whose ends exist, in the document's order, and the problems of edges and unconnected ports."""
    found: list[Link] = []
    problems: list[Problem] = []
    ids = workflow.nodes_by_id
    for edge in workflow.edges:
        link = Link(edge, *edge.source, *edge.target)
        if _is_valid(link, resolution):
            found.append(link)
            continue
        faults = list(_edge_problems(edge, workflow, resolution))
        problems.extend(faults)
        if link.source in ids and link.target in ids and not any(fault.code == "unknown-port" for fault in faults):
            found.append(link)
    connected = {(link.target, link.target_port) for link in found}
    if len(connected) < len(found):
        problems.extend(_overused_ports(found, resolution))
    problems.extend(_unconnected_ports(connected, resolution))
    return found, problems


def _is_valid(link: Link, resolution: Resolution) -> bool:
    """Whether an edge joins two compatible ports; almost all edges do, and need no further checks."""
    source, target = resolution.nodes.get(link.source), resolution.nodes.get(link.target)
    if source is None or target is None or link.edge.model_extra:
        return False
    start, end = source.outputs.get(link.source_port), target.inputs.get(link.target_port)
    return start is not None and end is not None and can_ever_fit(start.type, end.type)


def _edge_problems(edge: Edge, workflow: Workflow, resolution: Resolution) -> Iterator[Problem]:
    name = str(edge)
    for key in edge.unknown_keys:
        yield unknown_key(f'An edge has no "{shown(key, 60)}"', key, edge=name)
    ports: list[Port] = []
    for (node_id, port_name), kind in ((edge.source, "output"), (edge.target, "input")):
        if node_id not in workflow.nodes_by_id:
            yield Problem(
                "unknown-node",
                f'The edge names a node "{shown(node_id, 60)}" that does not exist.',
                "Remove the edge, or connect it to a node.",
                edge=name,
            )
            continue
        resolved = resolution.nodes.get(node_id)
        if resolved is None:
            continue
        known = resolved.outputs if kind == "output" else resolved.inputs
        port = known.get(port_name)
        if port is None and resolved.takes_any_port:
            continue
        if port is None:
            yield _unknown_port(name, resolved, resolution.name(node_id), kind, port_name, known)
        else:
            ports.append(port)
    if len(ports) == 2 and not can_ever_fit(ports[0].type, ports[1].type):
        yield Problem(
            "type-mismatch",
            f"A {ports[0].type} can never be a {ports[1].type}.",
            "Put a Transform between the two nodes.",
            edge=name,
            node=edge.target[0],
            port=ports[1].name,
        )


def _unknown_port(edge: str, resolved: Resolved, title: str, kind: str, port: str, known: dict[str, Port]) -> Problem:
    there = ", ".join(known) if known else "none"
    return Problem(
        "unknown-port",
        f'The node "{title}" has no {kind} port "{shown(port, 60)}".',
        f"It has: {there}.",
        edge=edge,
        node=resolved.id,
        port=port,
    )


def _overused_ports(found: list[Link], resolution: Resolution) -> Iterator[Problem]:
    taken: dict[tuple[str, str], list[Link]] = {}
    for link in found:
        taken.setdefault((link.target, link.target_port), []).append(link)
    for (target, port_name), there in taken.items():
        if len(there) == 1:
            continue
        resolved = resolution.nodes.get(target)
        for double in _doubles(there):
            yield Problem("duplicate-edge", "The edge is there twice.", "Remove one.", edge=str(double.edge))
        port = resolved.inputs.get(port_name) if resolved is not None else None
        if port is None or port.many:
            continue
        yield Problem(
            "too-many-edges",
            f'The input port "{port_name}" of "{resolution.name(target)}" takes one edge, but {len(there)} lead there.',
            "Remove all but one, or join the values in a Transform first.",
            node=target,
            port=port_name,
        )


def _doubles(there: list[Link]) -> Iterator[Link]:
    seen: set[tuple[str, str]] = set()
    for link in there:
        if (link.source, link.source_port) in seen:
            yield link
        seen.add((link.source, link.source_port))


def _unconnected_ports(connected: set[tuple[str, str]], resolution: Resolution) -> Iterator[Problem]:
    for resolved in resolution.nodes.values():
        for port in resolved.inputs.values():
            if port.required and (resolved.id, port.name) not in connected:
                or_else = ", or give it a value under 'Arguments'" if resolved.type == "tool" else ""
                question = did_you_mean(port.name, (name for name in resolved.inputs if name != port.name))
                yield Problem(
                    "unconnected-port",
                    f'Nothing is connected to the input port "{port.name}" of "{resolution.name(resolved.id)}".',
                    f"{question} Draw an edge to it{or_else}.".lstrip(),
                    node=resolved.id,
                    port=port.name,
                )
