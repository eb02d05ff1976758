"""Directed graphs of node ids, as networkx stores them: topological order, cycles, reachability.

networkx's own generic algorithms dispatch on every call; the loops here use its graphs directly, which makes planning
several times faster. networkx is imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from networkx import DiGraph

Graph: TypeAlias = "DiGraph[str]"
"""A directed graph of node ids, which keeps the order in which nodes and edges were added."""


def make_graph(nodes: Iterable[str], edges: Iterable[tuple[str, str]] = ()) -> Graph:
    """Create a directed graph of node ids."""
    from networkx import DiGraph

    graph: Graph = DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph


def subgraph(graph: Graph, nodes: Collection[str]) -> Graph:
    """Copy some nodes of a graph and the edges between them."""
    inside = set(nodes)
    ordered = [node for node in graph if node in inside]
    return make_graph(
        ordered, ((node, after) for node in ordered for after in graph.successors(node) if after in inside)
    )


def topological_order(graph: Graph) -> list[str]:
    """Return the nodes with sources before targets, otherwise in the order in which they were added.

    Nodes on a cycle, and nodes behind one, are missing.
    """
    successors = dict(graph.adjacency())  # the graph's own dictionaries: its views are several times slower
    nodes = list(successors)
    position = {node: place for place, node in enumerate(nodes)}
    waits = dict.fromkeys(nodes, 0)
    for targets in successors.values():
        for after in targets:
            waits[after] += 1
    ready = [place for place, node in enumerate(nodes) if not waits[node]]
    order: list[str] = []
    while ready:
        node = nodes[heappop(ready)]
        order.append(node)
        for after in successors[node]:
            waits[after] -= 1
            if not waits[after]:
                heappush(ready, position[after])
    return order


def find_cycle(graph: Graph, order: Collection[str] | None = None) -> list[str] | None:
    """Return the nodes of a cycle, with the first one again at the end, or None.

    Args:
        graph: The graph.
        order: Its topological order, if known.
    """
    ordered = topological_order(graph) if order is None else order
    if len(ordered) == len(graph):
        return None
    rest = set(graph).difference(ordered)
    node = next(node for node in graph if node in rest)
    path: dict[str, None] = {}
    while node not in path:  # each remaining node has a remaining predecessor
        path[node] = None
        node = next(before for before in graph.predecessors(node) if before in rest)
    steps = list(path)
    cycle = [*steps[steps.index(node) :], node]
    return cycle[::-1]


def reachable(graph: Graph, starts: Iterable[str], *, stop_at: str = "") -> set[str]:
    """Return all nodes on paths from `starts`, including the starts. Paths end at `stop_at`."""
    return _search(starts, graph.successors, stop_at)


def leading_to(graph: Graph, end: str, *, stop_at: str = "") -> set[str]:
    """Return all nodes on paths to `end`, including `end`. Paths are followed back to `stop_at`."""
    return _search([end], graph.predecessors, stop_at)


def _search(starts: Iterable[str], neighbors: Callable[[str], Iterable[str]], stop_at: str) -> set[str]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        if node != stop_at:
            new = [there for there in neighbors(node) if there not in found]
            found.update(new)
            waiting.extend(new)
    return found
