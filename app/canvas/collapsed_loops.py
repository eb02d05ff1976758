"""Collapsed loops: one card in place of a loop, its body and its exit, and the edits that collapse and expand it.

The layout stores `collapsed` with the position of the loop, so that it is copied, renamed and deleted with it. The
hidden cards keep their positions relative to the loop. No Qt here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from app.canvas.card_spacing import Area, close_gap, make_room
from app.canvas.loop_edits import Document
from app.canvas.node_card import CardViewModel, PortViewModel
from app.canvas.operation_builders import set_positions, with_hidden
from app.node_layout import Box, Position, layout_entries, stored_position
from engine.document.model import Workflow
from engine.document.operations import UNSET, Batch, Operation, OperationError, SetLayout
from engine.formatting import format_count
from engine.nodes.node_names import node_name
from engine.plan.loop_bodies import Body
from engine.plan.structure import Structure
from engine.values import Value

COLLAPSED: Final = "collapsed"
"""Key in the layout entry of a loop or iterator."""


def collapsed_bodies(workflow: Workflow, structure: Structure) -> dict[str, Body]:
    """Return the bodies of the collapsed loops and iterators by the loop's id; a loop without a body is never one."""
    entries = layout_entries(workflow, "nodes")
    marked = [node for node, entry in entries.items() if isinstance(entry, dict) and entry.get(COLLAPSED) is True]
    bodies = {loop: structure.bodies[loop] for loop in marked if loop in structure.bodies}
    nodes = workflow.nodes_by_id  # the structure follows an edit with a delay
    return {loop: body for loop, body in bodies.items() if loop in nodes and body.exit in nodes and body.nodes}


def hidden_nodes(bodies: Iterable[Body], nodes: Collection[str]) -> dict[str, str]:
    """Return the nodes that collapsed loops hide, each with the outermost loop that hides it."""
    hidden: dict[str, str] = {}
    for body in sorted(bodies, key=lambda body: -len(body.nodes)):
        if body.loop not in hidden:
            hidden |= dict.fromkeys((node for node in (*body.nodes, body.exit) if node in nodes), body.loop)
    return hidden


def collapsed_card(
    own: CardViewModel, body: Body, hidden: Mapping[str, CardViewModel], workflow: Workflow
) -> CardViewModel:
    """Build the card of a collapsed loop: its ports are those of the loop and its body that edges from outside use.

    Args:
        own: The card of the loop itself.
        body: Its body.
        hidden: The cards of the nodes in the body, and of the exit.
        workflow: The document.
    """
    inputs: dict[str, PortViewModel] = {}
    outputs = {f"{body.exit}.{port.name}": replace(port, node=body.exit) for port in hidden[body.exit].outputs}
    for edge in workflow.edges:
        (source, source_port), (target, target_port) = edge.source, edge.target
        if target in hidden and source not in hidden and source != body.loop:
            inputs |= {edge.to: _stand_in(hidden[target].inputs, target, target_port)}
        elif source in hidden and target not in hidden and target != body.loop and edge.from_ not in outputs:
            outputs |= {edge.from_: _stand_in(hidden[source].outputs, source, source_port)}
    inner = set(body.kind.body_ports)
    inner -= {edge.source[1] for edge in workflow.edges if edge.source[0] == body.loop and edge.target[0] not in hidden}
    after = tuple(port for port in own.outputs if port.name not in inner)
    return replace(
        own,
        summary=f"{format_count(len(body.nodes), 'node')} · {own.summary}",
        inputs=(*own.inputs, *inputs.values()),
        outputs=(*outputs.values(), *after),
        collapsed=len(body.nodes),
    )


def _stand_in(ports: Iterable[PortViewModel], node: str, name: str) -> PortViewModel:
    """Return the port of a hidden node, as shown on the card of its loop."""
    found = next((port for port in ports if port.name == name), PortViewModel(name, known=False))
    return replace(found, node=node)


def collapse(document: Document, loop: str, card: Box) -> Batch:
    """Collapse a loop, and close the gap unless cards would overlap.

    Args:
        document: The document.
        loop: The loop or iterator.
        card: Size of its card when collapsed.

    Raises:
        OperationError: The loop has no body.
    """
    body, visible = _body_of(document, loop), document.visible
    inside = {node: visible.pop(node) for node in (loop, body.exit, *body.nodes) if node in visible}
    small = Area.around({loop: inside[loop]}, {loop: card})
    moved, others = close_gap(document.workflow, visible, document.boxes, Area.around(inside, document.boxes), small)
    return _batch(document, f"Collapse {node_name(document.workflow, loop)}", loop, moved, others, collapsed=True)


def expand(document: Document, loop: str, card: Box) -> Batch:
    """Expand a collapsed loop, and move cards out of its way.

    Args:
        document: The document.
        loop: The loop or iterator.
        card: Size of its own card.

    Raises:
        OperationError: The loop has no body.
    """
    body, visible = _body_of(document, loop), document.visible
    bodies = collapsed_bodies(document.workflow, document.structure)
    bodies.pop(loop, None)
    still_hidden = hidden_nodes(bodies.values(), document.positions)
    members = (loop, body.exit, *body.nodes)
    inside = {node: document.positions[node] for node in members if node not in still_hidden}
    small = Area.around({loop: visible.pop(loop)}, document.boxes)
    area = Area.around(inside, {**document.boxes, loop: card})
    moved, others = make_room(document.workflow, visible, document.boxes, area, small)
    return _batch(document, f"Expand {node_name(document.workflow, loop)}", loop, moved, others, collapsed=False)


def _body_of(document: Document, loop: str) -> Body:
    body = document.structure.bodies.get(loop)
    if body is None or not body.nodes:
        raise OperationError("This loop has no body yet.", "Add a node between the loop and its exit.")
    return body


def _batch(
    document: Document,
    title: str,
    loop: str,
    moved: Mapping[str, Position],
    others: Iterable[Operation],
    *,
    collapsed: bool,
) -> Batch:
    """Store the flag, with every position that the document does not have yet."""
    workflow = document.workflow
    computed = {node: at for node, at in document.positions.items() if stored_position(workflow, node) is None}
    positions = {**computed, **with_hidden(moved, document.positions, document.hidden)}
    flag: Value = True
    return Batch(
        title,
        (
            set_positions(workflow, {loop: document.positions[loop], **positions}),
            *others,
            SetLayout(("nodes", loop, COLLAPSED), flag if collapsed else UNSET),
        ),
    )
