"""`loopwright runs show`: one run, one iteration of it, or what a node did there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.exit_codes import ExitCode
from engine.cli.history import RunName, StorePath, history, summary_json, when
from engine.formatting import (
    format_count,
    format_duration,
    format_money,
    format_percent,
    format_score,
    format_tokens,
    format_value,
)

if TYPE_CHECKING:
    from engine.cli.output import Screen
    from engine.document.model import Workflow
    from engine.events import LoopIterationCompleted, Place
    from engine.run_state.state import LoopExecution, NodeExecution, RunState
    from engine.store.store_protocol import RunSummary, Store
    from engine.values import Value

_PREVIEW = 100
_REASONING = 600
"""The most characters of a model's reasoning that are shown unless it is asked for in full."""


def runs_show(
    context: typer.Context,
    run: RunName,
    iteration: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="An iteration, such as loop[2], or a node: loop[2].draft. Counted from 0."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write it as one JSON object.")] = False,
    in_full: Annotated[bool, typer.Option("--full", help="Show the reasoning of models in full.")] = False,
    store: StorePath = None,
) -> int:
    """Show a run: what its loops did and why they stopped; with --iteration everything that one iteration or node did.

    Example: loopwright runs show ab12 --iteration loop[2]
    """
    from engine.cli.output import out, write_json
    from engine.events import parse_place

    with history(context, store) as kept:
        shown = _Shown(kept, kept.find(run))
        if iteration is None:
            write_json(_run_json(shown)) if as_json else _write_run(out(), shown)
            return ExitCode.DONE
        place = parse_place(iteration)
        node = shown.node(place) if place.last.index is None else None
        if as_json:
            write_json(_node_json(node) if node is not None else _iteration_json(shown, place))
        elif node is not None:
            _write_node(out(), node, is_alone=True, in_full=in_full)
        else:
            _write_iteration(out(), shown, place, in_full=in_full)
    return ExitCode.DONE


@dataclass(frozen=True, slots=True)
class _Shown:
    """A run that is shown, read level by level as it is needed."""

    store: Store
    run: RunSummary

    def workflow(self) -> Workflow:
        """The document as it ran."""
        from engine.store.run_sections import workflow_or_empty

        return workflow_or_empty(self.store.document(self.run.run_id))

    def level(self, name: str) -> RunState:
        """The state of a level."""
        from engine.store.run_sections import level_state

        return level_state(self.store, self.run, name)

    def node(self, place: Place) -> NodeExecution:
        """What a node did.

        Raises:
            StoreError: It did nothing there.
        """
        from engine.store.run_sections import nothing_stored_at

        found = self.level(place.level).nodes.get(str(place))
        if found is None:
            raise nothing_stored_at(self.store, self.run.run_id, place)
        return found

    def given(self, level: str) -> dict[str, Value]:
        """What each node of a level gave, by id."""
        from engine.run_state.state import nodes_on
        from engine.store.run_sections import node_result

        nodes = nodes_on(self.level(level), level)
        return {node.node_id: node_result(node) for node in nodes if node.has_completed}

    def why(self, state: RunState, path: str, workflow: Workflow) -> str:
        """Why the loop at a path stopped; empty where it has not."""
        from engine.store.exit_explanation import explain_exit, loop_config

        loop = state.loops[path]
        iterations, config = loop.all_iterations, loop_config(workflow, path, loop.cap)
        if not loop.exit_reason:
            return ""
        given = self.given(f"{path}[{len(iterations) - 1}]") if config.names_nodes and iterations else {}
        return explain_exit(config, iterations, loop.exit_reason, loop.cap, error=state.error, given=given)


def _write_run(screen: Screen, shown: _Shown) -> None:
    from engine.text_sanitizing import one_line
    from engine.values import to_text

    run, state, workflow = shown.run, shown.level(""), shown.workflow()
    screen.line(
        f"{run.workflow or 'Workflow'}: {run.run_id}, {run.status}{', pinned' if run.pinned else ''}", style="bold"
    )
    took = f", took {format_duration(run.duration_s)}" if run.duration_s is not None else ""
    screen.line(f"Begun {when(run.started)}{took}; {format_count(run.tokens, 'token')}, {format_money(run.cost_usd)}.")
    if run.models:
        screen.line(f"Models: {', '.join(run.models)}.")
    if run.source:
        screen.line(f"From {run.source}.")
    if run.parent:
        screen.line(f"Forked from {run.parent} at {run.forked_at}.")
    for fork in shown.store.children(run.run_id):
        screen.line(f"Fork at {fork.forked_at}: {fork.run_id}, {fork.status}.")
    for name, value in state.inputs.items():
        screen.line(f"Input {name}: {one_line(to_text(value), _PREVIEW)}")
    for path in state.loops:
        _write_loop(screen, shown, state, path, workflow)
    for name, value in state.outputs.items():
        screen.line()
        screen.line(f"{name}:", style="bold")
        screen.line(format_value(value))
    if state.warnings.all:
        screen.line()
    for warning in state.warnings.all:
        screen.line(f"Warning: {warning}", style="yellow")
    if run.error:
        screen.line()
        where = f" at {state.failed_node}" if state.failed_node else ""
        screen.line(f"It failed{where}: {run.error} {state.remedy}".rstrip(), style="red")


