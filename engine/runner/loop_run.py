"""One attempt at a loop: its body again and again, each iteration starting from what the one before fed back.

The body is a graph of its own, planned once; every iteration is one pass through it. After each, the exit
conditions are asked in order. What ends the loop otherwise (an error, the budget, time, a cancelled run) is told
just the same.
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


@dataclass(slots=True)
class FinishedIteration:
    """An iteration that has ended, with what only the loop itself needs of it.

    Attributes:
        record: What is kept of it.
        given: What each node of the body gave.
        loop_variables: The iteration as texts see it.
        has_result: Whether anything is its result.
        is_judged_done: What the judge said; None where none was asked.
    """

    record: IterationRecord
    given: list[Outputs | None]
    loop_variables: LoopVariables
    has_result: bool
    is_judged_done: bool | None = None


class LoopState:
    """One attempt at a loop.

    Attributes:
        plan: The loop and its body.
        config: Its settings.
        scope: The level around it.
        path: Its path.
        budget: What it spends.
        original: What it starts from.
        constants: What comes from outside the body: slot and value.
        decision: Decides after each iteration whether the loop stops.
        score: Its score expression; None without one.
        tells_iteration: Whether a node of the body is told about the iteration.
        memory: What its model nodes remember; None where they remember nothing.
        ended: The iterations that have ended.
        started: When it began, by the event loop's clock; time before the run broke off is taken off.
        limit: Its time limit, which counts that time too.
    """

    def __init__(self, around: GraphRun, node: NodePlan, given: Value, path: str, budget: Budget) -> None:
        assert node.loop is not None
        self.plan: LoopPlan = node.loop
        self.config: LoopConfig = self.plan.config
        self.scope = around.scope
        self.path = path
        self.budget = budget
        self.original = given
        self.constants = [(slot, around.values[outer]) for outer, slot in self.plan.body.constants]
        self.decision = StopDecision(self.config.conditions, self.config.stop_mode, self.plan.max_iterations)
        self.score = compile_expression(self.config.score) if self.config.score.strip() else None
        self.tells_iteration = any(there.tells_iteration for there in self.plan.body.nodes)
        self.memory = self._memory()
        self.ended: list[FinishedIteration] = []
        self._history: list[Record] = []
        self.history = self._first_records  # a bound method of its own for each iteration would be kept with it
        self._clock = asyncio.get_running_loop().time
        self.started = self._clock()
        self.limit = asyncio.timeout(self.config.timeout_s)

    def _memory(self) -> LoopMemory | None:
        if self.config.memory == "fresh":
            return None
        return LoopMemory(self.config.memory_window if self.config.memory == "window" else None)

    def _first_records(self, count: int) -> Sequence[Record]:
        """The records of the first iterations as texts see them; made when a text asks for them."""
        self._history.extend(history_entry(ended.record) for ended in self.ended[len(self._history) : count])
        return self._history if len(self._history) == count else self._history[:count]

    @property
    def elapsed_s(self) -> float:
        """Seconds that it has been at work."""
        return self._clock() - self.started

    def count_earlier(self, duration_s: float) -> None:
        """Count time that it was at work before the run broke off, in seconds."""
        self.started -= duration_s
        ends = self.limit.when()
        if ends is not None:
            self.limit.reschedule(ends - duration_s)

    def similarity(self, result: Value) -> float | None:
        """Of a result to the one before; None where it is not asked for, or there is none before."""
        if not self.config.compares_results or not self.ended or not self.ended[-1].has_result:
            return None
        return similarity(self.ended[-1].record.result, result)

    def names(self, ended: FinishedIteration) -> dict[str, Value]:
        """What texts may name of the iteration just ended, beside what its nodes gave and the loop itself."""
        return {
            "output": ended.record.result,
            "similarity": ended.record.similarity,
            "cost_usd": self.budget.cost_usd,
            "elapsed_s": self.elapsed_s,
        }

    def groups(self, ended: FinishedIteration) -> dict[str, Value | Namespace]:
        """The groups of values that texts about the iteration just ended may name."""
        nodes = NodeOutputs(self.plan.body, ended.given)
        state = self.scope.run_context.state.at(f"{self.path}[{ended.record.index}]")
        own: dict[str, Value | Namespace] = {"nodes": nodes, "loop": ended.loop_variables, "state": state}
        return {**(self.scope.names or {}), **own}

    def variables(self, ended: FinishedIteration) -> Scope:
        """The names for `until` and `score`."""
        return {**self.names(ended), **self.groups(ended)}


PREVIEW_LENGTH: Final = 200


async def run_iteration(
    loop: LoopState, index: int, body_input: Value, *, is_told: bool
) -> tuple[FinishedIteration, str | None]:
    """Make one iteration, tell it and record it.

    Args:
        loop: The loop.
        index: The iteration's number, from 0.
        body_input: What it starts from.
        is_told: Whether it had begun before the run broke off.

    Returns:
        The iteration, and why the loop stops after it; None where it goes on.

    Raises:
        NodeFailure, BudgetError: A node of the body, or the judge, failed.
        EngineError: It cannot be told whether the loop stops.
    """
    run_context, plan = loop.scope.run_context, loop.plan
    if not is_told:
        run_context.event_log.emit(
            LoopIterationStarted, loop.path, index, plan.max_iterations, to_text(body_input)[:PREVIEW_LENGTH]
        )
    started = time.perf_counter()
    run = _pass(loop, index, body_input)
    loop_variables = run.scope.loop_variables
    assert loop_variables is not None, "a body runs in a frame"
    await run.run()
    known = run_context.replay.iteration(loop.path, index) if run_context.replay is not None else None
    if known is not None:
        if (
            run_context.replay is not None and plan.judge is not None
        ):  # it stands in no graph that is gone through again
            run_context.replay.charge(f"{run.scope.prefix}{plan.judge.id}", run.scope.budget)
        ended = _known(loop, run, loop_variables, known)
        loop.ended.append(ended)
        return ended, _known_reason(loop, run, ended)
    ended = _taken_up(loop, run, loop_variables, body_input)
    ended.record.duration_s = time.perf_counter() - started
    reason: str | None = None
    failure: EngineError | None = None
    try:
        reason = await _decided(loop, run, ended)
    except (BudgetError, NodeFailure):  # of the judge, which is asked anew
        raise
    except EngineError as error:
        failure = error
    ended.record.usage, ended.record.cost_usd = run.scope.budget.usage, run.scope.budget.cost_usd
    ended.record.duration_s = time.perf_counter() - started
    ended.record.warnings = (*run_context.warnings.inside(f"{loop.path}[{index}]"), *ended.record.warnings)
    run_context.event_log.emit(LoopIterationCompleted, loop.path, *ended.record.fields())
    loop.ended.append(ended)
    if failure is not None:
        raise failure
    return ended, reason


def _pass(loop: LoopState, index: int, body_input: Value) -> GraphRun:
    """The body, ready to run."""
    body, scope, last = loop.plan.body, loop.scope, loop.ended[-1] if loop.ended else None
    most = loop.plan.max_iterations
    previous = last.record.result if last is not None else None
    given = last.given if last is not None else None
    loop_variables = LoopVariables(
        body, index, most, loop.original, previous, given, loop.history, scope.loop_variables
    )
    note = IterationNote(index + 1, most, previous) if loop.tells_iteration else None
    budget = Budget(loop.path, loop.budget)
    prefix, memory = f"{loop.path}[{index}].", loop.memory
    inner = RunScope(
        scope.run_context, budget, prefix, loop_variables, note, memory=memory, names=scope.names, exit=LoopExit()
    )
    run = GraphRun(body, inner)
    assert body.input_slot is not None
    run.values[body.input_slot] = body_input
    for slot, value in loop.constants:
        run.values[slot] = value
    return run


def _taken_up(loop: LoopState, run: GraphRun, loop_variables: LoopVariables, body_input: Value) -> FinishedIteration:
    """What a pass came to, with its similarity and score."""
    outcome, budget = outcome_of(run, loop.plan), run.scope.budget
    if _is_exited(run) and not outcome.has_result:
        outcome.result = outcome.feedback = _as_it_stood(loop, body_input)
        outcome.has_result = True
    record = IterationRecord(
        index=loop_variables.index,
        input=body_input,
        result=outcome.result,
        feedback=outcome.feedback,
        branch=outcome.branch,
        reason=outcome.reason,
        score=None,
        similarity=loop.similarity(outcome.result) if outcome.has_result else None,
        usage=budget.usage,
        cost_usd=budget.cost_usd,
        duration_s=0.0,
        warnings=tuple(f"{loop.path}[{loop_variables.index}]: {warning}" for warning in outcome.warnings),
        nodes=NodeOutputs(loop.plan.body, run.given).with_skipped(),
    )
    return FinishedIteration(record, run.given, loop_variables, outcome.has_result)


def _known(
    loop: LoopState, run: GraphRun, loop_variables: LoopVariables, known: LoopIterationCompleted
) -> FinishedIteration:
    """An iteration that had ended before the run broke off, as it was told then."""
    loop.count_earlier(known.duration_s)
    record = IterationRecord(*(getattr(known, name) for name in IterationRecord.__slots__))
    record.nodes = NodeOutputs(loop.plan.body, run.given).with_skipped()  # missing in older histories
    done = record.tested.get("judge")
    judged = done if isinstance(done, bool) else None
    has_result = outcome_of(run, loop.plan).has_result or _is_exited(run)
    return FinishedIteration(record, run.given, loop_variables, has_result, judged)


def _is_exited(run: GraphRun) -> bool:
    """Whether a node of the body has ended the loop."""
    return run.scope.exit is not None and run.scope.exit.is_wanted


def _as_it_stood(loop: LoopState, body_input: Value) -> Value:
    """The result of an iteration that ended the loop and gave none: the one before, else what it started from."""
    last = next((ended for ended in reversed(loop.ended) if ended.has_result), None)
    return last.record.result if last is not None else body_input


def _known_reason(loop: LoopState, run: GraphRun, ended: FinishedIteration) -> str | None:
    """Why the loop stops after an iteration that had ended before the run broke off."""
    replay = loop.scope.run_context.replay
    if loop.score is not None and ended.record.score is None:  # it failed then, or a fork has asked for it since
        ended.record.score = score_of(loop.score, loop.variables(ended))
    seen = _observed(loop, ended)
    if replay is not None and replay.continued_after(loop.path, ended.record.index):
        return None
    return EXIT_LOOP if _is_exited(run) else loop.decision.reason(seen)


async def _decided(loop: LoopState, run: GraphRun, ended: FinishedIteration) -> str | None:
    """Score the iteration, ask the judge, and return the exit reason; None where the loop continues."""
    if loop.score is not None:
        ended.record.score = score_of(loop.score, loop.variables(ended))
    if _is_exited(run):
        _observed(loop, ended)
        return EXIT_LOOP
    if loop.plan.judge is not None and ended.has_result:
        early = loop.decision.reason_before_judge(_seen(loop, ended))
        if early is not None:
            _observed(loop, ended)
            return early
        await _judge(loop, run.scope, ended)
    return loop.decision.reason(_observed(loop, ended))


async def _judge(loop: LoopState, scope: RunScope, ended: FinishedIteration) -> None:
    """Ask the judge about the result, as a node of the iteration that stands in no graph."""
    judge = loop.plan.judge
    assert judge is not None
    place = RunScope(scope.run_context, scope.budget, scope.prefix, names=loop.groups(ended))
    given = await run_node(place, judge, loop.names(ended))
    score, reason = given.get("score"), given.get("reason")
    ended.is_judged_done = given.get("done") is True
    if ended.record.score is None and isinstance(score, (int, float)):
        ended.record.score = float(score)
    if ended.record.reason is None and isinstance(reason, str):
        ended.record.reason = reason


def _seen(loop: LoopState, ended: FinishedIteration) -> EndedIteration:
    record = ended.record
    return EndedIteration(
        record.index,
        record.result,
        record.branch,
        record.similarity,
        loop.variables(ended) if loop.decision.needs_scope else {},
        ended.has_result,
        record.score,
        ended.is_judged_done,
        loop.budget.spent_usd,
        loop.elapsed_s,
    )


def _observed(loop: LoopState, ended: FinishedIteration) -> EndedIteration:
    """Let the conditions observe the iteration, and note what they looked at."""
    seen = _seen(loop, ended)
    loop.decision.observe(seen)
    if not ended.record.tested:
        ended.record.tested = loop.decision.tested(seen)
    return seen


class _CountCameFirstError(NodeError):
    """The count came first, and the loop is to fail then."""


class LoopRun:
    """One attempt at a loop, from iteration 0."""

    def __init__(self, around: GraphRun, node: NodePlan, given: Value, path: str, budget: Budget) -> None:
        self.state = LoopState(around, node, given, path, budget)
        self.config: LoopConfig = self.state.config
        self.enabled = node.enabled
        self.feedbacks: list[Value] = []
        self.warnings: list[str] = list(self.state.plan.notes)

    async def run(self, attempt: int) -> Outputs:
        """Run iterations until something ends the loop, and report what did.

        Args:
            attempt: The number of the attempt, from 1.

        Raises:
            NodeFailure: A node of the body failed.
            NodeError: The loop itself failed, or ran out of time.
            BudgetError: The budget is spent, and there is nothing to return or nothing is to be returned.
        """
        timeout_s = self.config.timeout_s
        state, replay = self.state, self.state.scope.run_context.replay
        if replay is None or not replay.has_started(state.path):
            limits = (state.plan.max_iterations, timeout_s, self.config.budget_usd)
            state.scope.run_context.event_log.emit(LoopStarted, state.path, attempt, *limits)
        try:
            async with self.state.limit:
                return await self._run_within_limits()
        except BudgetError:
            if not self.state.ended or self.config.on_budget == "fail":
                self._emit_completed(BUDGET, None)
                raise
            return self._cut_off(BUDGET, self.config.on_budget)
        except TimeoutError as error:
            assert timeout_s is not None, "nodes turn time-outs of their own into errors"
            if self.state.ended and self.config.on_timeout != "fail":
                return self._cut_off(TIMEOUT, self.config.on_timeout)
            self._emit_completed(TIMEOUT, None)
            raise timeout_error(timeout_s) from error
        except asyncio.CancelledError:
            self._emit_completed("cancelled", None)
            raise
        except _CountCameFirstError:
            self._emit_completed(MAX_ITERATIONS, None)
            raise
        except EngineError:
            self._emit_completed("error", None)
            raise

    async def _run_within_limits(self) -> Outputs:
        if not self.enabled:
            return self._passed_through("disabled")
        if not self._condition_holds():
            return self._passed_through("condition")
        return self._finish(await self._iterate())

    async def _iterate(self) -> str:
        state, replay = self.state, self.state.scope.run_context.replay
        body_input = state.original
        while True:
            index = len(state.ended)
            iteration_started = replay is not None and replay.iteration_started(state.path, index)
            if replay is not None:
                body_input = replay.edited_input(state.path, index, body_input)
            if index:
                await self._let_limit_strike()
            if index and not iteration_started:
                await self._between_iterations()
            ended, reason = await run_iteration(state, index, body_input, is_told=iteration_started)
            if reason is not None:
                return reason
            self.feedbacks.append(ended.record.feedback)
            body_input = next_input(self.config, state.original, body_input, self.feedbacks)

    async def _let_limit_strike(self) -> None:
        """Let a time limit strike that is over by what the loop had taken before its run broke off.

        It strikes only when the event loop has its turn, which a quick iteration may never give it.
        """
        ends = self.state.limit.when()
        if ends is not None and ends <= asyncio.get_running_loop().time():
            await asyncio.sleep(0)

    async def _between_iterations(self) -> None:
        """Wait as long as the settings say, and pause where a person steps from one iteration to the next."""
        if self.config.delay_s:
            await asyncio.sleep(self.config.delay_s)
        run_context = self.state.scope.run_context
        if run_context.pause_before_iteration:
            run_context.pause_before_iteration = False
            run_context.pause()
        if run_context.paused:
            await run_context.wait_while_paused()

    def _condition_holds(self) -> bool:
        if not self.config.condition.strip():
            return True
        scope = self.state.scope
        variables = scope.variables({"input": self.state.original}, scope.run_context.state.at(self.state.path))
        return is_true("condition", compile_expression(self.config.condition), variables)

    def _passed_through(self, reason: str) -> Outputs:
        self._emit_completed(reason, None)
        return self._outputs(self.state.original, reason)

    def _finish(self, reason: str) -> Outputs:
        last, count, action = self.state.ended[-1], len(self.state.ended), self.config.on_max_iterations
        if reason != MAX_ITERATIONS:
            return self._returned(reason, last)
        if action == "return_best":
            return self._returned(reason, self._best())
        if action == "fail" and self.config.can_fall_short:
            raise _CountCameFirstError(_not_converged(count), "Raise 'Max iterations', or relax the condition.")
        if action == "return_with_flag" and self.config.can_fall_short:
            self.warnings.append(_not_converged(count))
        return self._returned(reason, last)

    def _cut_off(self, reason: str, action: str) -> Outputs:
        """What comes out of a loop that was cut off, of its whole iterations."""
        return self._returned(reason, self._best() if action == "return_best" else self.state.ended[-1])

    def _best(self) -> FinishedIteration:
        """The iteration with the highest score; of equals, the first. One without a score is worse than any other."""

        def rank(ended: FinishedIteration) -> tuple[bool, float, int]:
            score = ended.record.score
            return score is not None, score or 0.0, -ended.record.index

        return max(self.state.ended, key=rank)

    def _returned(self, reason: str, chosen: FinishedIteration) -> Outputs:
        self._emit_completed(reason, chosen.record.index)
        records = [ended.record for ended in self.state.ended]
        given = NodeOutputs(self.state.plan.body, chosen.given)
        return self._outputs(loop_output(self.config.output_mode, chosen.record, records, given), reason)

    def _outputs(self, output: Value, reason: str) -> Outputs:
        return {
            "output": output,
            "iterations": [record_json(ended.record) for ended in self.state.ended],
            "count": len(self.state.ended),
            "exit_reason": reason,
            "converged": bool(self.state.ended) and has_converged(reason),
        }

    def _emit_completed(self, reason: str, returned: int | None) -> None:
        state = self.state
        converged = returned is not None and has_converged(reason)
        costs = (state.budget.cost_usd, state.elapsed_s, tuple(self.warnings))
        state.scope.run_context.event_log.emit(
            LoopCompleted, state.path, len(state.ended), reason, converged, returned, *costs
        )


def _not_converged(iterations: int) -> str:
    return f"It did not converge within {format_count(iterations, 'iteration')}."


async def run_loop(around: GraphRun, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run a loop to its end and give its exit what comes out.

    Returns:
        What the loop gives after its last iteration, by port.

    Raises:
        NodeFailure: It failed, and its settings say that this ends what it is part of.
        BudgetError: The budget is spent, and no whole iteration is there to return, or its settings say that it fails.
    """
    scope, path = around.scope, around.scope.prefix + node.id
    replay = scope.run_context.replay
    known = replay.outputs(path) if replay is not None else None
    if replay is not None and known is not None:
        replay.charge(path, scope.budget)
        return _given(around, node, known)
    budget = Budget(path, scope.budget, node.config.budget_usd)

    async def attempt(number: int) -> Outputs:
        return await LoopRun(around, node, inputs["input"], path, budget).run(number)

    def stand_in(failure: EngineError) -> Outputs | None:
        outputs = outputs_on_error(node, failure)
        if outputs is not None and "body" in outputs:
            return {"output": outputs["body"]}  # the value stands for the result, not for what an iteration starts from
        return outputs

    return _given(around, node, await run_container(scope, node, inputs, budget, attempt, stand_in))


def _given(around: GraphRun, node: NodePlan, outputs: Outputs) -> Outputs:
    """What the loop gives, its exit's part handed to it."""
    if "output" in outputs:
        assert node.loop is not None
        around.exit_values[node.loop.exit] = outputs["output"]
    return outputs
