"""Execution of iterators: the body once for each item, several items at a time, results in the order of the items.

Items start in order and may finish in any order. Each is reported as an iteration, with the item as its input and the
value at the aggregator as its result; the `branch` of its record says if it has none. A failed item stops the others or
leaves out one result, depending on the settings. A used-up budget always stops all items.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, cast

from engine.errors import EngineError
from engine.events import LoopCompleted, LoopIterationCompleted, LoopIterationStarted, LoopStarted
from engine.exits.budget import BUDGET
from engine.exits.condition import evaluate, is_true
from engine.exits.time_limit import TIMEOUT
from engine.expr import Scope
from engine.formatting import format_count
from engine.models.protocol import Usage
from engine.nodes.iterator import MAX_ITEMS, IteratorConfig
from engine.nodes.spec import NodeError, Outputs
from engine.plan.execution_plan import NodePlan
from engine.runner.budget import Budget, BudgetError
from engine.runner.loop_run import PREVIEW_LENGTH
from engine.runner.loop_variables import IterationRecord, NodeOutputs, record_json
from engine.runner.node_execution import convert_inputs, outputs_on_error, run_container, run_node, skip_node
from engine.runner.retry import NodeFailure, timeout_error
from engine.runner.run_scope import LoopExit, RunScope
from engine.runner.scheduler import DEAD, GraphRun, stop_all
from engine.values import Value, to_text

ALL_ITEMS: Final = "all_items"
"""Exit reason of an iterator that completed all items."""
FAILED: Final = "failed"
NO_RESULT: Final = "no_result"


class IteratorRun:
    """One attempt at an iterator.

    Attributes:
        exit: Whether one of its nodes ended the loop around it; None outside loops.
    """

    def __init__(self, outer: GraphRun, node: NodePlan, inputs: dict[str, Value], path: str, budget: Budget) -> None:
        assert node.iterator is not None
        self.exit = None if outer.scope.exit is None else LoopExit()
        self._node = node
        self._plan = node.iterator
        self._config: IteratorConfig = node.config
        self._scope = outer.scope
        self._path = path
        self._budget = budget
        self._inputs = inputs
        self._constants = [(slot, outer.values[outer_slot]) for outer_slot, slot in self._plan.body.constants]
        self._records: dict[int, IterationRecord] = {}
        self._in_order = asyncio.Lock()
        self._started = time.perf_counter()
        self._attempt = 1
        self._is_reported = False

    async def run(self, attempt: int) -> Outputs:
        """Run the body for all items, and report the end.

        Args:
            attempt: The number of the attempt, from 1.

        Raises:
            NodeFailure: A node of the body failed, and the settings do not collect failures.
            NodeError: The iterator itself failed, or exceeded its timeout.
            BudgetError: The budget is used up.
        """
        timeout_s = self._config.timeout_s
        self._attempt = attempt
        try:
            async with asyncio.timeout(timeout_s):
                return await self._run_items()
        except BudgetError:
            self._emit_completed(BUDGET)
            raise
        except TimeoutError as error:
            assert timeout_s is not None, "nodes convert timeouts of their own to errors"
            self._emit_completed(TIMEOUT)
            raise timeout_error(timeout_s) from error
        except asyncio.CancelledError:
            self._emit_completed("cancelled")
            raise
        except EngineError:
            self._emit_completed("error")
            raise

    async def _run_items(self) -> Outputs:
        value = convert_inputs(self._node, self._inputs).get("items")
        reason = self._skip_reason(value)
        if reason is not None:
            raw = self._config.items if self._config.source == "list" else value
            self._emit_completed(reason)
            return passed_through(raw if isinstance(raw, list) else [])
        items = self._items(value)
        self._emit_started(len(items))
        await self._run_all(items)
        failed = sum(record.branch == FAILED for record in self._records.values())
        warnings = (f"{failed} of {format_count(len(items), 'item')} failed.",) if failed else ()
        self._emit_completed(ALL_ITEMS, warnings)
        return outputs_of([record_json(self._records[index]) for index in sorted(self._records)])

    def _skip_reason(self, value: Value) -> str | None:
        """Return the exit reason if the items pass through unchanged; None if the body runs."""
        if not self._node.enabled:
            return "disabled"
        condition = self._plan.condition
        return None if condition is None or is_true("condition", condition, self._variables(value)) else "condition"

    def _variables(self, value: Value) -> Scope:
        return self._scope.variables({"items": value}, self._scope.run_context.state.at(self._path))

    def _items(self, value: Value) -> list[Value]:
        items: Value = self._config.items if self._config.source == "list" else value
        if self._plan.expression is not None:
            items = evaluate("expression", self._plan.expression, self._variables(value))
        if not isinstance(items, list):
            raise NodeError(
                f"The items are not a list: {to_text(items)[:60] or 'null'}.",
                "Provide a list, or find one with an expression under 'Items from'.",
            )
        if len(items) > MAX_ITEMS:
            raise NodeError(
                f"There are {format_count(len(items), 'item')}.",
                f"At most {format_count(MAX_ITEMS)} can be processed at a time.",
            )
        if not items and self._config.on_empty == "fail":
            raise NodeError(
                "There are no items.", "Add items, or choose 'Continue with an empty result' under 'On empty list'."
            )
        return items

    async def _run_all(self, items: Sequence[Value]) -> None:
        """Run the body for all items that were not completed before a resume, within the concurrency limit."""
        self._restore_completed(len(items))
        limit = self._config.max_concurrency or self._scope.run_context.concurrency.limit
        running: dict[asyncio.Task[None], int] = {}
        try:
            for index, item in enumerate(items):
                if index in self._records:
                    continue
                while len(running) >= limit:
                    await _wait_for_first(running)
                running[asyncio.create_task(self._run_item(index, item, len(items)))] = index
            while running:
                await _wait_for_first(running)
        except BaseException:
            await stop_all(running)
            raise

    def _restore_completed(self, count: int) -> None:
        """Restore the items that completed before a resume."""
        replay = self._scope.run_context.replay
        if replay is None:
            return
        known = {index: replay.iteration(self._path, index) for index in range(count)}
        completed = {index: event for index, event in known.items() if event is not None}
        replay.charge_iterations(self._path, {index: Budget(self._path, self._budget) for index in completed})
        self._records = {index: IterationRecord.from_event(event) for index, event in completed.items()}
        if self.exit is not None and replay.exited_iterations() & {f"{self._path}[{index}]" for index in completed}:
            self.exit.is_requested = True

    async def _run_item(self, index: int, item: Value, count: int) -> None:
        run_context = self._scope.run_context
        if run_context.replay is not None:
            item = run_context.replay.edited_input(self._path, index, item)
        if run_context.replay is None or not run_context.replay.iteration_started(self._path, index):
            async with self._in_order:
                await self._wait_to_start(index)
                run_context.event_log.emit(
                    LoopIterationStarted, self._path, index, count, to_text(item)[:PREVIEW_LENGTH]
                )
        started = time.perf_counter()
        run = self._body_run(index, item)
        result, branch, reason = await self._result(run)
        duration, budget = time.perf_counter() - started, run.scope.budget
        figures = (None, None, budget.usage, budget.cost_usd, duration)
        record = self._records[index] = IterationRecord(index, item, result, None, branch, reason, *figures)
        record.nodes = NodeOutputs(self._plan.body, run.outputs).with_skipped()
        record.warnings = run_context.warnings.inside(f"{self._path}[{index}]")
        run_context.event_log.emit(LoopIterationCompleted, self._path, *record.fields())

    async def _wait_to_start(self, index: int) -> None:
        if index:
            await self._scope.run_context.pause_between_iterations()
        elif self._scope.run_context.paused:
            await self._scope.run_context.wait_while_paused()

    def _body_run(self, index: int, item: Value) -> GraphRun:
        """Return an execution of the body for an item."""
        body, scope = self._plan.body, self._scope
        names = {**(scope.names or {}), "item": item, "index": index}
        budget = Budget(self._path, self._budget)
        prefix = f"{self._path}[{index}]."
        run = GraphRun(
            body, RunScope(scope.run_context, budget, prefix, scope.loop_variables, names=names, exit=self.exit)
        )
        assert body.input_slot is not None
        assert body.index_slot is not None
        run.values[body.input_slot], run.values[body.index_slot] = item, index
        for slot, value in self._constants:
            run.values[slot] = value
        return run

    async def _result(self, run: GraphRun) -> tuple[Value, str | None, str | None]:
        """Run an item and return its result; without one, the branch and the reason of its record."""
        try:
            await run.run()
        except NodeFailure as failure:
            if self._config.on_item_error == "fail":
                raise
            return None, FAILED, failure.sentence
        reached = run.collect(self._plan.body.result)
        if reached is DEAD:
            return None, NO_RESULT, "Nothing reached the aggregator."
        return cast("Value", reached), None, None

    def _emit_started(self, count: int) -> None:
        """Report the start of the attempt with the number of its items, once."""
        replay = self._scope.run_context.replay
        if not self._is_reported and (replay is None or not replay.has_started(self._path)):
            self._scope.run_context.event_log.emit(
                LoopStarted, self._path, self._attempt, count, self._config.timeout_s
            )
        self._is_reported = True

    def _emit_completed(self, reason: str, warnings: tuple[str, ...] = ()) -> None:
        self._emit_started(0)
        fields = (len(self._records), reason, reason == ALL_ITEMS, None, self._budget.cost_usd)
        duration = time.perf_counter() - self._started
        self._scope.run_context.event_log.emit(LoopCompleted, self._path, *fields, duration, warnings)


async def _wait_for_first(running: dict[asyncio.Task[None], int]) -> None:
    """Wait until an item finishes and remove it; of several failures at once, the first item's is raised."""
    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in sorted(done, key=running.__getitem__):
        task.result()
        del running[task]