def _write_loop(screen: Screen, shown: _Shown, state: RunState, path: str, workflow: Workflow) -> None:
    screen.line()
    loop = state.loops[path]
    why = shown.why(state, path, workflow)
    completed = f"{loop.completed} of {loop.total or '?'} iterations have completed."
    screen.line(f"{path}: {why or completed}", style="bold")
    if loop.completed:
        heads = ("At", "Verdict", "Score", "Similar", "Tokens", "Cost", "Time", "Warnings", "Result")
        screen.table(heads, [_row(path, iteration, loop) for iteration in loop.all_iterations])


def _row(path: str, iteration: LoopIterationCompleted, loop: LoopExecution) -> tuple[str, ...]:
    from engine.text_sanitizing import one_line
    from engine.values import to_text

    returned = " (returned)" if loop.returned == iteration.index and iteration is not loop.all_iterations[-1] else ""
    return (
        f"{path}[{iteration.index}]{returned}",
        iteration.branch or "",
        "" if iteration.score is None else format_score(iteration.score),
        "" if iteration.similarity is None else format_percent(iteration.similarity),
        format_count(iteration.usage.total_tokens, exact=iteration.usage.exact),
        format_money(iteration.cost_usd),
        format_duration(iteration.duration_s),
        str(len(iteration.warnings) or ""),
        one_line(to_text(iteration.result), _PREVIEW),
    )


def _tested(shown: _Shown, place: Place) -> tuple[RunState, LoopIterationCompleted | None, tuple[str, ...]]:
    """The level of a loop, the iteration at that place, and what was tested after it."""
    from engine.run_state.state import iteration_at
    from engine.store.exit_explanation import describe_conditions, loop_config
    from engine.store.run_sections import nothing_stored_at

    around = shown.level(place.level)
    path, index = list(place.iterations())[-1]
    ended = iteration_at(around, str(place))
    if ended is None:
        if not shown.level(str(place)).nodes:
            raise nothing_stored_at(shown.store, shown.run.run_id, place)
        return around, None, ()
    loop = around.loops[path]
    config = loop_config(shown.workflow(), path, loop.cap)
    return around, ended, describe_conditions(config, loop.all_iterations, index, given=shown.given(str(place)))


def _write_iteration(screen: Screen, shown: _Shown, place: Place, *, in_full: bool) -> None:
    from engine.run_state.state import nodes_on

    around, ended, tested = _tested(shown, place)
    inside, workflow = shown.level(str(place)), shown.workflow()
    path, index = list(place.iterations())[-1]
    screen.line(f"{place}: iteration {index + 1} of at most {around.loops[path].total or '?'}", style="bold")
    if ended is None:
        screen.line("It has not ended.")
    else:
        is_last = ended is around.loops[path].all_iterations[-1]
        why = shown.why(around, path, workflow) if is_last else "It went on."
        if tested:
            screen.line(f"Tested: {'; '.join(tested)}.")
        screen.line(why or "It went on.")
        for warning in ended.warnings:
            screen.line(f"Warning: {warning}", style="yellow")
        _write_text(screen, "started from", ended.input)
    for node in nodes_on(inside, str(place)):
        _write_node(screen, node, is_alone=False, in_full=in_full)
    for nested in inside.loops:
        _write_loop(screen, shown, inside, nested, workflow)
    if ended is not None:
        _write_text(screen, "result", ended.result)
        if ended.feedback != ended.result:
            _write_text(screen, "feedback", ended.feedback)


def _write_text(screen: Screen, name: str, value: Value) -> None:

    screen.line()
    screen.line(f"{name}:", style="bold")
    screen.line(format_value(value))


