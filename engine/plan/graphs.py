"""Directed graphs of node ids: topological order, cycles, reachability."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import heappop, heappush


class Graph:
    """A directed graph of node ids that keeps the order in which nodes and edges were added.

    Attributes:
        successors: For each node, the nodes that its edges lead to.
        predecessors: For each node, the nodes whose edges lead to it.
    """

    __slots__ = ("predecessors", "successors")

    def __init__(self, nodes: Iterable[str], edges: Iterable[tuple[str, str]] = ()) -> None:
        self.successors: dict[str, dict[str, None]] = {node: {} for node in nodes}
        self.predecessors: dict[str, dict[str, None]] = {node: {} for node in self.successors}
        self.add_edges(edges)

    def __contains__(self, node: str) -> bool:
        return node in self.successors

    def add_edges(self, edges: Iterable[tuple[str, str]]) -> None:
        """Add edges between nodes of the graph; adding one twice changes nothing."""
        for source, target in edges:
            self.successors[source][target] = None
            self.predecessors[target][source] = None

    def subgraph(self, nodes: Collection[str]) -> Graph:
        """The graph of these nodes and the edges between them."""
        inside = set(nodes)
        edges = ((node, there) for node in self.successors if node in inside for there in self.successors[node])
        return Graph((node for node in self.successors if node in inside), ((a, b) for a, b in edges if b in inside))


def topological_order(graph: Graph) -> list[str]:
    """The nodes, sources before targets, otherwise in the order in which they were added.

    Nodes on a cycle, and those behind one, are missing.
    """
    nodes = list(graph.successors)
    position = {node: place for place, node in enumerate(nodes)}
    waits = {node: len(before) for node, before in graph.predecessors.items()}
    ready = [place for place, node in enumerate(nodes) if not waits[node]]
    order: list[str] = []
    while ready:
        node = nodes[heappop(ready)]
        order.append(node)
        for after in graph.successors[node]:
            waits[after] -= 1
            if not waits[after]:
                heappush(ready, position[after])
    return order


def find_cycle(graph: Graph, order: Collection[str] | None = None) -> list[str] | None:
    """The nodes of some cycle, the first again at the end; None without a cycle.

    Args:
        graph: The graph.
        order: Its topological order, if known.
    """
    ordered = topological_order(graph) if order is None else order
    if len(ordered) == len(graph.successors):
        return None
    rest = set(graph.successors).difference(ordered)
    node = next(node for node in graph.successors if node in rest)
    path: dict[str, None] = {}
    while node not in path:  # each node that is left has a predecessor that is left
        path[node] = None
        node = next(before for before in graph.predecessors[node] if before in rest)
    steps = list(path)
    cycle = [*steps[steps.index(node) :], node]
    return cycle[::-1]


def reachable(graph: Graph, starts: Iterable[str], *, stop_at: str = "") -> set[str]:
    """All nodes that paths from `starts` lead to, the starts included; paths end at `stop_at`."""
    return _search(starts, graph.successors, stop_at)


def leading_to(graph: Graph, end: str, *, stop_at: str = "") -> set[str]:
    """All nodes from which paths lead to `end`, `end` included; paths are followed back as far as `stop_at`."""
    return _search([end], graph.predecessors, stop_at)


def _search(starts: Iterable[str], neighbours: Mapping[str, Iterable[str]], stop_at: str) -> set[str]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        if node != stop_at:
            new = [there for there in neighbours[node] if there not in found]
            found.update(new)
            waiting.extend(new)
    return found
