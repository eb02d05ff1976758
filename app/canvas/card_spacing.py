"""Move cards together where a gap was left, and apart where room is needed. No Qt here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from app.node_layout import FREE_GAP, Box, Position, coordinate, layout_entries
from engine.document.model import Workflow
from engine.document.operations import Operation, SetLayout


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of the canvas."""

    left: float
    top: float
    right: float
    bottom: float

    @staticmethod
    def around(positions: Mapping[str, Position], boxes: Mapping[str, Box]) -> Area:
        """Return the bounding rectangle of cards; there must be one."""
        return Area(
            min(x for x, _ in positions.values()),
            min(y for _, y in positions.values()),
            max(x + boxes[node].width for node, (x, _) in positions.items()),
            max(y + boxes[node].height for node, (_, y) in positions.items()),
        )

    def is_touched_by(self, position: Position, box: Box) -> bool:
        """Return whether a card overlaps the area."""
        x, y = position
        return self.left < x + box.width and x < self.right and self.top < y + box.height and y < self.bottom


Moved = tuple[dict[str, Position], list[Operation]]
"""New positions of the cards that move, and the operations that move frames and notes."""


def close_gap(
    workflow: Workflow, others: Mapping[str, Position], boxes: Mapping[str, Box], area: Area, card: Area
) -> Moved:
    """Close the gap where a card takes the place of a larger area, unless cards would overlap.

    Args:
        workflow: The document, for its frames and notes.
        others: The positions of all other visible cards.
        boxes: Their sizes.
        area: The larger area.
        card: The card, in its upper left part.
    """
    by = area.right - card.right
    moved = {node: (x - by, y) for node, (x, y) in others.items() if x >= area.right}
    if by <= 0 or _overlap({**others, **moved}, boxes, card):
        return {}, []
    return moved, list(shifted_annotations(workflow, lambda left, _right: -by if left >= area.right else 0.0))


def make_room(
    workflow: Workflow, others: Mapping[str, Position], boxes: Mapping[str, Box], area: Area, card: Area
) -> Moved:
    """Move cards out of an area that takes the place of a smaller card: to the right, and what is below it down.

    Args:
        workflow: The document, for its frames and notes.
        others: The positions of all other visible cards.
        boxes: Their sizes.
        area: The area.
        card: The card, in its upper left part.
    """
    here, operations = dict(others), list[Operation]()
    by = area.right - card.right
    if by > 0 and any(area.is_touched_by(position, boxes[node]) for node, position in here.items()):
        here = {node: (x + by if x >= card.right else x, y) for node, (x, y) in here.items()}
        operations += shifted_annotations(workflow, lambda left, _right: by if left >= card.right else 0.0)
    in_way = [position for node, position in here.items() if area.is_touched_by(position, boxes[node])]
    if in_way:
        highest = min(y for _, y in in_way)
        down = area.bottom + FREE_GAP - highest
        here = {node: (x, y + down if y >= highest else y) for node, (x, y) in here.items()}
    return {node: position for node, position in here.items() if position != others[node]}, operations


def shifted_annotations(workflow: Workflow, shift: Callable[[float, float], float]) -> Iterator[Operation]:
    """Move frames and notes to the left or right, as the cards beside them.

    Args:
        workflow: The document.
        shift: Returns by how much to move a frame or note with these left and right edges.
    """
    for kind in ("frames", "notes"):
        for key, entry in layout_entries(workflow, kind).items():
            left = coordinate(entry.get("x")) if isinstance(entry, dict) else None
            if left is not None and (by := shift(left, left + (coordinate(entry.get("width")) or 0.0))):
                yield SetLayout((kind, key, "x"), round(left + by))


def _overlap(positions: Mapping[str, Position], boxes: Mapping[str, Box], card: Area) -> bool:
    """Return whether any cards overlap each other, or the given one."""
    ordered = sorted(positions, key=lambda node: positions[node][0])
    for index, node in enumerate(ordered):
        area = Area.around({node: positions[node]}, boxes)
        if card.is_touched_by(positions[node], boxes[node]):
            return True
        for other in ordered[index + 1 :]:
            if positions[other][0] >= area.right:
                break
            if area.is_touched_by(positions[other], boxes[other]):
                return True
    return False