def _write_node(screen: Screen, node: NodeExecution, *, is_alone: bool, in_full: bool) -> None:
    """Write what a node did; alone with its inputs and what its model was asked. `in_full`: with all its reasoning."""
    from engine.nodes.spec import PAIR_BY_START
    from engine.store.run_sections import node_result, prompts_text

    figures = [node.node_type, "completed, from an earlier output" if node.is_cached else node.state]
    figures += [format_duration(node.duration_s)] if node.duration_s is not None else []
    figures += [format_tokens(node.usage), format_money(node.cost_usd)] if node.usage is not None else []
    figures += [f"state.{node.output_key}"] if node.output_key else []
    screen.line()
    screen.line(f"{node.path} ({', '.join(figures)})", style="bold")
    for sentence in (*node.warnings, node.error):
        if sentence:
            screen.line(sentence)
    if is_alone:
        for name, value in node.inputs.items():
            _write_text(screen, f"input {name}", value)
        if node.calls:
            _write_text(screen, "asked", prompts_text(node.calls))
            _write_text(screen, "answered by", ", ".join(dict.fromkeys(call.model for call in node.calls)))
            _write_replies(screen, node, in_full=in_full)
        for call in node.tool_calls:
            _write_text(
                screen, f"called {call.tool}", {"arguments": call.used_arguments, "gave": call.error or call.result}
            )
        for name, value in node.outputs.items():
            _write_text(screen, f"output {name}", value)
        return
    _write_reasoning(screen, node, in_full=in_full)
    if node.outputs and node.node_type not in PAIR_BY_START:
        _write_text(screen, "gave", node_result(node))


def _write_replies(screen: Screen, node: NodeExecution, *, in_full: bool) -> None:
    """Write what a node's models said that is not its output: reasoning, refusals, replies that failed it."""
    _write_reasoning(screen, node, in_full=in_full)
    for call in node.calls:
        if call.reply.refusal:
            _write_text(screen, "refused", call.reply.refusal)
        elif node.state == "failed" and call.reply.text.strip():
            _write_text(screen, "replied", call.reply.text)


def _write_reasoning(screen: Screen, node: NodeExecution, *, in_full: bool) -> None:
    for call in node.calls:
        text = call.reply.reasoning
        if not text:
            continue
        left = 0 if in_full else len(text) - _REASONING
        _write_text(
            screen,
            "Reasoning",
            f"{text[:_REASONING]}\n… {format_count(left, 'more character')}: --full" if left > 0 else text,
        )


def _run_json(shown: _Shown) -> dict[str, Any]:
    from engine.run_state.result import loop_result
    from engine.run_state.state import nodes_on

    state, workflow = shown.level(""), shown.workflow()
    loops = {
        path: {"why": shown.why(state, path, workflow), "total": loop.cap, **loop_result(loop).to_json()}
        for path, loop in state.loops.items()
    }
    return {
        **summary_json(shown.run),
        "inputs": dict(state.inputs),
        "outputs": state.outputs,
        "warnings": list(state.warnings.all),
        "loops": loops,
        "nodes": [_node_json(node) for node in nodes_on(state, "")],
        "remedy": state.remedy,
        "node": state.failed_node,
        "forks": [fork.run_id for fork in shown.store.children(shown.run.run_id)],
    }


def _iteration_json(shown: _Shown, place: Place) -> dict[str, Any]:
    from engine.run_state.result import loop_result
    from engine.run_state.state import nodes_on

    _, ended, tested = _tested(shown, place)
    inside = shown.level(str(place))
    return {
        "run_id": shown.run.run_id,
        "place": str(place),
        "iteration": None if ended is None else ended.to_json(),
        "tested": list(tested),
        "nodes": _nodes_json(nodes_on(inside, str(place))),
        "loops": {path: loop_result(loop).to_json() for path, loop in inside.loops.items()},
    }


def _nodes_json(nodes: Iterable[NodeExecution]) -> list[dict[str, Any]]:
    return [_node_json(node) for node in nodes]


def _node_json(node: NodeExecution) -> dict[str, Any]:
    from engine.run_state.state import NodeState

    return {
        "path": node.path,
        "type": node.node_type,
        "state": NodeState.COMPLETED if node.is_cached else node.state,
        "cached": node.is_cached,
        "inputs": dict(node.inputs),
        "outputs": dict(node.outputs),
        "calls": [
            {
                "model": call.model,
                "messages": [{"role": message.role, "text": message.text} for message in call.request.messages],
                "reply": call.reply.text,
                "reasoning": call.reply.reasoning,
                "refusal": call.reply.refusal,
                "finish": call.reply.finish.value,
                "warnings": list(call.reply.warnings),
                "cost_usd": call.cost_usd,
                "duration_s": call.duration_s,
            }
            for call in node.calls
        ],
        "tool_calls": [
            {"tool": call.tool, "arguments": call.used_arguments, "result": call.result, "error": call.error}
            for call in node.tool_calls
        ],
        "output_key": node.output_key,
        "cost_usd": node.cost_usd,
        "duration_s": node.duration_s,
        "retries": node.retries,
        "warnings": list(node.warnings),
        "error": node.error,
        "remedy": node.remedy,
    }
