"""Implements `loopwright runs show` (a run, an iteration or a node) and `loopwright runs diff` (two texts)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from engine.cli.common_options import RunName, StorePath, find_place, format_time, history, summary_json
from engine.cli.exit_codes import ExitCode
from engine.cli.output import Screen, out, write_json
from engine.cli.remedies import remedy_with_command
from engine.errors import EngineError
from engine.formatting import (
    format_count,
    format_duration,
    format_money,
    format_percent,
    format_score,
    format_tokens,
    format_value,
)
from engine.text_sanitizing import one_line, shown
from engine.values import Value, to_text

if TYPE_CHECKING:
    from engine.document.model import Workflow
    from engine.events import LoopIterationCompleted, Place
    from engine.run_state.state import LoopExecution, NodeExecution, RunState
    from engine.store.run_sections import Section
    from engine.store.store_protocol import RunSummary, Store
    from engine.text_diff import Span


_PREVIEW_CHARACTERS: Final = 100
_REASONING_CHARACTERS: Final = 600
"""Maximum length of a model's reasoning without `--full`."""
_CONTEXT_LINES: Final = 3
_STYLES: Final = {"equal": ("", "", ""), "delete": ("[-", "-]", "red"), "insert": ("{+", "+}", "green")}
"""The marks before and after a span of a diff, and its style."""


def runs_show(
    context: typer.Context,
    run: RunName,
    iteration: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="An iteration, such as loop[2], or a node: loop[2].draft; with ids or titles. Counted from 0.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the output as one JSON object.")] = False,
    in_full: Annotated[bool, typer.Option("--full", help="Show the reasoning of models in full.")] = False,
    store: StorePath = None,
) -> int:
    """Show a run, or all details of an iteration or a node of it.

    A run is shown with its loops and their exit reasons, an iteration or a node with --iteration.

    Example: loopwright runs show ab12 --iteration loop[2]
    """
    from engine.events import parse_place

    with history(context, store) as stored:
        reader = _RunReader(stored, stored.find(run))
        if iteration is None:
            write_json(_run_json(reader)) if as_json else _write_run(out(), reader)
            return ExitCode.DONE
        place = parse_place(find_place(stored, reader.summary.run_id, iteration))
        node = reader.node(place) if place.last.index is None else None
        if as_json:
            write_json(_node_json(node) if node is not None else _iteration_json(reader, place))
        elif node is not None:
            _write_node_details(out(), node, in_full=in_full)
        else:
            _write_iteration(out(), reader, place, in_full=in_full)
    return ExitCode.DONE


@dataclass(frozen=True, slots=True)
class _RunReader:
    """A stored run. Its levels (the top level, and each iteration) are read on demand."""

    store: Store
    summary: RunSummary

    def workflow(self) -> Workflow:
        from engine.store.run_sections import workflow_or_empty

        return workflow_or_empty(self.store.document(self.summary.run_id))

    def part_outputs(self, state: RunState) -> dict[str, Value]:
        """The outputs of the node of a partial run, by port."""
        from engine.run_state.result import part_outputs
        from engine.store.run_sections import structure_or_empty

        return dict(part_outputs(state, structure_or_empty(self.store.document(self.summary.run_id))))

    def level(self, name: str) -> RunState:
        from engine.store.run_sections import level_state

        return level_state(self.store, self.summary, name)

    def node(self, place: Place) -> NodeExecution:
        """The execution of the node at a place.

        Raises:
            StoreError: The node was not executed there.
        """
        from engine.store.run_sections import nothing_stored_at

        found = self.level(place.level).nodes.get(str(place))
        if found is None:
            raise nothing_stored_at(self.store, self.summary.run_id, place)
        return found

    def outputs(self, level: str) -> dict[str, Value]:
        """The output of each completed node of a level, by id."""
        from engine.run_state.state import nodes_on
        from engine.store.run_sections import node_result

        nodes = nodes_on(self.level(level), level)
        return {node.node_id: node_result(node) for node in nodes if node.has_completed}

    def exit_explanation(self, state: RunState, path: str, workflow: Workflow) -> str:
        """The exit reason of the loop at a path as a sentence; empty if the loop has not ended."""
        from engine.store.exit_explanation import explain_exit, loop_config

        loop = state.loops[path]
        iterations, config = loop.all_iterations, loop_config(workflow, path, loop.cap)
        if not loop.exit_reason:
            return ""
        outputs = self.outputs(f"{path}[{len(iterations) - 1}]") if config.names_nodes and iterations else {}
        return explain_exit(config, iterations, loop.exit_reason, loop.cap, error=state.error, given=outputs)


