"""Clipboard: copy and paste parts of a workflow.

A fragment is a complete document with only some nodes. It can be saved as a file, the text of a file can be pasted, and
clipboard texts pass the same checks as files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from engine.document.files import dumps, loads
from engine.document.model import Edge, Node, Workflow, make_id
from engine.document.operations import (
    AddNodes,
    Batch,
    Connect,
    Operation,
    SetLayout,
    index_of,
    rename_references,
)
from engine.document.problems import DocumentError
from engine.values import Value

MAX_PASTED = 2_000
"""Maximum number of nodes, and of edges, in one paste."""

MAX_POSITION = 1e9
"""Positions beyond this distance from the origin are not shifted."""

PASTE_OFFSET = (40.0, 40.0)
"""Distance of a pasted node from the original to the right and down, in layout units."""


def copy_fragment(workflow: Workflow, ids: Iterable[str]) -> str:
    """Serialize some nodes with the edges between them and their positions.

    Raises:
        OperationError: A node does not exist.
        DocumentError: The text is larger than a document may be.
    """
    return dumps(fragment_of(workflow, ids))


def fragment_of(workflow: Workflow, ids: Iterable[str]) -> Workflow:
    """Return some nodes with the edges between them and their positions.

    Raises:
        OperationError: A node does not exist.
    """
    chosen = set(ids)
    for node_id in sorted(chosen - workflow.nodes_by_id.keys()):
        index_of(workflow, node_id)  # raises
    return Workflow(
        nodes=tuple(node for node in workflow.nodes if node.id in chosen),
        edges=tuple(edge for edge in workflow.edges if edge.source[0] in chosen and edge.target[0] in chosen),
        layout={"nodes": {key: place for key, place in _places(workflow).items() if key in chosen}},
    )


def read_fragment(text: str) -> Workflow:
    """Read a fragment.

    Raises:
        DocumentError: The text is not a document, or has no nodes.
    """
    fragment = loads(text, source="clipboard")
    if not fragment.nodes:
        raise DocumentError("clipboard: The copied part has no nodes.", "Copy at least one node.")
    return fragment


def paste_fragment(workflow: Workflow, fragment: Workflow, *, offset: tuple[float, float] = PASTE_OFFSET) -> Batch:
    """Create the operation that pastes a fragment into a workflow.

    The nodes get unique ids, and references between them are updated. References to nodes outside of the fragment stay
    unchanged.

    Args:
        workflow: The target.
        fragment: What `read_fragment` or `fragment_of` returned.
        offset: Added to `x` and `y` of each node.

    Raises:
        DocumentError: The fragment has too many nodes or edges.
    """
    if max(len(fragment.nodes), len(fragment.edges)) > MAX_PASTED:
        message = f"The part to add has more than {MAX_PASTED} nodes or edges."
        raise DocumentError(message, "Add it in smaller parts.")
    taken = set(workflow.nodes_by_id)
    names: dict[str, str] = {}
    pasted: list[Node] = []
    for node in fragment.nodes:
        new_id = make_id(node.id, taken)
        taken.add(new_id)
        # If nodes share an id, edges and texts refer to the first one.
        names.setdefault(node.id, new_id)
        pasted.append(node.model_copy(update={"id": new_id}))
    operations: list[Operation] = [
        AddNodes(tuple(rename_references(node, names) for node in pasted)),
        Connect(tuple(_edges(fragment, names))),
    ]
    places = _places(fragment)
    if places and isinstance(workflow.layout.get("nodes", {}), dict):
        shifted = {new: _shifted(places[old], offset) for old, new in names.items() if old in places}
        operations.append(SetLayout(("nodes",), {**_places(workflow), **shifted}))
    title = f"Paste {pasted[0].id}" if len(pasted) == 1 else f"Paste {len(pasted)} nodes"
    return Batch(title, tuple(operations))


def _edges(fragment: Workflow, names: dict[str, str]) -> Iterator[Edge]:
    # Edges of an invalid document (without a port, or repeated) are not pasted.
    seen: set[tuple[str, str]] = set()
    for edge in fragment.edges:
        (source, source_port), (target, target_port) = edge.source, edge.target
        if source in names and target in names and source_port and target_port and (edge.from_, edge.to) not in seen:
            seen.add((edge.from_, edge.to))
            yield Edge.between(f"{names[source]}.{source_port}", f"{names[target]}.{target_port}", edge.model_extra)


def _places(workflow: Workflow) -> dict[str, Value]:
    places = workflow.layout.get("nodes")
    return cast("dict[str, Value]", places) if isinstance(places, dict) else {}


def _shifted(place: Value, offset: tuple[float, float]) -> Value:
    if not isinstance(place, dict):
        return place
    moved = dict(place)
    for axis, distance in zip(("x", "y"), offset, strict=True):
        position = place.get(axis)
        # An integer with hundreds of digits does not fit into a float.
        if isinstance(position, int | float) and not isinstance(position, bool) and abs(position) < MAX_POSITION:
            moved[axis] = position + distance
    return moved
