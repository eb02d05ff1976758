"""A workflow under construction: nodes with unique ids, edges, positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.document.model import Edge, Node, Workflow, make_id
from engine.importing.fields import as_text
from engine.importing.report import FieldReader
from engine.values import Value

_MIN_DISTANCE_X: Final = 200.0
_MIN_DISTANCE_Y: Final = 88.0
"""Two cards overlap on the canvas if they are closer than both."""


class WorkflowDraft:
    """A workflow under construction.

    Attributes:
        settings: The workflow's settings.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._edges: dict[tuple[str, str], Edge] = {}
        self._positions: dict[str, Value] = {}
        self.settings: dict[str, Any] = {}

    def add(self, node_type: str, wanted_id: str, title: str = "", config: Mapping[str, Any] | None = None) -> str:
        """Add a node under an id as close to `wanted_id` as possible, and return the id."""
        node_id = make_id(wanted_id, self._nodes)
        self._nodes[node_id] = Node(id=node_id, type=node_type, title=title[:200], config=dict(config or {}))
        return node_id

    def connect(self, source: str, target: str) -> None:
        """Add an edge from `node.port` to `node.port`, unless it exists."""
        self._edges.setdefault((source, target), Edge.between(source, target))

    def config(self, node_id: str) -> dict[str, Any]:
        """The settings of a node, which the caller may change."""
        return self._nodes[node_id].config

    def set_position(self, node_id: str, x: float, y: float) -> None:
        """Set the position of a node on the canvas."""
        self._positions[node_id] = {"x": x, "y": y}

    def finish(self, top: FieldReader, default_name: str) -> Workflow:
        """Build the workflow, with name and description from the top level of the foreign file.

        It has a layout only if all nodes have positions and none overlap.
        """
        name, description = as_text(top.pop("name", "title")), as_text(top.pop("description"))
        if name:
            top.carried_over("name", "The workflow's name.")
        if description:
            top.carried_over("description", "The workflow's description.")
        top.report_rest()
        has_layout = bool(self._positions) and len(self._positions) == len(self._nodes)
        return Workflow(
            name=name or default_name,
            description=description,
            settings=self.settings,
            nodes=tuple(self._nodes.values()),
            edges=tuple(self._edges.values()),
            layout={"nodes": self._positions} if has_layout and not _overlap(self._positions) else {},
        )


def _overlap(positions: Mapping[str, Any]) -> bool:
    ordered = sorted((position["x"], position["y"]) for position in positions.values())
    for index, (x, y) in enumerate(ordered):
        for other_x, other_y in ordered[index + 1 :]:
            if other_x - x >= _MIN_DISTANCE_X:
                break
            if abs(other_y - y) < _MIN_DISTANCE_Y:
                return True
    return False
