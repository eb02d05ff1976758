"""Edits of subflows as document operations: wrap nodes in a subflow, and replace a subflow by its nodes.

No Qt here. Both return one operation for the whole edit.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from app.canvas.card_spacing import Area, close_gap, make_room
from app.canvas.loop_edits import Document, enclosed_nodes, free_input, free_output, unused_input
from app.canvas.node_card import card_box, card_view_model
from app.canvas.operation_builders import new_node, set_positions, title_of, with_hidden
from app.node_layout import Position, auto_layout, layout_entries, stored_position
from engine.document.files import dumps
from engine.document.migrate import upgraded_copy
from engine.document.model import Edge, Node, Workflow, make_id
from engine.document.operations import (
    AddNode,
    Batch,
    Connect,
    Operation,
    OperationError,
    RemoveNodes,
    rename_references,
)
from engine.document.problems import Severity
from engine.nodes.spec import PortType
from engine.nodes.subflow import SUBFLOW
from engine.plan.structure import analyse, with_own_model
from engine.plan.validation import validate_structure
from engine.values import Value

_COLUMN: Final = 260.0
"""Distance of the inputs and outputs from the nodes in a new subflow."""


def extract_subflow(document: Document, node_ids: Iterable[str]) -> Batch:
    """Replace nodes by one subflow that contains them.

    Nodes between the given ones are included. Each value from outside becomes an input of the subflow, and each value
    that is used outside becomes an output.

    Raises:
        OperationError: These nodes cannot work in a workflow of their own.
    """
    workflow = document.workflow
    body = enclosed_nodes(document, node_ids, "subflow")
    inside = set(body)
    incoming = [edge for edge in workflow.edges if edge.target[0] in inside and edge.source[0] not in inside]
    outgoing = [edge for edge in workflow.edges if edge.source[0] in inside and edge.target[0] not in inside]
    fed = [(edge.from_, edge.to) for edge in incoming]
    if not fed and (source := unused_input(document)):
        fed = [(source, end) for end in free_input(document, body)]
    used = [(edge.from_, edge.to) for edge in outgoing] or [
        (end, follower) for end in _last_output(document, body) for follower in free_output(document) or [""]
    ]
    taken = set(inside)
    inputs = _inputs(document, fed, taken)
    outputs = _outputs([source for source, _ in used], taken)
    subflow = new_node("Subflow", SUBFLOW, {}, set(workflow.nodes_by_id))
    inner = Workflow(
        name=subflow.title,
        nodes=(*inputs.values(), *(workflow.nodes_by_id[node] for node in body), *outputs.values()),
        edges=(
            *(_edge(f"{inputs[source].id}.value", target) for source, target in fed),
            *(edge for edge in workflow.edges if edge.source[0] in inside and edge.target[0] in inside),
            *(_edge(source, f"{node.id}.value") for source, node in outputs.items()),
        ),
    )
    inner = inner.model_copy(update={"layout": _inner_layout(document, inner, inputs, outputs)})
    subflow = subflow.model_copy(update={"config": {"workflow": json.loads(dumps(inner))}})
    connections = dict.fromkeys((source, f"{subflow.id}.{inputs[source].id}") for source, _ in fed)
    connections |= dict.fromkeys((f"{subflow.id}.{outputs[source].id}", target) for source, target in used if target)
    operations = [
        RemoveNodes(tuple(body)),
        AddNode(subflow),
        *(Connect(*ends) for ends in connections),
        *_in_place_of(document, body, subflow),
    ]
    what = title_of(workflow, body[0]) if len(body) == 1 else f"{len(body)} nodes"
    batch = Batch(f"Wrap {what} in a subflow", tuple(operations))
    _refuse_new_problems(document, batch)
    return batch


def inline_subflow(document: Document, node_id: str) -> Batch:
    """Replace a subflow by the nodes of its workflow.

    Raises:
        OperationError: Its workflow was not read.
    """
    workflow, node = document.workflow, document.workflow.nodes_by_id[node_id]
    inner = with_own_model(_content(node), document.registry)
    is_top = node_id not in document.structure.parent
    sources: dict[str, list[str]] = {}
    targets: dict[str, list[str]] = {}
    for edge in workflow.edges:
        if edge.target[0] == node_id:
            sources.setdefault(edge.target[1], []).append(edge.from_)
        elif edge.source[0] == node_id:
            targets.setdefault(edge.source[1], []).append(edge.to)
    ports = {one.id: str(one.config.get("name") or one.id) for one in inner.nodes if one.type in {"input", "output"}}
    kept = [
        one
        for one in inner.nodes
        if one.id not in ports or (one.type == "input" and is_top and ports[one.id] not in sources)
    ]
    taken, names = set(workflow.nodes_by_id) - {node_id}, dict[str, str]()
    for one in kept:
        names[one.id] = make_id(one.id, taken)
        taken.add(names[one.id])
    joined: dict[tuple[str, str], None] = {}
    for edge in inner.edges:
        starts = _outside(edge.source, names, sources, ports)
        joined |= dict.fromkeys(
            (start, end) for start in starts for end in _outside(edge.target, names, targets, ports)
        )
    placed, others = _spread(document, node_id, inner, names)
    layout, entries = _without(workflow, [node_id]), layout_entries(inner, "nodes")
    layout["nodes"] |= {name: entries[one] for one, name in names.items() if one in entries}
    operations = [
        RemoveNodes((node_id,)),
        *(AddNode(rename_references(one.model_copy(update={"id": names[one.id]}), names)) for one in kept),
        *(Connect(*ends) for ends in joined),
        set_positions(workflow.model_copy(update={"layout": layout}), placed),
        *others,
    ]
    return Batch(f"Unwrap {title_of(workflow, node_id)}", tuple(operations))


def _edge(source: str, target: str) -> Edge:
    return Edge.model_validate({"from": source, "to": target})


def _last_output(document: Document, body: list[str]) -> list[str]:
    """The output of the last node to which no other is connected."""
    for node in reversed(body):
        end = document.main_output(document.workflow.nodes_by_id[node])
        if end and not document.edges_from(node):
            return [end]
    return []


def _inputs(document: Document, fed: Iterable[tuple[str, str]], taken: set[str]) -> dict[str, Node]:
    """The inputs of a subflow by the values from outside, named after the ports that use them first."""
    made: dict[str, Node] = {}
    for source, target in fed:
        if source not in made:
            found = document.ports.at(source, is_input=False)
            config: dict[str, Value] = {"type": str(found.type if found is not None else PortType.ANY)}
            made[source] = new_node(target.rpartition(".")[2].capitalize(), "input", config, taken)
            taken.add(made[source].id)
    return made


def _outputs(sources: Iterable[str], taken: set[str]) -> dict[str, Node]:
    """The outputs of a subflow by the values that are used outside."""
    made: dict[str, Node] = {}
    wanted = list(dict.fromkeys(sources))
    for source in wanted:
        node_id, _, port = source.partition(".")
        made[source] = new_node("Result" if len(wanted) == 1 else f"{node_id} {port}", "output", {}, taken)
        taken.add(made[source].id)
    return made


def _inner_layout(
    document: Document, inner: Workflow, inputs: Mapping[str, Node], outputs: Mapping[str, Node]
) -> dict[str, Any]:
    """The layout of a new subflow: as before, with the inputs left and the outputs right of the nodes."""
    here = {node.id: document.positions[node.id] for node in inner.nodes if node.id in document.positions}
    area = Area.around(here, document.boxes)
    rows = ((inputs, area.left - _COLUMN), (outputs, area.right + _COLUMN / 3))
    positions: dict[str, Position] = dict(here)
    for nodes, x in rows:
        positions |= {node.id: (x, area.top + 120 * row) for row, node in enumerate(nodes.values())}
    entries = layout_entries(document.workflow, "nodes")
    old = inner.model_copy(update={"layout": {"nodes": {node: entries[node] for node in here if node in entries}}})
    return set_positions(old, positions).apply(old)[0].layout


def _in_place_of(document: Document, body: list[str], subflow: Node) -> Iterable[Operation]:
    """Put a new card where the nodes were, and close the gap."""
    visible = document.visible
    inside = {node: visible.pop(node) for node in body if node in visible}
    area = Area.around(inside, document.boxes)
    box = card_box(card_view_model(subflow, document.registry, document.structure, (), ()))
    corner = (area.left, area.top)
    small = Area.around({subflow.id: corner}, {subflow.id: box})
    moved, others = close_gap(document.workflow, visible, document.boxes, area, small)
    left = document.workflow.model_copy(update={"layout": _without(document.workflow, body)})
    return (
        set_positions(left, {subflow.id: corner, **with_hidden(moved, document.positions, document.hidden)}),
        *others,
    )


def _without(workflow: Workflow, gone: Iterable[str]) -> dict[str, Any]:
    """The layout without the positions of some nodes."""
    removed = set(gone)
    entries = {key: entry for key, entry in layout_entries(workflow, "nodes").items() if key not in removed}
    return {**workflow.layout, "nodes": entries}


def _refuse_new_problems(document: Document, batch: Batch) -> None:
    """Refuse an edit after which the document has errors that it did not have before."""
    before = validate_structure(document.structure)
    after = validate_structure(analyse(batch.apply(document.workflow)[0], document.registry))
    known = Counter(problem.code for problem in before)
    for problem in after:
        if problem.severity is Severity.ERROR and not known[problem.code]:
            raise OperationError(f"These nodes cannot become a subflow: {problem.message}", problem.remedy)
        known[problem.code] -= 1


def _content(node: Node) -> Workflow:
    copy = node.config.get("workflow")
    try:
        if isinstance(copy, dict):
            return Workflow.model_validate(upgraded_copy(copy))
    except ValidationError:
        pass
    raise OperationError("The workflow of this subflow was not read.", "Choose its file in the properties.")


def _outside(
    end: tuple[str, str], names: Mapping[str, str], joined: Mapping[str, list[str]], ports: Mapping[str, str]
) -> list[str]:
    """The ends outside of a subflow that stand for an end of an edge inside."""
    node, port = end
    return [f"{names[node]}.{port}"] if node in names else joined.get(ports.get(node, ""), [])


def _spread(
    document: Document, node_id: str, inner: Workflow, names: Mapping[str, str]
) -> tuple[dict[str, Position], list[Operation]]:
    """Positions of the nodes of a subflow in its place, and of the cards that make room for them."""
    visible = document.visible
    corner = visible.pop(node_id)
    structure = analyse(inner, document.registry)
    boxes = {node.id: card_box(card_view_model(node, document.registry, structure, (), ())) for node in inner.nodes}
    there = {node: position for node in names if (position := stored_position(inner, node)) is not None}
    if len(there) < len(names):
        computed = auto_layout(inner, structure, boxes)
        there = {node: computed[node] for node in names}
    if not there:
        return {}, []
    left, top = (min(position[axis] for position in there.values()) for axis in (0, 1))
    placed = {names[node]: (corner[0] + x - left, corner[1] + y - top) for node, (x, y) in there.items()}
    area = Area.around(placed, {names[node]: boxes[node] for node in names})
    small = Area.around({node_id: corner}, document.boxes)
    moved, others = make_room(document.workflow, visible, document.boxes, area, small)
    return {**placed, **with_hidden(moved, document.positions, document.hidden)}, others
