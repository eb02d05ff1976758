"""A document as a small drawing: where its nodes stand, what is connected, which nodes a loop repeats.

Taken from the document's layout; nodes of a document without one are put in layers. No Qt here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.document.model import Workflow
    from engine.nodes.registry import Registry
    from engine.nodes.spec import Category
    from engine.plan.structure import Structure

NODE_WIDTH: Final = 220.0
NODE_HEIGHT: Final = 96.0
LEAST_WIDTH: Final = 48.0
GAP: Final = 40.0
COLUMN: Final = 288.0
ROW: Final = 144.0
UNKNOWN_ICON: Final = "mdi6.help"


@dataclass(frozen=True, slots=True)
class Box:
    """One node: its upper left corner in the document's units, and how it looks."""

    x: float
    y: float
    category: Category | None
    icon: str


@dataclass(frozen=True, slots=True)
class Region:
    """What a loop repeats: its ends and all nodes in it, the ends included."""

    loop: str
    exit: str
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Diagram:
    """The drawing. `edges` are pairs of node ids, each once; `regions` are sorted, the widest first."""

    boxes: dict[str, Box]
    edges: tuple[tuple[str, str], ...]
    regions: tuple[Region, ...]

    @property
    def node_width(self) -> float:
        """How wide all nodes are drawn: as wide as the usual card where the closest two have the room for it."""
        boxes = sorted(self.boxes.values(), key=lambda box: box.x)
        apart = (
            right.x - left.x
            for at, left in enumerate(boxes)
            for right in boxes[at + 1 :]
            if abs(right.y - left.y) < NODE_HEIGHT and right.x > left.x
        )
        return max(min(min(apart, default=COLUMN) - GAP, NODE_WIDTH), LEAST_WIDTH)


def make_diagram(workflow: Workflow, registry: Registry) -> Diagram:
    """Make the drawing of a document, whatever the document."""
    # Imported here: the first page is up before, and what shows drawings needs none of it.
    from engine.plan.structure import analyse

    structure = analyse(workflow, registry)
    places = _places_of_layout(workflow) or _layers(structure)
    boxes: dict[str, Box] = {}
    for node_id, node in workflow.nodes_by_id.items():
        spec = registry.find(node.type)
        x, y = places[node_id]
        boxes[node_id] = Box(x, y, spec.category if spec else None, spec.icon if spec else UNKNOWN_ICON)
    regions = [
        Region(body.loop, body.exit, frozenset({body.loop, body.exit, *body.nodes} & boxes.keys()))
        for body in structure.bodies.values()
    ]
    return Diagram(
        boxes,
        tuple(dict.fromkeys((link.source, link.target) for link in structure.links)),
        tuple(sorted(regions, key=lambda region: -len(region.members))),
    )


def _places_of_layout(workflow: Workflow) -> dict[str, tuple[float, float]] | None:
    """Where the layout puts the nodes; None unless it has a place for each of them."""
    layout = workflow.layout.get("nodes")
    if not isinstance(layout, dict):
        return None
    places: dict[str, tuple[float, float]] = {}
    for node_id in workflow.nodes_by_id:
        place = layout.get(node_id)
        if not isinstance(place, dict):
            return None
        x, y = place.get("x"), place.get("y")
        if not _is_coordinate(x) or not _is_coordinate(y):
            return None
        places[node_id] = (float(x), float(y))
    return places


def _is_coordinate(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) < 1e9 and math.isfinite(value)


def _layers(structure: Structure) -> dict[str, tuple[float, float]]:
    """A column for each step away from the start; in a document that goes round in a circle, one after the other."""
    inside = {body.exit: body.nodes for body in structure.bodies.values()}
    column: dict[str, int] = {}
    for _round in range(2):  # the second time round an exit also stands behind the side branches of its loop
        for place, node_id in enumerate(structure.order or structure.workflow.nodes_by_id):
            sources = {link.source for link in structure.links_to.get(node_id, ())} | inside.get(node_id, frozenset())
            before = [column[source] for source in sources if source in column]
            column[node_id] = max(before, default=-1) + 1 if structure.order else place
    taken: dict[int, int] = {}
    places: dict[str, tuple[float, float]] = {}
    for node_id, at in column.items():
        row = taken.get(at, 0)
        taken[at] = row + 1
        places[node_id] = (at * COLUMN, row * ROW)
    return places
