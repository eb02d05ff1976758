"""Positions of node cards: stored, computed, aligned or distributed. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.canvas.annotations import position_of
from app.canvas.auto_layout import COLUMN_GAP, ROW_GAP, Box, Wire, layered_layout
from app.canvas.node_item import NodeItem
from engine.document.model import Workflow
from engine.nodes.registry import Registry
from engine.plan.structure import Structure

Position = tuple[float, float]
STEP: Final = 24.0


class NodePositions:
    """Positions of all cards. Computed ones stay until the layout has one, so that nothing jumps."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._found: dict[str, Position] = {}

    @property
    def found(self) -> Mapping[str, Position]:
        """Computed positions that the layout does not have."""
        return self._found

    def of(self, workflow: Workflow, structure: Structure, cards: Mapping[str, NodeItem]) -> dict[str, Position]:
        """Return the position of each card."""
        places: dict[str, Position] = {}
        missing: list[str] = []
        for node_id in cards:
            place = position_of(workflow, node_id) or self._found.get(node_id)
            if place is None:
                missing.append(node_id)
            else:
                places[node_id] = place
        self._found = {node: place for node, place in self._found.items() if node in cards}
        if missing:
            made = (
                auto_layout(workflow, structure, card_boxes(cards))
                if not places
                else positions_beside(missing, workflow, places, cards)
            )
            self._found.update({node: made[node] for node in missing})
            places.update({node: made[node] for node in missing})
        for node_id in [node for node in self._found if position_of(workflow, node) is not None]:
            del self._found[node_id]
        return places


def card_boxes(cards: Mapping[str, NodeItem]) -> dict[str, Box]:
    """Return size and port offsets of cards."""
    return {
        node_id: Box(
            card.geometry.width,
            card.geometry.height,
            {port.name: place.y() for port, place in zip(card.content.inputs, card.geometry.inputs, strict=True)},
            {port.name: place.y() for port, place in zip(card.content.outputs, card.geometry.outputs, strict=True)},
        )
        for node_id, card in cards.items()
    }


def edge_wires(workflow: Workflow) -> list[Wire]:
    """Return the edges for the layout algorithm."""
    return [Wire(*edge.source, *edge.target) for edge in workflow.edges]


def auto_layout(workflow: Workflow, structure: Structure, boxes: Mapping[str, Box]) -> dict[str, Position]:
    """Lay out the whole document."""
    return layered_layout(boxes, edge_wires(workflow), structure.bodies, structure.parent)


def positions_beside(
    missing: list[str], workflow: Workflow, places: Mapping[str, Position], cards: Mapping[str, NodeItem]
) -> dict[str, Position]:
    """Return free positions right of the predecessors, or below everything."""
    taken = dict(places)
    made: dict[str, Position] = {}
    before: dict[str, list[str]] = {}
    for edge in workflow.edges:
        before.setdefault(edge.target[0], []).append(edge.source[0])
    for node_id in missing:
        sources = [source for source in before.get(node_id, ()) if source in taken]
        if sources:
            source = max(sources, key=lambda node: taken[node][0])
            wish = (taken[source][0] + cards[source].geometry.width + COLUMN_GAP, taken[source][1])
        else:
            left = min(x for x, _ in taken.values())
            wish = (left, max(y + cards[node].geometry.height for node, (_, y) in taken.items()) + ROW_GAP)
        made[node_id] = taken[node_id] = free_position(node_id, wish, taken, cards)
    return made


def free_position(
    node_id: str, wish: Position, taken: Mapping[str, Position], cards: Mapping[str, NodeItem]
) -> Position:
    """Return the first position at or below a wish where the card overlaps no other."""
    width, height = cards[node_id].geometry.width, cards[node_id].geometry.height
    x, y = wish
    while True:
        below = [
            there[1] + cards[other].geometry.height
            for other, there in taken.items()
            if other != node_id
            and there[0] < x + width
            and x < there[0] + cards[other].geometry.width
            and there[1] < y + height
            and y < there[1] + cards[other].geometry.height
        ]
        if not below:
            return (x, y)
        y = max(below) + STEP


Rect = tuple[float, float, float, float]
"""Left, top, width, height."""

ALIGNMENTS: Final = ("left", "centre", "right", "top", "middle", "bottom")


def align(rects: Mapping[str, Rect], where: str) -> dict[str, Position]:
    """Align cards by their left, centre, right, top, middle or bottom."""
    if len(rects) < 2:
        return {}
    across = where in {"left", "centre", "right"}
    axis, extent = (0, 2) if across else (1, 3)
    low = min(rect[axis] for rect in rects.values())
    high = max(rect[axis] + rect[extent] for rect in rects.values())
    share = {"left": 0.0, "top": 0.0, "centre": 0.5, "middle": 0.5, "right": 1.0, "bottom": 1.0}[where]
    line = low + (high - low) * share
    moved: dict[str, Position] = {}
    for node_id, rect in rects.items():
        start = line - rect[extent] * share
        moved[node_id] = (start, rect[1]) if across else (rect[0], start)
    return moved


def distribute(rects: Mapping[str, Rect], *, across: bool) -> dict[str, Position]:
    """Equalise the gaps between cards; the first and the last keep their position."""
    if len(rects) < 3:
        return {}
    axis, extent = (0, 2) if across else (1, 3)
    order = sorted(rects, key=lambda node_id: rects[node_id][axis])
    first, last = rects[order[0]], rects[order[-1]]
    taken = sum(rects[node_id][extent] for node_id in order)
    gap = (last[axis] + last[extent] - first[axis] - taken) / (len(order) - 1)
    at = first[axis]
    moved: dict[str, Position] = {}
    for node_id in order:
        rect = rects[node_id]
        moved[node_id] = (at, rect[1]) if across else (rect[0], at)
        at += rect[extent] + gap
    return moved
