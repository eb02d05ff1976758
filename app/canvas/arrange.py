"""Aligning and distributing: new places for some cards. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Place = tuple[float, float]
Rect = tuple[float, float, float, float]
"""Left, top, width, height."""

ALIGNMENTS: Final = ("left", "centre", "right", "top", "middle", "bottom")


def align(rects: Mapping[str, Rect], where: str) -> dict[str, Place]:
    """Put cards on one line: their left edges, centres, right edges, tops, middles or bottoms."""
    if len(rects) < 2:
        return {}
    across = where in {"left", "centre", "right"}
    axis, extent = (0, 2) if across else (1, 3)
    low = min(rect[axis] for rect in rects.values())
    high = max(rect[axis] + rect[extent] for rect in rects.values())
    share = {"left": 0.0, "top": 0.0, "centre": 0.5, "middle": 0.5, "right": 1.0, "bottom": 1.0}[where]
    line = low + (high - low) * share
    moved: dict[str, Place] = {}
    for node_id, rect in rects.items():
        start = line - rect[extent] * share
        moved[node_id] = (start, rect[1]) if across else (rect[0], start)
    return moved


def distribute(rects: Mapping[str, Rect], *, across: bool) -> dict[str, Place]:
    """Make the gaps between cards equal; the first and the last stay."""
    if len(rects) < 3:
        return {}
    axis, extent = (0, 2) if across else (1, 3)
    order = sorted(rects, key=lambda node_id: rects[node_id][axis])
    first, last = rects[order[0]], rects[order[-1]]
    taken = sum(rects[node_id][extent] for node_id in order)
    gap = (last[axis] + last[extent] - first[axis] - taken) / (len(order) - 1)
    at = first[axis]
    moved: dict[str, Place] = {}
    for node_id in order:
        rect = rects[node_id]
        moved[node_id] = (at, rect[1]) if across else (rect[0], at)
        at += rect[extent] + gap
    return moved
