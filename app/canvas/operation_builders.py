"""Build document operations for edits on the canvas. No Qt here.

Each function returns one operation for a whole edit, or None if there is nothing to do. `Session.do` applies it and
adds it to the undo stack under its title.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.canvas.node_card import validated_config
from app.node_layout import Position, layout_entries
from engine.document.model import Edge, Node, Workflow, make_id
from engine.document.operations import (
    AddNode,
    Batch,
    Connect,
    Disconnect,
    Operation,
    RemoveNodes,
    SetEnabled,
    SetLayout,
)
from engine.nodes.convert import can_ever_fit
from engine.nodes.pairs import PAIR_BY_START
from engine.nodes.registry import Registry
from engine.nodes.spec import AnySpec, Port
from engine.plan.structure import Structure
from engine.tools.registry import all_tools
from engine.values import Value

SNAP = 4
"""Grid of card positions."""

BODY_ROOM = 520.0
"""Distance between a new loop and its exit, with room for a body."""


def snap(place: Position) -> dict[str, Value]:
    """Return a position as stored in the layout."""
    return {"x": SNAP * round(place[0] / SNAP), "y": SNAP * round(place[1] / SNAP)}


def set_positions(workflow: Workflow, places: Mapping[str, Position]) -> SetLayout:
    """Return one operation that stores any number of positions and preserves other layout data."""
    before = layout_entries(workflow, "nodes")
    after: dict[str, Value] = dict(before)
    for node_id, place in places.items():
        stored = before.get(node_id)
        after[node_id] = {**(stored if isinstance(stored, dict) else {}), **snap(place)}
    return SetLayout(("nodes",), after)


def move(
    workflow: Workflow, places: Mapping[str, Position], others: Iterable[Operation] = (), verb: str = "Move"
) -> Batch | None:
    """Move nodes, frames and notes."""
    operations: list[Operation] = [*others]
    count = len(places) + len(operations)
    if places:
        operations.append(set_positions(workflow, places))
    if not count:
        return None
    if count == 1 and places:
        what = title_of(workflow, next(iter(places)))
    else:
        what = f"{count} nodes" if count == len(places) else f"{count} items" if count > 1 else "frame or note"
    return Batch(f"{verb} {what}", tuple(operations))


@dataclass(frozen=True, slots=True)
class Added:
    """The edit that adds a node.

    Attributes:
        operations: The operations in order.
        first: Id of the node, or of the loop or iterator of a pair.
        last: Id of the node, or of the exit or aggregator of a pair.
    """

    operations: tuple[Operation, ...]
    first: str
    last: str


def add(workflow: Workflow, spec: AnySpec, place: Position, *, tool: str = "") -> Added:
    """Add a node, with its partner if it is a loop or iterator; a tool node may be preset to a tool."""
    taken = set(workflow.nodes_by_id)
    known = all_tools().get(tool)
    title = spec.title if known is None else known.title.partition(" (")[0]
    node = _new_node(title, spec.type, {"tool": tool} if tool else {}, taken)
    operations: list[Operation] = [AddNode(node)]
    places = {node.id: place}
    last = node.id
    pair = PAIR_BY_START.get(spec.type)
    if pair is not None:
        taken.add(node.id)
        exit_ = _new_node(pair.end.capitalize(), pair.end, {pair.field: node.id}, taken)
        operations.append(AddNode(exit_))
        places[exit_.id] = (place[0] + BODY_ROOM, place[1])
        last = exit_.id
    return Added((*operations, set_positions(workflow, places)), node.id, last)


def _new_node(title: str, node_type: str, config: dict[str, Value], taken: set[str]) -> Node:
    node_id = make_id(title, taken)
    number = node_id.rpartition("_")[2]
    return Node(id=node_id, type=node_type, title=f"{title} {number}" if number.isdigit() else title, config=config)


def display_title(spec: AnySpec) -> str:
    """Return the title of a type in lists, with its partner if it adds one."""
    pair = PAIR_BY_START.get(spec.type)
    return spec.title if pair is None else f"{spec.title} and {pair.end.capitalize()}"


def add_step(spec: AnySpec, added: Added, *more: Operation) -> Batch:
    """Combine everything that adding a node takes."""
    return Batch(f"Add {display_title(spec)}", (*added.operations, *more))


def connect(workflow: Workflow, source: str, target: str, old: Edge | None, *, takes_many: bool) -> Operation:
    """Connect two ports, replacing edges if the input accepts only one."""
    gone = [] if old is None else [old]
    if not takes_many:
        gone += [edge for edge in workflow.edges if edge.to == target and edge is not old]
    made = Connect(source, target)
    if not gone:
        return made
    return Batch(made.title, (*(Disconnect(edge.from_, edge.to) for edge in gone), made))


def main_ports(node: Node, registry: Registry, structure: Structure) -> tuple[Port | None, Port | None]:
    """Return the main input and the main output of a node."""
    spec = registry.find(node.type)
    config = validated_config(node, spec, structure)
    if spec is None or config is None:
        return None, None
    inputs, outputs = spec.inputs(config), spec.all_outputs(config)
    return (inputs[0] if inputs else None), (outputs[0] if outputs else None)


def insert_into_edge(
    edge: Edge, source: Port, target: Port, first: tuple[str, Port], last: tuple[str, Port]
) -> tuple[Operation, ...] | None:
    """Insert a node, or a loop with its exit, into an edge; None if the types do not fit.

    Args:
        edge: The edge.
        source: Its source port.
        target: Its target port.
        first: Node id and input port.
        last: Node id and output port.
    """
    if not (can_ever_fit(source.type, first[1].type) and can_ever_fit(last[1].type, target.type)):
        return None
    return (
        Disconnect(edge.from_, edge.to),
        Connect(edge.from_, f"{first[0]}.{first[1].name}"),
        Connect(f"{last[0]}.{last[1].name}", edge.to),
    )


def include_pairs(workflow: Workflow, structure: Structure, node_ids: Iterable[str]) -> list[str]:
    """Return the nodes including the partner of each loop and exit."""
    wanted = dict.fromkeys(node_ids)
    for node_id in list(wanted):
        body = structure.bodies.get(node_id)
        partner = body.exit if body is not None else structure.loop_of.get(node_id)
        if partner is not None and partner in workflow.nodes_by_id:
            wanted[partner] = None
    return [node.id for node in workflow.nodes if node.id in wanted]


def delete(
    workflow: Workflow, node_ids: list[str], edges: Iterable[tuple[str, str]], others: Iterable[Operation] = ()
) -> Batch | None:
    """Delete nodes, edges, frames and notes."""
    gone = set(node_ids)
    chosen = set(edges)
    cut = [
        Disconnect(edge.from_, edge.to)
        for edge in workflow.edges
        if (edge.from_, edge.to) in chosen and not {edge.source[0], edge.target[0]} & gone
    ]
    operations: list[Operation] = [*cut, *_removal(node_ids), *others]
    if not operations:
        return None
    count = len(operations) - bool(node_ids) + len(node_ids)
    if count == 1:
        first = operations[0]
        if isinstance(first, SetLayout):
            return Batch("Delete frame or note", (first,))
        words = f"Delete {title_of(workflow, node_ids[0])}" if node_ids else first.title
        return Batch(words, (first,))
    return Batch(f"Delete {count} items" if len(gone) != count else f"Delete {count} nodes", tuple(operations))


def _removal(node_ids: list[str]) -> list[Operation]:
    return [RemoveNodes(tuple(node_ids))] if node_ids else []


def delete_and_reconnect(
    workflow: Workflow, registry: Registry, structure: Structure, node_ids: list[str]
) -> Batch | None:
    """Delete nodes and connect their predecessors to their successors where the types fit."""
    gone = set(node_ids)
    if not node_ids:
        return None
    joined: dict[tuple[str, str], None] = {}
    taken = {edge.to for edge in workflow.edges if edge.source[0] not in gone}
    there = {(edge.from_, edge.to) for edge in workflow.edges}
    for edge in workflow.edges:
        if edge.source[0] not in gone or edge.target[0] in gone:
            continue
        for source in _sources_before(edge.source[0], workflow, gone):
            pair = (source, edge.to)
            if pair in there or pair in joined or not _ports_fit(pair, workflow, registry, structure):
                continue
            if edge.to in taken and not _takes_many(edge.to, workflow, registry, structure):
                continue
            joined[pair] = None
            taken.add(edge.to)
    what = title_of(workflow, node_ids[0]) if len(node_ids) == 1 else f"{len(node_ids)} nodes"
    return Batch(f"Delete {what} and reconnect", (*_removal(node_ids), *(Connect(*pair) for pair in joined)))


def _sources_before(node_id: str, workflow: Workflow, gone: set[str]) -> list[str]:
    """Return the outputs that lead to a deleted node, also through other deleted ones."""
    found: dict[str, None] = {}
    waiting, seen = [node_id], {node_id}
    while waiting:
        here = waiting.pop()
        for edge in workflow.edges:
            if edge.target[0] != here:
                continue
            if edge.source[0] not in gone:
                found[edge.from_] = None
            elif edge.source[0] not in seen:
                seen.add(edge.source[0])
                waiting.append(edge.source[0])
    return list(found)


def find_port(end: str, workflow: Workflow, registry: Registry, structure: Structure, *, is_input: bool) -> Port | None:
    """Return the port at an end of an edge, or None if it does not exist."""
    node_id, _, name = end.partition(".")
    node = workflow.nodes_by_id.get(node_id)
    spec = registry.find(node.type) if node is not None else None
    config = validated_config(node, spec, structure) if node is not None else None
    if spec is None or config is None:
        return None
    ports = spec.inputs(config) if is_input else spec.all_outputs(config)
    return next((port for port in ports if port.name == name), None)


def _ports_fit(pair: tuple[str, str], workflow: Workflow, registry: Registry, structure: Structure) -> bool:
    source = find_port(pair[0], workflow, registry, structure, is_input=False)
    target = find_port(pair[1], workflow, registry, structure, is_input=True)
    return source is not None and target is not None and can_ever_fit(source.type, target.type)


def _takes_many(end: str, workflow: Workflow, registry: Registry, structure: Structure) -> bool:
    port = find_port(end, workflow, registry, structure, is_input=True)
    return port is not None and port.many


def toggle_enabled(workflow: Workflow, node_ids: Iterable[str]) -> Operation | None:
    """Disable nodes, or enable them if all are disabled."""
    nodes = [workflow.nodes_by_id[node_id] for node_id in node_ids]
    if not nodes:
        return None
    enabled = not any(node.enabled for node in nodes)
    changes = tuple(SetEnabled(node.id, enabled) for node in nodes if node.enabled is not enabled)
    if len(changes) == 1:
        return changes[0]
    return Batch(f"{'Enable' if enabled else 'Disable'} {len(changes)} nodes", changes)


def title_of(workflow: Workflow, node_id: str) -> str:
    """Return a node's name in the titles of operations."""
    node = workflow.nodes_by_id[node_id]
    return node.title or node.id
