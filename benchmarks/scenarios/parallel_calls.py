"""Many parallel model calls that wait: the total time compared with the wait of one.

And an iterator, some of whose items are worked on at a time: how near it comes to its rounds of waiting.
"""

from __future__ import annotations

import asyncio

from benchmarks.effort import Effort
from benchmarks.tables import Table, aim, milliseconds, times
from benchmarks.timing import Span, Stopwatch, take_turns
from benchmarks.work import START, step
from benchmarks.workflows import each_item, fan, options
from engine import start

_WAIT_S = 0.02
_MOST = 1.3
_AT_ONCE = 8
_MOST_OF_ITEMS = 1.15


def tables(effort: Effort) -> list[Table]:
    """Measure the calls in a workflow and in an iterator, and the same waits in bare asyncio."""
    return [_calls(effort), _items(effort)]


def _calls(effort: Effort) -> Table:
    turns = {
        "asyncio.gather": lambda: asyncio.run(_bare(effort.width)),
        "Loopwright, llm nodes": lambda: asyncio.run(_ours(effort.width)),
    }
    take_turns(turns, 1)  # warms up and does not count
    spans = take_turns(turns, effort.rounds)
    table = Table(
        f"{effort.width} calls of {_WAIT_S * 1e3:g} ms side by side",
        ("Contender", "wall, best, ms", "wall, median, ms", "best, × one wait", "target", "CPU, best, ms"),
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
    table.notes.append("Without planning. `settings.max_concurrency` is raised to the number of calls.")
    return table


def _items(effort: Effort) -> Table:
    waits = -(-effort.items // _AT_ONCE)
    turns = {
        "asyncio.Semaphore": lambda: asyncio.run(_bare_items(effort.items)),
        "Loopwright, iterator": lambda: asyncio.run(_our_items(effort.items)),
    }
    take_turns(turns, 1)
    spans = take_turns(turns, effort.rounds)
    table = Table(
        f"{effort.items} items, {_AT_ONCE} at a time, a call of {_WAIT_S * 1e3:g} ms each",
        ("Contender", "wall, best, ms", "wall, median, ms", "best, × waits", "target", "CPU, best, ms"),
    )
    for name, there in spans.items():
        ratio = there.wall_s / (_WAIT_S * waits)
        table.add(
            name,
            milliseconds(there.wall_s),
            milliseconds(there.median_wall_s),
            times(ratio),
            aim(round(ratio, 2), _MOST_OF_ITEMS, " ×") if name.startswith("Loopwright") else "–",
            milliseconds(there.cpu_s),
        )
    table.notes.append(f"The waits are {waits} times {_WAIT_S * 1e3:g} ms. Without planning.")
    return table


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


async def _bare_items(items: int) -> Span:
    free = asyncio.Semaphore(_AT_ONCE)

    async def one() -> None:
        async with free:
            await asyncio.sleep(_WAIT_S)

    stopwatch = Stopwatch()
    with stopwatch.running():
        await asyncio.gather(*(one() for _ in range(items)))
    return stopwatch.span


async def _our_items(items: int) -> Span:
    run = start(each_item(items, _AT_ONCE), {}, options(_WAIT_S))
    stopwatch = Stopwatch()
    with stopwatch.running():
        result = await run.result()
    if result.outputs != {"out": [step(START)] * items}:
        raise RuntimeError(f"The items gave {result.outputs}. {result.error}")
    return stopwatch.span
