"""A batch: run a workflow for each row of a table, several rows at a time, and write their results.

Rows that are finished in the results file or in the history do not run again. Failed and interrupted rows do.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from engine.batch.executors import ExecutorRunner, LocalRunner, RowRunner
from engine.batch.results_file import ResultsFile
from engine.batch.rows import BatchRow, BatchSummary, RowResult, batch_id, make_rows, summarize
from engine.batch.table import TableError
from engine.document.model import Settings, Workflow
from engine.errors import EngineError
from engine.models.catalog import Models
from engine.models.protocol import Usage
from engine.nodes.output import OutputConfig
from engine.plan.compiler import plan_for
from engine.plan.execution_plan import Plan
from engine.runner.budget import Budget
from engine.runner.declared_inputs import read_parameters
from engine.runner.options import Catalog, RunOptions
from engine.runner.run import prepare
from engine.store.store_protocol import Store
from engine.values import Value

CONCURRENCY_DEFAULT: Final = 4


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Options of a batch.

    Attributes:
        run: The options of each run; its budgets are those of one row. Its `models` and `store` are ignored.
        concurrency: The number of rows that run at the same time.
        budget_usd: Budget of all rows together in US dollars, including rows that finished earlier; None for no limit.
            A call that could exceed it is not made, and no more rows start. Workers of an executor do not know of each
            other: rows that have started run to their end, each within this budget.
        out: The results file: `.jsonl`, `.xlsx` or CSV; None to write none.
        store: The history; None to store nothing.
        name: The name of the batch. A new name runs every row again.
        models: Creates the models of a run, which the batch closes.
        executor: Runs the rows elsewhere (`engine.batch.executors`); None for this process.
        addresses: The addresses of the user's own servers by model, for rows on an executor.
        retry_in_flight: Whether to repeat tool calls that were in flight when a row stopped. Model calls are always
            repeated.
    """

    run: RunOptions = field(default_factory=RunOptions)
    concurrency: int = CONCURRENCY_DEFAULT
    budget_usd: float | None = None
    out: Path | None = None
    store: Store | None = None
    name: str = ""
    models: Callable[[], Catalog] = Models
    executor: Executor | None = None
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    retry_in_flight: bool = False


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a batch.

    Attributes:
        batch: The id of the batch.
        rows: The results of the rows that have ended, in the order of the table.
        summary: The totals.
        notes: What a user should know about the results file, in sentences.
    """

    batch: str
    rows: tuple[RowResult, ...]
    summary: BatchSummary
    notes: tuple[str, ...] = ()


class Batch:
    """Runs a workflow for each row of a table. Use it in one event loop, from its thread.

    Args:
        workflow: The document, or its plan.
        inputs: The inputs of each row, by name (`inputs_of_table`).
        options: The options.
        on_row: Called when a row has ended.
        on_begin: Called when a row starts.

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
        run = self.options.run
        self.workflow = workflow.workflow if isinstance(workflow, Plan) else workflow
        self.id = batch_id(self.workflow, run.model, self.options.name)
        self.rows = make_rows(self.id, inputs)
        self._on_row, self._on_begin = on_row, on_begin
        self._results: dict[str, RowResult] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopped = False
        self._is_ending = False
        self._is_out_of_budget = False
        self._budget = Budget(limit_usd=self.options.budget_usd, name="batch")
        self._run_options = _with_budget(run, self.options.budget_usd, self.workflow)
        if not self.rows:
            raise TableError("The table has no rows.", "Add at least one row.")
        self._plan = plan_for(workflow, run.registry, run.max_iterations_cap)
        self._check_inputs()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._is_stopped

    def stop(self) -> None:
        """Cancel the running rows and start no more. Finished rows stay stored."""
        self._is_stopped = True
        self._cancel_workers()

    def _cancel_workers(self) -> None:
        # A cancelled worker still takes the result of its row, so it needs the flag to stop afterwards.
        self._is_ending = True
        for task in self._tasks:
            task.cancel()

    async def run(self) -> BatchResult:
        """Run the rows that are not finished.

        Raises:
            TableError: The results file has other content, or cannot be written.
            ModelError: A model that the workflow names does not exist; nothing was run.
        """
        # Kept open during the batch, so that a model that is slow to load is loaded once.
        models = self.options.models()
        try:
            first = next((row for row in self.rows if not row.error), None)
            if first is not None and self.options.executor is None:
                prepare(self._plan, first.inputs, replace(self._run_options, models=models))
            return await self._run(self._runner())
        finally:
            await models.close()

    async def _run(self, runner: RowRunner) -> BatchResult:
        out = self._results_file()
        finished = out.open() if out is not None else {}
        try:
            for row in self.rows:
                if row.key in finished:
                    self._take(row, finished[row.key], None)
                    if out is not None:
                        out.move(row)
            waiting = deque(row for row in self.rows if row.key not in finished)
            count = min(max(self.options.concurrency, 1), len(waiting))
            self._tasks = [asyncio.create_task(self._work(waiting, runner, out)) for _ in range(count)]
            if self._is_stopped:
                self._cancel_workers()
            await self._join_workers()
        finally:
            notes = () if out is None else out.close(row.key for row in self.rows)
        ended = tuple(self._results[row.key] for row in self.rows if row.key in self._results)
        summary = summarize(ended, len(self.rows), is_budget_spent=self._is_out_of_budget)
        return BatchResult(self.id, ended, summary, notes)

    async def _join_workers(self) -> None:
        """Wait for all workers. The first one that fails cancels the others, and its error is raised."""
        try:
            for outcome in asyncio.as_completed(self._tasks):
                await outcome
        except asyncio.CancelledError:
            if not self._is_stopped:
                raise
        finally:
            self._cancel_workers()
            outcomes = await asyncio.gather(*self._tasks, return_exceptions=True)
        failure = next((outcome for outcome in outcomes if isinstance(outcome, Exception)), None)
        if failure is not None:
            raise failure

    async def _work(self, waiting: deque[BatchRow], runner: RowRunner, out: ResultsFile | None) -> None:
        limit_usd, budget = self.options.budget_usd, self._budget
        while waiting and not self._is_ending:
            if limit_usd is not None and (budget.has_refused or 0 < budget.spent_usd >= limit_usd):
                self._is_out_of_budget = True
                return
            row = waiting.popleft()
            self._on_begin(row)
            self._take(row, await runner.run(row), out)

    def _take(self, row: BatchRow, result: RowResult, out: ResultsFile | None) -> None:
        # The row may have moved in the table since it finished.
        result = replace(result, row=row.number, inputs=row.inputs, extra=row.extra)
        self._results[row.key] = result
        if self.options.executor is not None or result.is_reused:  # otherwise its run has charged the budget
            self._budget.charge(Usage(), result.cost_usd or 0.0)
        if out is not None and result.status != "cancelled":
            out.write(result)
        self._on_row(result)

    def _runner(self) -> RowRunner:
        options = self.options
        if options.executor is not None:
            return ExecutorRunner(self.workflow, self._run_options, options.executor, options.store, options.addresses)
        run = replace(self._run_options, shared_budget=self._budget)
        return LocalRunner(self._plan, run, options.models, options.store, retry_in_flight=options.retry_in_flight)

    def _results_file(self) -> ResultsFile | None:
        if self.options.out is None:
            return None
        extra = dict.fromkeys(column for row in self.rows for column in row.extra)
        nodes = (node for node in self.workflow.nodes if node.type == "output" and node.enabled)
        outputs = dict.fromkeys(OutputConfig.model_validate(node.config).name or node.id for node in nodes)
        return ResultsFile(self.options.out, self.id, list(self._plan.parameters), list(outputs), list(extra))

    def _check_inputs(self) -> None:
        for index, row in enumerate(self.rows):
            if not row.error:
                try:
                    read_parameters(self._plan.parameters, row.inputs)
                except EngineError as error:
                    self.rows[index] = replace(row, error=str(error))


def _with_budget(run: RunOptions, budget_usd: float | None, workflow: Workflow) -> RunOptions:
    """The options of each run, with at most the budget of the batch."""
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
    """Run a workflow once for each row that is not finished.

    Args:
        workflow: The document, or its plan.
        inputs: The inputs of each row, by name.
        options: The options.
        on_row: Called when a row has ended.

    Raises:
        DocumentError: The document has errors; nothing was run.
        TableError: There are no rows, or the results file has other content or cannot be written.
        ModelError: A model that the workflow names does not exist; nothing was run.
    """
    return await Batch(workflow, inputs, options, on_row=on_row).run()
