"""The declaration of a partial run: a node, and how much around it runs. `engine.plan.dependencies` finds its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Extent(StrEnum):
    """How much of a workflow runs: a node with all that it needs, the node only, or it with all that depends on it."""

    UNTIL = "until"
    ONLY = "only"
    FROM = "from"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a workflow: a node, and how much around it."""

    extent: Extent
    node: str

    def __str__(self) -> str:
        return f"{_EXTENT_TEXTS[self.extent]} {self.node}"


_EXTENT_TEXTS: Final = {Extent.UNTIL: "up to", Extent.ONLY: "only", Extent.FROM: "from"}


def part_of(extent: str, node: str) -> Part | None:
    """Return the part with that extent, or None for the whole workflow."""
    return Part(Extent(extent), node) if extent in set(Extent) and node else None
