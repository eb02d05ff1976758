"""Which exit ends which loop.

An exit names its loop. Where a file leaves that out, loops and exits pair like brackets: along every path, an exit
ends the loop that was opened last and is not ended yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from engine.document.model import Workflow
from engine.document.problems import Problem
from engine.document.wording import shown
from engine.plan.edges import Link
from engine.plan.resolve import Resolution

BODY_PORT = "body"


@dataclass(frozen=True)
class Pairing:
    """Loops and exits that belong together, and what is wrong with the others."""

    exit_of: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[Problem] = field(default_factory=list[Problem])


def pair(workflow: Workflow, resolution: Resolution, found: list[Link], order: Iterable[str]) -> Pairing:
    """Pair the loops and exits of a document without cycles.

    Args:
        workflow: The document.
        resolution: Its nodes.
        found: Its edges.
        order: All node ids, sources before targets.
    """
    loops = [node.id for node in workflow.nodes if node.type == "loop"]
    exits = [node.id for node in workflow.nodes if node.type == "exit"]
    named = {exit_id: _named_loop(exit_id, resolution) for exit_id in exits}
    ended_by = {exit_id: name for exit_id, name in named.items() if name in loops}
    _pair_like_brackets(found, order, loops, {e: n for e, n in named.items() if not n}, ended_by)
    open_loops = [loop for loop in loops if loop not in ended_by.values()]
    open_exits = [exit_id for exit_id in exits if exit_id not in ended_by and not named[exit_id]]
    if len(open_loops) == len(open_exits) == 1:
        ended_by[open_exits[0]] = open_loops[0]
    problems = [*_exit_problems(exits, named, ended_by), *_loop_problems(loops, ended_by)]
    exits_of: dict[str, list[str]] = {}
    for exit_id, loop in ended_by.items():
        exits_of.setdefault(loop, []).append(exit_id)
    return Pairing({loop: there[0] for loop, there in exits_of.items() if len(there) == 1}, problems)


def _named_loop(exit_id: str, resolution: Resolution) -> str:
    resolved = resolution.nodes.get(exit_id)
    return resolved.config.loop if resolved is not None else ""


def _pair_like_brackets(
    found: list[Link], order: Iterable[str], loops: list[str], unnamed: dict[str, str], ended_by: dict[str, str]
) -> None:
    """Add to `ended_by` the pairs that follow from the paths; `open_at` holds the loops open behind each node."""
    leading: dict[str, list[Link]] = {}
    for link in found:
        leading.setdefault(link.target, []).append(link)
    is_loop = set(loops)
    open_at: dict[str, tuple[str, ...]] = {}
    for node in order:
        reached = [
            (*open_at[link.source], link.source)
            if link.source in is_loop and link.source_port == BODY_PORT
            else open_at[link.source]
            for link in leading.get(node, ())
        ]
        now_open = max(reached, key=len, default=())
        if node in unnamed and now_open:
            ended_by[node] = now_open[-1]
        ended = ended_by.get(node)
        open_at[node] = now_open[: now_open.index(ended)] if ended in now_open else now_open


def _exit_problems(exits: list[str], named: dict[str, str], ended_by: dict[str, str]) -> Iterator[Problem]:
    for exit_id in exits:
        if exit_id in ended_by:
            continue
        if named[exit_id]:
            yield Problem(
                "unknown-loop",
                f'The exit "{exit_id}" names a loop "{shown(named[exit_id], 60)}" that is not there.',
                "Name the loop that it ends.",
                node=exit_id,
                field="loop",
            )
        else:
            yield Problem(
                "exit-without-loop",
                f'The exit "{exit_id}" ends no loop.',
                "Add a loop before it, or remove the exit.",
                node=exit_id,
            )


def _loop_problems(loops: list[str], ended_by: dict[str, str]) -> Iterator[Problem]:
    for loop in loops:
        there = [exit_id for exit_id, ended in ended_by.items() if ended == loop]
        if not there:
            yield Problem(
                "missing-exit",
                f'The loop "{loop}" has no exit.',
                "Add an exit and lead the end of the loop's body to it.",
                node=loop,
            )
        elif len(there) > 1:
            yield Problem(
                "two-exits",
                f'The loop "{loop}" has {len(there)} exits: {", ".join(there)}.',
                "Keep one, and lead everything to it.",
                node=loop,
            )
