"""Running one node: its inputs made to fit, its attempts, its events, and what its failure means for the rest."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from engine.errors import EngineError
from engine.events import NodeCompleted, NodeFailed, NodeSkipped, NodeStarted
from engine.nodes.context import NodeContext
from engine.nodes.json_values import ConversionError, convert
from engine.nodes.spec import ModelCall, NodeError, Outputs
from engine.plan.execution_plan import NodePlan, SubflowPlan
from engine.runner.budget import Budget, BudgetError
from engine.runner.declared_inputs import read_parameters
from engine.runner.named_state import NAMED_PORT, StateView
from engine.runner.retry import NodeFailure, run_attempts
from engine.runner.run_scope import RunScope
from engine.runner.scheduler import GraphRun
from engine.values import Value

MOST_BEHIND: Final = 256
"""By how many events the journal may be behind before nodes wait for it."""


async def run_node(scope: RunScope, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run a node that is no loop.

    Returns:
        Its outputs by live port.

    Raises:
        NodeFailure: It failed, and its settings say that this ends what it is part of.
        BudgetError: A model call of it does not fit into the budget.
    """
    run_context = scope.run_context
    path, kind = scope.prefix + node.id, node.spec.type
    if run_context.replay is not None:
        run_context.replay.charge(path, scope.budget)
        known = run_context.replay.outputs(path)
        if known is not None:
            if scope.exit is not None and run_context.replay.exited_loop(path):
                scope.exit.is_wanted = True
            return _taken_up(scope, node, known, run_context.replay.calls_of(path))
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
            outputs = await _attempted(scope, node, context, state or run_context.state.at(path))
        except BudgetError as refused:
            refused.node = path
            _emit_failed(scope, node, context, refused, started)
            raise
        except EngineError as failure:
            outputs = outputs_on_error(node, failure)
            if outputs is None:
                _emit_failed(scope, node, context, failure, started)
                raise NodeFailure(path, node.title, failure) from failure
            error = str(failure)
        duration = time.perf_counter() - started
        cached = context.is_cached
        used = (context.usage, context.cost_usd, duration, cached, context.calls, context.warnings, error)
        key = node.output_key if NAMED_PORT in outputs else ""
        run_context.event_log.emit(NodeCompleted, path, kind, outputs, *used, key, context.exits_loop)
        if key:
            run_context.state.set(path, key, outputs)
        if run_context.event_log.unstored > MOST_BEHIND:
            await run_context.event_log.flush()
        return _taken_up(scope, node, outputs, context.calls)
    finally:
        run_context.concurrency.release()


def _taken_up(scope: RunScope, node: NodePlan, outputs: Outputs, calls: Sequence[ModelCall]) -> Outputs:
    """What the node gave, noted where it is a result of the workflow or is to be remembered."""
    if scope.memory is not None:
        scope.memory.note(node.id, calls, node.spec.recorded(outputs))
    if node.result_name is not None:
        scope.outputs[node.result_name] = outputs["value"]
    return outputs


def _attempted(scope: RunScope, node: NodePlan, context: NodeContext[Any], state: StateView) -> Awaitable[Outputs]:
    """The node's attempts, once its inputs and names are in place."""
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
    assert run is not None, "loops and exits are run by the engine itself"
    goes_on, timeout_s = node.spec.keeps_retry_state, node.config.timeout_s
    attempt = partial(_going_on, run, context, scope) if goes_on else partial(_from_the_start, run, context)
    return run_attempts(scope, context.path, node.config, attempt, timeout_s, goes_on=goes_on, context=context)


def _from_the_start(run: Callable[[Any], Awaitable[Outputs]], context: NodeContext[Any]) -> Awaitable[Outputs]:
    context.restart_attempt()
    return run(context)


async def _going_on(run: Callable[[Any], Awaitable[Outputs]], context: NodeContext[Any], scope: RunScope) -> Outputs:
    """Attempt a node that goes on; a failure that was counted before a resume is not counted again."""
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
    """The inputs, each made to fit its port.

    Raises:
        NodeError: One does not.
    """
    fitting = dict(inputs)
    for port in node.inputs:
        if port.convert is not None and port.name in fitting:
            try:
                fitting[port.name] = convert(fitting[port.name], port.convert)
            except ConversionError as error:
                raise NodeError(
                    f'What reached the port "{port.name}" does not fit. {error.message}', error.remedy
                ) from error
    return fitting


def outputs_on_error(node: NodePlan, failure: EngineError) -> Outputs | None:
    """What a node that failed gives all the same; None where its failure ends what it is part of."""
    if node.config.on_error == "branch":
        return {"error": str(failure)}
    if node.config.on_error == "continue":
        ports = node.spec.outputs(node.config)
        return {ports[0].name if ports else "value": node.config.error_value}
    return None


def _emit_failed(
    scope: RunScope, node: NodePlan, context: NodeContext[Any], error: EngineError, started: float
) -> None:
    scope.run_context.event_log.emit(
        NodeFailed,
        context.path,
        node.spec.type,
        error.message,
        error.remedy,
        time.perf_counter() - started,
        context.usage,
        context.cost_usd,
        context.calls,
        context.warnings,
    )


def skip_node(scope: RunScope, node: NodePlan, reason: str) -> None:
    """Tell that a node does not run; it gives nothing."""
    path, replay = scope.prefix + node.id, scope.run_context.replay
    if replay is None or not replay.has_finished(path):
        scope.run_context.event_log.emit(NodeSkipped, path, node.spec.type, reason)


