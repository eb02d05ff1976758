"""Running an iterator node and its aggregator: what its failure means, and what the aggregator gets."""

from __future__ import annotations

from typing import Any, cast

from engine.errors import EngineError
from engine.nodes.iterator import IteratorConfig
from engine.nodes.spec import Outputs
from engine.plan.execution_plan import NodePlan
from engine.runner.account import Account
from engine.runner.iterator_run import IteratorRun, outputs_of, passed_through
from engine.runner.node import outputs_on_error, run_leaf, skip
from engine.runner.repeated import run_told
from engine.runner.scheduler import GraphRun
from engine.values import Value


async def run_iterator(around: GraphRun, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run an iterator to its end and give its aggregator what its items came to.

    Returns:
        What the iterator gives after its last item, by port.

    Raises:
        NodeFailure: It failed, and its settings say that this ends what it is part of.
        BudgetError: The budget is spent.
    """
    level, path = around.level, around.level.prefix + node.id
    replay = level.core.replay
    known = replay.outputs(path) if replay is not None else None
    if replay is not None and known is not None:
        replay.charge(path, level.account)
        if level.exit is not None and replay.exited_loop(path):
            level.exit.is_wanted = True
        return _given(around, node, known)
    account = Account(path, level.account)
    exited = False

    async def attempt(number: int) -> Outputs:
        nonlocal exited
        run = IteratorRun(around, node, inputs, path, account)
        outputs = await run.run(number)
        exited = run.exit is not None and run.exit.is_wanted
        return outputs

    outputs = await run_told(
        level, node, inputs, account, attempt, lambda failure: _stand_in(node, failure), lambda: exited
    )
    if level.exit is not None and exited:
        level.exit.is_wanted = True
    return _given(around, node, outputs)


async def run_aggregator(run: GraphRun, node: NodePlan, iterator: NodePlan) -> Outputs | None:
    """Put together what the items of an iterator came to.

    Raises:
        NodeFailure: It failed, and its settings say that this ends what it is part of.
    """
    if node.position not in run.exit_values:
        return skip(run.level, node, "Its iterator gave no result.")
    config: IteratorConfig = iterator.config
    records = cast("list[dict[str, Any]]", run.exit_values[node.position])
    keeps_places = config.on_item_error == "collect"
    results: list[Value] = [record["result"] for record in records if keeps_places or record["branch"] is None]
    if not node.enabled:
        skip(run.level, node, "It is disabled.")
        return {"output": results}
    given = outputs_of(records)
    items: list[Value] = [record["input"] for record in records]
    return await run_leaf(run.level, node, {"items": items, "results": results, "failures": given["failures"]})


def _stand_in(node: NodePlan, failure: EngineError) -> Outputs | None:
    """What a failed iterator gives all the same; a stated list stands for its results, any other value for one."""
    outputs = outputs_on_error(node, failure)
    if outputs is None or "error" in outputs:
        return outputs
    value: Value = node.config.error_value
    return passed_through(value if isinstance(value, list) else [value])


def _given(around: GraphRun, node: NodePlan, outputs: Outputs) -> Outputs:
    """What the iterator gives, its aggregator's part handed to it."""
    if "iterations" in outputs:
        assert node.iterator is not None
        around.exit_values[node.iterator.aggregator] = outputs["iterations"]
    return outputs
