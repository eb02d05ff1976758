"""Resume stored runs, and fork them from any iteration or node."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from engine.document.files import dumps, loads
from engine.document.model import Settings, Workflow
from engine.document.operations import SetConfig
from engine.errors import EngineError, Fix
from engine.events import (
    AnyEvent,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeCompleted,
    Place,
    PlaceError,
    RunStarted,
    parse_place,
)
from engine.exits import MAX_ITERATIONS_CAP
from engine.models.protocol import EMBEDDED_MODEL, GGUF_PREFIX, Price, sum_costs
from engine.models.providers import runs_on_own_machine
from engine.nodes.node_names import node_name
from engine.nodes.node_registry import Registry
from engine.plan.compiler import compile_workflow
from engine.plan.execution_plan import GraphPlan, LoopPlan, Plan
from engine.plan.partial_run import part_of
from engine.run_state.reducer import reduce_events
from engine.run_state.state import Detail, LoopExecution
from engine.runner.declared_inputs import without_disabled
from engine.runner.fork import ForkPoint, events_before, fork_point, latest_executions, state_order, with_edited_output
from engine.runner.options import RunOptions, options_with_stored
from engine.runner.replay import CallLog, UnknownCall
from engine.runner.run import Run, RunOrigin, new_run_id, prepare, stored_options, stored_origin, strategies_of
from engine.runner.run_storage import RunHead
from engine.store.run_file import is_imported, mark_imported
from engine.store.store_protocol import RunStatus, RunSummary, Store, StoreError
from engine.values import Value

_MOST_LISTED: Final = 10
"""Maximum number of calls that an error lists."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Differences of a fork from its parent.

    Attributes:
        settings: Config fields and their values, by node id.
        value: With `has_value`, the input of the iteration or the output of the node.
        has_value: Whether `value` replaces the stored one.
        model: The model for every node.
        max_iterations: Maximum number of iterations of the innermost loop around the fork point.
        document: Another document.
    """

    settings: Mapping[str, Mapping[str, Value]] = field(default_factory=dict[str, Mapping[str, Value]])
    value: Value = None
    has_value: bool = False
    model: str | None = None
    max_iterations: int | None = None
    document: Workflow | None = None


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """A fork before it is started.

    Attributes:
        parent: The run to fork.
        at: The fork point.
        workflow: The document that it runs.
        changes: The differences from the parent.
        reused: Descriptions of what is reused.
        rerun: Descriptions of what runs again.
        max_reruns: Maximum number of iterations of the outermost loop around the fork point that run again.
        estimate_usd: Estimated cost, from the iterations of the parent; None if it is unknown.
        warnings: Warnings for the user.
        plan: The compiled document; None if `fork` must compile it.
    """

    parent: RunSummary
    at: str
    workflow: Workflow
    changes: Changes
    reused: tuple[str, ...] = ()
    rerun: tuple[str, ...] = ()
    max_reruns: int = 0
    estimate_usd: float | None = None
    warnings: tuple[str, ...] = ()
    plan: Plan | None = None


def unknown_calls(store: Store, run_id: str) -> tuple[UnknownCall, ...]:
    """Return the model and tool calls that were in flight when a run stopped, with unknown outcome."""
    return tuple(CallLog(store.events(run_id)).in_flight.values())


def resume(
    store: Store,
    run_id: str,
    options: RunOptions | None = None,
    *,
    retry_in_flight: bool = False,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> Run:
    """Resume a run that was interrupted, stopped, failed or ran out of budget, in the current event loop.

    The run keeps its id and events. Finished model calls are not made again.

    Args:
        store: The history.
        run_id: The run.
        options: Options that replace those of the run, such as a model or budget. Permissions always come from here.
        retry_in_flight: Whether calls that were in flight when it stopped may be made again.
        on_event: Called with every further event, in a separate thread.

    Raises:
        StoreError: There is no such run, it has completed, or another process owns it.
        EngineError: A call with unknown outcome would be made again, or the document is no longer valid.
    """
    run = store.find(run_id)
    if run.status is RunStatus.COMPLETED:
        raise _has_ended(store, run)
    journal = store.reopen(run.run_id)
    try:
        past = list(store.events(run.run_id))
        started = _started(past, run)
        if not retry_in_flight:
            refuse_unknown_calls(run, CallLog(past).in_flight.values())
        given = options_with_stored(replace(options or RunOptions(), store=store), store.options(run.run_id))
        workflow = loads(store.document(run.run_id), source=f"run {run.run_id}")
        plan = _compiled(workflow, started, given.registry, given.max_iterations_cap)
        ready = prepare(plan, without_disabled(workflow, started.inputs), given)
    except BaseException:
        journal.close()
        raise
    return Run(ready, RunOrigin(run.run_id, journal, past), on_event)


def resume_with(
    store: Store,
    run_id: str,
    document: Workflow,
    options: RunOptions | None = None,
    *,
    retry_in_flight: bool = False,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> Run:
    """Resume a run with another document: fork it and reuse everything that has completed.

    Raises what `fork` raises. Without `retry_in_flight`, calls in flight are refused as in `resume`.
    """
    run = store.find(run_id)
    if not retry_in_flight:
        refuse_unknown_calls(run, unknown_calls(store, run.run_id))
    return fork(store, ForkPlan(run, "", document, Changes(document=document)), options, on_event=on_event)


def plan_fork(
    store: Store,
    run_id: str,
    at: str,
    changes: Changes | None = None,
    registry: Registry | None = None,
    *,
    max_iterations_cap: int = MAX_ITERATIONS_CAP,
) -> ForkPlan:
    """Plan a fork without running anything: what it reuses, what runs again, and its estimated cost.

    Args:
        store: The history.
        run_id: The parent.
        at: The fork point, from which it runs again: `loop[2]`, `loop[2].critique`, `draft`.
        changes: Differences from the parent.
        registry: The node types; None for the built-in ones.
        max_iterations_cap: Maximum number of iterations of any loop, unless the parent had a higher cap.

    Raises:
        StoreError: There is no such run.
        PlaceError: The parent did not reach the fork point, or the loop would no longer reach it.
        EngineError: The document is not valid with these changes.
    """
    changes = changes or Changes()
    parent, place = store.find(run_id), parse_place(at)
    workflow = _changed(changes.document or loads(store.document(parent.run_id)), place, changes)
    cap = options_with_stored(
        RunOptions(max_iterations_cap=max_iterations_cap), store.options(parent.run_id)
    ).max_iterations_cap
    past = list(store.events(parent.run_id))
    plan = _compiled(workflow, _started(past, parent), registry, cap)
    keeps = _keeps_node(place, changes)
    point = fork_point(plan, place, reuses_node=keeps)
    latest_events = latest_executions(past)
    _refuse_unreached(reduce_events(latest_events, detail=Detail.LOOPS).loops, point)
    if keeps:
        node = point.nodes[-1]
        with_edited_output(events_before(past, plan, point, "", 0), place, node.spec, node.config, changes.value)
    rerun_ids = _rerun_ids(point)
    return ForkPlan(
        parent,
        str(place),
        workflow,
        changes,
        tuple(_describe_reused(point)),
        tuple(_describe_rerun(point)),
        _max_reruns(point),
        _estimate(latest_events, point) if changes.model is None else _estimate_with(changes.model, workflow, plan),
        tuple(
            f'The change to "{node_name(workflow, node)}" has no effect: the node does not run again.'
            for node in changes.settings
            if node not in rerun_ids
        ),
        plan,
    )


def fork(
    store: Store,
    plan: ForkPlan,
    options: RunOptions | None = None,
    *,
    on_event: Callable[[AnyEvent], None] | None = None,
) -> Run:
    """Start a fork in the current event loop.

    Args:
        store: The history with the parent, which also stores the fork.
        plan: Output of `plan_fork`.
        options: Options that replace those of the parent. Permissions always come from here.
        on_event: Called with every further event, in a separate thread.

    Raises:
        EngineError: The document is not valid, or a model is missing.
    """
    parent, changes = plan.parent, plan.changes
    past = list(store.events(parent.run_id))
    started = _started(past, parent)
    given = replace(options or RunOptions(), store=store)
    if changes.model is not None:
        given = replace(given, model=changes.model)
    inputs = without_disabled(plan.workflow, started.inputs)
    given = options_with_stored(given, store.options(parent.run_id))
    compiled = plan.plan if plan.plan is not None and plan.plan.workflow is plan.workflow else None
    compiled = compiled or _compiled(plan.workflow, started, given.registry, given.max_iterations_cap)
    ready = prepare(compiled, inputs, given)
    place = parse_place(plan.at) if plan.at else None
    keeps = place is not None and _keeps_node(place, changes)
    run_id = new_run_id()
    point = fork_point(ready.plan, place, reuses_node=keeps)
    before = events_before(past, ready.plan, point, run_id)
    if place is not None and keeps:
        node = point.nodes[-1]
        before = with_edited_output(before, place, node.spec, node.config, changes.value)
    edits = {where: value for where, value in started.edits.items() if point.keeps_edit(parse_place(where).steps)}
    if changes.has_value:
        edits[plan.at] = changes.value
    name, models = plan.workflow.name, ready.model_names
    order = state_order(past, ready.plan, point)
    part = {"extent": started.extent, "target": started.target} if compiled.part is not None else {}
    begins = partial(RunStarted, strategies=strategies_of(ready.plan.graph), state_order=order, **part)
    first = begins(run_id, 0, time.time(), "", name, ready.parameters, models, parent.run_id, plan.at, edits)
    source = ready.options.source or parent.source
    kept = mark_imported(stored_options(ready), imported=is_imported(store, parent.run_id))
    head = RunHead(run_id, dumps(plan.workflow), kept, source, parent.run_id, plan.at)
    calls = CallLog(event for event in past if event.path and point.is_reused(parse_place(event.path).steps))
    beginning = replace(stored_origin(ready.options, head, [first, *before]), calls=calls)
    return Run(ready, beginning, on_event)


def _compiled(workflow: Workflow, started: RunStarted, registry: Registry | None, cap: int) -> Plan:
    """Compile a workflow, or the part of it that the run executes if the workflow still has that node."""
    part = part_of(started.extent, started.target)
    if part is not None and part.node not in workflow.nodes_by_id:
        part = None
    return compile_workflow(workflow, registry, max_iterations_cap=cap, part=part)


def _started(past: Sequence[AnyEvent], run: RunSummary) -> RunStarted:
    first = past[0] if past else None
    if not isinstance(first, RunStarted):
        raise StoreError(f"The run {run.run_id} has no start event.", "Run its workflow again.")
    return first


def _has_ended(store: Store, run: RunSummary) -> StoreError:
    """Return the error for resuming a completed run, with a remedy if a used-up budget ended one of its loops."""
    events = store.events(run.run_id, level="", kinds={LoopStarted, LoopIterationStarted, LoopCompleted})
    for path, loop in reduce_events(events, run.run_id, Detail.LOOPS).loops.items():
        if "budget" in loop.exit_reason.split("+"):
            place = f"{path}[{max(loop.current, 0)}]"
            return StoreError(
                f'The run {run.run_id} has completed: its budget was used up, and "{path}" returned what it had.',
                f"Fork it at {place} with a larger budget of the run or of the loop.",
                fix=Fix.RAISE_BUDGET.of(f"{path}.budget_usd"),
            )
    return StoreError(f"The run {run.run_id} has completed.", "Fork it from one of its iterations instead.")


def refuse_unknown_calls(run: RunSummary, calls: Iterable[UnknownCall], remedy: str = "") -> None:
    """Refuse to continue a run that would make these calls again.

    Args:
        run: The run.
        calls: The calls; may be empty.
        remedy: What to do; by default the remedy for `resume`.

    Raises:
        EngineError: There is at least one call.
    """
    unknown = list(calls)
    if not unknown:
        return
    places = "; ".join(describe_call(call) for call in unknown[:_MOST_LISTED])
    more = f"; and {len(unknown) - _MOST_LISTED} more" if len(unknown) > _MOST_LISTED else ""
    is_one, has_tools = len(unknown) == 1, any(call.tool for call in unknown)
    risk = "may have been billed" if not has_tools else "may have had its effect" if is_one else "may have had effects"
    what = "a call whose outcome is" if is_one else f"{len(unknown)} calls whose outcomes are"
    check = "Check what the tool has done. " if has_tools else ""
    raise EngineError(
        f"The run {run.run_id} stopped during {what} unknown, and which {risk}: {places}{more}.",
        remedy or f"{check}Resume it and make {'the call' if is_one else 'the calls'} again.",
        fix=Fix.REPEAT_CALLS,
    )


def describe_call(call: UnknownCall) -> str:
    """Describe a call with its path."""
    what = f'tool "{call.tool}" with {call.arguments}' if call.tool else f"model {call.model}"
    return f"{call.path} ({what})"


def _keeps_node(place: Place, changes: Changes) -> bool:
    return changes.has_value and place.last.index is None


def _changed(workflow: Workflow, place: Place, changes: Changes) -> Workflow:
    """Apply the changes to the document."""
    for node_id, fields in changes.settings.items():
        for name, value in fields.items():
            workflow, _ = SetConfig((name,), {node_id: value}).apply(workflow)
    if changes.max_iterations is not None:
        if any(step.index is None for step in place.steps[:-1]):
            raise PlaceError(
                f"{place} is in a subflow, where a fork cannot change max iterations.",
                "Change it in the file of the subflow, and choose that file again.",
            )
        around = (workflow.nodes_by_id.get(step.node) for step in place.steps if step.index is not None)
        loops = [node.id for node in around if node is not None and node.type == "loop"]
        if not loops:
            raise PlaceError(f"{place} is not in a loop, so it has no max iterations.", "Leave out max iterations.")
        workflow, _ = SetConfig(("max_iterations",), {loops[-1]: changes.max_iterations}).apply(workflow)
    return workflow


def _refuse_unreached(loops: Mapping[str, LoopExecution], point: ForkPoint) -> None:
    """Refuse a fork point that the parent did not reach, or that the loop would no longer reach."""
    assert point.place is not None
    steps = point.place.steps
    depths = (depth for depth, step in enumerate(steps) if step.index is not None)  # a subflow has no iterations
    for depth, (path, index) in zip(depths, point.place.iterations(), strict=True):
        loop = loops.get(path, LoopExecution())
        is_last = depth == len(steps) - 1
        is_item = point.nodes[depth].iterator is not None
        most = loop.completed if is_last and not is_item else loop.current
        if index > most:
            raise PlaceError(
                f"The run did not reach {point.place}.",
                f"The last iteration is {path}[{loop.current}]."
                if loop.current >= 0
                else f'"{path}" had no iterations.',
            )
        count = None if is_item else _loop(point, depth).max_iterations
        if count is not None and index >= count:
            raise PlaceError(
                f'The loop "{path}" has at most {count} iterations and would not reach {point.place}.',
                f"Set max iterations to at least {index + 1}.",
            )


def _loop(point: ForkPoint, depth: int) -> LoopPlan:
    loop = point.nodes[depth].loop
    assert loop is not None, "only loops have iterations"
    return loop


def _rerun_ids(point: ForkPoint) -> set[str]:
    """Return the ids of all nodes that may run again, completely or in part."""
    found: set[str] = set()
    for graph, step, after in zip(point.graphs, point.steps, point.after, strict=True):
        found.add(step.node)
        found |= after
        for node in graph.nodes:
            if node.body is not None and (node.id == step.node or node.id in after):
                found |= _all_ids(node.body)
    return found


def _all_ids(graph: GraphPlan) -> set[str]:
    inner = (_all_ids(node.body) for node in graph.nodes if node.body is not None)
    return {node.id for node in graph.nodes}.union(*inner)


def _describe_reused(point: ForkPoint) -> Iterable[str]:
    for there, graph, step, after in zip(point.nodes, point.graphs, point.steps, point.after, strict=True):
        others = [node.title for node in graph.nodes if node.id != step.node and node.id not in after]
        if others:
            yield ", ".join(f"“{title}”" for title in others)
        if there.iterator is not None and step.index is not None:
            yield f"all other items of “{there.title}”"
        elif step.index:
            yield f"{_counted(1, step.index)} of “{there.title}”"
    if point.reuses_node:
        yield f"“{point.nodes[-1].title}”, with the edited value"


def _describe_rerun(point: ForkPoint) -> Iterable[str]:
    last = len(point.steps) - 1
    for depth in range(last, -1, -1):
        graph, step, after = point.graphs[depth], point.steps[depth], point.after[depth]
        if step.index is not None and point.nodes[depth].iterator is not None:
            if depth == last:
                yield f"item {step.index + 1} of “{point.nodes[depth].title}”"
        elif step.index is not None:
            first, most = step.index + (1 if depth == last else 2), _loop(point, depth).max_iterations
            if first <= most:
                yield f"{_counted(first, most)} of “{point.nodes[depth].title}”, at most"
        elif not point.reuses_node:
            yield f"“{point.nodes[depth].title}”"
        titles = [node.title for node in graph.nodes if node.id in after and node.exit_of is None]
        if titles:
            yield ", ".join(f"“{title}”" for title in titles)


def _counted(first: int, last: int) -> str:
    return f"iteration {first}" if first == last else f"iterations {first} to {last}"


def _max_reruns(point: ForkPoint) -> int:
    depth = _outermost_loop(point)
    if depth is None:
        return 0
    index = point.steps[depth].index or 0
    return 1 if point.nodes[depth].iterator is not None else _loop(point, depth).max_iterations - index


def _outermost_loop(point: ForkPoint) -> int | None:
    """Return the index of the step that is the outermost loop or iterator; None if there is none."""
    return next((depth for depth, step in enumerate(point.steps) if step.index is not None), None)


def _estimate(past: Iterable[AnyEvent], point: ForkPoint) -> float | None:
    """Estimate the cost: the mean cost of an iteration for each that may follow, and of the nodes after the loop."""
    depth = _outermost_loop(point)
    loop = "" if depth is None else ".".join(step.node for step in point.steps[: depth + 1])
    iterations: list[float | None] = []
    following: list[float | None] = []
    for event in past:
        if isinstance(event, LoopIterationCompleted) and event.path == loop:
            iterations.append(event.cost_usd)
        elif isinstance(event, NodeCompleted) and event.path != loop and _is_cost_of_rerun(event.path, point):
            following.append(event.cost_usd)
    total, of_iterations = sum_costs(following), sum_costs(iterations)
    if total is None or of_iterations is None:
        return None
    if depth is None:
        return total
    if not iterations:
        return None
    return total + of_iterations / len(iterations) * _max_reruns(point)


def _estimate_with(model: str, workflow: Workflow, plan: Plan) -> float | None:
    """Estimate the cost with another model for every node: none for a model on this computer, unknown for any other."""
    if not runs_on_own_machine(model) or model in Settings.model_validate(workflow.settings).prices:
        return None
    if model == EMBEDDED_MODEL or model.startswith(GGUF_PREFIX):
        return 0.0
    from engine.models.litellm_adapter import local_price  # slow to import, and few forks need it

    addresses = {choice.api_base for choice in plan.models} or {None}
    prices = (local_price({}, model, address, os.environ) for address in addresses)
    return 0.0 if all(price == Price(0.0, 0.0) for price in prices) else None


def _is_cost_of_rerun(path: str, point: ForkPoint) -> bool:
    """Return whether a node runs again and its event has its cost: that of a loop does, that of a subflow does not."""
    return "[" not in path and not point.is_reused(parse_place(path).steps)
