"""One attempt at a loop: its body again and again, each iteration starting from what the one before fed back.

The body is a graph of its own, planned once; every iteration is one pass through it. After each, the exit
conditions are asked in order. What ends the loop otherwise (an error, the budget, time, a cancelled run) is told
just the same.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from engine.errors import EngineError
from engine.exits.base import EndedIteration
from engine.exits.choose import exit_conditions
from engine.exits.max_iterations import MAX_ITERATIONS
from engine.exits.similarity import similarity
from engine.exits.verdict import is_true, score_of
from engine.expr import Namespace, Scope, compile_expression
from engine.nodes.iteration_note import IterationNote
from engine.nodes.loop import LoopConfig, asks_for_more_than_the_count
from engine.nodes.spec import NodeError, Outputs
from engine.plan.graph import LoopPlan, NodePlan
from engine.runner.account import Account, BudgetError
from engine.runner.attempts import out_of_time
from engine.runner.events import LoopCompleted, LoopIterationCompleted, LoopIterationStarted
from engine.runner.feedback import next_input
from engine.runner.frame import GivenByNodes, LoopFrame
from engine.runner.level import Level
from engine.runner.outcome import outcome_of
from engine.runner.records import IterationRecord, loop_output, record_json
from engine.runner.scheduler import GraphRun
from engine.values import Value, to_text

PREVIEW_LENGTH: Final = 200
BUDGET: Final = "budget"
_NOT_CONVERGED: Final = frozenset({MAX_ITERATIONS, BUDGET})


@dataclass(slots=True)
class _Ended:
    """An iteration that has ended, with what only the loop itself needs of it."""

    record: IterationRecord
    given: list[Outputs | None]
    frame: LoopFrame
    has_result: bool


class _CountCameFirstError(NodeError):
    """The count came first, and the loop is to fail then."""


class LoopRun:
    """One attempt at a loop, from iteration 0."""

    def __init__(self, around: GraphRun, node: NodePlan, given: Value, path: str, account: Account) -> None:
        assert node.loop is not None
        self.plan: LoopPlan = node.loop
        self.config = self.plan.config
        self.level = around.level
        self.enabled = node.enabled
        self.original = given
        self.path = path
        self.account = account
        self.started = time.perf_counter()
        self.constants = [(slot, around.values[outer]) for outer, slot in self.plan.body.constants]
        self.conditions = exit_conditions(self.config, self.plan.max_iterations)
        self.score = compile_expression(self.config.score) if self.config.score.strip() else None
        self.tells_iteration = any(there.tells_iteration for there in self.plan.body.nodes)
        self.compares = self._compares()
        self.ended: list[_Ended] = []
        self.records: list[Value] = []
        self.feedbacks: list[Value] = []
        self.warnings: list[str] = list(self.plan.notes)

    def _compares(self) -> bool:
        """Whether results are compared: for `stable_output`, and where an expression names `similarity`."""
        texts = (text for text in (self.config.until, self.config.score) if text.strip())
        named = any(("similarity",) in compile_expression(text).paths for text in texts)
        return named or self.config.exit_condition == "stable_output"

    async def run(self) -> Outputs:
        """Run iterations until something ends the loop, and tell what did.

        Raises:
            NodeFailure: A node of the body failed.
            NodeError: The loop itself failed, or ran out of time.
            BudgetError: The budget is spent, and there is nothing to return or nothing is to be returned.
        """
        timeout_s = self.config.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await self._run_within_limits()
        except BudgetError:
            if not self.ended or self.config.on_budget == "fail":
                self._tell_completed(BUDGET, None)
                raise
            return self._returned(BUDGET, self._best() if self.config.on_budget == "return_best" else self.ended[-1])
        except TimeoutError as error:
            assert timeout_s is not None, "nodes turn time-outs of their own into errors"
            self._tell_completed("timeout", None)
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
        body_input = self.original
        replay = self.level.core.replay
        while True:
            index = len(self.ended)
            has_begun = replay is not None and replay.has_begun(self.path, index)
            if replay is not None:
                body_input = replay.edited_start(self.path, index, body_input)
            if index and not has_begun:
                await asyncio.sleep(self.config.delay_s) if self.config.delay_s else None
                await self._stop_if_asked()
            ended = await self._iteration(index, body_input, is_told=has_begun)
            went_on = replay is not None and replay.went_on_after(self.path, index)
            reason = self._reason(ended, went_on=went_on)
            self.records.append(record_json(ended.record))
            if reason is not None:
                return reason
            self.feedbacks.append(ended.record.feedback)
            body_input = next_input(self.config, self.original, body_input, self.feedbacks)

    async def _stop_if_asked(self) -> None:
        """Pause between two iterations, where a person steps from one to the next."""
        core = self.level.core
        if core.stop_before_iteration:
            core.stop_before_iteration = False
            core.pause()
        if core.paused:
            await core.free_to_start()

    async def _iteration(self, index: int, body_input: Value, *, is_told: bool) -> _Ended:
        """One pass through the body, told and recorded; `is_told`: it had begun before the run broke off."""
        plan, emit, replay = self.plan, self.level.core.bus.emit, self.level.core.replay
        if not is_told:
            preview = to_text(body_input)[:PREVIEW_LENGTH]
            emit(LoopIterationStarted, self.path, index, plan.max_iterations, preview)
        started = time.perf_counter()
        last = self.ended[-1] if self.ended else None
        previous = last.record.result if last is not None else None
        given = last.given if last is not None else None
        frame = LoopFrame(
            plan.body, index, plan.max_iterations, self.original, previous, given, self.records, self.level.frame
        )
        account = Account(self.path, self.account)
        note = IterationNote(index + 1, plan.max_iterations, previous) if self.tells_iteration else None
        run = GraphRun(plan.body, Level(self.level.core, account, f"{self.path}[{index}].", frame, note))
        assert plan.body.input_slot is not None
        run.values[plan.body.input_slot] = body_input
        for slot, value in self.constants:
            run.values[slot] = value
        await run.run()
        known = replay.iteration(self.path, index) if replay is not None else None
        if known is not None:
            ended = self._known(run, frame, known)
        else:
            ended = self._taken_up(run, frame, body_input, started)
            emit(LoopIterationCompleted, self.path, *ended.record.fields())
        self.ended.append(ended)
        return ended

    def _known(self, run: GraphRun, frame: LoopFrame, known: LoopIterationCompleted) -> _Ended:
        """An iteration that had ended before the run broke off, as it was told then."""
        self.started -= known.duration_s
        fields = (getattr(known, name) for name in IterationRecord.__slots__)
        return _Ended(IterationRecord(*fields), run.given, frame, outcome_of(run, self.plan).has_result)

    def _taken_up(self, run: GraphRun, frame: LoopFrame, body_input: Value, started: float) -> _Ended:
        """What an iteration came to, with its similarity and score."""
        outcome, account = outcome_of(run, self.plan), run.level.account
        record = IterationRecord(
            index=frame.index,
            input=body_input,
            result=outcome.result,
            feedback=outcome.feedback,
            branch=outcome.branch,
            reason=outcome.reason,
            score=None,
            similarity=self._similarity(outcome.result) if outcome.has_result else None,
            usage=account.usage,
            cost_usd=account.cost_usd,
            duration_s=time.perf_counter() - started,
            warnings=outcome.warnings,
        )
        ended = _Ended(record, run.given, frame, outcome.has_result)
        if self.score is not None:
            record.score = score_of(self.score, self._scope(ended))
        return ended

    def _similarity(self, result: Value) -> float | None:
        if not self.compares or not self.ended or not self.ended[-1].has_result:
            return None
        return similarity(self.ended[-1].record.result, result)

    def _scope(self, ended: _Ended) -> Scope:
        """The names of the iteration just ended, for `until` and `score`."""
        return {
            "output": ended.record.result,
            "similarity": ended.record.similarity,
            "cost_usd": self.account.cost_usd,
            "elapsed_s": time.perf_counter() - self.started,
            "nodes": GivenByNodes(self.plan.body, ended.given),
            "loop": ended.frame,
        }

    def _reason(self, ended: _Ended, *, went_on: bool) -> str | None:
        """Why the loop stops after the iteration; `went_on`: it did not, as is known from before the run broke off."""
        record = ended.record
        scope: Scope = self._scope(ended) if self.config.until else {}
        seen = EndedIteration(record.index, record.result, record.branch, record.similarity, scope)
        for condition in self.conditions:
            condition.observe(seen)
        if went_on:
            return None
        reasons = (condition.reason(seen) for condition in self.conditions)
        return next((reason for reason in reasons if reason is not None), None)

    def _condition_holds(self) -> bool:
        if not self.config.condition.strip():
            return True
        scope: dict[str, Value | Namespace] = {"input": self.original}
        if self.level.frame is not None:
            scope["loop"] = self.level.frame
        return is_true("condition", compile_expression(self.config.condition), scope)

    def _passed_through(self, reason: str) -> Outputs:
        self._tell_completed(reason, None)
        return self._outputs(self.original, reason)

    def _finish(self, reason: str) -> Outputs:
        action = self.config.on_max_iterations
        if reason != MAX_ITERATIONS or not asks_for_more_than_the_count(self.config):
            return self._returned(reason, self.ended[-1])
        if action == "fail":
            message = _count_came_first(len(self.ended))
            raise _CountCameFirstError(message, "Raise 'At most', or ease the condition.")
        if tell_flagged(self.level.core.warnings, self.path, self.config, reason, len(self.ended)):
            self.warnings.append(_count_came_first(len(self.ended)))
        return self._returned(reason, self._best() if action == "return_best" else self.ended[-1])

    def _best(self) -> _Ended:
        """The iteration with the highest score; of equals, the first."""
        return max(self.ended, key=lambda ended: (ended.record.score or 0.0, -ended.record.index))

    def _returned(self, reason: str, chosen: _Ended) -> Outputs:
        self._tell_completed(reason, chosen.record.index)
        records = [ended.record for ended in self.ended]
        given = GivenByNodes(self.plan.body, chosen.given)
        return self._outputs(loop_output(self.config.output_mode, chosen.record, records, given), reason)

    def _outputs(self, output: Value, reason: str) -> Outputs:
        return {
            "output": output,
            "iterations": self.records,
            "count": len(self.ended),
            "exit_reason": reason,
            "converged": bool(self.ended) and reason not in _NOT_CONVERGED,
        }

    def _tell_completed(self, reason: str, returned: int | None) -> None:
        converged = returned is not None and reason not in _NOT_CONVERGED
        duration = time.perf_counter() - self.started
        fields = (len(self.ended), reason, converged, returned, self.account.cost_usd, duration, tuple(self.warnings))
        self.level.core.bus.emit(LoopCompleted, self.path, *fields)


def tell_flagged(warnings: list[str], path: str, config: LoopConfig, reason: str, iterations: int) -> bool:
    """Put a loop that ended by its count, where that is to be flagged, among the run's warnings; whether it was."""
    is_flagged = reason == MAX_ITERATIONS and config.on_max_iterations == "return_with_flag"
    if not is_flagged or not asks_for_more_than_the_count(config):
        return False
    warnings.append(f"{path}: {_count_came_first(iterations)}")
    return True


def _count_came_first(iterations: int) -> str:
    return f"It did not stop by itself within {iterations} iterations."
