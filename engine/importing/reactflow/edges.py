"""Edges of a React Flow canvas: loop bodies, the ends of loops and iterators, and cycles."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.importing.fields import as_object, as_text
from engine.importing.report import ImportReport

_END_OF_START: Final = {"loop": "exit", "iterator": "aggregator"}
_START_OF_END: Final = {end: start for start, end in _END_OF_START.items()}
_MAX_NESTING: Final = 64
"""Bodies nested deeper than this are not resolved; no workflow may nest them so deep."""


@dataclass(frozen=True, slots=True)
class ForeignEdge:
    """An edge of the canvas: the ids of two foreign nodes and the handles that it connects."""

    source: str
    source_handle: str
    target: str
    target_handle: str

    @property
    def place(self) -> str:
        """How the report names the edge."""
        return f"edge {self.source} -> {self.target}"


def read_edges(entries: Iterable[object], nodes: Container[str], report: ImportReport) -> list[ForeignEdge]:
    """Read the edges between these nodes, and report the others as left out."""
    edges: list[ForeignEdge] = []
    for entry in map(as_object, entries):
        edge = ForeignEdge(
            as_text(entry.get("source")),
            as_text(entry.get("sourceHandle")),
            as_text(entry.get("target")),
            as_text(entry.get("targetHandle")),
        )
        if edge.source in nodes and edge.target in nodes:
            edges.append(edge)
        else:
            report.left_out(edge.place, "It is not connected to nodes at both ends.")
    return edges


class BodyEnds:
    """Where the bodies of loops and iterators end.

    Attributes:
        types: The type of each foreign node.
        cycle_edges: Indices of the edges that close a cycle.
        of_start: The exit of each loop, and the aggregator of each iterator.
    """

    def __init__(self, types: dict[str, str], edges: Sequence[tuple[str, str]]) -> None:
        self.types = types
        outgoing: dict[str, list[tuple[int, str]]] = {node: [] for node in types}
        for index, (source, target) in enumerate(edges):
            outgoing[source].append((index, target))
        self.cycle_edges, order = _find_cycles(outgoing, {target for _, target in edges})
        self._next = {
            node: [target for index, target in targets if index not in self.cycle_edges]
            for node, targets in outgoing.items()
        }
        self._nearest = self._find_nearest_ends(order)
        self.of_start: dict[str, str] = {}
        for node, node_type in types.items():
            if node_type in _END_OF_START:
                end = next((end for target in self._next[node] if (end := self.innermost_end(target))), None)
                if end is not None and _START_OF_END[types[end]] == node_type:
                    self.of_start[node] = end

    def innermost_end(self, node: str) -> str | None:
        """The exit or aggregator of the innermost body that contains the node; the node itself if it is one."""
        found = self._nearest[node].get(0)
        return None if found is None else found[1]

    def leads_into_body(self, loop: str, target: str) -> bool:
        """Whether an edge from a loop to that node leads into its body, and not past its exit."""
        return loop in self.of_start and self.innermost_end(target) == self.of_start[loop]

    def _find_nearest_ends(self, order: Sequence[str]) -> dict[str, dict[int, tuple[int, str]]]:
        """For each node and nesting depth, the distance to the nearest end and the end.

        Depth is the number of bodies that are open when a path from the node reaches that end.

        Args:
            order: All nodes, each after its successors.
        """
        nearest: dict[str, dict[int, tuple[int, str]]] = {}
        for node in order:
            node_type = self.types[node]
            opened = 1 if node_type in _END_OF_START else -1 if node_type in _START_OF_END else 0
            found: dict[int, tuple[int, str]] = {}
            for target in self._next[node]:
                for inner_depth, (distance, end) in nearest[target].items():
                    depth = inner_depth - opened
                    if 0 <= depth <= _MAX_NESTING and (depth not in found or distance + 1 < found[depth][0]):
                        found[depth] = (distance + 1, end)
            if node_type in _START_OF_END:
                found[0] = (0, node)
            nearest[node] = found
        return nearest


def _find_cycles(
    outgoing: dict[str, list[tuple[int, str]]], targets: Container[str]
) -> tuple[frozenset[int], list[str]]:
    """Find back edges by depth-first search, which starts at the nodes without incoming edges.

    Returns:
        The indices of the back edges, and all nodes in an order where each follows its successors.
    """
    back_edges: set[int] = set()
    finished: dict[str, None] = {}
    for start in sorted(outgoing, key=lambda node: node in targets):
        if start in finished:
            continue
        on_path = {start}
        stack = [(start, iter(outgoing[start]))]
        while stack:
            node, remaining = stack[-1]
            step = next(remaining, None)
            if step is None:
                stack.pop()
                on_path.discard(node)
                finished[node] = None
            elif step[1] in on_path:
                back_edges.add(step[0])
            elif step[1] not in finished:
                on_path.add(step[1])
                stack.append((step[1], iter(outgoing[step[1]])))
    return frozenset(back_edges), list(finished)
