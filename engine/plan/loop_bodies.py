"""Pairs of loops and exits, and the loop bodies between them; iterators and aggregators count as loops and exits here.

An exit names its loop. Where a file leaves that out, loops and exits pair like brackets: along every path, an exit
ends the loop that was opened last.

A body is everything reachable from the loop's port `body` (an iterator's `item` and `index`) that also leads to its
exit: a forward search that stops at the exit, a backward search that stops at the loop, and their intersection. Side
branches that lead nowhere belong to it too: a router's `continue` branch that ends in a transform, or a tool that
writes a file in every iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations, pairwise
from typing import Final

from engine.document.model import Workflow
from engine.document.problems import Problem
from engine.formatting import with_article
from engine.nodes.spec import ITERATOR, LOOP, PAIR_BY_END, PAIR_BY_START, Pair
from engine.plan.graph_algorithms import Neighbors, find_cycle, reachable, topological_order
from engine.plan.resolve import Link, Resolution
from engine.text_sanitizing import shown
from engine.values import immutable

Name = Callable[[str], str]
"""Returns what people call a node."""

MAX_DEPTH = 64
"""How deep loops may nest; each level needs some of Python's stack."""

_PAIRED: Final = PAIR_BY_START.keys() | PAIR_BY_END.keys()


@immutable
class Body:
    """The body of one loop or iterator.

    Attributes:
        kind: Which pair of node types stands around it.
        loop: Id of the loop.
        exit: Id of its exit.
        nodes: Ids of all nodes in it, those of nested loops included, without `loop` and `exit` themselves.
        side_branches: Those among them that do not lead to the exit.
    """

    kind: Pair
    loop: str
    exit: str
    nodes: frozenset[str]
    side_branches: frozenset[str]


def find_body(
    loop: str,
    workflow: Workflow,
    successors: Neighbors,
    predecessors: Neighbors,
    leaving: list[Link],
    exit_of: dict[str, str],
) -> Body:
    """Find a loop's body.

    Args:
        loop: The loop.
        workflow: The document.
        successors: The nodes after each node, where an exit comes after its loop.
        predecessors: The nodes before each node.
        leaving: The edges that start at the loop.
        exit_of: The exit of each loop.
    """
    kind, exit_id = PAIR_BY_START[workflow.nodes_by_id[loop].type], exit_of[loop]
    seeds = [link.target for link in leaving if link.source_port in kind.body_ports]
    forward = reachable(successors, seeds, stop_at=exit_id)
    core = (forward & reachable(predecessors, [exit_id], stop_at=loop)) - {loop, exit_id}
    hanging = forward - core - {loop, exit_id}
    side: set[str] = set()
    if hanging:  # rare, and most of the document may come after a loop
        results = [link.target for link in leaving if link.source_port not in kind.body_ports]
        hanging -= reachable(successors, [exit_id, *(node for node in results if node not in core)])
        between = {node: [after for after in successors[node] if after in hanging] for node in hanging}
        loop_of = {there: its_loop for its_loop, there in exit_of.items()}
        for node in reversed(topological_order(between)):
            leaves = workflow.nodes_by_id[node].type == "output" or loop_of.get(node, node) not in forward
            if not leaves and side.issuperset(successors[node]):
                side.add(node)
    return Body(kind, loop, exit_id, frozenset(core | side), frozenset(side))


def body_problems(
    bodies: dict[str, Body], innermost: dict[str, str], found: list[Link], name: Name
) -> Iterator[Problem]:
    """Report empty bodies, edges that enter or leave a body illegally, overlaps, and loops nested too deep.

    Args:
        bodies: All bodies.
        innermost: The innermost loop around each node of a body.
        found: The edges.
        name: Returns what people call a node.
    """
    for body in bodies.values():
        if body.nodes == body.side_branches:
            yield Problem(
                "empty-body",
                f'Nothing is between the {body.kind.start} "{name(body.loop)}" and its end "{name(body.exit)}".',
                f'Lead the {body.kind.start}\'s port "{body.kind.body_ports[0]}" through at least one node to its end.',
                node=body.loop,
            )
    for link in found:
        if link.source in bodies or link.source in innermost:
            yield from _edge_problems(link, bodies, innermost, name)
    yield from _overlaps(bodies, name)
    for loop, body in bodies.items():
        if _depth(loop, innermost) > MAX_DEPTH:
            yield Problem(
                "nested-too-deep",
                f'The {body.kind.start} "{name(loop)}" is nested more than {MAX_DEPTH} loops deep.',
                "Flatten the workflow.",
                node=loop,
            )


