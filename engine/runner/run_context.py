"""What all levels of one run share: its models, its places for nodes at work, whether it is paused."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.events import RunPaused, RunResumed
from engine.models.protocol import Model, Price
from engine.nodes.context import Answer
from engine.nodes.spec import ModelChoice, Outputs
from engine.plan.execution_plan import GraphPlan, NodePlan
from engine.run_state.state import WarningLog
from engine.runner.event_log import EventLog
from engine.runner.human_input import Mailbox, Note
from engine.runner.named_state import State
from engine.runner.replay import Replay
from engine.runner.run_storage import RunCache
from engine.tools.tool import ToolContext
from engine.values import Value


class PricedModel:
    """A model of this run with its price: the one that the user states, else its own.

    Attributes:
        model: The model.
        known_price: Its price, once it was asked for; None where nobody knows.
        is_price_resolved: Whether it was.
    """

    __slots__ = ("is_price_resolved", "known_price", "model")

    def __init__(self, model: Model, stated: Price | None) -> None:
        self.model = model
        self.known_price = stated
        self.is_price_resolved = stated is not None

    async def price(self) -> Price | None:
        """What it costs; None where nobody knows. Asked for once."""
        if not self.is_price_resolved:
            self.known_price = await self.model.price()
            self.is_price_resolved = True
        return self.known_price


class ConcurrencyLimiter:
    """How many nodes may be at work at once (`limit`); first come, first served."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._free = limit
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Take a place if one is free."""
        if self._free > 0:
            self._free -= 1
            return True
        return False

    async def acquire(self) -> None:
        """Wait for a place and take it."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release()
            raise

    def force_acquire(self) -> None:
        """Take a place although none may be free: of a node that is being stopped, and will give it back."""
        self._free -= 1

    def release(self) -> None:
        """Give a place back, and if one is free then, hand it to whoever has waited longest."""
        self._free += 1
        while self._free > 0 and self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                self._free -= 1
                future.set_result(None)


@dataclass(slots=True)
class RunContext:
    """What all levels of one run share.

    Attributes:
        event_log: Where events go.
        graph: The whole workflow.
        models: The run's models.
        parameters: The values of the workflow's inputs, by name.
        tools: What tools may do.
        confirms_calls: Whether a person is asked before calls of tools that the document does not hold.
        confirmed: What they answered, by what they were asked about.
        concurrency: The places for nodes at work.
        outputs: Named results so far.
        warnings: The run's warnings so far.
        execute: Runs one node of a graph; handed in, because running a loop means running graphs again.
        is_stopping: Whether the run is being stopped: nothing starts any more, whatever a node makes of that.
        paused: Whether no further node is to start.
        pause_before_iteration: Whether the run pauses by itself before the next iteration of any loop.
        waiting: What is to be started next while the run is paused, in order; True lets it start all the same.
        steps: How many may start although the run is paused, as soon as they come to it.
        replay: What the run had told before it broke off, or its parent before the fork; None for a new run.
        cache: Where earlier replies are found; None where the run is not kept.
        mailbox: What waits for a person's answer.
        state: What nodes with an `output_key` gave last.
        notes: The notes that nobody has received yet.
        bound: The models that nodes have called, by the identity of the choice.
        model_warnings: The warnings of replies that the run has reported, each with the node that has it.
    """

    event_log: EventLog
    graph: GraphPlan
    models: Mapping[ModelChoice, PricedModel]
    parameters: Mapping[str, Value]
    tools: ToolContext
    concurrency: ConcurrencyLimiter
    execute: Callable[[Any, NodePlan], Awaitable[Outputs | None]]
    outputs: dict[str, Value] = field(default_factory=dict[str, Value])
    warnings: WarningLog = field(default_factory=WarningLog)
    is_stopping: bool = False
    paused: bool = False
    pause_before_iteration: bool = False
    waiting: deque[asyncio.Future[bool]] = field(default_factory=deque[asyncio.Future[bool]])
    steps: int = 0
    confirms_calls: bool = False
    confirmed: dict[str, Answer] = field(default_factory=dict[str, Answer])
    replay: Replay | None = None
    cache: RunCache | None = None
    mailbox: Mailbox = field(default_factory=Mailbox)
    state: State = field(default_factory=State)
    notes: list[Note] = field(default_factory=list[Note])
    model_warnings: dict[str, str] = field(default_factory=dict[str, str])
    bound: dict[int, tuple[ModelChoice, PricedModel]] = field(
        default_factory=dict[int, tuple[ModelChoice, PricedModel]]
    )

    def discard_state(self, inside: str) -> None:
        """Forget what nodes whose paths begin like this gave: what they lie in is attempted anew."""
        self.state.discard(inside)

    def pause(self) -> None:
        """Start no more nodes."""
        if not self.paused:
            self.paused = True
            self.event_log.emit(RunPaused, "")

    def resume(self) -> None:
        """Start nodes again."""
        if not self.paused:
            return
        self.paused = False
        self.steps = 0
        while self.waiting:
            self._wake(self.waiting.popleft(), is_step=False)
        self.event_log.emit(RunResumed, "")

    def start_one(self) -> None:
        """Let what has waited longest, or else comes next, begin, although the run is paused."""
        while self.waiting:
            if self._wake(self.waiting.popleft(), is_step=True):
                return
        if self.paused:
            self.steps += 1

    async def wait_while_paused(self) -> None:
        """Wait while the run is paused, for a resume or for being let through."""
        if self.steps:
            self.steps -= 1
            return
        while self.paused:
            is_step: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self.waiting.append(is_step)
            if await is_step:
                return

    def _wake(self, waiting: asyncio.Future[bool], *, is_step: bool) -> bool:
        """Wake who waits to start, for a step or to look again; false where nobody waits there any more."""
        if waiting.done():
            return False
        waiting.set_result(is_step)
        return True
