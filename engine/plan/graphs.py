"""The graph algorithms that planning needs, by networkx, in the types that we use.

The only place that touches networkx; it is imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from networkx import DiGraph

Graph: TypeAlias = "DiGraph[str]"
"""A directed graph of node ids."""


def make_graph(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> Graph:
    """A directed graph of node ids."""
    import networkx as nx

    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph


def ordered(graph: Graph) -> list[str]:
    """The nodes of a graph without cycles, sources before targets, otherwise in the order in which they were added."""
    import networkx as nx

    position = {node: index for index, node in enumerate(graph)}
    return list(nx.lexicographical_topological_sort(graph, key=position.__getitem__))


def find_cycle(graph: Graph) -> list[str] | None:
    """The nodes of some cycle, the first again at the end; None where there is none."""
    import networkx as nx

    if nx.is_directed_acyclic_graph(graph):  # a good deal faster than the search for a cycle that is not there
        return None
    try:
        steps: list[tuple[str, str]] = list(nx.find_cycle(graph))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - untyped result
    except nx.NetworkXNoCycle:
        return None
    return [steps[0][0], *(target for _, target in steps)]


def reachable(graph: Graph, starts: Iterable[str], *, stop_at: str = "") -> set[str]:
    """All nodes that paths from `starts` lead to, the starts among them; no path goes on behind `stop_at`."""
    return _search(starts, graph.successors, stop_at)


def leading_to(graph: Graph, end: str, *, stop_at: str = "") -> set[str]:
    """All nodes from which paths lead to `end`, `end` among them; no path is followed back behind `stop_at`."""
    return _search([end], graph.predecessors, stop_at)


def _search(starts: Iterable[str], neighbours: Callable[[str], Iterable[str]], stop_at: str) -> set[str]:
    """Written out here: asked for each loop of a document, networkx's own search takes four times as long."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        if node != stop_at:
            new = [there for there in neighbours(node) if there not in found]
            found.update(new)
            waiting.extend(new)
    return found
