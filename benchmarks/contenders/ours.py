"""This engine with all events emitted: common code of its contenders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from benchmarks.timing import Stopwatch
from benchmarks.workflows import loop_of_three, options
from engine import start
from engine.events import AnyEvent


def run_loop(
    node_type: str, iterations: int, stopwatch: Stopwatch, on_event: Callable[[AnyEvent], None] | None = None
) -> str:
    """Run a loop over three nodes of that type, and return its result."""
    return asyncio.run(_run_loop(node_type, iterations, stopwatch, on_event))


async def _run_loop(
    node_type: str, iterations: int, stopwatch: Stopwatch, on_event: Callable[[AnyEvent], None] | None
) -> str:
    run = start(loop_of_three(node_type, iterations), {}, options(), on_event=on_event)
    with stopwatch.running():
        result = await run.result()
        await run.delivered(within_s=60)
    done = result.loops["loop"].iterations_run
    if result.status != "completed" or done != iterations:
        raise RuntimeError(f"The run ended as {result.status} after {done} iterations. {result.error}")
    return str(result.outputs["out"])
