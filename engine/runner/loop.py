"""Running a loop node: its attempts, its events, what its failure means, and what its exit gets."""

from __future__ import annotations

import time

from engine.errors import EngineError
from engine.nodes.loop_config import LoopConfig
from engine.nodes.spec import Outputs
from engine.plan.graph import NodePlan
from engine.runner.account import Account, BudgetError
from engine.runner.attempts import make_attempts
from engine.runner.events import NodeCompleted, NodeFailed, NodeStarted
from engine.runner.failure import NodeFailure
from engine.runner.loop_run import LoopRun, tell_flagged
from engine.runner.node import outputs_on_error
from engine.runner.scheduler import GraphRun
from engine.values import Value


async def run_loop(around: GraphRun, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run a loop to its end and give its exit what comes out.

    Returns:
        What the loop gives after its last iteration, by port.

    Raises:
        NodeFailure: It failed, and its settings say that this ends what it is part of.
        BudgetError: The budget is spent, and no whole iteration is there to return, or its settings say that it fails.
    """
    level, path, kind = around.level, around.level.prefix + node.id, node.spec.type
    replay = level.core.replay
    known = replay.outputs(path) if replay is not None else None
    if replay is not None and known is not None:
        replay.charge(path, level.account)
        for end in replay.loop_ends(path):
            config = _config_of(node, end.path[len(path) :])
            tell_flagged(level.core.warnings, end.path, config, end.exit_reason, end.iterations_run)
        return _given(around, node, known)
    if level.core.paused:
        await level.core.free_to_start()
    emit = level.core.bus.emit
    emit(NodeStarted, path, kind, inputs)
    started = time.perf_counter()
    account = Account(path, level.account, node.config.budget_usd)
    error = ""

    attempts = 0

    async def attempt() -> Outputs:
        nonlocal attempts
        if attempts:
            level.core.state.take_back(f"{path}[")
        if replay is not None:
            if attempts:
                replay.take_back(path)
            replay.charge(path, account)
        attempts += 1
        return await LoopRun(around, node, inputs["input"], path, account).run()

    try:
        # A loop keeps its time limit itself, since it has to tell that it ran out of time.
        outputs = await make_attempts(level, path, node.config, attempt, None)
    except EngineError as failure:
        outputs = None if isinstance(failure, BudgetError) else outputs_on_error(node, failure)
        if outputs is None:
            duration = time.perf_counter() - started
            emit(NodeFailed, path, kind, failure.message, failure.remedy, duration, account.usage, account.cost_usd)
            if isinstance(failure, (BudgetError, NodeFailure)):
                raise
            raise NodeFailure(path, node.title, failure) from failure
        if "body" in outputs:  # the value on error stands for the result, not for what an iteration starts from
            outputs = {"output": outputs["body"]}
        error = str(failure)
    duration = time.perf_counter() - started
    used = account.usage if account.usage.total_tokens else None
    emit(NodeCompleted, path, kind, outputs, used, account.cost_usd, duration, False, (), (), error)
    return _given(around, node, outputs)


def _config_of(loop: NodePlan, inside: str) -> LoopConfig:
    """The settings of a loop, or of one in it: `inside` is the rest of its path (`[2].inner`), empty for the loop."""
    for step in inside.split(".")[1:]:
        name = step.partition("[")[0]
        assert loop.loop is not None, "only loops have loops in them"
        loop = next(node for node in loop.loop.body.nodes if node.id == name)
    return loop.config


def _given(around: GraphRun, node: NodePlan, outputs: Outputs) -> Outputs:
    """What the loop gives, its exit's part handed to it."""
    if "output" in outputs:
        assert node.loop is not None
        around.exit_values[node.loop.exit] = outputs["output"]
    return outputs
