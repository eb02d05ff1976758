"""Finding what lies on the canvas: a card by what it says, a place by where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF

if TYPE_CHECKING:
    from app.canvas.node_item import NodeItem


def matching(nodes: Mapping[str, NodeItem], text: str) -> list[str]:
    """The ids of the nodes whose title, id, type or summary holds a text, in the document's order."""
    wanted = text.casefold()
    found: list[str] = []
    for node_id, item in nodes.items():
        facts = item.facts
        if any(wanted in field.casefold() for field in (facts.title, node_id, facts.type, facts.summary)):
            found.append(node_id)
    return found


def nearest(places: Sequence[QPointF], start: QPointF, way: tuple[int, int] | None) -> int | None:
    """The position of the nearest place in a direction.

    Args:
        places: The places.
        start: Where to go from.
        way: -1, 0 or 1 across, and down; None for any direction.
    """
    best: tuple[float, int] | None = None
    for position, place in enumerate(places):
        apart = place - start
        distance = apart.manhattanLength()
        if way is not None:
            along, aside = apart.x() * way[0] + apart.y() * way[1], abs(apart.x() * way[1]) + abs(apart.y() * way[0])
            if along <= 0:
                continue
            distance = along + 2 * aside  # straight on counts as nearer than aside
        if best is None or distance < best[0]:
            best = (distance, position)
    return best[1] if best is not None else None
