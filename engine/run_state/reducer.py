"""The reducer: how each event changes the state of a run.

This is the only place that turns events into state; views, stores, exports and the runner itself select from the state.
A log may be filtered before it is reduced (one level of a run, certain types of events): what is missing in the log is
missing in the state, and the rest is the same.

What an event ends: a node that completes, fails or is skipped is over, and with a loop or a subflow everything inside
it; with an iteration everything inside that iteration; with the run everything. Nodes that were running there are
cancelled and their questions closed, because stopped nodes report no end of their own. When a run is resumed after its
process has gone, its open nodes are interrupted until they start again. The start of another attempt of a loop or a
subflow drops whatever earlier attempts reported.

The cost of an event does not grow with the log. Only the start of another attempt goes through all that there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from engine.events import (
    AnyEvent,
    BudgetWarning,
    LoopCompleted,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NodeAnswered,
    NodeCalled,
    NodeCompleted,
    NodeFailed,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeStreaming,
    NodeToolCalled,
    NodeWaiting,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunNotKept,
    RunPaused,
    RunResumed,
    RunStarted,
    missing_start,
)
from engine.models.protocol import add_costs
from engine.nodes.spec import PAIR_BY_START
from engine.plan.partial_run import part_of
from engine.run_state.state import (
    CONTAINERS,
    Detail,
    LoopExecution,
    NodeExecution,
    NodeState,
    RunState,
    RunStatus,
    budget_warning,
    not_stored,
)


def apply(state: RunState, event: AnyEvent) -> None:
    """Change a state by the next event of its run."""
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        handler(state, event)
    state.updated = event.time


def reduce_events(events: Iterable[AnyEvent], run_id: str = "", detail: Detail = Detail.NODES) -> RunState:
    """The state after these events."""
    state = RunState(run_id, detail)
    for event in events:
        apply(state, event)
    return state


def end_open_nodes(state: RunState, end: NodeState, *inside: str) -> None:
    """Give nodes that have not ended this state: all of them, or those whose paths begin like this.

    Readers of one level of a run need it, because its events do not say how the run ended.
    """
    for path in [path for path in state.open if path.startswith(inside or "")]:
        state.open.pop(path).state = end


# Runs


def _run_started(state: RunState, event: RunStarted) -> None:
    state.workflow, state.models, state.started = event.workflow, event.models, event.time
    state.inputs, state.parent, state.forked_at = event.inputs, event.parent, event.forked_at
    state.part = part_of(event.extent, event.target)
    state.active_since = event.time


def _run_paused(state: RunState, _event: RunPaused) -> None:
    state.phase = RunStatus.PAUSED


def _run_resumed(state: RunState, event: RunResumed) -> None:
    if state.phase is not RunStatus.PAUSED:  # its process had gone: whatever was open starts again
        state.questions.clear()
        state.unanswered.clear()
        state.open_loops.clear()
        end_open_nodes(state, NodeState.INTERRUPTED)
    state.phase, state.duration_s = RunStatus.RUNNING, None
    state.error = state.remedy = state.fix = state.failed_node = ""
    if state.active_since is not None:
        state.active_before_s += state.updated - state.active_since
    state.active_since = event.time


_RunEnd = RunCompleted | RunFailed | RunCancelled
_ENDS: Final[dict[type[AnyEvent], RunStatus]] = {
    RunCompleted: RunStatus.COMPLETED,
    RunFailed: RunStatus.FAILED,
    RunCancelled: RunStatus.CANCELLED,
}


def _run_ended(state: RunState, event: _RunEnd) -> None:
    state.phase = _ENDS[type(event)]
    # The run's own figures include calls that were cancelled in nodes without an end.
    state.usage, state.cost_usd, state.duration_s = event.usage, event.cost_usd, event.duration_s
    state.active_before_s, state.active_since = event.duration_s, None
    state.unanswered, state.questions = {**state.unanswered, **state.questions}, {}
    if isinstance(event, RunFailed):
        state.error, state.remedy, state.fix, state.failed_node = event.error, event.remedy, event.fix, event.node
    if not state.has_loops:
        return
    state.outputs = event.outputs
    state.open_loops.clear()
    end_open_nodes(state, NodeState.CANCELLED)
    for warning in event.warnings:
        state.warnings.add_text("", warning)


def _run_not_stored(state: RunState, event: RunNotKept) -> None:
    state.is_stored = False
    if state.has_loops:
        state.warnings.add("", not_stored(event.error))


def _budget_warning(state: RunState, event: BudgetWarning) -> None:
    state.budget = event
    if state.has_loops:
        state.warnings.add(event.path, budget_warning(event.spent, event.limit, event.unit))


# Loops


def _loop_started(state: RunState, event: LoopStarted) -> None:
    state.announced.add(event.path)
    _start_attempt(state, event)


def _start_attempt(state: RunState, event: LoopStarted) -> None:
    inside = f"{event.path}["
    _close_questions(state, "", inside)
    if not state.has_loops:
        return
    _close_loops(state, inside)
    end_open_nodes(state, NodeState.CANCELLED, inside)
    before = state.loops.get(event.path)
    if before is not None:
        _drop(inside, state.loops, state.nodes)
        state.warnings.drop(event.path)
        state.warnings.drop_inside(event.path)
    attempt = event.attempt or (before.attempt + 1 if before is not None else 1)
    loop = LoopExecution(event.path, attempt, event.max_iterations)
    state.loops[event.path] = state.open_loops[event.path] = loop


def _iteration_started(state: RunState, event: LoopIterationStarted) -> None:
    start = missing_start(state.announced, event)
    if start is not None:
        _start_attempt(state, start)
    if not state.has_loops:
        return
    loop = _loop(state, event.path)
    if loop.exit_reason:
        _reopen(state, loop)
    loop.current, loop.total, loop.input_preview = event.index, event.total, event.input_preview


def _iteration_completed(state: RunState, event: LoopIterationCompleted) -> None:
    state.completed_iterations += 1
    place = f"{event.path}[{event.index}]"
    if state.questions or state.unanswered:
        _close_questions(state, "", f"{place}.")
    if not state.has_loops:
        return
    loop = _loop(state, event.path)
    _add_iteration(loop, event)
    loop.cost_usd = add_costs(loop.cost_usd, event.cost_usd)
    if len(state.open_loops) > 1:
        _close_loops(state, f"{place}.")
    if state.open:
        end_open_nodes(state, NodeState.CANCELLED, f"{place}.")
    for text in event.warnings:
        has_place = text.startswith((f"{place}.", f"{place}:"))  # missing in older histories
        state.warnings.add_text(place, text if has_place else f"{place}: {text}")


def _add_iteration(loop: LoopExecution, event: LoopIterationCompleted) -> None:
    if event.index < len(loop.iterations):
        loop.iterations[event.index] = event
        return
    if event.index > len(loop.iterations):
        loop.ahead[event.index] = event
        return
    loop.iterations.append(event)
    while loop.ahead and (following := loop.ahead.pop(len(loop.iterations), None)) is not None:
        loop.iterations.append(following)


def _loop_completed(state: RunState, event: LoopCompleted) -> None:
    if "." not in event.path:
        state.exit_reason = event.exit_reason
    if not state.has_loops:
        return
    loop = _loop(state, event.path)
    loop.exit_reason, loop.returned, loop.converged = event.exit_reason, event.returned, event.converged
    loop.iterations_run, loop.cost_usd, loop.warnings = event.iterations_run, event.cost_usd, event.warnings
    state.open_loops.pop(event.path, None)
    _close_loops(state, f"{event.path}[")
    for warning in event.warnings:
        state.warnings.add(event.path, warning)


def _loop(state: RunState, path: str) -> LoopExecution:
    """The loop at a path; a new one where the log does not have its start."""
    loop = state.loops.get(path)
    if loop is None:
        loop = state.loops[path] = state.open_loops[path] = LoopExecution(path)
    return loop


def _reopen(state: RunState, loop: LoopExecution) -> None:
    """Continue a loop that had ended with an earlier process of the run."""
    loop.exit_reason, loop.returned, loop.converged = "", None, False
    state.open_loops[loop.path] = loop


def _close_loops(state: RunState, *inside: str) -> None:
    for path in [path for path in state.open_loops if path.startswith(inside)]:
        del state.open_loops[path]


# Nodes


def _node_started(state: RunState, event: NodeStarted) -> None:
    if state.questions or state.unanswered:
        _close_question(state, event.path)
    if not state.has_loops:
        return
    state.warnings.drop(event.path)
    if event.node_type in PAIR_BY_START and event.path in state.loops:
        _reopen(state, state.loops[event.path])
    if not state.has_nodes:
        return
    node = NodeExecution(event.path, event.node_type, NodeState.RUNNING, event.inputs, started=event.time)
    before = state.nodes.get(event.path)
    if before is not None and not before.has_ended:  # what an interrupted node had finished is not done again
        node.calls, node.tool_calls = before.calls, before.tool_calls
    state.nodes[event.path] = state.open[event.path] = node


def _node_streaming(state: RunState, event: NodeStreaming) -> None:
    if state.has_nodes:
        _node(state, event.path).streamed.append(event.text)


def _node_called(state: RunState, event: NodeCalled) -> None:
    if state.has_nodes:
        node = _node(state, event.path)
        node.calls = (*node.calls[: event.number], event.call)


def _node_tool_called(state: RunState, event: NodeToolCalled) -> None:
    if state.has_nodes:
        node = _node(state, event.path)
        node.tool_calls = (*node.tool_calls[: event.number], event)
        node.streamed.clear()  # what follows is the text of another turn


def _node_waiting(state: RunState, event: NodeWaiting) -> None:
    state.questions[event.path] = event
    if state.has_nodes:
        node = state.open[event.path] = _node(state, event.path)
        node.state, node.node_type = NodeState.WAITING, event.node_type


def _node_answered(state: RunState, event: NodeAnswered) -> None:
    _close_question(state, event.path)
    node = state.open.get(event.path)
    if node is not None:  # an answer to a run without a process waits for the node to start again
        node.state = NodeState.RUNNING


def _node_retrying(state: RunState, event: NodeRetrying) -> None:
    inside = (f"{event.path}[", f"{event.path}.")
    _close_questions(state, event.path, *inside)
    if not state.has_loops:
        return
    _close_loops(state, *inside)
    if not event.goes_on:
        _drop(f"{event.path}.", state.loops)
        state.warnings.drop_inside(event.path)
    if not state.has_nodes:
        return
    node = state.open[event.path] = _node(state, event.path)
    node.state, node.error = NodeState.RUNNING, event.error
    node.retries, node.retry_delay_s = event.attempt, event.delay_s
    node.streamed.clear()
    if event.goes_on:
        return
    node.tool_calls = ()
    if node.node_type in CONTAINERS or not node.node_type:
        end_open_nodes(state, NodeState.CANCELLED, *inside)
        _drop(f"{event.path}.", state.nodes)


def _node_completed(state: RunState, event: NodeCompleted) -> None:
    _node_ended(state, event)
    if not state.has_loops:
        return
    if event.error and "error" not in event.outputs:
        state.warnings.add(event.path, f"It failed, and its value on error is used: {event.error}")
    if state.has_nodes:
        node = state.nodes[event.path]
        reused = NodeState.CACHED if event.cached else NodeState.COMPLETED
        node.state = NodeState.PINNED if event.pinned else reused
        node.outputs, node.output_key = event.outputs, event.output_key


def _node_failed(state: RunState, event: NodeFailed) -> None:
    _node_ended(state, event)
    if state.has_nodes:
        node = state.nodes[event.path]
        node.state, node.remedy, node.fix = NodeState.FAILED, event.remedy, event.fix


def _node_ended(state: RunState, event: NodeCompleted | NodeFailed) -> None:
    """What completing and failing have in common."""
    if event.usage is not None and event.node_type not in PAIR_BY_START:  # a loop's nodes report what it spent
        state.usage += event.usage
        state.cost_usd = add_costs(state.cost_usd, event.cost_usd)
    inside = (f"{event.path}[", f"{event.path}.") if event.node_type in CONTAINERS else ()
    if state.questions or state.unanswered:
        _close_questions(state, event.path, *inside)
    if not state.has_loops:
        return
    if event.warnings:
        for warning in event.warnings:
            state.warnings.add(event.path, warning)
    if inside:
        state.open_loops.pop(event.path, None)
        _close_loops(state, *inside)
    if not state.has_nodes:
        return
    node = _node(state, event.path)
    node.node_type, node.calls, node.warnings, node.error = event.node_type, event.calls, event.warnings, event.error
    node.usage, node.cost_usd, node.duration_s = event.usage, event.cost_usd, event.duration_s
    state.open.pop(event.path, None)
    if inside:
        end_open_nodes(state, NodeState.CANCELLED, *inside)


def _node_skipped(state: RunState, event: NodeSkipped) -> None:
    _close_question(state, event.path)
    if state.has_nodes:
        state.open.pop(event.path, None)
        state.nodes[event.path] = NodeExecution(event.path, event.node_type, NodeState.SKIPPED, error=event.reason)


def _node(state: RunState, path: str) -> NodeExecution:
    """The execution at a path; a new one where the log does not have its start."""
    node = state.nodes.get(path)
    if node is None:
        node = state.nodes[path] = state.open[path] = NodeExecution(path, state=NodeState.RUNNING)
    return node


# What several events do


def _close_question(state: RunState, path: str) -> None:
    state.questions.pop(path, None)
    state.unanswered.pop(path, None)


def _close_questions(state: RunState, path: str, *inside: str) -> None:
    for questions in (state.questions, state.unanswered):
        for asked in [asked for asked in questions if asked == path or asked.startswith(inside)]:
            del questions[asked]


def _drop(inside: str, *by_path: dict[str, Any]) -> None:
    for entries in by_path:
        for path in [path for path in entries if path.startswith(inside)]:
            del entries[path]


_HANDLERS: Final[dict[type[AnyEvent], Callable[[RunState, Any], None]]] = {
    RunStarted: _run_started,
    RunPaused: _run_paused,
    RunResumed: _run_resumed,
    RunCompleted: _run_ended,
    RunFailed: _run_ended,
    RunCancelled: _run_ended,
    RunNotKept: _run_not_stored,
    BudgetWarning: _budget_warning,
    LoopStarted: _loop_started,
    LoopIterationStarted: _iteration_started,
    LoopIterationCompleted: _iteration_completed,
    LoopCompleted: _loop_completed,
    NodeStarted: _node_started,
    NodeStreaming: _node_streaming,
    NodeCalled: _node_called,
    NodeToolCalled: _node_tool_called,
    NodeWaiting: _node_waiting,
    NodeAnswered: _node_answered,
    NodeRetrying: _node_retrying,
    NodeCompleted: _node_completed,
    NodeFailed: _node_failed,
    NodeSkipped: _node_skipped,
}