def outputs_of(records: Sequence[dict[str, Any]]) -> Outputs:
    """Return the outputs of an iterator with these records."""
    failures: list[Value] = [
        {"index": record["index"], "item": record["input"], "error": record["reason"]}
        for record in records
        if record["branch"] == FAILED
    ]
    return {"iterations": list(records), "count": len(records), "failures": failures}


def passed_through(items: Iterable[Value]) -> Outputs:
    """Return the outputs of an iterator that did not run its body."""
    no_cost = (None, None, Usage(), 0.0, 0.0)
    records = (IterationRecord(index, item, item, None, None, None, *no_cost) for index, item in enumerate(items))
    return {"iterations": [record_json(record) for record in records], "count": 0, "failures": []}


async def run_iterator(outer: GraphRun, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run an iterator and pass its records to its aggregator.

    Returns:
        The iterator's own outputs after its last item, by port.

    Raises:
        NodeFailure: It failed, and that ends whatever it is part of.
        BudgetError: The budget is used up.
    """
    scope, path = outer.scope, outer.scope.prefix + node.id
    replay = scope.run_context.replay
    known = replay.outputs(path) if replay is not None else None
    if replay is not None and known is not None:
        replay.charge(path, scope.budget)
        if scope.exit is not None and replay.exited_loop(path):
            scope.exit.is_requested = True
        return _pass_to_aggregator(outer, node, known)
    budget = Budget(path, scope.budget)
    exited = False

    async def attempt(number: int) -> Outputs:
        nonlocal exited
        run = IteratorRun(outer, node, inputs, path, budget)
        outputs = await run.run(number)
        exited = run.exit is not None and run.exit.is_requested
        return outputs

    fallback_outputs = partial(_outputs_on_error, node)
    outputs = await run_container(
        scope, node, inputs, attempt, fallback_outputs, budget=budget, exits_loop=lambda: exited
    )
    if scope.exit is not None and exited:
        scope.exit.is_requested = True
    return _pass_to_aggregator(outer, node, outputs)


async def run_aggregator(run: GraphRun, node: NodePlan, iterator: NodePlan) -> Outputs | None:
    """Run an aggregator on the results of its iterator.

    Raises:
        NodeFailure: It failed, and that ends whatever it is part of.
    """
    if node.position not in run.exit_values:
        return skip_node(run.scope, node, "Its iterator returned no result.")
    config: IteratorConfig = iterator.config
    records = cast("list[dict[str, Any]]", run.exit_values[node.position])
    collects_failures = config.on_item_error == "collect"
    results: list[Value] = [record["result"] for record in records if collects_failures or record["branch"] is None]
    if not node.enabled:
        skip_node(run.scope, node, "It is disabled.")
        return {"output": results}
    failures = outputs_of(records)["failures"]
    items: list[Value] = [record["input"] for record in records]
    return await run_node(run.scope, node, {"items": items, "results": results, "failures": failures})


def _outputs_on_error(node: NodePlan, failure: EngineError) -> Outputs | None:
    """Return the outputs of a failed iterator: the items of a list in its settings, or another value as one item."""
    outputs = outputs_on_error(node, failure)
    if outputs is None or "error" in outputs:
        return outputs
    value: Value = node.config.error_value
    return passed_through(value if isinstance(value, list) else [value])


def _pass_to_aggregator(outer: GraphRun, node: NodePlan, outputs: Outputs) -> Outputs:
    if "iterations" in outputs:
        assert node.iterator is not None
        outer.exit_values[node.iterator.aggregator] = outputs["iterations"]
    return outputs
