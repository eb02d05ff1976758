"""Export of a run as a Markdown page: inputs, iterations, exit reasons and results.

Texts of models and documents are untrusted: they are in fenced blocks with fences longer than any in the text, or
within a sentence with all Markdown characters escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from engine.document.model import Workflow
from engine.events import LoopIterationCompleted
from engine.formatting import format_count, format_duration, format_money, format_percent, format_score, format_tokens
from engine.plan.structure import node_at
from engine.run_state.result import run_outputs
from engine.run_state.state import NodeExecution, RunState
from engine.store.exit_explanation import describe_conditions, explain_exit, loop_config
from engine.store.run_sections import display_text, structure_or_empty, workflow_or_empty
from engine.store.store_protocol import RunSummary, level_of
from engine.values import Value

_MARKS: Final = re.compile(r"([\\`*_\[\]<>&#|~$]|(?<=:)//|(?<=www)\.)")
_FENCES: Final = re.compile("`+")
_MAX_HEADING: Final = 6


def run_to_markdown(summary: RunSummary, document: str, state: RunState) -> Iterator[str]:
    """Yield the page in pieces.

    Args:
        summary: The run.
        document: The document as it ran.
        state: The state after all events.
    """
    page = _Page(state, workflow_or_empty(document))
    yield f"# {_inline(summary.workflow) or 'A run'}\n\n"
    yield from (f"- {fact}\n" for fact in _facts(summary))
    if state.inputs:
        yield "\n## Inputs\n"
    for name, value in state.inputs.items():
        yield from _named(name, value)
    for path in page.loops.get("", ()):
        yield from page.loop(path, 2)
    for node in page.nodes.get("", ()):
        yield from _reasoning(node)
    outputs = run_outputs(state, structure_or_empty(document))
    if outputs:
        yield "\n## Results\n"
    for name, value in outputs.items():
        yield from _named(name, value)
    if state.warnings.all:
        yield "\n## Warnings\n\n"
    yield from (f"- {_inline(warning)}\n" for warning in state.warnings.all)
    if state.error:
        where = f" at {state.failed_node}" if state.failed_node else ""
        yield f"\n## Error\n\n{_inline(f'The run failed{where}: {state.error} {state.remedy}')}\n"


def _facts(summary: RunSummary) -> Iterator[str]:
    yield f"Run {summary.run_id}, {summary.status}"
    started = datetime.fromtimestamp(summary.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    took = f", took {format_duration(summary.duration_s)}" if summary.duration_s is not None else ""
    yield f"Started {started}{took}"
    yield f"{format_count(summary.tokens, 'token')}, {_inline(format_money(summary.cost_usd))}"
    if summary.models:
        yield f"Models: {_inline(', '.join(summary.models))}"
    if summary.origin:
        yield _inline(summary.origin)


class _Page:
    def __init__(self, state: RunState, workflow: Workflow) -> None:
        self._state, self._workflow = state, workflow
        self.loops: dict[str, list[str]] = {}
        self.nodes: dict[str, list[NodeExecution]] = {}
        for path in state.loops:
            self.loops.setdefault(level_of(path), []).append(path)
        for node in state.nodes.values():
            self.nodes.setdefault(node.level, []).append(node)

    def loop(self, path: str, depth: int) -> Iterator[str]:
        """Yield the section of a loop with a heading of this depth."""
        loop = self._state.loops[path]
        iterations, config = loop.all_iterations, loop_config(self._workflow, path, loop.cap)
        node = node_at(self._workflow, path)
        title = f"{node.title} ({path})" if node is not None and node.title else path
        yield _heading(depth, f"Loop {title}")
        if loop.exit_reason:
            why = explain_exit(config, iterations, loop.exit_reason, loop.cap, error=self._state.error)
            yield f"\n{_inline(why)}\n"
        for number, iteration in enumerate(iterations):
            returned = ", returned" if loop.returned == iteration.index else ""
            yield _heading(depth + 1, f"Iteration {iteration.index + 1}{returned}")
            yield f"\n{_inline(_figures(iteration))}\n"
            tested = "; ".join(describe_conditions(config, iterations, number))
            yield f"\nTested: {_inline(tested)}.\n"
            yield from (f"\nWarning: {_inline(warning)}\n" for warning in iteration.warnings)
            yield from _block("Result", iteration.result)
            place = f"{path}[{iteration.index}]"
            for node in self.nodes.get(place, ()):
                yield from _reasoning(node)
            if iteration.feedback is not None and iteration.feedback != iteration.result:
                yield from _block("Feedback", iteration.feedback)
            if iteration.reason:
                yield from _block(f"Verdict: {_inline(iteration.branch or '')}", iteration.reason)
            for nested in self.loops.get(place, ()):
                yield from self.loop(nested, depth + 2)


def _reasoning(node: NodeExecution) -> Iterator[str]:
    for call in node.calls:
        if call.reply.reasoning:
            yield from _block(f"Reasoning of {_inline(node.path)}", call.reply.reasoning)


def _figures(iteration: LoopIterationCompleted) -> str:
    parts = [format_tokens(iteration.usage), format_money(iteration.cost_usd), format_duration(iteration.duration_s)]
    if iteration.score is not None:
        parts.insert(0, f"score {format_score(iteration.score)}")
    if iteration.similarity is not None:
        parts.insert(0, f"{format_percent(iteration.similarity)} similar to the previous result")
    return ", ".join(parts)


def _heading(depth: int, text: str) -> str:
    return f"\n{'#' * min(depth, _MAX_HEADING)} {_inline(text)}\n"


def _named(name: str, value: Value) -> Iterator[str]:
    yield _heading(3, name)
    yield _fenced(value)


def _block(title: str, value: Value) -> Iterator[str]:
    yield f"\n**{title}**\n"
    yield _fenced(value)


def _fenced(value: Value) -> str:
    text = display_text(value)
    longest = max((len(fence) for fence in _FENCES.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    kind = "text" if value is None or isinstance(value, str) else "json"
    return f"\n{fence}{kind}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}\n"


def _inline(text: str) -> str:
    """Escape an untrusted text within a sentence: one line, no markup, no links."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))
