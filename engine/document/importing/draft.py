"""A document while it is put together from a foreign file: nodes with free ids, edges, and places.

It knows no node types and no foreign form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.document.ids import make_id
from engine.document.model import Edge, Node, Workflow
from engine.values import Value


class Draft:
    """What has been made so far."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._edges: dict[tuple[str, str], Edge] = {}
        self._places: dict[str, Value] = {}
        self.settings: dict[str, Any] = {}

    def free_id(self, wish: str) -> str:
        """An id that no node has yet, as much like a text as can be."""
        return make_id(wish, self._nodes)

    def add(self, node_type: str, wish: str, title: str = "", config: Mapping[str, Any] | None = None) -> str:
        """Add a node, and give its id."""
        node_id = self.free_id(wish)
        self._nodes[node_id] = Node(id=node_id, type=node_type, title=title[:200], config=dict(config or {}))
        return node_id

    def connect(self, source: str, target: str) -> None:
        """Add an edge from `node.port` to `node.port`, unless it is there."""
        self._edges.setdefault((source, target), Edge.model_validate({"from": source, "to": target}))

    def config(self, node_id: str) -> dict[str, Any]:
        """The settings of a node, to be added to."""
        return self._nodes[node_id].config

    def place(self, node_id: str, x: float, y: float) -> None:
        """Say where a node stands."""
        self._places[node_id] = {"x": x, "y": y}

    def finished(self, name: str, description: str) -> Workflow:
        """The document. Unless each node has a place of its own, it has no layout, and is laid out when it is shown."""
        placed = len(self._places) == len(self._nodes) and not _overlaps(self._places)
        return Workflow(
            name=name,
            description=description,
            settings=self.settings,
            nodes=tuple(self._nodes.values()),
            edges=tuple(self._edges.values()),
            layout={"nodes": self._places} if placed and self._places else {},
        )


_LEAST_X, _LEAST_Y = 200.0, 88.0
"""How far apart two cards must be, one way or the other, not to lie on each other."""


def _overlaps(places: Mapping[str, Any]) -> bool:
    listed = sorted((place["x"], place["y"]) for place in places.values())
    for at, (x, y) in enumerate(listed):
        for other_x, other_y in listed[at + 1 :]:
            if other_x - x >= _LEAST_X:
                break
            if abs(other_y - y) < _LEAST_Y:
                return True
    return False
