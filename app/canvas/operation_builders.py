"""Build document operations for edits on the canvas. No Qt here.

Each function returns one operation for a whole edit, or None if there is nothing to do. `Session.do` applies it and
adds it to the undo stack under its title.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from app.canvas.node_card import validated_config
from app.node_layout import Position, layout_entries
from engine.document.model import Edge, Node, Workflow, make_id
from engine.document.operations import (
    AddNodes,
    Batch,
    Connect,
    Disconnect,
    Operation,
    RemoveNodes,
    SetEnabled,
    SetLayout,
)
from engine.nodes.json_values import can_ever_fit
from engine.nodes.node_names import node_name
from engine.nodes.node_registry import Registry
from engine.nodes.spec import PAIR_BY_START, AnySpec, Port
from engine.plan.structure import Structure
from engine.tools.registry import all_tools
from engine.values import Value

SNAP = 4
"""Grid of card positions."""

BODY_ROOM = 520.0
"""Distance between a new loop and its exit, with room for a body."""


def set_positions(workflow: Workflow, positions: Mapping[str, Position]) -> SetLayout:
    """Return one operation that stores any number of positions and preserves other layout data."""
    before = layout_entries(workflow, "nodes")
    after: dict[str, Value] = dict(before)
    for node_id, (x, y) in positions.items():
        stored = before.get(node_id)
        snapped = {"x": SNAP * round(x / SNAP), "y": SNAP * round(y / SNAP)}
        after[node_id] = {**(stored if isinstance(stored, dict) else {}), **snapped}
    return SetLayout(("nodes",), after)


def with_hidden(
    moved: Mapping[str, Position], before: Mapping[str, Position], hidden: Mapping[str, str]
) -> dict[str, Position]:
    """Add the hidden nodes of moved loops to new positions.

    Args:
        moved: New positions.
        before: Positions of all nodes before the move.
        hidden: The hidden nodes, each with the collapsed loop that hides it.
    """
    positions = dict(moved)
    for node, loop in hidden.items():
        if loop in moved:
            (x, y), (old_x, old_y) = moved[loop], before[loop]
            positions[node] = (before[node][0] + x - old_x, before[node][1] + y - old_y)
    return positions


def move(
    workflow: Workflow,
    positions: Mapping[str, Position],
    others: Iterable[Operation] = (),
    verb: str = "Move",
    hidden: Collection[str] = (),
) -> Batch | None:
    """Move nodes, frames and notes; nodes that a collapsed loop hides do not count in the title."""
    operations: list[Operation] = [*others]
    cards = [node for node in positions if node not in hidden]
    count = len(cards) + len(operations)
    if positions:
        operations.append(set_positions(workflow, positions))
    if not count:
        return None
    if count == 1 and cards:
        what = node_name(workflow, cards[0])
    else:
        what = f"{count} nodes" if count == len(cards) else f"{count} items" if count > 1 else "frame or note"
    return Batch(f"{verb} {what}", tuple(operations))


@dataclass(frozen=True, slots=True)
class AddedNode:
    """The edit that adds a node.

    Attributes:
        title: Title of the edit.
        operations: The operations in order.
        first: The node, or the loop or iterator of a pair.
        last: The node, or the exit or aggregator of a pair.
    """

    title: str
    operations: tuple[Operation, ...]
    first: Node
    last: Node

    def with_operations(self, *more: Operation) -> Batch:
        """Combine everything that adding the node takes."""
        return Batch(self.title, (*self.operations, *more))


def add(workflow: Workflow, spec: AnySpec, position: Position, *, tool: str = "") -> AddedNode:
    """Add a node, with its partner if it is a loop or iterator; a tool node may be preset to a tool."""
    taken = set(workflow.nodes_by_id)
    known = all_tools().get(tool)
    title = spec.title if known is None else known.title.partition(" (")[0]
    node = last = new_node(title, spec.type, {"tool": tool} if tool else {}, taken)
    nodes = (node,)
    positions = {node.id: position}
    pair = PAIR_BY_START.get(spec.type)
    if pair is not None:
        taken.add(node.id)
        last = new_node(pair.end.capitalize(), pair.end, {pair.field: node.id}, taken)
        nodes = (node, last)
        positions[last.id] = (position[0] + BODY_ROOM, position[1])
    operations = (AddNodes(nodes), set_positions(workflow, positions))
    return AddedNode(f"Add {display_title(spec)}", operations, node, last)


def new_node(title: str, node_type: str, config: dict[str, Value], taken: set[str]) -> Node:
    """Make a node with a unique id, and a title with the same number."""
    node_id = make_id(title, taken)
    number = node_id.rpartition("_")[2]
    return Node(id=node_id, type=node_type, title=f"{title} {number}" if number.isdigit() else title, config=config)


def display_title(spec: AnySpec) -> str:
    """Return the title of a type in lists, with its partner if it adds one."""
    pair = PAIR_BY_START.get(spec.type)
    return spec.title if pair is None else f"{spec.title} and {pair.end.capitalize()}"


@dataclass(frozen=True, slots=True)
class PortLookup:
    """The ports of the nodes of a document.

    Attributes:
        workflow: The document.
        registry: The node types.
        structure: The structure, which may be slightly out of date.
    """

    workflow: Workflow
    registry: Registry
    structure: Structure

    def of(self, node: Node) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """Return inputs and outputs of a node; empty if its type or configuration is invalid."""
        spec = self.registry.find(node.type)
        config = validated_config(node, spec, self.structure)
        return ((), ()) if spec is None or config is None else (spec.inputs(config), spec.all_outputs(config))

    def at(self, end: str, *, is_input: bool) -> Port | None:
        """Return the port at an end of an edge, or None if it does not exist."""
        node_id, _, name = end.partition(".")
        node = self.workflow.nodes_by_id.get(node_id)
        if node is None:
            return None
        inputs, outputs = self.of(node)
        return next((port for port in (inputs if is_input else outputs) if port.name == name), None)


def connect(
    workflow: Workflow, source: str, target: str, old: Edge | None = None, *, takes_many: bool
) -> tuple[Operation, ...]:
    """Connect two ports, replacing the old edge, and all others if the input accepts only one."""
    replaced = [edge for edge in workflow.edges if edge is old or (edge.to == target and not takes_many)]
    return (*(Disconnect(edge.from_, edge.to) for edge in replaced), Connect.between(source, target))


def insert_into_edge(edge: Edge, first: Node, last: Node, ports: PortLookup) -> tuple[Operation, ...] | None:
    """Insert a node, or a loop (`first`) with its exit (`last`), into an edge; None if the types do not fit."""
    source, target = ports.at(edge.from_, is_input=False), ports.at(edge.to, is_input=True)
    inputs, outputs = ports.of(first)[0], ports.of(last)[1]
    if source is None or target is None or not inputs or not outputs:
        return None
    if not (can_ever_fit(source.type, inputs[0].type) and can_ever_fit(outputs[0].type, target.type)):
        return None
    return (
        Disconnect(edge.from_, edge.to),
        Connect.between(edge.from_, f"{first.id}.{inputs[0].name}"),
        Connect.between(f"{last.id}.{outputs[0].name}", edge.to),
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
    removed = set(node_ids)
    selected = set(edges)
    disconnected = [
        Disconnect(edge.from_, edge.to)
        for edge in workflow.edges
        if (edge.from_, edge.to) in selected and not {edge.source[0], edge.target[0]} & removed
    ]
    nodes = [RemoveNodes(tuple(node_ids))] if node_ids else []
    operations: list[Operation] = [*disconnected, *nodes, *others]
    if not operations:
        return None
    count = len(operations) - bool(node_ids) + len(node_ids)
    if count == 1:
        first = operations[0]
        if isinstance(first, SetLayout):
            return Batch("Delete frame or note", (first,))
        return Batch(f"Delete {node_name(workflow, node_ids[0])}" if node_ids else first.title, (first,))
    return Batch(f"Delete {count} items" if len(removed) != count else f"Delete {count} nodes", tuple(operations))


def delete_and_reconnect(ports: PortLookup, node_ids: list[str]) -> Batch | None:
    """Delete nodes and connect their predecessors to their successors where the types fit."""
    workflow, removed = ports.workflow, set(node_ids)
    if not node_ids:
        return None
    pairs = [
        (end, edge.to)
        for edge in workflow.edges
        if edge.source[0] in removed
        for end in _sources_before(edge.source[0], workflow, removed)
    ]
    what = node_name(workflow, node_ids[0]) if len(node_ids) == 1 else f"{len(node_ids)} nodes"
    return Batch(f"Delete {what} and reconnect", (RemoveNodes(tuple(node_ids)), *reconnections(ports, pairs, removed)))


def reconnections(ports: PortLookup, pairs: Iterable[tuple[str, str]], removed: set[str]) -> list[Connect]:
    """Connect outputs to inputs across removed nodes, if the types fit, the input has room and no edge exists yet."""
    edges = ports.workflow.edges
    connected: dict[tuple[str, str], None] = {}
    taken = {edge.to for edge in edges if edge.source[0] not in removed}
    existing = {(edge.from_, edge.to) for edge in edges}
    for start, end in pairs:
        if start.partition(".")[0] in removed or end.partition(".")[0] in removed:
            continue
        source, target = ports.at(start, is_input=False), ports.at(end, is_input=True)
        if source is None or target is None or not can_ever_fit(source.type, target.type):
            continue
        if (start, end) not in existing and (start, end) not in connected and (target.many or end not in taken):
            connected[start, end] = None
            taken.add(end)
    return [Connect.between(*pair) for pair in connected]


def _sources_before(node_id: str, workflow: Workflow, removed: set[str]) -> list[str]:
    """Return the outputs that lead to a deleted node, also through other deleted ones."""
    found: dict[str, None] = {}
    waiting, seen = [node_id], {node_id}
    while waiting:
        current = waiting.pop()
        for edge in workflow.edges:
            if edge.target[0] != current:
                continue
            if edge.source[0] not in removed:
                found[edge.from_] = None
            elif edge.source[0] not in seen:
                seen.add(edge.source[0])
                waiting.append(edge.source[0])
    return list(found)


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
