"""Running a subflow: the workflow in it, on a level of its own, within the run that it is part of.

It shares the run's budget, its places for nodes at work and its state. Its nodes are told under its path
(`part.draft`), and it tells no cost of its own: what was spent was spent by the nodes in it.
"""

from __future__ import annotations

import time

from engine.errors import EngineError
from engine.events import NodeCompleted, NodeFailed, NodeStarted
from engine.nodes.spec import Outputs
from engine.plan.execution_plan import NodePlan, SubflowPlan
from engine.runner.budget import BudgetError
from engine.runner.declared_inputs import read_parameters
from engine.runner.level import Level
from engine.runner.node import converted, outputs_on_error
from engine.runner.retry import NodeFailure, make_attempts
from engine.runner.scheduler import GraphRun
from engine.values import Value


async def run_subflow(level: Level, node: NodePlan, part: SubflowPlan, inputs: dict[str, Value]) -> Outputs:
    """Run the workflow in a subflow to its end.

    Returns:
        Its named results, by port.

    Raises:
        NodeFailure: A node in it failed, and the settings say that this ends what the subflow is part of.
        BudgetError: The budget is spent.
    """
    core, path, kind = level.core, level.prefix + node.id, node.spec.type
    replay = core.replay
    if replay is not None:
        known = replay.outputs(path)
        if known is not None and replay.had_error(path):
            replay.take_back_part(path)
        replay.charge(path, level.account)
        if known is not None:
            if not replay.had_error(path):  # for what its nodes cost, and what they warned of
                await _pass(level, path, part, converted(node, inputs))
            return known
    if core.paused:
        await core.free_to_start()
    core.bus.emit(NodeStarted, path, kind, inputs)
    started = time.perf_counter()
    error, attempts = "", 0

    async def attempt() -> Outputs:
        nonlocal attempts
        if attempts:
            core.take_back(f"{path}.")
            if replay is not None:
                replay.take_back_part(path)
                replay.charge(path, level.account)
        attempts += 1
        return await _pass(level, path, part, converted(node, inputs))

    try:
        outputs = await make_attempts(level, path, node.config, attempt, node.config.timeout_s)
    except EngineError as failure:
        outputs = None if isinstance(failure, BudgetError) else outputs_on_error(node, failure)
        if outputs is None:
            duration = time.perf_counter() - started
            core.bus.emit(NodeFailed, path, kind, failure.message, failure.remedy, duration)
            if isinstance(failure, (BudgetError, NodeFailure)):
                raise
            raise NodeFailure(path, node.title, failure) from failure
        error = str(failure)
    duration = time.perf_counter() - started
    core.bus.emit(NodeCompleted, path, kind, outputs, None, 0.0, duration, False, (), (), error)
    return outputs


async def _pass(level: Level, path: str, part: SubflowPlan, inputs: dict[str, Value]) -> Outputs:
    """Run the workflow once."""
    given = {name: value for name, value in inputs.items() if name in part.parameters}  # others are switched off
    inner = Level(
        level.core,
        level.account,
        f"{path}.",
        parameters=read_parameters(part.parameters, given),
        outputs={},
    )
    await GraphRun(part.body, inner).run()
    return inner.outputs