def _write_run(screen: Screen, reader: _RunReader) -> None:
    from engine.run_state.result import main_outputs

    run, state, workflow = reader.summary, reader.level(""), reader.workflow()
    screen.line(
        f"{run.workflow or 'Workflow'}: {run.run_id}, {run.status}{', pinned' if run.pinned else ''}", style="bold"
    )
    took = f", took {format_duration(run.duration_s)}" if run.duration_s is not None else ""
    screen.line(
        f"Started {format_time(run.started)}{took}; {format_count(run.tokens, 'token')}, {format_money(run.cost_usd)}."
    )
    if run.models:
        screen.line(f"Models: {', '.join(run.models)}.")
    if run.source:
        screen.line(f"From {run.source}.")
    if run.origin:
        screen.line(f"{run.origin}.")
    for child in reader.store.children(run.run_id):
        place = f"Fork at {child.forked_at}" if child.is_fork else f"Partial run {child.part}"
        screen.line(f"{place}: {child.run_id}, {child.status}.")
    for name, value in state.inputs.items():
        screen.line(f"Input {name}: {one_line(to_text(value), _PREVIEW_CHARACTERS)}")
    for path in state.loops:
        _write_loop(screen, reader, state, path, workflow)
    for name, value in (state.outputs or main_outputs(reader.part_outputs(state))).items():
        _write_value(screen, name, value)
    if state.warnings.all:
        screen.line()
    for warning in state.warnings.all:
        screen.line(f"Warning: {warning}", style="yellow")
    if run.error:
        screen.line()
        where = f" at {state.failed_node}" if state.failed_node else ""
        remedy = remedy_with_command(state.remedy, state.fix)
        screen.line(f"Failed{where}: {run.error} {remedy}".rstrip(), style="red")


def _write_loop(screen: Screen, reader: _RunReader, state: RunState, path: str, workflow: Workflow) -> None:
    screen.line()
    loop = state.loops[path]
    why = reader.exit_explanation(state, path, workflow)
    completed = f"{loop.completed} of {loop.total or '?'} iterations have completed."
    screen.line(f"{path}: {why or completed}", style="bold")
    if loop.completed:
        heads = ("At", "Verdict", "Score", "Similar", "Tokens", "Cost", "Time", "Warnings", "Result")
        screen.table(heads, [_row(path, iteration, loop) for iteration in loop.all_iterations])


def _row(path: str, iteration: LoopIterationCompleted, loop: LoopExecution) -> tuple[str, ...]:
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
        one_line(to_text(iteration.result), _PREVIEW_CHARACTERS),
    )


def _read_iteration(
    reader: _RunReader, place: Place
) -> tuple[RunState, LoopIterationCompleted | None, tuple[str, ...]]:
    """The level of a loop, its iteration at a place if that has ended, and the tests of its exit conditions."""
    from engine.run_state.state import iteration_at
    from engine.store.exit_explanation import describe_conditions, loop_config
    from engine.store.run_sections import nothing_stored_at

    state = reader.level(place.level)
    path, index = list(place.iterations())[-1]
    ended = iteration_at(state, str(place))
    if ended is None:
        if not reader.level(str(place)).nodes:
            raise nothing_stored_at(reader.store, reader.summary.run_id, place)
        return state, None, ()
    loop = state.loops[path]
    config = loop_config(reader.workflow(), path, loop.cap)
    return state, ended, describe_conditions(config, loop.all_iterations, index, given=reader.outputs(str(place)))


def _write_iteration(screen: Screen, reader: _RunReader, place: Place, *, in_full: bool) -> None:
    from engine.nodes.spec import PAIR_BY_START
    from engine.run_state.state import nodes_on
    from engine.store.run_sections import node_result

    state, ended, tested = _read_iteration(reader, place)
    inside, workflow = reader.level(str(place)), reader.workflow()
    path, index = list(place.iterations())[-1]
    screen.line(f"{place}: iteration {index + 1} of at most {state.loops[path].total or '?'}", style="bold")
    if ended is None:
        screen.line("The iteration has not ended.")
    else:
        if tested:
            screen.line(f"Tested: {'; '.join(tested)}.")
        is_last = ended is state.loops[path].all_iterations[-1]
        screen.line((is_last and reader.exit_explanation(state, path, workflow)) or "The loop continued.")
        for warning in ended.warnings:
            screen.line(f"Warning: {warning}", style="yellow")
        _write_value(screen, "input", ended.input)
    for node in nodes_on(inside, str(place)):
        _write_node_head(screen, node)
        _write_reasoning(screen, node, in_full=in_full)
        if node.outputs and node.node_type not in PAIR_BY_START:
            _write_value(screen, "output", node_result(node))
    for nested in inside.loops:
        _write_loop(screen, reader, inside, nested, workflow)
    if ended is not None:
        _write_value(screen, "result", ended.result)
        if ended.feedback != ended.result:
            _write_value(screen, "feedback", ended.feedback)


