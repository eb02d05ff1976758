"""One attempt at an iterator: its body once for each item, several at a time, the results in the items' order.

Items begin in their order and may end in any. Each is told as an iteration is: with its item as the input and what
reached the aggregator as the result. An item that gave none says so in its record's `branch`. A failed item stops the
others, or is one result less, as the settings say; a spent budget always stops them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from engine.errors import EngineError
from engine.events import LoopCompleted, LoopIterationCompleted, LoopIterationStarted, LoopStarted
from engine.exits.budget import BUDGET
from engine.exits.condition import evaluate, is_true
from engine.exits.time_limit import TIMEOUT
from engine.formatting import format_count
from engine.models.protocol import Usage
from engine.nodes.iterator import MAX_ITEMS, IteratorConfig
from engine.nodes.spec import NodeError, Outputs
from engine.plan.execution_plan import NodePlan
from engine.runner.budget import Budget, BudgetError
from engine.runner.loop_run import PREVIEW_LENGTH
from engine.runner.loop_variables import IterationRecord, NodeOutputs, record_json
from engine.runner.node_execution import ALL_ITEMS, convert_inputs, outputs_on_error, run_container, run_node, skip_node
from engine.runner.retry import NodeFailure, timeout_error
from engine.runner.run_scope import LoopExit, RunScope
from engine.runner.scheduler import DEAD, GraphRun, stop_all
from engine.values import Value, to_text

FAILED: Final = "failed"
NO_RESULT: Final = "no_result"


class IteratorRun:
    """One attempt at an iterator.

    Attributes:
        exit: Whether a node of it has ended the loop around; None where there is none.
    """

    def __init__(self, around: GraphRun, node: NodePlan, inputs: dict[str, Value], path: str, budget: Budget) -> None:
        assert node.iterator is not None
        self.exit = None if around.scope.exit is None else LoopExit()
        self._node = node
        self._plan = node.iterator
        self._config: IteratorConfig = node.config
        self._scope = around.scope
        self._path = path
        self._budget = budget
        self._inputs = inputs
        self._constants = [(slot, around.values[outer]) for outer, slot in self._plan.body.constants]
        self._records: dict[int, IterationRecord] = {}
        self._in_order = asyncio.Lock()
        self._started = time.perf_counter()
        self._attempt = 1
        self._is_reported = False

    async def run(self, attempt: int) -> Outputs:
        """Work on all items, and report what ended it.

        Args:
            attempt: The number of the attempt, from 1.

        Raises:
            NodeFailure: A node of the body failed, and that is not to be passed over.
            NodeError: The iterator itself failed, or ran out of time.
            BudgetError: The budget is spent.
        """
        timeout_s = self._config.timeout_s
        self._attempt = attempt
        try:
            async with asyncio.timeout(timeout_s):
                return await self._run_within_time()
        except BudgetError:
            self._emit_completed(BUDGET)
            raise
        except TimeoutError as error:
            assert timeout_s is not None, "nodes turn time-outs of their own into errors"
            self._emit_completed(TIMEOUT)
            raise timeout_error(timeout_s) from error
        except asyncio.CancelledError:
            self._emit_completed("cancelled")
            raise
        except EngineError:
            self._emit_completed("error")
            raise

    async def _run_within_time(self) -> Outputs:
        given = convert_inputs(self._node, self._inputs).get("items")
        reason = self._reason_to_pass(given)
        if reason is not None:
            raw = self._config.items if self._config.source == "list" else given
            self._emit_completed(reason)
            return passed_through(raw if isinstance(raw, list) else [])
        items = self._items(given)
        self._report_start(len(items))
        await self._work_on(items)
        outputs = outputs_of([record_json(self._records[index]) for index in sorted(self._records)])
        self._emit_completed(ALL_ITEMS, _warnings(outputs))
        return outputs

    def _reason_to_pass(self, given: Value) -> str | None:
        """Why nothing is run and the items are let through as they are; None where they are worked on."""
        if not self._node.enabled:
            return "disabled"
        condition = self._plan.condition
        if condition is None or is_true(
            "condition",
            condition,
            self._scope.variables({"items": given}, self._scope.run_context.state.at(self._path)),
        ):
            return None
        return "condition"

    def _items(self, given: Value) -> list[Value]:
        items: Value = self._config.items if self._config.source == "list" else given
        if self._plan.expression is not None:
            items = evaluate(
                "expression",
                self._plan.expression,
                self._scope.variables({"items": given}, self._scope.run_context.state.at(self._path)),
            )
        if not isinstance(items, list):
            raise NodeError(
                f"The items are no list: {to_text(items)[:60] or 'null'}.",
                "Give it a list, or find one with an expression under 'Items from'.",
            )
        if len(items) > MAX_ITEMS:
            raise NodeError(
                f"There are {format_count(len(items), 'item')}.", f"At most {MAX_ITEMS:,} can be worked on at a time."
            )
        if not items and self._config.on_empty == "fail":
            raise NodeError("There are no items.", "Give it some, or let it pass under 'If there are no items'.")
        return items

    async def _work_on(self, items: Sequence[Value]) -> None:
        """Work on the items that had not ended before the run broke off, as many at a time as there may be."""
        self._take_up_ended(len(items))
        most = self._config.max_concurrency or self._scope.run_context.concurrency.limit
        at_work: dict[asyncio.Task[None], int] = {}
        try:
            for index, item in enumerate(items):
                if index in self._records:
                    continue
                while len(at_work) >= most:
                    await _first_ended(at_work)
                at_work[asyncio.create_task(self._work_on_item(index, item, len(items)))] = index
            while at_work:
                await _first_ended(at_work)
        except BaseException:
            await stop_all(at_work)
            raise

    def _take_up_ended(self, count: int) -> None:
        """Take up the items that had ended before the run broke off, as they were told then."""
        replay = self._scope.run_context.replay
        if replay is None:
            return
        told = {index: replay.iteration(self._path, index) for index in range(count)}
        ended = {index: event for index, event in told.items() if event is not None}
        replay.charge_iterations(self._path, {index: Budget(self._path, self._budget) for index in ended})
        self._records = {index: _record(event) for index, event in ended.items()}
        if self.exit is not None and replay.exited_iterations() & {f"{self._path}[{index}]" for index in ended}:
            self.exit.is_wanted = True

    async def _work_on_item(self, index: int, item: Value, count: int) -> None:
        run_context = self._scope.run_context
        if run_context.replay is not None:
            item = run_context.replay.edited_input(self._path, index, item)
        if run_context.replay is None or not run_context.replay.iteration_started(self._path, index):
            async with self._in_order:
                await self._may_begin(index)
                run_context.event_log.emit(
                    LoopIterationStarted, self._path, index, count, to_text(item)[:PREVIEW_LENGTH]
                )
        started = time.perf_counter()
        run = self._pass(index, item)
        result, branch, reason = await self._outcome(run)
        duration, budget = time.perf_counter() - started, run.scope.budget
        figures = (None, None, budget.usage, budget.cost_usd, duration)
        record = self._records[index] = IterationRecord(index, item, result, None, branch, reason, *figures)
        record.nodes = NodeOutputs(self._plan.body, run.given).with_skipped()
        record.warnings = run_context.warnings.inside(f"{self._path}[{index}]")
        run_context.event_log.emit(LoopIterationCompleted, self._path, *record.fields())

    async def _may_begin(self, index: int) -> None:
        """Wait while the run is paused; pause where a person steps from one iteration to the next."""
        run_context = self._scope.run_context
        if index and run_context.pause_before_iteration:
            run_context.pause_before_iteration = False
            run_context.pause()
        if run_context.paused:
            await run_context.wait_while_paused()

    def _pass(self, index: int, item: Value) -> GraphRun:
        """The body, ready to run on an item."""
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

    async def _outcome(self, run: GraphRun) -> tuple[Value, str | None, str | None]:
        """What an item came to: its result, or why there is none."""
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

    def _report_start(self, count: int) -> None:
        """Report the start of the attempt, with the number of its items, unless that was done before."""
        replay = self._scope.run_context.replay
        if not self._is_reported and (replay is None or not replay.has_started(self._path)):
            self._scope.run_context.event_log.emit(
                LoopStarted, self._path, self._attempt, count, self._config.timeout_s
            )
        self._is_reported = True

    def _emit_completed(self, reason: str, warnings: tuple[str, ...] = ()) -> None:
        self._report_start(0)
        costs = (self._budget.cost_usd, time.perf_counter() - self._started, warnings)
        told = (len(self._records), reason, reason == ALL_ITEMS, None)
        self._scope.run_context.event_log.emit(LoopCompleted, self._path, *told, *costs)


async def _first_ended(at_work: dict[asyncio.Task[None], int]) -> None:
    """Wait until an item has ended and take it out; of several that failed at once, the first one's failure counts."""
    ended, _ = await asyncio.wait(at_work, return_when=asyncio.FIRST_COMPLETED)
    for task in sorted(ended, key=at_work.__getitem__):
        task.result()
        del at_work[task]