def waiting_problem(bodies: dict[str, Body], found: list[Link], successors: Neighbors, name: Name) -> Problem | None:
    """Report a loop that waits for itself, if there is one.

    A loop waits for the values that enter its body from outside. This makes a cycle that the edges alone do not show if
    such a value depends on the result of the loop.

    Args:
        bodies: All bodies.
        found: The edges.
        successors: The nodes after each node, where an exit comes after its loop; without a cycle.
        name: Returns what people call a node.
    """
    results = (link for link in found if link.source in bodies)
    if all(link.source_port in bodies[link.source].kind.body_ports for link in results):
        return None
    around: dict[str, list[Body]] = {}
    for body in bodies.values():
        for node in (*body.nodes, body.exit):
            around.setdefault(node, []).append(body)
    waits = {
        (link.source, body.loop): link
        for link in found
        for body in around.get(link.target, ())
        if link.source not in body.nodes and link.source != body.loop
    }
    if not waits:
        return None
    after = {node: [*there] for node, there in successors.items()}
    for source, loop in waits:
        after[source].append(loop)
    cycle = find_cycle(after, topological_order(after))
    if cycle is None:
        return None
    source, loop = next(step for step in pairwise(cycle) if step in waits)
    kind = bodies[loop].kind
    return Problem(
        "loop-waits-for-itself",
        f'The {kind.start} "{name(loop)}" waits for itself: its body uses "{name(source)}", '
        "which depends on its result.",
        "Remove this edge, or use a value that does not depend on that result.",
        node=loop,
        edge=str(waits[source, loop].edge),
    )


def parents(bodies: dict[str, Body]) -> dict[str, str]:
    """Return the innermost loop around each node of a body."""
    innermost: dict[str, str] = {}
    for body in sorted(bodies.values(), key=lambda body: len(body.nodes), reverse=True):
        for node in body.nodes:
            innermost[node] = body.loop
    return innermost


def _depth(loop: str, innermost: dict[str, str]) -> int:
    depth, seen = 1, {loop}
    while (loop := innermost.get(loop, "")) and loop not in seen:
        seen.add(loop)
        depth += 1
    return depth


def _edge_problems(link: Link, bodies: dict[str, Body], innermost: dict[str, str], name: Name) -> Iterator[Problem]:
    own = bodies.get(link.source)
    is_inside = own is not None and (link.target in own.nodes or link.target == own.exit)
    if own is not None and is_inside and link.source_port not in own.kind.body_ports:
        start, port = own.kind.start, own.kind.body_ports[0]
        names = "{{loop.history}}" if start == "loop" else "{{item}}"
        yield Problem(
            "loop-result-in-body",
            f'The port "{link.source_port}" of the {start} "{name(own.loop)}" has a value only after the {start}.',
            f'Start from its port "{port}" instead, or use {names} in a text.',
            edge=str(link.edge),
            node=own.loop,
            port=link.source_port,
        )
    if own is not None and not is_inside and link.source_port in own.kind.body_ports:
        yield from _escape(link, own, name)
        return
    around = bodies.get(innermost.get(link.source, ""))
    if around is not None and link.target not in around.nodes and link.target != around.exit:
        yield from _escape(link, around, name)


def _escape(link: Link, body: Body, name: Name) -> Iterator[Problem]:
    """Report an edge that leaves a body."""
    start, end = body.kind.start, body.kind.end
    yield Problem(
        "edge-out-of-body",
        f'The edge from "{name(link.source)}" leaves the {start} "{name(body.loop)}" other than through its {end}.',
        f'Route it through the {end} "{name(body.exit)}", or use the {start}\'s port "iterations".',
        edge=str(link.edge),
        node=link.source,
        port=link.source_port,
    )


def _overlaps(bodies: dict[str, Body], name: Name) -> Iterator[Problem]:
    whole = [(body, body.nodes | {body.loop, body.exit}) for body in bodies.values()]
    for (first, in_first), (second, in_second) in combinations(whole, 2):
        if not in_first.isdisjoint(in_second) and not (in_first <= second.nodes or in_second <= first.nodes):
            yield Problem(
                "overlapping-loops",
                f'The {first.kind.start} "{name(first.loop)}" and the {second.kind.start} "{name(second.loop)}" '
                "overlap, and neither is completely inside the other.",
                f"Move one {first.kind.start} and its {first.kind.end} inside the other, or put one after the other.",
                node=first.loop,
            )