def _write_value(screen: Screen, name: str, value: Value) -> None:
    screen.line()
    screen.line(f"{name}:", style="bold")
    screen.line(format_value(value))


def _write_node_head(screen: Screen, node: NodeExecution) -> None:
    """Write the path, state and cost of a node, with warnings and the error."""
    state = (
        "completed, from an earlier output" if node.is_cached else "completed, pinned" if node.is_pinned else node.state
    )
    figures = [node.node_type, state]
    figures += [format_duration(node.duration_s)] if node.duration_s is not None else []
    figures += [format_tokens(node.usage), format_money(node.cost_usd)] if node.usage is not None else []
    figures += [f"state.{node.output_key}"] if node.output_key else []
    screen.line()
    screen.line(f"{node.path} ({', '.join(figures)})", style="bold")
    for sentence in filter(None, (*node.warnings, node.error)):
        screen.line(sentence)


def _write_node_details(screen: Screen, node: NodeExecution, *, in_full: bool) -> None:
    """Write inputs, prompts, replies that are not the output, tool calls and outputs of a node."""
    from engine.store.run_sections import prompts_text

    _write_node_head(screen, node)
    for name, value in node.inputs.items():
        _write_value(screen, f"input {name}", value)
    if node.calls:
        _write_value(screen, "prompt", prompts_text(node.calls))
        _write_value(screen, "model", ", ".join(dict.fromkeys(call.model for call in node.calls)))
        _write_reasoning(screen, node, in_full=in_full)
        for call in node.calls:
            if call.reply.refusal:
                _write_value(screen, "refusal", call.reply.refusal)
            elif node.state == "failed" and call.reply.text.strip():
                _write_value(screen, "reply", call.reply.text)
    for call in node.tool_calls:
        details = {"arguments": call.used_arguments, "result": call.error or call.result}
        _write_value(screen, f"tool call {call.tool}", details)
    for name, value in node.outputs.items():
        _write_value(screen, f"output {name}", value)


def _write_reasoning(screen: Screen, node: NodeExecution, *, in_full: bool) -> None:
    for text in filter(None, (call.reply.reasoning for call in node.calls)):
        left = 0 if in_full else len(text) - _REASONING_CHARACTERS
        more = f"\n… {format_count(left, 'more character')}: --full"
        _write_value(screen, "reasoning", f"{text[:_REASONING_CHARACTERS]}{more}" if left > 0 else text)


def _run_json(reader: _RunReader) -> dict[str, Any]:
    from engine.run_state.result import loop_result
    from engine.run_state.state import nodes_on

    state, workflow = reader.level(""), reader.workflow()
    loops = {
        path: {"why": reader.exit_explanation(state, path, workflow), "total": loop.cap, **loop_result(loop).to_json()}
        for path, loop in state.loops.items()
    }
    summary = summary_json(reader.summary)
    if state.part is not None:
        summary["part"]["outputs"] = reader.part_outputs(state)
    return {
        **summary,
        "inputs": dict(state.inputs),
        "outputs": state.outputs,
        "warnings": list(state.warnings.all),
        "loops": loops,
        "nodes": [_node_json(node) for node in nodes_on(state, "")],
        "remedy": state.remedy,
        "node": state.failed_node,
        "forks": [fork.run_id for fork in reader.store.children(reader.summary.run_id)],
    }


def _iteration_json(reader: _RunReader, place: Place) -> dict[str, Any]:
    from engine.run_state.result import loop_result
    from engine.run_state.state import nodes_on

    _, ended, tested = _read_iteration(reader, place)
    inside = reader.level(str(place))
    return {
        "run_id": reader.summary.run_id,
        "place": str(place),
        "iteration": None if ended is None else ended.to_json(),
        "tested": list(tested),
        "nodes": [_node_json(node) for node in nodes_on(inside, str(place))],
        "loops": {path: loop_result(loop).to_json() for path, loop in inside.loops.items()},
    }


