"""Execution of loops: iterations, feedback between them, exit conditions, and the output of the loop.

The body of a loop is compiled to a graph once, and each iteration executes this graph. The exit conditions are tested
after each iteration. Errors, budgets, timeouts and cancellation end a loop too, and are reported as exit reasons.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.errors import EngineError
from engine.events import LoopCompleted, LoopIterationCompleted, LoopIterationStarted, LoopStarted
from engine.exits.budget import BUDGET
from engine.exits.condition import EndedIteration, is_true, score_of
from engine.exits.loop_conditions import StopDecision, has_converged
from engine.exits.max_iterations import MAX_ITERATIONS
from engine.exits.similarity import similarity
from engine.exits.time_limit import TIMEOUT
from engine.expr import Namespace, Record, Scope, compile_expression
from engine.formatting import format_count
from engine.models.protocol import Usage
from engine.nodes.agent_tools import EXIT_LOOP
from engine.nodes.context import IterationNote
from engine.nodes.loop import LoopConfig
from engine.nodes.spec import NodeError, Outputs
from engine.plan.execution_plan import LoopPlan, NodePlan
from engine.runner.budget import Budget, BudgetError
from engine.runner.feedback import next_input, outcome_of
from engine.runner.loop_variables import (
    IterationRecord,
    LoopMemory,
    LoopVariables,
    NodeOutputs,
    history_entry,
    loop_output,
    record_json,
)
from engine.runner.node_execution import outputs_on_error, run_container, run_node
from engine.runner.retry import NodeFailure, timeout_error
from engine.runner.run_scope import LoopExit, RunScope
from engine.runner.scheduler import GraphRun
from engine.values import Value, to_text

PREVIEW_LENGTH: Final = 200
"""Characters of an iteration input in the event of its start."""
_NO_USAGE: Final = Usage()


class _MaxIterationsReachedError(NodeError):
    """The loop reached its maximum of iterations, and its settings ask for a failure."""


@dataclass(slots=True)
class FinishedIteration:
    """A finished iteration of a loop.

    Attributes:
        record: Its record.
        outputs: The outputs of each node of the body.
        loop_variables: Its variables.
        has_result: Whether it has a result.
        judge_done: The decision of the judge; None if the judge did not run.
    """

    record: IterationRecord
    outputs: list[Outputs | None]
    loop_variables: LoopVariables
    has_result: bool
    judge_done: bool | None = None


class LoopRun:
    """One attempt at a loop, from iteration 0.

    Attributes:
        finished: The finished iterations.
    """

    def __init__(self, outer: GraphRun, node: NodePlan, original: Value, path: str, budget: Budget) -> None:
        assert node.loop is not None
        self.finished: list[FinishedIteration] = []
        self._plan: LoopPlan = node.loop
        self._config: LoopConfig = self._plan.config
        self._enabled = node.enabled
        self._scope = outer.scope
        self._run_context = outer.scope.run_context
        self._path = path
        self._budget = budget
        self._original = original
        self._constants = [(slot, outer.values[outer_slot]) for outer_slot, slot in self._plan.body.constants]
        self._decision = StopDecision(self._config.conditions, self._config.stop_mode, self._plan.max_iterations)
        self._score = compile_expression(self._config.score) if self._config.score.strip() else None
        self._has_iteration_note = any(node.tells_iteration for node in self._plan.body.nodes)
        self._memory = self._new_memory()
        self._warnings: list[str] = list(self._plan.notes)
        self._feedbacks: list[Value] = []
        self._records: list[Record] = []
        self._history = self._first_records  # one bound method; each iteration would keep another one alive
        self._clock = asyncio.get_running_loop().time
        self._started = self._clock()
        self._timeout = asyncio.timeout(self._config.timeout_s)

    def _new_memory(self) -> LoopMemory | None:
        if self._config.memory == "fresh":
            return None
        return LoopMemory(self._config.memory_window if self._config.memory == "window" else None)

    async def run(self, attempt: int) -> Outputs:
        """Run iterations until the loop stops, and report its end.

        Args:
            attempt: The number of the attempt, from 1.

        Raises:
            NodeFailure: A node of the body failed.
            NodeError: The loop itself failed, or exceeded its timeout.
            BudgetError: The budget is used up, and there is no iteration to return or the settings ask for a failure.
        """
        timeout_s, replay = self._config.timeout_s, self._run_context.replay
        if replay is None or not replay.has_started(self._path):
            limits = (self._plan.max_iterations, timeout_s, self._config.budget_usd)
            self._run_context.event_log.emit(LoopStarted, self._path, attempt, *limits)
        try:
            async with self._timeout:
                return await self._run_within_limits()
        except BudgetError:
            if not self.finished or self._config.on_budget == "fail":
                self._emit_completed(BUDGET, None)
                raise
            return self._cut_off(BUDGET, self._config.on_budget)
        except TimeoutError as error:
            assert timeout_s is not None, "nodes convert timeouts of their own to errors"
            if self.finished and self._config.on_timeout != "fail":
                return self._cut_off(TIMEOUT, self._config.on_timeout)
            self._emit_completed(TIMEOUT, None)
            raise timeout_error(timeout_s) from error
        except asyncio.CancelledError:
            self._emit_completed("cancelled", None)
            raise
        except _MaxIterationsReachedError:
            self._emit_completed(MAX_ITERATIONS, None)
            raise
        except EngineError:
            self._emit_completed("error", None)
            raise

    async def _run_within_limits(self) -> Outputs:
        if not self._enabled:
            return self._pass_through("disabled")
        if not self._condition_holds():
            return self._pass_through("condition")
        return self._finish(await self._iterate())

    def _condition_holds(self) -> bool:
        if not self._config.condition.strip():
            return True
        state = self._run_context.state.at(self._path)
        variables = self._scope.variables({"input": self._original}, state)
        return is_true("condition", compile_expression(self._config.condition), variables)

    # Iterations

    async def _iterate(self) -> str:
        """Run iterations and return the exit reason."""
        replay = self._run_context.replay
        body_input = self._original
        while True:
            index = len(self.finished)
            was_started = replay is not None and replay.iteration_started(self._path, index)
            if replay is not None:
                body_input = replay.edited_input(self._path, index, body_input)
            if index:
                await self._raise_past_timeout()
            if index and not was_started:
                await self._wait_between_iterations()
            iteration, reason = await self._run_iteration(index, body_input, was_started=was_started)
            if reason is not None:
                return reason
            self._feedbacks.append(iteration.record.feedback)
            body_input = next_input(self._config, self._original, body_input, self._feedbacks)

    async def _raise_past_timeout(self) -> None:
        """Let a timeout that was exceeded before a resume take effect.

        It does so only when the event loop runs, which quick iterations may never allow.
        """
        ends = self._timeout.when()
        if ends is not None and ends <= asyncio.get_running_loop().time():
            await asyncio.sleep(0)

    async def _wait_between_iterations(self) -> None:
        if self._config.delay_s:
            await asyncio.sleep(self._config.delay_s)
        if self._run_context.pause_before_iteration or self._run_context.paused:
            await self._run_context.pause_between_iterations()

    async def _run_iteration(
        self, index: int, body_input: Value, *, was_started: bool
    ) -> tuple[FinishedIteration, str | None]:
        """Run one iteration and report it; return it with the exit reason, or None if the loop continues."""
        run_context = self._run_context
        if not was_started:
            preview = to_text(body_input)[:PREVIEW_LENGTH]
            run_context.event_log.emit(LoopIterationStarted, self._path, index, self._plan.max_iterations, preview)
        started = time.perf_counter()
        run = self._body_run(index, body_input)
        await run.run()
        replay = run_context.replay
        known = replay.iteration(self._path, index) if replay is not None else None
        if replay is not None and known is not None:
            if self._plan.judge is not None:  # it is part of no graph, so that no execution has charged it
                replay.charge(f"{run.scope.prefix}{self._plan.judge.id}", run.scope.budget)
            iteration = self._known_iteration(run, known)
            self.finished.append(iteration)
            return iteration, self._known_exit_reason(run, iteration)
        iteration = self._finished_iteration(run, body_input)
        record = iteration.record
        reason: str | None = None
        failure: EngineError | None = None
        try:
            reason = await self._exit_reason(run, iteration)
        except (BudgetError, NodeFailure):  # of the judge, which runs again after a resume
            raise
        except EngineError as error:
            failure = error
        record.usage, record.cost_usd = run.scope.budget.usage, run.scope.budget.cost_usd
        record.duration_s = time.perf_counter() - started
        record.warnings = (*run_context.warnings.inside(f"{self._path}[{index}]"), *record.warnings)
        run_context.event_log.emit(LoopIterationCompleted, self._path, *record.fields())
        self.finished.append(iteration)
        if failure is not None:
            raise failure
        return iteration, reason

    def _body_run(self, index: int, body_input: Value) -> GraphRun:
        """Return an execution of the body for an iteration."""
        body, outer, last = self._plan.body, self._scope, self.finished[-1] if self.finished else None
        max_iterations = self._plan.max_iterations
        previous = last.record.result if last is not None else None
        last_outputs = last.outputs if last is not None else None
        variables = LoopVariables(
            body, index, max_iterations, self._original, previous, last_outputs, self._history, outer.loop_variables
        )
        scope = RunScope(
            self._run_context,
            Budget(self._path, self._budget),
            f"{self._path}[{index}].",
            variables,
            IterationNote(index + 1, max_iterations, previous) if self._has_iteration_note else None,
            memory=self._memory,
            names=outer.names,
            exit=LoopExit(),
        )
        run = GraphRun(body, scope)
        assert body.input_slot is not None
        run.values[body.input_slot] = body_input
        for slot, value in self._constants:
            run.values[slot] = value
        return run

    def _finished_iteration(self, run: GraphRun, body_input: Value) -> FinishedIteration:
        """Return a finished iteration with its result and similarity, and without its usage, cost and duration."""
        outcome, variables = outcome_of(run, self._plan), run.scope.loop_variables
        assert variables is not None
        if _exits_loop(run) and not outcome.has_result:
            outcome.result = outcome.feedback = self._last_result(body_input)
            outcome.has_result = True
        alike = self._similarity(outcome.result) if outcome.has_result else None
        warnings = [f"{self._path}[{variables.index}]: {warning}" for warning in outcome.warnings]
        record = IterationRecord(  # by position, because names in a call of a class cost as much as the rest of it
            variables.index,
            body_input,
            outcome.result,
            outcome.feedback,
            outcome.branch,
            outcome.reason,
            None,
            alike,
            _NO_USAGE,
            0.0,
            0.0,
            tuple(warnings),
            {},
            NodeOutputs(self._plan.body, run.outputs).with_skipped(),
        )
        return FinishedIteration(record, run.outputs, variables, outcome.has_result)

    def _known_iteration(self, run: GraphRun, known: LoopIterationCompleted) -> FinishedIteration:
        """Return an iteration that completed before a resume."""
        variables = run.scope.loop_variables
        assert variables is not None
        self._count_earlier_time(known.duration_s)
        record = IterationRecord.from_event(known)
        record.nodes = NodeOutputs(self._plan.body, run.outputs).with_skipped()  # missing in older histories
        done = record.tested.get("judge")
        judge_done = done if isinstance(done, bool) else None
        has_result = outcome_of(run, self._plan).has_result or _exits_loop(run)
        return FinishedIteration(record, run.outputs, variables, has_result, judge_done)

    def _count_earlier_time(self, duration_s: float) -> None:
        """Count time before a resume against the timeout."""
        self._started -= duration_s
        ends = self._timeout.when()
        if ends is not None:
            self._timeout.reschedule(ends - duration_s)

    def _last_result(self, body_input: Value) -> Value:
        """Return the last result, or without one the iteration input: the result of an iteration that has none."""
        last = next((iteration for iteration in reversed(self.finished) if iteration.has_result), None)
        return last.record.result if last is not None else body_input

    def _similarity(self, result: Value) -> float | None:
        """Return the similarity to the result before; None if it is not needed, or there is none before."""
        if not self._config.compares_results or not self.finished or not self.finished[-1].has_result:
            return None
        return similarity(self.finished[-1].record.result, result)

    def _first_records(self, count: int) -> Sequence[Record]:
        """Return the records of the first iterations for `loop.history`."""
        self._records.extend(history_entry(iteration.record) for iteration in self.finished[len(self._records) : count])
        return self._records if len(self._records) == count else self._records[:count]

    # Exit conditions

    async def _exit_reason(self, run: GraphRun, iteration: FinishedIteration) -> str | None:
        """Score an iteration, ask the judge, and return the exit reason; None if the loop continues."""
        if self._score is not None:
            iteration.record.score = score_of(self._score, self._variables(iteration))
        if _exits_loop(run):
            self._observe(iteration)
            return EXIT_LOOP
        if self._plan.judge is not None and iteration.has_result:
            early = self._decision.reason_before_judge(self._ended_iteration(iteration))
            if early is not None:
                self._observe(iteration)
                return early
            await self._ask_judge(self._plan.judge, run.scope, iteration)
        return self._decision.reason(self._observe(iteration))

    def _known_exit_reason(self, run: GraphRun, iteration: FinishedIteration) -> str | None:
        """Return the exit reason after an iteration that completed before a resume; None if the loop continues."""
        replay, record = self._run_context.replay, iteration.record
        if self._score is not None and record.score is None:  # it failed then, or a fork has added it
            record.score = score_of(self._score, self._variables(iteration))
        ended = self._observe(iteration)
        if replay is not None and replay.continued_after(self._path, record.index):
            return None
        return EXIT_LOOP if _exits_loop(run) else self._decision.reason(ended)

    async def _ask_judge(self, judge: NodePlan, scope: RunScope, iteration: FinishedIteration) -> None:
        """Run the judge, a node of the iteration that is part of no graph."""
        judge_scope = RunScope(scope.run_context, scope.budget, scope.prefix, names=self._namespaces(iteration))
        outputs = await run_node(judge_scope, judge, self._values(iteration))
        score, reason = outputs.get("score"), outputs.get("reason")
        iteration.judge_done = outputs.get("done") is True
        if iteration.record.score is None and isinstance(score, (int, float)):
            iteration.record.score = float(score)
        if iteration.record.reason is None and isinstance(reason, str):
            iteration.record.reason = reason

    def _ended_iteration(self, iteration: FinishedIteration) -> EndedIteration:
        record = iteration.record
        return EndedIteration(
            record.index,
            record.result,
            record.branch,
            record.similarity,
            self._variables(iteration) if self._decision.needs_scope else {},
            iteration.has_result,
            record.score,
            iteration.judge_done,
            self._budget.spent_usd,
            self._elapsed_s,
        )

    def _observe(self, iteration: FinishedIteration) -> EndedIteration:
        """Let the exit conditions observe an iteration, and record the values that they tested."""
        ended = self._ended_iteration(iteration)
        self._decision.observe(ended)
        if not iteration.record.tested:
            iteration.record.tested = self._decision.tested(ended)
        return ended

    @property
    def _elapsed_s(self) -> float:
        return self._clock() - self._started

    def _values(self, iteration: FinishedIteration) -> dict[str, Value]:
        return {
            "output": iteration.record.result,
            "similarity": iteration.record.similarity,
            "cost_usd": self._budget.cost_usd,
            "elapsed_s": self._elapsed_s,
        }

    def _namespaces(self, iteration: FinishedIteration) -> dict[str, Value | Namespace]:
        own: dict[str, Value | Namespace] = {
            "nodes": NodeOutputs(self._plan.body, iteration.outputs),
            "loop": iteration.loop_variables,
            "state": self._run_context.state.at(f"{self._path}[{iteration.record.index}]"),
        }
        return {**(self._scope.names or {}), **own}

    def _variables(self, iteration: FinishedIteration) -> Scope:
        """Return the variables of `until` and `score`."""
        return {**self._values(iteration), **self._namespaces(iteration)}

    # The end of the loop

    def _pass_through(self, reason: str) -> Outputs:
        self._emit_completed(reason, None)
        return self._outputs(self._original, reason)

    def _finish(self, reason: str) -> Outputs:
        last, action = self.finished[-1], self._config.on_max_iterations
        if reason != MAX_ITERATIONS:
            return self._return(reason, last)
        if action == "return_best":
            return self._return(reason, self._best())
        not_converged = f"It did not converge within {format_count(len(self.finished), 'iteration')}."
        if action == "fail" and self._config.can_fall_short:
            raise _MaxIterationsReachedError(not_converged, "Raise 'Max iterations', or relax the condition.")
        if action == "return_with_flag" and self._config.can_fall_short:
            self._warnings.append(not_converged)
        return self._return(reason, last)

    def _cut_off(self, reason: str, action: str) -> Outputs:
        """Return the outputs of a loop that a limit ended, from its finished iterations."""
        return self._return(reason, self._best() if action == "return_best" else self.finished[-1])

    def _best(self) -> FinishedIteration:
        """Return the first iteration with the highest score; iterations without a score rank last."""

        def rank(iteration: FinishedIteration) -> tuple[bool, float, int]:
            score = iteration.record.score
            return score is not None, score or 0.0, -iteration.record.index

        return max(self.finished, key=rank)

    def _return(self, reason: str, chosen: FinishedIteration) -> Outputs:
        self._emit_completed(reason, chosen.record.index)
        records = [iteration.record for iteration in self.finished]
        nodes = NodeOutputs(self._plan.body, chosen.outputs)
        return self._outputs(loop_output(self._config.output_mode, chosen.record, records, nodes), reason)

    def _outputs(self, output: Value, reason: str) -> Outputs:
        return {
            "output": output,
            "iterations": [record_json(iteration.record) for iteration in self.finished],
            "count": len(self.finished),
            "exit_reason": reason,
            "converged": bool(self.finished) and has_converged(reason),
        }

    def _emit_completed(self, reason: str, returned: int | None) -> None:
        converged = returned is not None and has_converged(reason)
        figures = (self._budget.cost_usd, self._elapsed_s, tuple(self._warnings))
        self._run_context.event_log.emit(
            LoopCompleted, self._path, len(self.finished), reason, converged, returned, *figures
        )


def _exits_loop(run: GraphRun) -> bool:
    """Whether a node of the body ended the loop."""
    return run.scope.exit is not None and run.scope.exit.is_requested


async def run_loop(outer: GraphRun, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run a loop and pass its output to its exit.

    Returns:
        The loop's own outputs after the last iteration, by port.

    Raises:
        NodeFailure: It failed, and that ends whatever it is part of.
        BudgetError: The budget is used up, and there is no iteration to return or the settings ask for a failure.
    """
    scope, path = outer.scope, outer.scope.prefix + node.id
    replay = scope.run_context.replay
    known = replay.outputs(path) if replay is not None else None
    if replay is not None and known is not None:
        replay.charge(path, scope.budget)
        return pass_to_exit(outer, node, known)
    budget = Budget(path, scope.budget, node.config.budget_usd, title=node.title)

    async def attempt(number: int) -> Outputs:
        return await LoopRun(outer, node, inputs["input"], path, budget).run(number)

    def fallback_outputs(failure: EngineError) -> Outputs | None:
        outputs = outputs_on_error(node, failure)
        if outputs is not None and "body" in outputs:
            return {"output": outputs["body"]}  # the value on error replaces the result, not an iteration's input
        return outputs

    outputs = await run_container(scope, node, inputs, attempt, fallback_outputs, budget=budget)
    return pass_to_exit(outer, node, outputs)


def pass_to_exit(outer: GraphRun, node: NodePlan, outputs: Outputs) -> Outputs:
    """Pass the output of a loop to its exit; of other nodes nothing."""
    if node.loop is not None and "output" in outputs:
        outer.exit_values[node.loop.exit] = outputs["output"]
    return outputs
