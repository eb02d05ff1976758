"""What one attempt at a loop has and knows while it goes: its settings, and the iterations that have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from engine.exits.similarity import similarity
from engine.exits.stop_decision import StopDecision
from engine.expr import Namespace, Record, Scope, compile_expression
from engine.nodes.loop_config import LoopConfig
from engine.nodes.spec import Outputs
from engine.plan.execution_plan import LoopPlan, NodePlan
from engine.runner.budget import Account
from engine.runner.iteration_record import IterationRecord, history_entry
from engine.runner.loop_scope import GivenByNodes, LoopFrame, LoopMemory
from engine.runner.scheduler import GraphRun
from engine.values import Value


@dataclass(slots=True)
class Ended:
    """An iteration that has ended, with what only the loop itself needs of it.

    Attributes:
        record: What is kept of it.
        given: What each node of the body gave.
        frame: The iteration as texts see it.
        has_result: Whether anything is its result.
        is_judged_done: What the judge said; None where none was asked.
    """

    record: IterationRecord
    given: list[Outputs | None]
    frame: LoopFrame
    has_result: bool
    is_judged_done: bool | None = None


class LoopState:
    """One attempt at a loop.

    Attributes:
        plan: The loop and its body.
        config: Its settings.
        level: The level around it.
        path: Its path.
        account: What it spends.
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

    def __init__(self, around: GraphRun, node: NodePlan, given: Value, path: str, account: Account) -> None:
        assert node.loop is not None
        self.plan: LoopPlan = node.loop
        self.config: LoopConfig = self.plan.config
        self.level = around.level
        self.path = path
        self.account = account
        self.original = given
        self.constants = [(slot, around.values[outer]) for outer, slot in self.plan.body.constants]
        self.decision = StopDecision(self.config.conditions, self.config.stop_mode, self.plan.max_iterations)
        self.score = compile_expression(self.config.score) if self.config.score.strip() else None
        self.tells_iteration = any(there.tells_iteration for there in self.plan.body.nodes)
        self.memory = self._memory()
        self.ended: list[Ended] = []
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

    def names(self, ended: Ended) -> dict[str, Value]:
        """What texts may name of the iteration just ended, beside what its nodes gave and the loop itself."""
        return {
            "output": ended.record.result,
            "similarity": ended.record.similarity,
            "cost_usd": self.account.cost_usd,
            "elapsed_s": self.elapsed_s,
        }

    def groups(self, ended: Ended) -> dict[str, Value | Namespace]:
        """The groups of values that texts about the iteration just ended may name."""
        nodes = GivenByNodes(self.plan.body, ended.given)
        state = self.level.core.state.at(f"{self.path}[{ended.record.index}]")
        own: dict[str, Value | Namespace] = {"nodes": nodes, "loop": ended.frame, "state": state}
        return {**(self.level.names or {}), **own}

    def scope(self, ended: Ended) -> Scope:
        """The names for `until` and `score`."""
        return {**self.names(ended), **self.groups(ended)}
