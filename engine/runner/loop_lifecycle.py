"""What running a loop and running an iterator have in common: their attempts, their events, and what failure means."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from engine.errors import EngineError
from engine.events import NodeCompleted, NodeFailed, NodeStarted
from engine.nodes.spec import Outputs
from engine.plan.execution_plan import NodePlan
from engine.runner.budget import Account, BudgetError
from engine.runner.level import Level
from engine.runner.retry import NodeFailure, make_attempts
from engine.values import Value

ALL_ITEMS: Final = "all_items"
"""The exit reason of an iterator that has worked on all its items."""


async def run_told(
    level: Level,
    node: NodePlan,
    inputs: dict[str, Value],
    account: Account,
    attempt: Callable[[int], Awaitable[Outputs]],
    stand_in: Callable[[EngineError], Outputs | None],
    exits_loop: Callable[[], bool] = lambda: False,
) -> Outputs:
    """Attempt a loop or an iterator, and tell how it begins and ends.

    Args:
        level: Where it stands.
        node: It itself.
        inputs: What reached it, by port.
        account: What it spends.
        attempt: Makes one attempt; its number counts from 1.
        stand_in: What it gives all the same when it has failed; None where its failure ends what it is part of.
        exits_loop: Whether a node in it has ended the loop around it.

    Raises:
        NodeFailure: It failed, and nothing stands in.
        BudgetError: The budget is spent.
    """
    path, kind, replay = level.prefix + node.id, node.spec.type, level.core.replay
    if level.core.paused:
        await level.core.free_to_start()
    emit = level.core.bus.emit
    emit(NodeStarted, path, kind, inputs)
    started = time.perf_counter()
    error = ""
    attempts = 0
    made = replay.attempts(path).made if replay is not None else 0

    async def attempt_anew() -> Outputs:
        nonlocal attempts
        if attempts:
            level.core.take_back(f"{path}[")
        if replay is not None:
            if attempts:
                replay.take_back(path)
            replay.charge(path, account)
        attempts += 1
        return await attempt(made + attempts)

    try:
        # They keep their time limits themselves, since they have to tell that they ran out of time.
        outputs = await make_attempts(level, path, node.config, attempt_anew, None)
    except EngineError as failure:
        given = None if isinstance(failure, BudgetError) else stand_in(failure)
        if given is None:
            duration = time.perf_counter() - started
            emit(NodeFailed, path, kind, failure.message, failure.remedy, duration, account.usage, account.cost_usd)
            if isinstance(failure, (BudgetError, NodeFailure)):
                raise
            raise NodeFailure(path, node.title, failure) from failure
        outputs, error = given, str(failure)
    duration = time.perf_counter() - started
    used = account.usage if account.usage.total_tokens else None
    cost = account.cost_usd
    emit(NodeCompleted, path, kind, outputs, used, cost, duration, False, (), (), error, "", exits_loop())
    return outputs