def bypass_node(scope: RunScope, node: NodePlan, inputs: dict[str, Value]) -> Outputs | None:
    """A disabled node: with one input and one output in use it passes the input on, otherwise it is skipped."""
    skip_node(scope, node, "It is disabled.")
    used = [port for port, _ in node.outputs]
    branches = {port.name for port in node.spec.all_outputs(node.config) if port.branch}
    if len(inputs) == len(node.inputs) == len(used) == 1 and used[0] not in branches:
        return {used[0]: next(iter(inputs.values()))}
    return None


ALL_ITEMS: Final = "all_items"
"""The exit reason of an iterator that has worked on all its items."""


async def run_container(
    scope: RunScope,
    node: NodePlan,
    inputs: dict[str, Value],
    budget: Budget,
    attempt: Callable[[int], Awaitable[Outputs]],
    stand_in: Callable[[EngineError], Outputs | None],
    exits_loop: Callable[[], bool] = lambda: False,
) -> Outputs:
    """Attempt a loop or an iterator, and tell how it begins and ends.

    Args:
        scope: Where it stands.
        node: It itself.
        inputs: What reached it, by port.
        budget: What it spends.
        attempt: Makes one attempt; its number counts from 1.
        stand_in: What it gives all the same when it has failed; None where its failure ends what it is part of.
        exits_loop: Whether a node in it has ended the loop around it.

    Raises:
        NodeFailure: It failed, and nothing stands in.
        BudgetError: The budget is spent.
    """
    path, kind, replay = scope.prefix + node.id, node.spec.type, scope.run_context.replay
    if scope.run_context.paused:
        await scope.run_context.wait_while_paused()
    emit = scope.run_context.event_log.emit
    emit(NodeStarted, path, kind, inputs)
    started = time.perf_counter()
    error = ""
    attempts = 0
    made = replay.attempts(path).made if replay is not None else 0

    async def attempt_anew() -> Outputs:
        nonlocal attempts
        if attempts:
            scope.run_context.discard_state(f"{path}[")
        if replay is not None:
            if attempts:
                replay.discard_loop(path)
            replay.charge(path, budget)
        attempts += 1
        return await attempt(made + attempts)

    try:
        # They keep their time limits themselves, since they have to tell that they ran out of time.
        outputs = await run_attempts(scope, path, node.config, attempt_anew, None)
    except EngineError as failure:
        given = None if isinstance(failure, BudgetError) else stand_in(failure)
        if given is None:
            duration = time.perf_counter() - started
            emit(NodeFailed, path, kind, failure.message, failure.remedy, duration, budget.usage, budget.cost_usd)
            if isinstance(failure, (BudgetError, NodeFailure)):
                raise
            raise NodeFailure(path, node.title, failure) from failure
        outputs, error = given, str(failure)
    duration = time.perf_counter() - started
    used = budget.usage if budget.usage.total_tokens else None
    cost = budget.cost_usd
    emit(NodeCompleted, path, kind, outputs, used, cost, duration, False, (), (), error, "", exits_loop())
    return outputs


async def run_subflow(scope: RunScope, node: NodePlan, part: SubflowPlan, inputs: dict[str, Value]) -> Outputs:
    """Run the workflow in a subflow to its end.

    Returns:
        Its named results, by port.

    Raises:
        NodeFailure: A node in it failed, and the settings say that this ends what the subflow is part of.
        BudgetError: The budget is spent.
    """
    run_context, path, kind = scope.run_context, scope.prefix + node.id, node.spec.type
    replay = run_context.replay
    if replay is not None:
        known = replay.outputs(path)
        if known is not None and replay.failed_softly(path):
            replay.discard_subflow(path)
        replay.charge(path, scope.budget)
        if known is not None:
            if not replay.failed_softly(path):  # for what its nodes cost, and what they warned of
                await _pass(scope, path, part, convert_inputs(node, inputs))
            return known
    if run_context.paused:
        await run_context.wait_while_paused()
    run_context.event_log.emit(NodeStarted, path, kind, inputs)
    started = time.perf_counter()
    error, attempts = "", 0

    async def attempt() -> Outputs:
        nonlocal attempts
        if attempts:
            run_context.discard_state(f"{path}.")
            if replay is not None:
                replay.discard_subflow(path)
                replay.charge(path, scope.budget)
        attempts += 1
        return await _pass(scope, path, part, convert_inputs(node, inputs))

    try:
        outputs = await run_attempts(scope, path, node.config, attempt, node.config.timeout_s)
    except EngineError as failure:
        outputs = None if isinstance(failure, BudgetError) else outputs_on_error(node, failure)
        if outputs is None:
            duration = time.perf_counter() - started
            run_context.event_log.emit(NodeFailed, path, kind, failure.message, failure.remedy, duration)
            if isinstance(failure, (BudgetError, NodeFailure)):
                raise
            raise NodeFailure(path, node.title, failure) from failure
        error = str(failure)
    duration = time.perf_counter() - started
    run_context.event_log.emit(NodeCompleted, path, kind, outputs, None, 0.0, duration, False, (), (), error)
    return outputs


async def _pass(scope: RunScope, path: str, part: SubflowPlan, inputs: dict[str, Value]) -> Outputs:
    """Run the workflow once."""
    given = {name: value for name, value in inputs.items() if name in part.parameters}  # others are switched off
    inner = RunScope(
        scope.run_context,
        scope.budget,
        f"{path}.",
        parameters=read_parameters(part.parameters, given),
        outputs={},
    )
    await GraphRun(part.body, inner).run()
    return inner.outputs
