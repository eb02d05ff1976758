"""Rows run in this process, each kept in the history under an id that the row itself gives.

So a row that has been run is found again, and one that broke off goes on from its last finished node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from engine.batch.asking import asking_row, ended_or_asking, unanswerable_row
from engine.batch.result import RowResult, refused_row, row_result
from engine.batch.rows import BatchRow
from engine.errors import EngineError
from engine.plan.graph import Plan
from engine.runner.options import Catalogue, RunOptions
from engine.runner.result import RunResult
from engine.runner.run import Run, start
from engine.store.base import RunStatus, RunSummary, Store, StoreError
from engine.store.fold import UNDER_WAY
from engine.store.resume import refuse_unknown, resume, unknown_calls

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
        if summary.status in UNDER_WAY:
            return busy_row(row, summary)
        return summary

    def _begin(self, row: BatchRow, broken_off: RunSummary | None, models: Catalogue) -> Run:
        options = replace(self._options, models=models, store=self._store, run_id=row.run_id)
        if broken_off is None or self._store is None:
            return start(self._plan, row.inputs, options)
        # Starting the batch again is consent to paying for a model call twice, but not to a tool's effect.
        if not self._retry_in_flight:
            tools = (call for call in unknown_calls(self._store, broken_off.run_id) if call.tool)
            refuse_unknown(broken_off, tools, RESUME_ROW)
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
    result = RunResult(run_id)
    fold = result.fold
    for event in store.events(run_id, kinds=fold.keys()):
        fold[type(event)](event)
    return result
