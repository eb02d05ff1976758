"""Execution of one node: input conversion, attempts, events, and the consequences of a failure.

Containers (loops, iterators and subflows) share their attempts and events in `run_container`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from engine.errors import EngineError
from engine.events import NodeCompleted, NodeFailed, NodeSkipped, NodeStarted
from engine.models.protocol import ModelCall
from engine.nodes.context import NodeContext
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.spec import NodeError, Outputs
from engine.plan.execution_plan import NodePlan
from engine.runner.budget import Budget, BudgetError
from engine.runner.declared_inputs import read_parameters
from engine.runner.named_state import NAMED_PORT, StateView
from engine.runner.retry import NodeFailure, run_attempts
from engine.runner.run_scope import RunScope
from engine.runner.scheduler import GraphRun
from engine.values import Value

MAX_UNSTORED_EVENTS: Final = 256
"""How many events may wait to be stored before nodes wait for the journal."""


async def run_node(scope: RunScope, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run a node that contains no others.

    Returns:
        Its outputs by live port.

    Raises:
        NodeFailure: It failed, and that ends whatever it is part of.
        BudgetError: A model call does not fit into the budget.
    """
    run_context = scope.run_context
    path, kind = scope.prefix + node.id, node.spec.type
    if run_context.replay is not None:
        run_context.replay.charge(path, scope.budget)
        known = run_context.replay.outputs(path)
        if known is not None:
            if scope.exit is not None and run_context.replay.exited_loop(path):
                scope.exit.is_requested = True
            return _record_outputs(scope, node, known, run_context.replay.calls_of(path))
    if not run_context.concurrency.try_acquire():
        await run_context.concurrency.acquire()
    try:
        if run_context.paused:
            await run_context.wait_while_paused()
        context = NodeContext(path, node.config, node.prepared, inputs, inputs, scope, kind)
        state = run_context.replay.state_at_start(path) if run_context.replay is not None else None
        run_context.event_log.emit(NodeStarted, path, kind, inputs)
        started = time.perf_counter()
        error = ""
        try:
            outputs = await _run_attempts(scope, node, context, state or run_context.state.at(path))
        except BudgetError as failure:
            failure.node = path
            _emit_failed(scope, node, context, failure, started)
            raise
        except EngineError as failure:
            outputs = outputs_on_error(node, failure)
            if outputs is None:
                _emit_failed(scope, node, context, failure, started)
                raise NodeFailure(path, node.title, failure) from failure
            error = str(failure)
        duration = time.perf_counter() - started
        key = node.output_key if NAMED_PORT in outputs else ""
        run_context.event_log.emit(
            NodeCompleted,
            path,
            kind,
            outputs,
            context.usage,
            context.cost_usd,
            duration,
            context.is_cached,
            context.calls,
            context.warnings,
            error,
            key,
            context.exits_loop,
        )
        if key:
            run_context.state.set(path, key, outputs)
        if run_context.event_log.unstored > MAX_UNSTORED_EVENTS:
            await run_context.event_log.flush()
        return _record_outputs(scope, node, outputs, context.calls)
    finally:
        run_context.concurrency.release()


def _record_outputs(scope: RunScope, node: NodePlan, outputs: Outputs, calls: Sequence[ModelCall]) -> Outputs:
    """Add the outputs of a node to the loop's memory and to the workflow's results."""
    if scope.memory is not None:
        scope.memory.add(node.id, calls, node.spec.recorded(outputs))
    if node.result_name is not None:
        scope.outputs[node.result_name] = outputs["value"]
    return outputs


def _run_attempts(scope: RunScope, node: NodePlan, context: NodeContext[Any], state: StateView) -> Awaitable[Outputs]:
    inputs = context.inputs
    if node.converts:
        inputs = context.inputs = convert_inputs(node, inputs)
    if node.blank is not None:
        context.scope = scope.variables(node.blank, state, inputs)
    if scope.memory is not None:
        context.memory = scope.memory.of(node.id)
    if node.tells_iteration:
        context.iteration_note = scope.note
    run = node.spec.run
    assert run is not None, "the engine runs loops and exits itself"
    goes_on, timeout_s = node.spec.keeps_retry_state, node.config.timeout_s
    attempt = partial(_resume_attempt, run, context, scope) if goes_on else partial(run, context)
    return run_attempts(scope, context.path, node.config, attempt, timeout_s, goes_on=goes_on, context=context)


