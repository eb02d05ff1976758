"""Many model calls side by side, each of which waits: how near the whole comes to the wait of one."""

from __future__ import annotations

import asyncio

from benchmarks.effort import Effort
from benchmarks.tables import Table, aim, milliseconds, times
from benchmarks.timing import Span, Stopwatch, take_turns
from benchmarks.work import START, step
from benchmarks.workflows import fan, options
from engine import start

_WAIT_S = 0.02
_MOST = 1.3


def tables(effort: Effort) -> list[Table]:
    """Measure the calls in a workflow, and the same waits in bare asyncio."""
    turns = {
        "asyncio.gather": lambda: asyncio.run(_bare(effort.width)),
        "Loopwright, llm nodes": lambda: asyncio.run(_ours(effort.width)),
    }
    take_turns(turns, 1)  # warms up and does not count
    spans = take_turns(turns, effort.rounds)
    table = Table(
        f"{effort.width} calls of {_WAIT_S * 1e3:g} ms side by side",
        ("Contender", "wall, best, ms", "wall, median, ms", "best to one wait", "aim", "CPU, best, ms"),
    )
    for name, there in spans.items():
        ratio = there.wall_s / _WAIT_S
        table.add(
            name,
            milliseconds(there.wall_s),
            milliseconds(there.median_wall_s),
            times(ratio),
            aim(round(ratio, 2), _MOST, " ×") if name.startswith("Loopwright") else "–",
            milliseconds(there.cpu_s),
        )
    table.notes.append("Planning is not in it. `settings.max_concurrency` is raised to the number of calls.")
    return [table]


async def _bare(width: int) -> Span:
    stopwatch = Stopwatch()
    with stopwatch.running():
        await asyncio.gather(*(asyncio.sleep(_WAIT_S) for _ in range(width)))
    return stopwatch.span


async def _ours(width: int) -> Span:
    run = start(fan(width), {}, options(_WAIT_S))
    stopwatch = Stopwatch()
    with stopwatch.running():
        result = await run.result()
    if result.outputs != {"out": "\n\n".join([step(START)] * width)}:
        raise RuntimeError(f"The calls gave {result.outputs}. {result.error}")
    return stopwatch.span
