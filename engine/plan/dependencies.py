"""Parts of a workflow that run alone, and the nodes whose earlier outputs an edit has made stale.

Both look at the outermost level: a loop or an iterator stands for everything in it, and a node in it, or its exit, for
the whole loop. A node depends on the nodes whose edges lead to it, and on those that set a named state that it reads
(`state.NAME`), unless they come after it. A pinned node depends on nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.document.model import Node
from engine.document.problems import Problem
from engine.errors import EngineError
from engine.models.protocol import ModelChoice
from engine.nodes.spec import ITERATOR, LOOP, is_body_port
from engine.plan.graph_algorithms import Neighbors, reachable, reverse
from engine.plan.partial_run import Extent, Part
from engine.plan.resolve import UNPINNABLE, Resolved
from engine.plan.structure import Structure
from engine.text_sanitizing import shown
from engine.values import Value


@dataclass(frozen=True, slots=True)
class PartNodes:
    """The outermost nodes of a part.

    Attributes:
        targets: The nodes that run in any case.
        needed: The nodes before them, whose outputs they need.
        after: The nodes that depend on them and are not part of it.
    """

    targets: frozenset[str]
    needed: frozenset[str]
    after: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """The nodes that take part."""
        return self.targets | self.needed


def part_nodes(structure: Structure, part: Part) -> PartNodes:
    """Find the nodes of a part.

    Raises:
        EngineError: There is no such node.
    """
    if part.node not in structure.workflow.nodes_by_id:
        ids = ", ".join(structure.workflow.nodes_by_id)
        raise EngineError(f'There is no node "{shown(part.node, 60)}".', f"There are: {ids}.")
    dependents = _dependents(structure)
    targets = _with_ends(structure, {outermost(structure, part.node)})
    after = reachable(dependents, targets) - targets
    if part.extent is Extent.FROM:
        targets, after = targets | after, set[str]()
    needed = _with_ends(structure, reachable(reverse(dependents), targets)) - targets
    return PartNodes(frozenset(targets), frozenset(needed), frozenset(after))


def _with_ends(structure: Structure, nodes: set[str]) -> set[str]:
    """Add the exits of loops and the aggregators of iterators, which run with them."""
    return nodes | {structure.bodies[node].exit for node in nodes if node in structure.bodies}


def nodes_after(structure: Structure, nodes: Iterable[str]) -> frozenset[str]:
    """Return these outermost nodes and all that depend on them."""
    return frozenset(reachable(_dependents(structure), nodes))


def outermost(structure: Structure, node: str) -> str:
    """Return the outermost node that a node stands for: the loop or iterator around it, the loop of an exit, itself."""
    node = _around(structure, node)
    loop = structure.loop_of.get(node)
    return loop if loop is not None and structure.bodies[loop].kind is LOOP else node


def pin_target(structure: Structure, node: str) -> str | None:
    """Return the node to pin in order to pin the output of a node; None if it cannot be pinned."""
    present = structure.workflow.nodes_by_id.get(node)
    if present is None:
        return None
    if present.type == LOOP.end:
        return structure.loop_of.get(node)
    if present.type == ITERATOR.start:
        body = structure.bodies.get(node)
        return body.exit if body is not None else None
    return None if present.type in UNPINNABLE else node


def everything_in(structure: Structure, nodes: Iterable[str]) -> frozenset[str]:
    """Return nodes and everything in the bodies of the loops and iterators among them."""
    found: set[str] = set()
    for node in nodes:
        found.add(node)
        body = structure.bodies.get(node)
        if body is not None:
            found |= body.nodes
    return frozenset(found)


def is_outside(problem: Problem, structure: Structure, nodes: Collection[str]) -> bool:
    """Whether a problem cannot affect a part: it is about a node that does not take part.

    Args:
        problem: A problem of the document.
        structure: The document.
        nodes: All nodes of the part, at any depth.
    """
    place = problem.node if problem.node is not None else (problem.edge or "").rpartition(" -> ")[2].partition(".")[0]
    return bool(structure.order) and place in structure.workflow.nodes_by_id and place not in nodes


def stale_nodes(
    before: Structure,
    after: Structure,
    outputs: Mapping[str, Mapping[str, Value]],
    *,
    models: Callable[[Structure, ModelChoice], object] | None = None,
) -> frozenset[str]:
    """Return the outermost nodes whose earlier outputs are not what a run of the edited document would give.

    A node is stale if it was edited or connected in another way, if something in it was, or if it depends on a stale
    node. It is stale, too, if other nodes set a named state that it reads. Titles and the layout do not count, nor does
    a pin to what the node had output.

    Args:
        before: The document of the earlier run.
        after: The document now.
        outputs: What the outermost nodes output in that run.
        models: Returns what a model choice stands for in either document; by default that of the settings.
    """
    if after is before:
        return frozenset()
    called, outer = models or _model_in_settings, after.members.get(None, ())
    edited = [node for node in outer if _definition(before, node, called) != _definition(after, node, called)]
    if not edited and set(before.members.get(None, ())) <= set(outer):
        return frozenset()
    changed = {node for node in edited if not _is_pinned_at(after, node, outputs)}
    changed |= _with_other_state_writers(before, after) - after.replaced_by_pins
    return nodes_after(after, changed)


def _with_other_state_writers(before: Structure, after: Structure) -> set[str]:
    """Return the outermost nodes that read a named state which other nodes set than before."""
    was, now = (set(_state_dependencies(structure, _followers(structure))) for structure in (before, after))
    return {reader for reader, _, _ in was ^ now} & set(after.members.get(None, ()))


def _is_pinned_at(structure: Structure, node: str, outputs: Mapping[str, Mapping[str, Value]]) -> bool:
    """Whether a node, or the aggregator of an iterator, is pinned, and all connected ports at these values."""
    body = structure.bodies.get(node)
    pair = [node, body.exit] if body is not None and body.kind is ITERATOR else [node]
    nodes = [structure.workflow.nodes_by_id[one] for one in pair]
    pinned = {(one.id, port): value for one in nodes if one.enabled for port, value in one.pinned.items()}
    links = ((one, link.source_port) for one in nodes for link in structure.links_from.get(one.id, ()))
    used = {(one.id, port) for one, port in links if not is_body_port(one.type, port)} | pinned.keys()
    before = {(one, port): value for one in pair for port, value in outputs.get(one, {}).items()}
    return bool(pinned) and all(key in pinned and key in before and pinned[key] == before[key] for key in used)


def _model_in_settings(structure: Structure, choice: ModelChoice) -> object:
    return choice.name or structure.workflow.settings.get("model")


def _definition(structure: Structure, node: str, called: Callable[[Structure, ModelChoice], object]) -> object:
    """Return everything that the outputs of an outermost node depend on, apart from the nodes before it."""
    nodes = structure.workflow.nodes_by_id
    if node not in nodes or structure.parent.get(node) is not None:
        return None
    if node in structure.replaced_by_pins:
        return nodes[node].pinned, nodes[node].config.get("output_key")
    body = structure.bodies.get(node)
    members = [node, *(() if body is None else sorted(body.nodes))]
    ends = members if body is None else [*members, body.exit]
    incoming = [
        (link.source, link.source_port, link.target, link.target_port)
        for end in ends
        for link in structure.links_to.get(end, ())
    ]
    return [_own_definition(structure, nodes[member], called) for member in members], incoming


def _own_definition(structure: Structure, node: Node, called: Callable[[Structure, ModelChoice], object]) -> object:
    config = {key: value for key, value in node.config.items() if (node.type, key) != ("input", "description")}
    choices = (resolved.spec.model(resolved.config) for resolved in _with_subflow(structure, node.id))
    models = [called(structure, one) for choice in choices if choice is not None for one in choice.chain]
    return node.type, config, node.enabled, node.pinned, models


def _with_subflow(structure: Structure, node_id: str) -> Iterator[Resolved]:
    """Yield a node, and all nodes in it if it is a subflow."""
    resolved = structure.resolution.nodes.get(node_id)
    if resolved is not None:
        yield resolved
    inner = structure.subflows.get(node_id)
    for node in inner.workflow.nodes_by_id if inner is not None else ():
        yield from _with_subflow(inner, node) if inner is not None else ()


def _dependents(structure: Structure) -> dict[str, list[str]]:
    """The outermost nodes, each with those that depend on it."""
    found = _followers(structure)
    for reader, _, writer in _state_dependencies(structure, found):  # sees the nodes added here
        found[writer].append(reader)
    return found


def _followers(structure: Structure) -> dict[str, list[str]]:
    """The outermost nodes, each with those to which its edges lead, apart from pinned ones."""
    # Without an order, where there is a cycle, all nodes are outermost.
    found: dict[str, list[str]] = {node: [] for node in structure.members.get(None, structure.workflow.nodes_by_id)}
    for link in structure.links:
        source, target = (
            _around(structure, link.source),
            _around(structure, structure.loop_of.get(link.target, link.target)),
        )
        if source != target and target not in structure.replaced_by_pins:
            found[source].append(target)
    for body in structure.bodies.values():
        if body.loop in found:
            found[body.loop].append(body.exit)
    return found


def _around(structure: Structure, node: str) -> str:
    """Return the outermost loop or iterator around a node, or the node itself."""
    while (loop := structure.parent.get(node)) is not None:
        node = loop
    return node


def _state_dependencies(structure: Structure, followers: Neighbors) -> Iterator[tuple[str, str, str]]:
    """Yield each outermost node that reads a named state, the name, and each node that sets it and is not after it."""
    writers: dict[str, set[str]] = {}
    readers: list[tuple[str, str]] = []
    for node in followers:
        for member in everything_in(structure, [node]):
            for resolved in _with_subflow(structure, member):
                key = resolved.node.config.get("output_key")
                if isinstance(key, str) and key:
                    writers.setdefault(key, set()).add(node)
                paths = (path for text in resolved.texts for path in text.paths)
                readers += [(node, path[1]) for path in paths if path[0] == "state" and len(path) > 1]
    for reader, key in readers if writers else ():
        if reader not in structure.replaced_by_pins and key in writers:
            yield from ((reader, key, writer) for writer in writers[key] - reachable(followers, [reader]))