async def _resume_attempt(
    run: Callable[[Any], Awaitable[Outputs]], context: NodeContext[Any], scope: RunScope
) -> Outputs:
    """Make an attempt that continues where the last one failed; failures before a resume are not counted again."""
    while True:
        try:
            return await run(context)
        except EngineError:
            replay = scope.run_context.replay
            if replay is None or not context.is_replaying:
                raise
            if not replay.take_failure_after(context.path, len(context.calls)):
                raise


def convert_inputs(node: NodePlan, inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Convert inputs to the types of their ports.

    Raises:
        NodeError: A value cannot be converted.
    """
    converted = dict(inputs)
    for port in node.inputs:
        if port.convert is not None and port.name in converted:
            try:
                converted[port.name] = convert(converted[port.name], port.convert)
            except ConversionError as error:
                raise NodeError(
                    f'The value at the port "{port.name}" does not fit. {error.message}', error.remedy
                ) from error
    return converted


def outputs_on_error(node: NodePlan, failure: EngineError) -> Outputs | None:
    """Return the outputs of a failed node, or None if its failure ends whatever it is part of."""
    if node.config.on_error == "branch":
        return {"error": str(failure)}
    if node.config.on_error == "continue":
        ports = node.spec.outputs(node.config)
        return {ports[0].name if ports else "value": node.config.error_value}
    return None


def _emit_failed(
    scope: RunScope, node: NodePlan, context: NodeContext[Any], error: EngineError, started: float
) -> None:
    emit, kind, duration = scope.run_context.event_log.emit, node.spec.type, time.perf_counter() - started
    figures = (context.usage, context.cost_usd, context.calls, context.warnings)
    emit(NodeFailed, context.path, kind, error.message, error.remedy, duration, *figures, error.fix)


async def use_pinned(scope: RunScope, node: NodePlan, pinned: Outputs, inputs: dict[str, Value]) -> Outputs:
    """Report the pinned outputs of a node instead of running it."""
    run_context, path, kind = scope.run_context, scope.prefix + node.id, node.spec.type
    known = run_context.replay.outputs(path) if run_context.replay is not None else None
    if known is None:
        if run_context.paused:
            await run_context.wait_while_paused()
        known, key = pinned, node.output_key if NAMED_PORT in pinned else ""
        run_context.event_log.emit(NodeStarted, path, kind, inputs)
        complete = partial(NodeCompleted, output_key=key, pinned=True)
        run_context.event_log.emit(complete, path, kind, pinned, None, 0.0, 0.0)
        if key:
            run_context.state.set(path, key, pinned)
    return _record_outputs(scope, node, known, ())


def skip_node(scope: RunScope, node: NodePlan, reason: str) -> None:
    """Report that a node does not run and has no outputs."""
    path, replay = scope.prefix + node.id, scope.run_context.replay
    if replay is None or not replay.has_finished(path):
        scope.run_context.event_log.emit(NodeSkipped, path, node.spec.type, reason)


async def bypass_node(scope: RunScope, node: NodePlan, inputs: dict[str, Value]) -> Outputs | None:
    """Pass the input of a disabled node on if it has one input and one connected output; otherwise skip it."""
    skip_node(scope, node, "It is disabled.")
    used = [port for port, _ in node.outputs]
    branches = {port.name for port in node.spec.all_outputs(node.config) if port.branch}
    if len(inputs) == len(node.inputs) == len(used) == 1 and used[0] not in branches:
        return {used[0]: next(iter(inputs.values()))}
    return None


async def run_container(
    scope: RunScope,
    node: NodePlan,
    inputs: dict[str, Value],
    attempt: Callable[[int], Awaitable[Outputs]],
    fallback_outputs: Callable[[EngineError], Outputs | None],
    *,
    budget: Budget | None = None,
    timeout_s: float | None = None,
    exits_loop: Callable[[], bool] = lambda: False,
) -> Outputs:
    """Run a loop, an iterator or a subflow with its retries, and report its start and its end.

    Args:
        scope: The scope around it.
        node: The loop, iterator or subflow.
        inputs: Its inputs by port.
        attempt: Makes one attempt; called with its number, from 1.
        fallback_outputs: Returns its outputs after a failure, or None if the failure ends whatever it is part of.
        budget: Its own budget, whose figures it reports; None if its nodes alone report their cost.
        timeout_s: Timeout of an attempt; None if the attempt has a timeout of its own.
        exits_loop: Returns whether a node in it ended the loop around it.

    Raises:
        NodeFailure: It failed, and has no fallback outputs.
        BudgetError: The budget is used up.
    """
    path, kind, run_context = scope.prefix + node.id, node.spec.type, scope.run_context
    replay, emit = run_context.replay, run_context.event_log.emit
    if run_context.paused:
        await run_context.wait_while_paused()
    emit(NodeStarted, path, kind, inputs)
    started = time.perf_counter()
    error = ""
    attempts = 0
    attempts_before = replay.attempts(path).made if replay is not None else 0

    async def next_attempt() -> Outputs:
        nonlocal attempts
        if attempts:
            run_context.state.discard(f"{path}[", f"{path}.")
        if replay is not None:
            if attempts:
                replay.discard_attempt(path)
            replay.charge(path, budget or scope.budget)
        attempts += 1
        return await attempt(attempts_before + attempts)

    try:
        outputs = await run_attempts(scope, path, node.config, next_attempt, timeout_s)
    except EngineError as failure:
        fallback = None if isinstance(failure, BudgetError) else fallback_outputs(failure)
        if fallback is None:
            usage, cost = (budget.usage, budget.cost_usd) if budget is not None else (None, 0.0)
            duration = time.perf_counter() - started
            emit(NodeFailed, path, kind, failure.message, failure.remedy, duration, usage, cost, (), (), failure.fix)
            if isinstance(failure, (BudgetError, NodeFailure)):
                raise
            raise NodeFailure(path, node.title, failure) from failure
        outputs, error = fallback, str(failure)
    duration = time.perf_counter() - started
    usage = budget.usage if budget is not None and budget.usage.total_tokens else None
    cost = budget.cost_usd if budget is not None else 0.0
    emit(NodeCompleted, path, kind, outputs, usage, cost, duration, False, (), (), error, "", exits_loop())
    return outputs


async def run_subflow(scope: RunScope, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run the workflow of a subflow in a scope of its own.

    It shares the budget, the concurrency limit and the state of the run. Its nodes report under its path
    (`part.draft`), and their cost is not reported again.

    Returns:
        Its named results, by port.

    Raises:
        NodeFailure: A node in it failed, and that ends whatever the subflow is part of.
        BudgetError: The budget is used up.
    """
    path, replay, subflow = scope.prefix + node.id, scope.run_context.replay, node.subflow
    assert subflow is not None

    async def attempt(_number: int = 1) -> Outputs:
        parameters = {name: value for name, value in convert_inputs(node, inputs).items() if name in subflow.parameters}
        inner = RunScope(
            scope.run_context,
            scope.budget,
            f"{path}.",
            parameters=read_parameters(subflow.parameters, parameters),
            outputs={},
        )
        await GraphRun(subflow.body, inner).run()
        return inner.outputs

    if replay is not None:
        known = replay.outputs(path)
        failed = replay.completed_with_error(path)
        if known is not None and failed:
            replay.discard_attempt(path)
        replay.charge(path, scope.budget)
        if known is not None:
            if not failed:  # its nodes charge their cost and restore their warnings
                await attempt()
            return known
    on_error = partial(outputs_on_error, node)
    return await run_container(scope, node, inputs, attempt, on_error, timeout_s=node.config.timeout_s)
