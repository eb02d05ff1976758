"""What the nodes of one level of a run share: where they are, what they may spend, what the run offers them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import ValidationError

from engine.models.base import Model, Price, Reply, Request, Usage
from engine.nodes.iteration_note import IterationNote
from engine.nodes.spec import ModelCall, ModelChoice, NodeContext, Outputs
from engine.plan.config_words import config_faults
from engine.plan.graph import NodePlan
from engine.runner.account import Account, estimate, reply_tokens
from engine.runner.bus import EventBus
from engine.runner.events import BudgetWarning, NodeStreaming, RunPaused, RunResumed
from engine.runner.frame import LoopFrame
from engine.tools.base import ToolContext, ToolError
from engine.tools.registry import find_tool
from engine.values import Value


class BoundModel:
    """A model of this run with its price: the one that the user states, else its own.

    Attributes:
        model: The model.
        known_price: Its price, once it was asked for; None where nobody knows.
        is_asked: Whether it was.
    """

    __slots__ = ("is_asked", "known_price", "model")

    def __init__(self, model: Model, stated: Price | None) -> None:
        self.model = model
        self.known_price = stated
        self.is_asked = stated is not None

    async def price(self) -> Price | None:
        """What it costs; None where nobody knows. Asked for once."""
        if not self.is_asked:
            self.known_price = await self.model.price()
            self.is_asked = True
        return self.known_price


class Slots:
    """How many nodes may be at work at once; first come, first served."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_now(self) -> bool:
        """Take a place if one is free."""
        if self._free > 0:
            self._free -= 1
            return True
        return False

    async def wait(self) -> None:
        """Wait for a place and take it."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Give a place to whoever has waited longest, else make it free."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return
        self._free += 1


@dataclass(slots=True)
class Core:
    """What all levels of one run share.

    Attributes:
        bus: Where events go.
        models: The run's models.
        parameters: The values of the workflow's inputs, by name.
        tools: What tools may do.
        slots: The places for nodes at work.
        outputs: Named results so far.
        warnings: What a person should know at the end although the run went on.
        execute: Runs one node of a graph; handed in, because running a loop means running graphs again.
        paused: Whether no further node is to start.
        stop_before_iteration: Whether the run pauses by itself before the next iteration of any loop.
        waiting: What is to be started next while the run is paused, in order.
        steps: How many may start although the run is paused, as soon as they come to it.
    """

    bus: EventBus
    models: Mapping[ModelChoice, BoundModel]
    parameters: Mapping[str, Value]
    tools: ToolContext
    slots: Slots
    execute: Callable[[Any, NodePlan], Awaitable[Outputs | None]]
    outputs: dict[str, Value] = field(default_factory=dict[str, Value])
    warnings: list[str] = field(default_factory=list[str])
    paused: bool = False
    stop_before_iteration: bool = False
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque[asyncio.Future[None]])
    steps: int = 0

    def pause(self) -> None:
        """Start no more nodes."""
        if not self.paused:
            self.paused = True
            self.bus.emit(RunPaused, "")

    def resume(self) -> None:
        """Start nodes again."""
        if not self.paused:
            return
        self.paused = False
        self.steps = 0
        while self.waiting:
            self._let_start(self.waiting.popleft())
        self.bus.emit(RunResumed, "")

    def let_one_start(self) -> None:
        """Let what has waited longest, or else comes next, begin, although the run is paused."""
        while self.waiting:
            if self._let_start(self.waiting.popleft()):
                return
        if self.paused:
            self.steps += 1

    async def free_to_start(self) -> None:
        """Wait while the run is paused, for a resume or for being let through."""
        if self.steps:
            self.steps -= 1
        elif self.paused:
            turn = asyncio.get_running_loop().create_future()
            self.waiting.append(turn)
            await turn

    def _let_start(self, turn: asyncio.Future[None]) -> bool:
        if turn.done():
            return False
        turn.set_result(None)
        return True


class Level:
    """The whole workflow, or one iteration of a loop. It is what nodes know as their `Services`.

    Attributes:
        core: What all levels share.
        account: What this level spends.
        prefix: What stands before a node's id in its path: `loop[2].`.
        frame: The iteration; None outside loops.
        note: What the first model node is told about the iteration; None where it is told nothing.
    """

    __slots__ = ("account", "core", "frame", "note", "prefix")

    def __init__(
        self,
        core: Core,
        account: Account,
        prefix: str = "",
        frame: LoopFrame | None = None,
        note: IterationNote | None = None,
    ) -> None:
        self.core = core
        self.account = account
        self.prefix = prefix
        self.frame = frame
        self.note = note

    def parameter(self, name: str) -> Value:
        """The value given to the run for that input."""
        return self.core.parameters[name]

    def complete(self, context: NodeContext[Any], choice: ModelChoice, request: Request) -> Awaitable[Reply]:
        """Make one model call, within the budget of every level.

        Raises:
            ModelError: It gave no usable reply.
            BudgetError: It does not fit; no call was made.
        """
        bound = self.core.models[choice]
        if self.account.limited or not bound.is_asked:
            return self._reckoned(context, bound, request)
        return self._call(context, bound.model, bound.known_price, request)

    async def _reckoned(self, context: NodeContext[Any], bound: BoundModel, request: Request) -> Reply:
        """Make a call that must fit into a budget, or whose price must first be asked for."""
        price = await bound.price()
        if not self.account.limited:
            return await self._call(context, bound.model, price, request)
        needed = estimate(request, price)
        await self.account.reserve(needed)
        try:
            return await self._call(context, bound.model, price, request)
        finally:
            self.account.release(needed)
            for account, unit, spent, limit in self.account.nearly_spent():
                self.core.bus.emit(BudgetWarning, account.path, unit, spent, limit)

    async def _call(self, context: NodeContext[Any], model: Model, price: Price | None, request: Request) -> Reply:
        started = time.perf_counter()
        received: list[str] = []
        try:
            reply = await model.complete(request, partial(self._stream, context.path, received))
        except BaseException:
            if received:
                # What a provider had sent before the call broke off was most likely billed.
                tokens_in = estimate(request, None).tokens - reply_tokens(request)
                self._charge(context, Usage(tokens_in, len(received), exact=False), price, None)
            raise
        cost = self._charge(context, reply.usage, price, reply.cost_usd)
        duration = time.perf_counter() - started
        context.calls = (*context.calls, ModelCall(model.name, request, reply, cost, duration))
        return reply

    def _charge(
        self, context: NodeContext[Any], usage: Usage, price: Price | None, stated: float | None
    ) -> float | None:
        cost = stated if stated is not None else price.cost_usd(usage) if price is not None else None
        context.usage = usage if context.usage is None else context.usage + usage
        context.cost_usd = None if cost is None or context.cost_usd is None else context.cost_usd + cost
        self.account.charge(usage, cost)
        return cost

    def _stream(self, path: str, received: list[str], text: str) -> None:
        received.append(text)
        self.core.bus.emit(NodeStreaming, path, text, len(received))

    async def call_tool(self, name: str, arguments: Mapping[str, Value]) -> Value:
        """Call a tool by name.

        Raises:
            ToolError: There is no such tool, the arguments do not fit, or it failed.
        """
        tool = find_tool(name)
        try:
            parameters = tool.parameters.model_validate(arguments)
        except ValidationError as error:
            faults = "; ".join(message.rstrip(".") for _, message, _ in config_faults(tool.parameters, error))
            raise ToolError(
                f'The tool "{name}" cannot be called: {faults}.', f"See `loopwright nodes tool` for what {name} takes."
            ) from error
        return await tool.run(parameters, self.core.tools)
