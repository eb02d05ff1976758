"""Running a loop node: what its failure means, and what its exit gets."""

from __future__ import annotations

from engine.errors import EngineError
from engine.nodes.spec import Outputs
from engine.plan.execution_plan import NodePlan
from engine.runner.account import Account
from engine.runner.loop_run import LoopRun
from engine.runner.node import outputs_on_error
from engine.runner.repeated import run_told
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
