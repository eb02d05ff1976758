"""Running one node: its inputs made to fit, its attempts, its events, and what its failure means for the rest."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from engine.errors import EngineError
from engine.events import NodeCompleted, NodeFailed, NodeSkipped, NodeStarted
from engine.nodes.context import NodeContext
from engine.nodes.convert import ConversionError, convert
from engine.nodes.spec import ModelCall, NodeError, Outputs
from engine.plan.execution_plan import NodePlan, SubflowPlan
from engine.runner.budget import Account, BudgetError
from engine.runner.declared_inputs import read_parameters
from engine.runner.level import Level
from engine.runner.named_state import NAMED_PORT, StateView
from engine.runner.retry import NodeFailure, make_attempts
from engine.runner.scheduler import GraphRun
from engine.values import Value

MOST_BEHIND: Final = 256
"""By how many events the journal may be behind before nodes wait for it."""


async def run_leaf(level: Level, node: NodePlan, inputs: dict[str, Value]) -> Outputs:
    """Run a node that is no loop.

    Returns:
        Its outputs by live port.

    Raises:
        NodeFailure: It failed, and its settings say that this ends what it is part of.
        BudgetError: A model call of it does not fit into the budget.
    """
    core = level.core
    path, kind = level.prefix + node.id, node.spec.type
    if core.replay is not None:
        core.replay.charge(path, level.account)
        known = core.replay.outputs(path)
        if known is not None:
            if level.exit is not None and core.replay.exited_loop(path):
                level.exit.is_wanted = True
            return _taken_up(level, node, known, core.replay.calls_of(path))
    if not core.slots.take_now():
        await core.slots.wait()
    try:
        if core.paused:
            await core.free_to_start()
        context = NodeContext(path, node.config, node.prepared, inputs, inputs, level, kind)
        state = core.replay.state_at_start(path) if core.replay is not None else None
        core.bus.emit(NodeStarted, path, kind, inputs)
        started = time.perf_counter()
        error = ""
        try:
            outputs = await _attempted(level, node, context, state or core.state.at(path))
        except BudgetError as refused:
            refused.node = path
            _tell_failed(level, node, context, refused, started)
            raise
        except EngineError as failure:
            outputs = outputs_on_error(node, failure)
            if outputs is None:
                _tell_failed(level, node, context, failure, started)
                raise NodeFailure(path, node.title, failure) from failure
            error = str(failure)
        duration = time.perf_counter() - started
        cached = context.is_recalled
        used = (context.usage, context.cost_usd, duration, cached, context.calls, context.warnings, error)
        key = node.output_key if NAMED_PORT in outputs else ""
        core.bus.emit(NodeCompleted, path, kind, outputs, *used, key, context.exits_loop)
        if key:
            core.state.set(path, key, outputs)
        if core.bus.behind > MOST_BEHIND:
            await core.bus.flush()
        return _taken_up(level, node, outputs, context.calls)
    finally:
        core.slots.give_back()


def _taken_up(level: Level, node: NodePlan, outputs: Outputs, calls: Sequence[ModelCall]) -> Outputs:
    """What the node gave, noted where it is a result of the workflow or is to be remembered."""
    if level.memory is not None:
        level.memory.note(node.id, calls, node.spec.recorded(outputs))
    if node.result_name is not None:
        level.outputs[node.result_name] = outputs["value"]
    return outputs


def _attempted(level: Level, node: NodePlan, context: NodeContext[Any], state: StateView) -> Awaitable[Outputs]:
    """The node's attempts, once its inputs and names are in place."""
    inputs = context.inputs
    if node.converts:
        inputs = context.inputs = converted(node, inputs)
    if node.blank is not None:
        context.scope = level.scope(node.blank, state, inputs)
    if level.memory is not None:
        context.memory = level.memory.of(node.id)
    if node.tells_iteration:
        context.iteration_note = level.note
    run = node.spec.run
    assert run is not None, "loops and exits are run by the engine itself"
    attempt = partial(_going_on, run, context, level) if node.spec.goes_on else partial(_from_the_start, run, context)
    goes_on, timeout_s = node.spec.goes_on, node.config.timeout_s
    return make_attempts(level, context.path, node.config, attempt, timeout_s, goes_on=goes_on, context=context)


def _from_the_start(run: Callable[[Any], Awaitable[Outputs]], context: NodeContext[Any]) -> Awaitable[Outputs]:
    context.begin_anew()
    return run(context)


async def _going_on(run: Callable[[Any], Awaitable[Outputs]], context: NodeContext[Any], level: Level) -> Outputs:
    """Attempt a node that goes on; a failure that was counted before a resume is not counted again."""
    while True:
        try:
            return await run(context)
        except EngineError:
            replay = level.core.replay
            if replay is None or not context.is_replaying:
                raise
            if not replay.had_failed_after(context.path, len(context.calls)):
                raise


def converted(node: NodePlan, inputs: Mapping[str, Value]) -> dict[str, Value]:
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


def _tell_failed(level: Level, node: NodePlan, context: NodeContext[Any], error: EngineError, started: float) -> None:
    level.core.bus.emit(
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


def skip(level: Level, node: NodePlan, reason: str) -> None:
    """Tell that a node does not run; it gives nothing."""
    path, replay = level.prefix + node.id, level.core.replay
    if replay is None or not replay.has_finished(path):
        level.core.bus.emit(NodeSkipped, path, node.spec.type, reason)


def bypass(level: Level, node: NodePlan, inputs: dict[str, Value]) -> Outputs | None:
    """A disabled node: with one input and one output in use it passes the input on, otherwise it is skipped."""
    skip(level, node, "It is disabled.")
    used = [port for port, _ in node.outputs]
    branches = {port.name for port in node.spec.all_outputs(node.config) if port.branch}
    if len(inputs) == len(node.inputs) == len(used) == 1 and used[0] not in branches:
        return {used[0]: next(iter(inputs.values()))}
    return None


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
