"""One attempt at a loop: its body again and again, each iteration starting from what the one before fed back.

The body is a graph of its own, planned once; every iteration is one pass through it. After each, the exit
conditions are asked in order. What ends the loop otherwise (an error, the budget, time, a cancelled run) is told
just the same.
"""

from __future__ import annotations

import asyncio

from engine.errors import EngineError
from engine.events import LoopCompleted, LoopStarted
from engine.exits.budget import BUDGET
from engine.exits.loop_expressions import is_true
from engine.exits.max_iterations import MAX_ITERATIONS
from engine.exits.stop_decision import has_converged
from engine.exits.time_limit import TIMEOUT
from engine.expr import compile_expression
from engine.formatting import format_count
from engine.nodes.loop_config import LoopConfig
from engine.nodes.spec import NodeError, Outputs
from engine.plan.execution_plan import NodePlan
from engine.runner.budget import Account, BudgetError
from engine.runner.feedback import next_input
from engine.runner.iteration_record import loop_output, record_json
from engine.runner.loop_iteration import run_iteration
from engine.runner.loop_lifecycle import run_told
from engine.runner.loop_scope import GivenByNodes
from engine.runner.loop_state import Ended, LoopState
from engine.runner.node import outputs_on_error
from engine.runner.retry import out_of_time
from engine.runner.scheduler import GraphRun
from engine.values import Value


class _CountCameFirstError(NodeError):
    """The count came first, and the loop is to fail then."""


class LoopRun:
    """One attempt at a loop, from iteration 0."""

    def __init__(self, around: GraphRun, node: NodePlan, given: Value, path: str, account: Account) -> None:
        self.state = LoopState(around, node, given, path, account)
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
        state, replay = self.state, self.state.level.core.replay
        if replay is None or not replay.has_started(state.path):
            limits = (state.plan.max_iterations, timeout_s, self.config.budget_usd)
            state.level.core.bus.emit(LoopStarted, state.path, attempt, *limits)
        try:
            async with self.state.limit:
                return await self._run_within_limits()
        except BudgetError:
            if not self.state.ended or self.config.on_budget == "fail":
                self._tell_completed(BUDGET, None)
                raise
            return self._cut_off(BUDGET, self.config.on_budget)
        except TimeoutError as error:
            assert timeout_s is not None, "nodes turn time-outs of their own into errors"
            if self.state.ended and self.config.on_timeout != "fail":
                return self._cut_off(TIMEOUT, self.config.on_timeout)
            self._tell_completed(TIMEOUT, None)
            raise out_of_time(timeout_s) from error
        except asyncio.CancelledError:
            self._tell_completed("cancelled", None)
            raise
        except _CountCameFirstError:
            self._tell_completed(MAX_ITERATIONS, None)
            raise
        except EngineError:
            self._tell_completed("error", None)
            raise

    async def _run_within_limits(self) -> Outputs:
        if not self.enabled:
            return self._passed_through("disabled")
        if not self._condition_holds():
            return self._passed_through("condition")
        return self._finish(await self._iterate())

    async def _iterate(self) -> str:
        state, replay = self.state, self.state.level.core.replay
        body_input = state.original
        while True:
            index = len(state.ended)
            has_begun = replay is not None and replay.has_begun(state.path, index)
            if replay is not None:
                body_input = replay.edited_start(state.path, index, body_input)
            if index:
                await self._let_limit_strike()
            if index and not has_begun:
                await self._between_iterations()
            ended, reason = await run_iteration(state, index, body_input, is_told=has_begun)
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
        core = self.state.level.core
        if core.stop_before_iteration:
            core.stop_before_iteration = False
            core.pause()
        if core.paused:
            await core.free_to_start()

    def _condition_holds(self) -> bool:
        if not self.config.condition.strip():
            return True
        level = self.state.level
        scope = level.scope({"input": self.state.original}, level.core.state.at(self.state.path))
        return is_true("condition", compile_expression(self.config.condition), scope)

    def _passed_through(self, reason: str) -> Outputs:
        self._tell_completed(reason, None)
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

    def _best(self) -> Ended:
        """The iteration with the highest score; of equals, the first. One without a score is worse than any other."""

        def rank(ended: Ended) -> tuple[bool, float, int]:
            score = ended.record.score
            return score is not None, score or 0.0, -ended.record.index

        return max(self.state.ended, key=rank)

    def _returned(self, reason: str, chosen: Ended) -> Outputs:
        self._tell_completed(reason, chosen.record.index)
        records = [ended.record for ended in self.state.ended]
        given = GivenByNodes(self.state.plan.body, chosen.given)
        return self._outputs(loop_output(self.config.output_mode, chosen.record, records, given), reason)

    def _outputs(self, output: Value, reason: str) -> Outputs:
        return {
            "output": output,
            "iterations": [record_json(ended.record) for ended in self.state.ended],
            "count": len(self.state.ended),
            "exit_reason": reason,
            "converged": bool(self.state.ended) and has_converged(reason),
        }

    def _tell_completed(self, reason: str, returned: int | None) -> None:
        state = self.state
        converged = returned is not None and has_converged(reason)
        costs = (state.account.cost_usd, state.elapsed_s, tuple(self.warnings))
        state.level.core.bus.emit(LoopCompleted, state.path, len(state.ended), reason, converged, returned, *costs)


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
    level, path = around.level, around.level.prefix + node.id
    replay = level.core.replay
    known = replay.outputs(path) if replay is not None else None
    if replay is not None and known is not None:
        replay.charge(path, level.account)
        return _given(around, node, known)
    account = Account(path, level.account, node.config.budget_usd)

    async def attempt(number: int) -> Outputs:
        return await LoopRun(around, node, inputs["input"], path, account).run(number)

    def stand_in(failure: EngineError) -> Outputs | None:
        outputs = outputs_on_error(node, failure)
        if outputs is not None and "body" in outputs:
            return {"output": outputs["body"]}  # the value stands for the result, not for what an iteration starts from
        return outputs

    return _given(around, node, await run_told(level, node, inputs, account, attempt, stand_in))


def _given(around: GraphRun, node: NodePlan, outputs: Outputs) -> Outputs:
    """What the loop gives, its exit's part handed to it."""
    if "output" in outputs:
        assert node.loop is not None
        around.exit_values[node.loop.exit] = outputs["output"]
    return outputs
