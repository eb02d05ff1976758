"""Copy and paste of parts of a workflow.

A fragment is itself a whole document with only some nodes, so that a copied part can be saved as a file, a file's text
can be pasted, and a foreign text from the clipboard meets the same checks as a foreign file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from engine.document.files import dumps, loads
from engine.document.model import Node, Workflow, make_id
from engine.document.operation import Batch, Operation, index_of
from engine.document.operations import AddNode, Connect, SetLayout, with_new_names
from engine.document.problems import DocumentError
from engine.values import Value

MAX_PASTED = 2_000
"""The most nodes and the most edges of one paste."""

MAX_POSITION = 1e9
"""The farthest from the origin that a node is moved."""

PASTE_OFFSET = (40.0, 40.0)
"""How far right and down of the original a pasted node stands, in the units of the layout."""


def copy_fragment(workflow: Workflow, ids: Iterable[str]) -> str:
    """Write some nodes, the edges among them and their places as a text for the clipboard.

    Raises:
        OperationError: One of the nodes is not there.
        DocumentError: The text would be larger than any document that is opened.
    """
    chosen = set(ids)
    for node_id in sorted(chosen):
        index_of(workflow, node_id)
    places = _places(workflow)
    return dumps(
        Workflow(
            nodes=tuple(node for node in workflow.nodes if node.id in chosen),
            edges=tuple(edge for edge in workflow.edges if edge.source[0] in chosen and edge.target[0] in chosen),
            layout={"nodes": {key: place for key, place in places.items() if key in chosen}},
        )
    )


def paste_fragment(workflow: Workflow, text: str, *, offset: tuple[float, float] = PASTE_OFFSET) -> Batch:
    """Make the operation that adds the nodes of a fragment to a workflow.

    The nodes get free ids; edges among them, the pairing of loops and exits and the names in their texts follow. What
    names a node outside the fragment stays as it is.

    Args:
        workflow: Where to paste.
        text: What `copy_fragment` gave, or any document.
        offset: What to add to `x` and `y` of each node.

    Raises:
        DocumentError: The text is no document, has no nodes, or very many.
    """
    fragment = loads(text, source="clipboard")
    if max(len(fragment.nodes), len(fragment.edges)) > MAX_PASTED:
        message = f"clipboard: The copied part has more than {MAX_PASTED} nodes or edges."
        raise DocumentError(message, "Copy and paste it in smaller parts.")
    if not fragment.nodes:
        raise DocumentError("clipboard: The copied part has no nodes.", "Copy at least one node.")
    taken = set(workflow.nodes_by_id)
    names: dict[str, str] = {}
    pasted: list[Node] = []
    for node in fragment.nodes:
        new_id = make_id(node.id, taken)
        taken.add(new_id)
        # Of nodes that share an id, the first is the one that edges and texts mean.
        names.setdefault(node.id, new_id)
        pasted.append(node.model_copy(update={"id": new_id}))
    operations: list[Operation] = [AddNode(with_new_names(node, names)) for node in pasted]
    operations += _connections(fragment, names)
    if isinstance(workflow.layout.get("nodes", {}), dict):
        places = _places(fragment)
        operations += [
            SetLayout(("nodes", new), _shifted(places[old], offset)) for old, new in names.items() if old in places
        ]
    title = f"Paste {pasted[0].id}" if len(pasted) == 1 else f"Paste {len(pasted)} nodes"
    return Batch(title, tuple(operations))


def _connections(fragment: Workflow, names: dict[str, str]) -> Iterator[Connect]:
    # What an edge of a faulty document cannot mean (a missing port, the same edge twice) has nothing to be pasted.
    seen: set[tuple[str, str]] = set()
    for edge in fragment.edges:
        (source, source_port), (target, target_port) = edge.source, edge.target
        if source in names and target in names and source_port and target_port and (edge.from_, edge.to) not in seen:
            seen.add((edge.from_, edge.to))
            yield Connect(f"{names[source]}.{source_port}", f"{names[target]}.{target_port}", edge.model_extra or {})


def _places(workflow: Workflow) -> dict[str, Value]:
    places = workflow.layout.get("nodes")
    return cast("dict[str, Value]", places) if isinstance(places, dict) else {}


def _shifted(place: Value, offset: tuple[float, float]) -> Value:
    if not isinstance(place, dict):
        return place
    moved = dict(place)
    for axis, distance in zip(("x", "y"), offset, strict=True):
        position = place.get(axis)
        # An integer of hundreds of digits fits no float: what stands that far off stays there.
        if isinstance(position, int | float) and not isinstance(position, bool) and abs(position) < MAX_POSITION:
            moved[axis] = position + distance
    return moved
