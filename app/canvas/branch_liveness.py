"""Which values can exist together: every way in which routers and other nodes with branches may choose is tried.

No Qt here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.nodes.spec import ERROR_PORT
from engine.plan.resolve import Link, Resolved
from engine.plan.structure import Structure

MAX_CASES: Final = 512
"""After so many combinations of branches, values count as not always existing together."""

End = tuple[str, str]
"""A node and one of its output ports."""


class _OpenChoiceError(Exception):
    """A case does not say which branch a node takes."""

    def __init__(self, end: End, options: Sequence[str]) -> None:
        self.end, self.options = end, options


def first_difference(structure: Structure, groups: Sequence[Sequence[End]]) -> tuple[int, int] | None:
    """Find two groups of values of which one can have a live value while the other has none.

    Args:
        structure: The document.
        groups: The outputs of each group; one without outputs always counts as live.

    Returns:
        The positions of the two groups; None if in every case all groups are live or none is.
    """
    nodes = _before(structure, {node for group in groups for node, _ in group})
    wanted = {end for group in groups for end in group}
    cases: list[dict[End, str]] = [{}]
    for _ in range(MAX_CASES if len(groups) > 1 else 0):
        if not cases:
            return None
        case = cases.pop()
        try:
            live = _live_ends(structure, nodes, wanted, case)
        except _OpenChoiceError as choice:
            cases += [{**case, choice.end: option} for option in choice.options]
            continue
        states = [not group or any(end in live for end in group) for group in groups]
        if len(set(states)) > 1:
            return states.index(True), states.index(False)
    return (0, len(groups) - 1) if len(groups) > 1 else None


def _before(structure: Structure, ends: set[str]) -> list[str]:
    """Return nodes and all nodes before them, in their order; a loop's body is not before its exit."""
    found: set[str] = set()
    waiting = list(ends)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            loop = structure.loop_of.get(node)
            waiting += [loop] if loop is not None else [link.source for link in structure.links_to.get(node, ())]
    return [node for node in structure.order if node in found]


def _live_ends(structure: Structure, nodes: Sequence[str], wanted: set[End], case: Mapping[End, str]) -> set[End]:
    """Return the outputs that have a value in one case.

    Raises:
        _OpenChoiceError: The case has no branch for a node that runs.
    """
    live: set[End] = set()
    running: set[str] = set()
    for node in nodes:
        loop = structure.loop_of.get(node)
        into = structure.links_to.get(node, [])
        resolved = structure.resolution.nodes.get(node)
        if not (loop in running if loop is not None else _runs(resolved, into, live)):
            continue
        running.add(node)
        ports = {link.source_port for link in structure.links_from.get(node, ())}
        passed = _passed(structure, node, ports, into)
        for port in ports | {port for name, port in wanted if name == node}:
            if passed is not None:
                is_live = port in passed
            else:
                is_live = resolved is None or _takes(structure, resolved, port, case)
            if is_live:
                live.add((node, port))
    return live


def _runs(resolved: Resolved | None, into: Sequence[Link], live: set[End]) -> bool:
    """Whether the values that reach a node are enough for it."""
    arrived = {link.target_port for link in into if (link.source, link.source_port) in live}
    for name in {link.target_port for link in into} - arrived:
        port = resolved.inputs.get(name) if resolved is not None else None
        if port is None or port.required or port.gate:
            return False
    return bool(arrived) or not into


def _passed(structure: Structure, node: str, ports: set[str], into: Sequence[Link]) -> set[str] | None:
    """The ports at which a pinned or disabled node has a value; None for other nodes."""
    own, resolved = structure.workflow.nodes_by_id[node], structure.resolution.nodes.get(node)
    if own.enabled and own.pinned:
        return set(own.pinned)
    if own.enabled or node in structure.bodies or node in structure.loop_of:
        return None
    is_passed_on = len(ports) == 1 == len({link.target_port for link in into})
    branches = _branches(resolved) if resolved is not None else ()
    return ports.difference(branches) if is_passed_on else set()


def _branches(resolved: Resolved) -> list[str]:
    return [name for name, port in resolved.outputs.items() if port.branch]


def _takes(structure: Structure, resolved: Resolved, port: str, case: Mapping[End, str]) -> bool:
    """Whether a node that runs has a value at a port in one case."""
    branches = _branches(resolved)
    if ERROR_PORT.name in branches:
        branches.remove(ERROR_PORT.name)
        has_failed = _chosen(case, (resolved.id, ERROR_PORT.name), ("failed", "completed")) == "failed"
        if has_failed or port == ERROR_PORT.name:
            return has_failed and port == ERROR_PORT.name
    inner = structure.subflows.get(resolved.id)
    if inner is not None and _has_branches(inner):
        return _chosen(case, (resolved.id, port), ("live", "dead")) == "live"
    return port not in branches or _chosen(case, (resolved.id, ""), branches) == port


def _chosen(case: Mapping[End, str], end: End, options: Sequence[str]) -> str:
    if end not in case:
        raise _OpenChoiceError(end, options)
    return case[end]


def _has_branches(structure: Structure) -> bool:
    return any(map(_branches, structure.resolution.nodes.values())) or any(
        map(_has_branches, structure.subflows.values())
    )
