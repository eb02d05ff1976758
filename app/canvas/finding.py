"""Finding a card: by what it says, or by where it is."""

from __future__ import annotations

from collections.abc import Mapping
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


def nearest(nodes: Mapping[str, NodeItem], start: str | None, centre: QPointF, way: tuple[int, int]) -> str | None:
    """The nearest card in a direction.

    Args:
        nodes: The cards.
        start: The card to go from; None to go from `centre`, in any direction.
        centre: A place of the scene.
        way: -1, 0 or 1 across, and down.
    """
    from_ = nodes[start].card_rect.center() if start is not None else centre
    best: tuple[float, str] | None = None
    for node_id, item in nodes.items():
        apart = item.card_rect.center() - from_
        along, aside = apart.x() * way[0] + apart.y() * way[1], abs(apart.x() * way[1]) + abs(apart.y() * way[0])
        if start is not None and (node_id == start or along <= 0):
            continue
        distance = abs(along) + 2 * aside  # straight on counts as nearer than aside
        if best is None or distance < best[0]:
            best = (distance, node_id)
    return best[1] if best is not None else None
