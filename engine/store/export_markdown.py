"""A run as a page that a colleague reads: what it was asked, what each iteration came to, why it stopped.

What models and documents say is foreign: it stands in fenced blocks whose fences are longer than any in it, or, in a
sentence, with every sign escaped that means something in Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from engine.document.model import Workflow
from engine.events import LoopIterationCompleted
from engine.formatting import format_count, format_duration, format_money, format_percent, format_score, format_tokens
from engine.plan.parts import node_at
from engine.store.base import RunSummary
from engine.store.outline import NodeOutline, RunOutline
from engine.store.parts import readable, workflow_of
from engine.store.stopping import loop_config, what_was_tested, why_stopped
from engine.values import Value

_MARKS: Final = re.compile(r"([\\`*_\[\]<>&#|~$]|(?<=:)//|(?<=www)\.)")
_FENCES: Final = re.compile("`+")
_DEEPEST: Final = 6


def run_to_markdown(summary: RunSummary, document: str, outline: RunOutline) -> Iterator[str]:
    """The page in pieces.

    Args:
        summary: The run.
        document: The document as it ran.
        outline: All of its events.
    """
    workflow = workflow_of(document)
    yield f"# {_inline(summary.workflow) or 'A run'}\n\n"
    yield from (f"- {fact}\n" for fact in _facts(summary))
    if outline.inputs:
        yield "\n## Inputs\n"
    for name, value in outline.inputs.items():
        yield from _named(name, value)
    for path in _loops_on(outline, ""):
        yield from _loop(outline, workflow, path, 2)
    for node in outline.on_level(""):
        yield from _reasoning(node)
    if outline.result.outputs:
        yield "\n## Results\n"
    for name, value in outline.result.outputs.items():
        yield from _named(name, value)
    if outline.result.warnings:
        yield "\n## Warnings\n\n"
    yield from (f"- {_inline(warning)}\n" for warning in outline.result.warnings)
    if outline.result.error:
        where = f" at {outline.result.node}" if outline.result.node else ""
        yield f"\n## It failed\n\n{_inline(f'It failed{where}: {outline.result.error} {outline.result.remedy}')}\n"


def _facts(summary: RunSummary) -> Iterator[str]:
    yield f"Run {summary.run_id}, {summary.status}"
    begun = datetime.fromtimestamp(summary.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    took = f", took {format_duration(summary.duration_s)}" if summary.duration_s is not None else ""
    yield f"Begun {begun}{took}"
    yield f"{format_count(summary.tokens, 'token')}, {_inline(format_money(summary.cost_usd))}"
    if summary.models:
        yield f"Models: {_inline(', '.join(summary.models))}"
    if summary.parent:
        yield f"Forked from {_inline(summary.parent)} at {_inline(summary.forked_at)}"


def _loops_on(outline: RunOutline, level: str) -> list[str]:
    return [path for path in outline.loops if path.rpartition(".")[0] == level]


def _loop(outline: RunOutline, workflow: Workflow, path: str, depth: int) -> Iterator[str]:
    loop, config = outline.loops[path], loop_config(workflow, path, outline.totals.get(path))
    node = node_at(workflow, path)
    title = f"{node.title} ({path})" if node is not None and node.title else path
    yield _heading(depth, f"Loop {title}")
    if loop.exit_reason:
        total = outline.totals.get(path)
        why = why_stopped(config, loop.iterations, loop.exit_reason, total, error=outline.result.error)
        yield f"\n{_inline(why)}\n"
    for number, iteration in enumerate(loop.iterations):
        returned = ", returned" if loop.returned == iteration.index else ""
        yield _heading(depth + 1, f"Iteration {iteration.index + 1}{returned}")
        yield f"\n{_inline(_figures(iteration))}\n"
        tested = "; ".join(what_was_tested(config, loop.iterations, number))
        yield f"\nTested: {_inline(tested)}.\n"
        yield from (f"\nWarning: {_inline(warning)}\n" for warning in iteration.warnings)
        yield from _block("Result", iteration.result)
        for node in outline.on_level(f"{path}[{iteration.index}]"):
            yield from _reasoning(node)
        if iteration.feedback is not None and iteration.feedback != iteration.result:
            yield from _block("Feedback", iteration.feedback)
        if iteration.reason:
            yield from _block(f"Verdict: {_inline(iteration.branch or '')}", iteration.reason)
        for nested in _loops_on(outline, f"{path}[{iteration.index}]"):
            yield from _loop(outline, workflow, nested, depth + 2)


def _reasoning(node: NodeOutline) -> Iterator[str]:
    """What the models of a node thought before they answered."""
    for call in node.calls:
        if call.reply.reasoning:
            yield from _block(f"Reasoning of {_inline(node.path)}", call.reply.reasoning)


def _figures(iteration: LoopIterationCompleted) -> str:
    parts = [format_tokens(iteration.usage), format_money(iteration.cost_usd), format_duration(iteration.duration_s)]
    if iteration.score is not None:
        parts.insert(0, f"score {format_score(iteration.score)}")
    if iteration.similarity is not None:
        parts.insert(0, f"{format_percent(iteration.similarity)} the same as the one before")
    return ", ".join(parts)


def _heading(depth: int, text: str) -> str:
    return f"\n{'#' * min(depth, _DEEPEST)} {_inline(text)}\n"


def _named(name: str, value: Value) -> Iterator[str]:
    yield _heading(3, name)
    yield _fenced(value)


def _block(title: str, value: Value) -> Iterator[str]:
    yield f"\n**{title}**\n"
    yield _fenced(value)


def _fenced(value: Value) -> str:
    text = readable(value)
    longest = max((len(fence) for fence in _FENCES.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    kind = "text" if value is None or isinstance(value, str) else "json"
    return f"\n{fence}{kind}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}\n"


def _inline(text: str) -> str:
    """A foreign text inside a sentence: on one line, and nothing in it means anything, addresses neither."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))