def _node_json(node: NodeExecution) -> dict[str, Any]:
    from engine.run_state.state import NodeState

    calls = [
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
    ]
    tool_calls = [
        {"tool": call.tool, "arguments": call.used_arguments, "result": call.result, "error": call.error}
        for call in node.tool_calls
    ]
    figures = ("output_key", "cost_usd", "duration_s", "retries", "warnings", "error", "remedy")
    return {
        "path": node.path,
        "type": node.node_type,
        "state": NodeState.COMPLETED if node.has_completed else node.state,
        "cached": node.is_cached,
        "pinned": node.is_pinned,
        "inputs": dict(node.inputs),
        "outputs": dict(node.outputs),
        "calls": calls,
        "tool_calls": tool_calls,
        **{name: getattr(node, name) for name in figures},
    }


def runs_diff(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="RUN[@PLACE]", help="Run, or a place in it: ab12@loop[0].")],
    second: Annotated[str, typer.Argument(metavar="RUN[@PLACE]", help="The other; @loop[1] is in the same run.")],
    node: Annotated[
        str, typer.Option(metavar="NODE", help="Compare this node in the two iterations, given by its id or title.")
    ] = "",
    part: Annotated[str, typer.Option(metavar="PART", help="result, feedback, prompt or reply.")] = "result",
    as_json: Annotated[bool, typer.Option("--json", help="Write the differences as one JSON object.")] = False,
    store: StorePath = None,
) -> int:
    """Compare two runs, iterations or nodes word by word.

    Words that only the first has are written [-deleted-], those that only the second has {+inserted+}.

    Example: loopwright runs diff ab12@loop[0] @loop[2] --node critique --part prompt
    """
    from engine.store.run_sections import section_text
    from engine.text_diff import differences

    which = _part(part)
    with history(context, store) as stored:
        name, _, place = first.partition("@")
        other, _, other_place = second.partition("@")
        run_id = stored.find(name).run_id
        other_id = stored.find(other).run_id if other else run_id
        place = find_place(stored, run_id, ".".join(filter(None, (place, node))))
        other_place = find_place(stored, other_id, ".".join(filter(None, (other_place, node))))
        text, other_text = (
            section_text(stored, run_id, place, which),
            section_text(stored, other_id, other_place, which),
        )
    spans = differences(text, other_text)
    if as_json:
        write_json({"spans": [{"kind": str(span.kind), "text": span.text} for span in spans]})
        return ExitCode.DONE
    if all(span.kind == "equal" for span in spans):
        out().line("No differences.")
        return ExitCode.DONE
    for line in _lines_near_changes(spans):
        out().pieces(line)
    return ExitCode.DONE


def _part(text: str) -> Section:
    from engine.store.run_sections import Section

    try:
        return Section(text)
    except ValueError:
        raise EngineError(
            f'"{shown(text, 40)}" is not a part of an iteration.', f"Parts: {', '.join(Section)}."
        ) from None


_Line = list[tuple[str, str]]
"""The pieces of a line, each with its style."""


def _lines_near_changes(spans: Sequence[Span]) -> Iterator[_Line]:
    """The changed lines with some context; the other lines are replaced by their number."""
    lines = list(_lines(spans))
    wanted: set[int] = set()
    for number, (_, is_changed) in enumerate(lines):
        if is_changed:
            wanted.update(range(number - _CONTEXT_LINES, number + _CONTEXT_LINES + 1))
    for is_wanted, group in itertools.groupby(range(len(lines)), wanted.__contains__):
        numbers = list(group)
        if is_wanted:
            yield from (lines[number][0] for number in numbers)
        else:
            yield [(f"... {format_count(len(numbers), 'equal line')} ...", "dim")]


def _lines(spans: Sequence[Span]) -> Iterator[tuple[_Line, bool]]:
    """The lines, and whether each has a change. A change of several lines is marked on each of them."""
    line: _Line = []
    is_changed = False
    for span in spans:
        before, after, style = _STYLES[span.kind]
        parts = span.text.split("\n")
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            # Without its marks, a deleted or inserted newline would be invisible.
            if part or (not last and before):
                line.append((f"{before}{part}{after}", style))
            is_changed = is_changed or bool(before and (part or not last))
            if not last:
                yield line, is_changed
                line, is_changed = [], False
    if line:
        yield line, is_changed
