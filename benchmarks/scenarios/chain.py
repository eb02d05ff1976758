"""Many nodes in a row, run once, with planning apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from benchmarks.effort import Effort
from benchmarks.tables import Table, aim, microseconds, milliseconds
from benchmarks.timing import Span, Stopwatch, take_turns
from benchmarks.work import START, after
from benchmarks.workflows import chain, options
from engine import start

_NODES = {"step": "function", "transform": "transform", "llm": "llm"}
_MOST_US = 30.0


def tables(effort: Effort) -> list[Table]:
    """Measure a chain of each node type."""
    plannings: dict[str, list[Span]] = {node_type: [] for node_type in _NODES}
    turns = {node_type: _run(node_type, effort.chain, plannings[node_type]) for node_type in _NODES}
    take_turns(turns, 1)  # warms up and does not count
    for spans in plannings.values():
        spans.clear()
    runs = take_turns(turns, effort.rounds)
    table = Table(
        f"Chain of {effort.chain:,} nodes",
        ("Nodes", "CPU, best, µs a node", "wall, best, µs a node", "aim", "planning, CPU, best, ms"),
    )
    for node_type, name in _NODES.items():
        there = runs[node_type]
        table.add(
            name,
            microseconds(there.cpu_s, effort.chain),
            microseconds(there.wall_s, effort.chain),
            aim(there.cpu_s / effort.chain * 1e6, _MOST_US, " µs"),
            milliseconds(min(span.cpu_s for span in plannings[node_type])),
        )
    table.notes.append(
        "Planning is what `start` does before the first node: every check of the document, and the plan."
    )
    return [table]


def _run(node_type: str, length: int, plannings: list[Span]) -> Callable[[], Span]:
    workflow = chain(node_type, length)

    async def once() -> Span:
        planning, running = Stopwatch(), Stopwatch()
        with planning.running():
            run = start(workflow, {}, options())
        plannings.append(planning.span)
        with running.running():
            result = await run.result()
        expected = START if node_type == "transform" else after(length)
        if result.outputs != {"out": expected}:
            raise RuntimeError(f"The chain gave {result.outputs}. {result.error}")
        return running.span

    return lambda: asyncio.run(once())
