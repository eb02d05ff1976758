"""Which exit ends which loop, and which aggregator which iterator.

An exit names its loop. Where a file leaves that out, loops and exits pair like brackets: along every path, an exit
ends the loop that was opened last and is not ended yet. Iterators and aggregators pair in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from engine.document.model import Workflow
from engine.document.problems import Problem
from engine.nodes.pairs import ITERATOR, LOOP, Pair
from engine.plan.edges import Link
from engine.plan.resolve import Resolution
from engine.text_sanitizing import shown


@dataclass(frozen=True)
class Pairing:
    """Loops and exits, iterators and aggregators that belong together, and what is wrong with the others."""

    exit_of: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[Problem] = field(default_factory=list[Problem])


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
    for kind in (LOOP, ITERATOR):
        starts = [node.id for node in workflow.nodes if node.type == kind.start]
        ends = [node.id for node in workflow.nodes if node.type == kind.end]
        if not starts and not ends:
            continue
        named = {end: _named_start(kind, end, resolution) for end in ends}
        ended_by = {end: name for end, name in named.items() if name in starts}
        _pair_like_brackets(kind, leading, order, starts, {e: n for e, n in named.items() if not n}, ended_by)
        open_starts = [start for start in starts if start not in ended_by.values()]
        open_ends = [end for end in ends if end not in ended_by and not named[end]]
        if len(open_starts) == len(open_ends) == 1:
            ended_by[open_ends[0]] = open_starts[0]
        problems += [*_end_problems(kind, ends, named, ended_by), *_start_problems(kind, starts, ended_by)]
        ends_of: dict[str, list[str]] = {}
        for end, start in ended_by.items():
            ends_of.setdefault(start, []).append(end)
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
    unnamed: dict[str, str],
    ended_by: dict[str, str],
) -> None:
    """Add to `ended_by` the pairs that follow from the paths; `open_at` holds what is open behind each node."""
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


def _end_problems(kind: Pair, ends: list[str], named: dict[str, str], ended_by: dict[str, str]) -> Iterator[Problem]:
    for end in ends:
        if end in ended_by:
            continue
        if named[end]:
            yield Problem(
                "unknown-loop",
                f'The {kind.end} "{end}" names {_a(kind.start)} "{shown(named[end], 60)}" that is not there.',
                f"Name the {kind.start} that it ends.",
                node=end,
                field=kind.field,
            )
        else:
            yield Problem(
                "exit-without-loop",
                f'The {kind.end} "{end}" ends no {kind.start}.',
                f"Add {_a(kind.start)} before it, or remove the {kind.end}.",
                node=end,
            )


def _start_problems(kind: Pair, starts: list[str], ended_by: dict[str, str]) -> Iterator[Problem]:
    for start in starts:
        there = [end for end, ended in ended_by.items() if ended == start]
        if not there:
            yield Problem(
                "missing-exit",
                f'The {kind.start} "{start}" has no {kind.end}.',
                f"Add {_a(kind.end)} and lead the end of the {kind.start}'s body to it.",
                node=start,
            )
        elif len(there) > 1:
            yield Problem(
                "two-exits",
                f'The {kind.start} "{start}" has {len(there)} {kind.end}s: {", ".join(there)}.',
                "Keep one, and lead everything to it.",
                node=start,
            )


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
