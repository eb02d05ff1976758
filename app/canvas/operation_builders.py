"""What people do on the canvas, as operations on the document. No Qt here.

Each function looks at a workflow and gives the one operation that does the whole step, or None where there is nothing
to do; `Session.do` carries it out and remembers it under its title.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.canvas.annotations import layout_entries
from app.canvas.node_card import validated_config
from engine.document.model import Edge, Node, Workflow, make_id
from engine.document.operation import Batch, Operation
from engine.document.operations import AddNode, Connect, Disconnect, RemoveNodes, SetEnabled, SetLayout
from engine.nodes.convert import can_ever_fit
from engine.nodes.pairs import PAIR_BY_START
from engine.nodes.registry import Registry
from engine.nodes.spec import AnySpec, Port
from engine.plan.structure import Structure
from engine.tools.registry import all_tools
from engine.values import Value

Position = tuple[float, float]

SNAP = 4
"""Cards stand on multiples of this."""

BODY_ROOM = 520.0
"""How far right of a new loop its exit stands: room for a body."""


def snap(place: Position) -> dict[str, Value]:
    """A place as the document keeps it."""
    return {"x": SNAP * round(place[0] / SNAP), "y": SNAP * round(place[1] / SNAP)}


def set_positions(workflow: Workflow, places: Mapping[str, Position]) -> SetLayout:
    """One change of the layout for any number of places; what else it says of the nodes stays."""
    before = layout_entries(workflow, "nodes")
    after: dict[str, Value] = dict(before)
    for node_id, place in places.items():
        kept = before.get(node_id)
        after[node_id] = {**(kept if isinstance(kept, dict) else {}), **snap(place)}
    return SetLayout(("nodes",), after)


def move(
    workflow: Workflow, places: Mapping[str, Position], others: Iterable[Operation] = (), verb: str = "Move"
) -> Batch | None:
    """Put nodes, and with them frames and notes, somewhere else."""
    operations: list[Operation] = [*others]
    count = len(places) + len(operations)
    if places:
        operations.append(set_positions(workflow, places))
    if not count:
        return None
    if count == 1 and places:
        what = title_of(workflow, next(iter(places)))
    else:
        what = f"{count} nodes" if count == len(places) else f"{count} things" if count > 1 else "a frame or note"
    return Batch(f"{verb} {what}", tuple(operations))


@dataclass(frozen=True, slots=True)
class Added:
    """What adding a node does.

    Attributes:
        operations: In their order.
        first: Id of the node; of the loop or iterator, where one comes with its end.
        last: Id of the node; of the exit or aggregator, where its start brings it.
    """

    operations: tuple[Operation, ...]
    first: str
    last: str


def add(workflow: Workflow, spec: AnySpec, place: Position, *, tool: str = "") -> Added:
    """Add a node of a type; a loop or iterator brings its end, a tool node may call a tool from the start."""
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
    """What a type is called where it is offered: with the one that it brings, if it brings one."""
    pair = PAIR_BY_START.get(spec.type)
    return spec.title if pair is None else f"{spec.title} and {pair.end.capitalize()}"


def add_step(spec: AnySpec, added: Added, *more: Operation) -> Batch:
    """The whole step of adding a node."""
    return Batch(f"Add {display_title(spec)}", (*added.operations, *more))


def connect(workflow: Workflow, source: str, target: str, old: Edge | None, *, takes_many: bool) -> Operation:
    """Draw an edge; one that it takes the place of goes."""
    gone = [] if old is None else [old]
    if not takes_many:
        gone += [edge for edge in workflow.edges if edge.to == target and edge is not old]
    made = Connect(source, target)
    if not gone:
        return made
    return Batch(made.title, (*(Disconnect(edge.from_, edge.to) for edge in gone), made))


def main_ports(node: Node, registry: Registry, structure: Structure) -> tuple[Port | None, Port | None]:
    """The port that a value comes in by, and the one that it goes on by, if there are any."""
    spec = registry.find(node.type)
    config = validated_config(node, spec, structure)
    if spec is None or config is None:
        return None, None
    inputs, outputs = spec.inputs(config), spec.all_outputs(config)
    return (inputs[0] if inputs else None), (outputs[0] if outputs else None)


def insert_into_edge(
    edge: Edge, source: Port, target: Port, first: tuple[str, Port], last: tuple[str, Port]
) -> tuple[Operation, ...] | None:
    """Put a node (of a loop: its start and its exit) into an edge; None where it does not fit.

    Args:
        edge: The edge.
        source: The port that it starts at.
        target: The port that it leads to.
        first: Node id and port that the value comes in by.
        last: Node id and port that it goes on by.
    """
    if not (can_ever_fit(source.type, first[1].type) and can_ever_fit(last[1].type, target.type)):
        return None
    return (
        Disconnect(edge.from_, edge.to),
        Connect(edge.from_, f"{first[0]}.{first[1].name}"),
        Connect(f"{last[0]}.{last[1].name}", edge.to),
    )


def include_pairs(workflow: Workflow, structure: Structure, node_ids: Iterable[str]) -> list[str]:
    """The nodes, and for each loop among them its exit, for each exit its loop: they are one thing."""
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
    """Take nodes, edges, frames and notes out."""
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
            return Batch("Delete a frame or note", (first,))
        words = f"Delete {title_of(workflow, node_ids[0])}" if node_ids else first.title
        return Batch(words, (first,))
    return Batch(f"Delete {count} things" if len(gone) != count else f"Delete {count} nodes", tuple(operations))


def _removal(node_ids: list[str]) -> list[Operation]:
    return [RemoveNodes(tuple(node_ids))] if node_ids else []


def delete_and_reconnect(
    workflow: Workflow, registry: Registry, structure: Structure, node_ids: list[str]
) -> Batch | None:
    """Take nodes out and lead what reached them on to where they led, wherever the types fit."""
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
    """The ends that lead to a node that goes; through others that go, too."""
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
    """The port at one end of an edge; None where its node has no such port."""
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
    """Switch nodes off; on again, if none of them is on."""
    nodes = [workflow.nodes_by_id[node_id] for node_id in node_ids]
    if not nodes:
        return None
    enabled = not any(node.enabled for node in nodes)
    changes = tuple(SetEnabled(node.id, enabled) for node in nodes if node.enabled is not enabled)
    if len(changes) == 1:
        return changes[0]
    return Batch(f"{'Enable' if enabled else 'Disable'} {len(changes)} nodes", changes)


def title_of(workflow: Workflow, node_id: str) -> str:
    """What to call a node in the title of a step."""
    node = workflow.nodes_by_id[node_id]
    return node.title or node.id