def outputs_of(records: Sequence[dict[str, Any]]) -> Outputs:
    """What an iterator gives whose items came to these records."""
    failures: list[Value] = [
        {"index": record["index"], "item": record["input"], "error": record["reason"]}
        for record in records
        if record["branch"] == FAILED
    ]
    return {"iterations": list(records), "count": len(records), "failures": failures}


def passed_through(items: Iterable[Value]) -> Outputs:
    """What an iterator gives that let these items through without working on them."""
    free = (None, None, Usage(), 0.0, 0.0)
    records = (IterationRecord(index, item, item, None, None, None, *free) for index, item in enumerate(items))
    return {"iterations": [record_json(record) for record in records], "count": 0, "failures": []}


def _warnings(outputs: Outputs) -> tuple[str, ...]:
    """What is said of items that failed and were passed over."""
    failures, count = outputs["failures"], outputs["count"]
    if not isinstance(failures, list) or not failures or not isinstance(count, int):
        return ()
    return (f"{len(failures)} of {format_count(count, 'item')} failed.",)


def _record(event: LoopIterationCompleted) -> IterationRecord:
    return IterationRecord(*(getattr(event, name) for name in IterationRecord.__slots__))


async def run_iterator(around: GraphRun, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run an iterator to its end and give its aggregator what its items came to.

    Returns:
        What the iterator gives after its last item, by port.

    Raises:
        NodeFailure: It failed, and its settings say that this ends what it is part of.
        BudgetError: The budget is spent.
    """
    scope, path = around.scope, around.scope.prefix + node.id
    replay = scope.run_context.replay
    known = replay.outputs(path) if replay is not None else None
    if replay is not None and known is not None:
        replay.charge(path, scope.budget)
        if scope.exit is not None and replay.exited_loop(path):
            scope.exit.is_wanted = True
        return _given(around, node, known)
    budget = Budget(path, scope.budget)
    exited = False

    async def attempt(number: int) -> Outputs:
        nonlocal exited
        run = IteratorRun(around, node, inputs, path, budget)
        outputs = await run.run(number)
        exited = run.exit is not None and run.exit.is_wanted
        return outputs

    outputs = await run_container(
        scope, node, inputs, budget, attempt, lambda failure: _stand_in(node, failure), lambda: exited
    )
    if scope.exit is not None and exited:
        scope.exit.is_wanted = True
    return _given(around, node, outputs)


async def run_aggregator(run: GraphRun, node: NodePlan, iterator: NodePlan) -> Outputs | None:
    """Put together what the items of an iterator came to.

    Raises:
        NodeFailure: It failed, and its settings say that this ends what it is part of.
    """
    if node.position not in run.exit_values:
        return skip_node(run.scope, node, "Its iterator gave no result.")
    config: IteratorConfig = iterator.config
    records = cast("list[dict[str, Any]]", run.exit_values[node.position])
    keeps_places = config.on_item_error == "collect"
    results: list[Value] = [record["result"] for record in records if keeps_places or record["branch"] is None]
    if not node.enabled:
        skip_node(run.scope, node, "It is disabled.")
        return {"output": results}
    given = outputs_of(records)
    items: list[Value] = [record["input"] for record in records]
    return await run_node(run.scope, node, {"items": items, "results": results, "failures": given["failures"]})


def _stand_in(node: NodePlan, failure: EngineError) -> Outputs | None:
    """What a failed iterator gives all the same; a stated list stands for its results, any other value for one."""
    outputs = outputs_on_error(node, failure)
    if outputs is None or "error" in outputs:
        return outputs
    value: Value = node.config.error_value
    return passed_through(value if isinstance(value, list) else [value])


def _given(around: GraphRun, node: NodePlan, outputs: Outputs) -> Outputs:
    """What the iterator gives, its aggregator's part handed to it."""
    if "iterations" in outputs:
        assert node.iterator is not None
        around.exit_values[node.iterator.aggregator] = outputs["iterations"]
    return outputs
