"""A batch: a workflow, its rows, where their results go; run several rows at a time, and taken up where it broke off.

A row that is done (in the file of results, or in the history) is not run again. A row that failed or broke off is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from engine.batch.executors import ExecutorRows, LocalRows, RowRunner
from engine.batch.results_file import ResultsFile
from engine.batch.rows import BatchRow, BatchSummary, RowResult, batch_id, make_rows, refused_row, summarize
from engine.batch.table import TableError
from engine.document.model import Settings, Workflow
from engine.errors import EngineError
from engine.models.catalog import Models
from engine.models.protocol import Usage
from engine.nodes.output import OutputConfig
from engine.plan.compiler import compiled
from engine.plan.execution_plan import Plan
from engine.runner.budget import Budget
from engine.runner.declared_inputs import read_parameters
from engine.runner.options import Catalogue, RunOptions
from engine.runner.retry import unexpected_error
from engine.runner.run import prepare
from engine.store.store_protocol import Store
from engine.values import Value

CONCURRENCY_DEFAULT: Final = 4


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a batch is to be done.

    Attributes:
        run: How each run is to be done; its budgets are those of one row. Its `models` and `store` are not used.
        concurrency: How many rows are under way at once.
        budget_usd: The most that all rows together may spend, those that were done before included. A call that does
            not fit is not made, and then no more rows are begun. An executor's workers do not know of each other: rows
            that they have begun come to their end, each within this budget. None: no limit.
        out: The file of results, `.jsonl`, `.xlsx` or CSV; None: none is written.
        store: The history, where runs are kept and found again; None: nowhere.
        name: What a person calls the batch; another name is another batch, and runs all rows anew.
        models: Makes the models of one run, which the batch closes.
        executor: Runs the rows elsewhere (`engine.batch.executors`); None: in this process.
        retry_in_flight: Whether tool calls in flight when a row stopped may be made again. Model calls always are.
    """

    run: RunOptions = field(default_factory=RunOptions)
    concurrency: int = CONCURRENCY_DEFAULT
    budget_usd: float | None = None
    out: Path | None = None
    store: Store | None = None
    name: str = ""
    models: Callable[[], Catalogue] = Models
    executor: Executor | None = None
    retry_in_flight: bool = False


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch came to.

    Attributes:
        batch: Its id.
        rows: What its rows came to, in the table's order; rows that were never begun are not among them.
        summary: All of it together.
        notes: What a person should know about the file of results, in sentences.
    """

    batch: str
    rows: tuple[RowResult, ...]
    summary: BatchSummary
    notes: tuple[str, ...] = ()


class Batch:
    """A batch. Its methods belong to the thread of the event loop that it is run in.

    Args:
        workflow: The document, or its plan.
        inputs: Of each row the inputs, by name (`inputs_of_table`).
        options: How it is to be done.
        on_row: Called when a row has ended.
        on_begin: Called when a row is begun.

    Raises:
        DocumentError: The document has errors.
        TableError: There are no rows.
    """

    def __init__(
        self,
        workflow: Workflow | Plan,
        inputs: Sequence[Mapping[str, Value]],
        options: BatchOptions | None = None,
        *,
        on_row: Callable[[RowResult], None] = lambda _result: None,
        on_begin: Callable[[BatchRow], None] = lambda _row: None,
    ) -> None:
        self.options = options or BatchOptions()
        self._document = workflow
        self.workflow = workflow = workflow.workflow if isinstance(workflow, Plan) else workflow
        self.id = batch_id(workflow, self.options.run.model, self.options.name)
        self.rows = make_rows(self.id, inputs)
        self._on_row, self._on_begin = on_row, on_begin
        self._results: dict[str, RowResult] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopped = False
        self._is_ending = False
        self._is_out_of_budget = False
        self._budget = Budget(limit_usd=self.options.budget_usd, name="batch")
        self._check()
        self._run_options = _within(self.options.run, self.options.budget_usd, workflow)

    @property
    def is_stopped(self) -> bool:
        """Whether somebody stopped it."""
        return self._is_stopped

    def stop(self) -> None:
        """Begin no more rows and stop those under way. What is done is kept."""
        self._is_stopped = True
        self._end_workers()

    def _end_workers(self) -> None:
        # Whoever runs a row gives what has come out when it is cancelled, so that being cancelled alone ends no worker.
        self._is_ending = True
        for task in self._tasks:
            task.cancel()

    async def run(self) -> BatchResult:
        """Run the rows that are not done yet.

        Raises:
            TableError: The file of results holds something else, or cannot be written.
            ModelError: A model that the workflow names does not exist; nothing was run.
        """
        # One more set of models, held as long as the batch: a model that takes long to load is loaded once.
        held = self.options.models()
        try:
            first = next((row for row in self.rows if not row.error), None)
            if first is not None and self.options.executor is None:
                prepare(self._plan, first.inputs, replace(self._run_options, models=held))
            return await self._run(self._runner())
        finally:
            await held.close()

    async def _run(self, runner: RowRunner) -> BatchResult:
        out = self._results_file()
        done = out.open() if out is not None else {}
        try:
            for row in self.rows:
                if row.key in done:
                    self._take(row, done[row.key], None)
                    if out is not None:
                        out.move(row)
            waiting = deque(row for row in self.rows if row.key not in done)
            count = min(max(self.options.concurrency, 1), len(waiting))
            self._tasks = [asyncio.create_task(self._work(waiting, runner, out)) for _ in range(count)]
            if self._is_stopped:
                self._end_workers()
            await self._all_workers()
        finally:
            notes = () if out is None else out.close(row.key for row in self.rows)
        ended = tuple(self._results[row.key] for row in self.rows if row.key in self._results)
        summary = summarize(ended, len(self.rows), is_budget_spent=self._is_out_of_budget)
        return BatchResult(self.id, ended, summary, notes)

    async def _all_workers(self) -> None:
        """Wait for all of them; the first that fails stops the others, and its error is raised."""
        try:
            for outcome in asyncio.as_completed(self._tasks):
                await outcome
        except asyncio.CancelledError:
            if not self._is_stopped:
                raise
        finally:
            self._end_workers()
            outcomes = await asyncio.gather(*self._tasks, return_exceptions=True)
        failure = next((outcome for outcome in outcomes if isinstance(outcome, Exception)), None)
        if failure is not None:
            raise failure

    async def _work(self, waiting: deque[BatchRow], runner: RowRunner, out: ResultsFile | None) -> None:
        while waiting and not self._is_ending:
            if self._is_budget_spent:
                self._is_out_of_budget = True
                return
            row = waiting.popleft()
            self._on_begin(row)
            self._take(row, await _run_row(row, runner), out)

    @property
    def _is_budget_spent(self) -> bool:
        limit_usd, budget = self.options.budget_usd, self._budget
        return limit_usd is not None and (budget.has_refused or 0 < budget.spent_usd >= limit_usd)

    def _take(self, row: BatchRow, result: RowResult, out: ResultsFile | None) -> None:
        # A row may stand elsewhere in the table than when it was done.
        result = replace(result, row=row.number, inputs=row.inputs, extra=row.extra)
        self._results[row.key] = result
        if self.options.executor is not None or result.is_reused:  # no run has charged it
            self._budget.charge(Usage(), result.cost_usd or 0.0)
        if out is not None and result.status != "cancelled":
            out.write(result)
        self._on_row(result)

    def _runner(self) -> RowRunner:
        options = self.options
        if options.executor is not None:
            return ExecutorRows(self.workflow, self._run_options, options.executor, options.store)
        retry = options.retry_in_flight
        run = replace(self._run_options, shared_budget=self._budget)
        return LocalRows(self._plan, run, options.models, options.store, retry_in_flight=retry)

    def _results_file(self) -> ResultsFile | None:
        if self.options.out is None:
            return None
        extra = dict.fromkeys(column for row in self.rows for column in row.extra)
        return ResultsFile(self.options.out, self.id, self._parameters, self._output_names(), list(extra))

    def _output_names(self) -> list[str]:
        nodes = (node for node in self.workflow.nodes if node.type == "output" and node.enabled)
        return list(dict.fromkeys(OutputConfig.model_validate(node.config).name or node.id for node in nodes))

    def _check(self) -> None:
        if not self.rows:
            raise TableError("The table has no rows.", "Give it one.")
        options = self.options.run
        self._plan = compiled(self._document, options.registry, options.max_iterations_cap)
        parameters = self._plan.parameters
        self._parameters = list(parameters)
        for place, row in enumerate(self.rows):
            if not row.error:
                try:
                    read_parameters(parameters, row.inputs)
                except EngineError as error:
                    self.rows[place] = replace(row, error=str(error))


async def _run_row(row: BatchRow, runner: RowRunner) -> RowResult:
    """Run a row. Whatever goes wrong is the failure of this row."""
    if row.error:
        return refused_row(row, row.error)
    try:
        return await runner.run(row)
    except Exception as error:  # a fault of ours or of a plugin ends one row, not the batch
        return refused_row(row, str(unexpected_error(error)))


def _within(run: RunOptions, budget_usd: float | None, workflow: Workflow) -> RunOptions:
    """How each run is to be done so that none of them alone spends more than all may."""
    if budget_usd is None:
        return run
    own = run.budget_usd if run.budget_usd is not None else Settings.model_validate(workflow.settings).budget_usd
    return replace(run, budget_usd=budget_usd if own is None else min(own, budget_usd))


async def run_batch(
    workflow: Workflow | Plan,
    inputs: Sequence[Mapping[str, Value]],
    options: BatchOptions | None = None,
    *,
    on_row: Callable[[RowResult], None] = lambda _result: None,
) -> BatchResult:
    """Run a workflow once for each row; rows that are done already are not run again.

    Args:
        workflow: The document, or its plan.
        inputs: Of each row the inputs, by name.
        options: How it is to be done.
        on_row: Called when a row has ended.

    Raises:
        DocumentError: The document has errors; nothing was run.
        TableError: There are no rows, or the file of results holds something else or cannot be written.
        ModelError: A model that it names does not exist; nothing was run.
    """
    return await Batch(workflow, inputs, options, on_row=on_row).run()
