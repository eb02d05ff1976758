"""A long chain of nodes, compiled and run once, and the compilation of a small loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from benchmarks.effort import Effort
from benchmarks.tables import Table, aim, microseconds
from benchmarks.timing import Span, Stopwatch, measured, take_turns
from benchmarks.work import START, after
from benchmarks.workflows import NO_CAP, chain, loop_of_three, options
from engine import Workflow, start
from engine import compile as compile_plan

_NODES = {"step": "function", "transform": "transform", "llm": "llm"}
_RUN_AIM_US = 30.0
_COMPILE_AIM_US = 25.0
_LOOP_AIM_US = 200.0
_LOOPS_AT_ONCE = 100


def tables(effort: Effort) -> list[Table]:
    """Measure a chain of each node type, and a loop over three of them."""
    return [_running(effort), _compiling(effort)]


def _running(effort: Effort) -> Table:
    spans = _measure({node_type: _run(node_type, effort.chain) for node_type in _NODES}, effort.rounds)
    table = Table(
        f"Run a chain of {effort.chain:,} nodes once, µs per node", ("Nodes", "CPU, best", "wall, best", "target")
    )
    for node_type, name in _NODES.items():
        cpu, wall = spans[node_type]
        aimed = aim(cpu / effort.chain * 1e6, _RUN_AIM_US, " µs")
        table.add(name, microseconds(cpu, effort.chain), microseconds(wall, effort.chain), aimed)
    return table


def _compiling(effort: Effort) -> Table:
    chains = _measure({kind: partial(_compile, chain(kind, effort.chain), 1) for kind in _NODES}, effort.rounds)
    loops = _measure(
        {kind: partial(_compile, loop_of_three(kind, 10), _LOOPS_AT_ONCE) for kind in _NODES}, effort.rounds
    )
    table = Table(
        f"Compile a chain of {effort.chain:,} nodes, µs per node, and a loop over three nodes, µs",
        ("Nodes", "chain node, CPU, best", "target", "loop, CPU, best", "target"),
    )
    for node_type, name in _NODES.items():
        node, loop = chains[node_type][0] / effort.chain, loops[node_type][0] / _LOOPS_AT_ONCE
        node_aim, loop_aim = aim(node * 1e6, _COMPILE_AIM_US, " µs"), aim(loop * 1e6, _LOOP_AIM_US, " µs")
        table.add(name, microseconds(node), node_aim, microseconds(loop), loop_aim)
    table.notes.append("Compilation includes validation.")
    return table


def _measure(turns: dict[str, Callable[[], Span]], rounds: int) -> dict[str, tuple[float, float]]:
    """The best seconds of CPU and wall time of each contender."""
    take_turns(turns, 1)  # warms up and does not count
    return {name: (spans.cpu_s, spans.wall_s) for name, spans in take_turns(turns, rounds).items()}


def _run(node_type: str, length: int) -> Callable[[], Span]:
    plan = compile_plan(chain(node_type, length), registry=options().registry, max_iterations_cap=NO_CAP)

    async def once() -> Span:
        running = Stopwatch()
        run = start(plan, {}, options())
        with running.running():
            result = await run.result()
        expected = START if node_type == "transform" else after(length)
        if result.outputs != {"out": expected}:
            raise RuntimeError(f"The chain gave {result.outputs}. {result.error}")
        return running.span

    return lambda: asyncio.run(once())


def _compile(workflow: Workflow, count: int) -> Span:
    registry = options().registry

    def work() -> None:
        for _ in range(count):
            compile_plan(workflow, registry=registry)

    return measured(work)
