"""The edges of a document beside the ports that they join: what leads nowhere, meets or cannot fit is a problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.document.model import Edge, Workflow
from engine.document.problems import Problem, Severity
from engine.errors import did_you_mean
from engine.nodes.convert import can_ever_fit
from engine.nodes.spec import Port
from engine.plan.resolve import Resolution, Resolved
from engine.text_sanitizing import shown


@dataclass(frozen=True, slots=True)
class Link:
    """An edge both of whose ends exist."""

    edge: Edge
    source: str
    source_port: str
    target: str
    target_port: str


def links(workflow: Workflow, resolution: Resolution) -> tuple[list[Link], list[Problem]]:
    """The edges whose ends exist, in the document's order, and the problems of all edges and unconnected ports."""
    found: list[Link] = []
    problems: list[Problem] = []
    ids = workflow.nodes_by_id
    for edge in workflow.edges:
        source, source_port = edge.source
        target, target_port = edge.target
        link = Link(edge, source, source_port, target, target_port)
        if _is_faultless(link, resolution):
            found.append(link)
            continue
        faults = list(_edge_faults(edge, workflow, resolution))
        problems.extend(faults)
        if source in ids and target in ids and not any(fault.code == "unknown-port" for fault in faults):
            found.append(link)
    problems.extend(_crowded_ports(found, resolution))
    problems.extend(_open_ports(found, resolution))
    return found, problems


def _is_faultless(link: Link, resolution: Resolution) -> bool:
    """Whether an edge joins two ports that fit: so do almost all, and they need no further look."""
    source, target = resolution.nodes.get(link.source), resolution.nodes.get(link.target)
    if source is None or target is None or link.edge.model_extra:
        return False
    start, end = source.outputs.get(link.source_port), target.inputs.get(link.target_port)
    return start is not None and end is not None and can_ever_fit(start.type, end.type)


def _edge_faults(edge: Edge, workflow: Workflow, resolution: Resolution) -> Iterator[Problem]:
    name = str(edge)
    for key in edge.unknown_keys:
        yield Problem(
            "unknown-key",
            f'An edge has no "{shown(key, 60)}"; it is kept, and means nothing.',
            "Remove it, or open the file with the version of the program that wrote it.",
            Severity.WARNING,
            edge=name,
            field=key,
        )
    ports: list[Port] = []
    for (node_id, port_name), kind in ((edge.source, "output"), (edge.target, "input")):
        if node_id not in workflow.nodes_by_id:
            yield Problem(
                "unknown-node",
                f'The edge names a node "{shown(node_id, 60)}" that is not there.',
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
            yield _unknown_port(name, resolved, kind, port_name, known)
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


def _unknown_port(edge: str, resolved: Resolved, kind: str, port: str, known: dict[str, Port]) -> Problem:
    there = ", ".join(known) if known else "none"
    return Problem(
        "unknown-port",
        f'The node "{resolved.id}" has no {kind} port "{shown(port, 60)}".',
        f"It has: {there}.",
        edge=edge,
        node=resolved.id,
        port=port,
    )


def _crowded_ports(found: list[Link], resolution: Resolution) -> Iterator[Problem]:
    taken: dict[tuple[str, str], list[Link]] = {}
    for link in found:
        taken.setdefault((link.target, link.target_port), []).append(link)
    for (target, port_name), there in taken.items():
        if len(there) == 1:
            continue
        resolved = resolution.nodes.get(target)
        for double in _doubles(there):
            yield Problem("duplicate-edge", "The same edge stands there twice.", "Remove one.", edge=str(double.edge))
        port = resolved.inputs.get(port_name) if resolved is not None else None
        if port is None or port.many:
            continue
        yield Problem(
            "too-many-edges",
            f'The input port "{port_name}" of "{target}" takes one edge, but {len(there)} lead there.',
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


def _open_ports(found: list[Link], resolution: Resolution) -> Iterator[Problem]:
    connected = {(link.target, link.target_port) for link in found}
    for resolved in resolution.nodes.values():
        for port in resolved.inputs.values():
            if port.required and (resolved.id, port.name) not in connected:
                or_else = ", or give it a value under 'Arguments'" if resolved.type == "tool" else ""
                question = did_you_mean(port.name, (name for name in resolved.inputs if name != port.name))
                yield Problem(
                    "unconnected-port",
                    f'Nothing is connected to the input port "{port.name}" of "{resolved.title}".',
                    f"{question} Draw an edge to it{or_else}.".lstrip(),
                    node=resolved.id,
                    port=port.name,
                )
