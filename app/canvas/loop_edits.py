"""Edits of loops as document operations: wrap nodes in a loop, unwrap a loop, put a node into a body or take it out.

Iterators work in the same way. No Qt here. Each function returns one operation for the whole edit; an edit that is not
possible raises an `OperationError` for the status bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.canvas.card_spacing import shifted_annotations
from app.canvas.connection_rules import successors
from app.canvas.operation_builders import (
    BODY_ROOM,
    PortLookup,
    add,
    insert_into_edge,
    reconnections,
    set_positions,
    with_hidden,
)
from app.node_layout import COLUMN_GAP, Box, Position
from engine.document.model import Edge, Node, Workflow
from engine.document.operations import AddNodes, Batch, Connect, Disconnect, Operation, OperationError, RemoveNodes
from engine.formatting import with_article
from engine.nodes.node_names import node_name
from engine.nodes.node_registry import Registry
from engine.nodes.spec import Pair
from engine.plan.graph_algorithms import reachable, reverse
from engine.plan.structure import Structure

ENDS = frozenset({"input", "output"})
"""Node types that stand outside of all loops."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as edits see it.

    Attributes:
        workflow: The document.
        structure: Its analysis.
        registry: The node types.
        positions: The position of each node.
        boxes: The size of each card; of hidden nodes, the size that their cards would have.
        hidden: The hidden nodes, each with the collapsed loop that hides it.
    """

    workflow: Workflow
    structure: Structure
    registry: Registry
    positions: Mapping[str, Position]
    boxes: Mapping[str, Box]
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def visible(self) -> dict[str, Position]:
        """The positions of the visible cards."""
        return {node: position for node, position in self.positions.items() if node not in self.hidden}

    @property
    def ports(self) -> PortLookup:
        """The ports of the nodes."""
        return PortLookup(self.workflow, self.registry, self.structure)

    def main_input(self, node: Node) -> str:
        """The end at a node's main input; empty without inputs."""
        inputs = self.ports.of(node)[0]
        return f"{node.id}.{inputs[0].name}" if inputs else ""

    def main_output(self, node: Node) -> str:
        """The end at a node's main output; empty without outputs."""
        outputs = self.ports.of(node)[1]
        return f"{node.id}.{outputs[0].name}" if outputs else ""

    def edges_into(self, node: str) -> list[Edge]:
        """The edges that lead to a node."""
        return [edge for edge in self.workflow.edges if edge.target[0] == node]

    def edges_from(self, node: str) -> list[Edge]:
        """The edges that start at a node."""
        return [edge for edge in self.workflow.edges if edge.source[0] == node]


def wrap(document: Document, node_ids: Iterable[str], pair: Pair) -> Batch:
    """Put nodes between a new loop and its exit.

    Nodes between the given ones are wrapped too. The edges from the first outside source are rerouted through the loop,
    and those from the result through the exit. If no edge leads into the nodes, the loop feeds the first free input.

    Raises:
        OperationError: These nodes cannot be the body of one loop.
    """
    workflow = document.workflow
    body = enclosed_nodes(document, node_ids, pair.start)
    inside = set(body)
    spec = document.registry.find(pair.start)
    assert spec is not None, "the registry has the built-in types"
    incoming = [edge for edge in workflow.edges if edge.target[0] in inside and edge.source[0] not in inside]
    outgoing = [edge for edge in workflow.edges if edge.source[0] in inside and edge.target[0] not in inside]
    result = _result_end(document, body, outgoing, pair)
    added = add(workflow, spec, (0.0, 0.0))
    operations: list[Operation] = [AddNodes((added.first, added.last))]
    body_end = f"{added.first.id}.{pair.body_ports[0]}"
    leading = successors(workflow, document.structure)
    ending = reachable(reverse(leading), [result.partition(".")[0]] if result else body)
    source = _source(document, body, [edge for edge in incoming if edge.target[0] in ending])
    fed = [edge for edge in incoming if edge.from_ == source]
    targets = [edge.to for edge in fed] or free_input(document, body)
    _refuse_strangers(document, body, ending | reachable(leading, (end.partition(".")[0] for end in targets)))
    operations += [Disconnect(edge.from_, edge.to) for edge in fed]
    operations += [Connect.between(body_end, target) for target in targets]
    if source:
        operations.append(Connect.between(source, document.main_input(added.first)))
    if result:
        operations += [Disconnect(edge.from_, edge.to) for edge in outgoing]
        operations.append(Connect.between(result, document.main_input(added.last)))
        followers = [edge.to for edge in outgoing] or free_output(document)
        operations += [Connect.between(document.main_output(added.last), follower) for follower in followers]
    operations += _cards_around(document, inside, added.first.id, added.last.id)
    what = node_name(workflow, body[0]) if len(body) == 1 else f"{len(body)} nodes"
    return Batch(f"Wrap {what} in {with_article(pair.start)}", tuple(operations))


