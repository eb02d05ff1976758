"""Rows whose runs ask a person.

Nobody looks after a batch: a run of which nothing but questions is left is put aside, to be answered later.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable
from dataclasses import replace

from engine.batch.result import RowResult, row_result
from engine.batch.rows import BatchRow
from engine.events import RunNotKept
from engine.runner.at_work import GRACE_S, AtWork
from engine.runner.result import RunResult
from engine.runner.run import Run
from engine.store.base import RunSummary


async def ended_or_asking(run: Run, *, is_kept: bool) -> tuple[RunResult, tuple[str, ...]]:
    """Wait for a run's end, or until all that is left of it waits for a person; it is put aside then.

    Cancelled, it stops the run and gives what has come out.

    Args:
        run: The run.
        is_kept: Whether it is kept, so that it can be answered later; else it is stopped for good.

    Returns:
        What it came to, and the paths at which it asks; none where it has come to its end.
    """
    work, asked = AtWork(), list[str]()
    leaving: asyncio.TimerHandle | None = None

    def leave() -> None:
        asked.extend(work.questions)
        if is_kept:
            run.put_aside()
        else:
            run.cancel()

    try:
        async for event in run.events():
            work.take(event)
            is_kept = is_kept and not isinstance(event, RunNotKept)
            if leaving is not None:
                leaving.cancel()
            leaving = asyncio.get_running_loop().call_later(GRACE_S, leave) if work.only_waits else None
    except asyncio.CancelledError:
        run.cancel()
    finally:
        if leaving is not None:
            leaving.cancel()
    result = await run.result()
    return result, tuple(asked) if result.status in {"running", "cancelled"} else ()


def asking_row(row: BatchRow, kept: RunSummary, asked: Iterable[str]) -> RowResult:
    """A row whose run waits in the history for a person's answer."""
    places = tuple(asked)
    nodes = [f" --node {shlex.quote(path)}" for path in places] if len(places) > 1 else [""]
    commands = " and ".join(f"'loopwright runs answer {kept.run_id}{node}'" for node in nodes)
    return RowResult(
        row.number,
        row.key,
        kept.run_id,
        "failed",
        row.inputs,
        iterations=kept.iterations,
        tokens=kept.tokens,
        cost_usd=kept.cost_usd,
        error=f"It waits for a person's answer at {', '.join(places)}. "
        f"Answer it in Runs or with {commands}, and start the batch again.",
    )


def unanswerable_row(row: BatchRow, result: RunResult, asked: Iterable[str]) -> RowResult:
    """A row whose run asked a person and is not kept."""
    error = f"It asks a person at {', '.join(asked)}, and is not kept. Keep runs in the history, to answer later."
    return replace(row_result(row, result), status="failed", error=error)