@immutable
class Pairing:
    """Loops and exits, iterators and aggregators that belong together, and what is wrong with the others."""

    exit_of: dict[str, str]
    problems: list[Problem]


def pair(
    workflow: Workflow, resolution: Resolution, leading: Mapping[str, list[Link]], order: Iterable[str]
) -> Pairing:
    """Pair the loops and exits, iterators and aggregators of a document without cycles.

    Args:
        workflow: The document.
        resolution: Its nodes.
        leading: The edges that lead to each node.
        order: All node ids, sources before targets.
    """
    exit_of: dict[str, str] = {}
    problems: list[Problem] = []
    paired = [node for node in workflow.nodes_by_id.values() if node.type in _PAIRED]
    for kind in (LOOP, ITERATOR) if paired else ():
        starts = [node.id for node in paired if node.type == kind.start]
        ends = [node.id for node in paired if node.type == kind.end]
        if not starts and not ends:
            continue
        named = {end: _named_start(kind, end, resolution) for end in ends}
        ended_by = {end: name for end, name in named.items() if name in starts}
        unnamed = {end for end in ends if not named[end]}
        if unnamed and (len(starts) > 1 or len(ends) > 1):
            _pair_like_brackets(kind, leading, order, starts, unnamed, ended_by)
        open_starts = [start for start in starts if start not in ended_by.values()]
        open_ends = [end for end in ends if end not in ended_by and not named[end]]
        if len(open_starts) == len(open_ends) == 1:
            ended_by[open_ends[0]] = open_starts[0]
        ends_of: dict[str, list[str]] = {start: [] for start in starts}
        for end, start in ended_by.items():
            ends_of[start].append(end)
        problems += _end_problems(kind, ends, named, ended_by, resolution.name)
        problems += _start_problems(kind, ends_of, resolution.name)
        exit_of.update({start: there[0] for start, there in ends_of.items() if len(there) == 1})
    return Pairing(exit_of, problems)


def _named_start(kind: Pair, end: str, resolution: Resolution) -> str:
    resolved = resolution.nodes.get(end)
    return getattr(resolved.config, kind.field) if resolved is not None else ""


def _pair_like_brackets(
    kind: Pair,
    leading: Mapping[str, list[Link]],
    order: Iterable[str],
    starts: list[str],
    unnamed: set[str],
    ended_by: dict[str, str],
) -> None:
    """Add the pairs that follow from the paths to `ended_by`; `open_at` has the open loops after each node."""
    is_start = set(starts)
    open_at: dict[str, tuple[str, ...]] = {}
    for node in order:
        reached = [
            (*open_at[link.source], link.source)
            if link.source in is_start and link.source_port in kind.body_ports
            else open_at[link.source]
            for link in leading.get(node, ())
        ]
        now_open = max(reached, key=len, default=())
        if node in unnamed and now_open:
            ended_by[node] = now_open[-1]
        ended = ended_by.get(node)
        open_at[node] = now_open[: now_open.index(ended)] if ended in now_open else now_open


def _end_problems(
    kind: Pair, ends: list[str], named: dict[str, str], ended_by: dict[str, str], name: Name
) -> Iterator[Problem]:
    for end in ends:
        if end in ended_by:
            continue
        if named[end]:
            yield Problem(
                "unknown-loop",
                f'The {kind.end} "{name(end)}" names {with_article(kind.start)} "{shown(named[end], 60)}" '
                "that does not exist.",
                f"Choose the {kind.start} that it ends.",
                node=end,
                field=kind.field,
            )
        else:
            yield Problem(
                "exit-without-loop",
                f'The {kind.end} "{name(end)}" ends no {kind.start}.',
                f"Add {with_article(kind.start)} before it, or remove the {kind.end}.",
                node=end,
            )


def _start_problems(kind: Pair, ends_of: dict[str, list[str]], name: Name) -> Iterator[Problem]:
    for start, there in ends_of.items():
        if not there:
            yield Problem(
                "missing-exit",
                f'The {kind.start} "{name(start)}" has no {kind.end}.',
                f"Add {with_article(kind.end)} and connect the end of the {kind.start}'s body to it.",
                node=start,
            )
        elif len(there) > 1:
            yield Problem(
                "two-exits",
                f'The {kind.start} "{name(start)}" has {len(there)} {kind.end}s: {", ".join(map(name, there))}.',
                "Keep one, and connect everything to it.",
                node=start,
            )
