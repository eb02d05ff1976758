"""Which way a node is run, once it is ready."""

from __future__ import annotations

from engine.nodes.spec import Outputs
from engine.plan.execution_plan import NodePlan
from engine.runner.iterator import run_aggregator, run_iterator
from engine.runner.loop import run_loop
from engine.runner.node import bypass, run_leaf, skip
from engine.runner.scheduler import DEAD, GraphRun
from engine.runner.subflow import run_subflow
from engine.values import Value


async def execute(run: GraphRun, node: NodePlan) -> Outputs | None:
    """Run a node, or skip it.

    Returns:
        Its outputs by live port; None where it was skipped.

    Raises:
        NodeFailure: It failed, and that ends what it is part of.
        BudgetError: The budget is spent.
    """
    if node.exit_of is not None:
        return await _leave(run, node, run.plan.nodes[node.exit_of])
    inputs = _inputs(run, node)
    if inputs is None:
        return skip(run.level, node, "Nothing live reached it.")
    if node.is_repeated:
        return await (run_loop if node.loop is not None else run_iterator)(run, node, inputs)
    if not node.enabled:
        return bypass(run.level, node, inputs)
    if node.subflow is not None:
        return await run_subflow(run.level, node, node.subflow, inputs)
    return await run_leaf(run.level, node, inputs)


async def _leave(run: GraphRun, node: NodePlan, start: NodePlan) -> Outputs | None:
    """An exit's turn comes after its loop; it has the loop's result, or none where the loop gave none."""
    if start.iterator is not None:
        return await run_aggregator(run, node, start)
    if node.position not in run.exit_values:
        return skip(run.level, node, "Its loop gave no result.")
    return {"output": run.exit_values[node.position]}


def _inputs(run: GraphRun, node: NodePlan) -> dict[str, Value] | None:
    """The node's inputs by port; None where it is to be skipped."""
    inputs: dict[str, Value] = {}
    for port in node.inputs:
        value = run.collect(port)
        if value is DEAD:
            if port.required:
                return None
            continue
        inputs[port.name] = value  # pyright: ignore[reportArgumentType] - a slot holds DEAD or a Value
    return inputs if inputs or not node.inputs else None
