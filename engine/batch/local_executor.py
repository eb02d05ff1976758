"""Runs the rows of a batch in this process, each stored in the history under an id derived from the row.

A row that has already run is found again, and an interrupted one resumes after its last finished node. Nobody watches
a batch: a run that waits only for a person's answers is set aside, to be answered later.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Protocol

from engine.batch.result import RowResult, refused_row, row_result
from engine.batch.rows import BatchRow
from engine.errors import EngineError
from engine.plan.execution_plan import Plan
from engine.run_state.reducer import apply, reduce_events
from engine.run_state.result import RESULT_EVENTS, RunResult, result_of
from engine.run_state.state import SETTLE_S, Detail, RunState, waits_only
from engine.runner.options import Catalogue, RunOptions
from engine.runner.run import Run, start
from engine.store.resume import refuse_unknown_calls, resume, unknown_calls
from engine.store.store_protocol import ACTIVE, RunStatus, RunSummary, Store, StoreError


async def ended_or_asking(run: Run, *, is_kept: bool) -> tuple[RunResult, tuple[str, ...]]:
    """Wait until a run ends, or suspend it when only questions to a person are left.

    Cancelled, it stops the run and gives what has come out.

    Args:
        run: The run.
        is_kept: Whether it is kept, so that it can be answered later; else it is stopped for good.

    Returns:
        What it came to, and the paths at which it asks; none where it has come to its end.
    """
    state, asked = RunState(run.run_id), list[str]()
    leaving: asyncio.TimerHandle | None = None

    def leave() -> None:
        asked.extend(state.questions)
        if is_kept and state.is_stored:
            run.suspend()
        else:
            run.cancel()

    try:
        async for event in run.events():
            apply(state, event)
            if leaving is not None:
                leaving.cancel()
            leaving = asyncio.get_running_loop().call_later(SETTLE_S, leave) if waits_only(state) else None
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


RESUME_ROW: Final = "Check what the tool has done. Then resume this run from the history and start the batch again."
"""What to do about a row that stopped during a call of a tool."""


class RowRunner(Protocol):
    """Runs rows; cancelled, it ends what it is at and gives what has come out."""

    async def run(self, row: BatchRow) -> RowResult:
        """Run a row. Whatever goes wrong with it is in the result."""
        ...


class LocalRows:
    """Runs rows in the event loop that is running.

    Args:
        plan: The compiled document.
        options: How each run is to be done.
        models: Makes the models of one run.
        store: Where runs are kept and found again; None: nowhere.
        retry_in_flight: Whether tool calls in flight when a row stopped may be made again.
    """

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        models: Callable[[], Catalogue],
        store: Store | None,
        *,
        retry_in_flight: bool = False,
    ) -> None:
        self._plan = plan
        self._options = options
        self._models = models
        self._store = store
        self._retry_in_flight = retry_in_flight

    async def run(self, row: BatchRow) -> RowResult:
        """Run a row, or take what the history has of it."""
        models = self._models()
        try:
            known = await asyncio.to_thread(self._known, row)
            if isinstance(known, RowResult):
                return known
            run = self._begin(row, known, models)
            result, asked = await ended_or_asking(run, is_kept=self._store is not None)
            if not asked:
                return row_result(row, result)
            if self._store is None or result.status != "running":
                return unanswerable_row(row, result, asked)
            return asking_row(row, self._store.find(run.run_id), asked)
        except EngineError as error:
            return refused_row(row, error)
        finally:
            await models.close()

    def _known(self, row: BatchRow) -> RowResult | RunSummary | None:
        """What the history has of a row: its result, a run to go on with, or nothing."""
        if self._store is None:
            return None
        try:
            summary = self._store.find(row.run_id)
        except StoreError:
            return None
        if summary.status is RunStatus.COMPLETED:
            return row_result(row, kept_result(self._store, summary.run_id), is_reused=True)
        if summary.status in ACTIVE:
            return busy_row(row, summary)
        return summary

    def _begin(self, row: BatchRow, broken_off: RunSummary | None, models: Catalogue) -> Run:
        options = replace(self._options, models=models, store=self._store, run_id=row.run_id)
        if broken_off is None or self._store is None:
            return start(self._plan, row.inputs, options)
        # Starting the batch again is consent to paying for a model call twice, but not to a tool's effect.
        if not self._retry_in_flight:
            tools = (call for call in unknown_calls(self._store, broken_off.run_id) if call.tool)
            refuse_unknown_calls(broken_off, tools, RESUME_ROW)
        return resume(self._store, broken_off.run_id, options, retry_in_flight=True)


def busy_row(row: BatchRow, under_way: RunSummary) -> RowResult:
    """A row on whose run a process is at work already."""
    message = f"The run {under_way.run_id} of this row is under way elsewhere."
    return refused_row(row, StoreError(message, "Wait for it, or stop it."))


def kept_result(store: Store, run_id: str) -> RunResult:
    """What a run came to, by what the history has of it.

    Raises:
        StoreError: There is no such run, or it cannot be read.
    """
    return result_of(reduce_events(store.events(run_id, kinds=RESULT_EVENTS), run_id, Detail.LOOPS))
