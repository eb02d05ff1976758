"""Directed graphs of node ids as dictionaries of neighbors: topological order, cycles, reachability."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import heappop, heappush
from typing import TypeAlias

Neighbors: TypeAlias = Mapping[str, Collection[str]]
"""The neighbors of each node: its successors or, for a search backwards, its predecessors. Repeated ones count once."""


def reverse(neighbors: Neighbors) -> dict[str, list[str]]:
    """Return the predecessors of each node for its successors, and the other way round."""
    found: dict[str, list[str]] = {node: [] for node in neighbors}
    for node, there in neighbors.items():
        for neighbor in there:
            found[neighbor].append(node)
    return found


def topological_order(successors: Neighbors) -> list[str]:
    """Return the nodes with sources before targets, otherwise in the order of the dictionary.

    Nodes on a cycle, and nodes behind one, are missing.
    """
    nodes = list(successors)
    position = {node: place for place, node in enumerate(nodes)}
    if all(position[node] < position[after] for node, targets in successors.items() for after in targets):
        return nodes  # as in most documents
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


def find_cycle(successors: Neighbors, order: Collection[str]) -> list[str] | None:
    """Return the nodes of a cycle of a graph with this topological order, the first one again at the end, or None."""
    if len(order) == len(successors):
        return None
    predecessors, rest = reverse(successors), set(successors).difference(order)
    node = next(node for node in predecessors if node in rest)
    path: dict[str, None] = {}
    while node not in path:  # each remaining node has a remaining predecessor
        path[node] = None
        node = next(before for before in predecessors[node] if before in rest)
    steps = list(path)
    cycle = [*steps[steps.index(node) :], node]
    return cycle[::-1]


def reachable(neighbors: Neighbors, starts: Iterable[str], *, stop_at: str = "") -> set[str]:
    """Return all nodes on paths from `starts`, including the starts. Paths end at `stop_at`."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        if node != stop_at:
            new = [there for there in neighbors[node] if there not in found]
            found.update(new)
            waiting.extend(new)
    return found