def can_wrap(document: Document, node_ids: Iterable[str], pair: Pair) -> bool:
    """Return whether `wrap` would succeed."""
    try:
        wrap(document, node_ids, pair)
    except OperationError:
        return False
    return True


def unwrap(document: Document, node_id: str) -> Batch:
    """Remove a loop and its exit, and connect the body to what stands before and after them.

    Args:
        document: The document.
        node_id: The loop or its exit.

    Raises:
        OperationError: The node is neither, or has no partner.
    """
    structure, workflow = document.structure, document.workflow
    body = structure.bodies.get(structure.loop_of.get(node_id, node_id))
    if body is None:
        raise OperationError("This is not a complete loop.", "Select a loop with its exit.")
    into_loop, into_exit = document.edges_into(body.loop), document.edges_into(body.exit)
    first = [edge for edge in document.edges_from(body.loop) if edge.source[1] in body.kind.body_ports]
    results = [edge for edge in into_exit if edge.target[1] != "feedback"]
    joined = [(edge.from_, target.to) for edge in into_loop for target in first if target.target[0] != body.exit]
    joined += [(edge.from_, target.to) for edge in results for target in document.edges_from(body.exit)]
    operations = [RemoveNodes((body.loop, body.exit)), *reconnections(document.ports, joined, {body.loop, body.exit})]
    return Batch(f"Unwrap {node_name(workflow, body.loop)}", tuple(operations))


def insert_into_body(document: Document, loop: str, first: Node, last: Node, target: Position) -> tuple[Operation, ...]:
    """Put an unconnected node, or a pair, into the edge of a loop's body that is nearest to a position.

    Args:
        document: The document, which may not have the node yet.
        loop: The loop or iterator.
        first: The node, or the start of the pair.
        last: The node, or the end of the pair.
        target: Where it was dropped.

    Returns:
        The operations; none if its ports fit no edge of the body, or the loop is no longer complete.
    """
    body, parent = document.structure.bodies.get(loop), document.structure.parent
    if body is None:
        return ()
    edges = [
        edge
        for edge in document.workflow.edges
        if edge.target[1] != "feedback"
        and (parent.get(edge.source[0]) == loop or (edge.source[0] == loop and edge.source[1] in body.kind.body_ports))
        and (parent.get(edge.target[0]) == loop or edge.target[0] == body.exit)
    ]
    for edge in sorted(edges, key=lambda edge: _distance(document, edge, target)):
        operations = insert_into_edge(edge, first, last, document.ports)
        if operations is not None:
            return operations
    exit_input = document.main_input(document.workflow.nodes_by_id[body.exit])
    input_, output = document.main_input(first), document.main_output(last)
    if body.nodes or not input_ or not output or any(edge.to == exit_input for edge in document.workflow.edges):
        return ()
    return (Connect.between(f"{loop}.{body.kind.body_ports[0]}", input_), Connect.between(output, exit_input))


def take_out_of_body(document: Document, node_ids: Iterable[str]) -> tuple[Operation, ...]:
    """Cut the edges between nodes and the rest, and connect what stands before them to what stands after them."""
    group = set(node_ids)
    into = [edge for edge in document.workflow.edges if edge.target[0] in group and edge.source[0] not in group]
    out = [edge for edge in document.workflow.edges if edge.source[0] in group and edge.target[0] not in group]
    joined = [(edge.from_, target.to) for edge in into[:1] for target in out]
    cut = [Disconnect(edge.from_, edge.to) for edge in (*into, *out)]
    return (*cut, *reconnections(document.ports, joined, group))


def enclosed_nodes(document: Document, node_ids: Iterable[str], what: str) -> list[str]:
    """Return the nodes to wrap in the order of the workflow: the given ones, with loops and everything in between.

    Args:
        document: The document.
        node_ids: The given nodes.
        what: What they are wrapped in, for error messages.

    Raises:
        OperationError: None of them can be wrapped, or they are on several levels.
    """
    workflow, structure = document.workflow, document.structure
    wanted = {node for node in node_ids if workflow.nodes_by_id[node].type not in ENDS}
    if not wanted:
        raise OperationError("Nothing to wrap.", f"Select the nodes for the {what}.")
    leading = successors(workflow, structure)
    wanted = reachable(leading, wanted) & reachable(reverse(leading), wanted)
    for loop, body in structure.bodies.items():
        if loop in wanted or body.exit in wanted:
            wanted |= {loop, body.exit, *body.nodes}
    loops = {structure.parent.get(node) for node in wanted} - wanted
    if len(loops) > 1:
        raise OperationError("Some of these nodes are in a loop, and others are not.", "Select nodes on one level.")
    order = structure.order or list(workflow.nodes_by_id)
    return [node for node in order if node in wanted]


