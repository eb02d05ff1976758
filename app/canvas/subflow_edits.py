"""Edits of subflows as document operations: wrap nodes in a subflow, and replace a subflow by its nodes.

No Qt here. Both return one operation for the whole edit.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final

from app.canvas.branch_liveness import End, first_difference
from app.canvas.card_spacing import Area, close_gap, make_room
from app.canvas.loop_edits import ENDS, Document, enclosed_nodes, free_input, free_output, unused_input
from app.canvas.node_card import card_box, card_view_model
from app.canvas.operation_builders import new_node, set_positions, with_hidden
from app.node_layout import Position, auto_layout, layout_entries, stored_position
from engine.document.files import dumps
from engine.document.model import Edge, Node, Workflow, make_id
from engine.document.operations import (
    AddNodes,
    Batch,
    Connect,
    Disconnect,
    Operation,
    OperationError,
    RemoveNodes,
    rename_references,
)
from engine.document.problems import Severity
from engine.document.subflows import file_of, with_files_from, workflow_in
from engine.nodes.node_names import node_name
from engine.nodes.spec import PortType
from engine.nodes.subflow import SUBFLOW
from engine.plan.structure import Structure, analyse, with_own_model
from engine.plan.validation import validate_structure
from engine.values import Value

Group = tuple[str, ...]
"""The outputs outside that feed one input of a subflow, in the order of the edges."""

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
    leading = [edge for edge in workflow.edges if edge.target[0] in inside]
    if all(edge.source[0] in inside for edge in leading) and (source := unused_input(document)):
        leading += [Edge.between(source, end) for end in free_input(document, body)]
    outgoing = [edge for edge in workflow.edges if edge.source[0] in inside and edge.target[0] not in inside]
    last = _last_output(document, body) if not outgoing else []
    unused = [Edge.between(end, follower) for end in last for follower in free_output(document)]
    taken = set(inside)
    groups = _source_groups(leading, inside)
    inputs = _inputs(document, groups, taken)
    outputs = _outputs(last or [edge.from_ for edge in outgoing], taken)
    _refuse_branches(document, body, list(inputs))
    subflow = new_node("Subflow", SUBFLOW, {}, set(workflow.nodes_by_id))
    inner = Workflow(
        name=subflow.title,
        nodes=(*inputs.values(), *(workflow.nodes_by_id[node] for node in body), *outputs.values()),
        edges=(
            *_inner_edges(leading, groups, inputs),
            *(Edge.between(source, f"{node.id}.value") for source, node in outputs.items()),
        ),
    )
    inner = inner.model_copy(update={"layout": _inner_layout(document, inner, inputs, outputs)})
    subflow = subflow.model_copy(update={"config": {"workflow": json.loads(dumps(inner))}})
    ends = {source: f"{subflow.id}.{node.id}" for source, node in outputs.items()}
    operations = [
        RemoveNodes(tuple(body)),
        AddNodes((subflow,)),
        Connect(tuple(_outer_edges(leading, groups, inputs, subflow.id))),
        *_reconnections(
            workflow, inside, lambda edge: [Edge.between(ends[edge.from_], edge.to, edge.model_extra)], unused
        ),
        *_in_place_of(document, body, subflow),
    ]
    what = node_name(workflow, body[0]) if len(body) == 1 else f"{len(body)} nodes"
    batch = Batch(f"Wrap {what} in a subflow", tuple(operations))
    _refuse_new_problems(document, batch, "These nodes cannot become a subflow", is_wrap=True)
    return batch


def inline_subflow(document: Document, node_id: str) -> Batch:
    """Replace a subflow by the nodes of its workflow.

    Raises:
        OperationError: Its workflow was not read, it does not run as its nodes would, or a value would be lost.
    """
    workflow, node = document.workflow, document.workflow.nodes_by_id[node_id]
    inner = with_own_model(_content(node), document.registry)
    inner = with_files_from(inner, file_of(node))
    title = node_name(workflow, node_id)
    _refuse_other_meaning(node, title)
    _refuse_partial_run(document, node_id, inner)
    sources: dict[str, list[Edge]] = {}
    for edge in workflow.edges_into.get(node_id, ()):
        sources.setdefault(edge.target[1], []).append(edge)
    ports = {one.id: str(one.config.get("name") or one.id) for one in inner.nodes if one.type in ENDS and one.enabled}
    kept = [one for one in inner.nodes if one.id not in ports or (one.type == "input" and ports[one.id] not in sources)]
    if node_id in document.structure.parent:
        _refuse_inputs(title, [ports.get(one.id, one.id) for one in kept if one.type == "input"])
    taken, names = set(workflow.nodes_by_id) - {node_id}, dict[str, str]()
    for one in kept:
        names[one.id] = make_id(one.id, taken)
        taken.add(names[one.id])

    def starts(edge: Edge) -> list[Edge]:
        """An edge inside with the ends outside that stand for its source."""
        source, port = edge.source
        if source in names:
            return [Edge.between(f"{names[source]}.{port}", edge.to, edge.model_extra)]
        return [_joined(outer, edge) for outer in sources.get(ports.get(source, ""), ())]

    results: dict[str, list[Edge]] = {}
    joined: dict[str, list[list[Edge]]] = {}
    for edge in inner.edges:
        target, port = edge.target
        if target in names:
            end = f"{names[target]}.{port}"
            joined.setdefault(end, []).append([Edge.between(one.from_, end, one.model_extra) for one in starts(edge)])
        elif target in ports:
            results.setdefault(ports[target], []).extend(starts(edge))

    def used(edge: Edge) -> list[Edge]:
        return [_joined(one, edge) for one in results.get(edge.source[1], ())]

    after: dict[str, list[list[Edge]]] = {edge.to: [] for edge in workflow.edges if edge.source[0] == node_id}
    for edge in workflow.edges:
        if edge.to in after:
            after[edge.to].append(used(edge) if edge.source[0] == node_id else [edge])
    _refuse_other_joins(title, [*joined.values(), *after.values()])
    placed, others = _spread(document, node_id, inner, names)
    layout, entries = _without(workflow, [node_id]), layout_entries(inner, "nodes")
    layout["nodes"] |= {name: entries[one] for one, name in names.items() if one in entries}
    operations = [
        RemoveNodes((node_id,)),
        AddNodes(tuple(rename_references(one.model_copy(update={"id": names[one.id]}), names) for one in kept)),
        Connect(tuple(edge for groups in joined.values() for group in groups for edge in group)),
        *_reconnections(workflow, {node_id}, used),
        set_positions(workflow.model_copy(update={"layout": layout}), placed),
        *others,
    ]
    batch = Batch(f"Unwrap {title}", tuple(operations))
    _refuse_new_problems(document, batch, f"“{title}” cannot be unwrapped")
    return batch


def _joined(first: Edge, then: Edge) -> Edge:
    """One edge in the place of two that follow each other."""
    return Edge.between(first.from_, then.to, {**(first.model_extra or {}), **(then.model_extra or {})})


def _reconnections(
    workflow: Workflow, removed: set[str], replaced: Callable[[Edge], Iterable[Edge]], more: Iterable[Edge] = ()
) -> Iterable[Operation]:
    """Replace the edges that leave removed nodes; the order of the edges at each port stays, as it matters.

    Args:
        workflow: The document before the edit.
        removed: The removed nodes.
        replaced: The new edges in the place of one.
        more: Edges that do not exist, to replace too.
    """
    kept = {(edge.from_, edge.to) for edge in workflow.edges if not removed & {edge.source[0], edge.target[0]}}
    made: dict[tuple[str, str], str] = {}
    for edge in (*workflow.edges, *more):
        if (edge.from_, edge.to) in kept:
            if edge.to in made.values():
                yield from (Disconnect(edge.from_, edge.to), Connect((edge,)))
        elif edge.target[0] not in removed and edge.source[0] in removed:
            for new in replaced(edge):
                if (new.from_, new.to) not in kept and (new.from_, new.to) not in made:
                    made[new.from_, new.to] = new.to
                    yield Connect((new,))


def _source_groups(leading: Iterable[Edge], inside: set[str]) -> dict[tuple[str, str], Group]:
    """For each edge from outside, the sources that share an input with its own.

    They are all sources of its port, so branches that join there do so before the subflow, which waits for all of its
    inputs. Where nodes inside lead to that port, too, each source has an input of its own, as the order matters.
    """
    sources: dict[str, list[Edge]] = {}
    for edge in leading:
        sources.setdefault(edge.to, []).append(edge)
    groups: dict[tuple[str, str], Group] = {}
    for target, edges in sources.items():
        outside = tuple(dict.fromkeys(edge.from_ for edge in edges if edge.source[0] not in inside))
        is_mixed = any(edge.source[0] in inside for edge in edges)
        groups |= {(source, target): (source,) if is_mixed else outside for source in outside}
    return groups


def _inner_edges(
    leading: Iterable[Edge], groups: Mapping[tuple[str, str], Group], inputs: Mapping[Group, Node]
) -> Iterable[Edge]:
    """The edges to the nodes of a new subflow."""
    for edge in leading:
        group = groups.get((edge.from_, edge.to))
        if group is None:
            yield edge
        elif edge.from_ == group[0]:
            yield Edge.between(f"{inputs[group].id}.value", edge.to, edge.model_extra if len(group) == 1 else None)


def _outer_edges(
    leading: Sequence[Edge], groups: Mapping[tuple[str, str], Group], inputs: Mapping[Group, Node], subflow: str
) -> Iterable[Edge]:
    """The edges to a new subflow; those to an input with one source leave their other keys to the edges inside."""
    for group, node in inputs.items():
        for source in group:
            edge = next(edge for edge in leading if edge.from_ == source and groups.get((source, edge.to)) == group)
            yield Edge.between(source, f"{subflow}.{node.id}", edge.model_extra if len(group) > 1 else None)


def _refuse_branches(document: Document, body: list[str], groups: Sequence[Group]) -> None:
    """Refuse nodes of which a part would run without the others: a subflow runs as a whole, or not at all."""
    structure = document.structure
    inside = set(body)
    ends = [[(node, port) for node, _, port in (source.partition(".") for source in group)] for group in groups]
    names = [group[0].partition(".")[0] for group in groups]
    for node in body:
        loop = structure.parent.get(node)
        if not structure.links_to.get(node) and node not in structure.loop_of and loop not in inside:
            ends.append(_always_live(structure, node))
            names.append(node)
            break
    different = first_difference(structure, ends)
    if different is not None:
        one, other = (node_name(document.workflow, names[position]) for position in different)
        raise OperationError(
            "These nodes cannot become a subflow: it runs as a whole or not at all, and on some branch there is a "
            f"value from “{one}” but none from “{other}”.",
            "Select the nodes of one branch, or include the node that chooses the branch.",
        )


def _refuse_other_meaning(node: Node, title: str) -> None:
    """Refuse a subflow that does not run as its nodes would."""
    if not node.enabled:
        raise OperationError(f"“{title}” is disabled, and its nodes would run.", "Enable it first.")
    if node.pinned:
        raise OperationError(f"“{title}” is pinned, and its nodes would run.", "Unpin its output first.")
    if node.config.get("on_error", "fail") != "fail":
        message = f"“{title}” does not fail when one of its nodes fails, and the nodes would."
        raise OperationError(message, "Set “On error” of the subflow to “Fail the run” first.")
    if node.config.get("retries") or node.config.get("timeout_s") is not None:
        raise OperationError(
            f"“{title}” has a timeout or retries for all of its nodes, which would be lost.",
            "Clear the timeout and the retries of the subflow first.",
        )


def _refuse_partial_run(document: Document, node_id: str, inner: Workflow) -> None:
    """Refuse a subflow of whose nodes a part would run on some branch on which the subflow does not."""
    structure, titles = document.structure, document.workflow
    ports = structure.resolution.nodes[node_id].inputs if node_id in structure.resolution.nodes else {}
    groups: dict[str, list[End]] = {}
    for link in structure.links_to.get(node_id, ()):
        port = ports.get(link.target_port)
        if port is not None and (port.required or port.gate):
            groups.setdefault(link.target_port, []).append((link.source, link.source_port))
    ends = list(groups.values())
    if _runs_without(analyse(inner, document.registry), groups):
        ends.append(_always_live(structure, node_id))
    different = first_difference(structure, ends)
    if different is not None:
        missing = node_name(titles, ends[different[1]][0][0])
        raise OperationError(
            f"“{node_name(titles, node_id)}” cannot be unwrapped: it does not run on a branch without a value from "
            f"“{missing}”, and some of its nodes would.",
            "Connect its inputs to the same branch.",
        )


def _runs_without(inner: Structure, connected: Container[str]) -> bool:
    """Whether a node of a subflow would run if none of the connected inputs had a value."""
    waiting = set[str]()
    for node in inner.order:
        own, resolved = inner.workflow.nodes_by_id[node], inner.resolution.nodes.get(node)
        if own.type == "input":
            name = str(own.config.get("name") or node)
            waiting |= {node} if own.enabled and name in connected else set()
            continue
        sources: dict[str, set[str]] = {}
        for link in inner.links_to.get(node, ()):
            sources.setdefault(link.target_port, set()).add(link.source)
        if own.type == "output" and not sources:
            continue
        waits = [port for port, nodes in sources.items() if nodes <= waiting]
        known = resolved.inputs if resolved is not None else {}
        if not (waits and len(waits) == len(sources)) and not any(
            port not in known or known[port].required or known[port].gate for port in waits
        ):
            return True
        waiting.add(node)
    return False


def _always_live(structure: Structure, node: str) -> list[End]:
    """The outputs of which one is live whenever the surroundings of a node run; none at the outermost level."""
    loop = structure.parent.get(node)
    return [(loop, structure.bodies[loop].kind.body_ports[0])] if loop is not None else []


def _refuse_other_joins(title: str, ports: Iterable[Sequence[Sequence[Edge]]]) -> None:
    """Refuse values that a port would join in another way.

    Args:
        title: The title of the subflow.
        ports: For each port, the edges that replace each edge to it.
    """
    for groups in ports:
        sources = [edge.from_ for group in groups for edge in group]
        if len(set(sources)) < len(sources) or (len(groups) > 1 and max(map(len, groups)) > 1):
            raise OperationError(
                f"“{title}” cannot be unwrapped: it joins values that would be joined in another way.",
                "Join them in a Transform before or in the subflow first.",
            )


def _refuse_inputs(title: str, inputs: list[str]) -> None:
    """Refuse inputs of a subflow that would stand in a loop."""
    if inputs:
        message = f"Nothing is connected to “{inputs[0]}” of “{title}”, and a loop cannot contain an input."
        raise OperationError(message, "Connect it first.")


def _last_output(document: Document, body: list[str]) -> list[str]:
    """The output of the last node to which no other is connected."""
    for node in reversed(body):
        end = document.main_output(document.workflow.nodes_by_id[node])
        if end and not document.edges_from(node):
            return [end]
    return []


def _inputs(document: Document, groups: Mapping[tuple[str, str], Group], taken: set[str]) -> dict[Group, Node]:
    """The inputs of a subflow by the values from outside, named after the ports that use them first."""
    made: dict[Group, Node] = {}
    for (_, target), group in groups.items():
        if group not in made:
            ports = [document.ports.at(source, is_input=False) for source in group]
            types = {port.type if port is not None else PortType.ANY for port in ports}
            # Several texts become one text; other values may become a list.
            is_plain = types == {PortType.TEXT} or len(group) == 1
            config: dict[str, Value] = {"type": str(types.pop() if is_plain else PortType.ANY)}
            made[group] = new_node(target.rpartition(".")[2].capitalize(), "input", config, taken)
            taken.add(made[group].id)
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
    document: Document, inner: Workflow, inputs: Mapping[Group, Node], outputs: Mapping[str, Node]
) -> dict[str, Any]:
    """The layout of a new subflow: as before, with the inputs left and the outputs right of the nodes."""
    here = {node.id: document.positions[node.id] for node in inner.nodes if node.id in document.positions}
    area = Area.around(here, document.boxes)
    rows = ((inputs.values(), area.left - _COLUMN), (outputs.values(), area.right + _COLUMN / 3))
    positions: dict[str, Position] = dict(here)
    for nodes, x in rows:
        positions |= {node.id: (x, area.top + 120 * row) for row, node in enumerate(nodes)}
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


def _refuse_new_problems(document: Document, batch: Batch, refusal: str, *, is_wrap: bool = False) -> None:
    """Refuse an edit after which the document has errors that it did not have before."""
    before = validate_structure(document.structure)
    edited = analyse(batch.apply(document.workflow)[0], document.registry)
    known = Counter(problem.code for problem in before)
    for problem in validate_structure(edited):
        if problem.severity is Severity.ERROR and not known[problem.code]:
            if problem.code == "unknown-name":
                raise _lost_name(document, edited, problem.node or "", refusal, is_wrap=is_wrap)
            raise OperationError(f"{refusal}: {problem.message}", problem.remedy)
        known[problem.code] -= 1


def _lost_name(document: Document, edited: Structure, node: str, refusal: str, *, is_wrap: bool) -> OperationError:
    """Return the refusal of an edit after which a text of a node names a value that is not there any more."""
    if is_wrap and node in document.workflow.nodes_by_id:
        title = node_name(document.workflow, node)
        message = f"{refusal}: “{title}” uses a value of theirs by its name, which a subflow would hide."
        return OperationError(message, f"Select “{title}” too.")
    structure = edited
    while (inner := structure.subflows.get(node)) is not None:
        problems = validate_structure(inner)
        structure, node = inner, next((one.node for one in problems if one.code == "unknown-name"), None) or ""
    title = node_name(structure.workflow, node)
    reason = "that is outside of them" if is_wrap else "that it would not have then"
    message = f"{refusal}: “{title}” uses a value by a name {reason}."
    return OperationError(message, f"Connect the value to “{title}” first.")


def _content(node: Node) -> Workflow:
    inner = workflow_in(node)
    if inner is None:
        raise OperationError("The workflow of this subflow was not read.", "Choose its file in the properties.")
    return inner


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
