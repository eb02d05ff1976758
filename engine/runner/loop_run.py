"""One attempt at a loop: its body again and again, each iteration starting from what the one before fed back.

The body is a graph of its own, planned once; every iteration is one pass through it. After each, the exit conditions are
asked in order. What ends the loop otherwise (an error, the budget, time, a cancelled run) is told just the same.
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
from engine.expr import Namespace, Scope, compile_expression
from engine.nodes.spec import NodeError, Outputs
from engine.plan.graph import LoopPlan, NodePlan
from engine.runner.account import Account, BudgetError
from engine.runner.events import LoopCompleted, LoopIterationCompleted, LoopIterationStarted
from engine.runner.feedback import next_input, note_for
from engine.runner.frame import GivenByNodes, LoopFrame
from engine.runner.level import Level
from engine.runner.records import IterationRecord, loop_output, record_json
from engine.runner.scheduler import DEAD, GraphRun
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


class LoopRun:
    """One attempt at a loop, from iteration 0."""

    def __init__(self, around: GraphRun, node: NodePlan, given: Value, path: str, account: Account) -> None:
        assert node.loop is not None
        self.plan: LoopPlan = node.loop
        self.config = self.plan.config
        self.around = around
        self.level = around.level
        self.node = node
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
        """Run iterations until something ends the loop."""
        try:
            if not self.node.enabled:
                return self._passed_through("disabled")
            if not self._condition_holds():
                return self._passed_through("condition")
            reason = await self._iterate()
            return self._finish(reason)
        except BudgetError:
            if not self.ended or self.config.on_budget == "fail":
                self._tell_completed(BUDGET, None)
                raise
            return self._returned(BUDGET, self._best() if self.config.on_budget == "return_best" else self.ended[-1])
        except asyncio.CancelledError:
            self._tell_completed(self._why_cancelled(), None)
            raise
        except EngineError:
            self._tell_completed("error", None)
            raise

    async def _iterate(self) -> str:
        body_input = self.original
        while True:
            index = len(self.ended)
            if index and self.config.delay_s:
                await asyncio.sleep(self.config.delay_s)
            ended = await self._iteration(index, body_input)
            reason = self._reason(ended)
            if reason is not None:
                return reason
            self.feedbacks.append(ended.record.feedback)
            body_input = next_input(self.config, self.original, body_input, self.feedbacks)

    async def _iteration(self, index: int, body_input: Value) -> _Ended:
        """One pass through the body, told and recorded."""
        plan, emit = self.plan, self.level.core.bus.emit
        preview = to_text(body_input)[:PREVIEW_LENGTH]
        emit(LoopIterationStarted, self.path, index, plan.max_iterations, preview)
        started = time.perf_counter()
        last = self.ended[-1] if self.ended else None
        previous = last.record.result if last is not None else None
        frame = LoopFrame(
            plan.body,
            index,
            plan.max_iterations,
            self.original,
            previous,
            last.given if last is not None else None,
            self.records,
            self.level.frame,
        )
        account = Account(self.path, self.account)
        note = note_for(index, plan.max_iterations, previous, body_input) if self.tells_iteration else ""
        inner = Level(self.level.core, account, f"{self.path}[{index}].", frame, note)
        run = GraphRun(plan.body, inner)
        assert plan.body.input_slot is not None
        run.values[plan.body.input_slot] = body_input
        for slot, value in self.constants:
            run.values[slot] = value
        await run.run()
        ended = self._taken_up(run, index, body_input, started)
        emit(LoopIterationCompleted, self.path, *ended.record.fields())
        self.ended.append(ended)
        self.records.append(record_json(ended.record))
        return ended

    def _taken_up(self, run: GraphRun, index: int, body_input: Value, started: float) -> _Ended:
        """What an iteration came to: result, feedback, verdict, similarity, score."""
        plan, account = self.plan, run.level.account
        verdict = self._verdict(run)
        reached = run.collect(plan.body.result)
        result: Value = None
        if reached is not DEAD:
            result = reached  # pyright: ignore[reportAssignmentType] - a slot holds DEAD or a Value
        elif self.config.exit_condition == "evaluator" and verdict is not None:
            result = verdict["value"]
        warnings: list[str] = []
        record = IterationRecord(
            index=index,
            input=body_input,
            result=result,
            feedback=self._feedback(run, verdict, result, warnings),
            branch=_text_or_none(verdict, "selected_branch"),
            reason=_text_or_none(verdict, "reason"),
            score=None,
            similarity=self._similarity(result, has_result=reached is not DEAD),
            usage=account.usage,
            cost_usd=account.cost_usd,
            duration_s=time.perf_counter() - started,
            warnings=tuple(warnings),
        )
        frame = run.level.frame
        assert frame is not None
        ended = _Ended(record, run.given, frame, reached is not DEAD)
        if self.score is not None:
            record.score = self._scored(ended)
        return ended

    def _verdict(self, run: GraphRun) -> dict[str, Value] | None:
        """What the controlling router decided; None without one, or where it was skipped."""
        if self.plan.evaluator is None:
            return None
        outputs = run.given[self.plan.evaluator]
        if outputs is None:
            return None
        recorded = self.plan.body.nodes[self.plan.evaluator].spec.recorded(outputs)
        return recorded if isinstance(recorded, dict) else None

    def _feedback(self, run: GraphRun, verdict: dict[str, Value] | None, result: Value, warnings: list[str]) -> Value:
        """What the next iteration starts from: the exit's feedback, a branch's loose end, the router's value, the result."""
        reached = run.collect(self.plan.body.feedback)
        if reached is not DEAD:
            return reached  # pyright: ignore[reportReturnType] - a slot holds DEAD or a Value
        live = [position for position in self.plan.feedback_ends if run.given[position] is not None]
        if live:
            nodes = self.plan.body.nodes
            if len(live) > 1:
                names = ", ".join(nodes[position].id for position in live)
                warnings.append(f"Several branches ended in nodes that lead nowhere ({names}); the first was fed back.")
            outputs = run.given[live[0]]
            assert outputs is not None
            return nodes[live[0]].spec.recorded(outputs)
        if self.config.exit_condition == "evaluator" and verdict is not None:
            return verdict["value"]
        return result

    def _similarity(self, result: Value, *, has_result: bool) -> float | None:
        if not self.compares or not self.ended or not has_result or not self.ended[-1].has_result:
            return None
        return similarity(self.ended[-1].record.result, result)

    def _scope(self, ended: _Ended) -> Scope:
        return {
            "output": ended.record.result,
            "similarity": ended.record.similarity,
            "cost_usd": self.account.cost_usd,
            "elapsed_s": time.perf_counter() - self.started,
            "nodes": GivenByNodes(self.plan.body, ended.given),
            "loop": ended.frame,
        }

    def _scored(self, ended: _Ended) -> float:
        assert self.score is not None
        score = self.score.evaluate(self._scope(ended))
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            raise NodeError(f"The score {self.config.score!r} gave {score!r}, which is no number.", "Give a number.")
        return float(score)

    def _reason(self, ended: _Ended) -> str | None:
        record = ended.record
        scope: Scope = self._scope(ended) if self.config.until else {}
        seen = EndedIteration(record.index, record.result, record.branch, record.similarity, scope)
        return next((reason for there in self.conditions if (reason := there.reason(seen)) is not None), None)

    def _condition_holds(self) -> bool:
        if not self.config.condition.strip():
            return True
        scope: dict[str, Value | Namespace] = {"input": self.original}
        if self.level.frame is not None:
            scope["loop"] = self.level.frame
        verdict = compile_expression(self.config.condition).evaluate(scope)
        if not isinstance(verdict, bool):
            raise NodeError(
                f"The condition {self.config.condition!r} gave {verdict!r}, which is neither true nor false.",
                "Write a condition, such as size(input) > 0.",
            )
        return verdict

    def _passed_through(self, reason: str) -> Outputs:
        self._tell_completed(reason, None)
        return self._outputs(self.original, reason)

    def _finish(self, reason: str) -> Outputs:
        asked = self.config.exit_condition != "max_iterations" or self.config.until.strip() != ""
        action = self.config.on_max_iterations
        if reason == MAX_ITERATIONS and asked:
            message = f"It did not stop by itself within {len(self.ended)} iterations."
            if action == "fail":
                raise NodeError(message, "Raise 'At most', or ease the condition.")
            if action == "return_with_flag":
                self.warnings.append(message)
                self.level.core.warnings.append(f"{self.path}: {message}")
        best = reason == MAX_ITERATIONS and action == "return_best"
        return self._returned(reason, self._best() if best else self.ended[-1])

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
        cost = self.account.cost_usd
        warnings = tuple(self.warnings)
        fields = (len(self.ended), reason, converged, returned, cost, duration, warnings)
        self.level.core.bus.emit(LoopCompleted, self.path, *fields)

    def _why_cancelled(self) -> str:
        limit = self.config.timeout_s
        return "timeout" if limit is not None and time.perf_counter() - self.started >= limit else "cancelled"


def _text_or_none(verdict: dict[str, Value] | None, key: str) -> str | None:
    value = verdict.get(key) if verdict is not None else None
    return value if isinstance(value, str) else None