def _source(document: Document, body: list[str], incoming: list[Edge]) -> str:
    """The output that feeds the loop; empty without one."""
    return min(incoming, key=lambda edge: body.index(edge.target[0])).from_ if incoming else unused_input(document)


def unused_input(document: Document) -> str:
    """The output of the workflow's one input that leads nowhere yet; empty if there is none, or several."""
    unused = [node.id for node in document.workflow.nodes if node.type == "input" and not document.edges_from(node.id)]
    return f"{unused[0]}.value" if len(unused) == 1 else ""


def free_input(document: Document, body: list[str]) -> list[str]:
    """The first main input in the body to which nothing leads."""
    connected = {edge.to for edge in document.workflow.edges}
    mains = (document.main_input(document.workflow.nodes_by_id[node]) for node in body)
    free = (end for end in mains if end and end not in connected)
    return list(free)[:1]


def _refuse_strangers(document: Document, body: list[str], connected: set[str]) -> None:
    """Refuse nodes that neither follow from the loop's input nor lead to its result.

    A node that leads to the result and gets its values from elsewhere stays outside, and its value is a constant.
    """
    stranger = next((node for node in body if node not in connected), None)
    if stranger is not None:
        raise OperationError(
            f"“{node_name(document.workflow, stranger)}” is not connected to the other nodes.",
            "Connect the nodes first, or select those that belong together.",
        )


def _result_end(document: Document, body: list[str], outgoing: list[Edge], pair: Pair) -> str:
    """The output of the body that is its result; empty if no node has one."""
    ends = dict.fromkeys(edge.from_ for edge in outgoing)
    if len(ends) > 1:
        names = " and ".join(f"“{node_name(document.workflow, end.partition('.')[0])}”" for end in ends)
        raise OperationError(
            f"{names} lead to other nodes, and {with_article(pair.start)} has one result.",
            "Select a part with one result.",
        )
    if ends:
        return next(iter(ends))
    inside = set(body)
    for node in reversed(body):
        is_end = not any(edge.target[0] in inside for edge in document.edges_from(node))
        output = document.main_output(document.workflow.nodes_by_id[node])
        if is_end and output:
            return output
    return ""


def free_output(document: Document) -> list[str]:
    """The input of the workflow's one output, if nothing leads there yet."""
    outputs = [node for node in document.workflow.nodes if node.type == "output" and not document.edges_into(node.id)]
    return [f"{outputs[0].id}.value"] if len(outputs) == 1 else []


def _distance(document: Document, edge: Edge, point: Position) -> float:
    """The distance of a point to the straight line between the two cards of an edge."""
    source, target = edge.source[0], edge.target[0]
    ax, ay = document.positions[source][0] + document.boxes[source].width, _middle(document, source)
    bx, by = document.positions[target][0], _middle(document, target)
    length = (bx - ax) ** 2 + (by - ay) ** 2
    share = 0.0 if not length else ((point[0] - ax) * (bx - ax) + (point[1] - ay) * (by - ay)) / length
    share = min(1.0, max(0.0, share))
    return ((ax + share * (bx - ax) - point[0]) ** 2 + (ay + share * (by - ay) - point[1]) ** 2) ** 0.5


def _middle(document: Document, node: str) -> float:
    return document.positions[node][1] + document.boxes[node].height / 2


def _cards_around(document: Document, inside: set[str], start: str, end: str) -> list[Operation]:
    """Put the new loop left of the body and its exit right of it; cards, frames and notes beside it move aside."""
    positions, boxes, visible = document.positions, document.boxes, inside - document.hidden.keys()
    left = min(positions[node][0] for node in visible)
    right = max(positions[node][0] + boxes[node].width for node in visible)
    top = min(positions[node][1] for node in visible)
    width = max((box.width for box in boxes.values()), default=BODY_ROOM / 2)
    step = width + COLUMN_GAP

    def shift(start: float, end: float) -> float:
        return -step if end <= left else step if start >= right else 0.0

    moved = {
        node: (x + shift(x, x + boxes[node].width), y)
        for node, (x, y) in document.visible.items()
        if node not in inside and shift(x, x + boxes[node].width)
    }
    ends = {start: (left - step, top), end: (right + COLUMN_GAP, top)}
    all_moved = {**with_hidden(moved, positions, document.hidden), **ends}
    return [set_positions(document.workflow, all_moved), *shifted_annotations(document.workflow, shift)]
